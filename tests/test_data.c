/* Data: the forms in which rows are read, with their errors; batches are a keyed, exact cover of
 * the examples within the token budget. */
#include "harness.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/batcher.h"
#include "data/corpus.h"
#include "data/synthetic.h"

#include <unistd.h>

/* n examples of 1 … 40 ids (two sides when asked); example i is full of i's. */
static void make_encoded(qkv_encoded *e, int64_t n, int sides) {
    qkv_encoded_init(e, sides);
    int32_t ids[40];
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 40; k++) ids[k] = (int32_t)i;
        for (int side = 0; side < sides; side++)
            assert_ok(qkv_encoded_add(
                e, ids, 1 + (int64_t)qkv_rng_below((qkv_rng){5, (uint64_t)side}, (uint64_t)i, 40)));
        assert_ok(qkv_encoded_label(e, (int32_t)(i % 3)));
    }
    assert_int_equal(e->n, n);
}

/* Every example once; no batch over the budget unless it is a single example. */
static void check_cover(const qkv_batcher *b) {
    char *seen = test_calloc((size_t)b->n_examples, 1);
    int64_t total = 0;
    for (int64_t i = 0; i < b->n_batches; i++) {
        int64_t n, filled = 0;
        const int64_t *examples = qkv_batcher_get(b, i, &n);
        assert_true(n > 0);
        for (int64_t k = 0; k < n; k++) {
            assert_in_range(examples[k], 0, b->n_examples - 1);
            assert_false(seen[examples[k]]++);
            for (int side = 0; side < b->data->sides; side++) {
                int64_t len;
                const int32_t *ids = qkv_batcher_ids(b, examples[k], side, &len);
                filled += b->window ? b->window : len;
                if (!b->window) assert_int_equal(ids[len - 1], examples[k]);
            }
        }
        assert_true(filled <= b->budget || n == 1);
        total += n;
    }
    assert_int_equal(total, b->n_examples);
    test_free(seen);
}

static void batches_cover(void **state) {
    (void)state;
    for (int sides = 1; sides <= 2; sides++)
        for (int64_t pool = 0; pool <= 20; pool += 20) {
            qkv_encoded e;
            make_encoded(&e, 1000, sides);
            for (int64_t i = 0; i < e.n; i++) assert_int_equal(e.label[i], i % 3);
            qkv_batcher b = {.data = &e, .budget = 100, .seed = 3, .pool = pool, .shuffle = true};
            assert_ok(qkv_batcher_init(&b));
            uint64_t before = qkv_mem_count().allocations;
            int64_t first[2] = {0};
            for (int64_t epoch = 0; epoch < 2; epoch++) {
                qkv_batcher_plan(&b, epoch);
                assert_int_equal(b.n_examples, 1000);
                check_cover(&b);
                first[epoch] = b.order[0] * 1000 + b.order[1];
            }
            assert_true(first[0] != first[1]);
            qkv_batcher_plan(&b, 0); /* the same epoch again is the same plan */
            assert_int_equal(b.order[0] * 1000 + b.order[1], first[0]);
            assert_int_equal(qkv_mem_count().allocations, before);
            qkv_batcher_free(&b);
            qkv_encoded_free(&e);
        }
}

static void grouping_is_by_length(void **state) {
    (void)state;
    qkv_encoded e;
    make_encoded(&e, 2000, 1);
    double spread[2];
    for (int grouped = 0; grouped < 2; grouped++) {
        qkv_batcher b = {.data = &e, .budget = 200, .pool = grouped ? 50 : 0, .shuffle = true};
        assert_ok(qkv_batcher_init(&b));
        qkv_batcher_plan(&b, 0);
        int64_t sum = 0;
        for (int64_t i = 0; i < b.n_batches; i++) {
            int64_t n, least = 99, most = 0;
            const int64_t *examples = qkv_batcher_get(&b, i, &n);
            for (int64_t k = 0; k < n; k++) {
                int64_t len = e.start[examples[k] + 1] - e.start[examples[k]];
                if (len < least) least = len;
                if (len > most) most = len;
            }
            sum += most - least;
        }
        spread[grouped] = (double)sum / (double)b.n_batches;
        qkv_batcher_free(&b);
    }
    assert_true(spread[1] < spread[0] / 4);
    qkv_encoded_free(&e);
}

