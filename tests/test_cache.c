/* The cache of ids: the ids of tokenising, mapped the second time; made again when anything it
 * depends on changed, or a bit of it. */
#include "harness.h"
#include "base/mem.h"
#include "data/ids_cache.h"

#include <unistd.h>

static const char *const path = "test_cache.ids", *const rows = "test_cache.tsv";

static void write_file(const char *name, const char *data, size_t n) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void read_corpus(qkv_corpus *c, qkv_corpus_shape shape, const char *content) {
    write_file(rows, content, strlen(content));
    assert_ok(qkv_corpus_read(c, &(qkv_corpus_spec){.shape = shape, .paths = &rows, .n_paths = 1}));
}

typedef struct texts {
    const char *const *line;
    size_t n;
} texts;

static bool next_text(void *user, const char **text, size_t *len) {
    texts *t = user;
    if (t->n == 0) return false;
    *text = *t->line++;
    *len = strlen(*text);
    t->n--;
    return true;
}

static qkv_tokenizer *tokenizer_of(const char *alphabet) {
    qkv_tokenizer *tok;
    texts t = {&alphabet, 1};
    const qkv_tok_train spec = {.kind = QKV_TOK_CHAR, .vocab_size = 200};
    assert_ok(qkv_tokenizer_train(&spec, next_text, &t, &tok));
    return tok;
}

static const char *const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789 .\n\t";

/* Through the cache, held against plain tokenising; returns whether the file was rewritten. */
static bool through(const qkv_tokenizer *tok, const qkv_corpus *c, const bool *take,
                    const qkv_tokenise_spec *spec) {
    qkv_encoded plain, cached;
    qkv_tokenise_counts a, b;
    qkv_encoded_init(&plain, spec->sides);
    assert_ok(qkv_tokenise(tok, c, take, spec, &plain, &a));
    assert_ok(qkv_tokenise_cached(tok, c, take, spec, path, &cached, &b));
    assert_int_equal(plain.n, cached.n);
    assert_int_equal(plain.n_seq, cached.n_seq);
    assert_int_equal(qkv_encoded_tokens(&plain), qkv_encoded_tokens(&cached));
    assert_int_equal(a.n_cut, b.n_cut);
    assert_int_equal(a.n_empty, b.n_empty);
    assert_int_equal(plain.label != NULL, cached.label != NULL);
    if (plain.n_seq) {
        const size_t tokens = (size_t)qkv_encoded_tokens(&plain);
        assert_memory_equal(plain.start, cached.start,
                            ((size_t)plain.n_seq + 1) * sizeof *plain.start);
        if (tokens) assert_memory_equal(plain.ids, cached.ids, tokens * sizeof *plain.ids);
    }
    if (plain.label)
        assert_memory_equal(plain.label, cached.label, (size_t)plain.n * sizeof *plain.label);
    qkv_encoded_free(&plain);
    qkv_encoded_free(&cached);
    return !b.kept;
}

static void made_when_needed(void **state) {
    (void)state;
    qkv_tokenizer *tok = tokenizer_of(alphabet), *other = tokenizer_of("abcde .");
    qkv_tokenise_spec spec = {.sides = 1, .max_tokens = 8};
    qkv_corpus c;
    unlink(path);
    read_corpus(&c, QKV_CORPUS_LABELLED, "x\tone two three\ny\tfour\nx\tfive\n");
    assert_true(through(tok, &c, NULL, &spec));
    assert_false(through(tok, &c, NULL, &spec));
    assert_true(through(tok, &c, (bool[]){true, false, true}, &spec));
    assert_false(through(tok, &c, (bool[]){true, false, true}, &spec));
    spec.max_tokens = 5;
    assert_true(through(tok, &c, NULL, &spec));
    assert_true(through(other, &c, NULL, &spec));
    assert_false(through(other, &c, NULL, &spec));
    assert_true(through(tok, &c, (bool[]){false, false, false}, &spec)); /* nothing at all */
    assert_false(through(tok, &c, (bool[]){false, false, false}, &spec));
    qkv_corpus_free(&c);
    read_corpus(&c, QKV_CORPUS_LABELLED, "x\tone two three\ny\tfour\ny\tfive\n"); /* a label */
    assert_true(through(tok, &c, NULL, &spec));
    qkv_corpus_free(&c);
    read_corpus(&c, QKV_CORPUS_LABELLED, "x\tone two three\ny\tfour\ny\tfivE\n"); /* a letter */
    assert_true(through(tok, &c, NULL, &spec));
    qkv_corpus_free(&c);
    qkv_tokenizer_free(tok);
    qkv_tokenizer_free(other);
}

