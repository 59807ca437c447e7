/* Labels of words: cutting texts into words, reading tagged files, spans as conlleval counts them,
 * the best well-formed sequence against all sequences, and long texts cut between words. */
#include "harness.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/corpus.h"
#include "data/spans.h"
#include "folders.h"
#include "use/tag_text.h"

#include <stdlib.h>

/* ---- words ---- */

static void words_of_texts(void **state) {
    (void)state;
    static const struct {
        const char *text, *words; /* with | between */
    } rows[] = {
        {"", ""},
        {"  \t\n ", ""},
        {"one", "one"},
        {"Hello, world!", "Hello|,|world|!"},
        {"\"Wait...\" (he said)", "\"|Wait|.|.|.|\"|(|he|said|)"},
        {"I don't, she'd, it's, we'll", "I|do|n't|,|she|'d|,|it|'s|,|we|'ll"},
        {"CAN'T isn\xe2\x80\x99t", "CA|N'T|isn\xe2\x80\x99t"},
        {"3.5 km a-b e.g.", "3.5|km|a-b|e.g|."},
        {"'s n't", "'|s|n't"},
        {"Gr\xc3\xbc\xc3\x9f"
         "e \xf0\x9f\x98\x80 aus K\xc3\xb6ln.",
         "Gr\xc3\xbc\xc3\x9f"
         "e|\xf0\x9f\x98\x80|aus|K\xc3\xb6ln|."},
        {"a\xc2\xa0"
         "b",
         "a|b"},
        {"\xff\xfe x", "\xff|\xfe|x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_word_list list = {0};
        qkv_buf got = {0};
        const qkv_text text = {rows[i].text, strlen(rows[i].text)};
        assert_ok(qkv_words_split(text, false, &list));
        qkv_buf_puts(&got, "");
        for (size_t k = 0; k < list.n; k++)
            qkv_buf_printf(&got, "%s%.*s", k ? "|" : "", (int)(list.at[k].end - list.at[k].begin),
                           text.data + list.at[k].begin);
        assert_string_equal(got.data, rows[i].words);
        qkv_buf_free(&got);
        qkv_free(list.at);
    }
}

/* ---- files ---- */

static char folder[64];

static const char *write_file(const char *name, const char *content) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(qkv_file_write(path, content, strlen(content)));
    return path;
}

/* The corpus of a file as "word/label word/label | …". */
static qkv_status spell(const char *name, const char *content, qkv_buf *out) {
    const char *paths[] = {write_file(name, content), NULL};
    qkv_corpus c;
    QKV_TRY(qkv_corpus_read(
        &c, &(qkv_corpus_spec){.shape = QKV_CORPUS_TAGGED, .paths = paths, .n_paths = 1}));
    for (size_t i = 0; i < c.n; i++) {
        const qkv_row *row = &c.rows[i];
        if (i) qkv_buf_puts(out, " | ");
        for (size_t k = 0; k < row->words.n; k++) {
            const qkv_text_word w = row->words.at[k];
            qkv_buf_printf(out, "%s%.*s/%s", k ? " " : "", (int)(w.end - w.begin),
                           row->text.data + w.begin, c.labels.names[w.tag]);
        }
    }
    qkv_corpus_free(&c);
    return QKV_OK;
}