static void windows_of_a_stream(void **state) {
    (void)state;
    int32_t ids[1000];
    for (int i = 0; i < 1000; i++) ids[i] = i;
    qkv_encoded e;
    qkv_encoded_init(&e, 1);
    assert_ok(qkv_encoded_add(&e, ids, 1000));
    qkv_batcher b = {.data = &e, .budget = 128, .window = 32, .seed = 1, .shuffle = true};
    assert_ok(qkv_batcher_init(&b));
    int64_t shifts = 0;
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        qkv_batcher_plan(&b, epoch);
        check_cover(&b);
        assert_true(b.n_examples >= 30);
        for (int64_t w = 0; w < b.n_examples; w++) {
            int64_t n;
            const int32_t *at = qkv_batcher_ids(&b, w, 0, &n);
            assert_int_equal(n, 33);
            assert_int_equal(at[0], b.shift + 32 * w);
            assert_true(at[32] < 1000);
        }
        shifts += b.shift;
    }
    assert_true(shifts > 0);
    qkv_batcher_free(&b);
    b = (qkv_batcher){.data = &e, .budget = 128, .window = 5000, .shuffle = true};
    assert_ok(qkv_batcher_init(&b)); /* longer than the stream */
    qkv_batcher_plan(&b, 0);
    assert_int_equal(b.n_batches, 1);
    assert_int_equal(b.window, 999);
    qkv_batcher_free(&b);
    /* In evaluation every token counts: the last window is what is left. */
    b = (qkv_batcher){.data = &e, .budget = 128, .window = 320};
    assert_ok(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    int64_t targets = 0;
    for (int64_t w = 0; w < b.n_examples; w++) {
        int64_t n;
        qkv_batcher_ids(&b, w, 0, &n);
        targets += n - 1;
    }
    assert_int_equal(targets, 999);
    qkv_batcher_free(&b);
    qkv_encoded_free(&e);
}

static void refusals(void **state) {
    (void)state;
    qkv_encoded e;
    qkv_encoded_init(&e, 1);
    qkv_batcher b = {.data = &e, .budget = 10};
    assert_fails(qkv_batcher_init(&b), QKV_BAD_FILE, "no examples");
    int32_t id = 1;
    assert_ok(qkv_encoded_add(&e, &id, 1));
    b = (qkv_batcher){.data = &e, .budget = 0};
    assert_fails(qkv_batcher_init(&b), QKV_USAGE, "batch_tokens");
    b = (qkv_batcher){.data = &e, .budget = 10, .window = 4};
    assert_fails(qkv_batcher_init(&b), QKV_BAD_FILE, "no examples");
    qkv_encoded_free(&e);
}

/* ---- reading ---- */

static char paths[2][64];

/* Writes `content` to file `i` of this test; its name ends in `ending`. */
static const char *put(int i, const char *ending, const char *content) {
    snprintf(paths[i], sizeof paths[i], "test_data-%d-%d%s", (int)getpid(), i, ending);
    FILE *f = fopen(paths[i], "wb");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
    return paths[i];
}

static qkv_status read_as(qkv_corpus_shape shape, const char *ending, const char *content,
                          qkv_corpus *c) {
    const char *path = put(0, ending, content);
    qkv_status status =
        qkv_corpus_read(c, &(qkv_corpus_spec){.shape = shape, .paths = &path, .n_paths = 1});
    unlink(path);
    return status;
}

static void assert_text(qkv_text t, const char *wanted) {
    assert_int_equal(t.len, strlen(wanted));
    assert_memory_equal(t.data, wanted, t.len);
}