static void all_shapes(void **state) {
    (void)state;
    qkv_tokenizer *tok = tokenizer_of(alphabet);
    qkv_corpus c;
    read_corpus(&c, QKV_CORPUS_PARALLEL, "one\ttwo\nthree\tfour and five\n");
    assert_true(through(tok, &c, NULL, &(qkv_tokenise_spec){.sides = 2}));
    assert_false(through(tok, &c, NULL, &(qkv_tokenise_spec){.sides = 2}));
    qkv_corpus_free(&c);
    /* A stream whose ids are more than one block of the file. */
    const size_t n = 3 << 18;
    char *text = test_malloc(n + 1);
    for (size_t i = 0; i < n; i++) text[i] = i % 61 == 60 ? '\n' : "abcdefgh ij.kl"[i * 7 % 14];
    text[n] = 0;
    read_corpus(&c, QKV_CORPUS_STREAM, text);
    assert_true(through(tok, &c, NULL, &(qkv_tokenise_spec){.sides = 1, .join = true}));
    assert_false(through(tok, &c, NULL, &(qkv_tokenise_spec){.sides = 1, .join = true}));
    test_free(text);
    qkv_corpus_free(&c);
    qkv_tokenizer_free(tok);
}

/* A flipped bit anywhere, a file cut short or grown: made again, with the right ids. */
static void damage(void **state) {
    (void)state;
    qkv_tokenizer *tok = tokenizer_of(alphabet);
    const qkv_tokenise_spec spec = {.sides = 1};
    qkv_corpus c;
    read_corpus(&c, QKV_CORPUS_LABELLED, "x\tone two\ny\tthree\n");
    unlink(path);
    assert_true(through(tok, &c, NULL, &spec));
    qkv_file f;
    assert_ok(qkv_file_open(path, 1 << 20, &f));
    const size_t n = f.size;
    char *good = test_malloc(n + 8);
    memcpy(good, f.data, n);
    qkv_file_close(&f);
    for (size_t i = 0; i < n; i += 3) {
        good[i] ^= 4;
        write_file(path, good, n);
        good[i] ^= 4;
        assert_true(through(tok, &c, NULL, &spec));
    }
    for (size_t i = 0; i < n; i += 17) {
        write_file(path, good, i);
        assert_true(through(tok, &c, NULL, &spec));
    }
    write_file(path, good, n + 8);
    assert_true(through(tok, &c, NULL, &spec));
    test_free(good);
    qkv_corpus_free(&c);
    qkv_tokenizer_free(tok);
}

static void failures(void **state) {
    (void)state;
    qkv_tokenizer *tok = tokenizer_of(alphabet);
    const qkv_tokenise_spec spec = {.sides = 1};
    qkv_corpus c;
    qkv_encoded e;
    qkv_tokenise_counts counts;
    read_corpus(&c, QKV_CORPUS_LABELLED, "x\tone two\ny\tthree\n");
    assert_fails(qkv_tokenise_cached(tok, &c, NULL, &spec, "nowhere/x.ids", &e, &counts),
                 QKV_FAILED, "nowhere");
    const uint64_t live = qkv_mem_count().live;
    for (uint64_t n = 1;; n++) {
        unlink(path);
        qkv_mem_fail(n, false);
        const qkv_status status = qkv_tokenise_cached(tok, &c, NULL, &spec, path, &e, &counts);
        qkv_mem_fail(0, false);
        if (status == QKV_OK) qkv_encoded_free(&e);
        if (status == QKV_OK && n > 30) break;
    }
    /* What a tokenizer keeps for its next text may stay; nothing grows with the failures. */
    assert_in_range(qkv_mem_count().live, live, live + 40);
    qkv_corpus_free(&c);
    qkv_tokenizer_free(tok);
}

static int clean(void **state) {
    (void)state;
    unlink(path);
    unlink(rows);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_when_needed),
        cmocka_unit_test(all_shapes),
        cmocka_unit_test(damage),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, clean);
}