static void files_of_every_form(void **state) {
    (void)state;
    static const char wanted[] = "John/B-PER Smith/I-PER sleeps/O ./O | Paris/B-LOC !/O";
    static const struct {
        const char *name, *content;
    } rows[] = {
        {"a.conll", "John B-PER\nSmith I-PER\nsleeps O\n. O\n\nParis B-LOC\n! O\n"},
        {"a.tsv",
         "John\tB-PER\r\nSmith\tI-PER\r\nsleeps\tO\r\n.\tO\r\n\r\n\r\nParis\tB-LOC\r\n!\tO"},
        {"b.txt", "-DOCSTART- -X- O\n\nJohn NNP B-NP B-PER\nSmith NNP I-NP I-PER \nsleeps VBZ B-VP "
                  "O\n. . O O\n\n"
                  "Paris NNP B-NP B-LOC\n! . O O\n\n"},
        {"a.jsonl", "{\"tokens\": [\"John\", \"Smith\", \"sleeps\", \".\"], \"tags\": [\"B-PER\", "
                    "\"I-PER\", \"O\", \"O\"]}\n\n"
                    "{\"tags\": [\"B-LOC\", \"O\"], \"tokens\": [\"Paris\", \"!\"]}\n"},
        {"s.jsonl", "{\"text\": \"John Smith sleeps.\", \"spans\": [{\"start\": 0, \"end\": 10, "
                    "\"label\": \"PER\"}]}\n"
                    "{\"text\": \"Paris!\", \"entities\": [{\"start\": 0, \"end\": 5, \"label\": "
                    "\"LOC\"}]}\n"},
        {"a.conllu",
         "# text = "
         "x\n1\tJohn\t_\tB-PER\t_\t_\t0\t_\t_\t_\n2-3\tSmithsleeps\t_\t_\t_\t_\t_\t_\t_\t_\n"
         "2\tSmith\t_\tI-PER\t_\t_\t0\t_\t_\t_\n3\tsleeps\t_\tO\t_\t_\t0\t_\t_\t_\n"
         "3.1\tgone\t_\tO\t_\t_\t0\t_\t_\t_\n4\t.\t_\tO\t_\t_\t0\t_\t_\tSpaceAfter=No\n\n"
         "1\tParis\t_\tB-LOC\t_\t_\t0\t_\t_\t_\n2\t!\t_\tO\t_\t_\t0\t_\t_\t_\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_buf got = {0};
        assert_ok(spell(rows[i].name, rows[i].content, &got));
        if (strcmp(got.data, wanted) != 0) fail_msg("%s: \"%s\"", rows[i].name, got.data);
        qkv_buf_free(&got);
    }
}

static void files_that_are_wrong(void **state) {
    (void)state;
    static const struct {
        const char *name, *content, *why;
    } rows[] = {
        {"x.jsonl", "{\"tokens\": [\"a\"], \"tags\": []}", "not of one length"},
        {"x.jsonl", "{\"tokens\": [\"a\", 1], \"tags\": [\"O\", \"O\"]}", "lists of strings"},
        {"x.jsonl", "{\"text\": \"a\"}", "wanted \"tokens\" and \"tags\""},
        {"x.jsonl", "{\"text\": \"ab\", \"spans\": [{\"start\": 1, \"end\": 0, \"label\": \"X\"}]}",
         "in order"},
        {"x.jsonl", "{\"text\": \"ab\", \"spans\": [{\"start\": 0, \"end\": 9, \"label\": \"X\"}]}",
         "line 1"},
        {"x.conllu", "1\ta\t_\tX\n", "ten columns"},
        {"x.conllu", "1\t\t_\tX\t_\t_\t0\t_\t_\t_\n", "ten columns"},
        {"x.conll", "a\tX\n\tX\n", "line 2"},
        {"x.conll", "\n\n", "no row has text"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_buf got = {0};
        assert_fails(spell(rows[i].name, rows[i].content, &got), QKV_BAD_FILE, rows[i].why);
        qkv_buf_free(&got);
    }
}

/* ---- spans ---- */

static const char *const names[] = {"O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "X"};
enum { NAMES = sizeof names / sizeof *names };

static void make_scheme(qkv_labels *labels, qkv_span_scheme *s) {
    *labels = (qkv_labels){0};
    for (int i = 0; i < NAMES; i++) qkv_labels_add(labels, names[i], strlen(names[i]));
    assert_ok(qkv_span_scheme_of(labels, s));
}

/* conlleval's rules, word by word from its own description: does a chunk end between two labels, and
 * does one start? */
static bool chunk_ends(const char *a, const char *b) {
    if (a[0] != 'B' && a[0] != 'I') return false;
    return b[0] == 'B' || (b[0] != 'I') || strcmp(a + 1, b + 1) != 0;
}
static bool chunk_starts(const char *a, const char *b) {
    if (b[0] != 'B' && b[0] != 'I') return false;
    return b[0] == 'B' || (a[0] != 'B' && a[0] != 'I') || strcmp(a + 1, b + 1) != 0;
}

static void spans_as_conlleval(void **state) {
    (void)state;
    qkv_labels labels;
    qkv_span_scheme s;
    make_scheme(&labels, &s);
    int64_t found = 0;
    for (uint64_t round = 0; round < 1000; round++) {
        int32_t label[24];
        qkv_word_span span[24];
        const qkv_rng rng = {.seed = 7, .stream = round};
        const size_t n = 1 + (size_t)qkv_rng_below(rng, 99, 24);
        for (size_t i = 0; i < n; i++) label[i] = (int32_t)qkv_rng_below(rng, i, NAMES);
        const size_t count = qkv_spans_find(&s, label, n, span);
        size_t k = 0;
        bool open = false;
        for (size_t i = 0; i <= n; i++) {
            const char *before = i ? names[label[i - 1]] : "O",
                       *now = i < n ? names[label[i]] : "O";
            if (open && chunk_ends(before, now)) {
                assert_int_equal(span[k].to, i);
                k++, open = false;
            }
            if (chunk_starts(before, now)) {
                assert_true(k < count);
                assert_int_equal(span[k].from, i);
                assert_string_equal(s.types.names[span[k].type], now + 2);
                open = true;
            }
        }
        assert_int_equal(k, count);
        found += (int64_t)count;
    }
    assert_true(found > 3000);
    qkv_span_scheme_free(&s);
    qkv_labels_free(&labels);
}

static bool well_formed(const int32_t *label, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *now = names[label[i]], *before = i ? names[label[i - 1]] : "O";
        if (now[0] == 'I' && strcmp(before + (before[0] == 'O' ? 0 : 1), now + 1) != 0)
            return false;
    }
    return true;
}

/* All sequences of four labels, the best of those that are well formed. */
static void best_well_formed(void **state) {
    (void)state;
    enum { N = 4 };
    qkv_labels labels;
    qkv_span_scheme s;
    make_scheme(&labels, &s);
    for (uint64_t round = 0; round < 10; round++) {
        float score[N * NAMES], used[N * NAMES];
        int32_t from[N * NAMES], label[N], best[N] = {0};
        const qkv_rng rng = {.seed = 11, .stream = round};
        for (int i = 0; i < N * NAMES; i++)
            score[i] = (float)(3 * qkv_rng_uniform(rng, (uint64_t)i));
        double most = -1e9;
        for (int code = 0; code < NAMES * NAMES * NAMES * NAMES; code++) {
            int32_t at[N];
            double sum = 0;
            for (int i = 0, c = code; i < N; i++, c /= NAMES) {
                at[i] = c % NAMES;
                sum += (double)score[i * NAMES + at[i]];
            }
            if (sum <= most || !well_formed(at, N)) continue;
            most = sum;
            memcpy(best, at, sizeof best);
        }
        memcpy(used, score, sizeof used);
        qkv_spans_decode(&s, used, N, from, label);
        assert_true(well_formed(label, N));
        assert_memory_equal(label, best, sizeof best);
    }
    qkv_span_scheme_free(&s);
    qkv_labels_free(&labels);
}

/* ---- use ---- */

/* Learned by heart: each name is a name, wherever it stands, in a text that is far longer than the
 * model reads. */
static void long_texts(void **state) {
    (void)state;
    qkv_buf text = {0};
    for (int i = 0; i < 20; i++)
        qkv_buf_puts(&text, "Anna B-PER\nruns O\n. O\n\nin O\nRome B-LOC\n\n");
    const char *train[] = {write_file("learn.conll", text.data), NULL};
    char out[128];
    snprintf(out, sizeof out, "%s/model", folder);
    const char *set[] = {"steps=60", "save_every=60", "d_model=32",          "max_len=12",
                         "lr=0.02",  "dropout=0",     "embedding_dropout=0", NULL};
    assert_ok(
        qkv_train(&(qkv_train_request){.task = "tag", .train = train, .out = out, .set = set}));
    qkv_text_model *m;
    assert_ok(qkv_text_model_open(out, &m));
    text.len = 0;
    enum { TIMES = 20 };
    for (int i = 0; i < TIMES; i++) qkv_buf_puts(&text, "Anna runs. in Rome ");
    qkv_text texts[] = {{text.data, text.len}, {"", 0}, {"in Rome", 7}};
    qkv_tags tags;
    assert_ok(qkv_tag(m, texts, 3, false, &tags));
    assert_int_equal(tags.first[1], 5 * TIMES);
    assert_int_equal(tags.first[2], 5 * TIMES);
    assert_int_equal(tags.first[3], 5 * TIMES + 2);
    static const char *const truth[] = {"B-PER", "O", "O", "O", "B-LOC"};
    for (size_t i = 0; i < 5 * TIMES; i++)
        assert_string_equal(qkv_text_model_label(m, (size_t)tags.words[i].label), truth[i % 5]);
    qkv_tag_span spans[2];
    assert_int_equal(qkv_tag_spans(m, tags.words + tags.first[2], 2, spans), 1);
    assert_string_equal(spans[0].type, "LOC");
    assert_int_equal(spans[0].begin, 3);
    assert_int_equal(spans[0].end, 7);
    qkv_tags_free(&tags);
    qkv_evaluation e;
    assert_ok(qkv_evaluate(m, train, NULL, &e));
    assert_true(e.span_f1 == 1 && e.n_types == 2 && e.types[0].support == 20);
    qkv_evaluation_free(&e);
    qkv_text_model_close(m);
    qkv_buf_free(&text);
}

static int set_up(void **state) {
    (void)state;
    make_temporary(folder);
    return 0;
}

static int clean_up(void **state) {
    (void)state;
    remove_temporary(folder);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_texts),       cmocka_unit_test(files_of_every_form),
        cmocka_unit_test(files_that_are_wrong), cmocka_unit_test(spans_as_conlleval),
        cmocka_unit_test(best_well_formed),     cmocka_unit_test(long_texts),
    };
    return cmocka_run_group_tests(tests, set_up, clean_up);
}