/* Every labelled form says the same two rows: (pos, a "good", film) and (neg, bad). */
static void labelled_forms(void **state) {
    (void)state;
    static const struct {
        const char *ending, *format, *content;
    } forms[] = {
        {".tsv", "tsv", "pos\ta \"good\", film\r\n\nneg\tbad"},
        {"", "tsv", "\xEF\xBB\xBFpos\ta \"good\", film\nneg\t \nneg\tbad\n"},
        {"", "fasttext", "__label__pos a \"good\", film\n__label__neg  bad\n\n"},
        {".csv", "csv", "pos,\"a \"\"good\"\", film\"\nneg,bad\n\n"},
        {".csv", "csv", "id,Text,label\n1,\"a \"\"good\"\", film\",pos\n2,bad,neg\n,,pos\n"},
        {".jsonl", "jsonl",
         "{\"label\":\"pos\",\"text\":\"a \\\"good\\\", "
         "film\"}\n\n{\"text\":\"bad\",\"label\":\"neg\"}\n"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        qkv_corpus c;
        assert_ok(read_as(QKV_CORPUS_LABELLED, forms[i].ending, forms[i].content, &c));
        assert_string_equal(c.format, forms[i].format);
        assert_int_equal(c.n, 2);
        assert_int_equal(c.n_empty, 1);
        assert_int_equal(c.labels.n, 2);
        assert_string_equal(c.labels.names[0], "neg"); /* by bytes, not by appearance */
        assert_text(c.rows[0].text, "a \"good\", film");
        assert_int_equal(c.rows[0].label, 1);
        assert_text(c.rows[1].text, "bad");
        assert_int_equal(c.rows[1].label, 0);
        assert_int_equal(qkv_labels_find(&c.labels, "pos", 3), 1);
        assert_int_equal(qkv_labels_find(&c.labels, "po", 2), -1);
        qkv_corpus_free(&c);
    }
}

static void labelled_errors(void **state) {
    (void)state;
    static const struct {
        const char *ending, *content, *words;
    } bad[] = {
        {".tsv", "pos\tok\nneg bad\n", "line 2: no TAB"},
        {".tsv", "pos\tok\n\tbad\n", "line 2: the label is empty"},
        {".tsv", "pos\tok\nneg\tna\xEFve\n", "line 2: byte 0xEF is not UTF-8"},
        {".tsv", "", "empty"},
        {".tsv", "\n\n", "no row has text"},
        {"", "just words\n", "not recognised"},
        {"", "__label__a x\nb y\n", "line 2: the row has no label"},
        {"", "__label__a x\ny\n", "line 2: the row has no label"},
        {".csv", "a,\"b\nc\n", "does not end"},
        {".csv", "a,\"b\"c\n", "after a closing quote"},
        {".csv", "a,b\nc\n", "line 2: 1 columns"},
        {".jsonl", "{\"label\":1,\"text\":\"x\"}\n{\"label\":2}\n", "line 2: lacks"},
        {".jsonl", "{\"label\":1,\"text\":\"x\"}\n[]\n", "line 2: not an object"},
        {".jsonl", "{\"label\":1,\n", "line 1"},
    };
    const uint64_t live = qkv_mem_count().live;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qkv_corpus c;
        assert_fails(read_as(QKV_CORPUS_LABELLED, bad[i].ending, bad[i].content, &c), QKV_BAD_FILE,
                     bad[i].words);
        assert_int_equal(qkv_mem_count().live, live);
    }
    qkv_corpus train, valid;
    assert_ok(read_as(QKV_CORPUS_LABELLED, ".tsv", "a\tx\nb\ty\n", &train));
    const char *path = put(0, ".tsv", "b\tx\nc\ty\n");
    assert_fails(qkv_corpus_read(&valid, &(qkv_corpus_spec){.shape = QKV_CORPUS_LABELLED,
                                                            .paths = &path,
                                                            .n_paths = 1,
                                                            .labels = &train.labels}),
                 QKV_BAD_FILE, "line 2: the label \"c\"");
    unlink(path);
    qkv_corpus_free(&train);
}

static void parallel_forms(void **state) {
    (void)state;
    qkv_corpus c;
    assert_ok(read_as(QKV_CORPUS_PARALLEL, ".tsv", "ein Hund\ta dog\tCC-BY\nx\t\n", &c));
    assert_int_equal(c.n, 1);
    assert_int_equal(c.n_empty, 1);
    assert_text(c.rows[0].second, "a dog");
    qkv_corpus_free(&c);
    assert_ok(read_as(QKV_CORPUS_PARALLEL, ".jsonl",
                      "{\"translation\":{\"de\":\"ein Hund\",\"en\":\"a dog\"}}\n", &c));
    assert_text(c.rows[0].text, "ein Hund");
    assert_text(c.rows[0].second, "a dog");
    qkv_corpus_free(&c);
    const char *two[2] = {put(0, ".de", "ein\nzwei\n"), put(1, ".en", "one\ntwo\nthree\n")};
    const qkv_corpus_spec spec = {.shape = QKV_CORPUS_PARALLEL, .paths = two, .n_paths = 2};
    assert_fails(qkv_corpus_read(&c, &spec), QKV_BAD_FILE, "has 3");
    put(1, ".en", "one\ntwo\n");
    assert_ok(qkv_corpus_read(&c, &spec));
    assert_int_equal(c.n, 2);
    assert_text(c.rows[1].text, "zwei");
    assert_text(c.rows[1].second, "two");
    qkv_corpus_free(&c);
    unlink(two[0]);
    unlink(two[1]);
    assert_fails(qkv_corpus_read(&c, &spec), QKV_FAILED, two[0]);
}

/* Pieces of a stream are the file again, whatever lines it has, and where it is cut as well: behind an
 * empty line near the place that is wanted. */
static void stream_is_whole(void **state) {
    (void)state;
    char *text = test_malloc(400001), *to = text;
    for (int i = 0; to - text < 399900; i++)
        to += sprintf(to, "%s",
                      i % 7 == 3   ? "\n\n"
                      : i % 5 == 1 ? "  indented\n"
                                   : "a line of text\n");
    *to = 0;
    qkv_corpus c;
    assert_ok(read_as(QKV_CORPUS_STREAM, ".txt", text, &c));
    assert_true(c.n > 3);
    const int64_t wanted = 380000;
    size_t at = 0, cut, place = 0;
    int64_t line = 1;
    assert_ok(qkv_corpus_cut(&c, wanted, &cut));
    for (size_t i = 0; i < cut; i++) place += c.rows[i].text.len;
    for (size_t i = 0; i < place; i++) line += text[i] == '\n';
    assert_in_range(place, wanted - 100, wanted + 100);
    assert_memory_equal(text + place - 2, "\n\n", 2);
    assert_int_not_equal(text[place], '\n');
    assert_int_equal(c.rows[cut].line, line);
    assert_ok(qkv_corpus_cut(&c, 1 << 30, &cut));
    assert_int_equal(cut, c.n);
    for (size_t i = 0; i < c.n; i++) {
        assert_memory_equal(c.rows[i].text.data, text + at, c.rows[i].text.len);
        at += c.rows[i].text.len;
    }
    assert_int_equal(at, to - text);
    qkv_corpus_free(&c);
    assert_ok(read_as(QKV_CORPUS_LINES, ".txt", "one, two\n\nthree", &c));
    assert_int_equal(c.n, 2);
    assert_int_equal(c.rows[1].line, 3);
    qkv_corpus_free(&c);
    test_free(text);
}

static bool has_line(const qkv_buf *text, const char *line, size_t n) {
    for (const char *at = text->data; at < text->data + text->len - 1;) {
        const char *end = strchr(at, '\n') + 1;
        if ((size_t)(end - at) == n && memcmp(at, line, n) == 0) return true;
        at = end;
    }
    return false;
}

/* Rows that are held out are not among those to train on, even of other seeds;
 * the same seed gives the same rows. */
static void synthetic_rows(void **state) {
    (void)state;
    static const char *const names[] = {"reviews", "numbers"};
    for (size_t k = 0; k < 2; k++) {
        const qkv_synthetic *m = qkv_synthetic_find(names[k]);
        assert_non_null(m);
        qkv_buf train = {0}, again = {0}, test = {0};
        qkv_synthetic_rows(m, 1, 3000, false, &train);
        qkv_synthetic_rows(m, 1, 3000, false, &again);
        qkv_synthetic_rows(m, 2, 300, true, &test);
        assert_int_equal(train.status | again.status | test.status, QKV_OK);
        assert_int_equal(train.len, again.len);
        assert_memory_equal(train.data, again.data, train.len);
        qkv_buf_putc(&train, 0);
        for (const char *at = test.data; at < test.data + test.len;) {
            const char *end = memchr(at, '\n', (size_t)(test.data + test.len - at)) + 1;
            assert_false(has_line(&train, at, (size_t)(end - at)));
            at = end;
        }
        qkv_buf_free(&train);
        qkv_buf_free(&again);
        qkv_buf_free(&test);
    }
    assert_null(qkv_synthetic_find("novels"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_cover),   cmocka_unit_test(grouping_is_by_length),
        cmocka_unit_test(synthetic_rows),  cmocka_unit_test(windows_of_a_stream),
        cmocka_unit_test(refusals),        cmocka_unit_test(labelled_forms),
        cmocka_unit_test(labelled_errors), cmocka_unit_test(parallel_forms),
        cmocka_unit_test(stream_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
