/* The nearest of many texts against all of them compared here; what an index keeps, and when it is
 * made again; vectors of words against the rows of their tokens. */
#include "folders.h"
#include "base/file.h"
#include "base/mem.h"
#include "use/predict.h"

#include <math.h>
#include <stdlib.h>

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[4][128];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

/* ---- texts ---- */

enum { LINES = 130, BLANK = 7 };

static char line[LINES][48];

static int make_models(void **state) {
    (void)state;
    static const char *const words[] = {"one", "two", "three", "four", "five", "six", "seven"};
    qkv_buf out = {0};
    make_temporary(folder);
    make_model_folder(folder, "classify", NULL);
    for (int i = 0; i < LINES; i++) {
        if (i % BLANK)
            snprintf(line[i], sizeof line[i], "%s %s %s", words[i % 7], words[i / 7 % 7],
                     words[i * 3 % 7]);
        qkv_buf_printf(&out, "%s\n", i % BLANK ? line[i] : " ");
    }
    assert_ok(qkv_file_write(in_folder("in.txt"), out.data, out.len));
    qkv_buf_free(&out);
    return 0;
}

static int remove_models(void **state) {
    (void)state;
    remove_temporary(folder);
    return 0;
}

static qkv_text text_of(const char *s) {
    return (qkv_text){s, strlen(s)};
}

static qkv_text_model *open_model(const char *name) {
    qkv_text_model *m;
    assert_ok(qkv_text_model_open(in_folder(name), &m));
    return m;
}

static double cosine_of(const float *a, const float *b, size_t n) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++)
        ab += (double)a[i] * (double)b[i], aa += (double)a[i] * (double)a[i],
            bb += (double)b[i] * (double)b[i];
    return ab / sqrt(aa * bb);
}

/* ---- the nearest ---- */

typedef struct ranked {
    double cosine;
    int at;
} ranked;

static int nearest_first(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (fabs(x->cosine - y->cosine) > 1e-6) return x->cosine > y->cosine ? -1 : 1;
    return x->at - y->at;
}

static void expect_nearest(const qkv_text_model *m, const char *query, size_t top,
                           const qkv_neighbour *found) {
    const size_t width = qkv_embed_width(m);
    float *v = malloc((LINES + 1) * width * sizeof *v);
    ranked all[LINES];
    int n = 0;
    const qkv_text asked = text_of(query);
    assert_ok(qkv_embed(m, &asked, 1, v));
    for (int i = 0; i < LINES; i++) {
        const qkv_text t = text_of(line[i]);
        if (!t.len) continue;
        assert_ok(qkv_embed(m, &t, 1, v + width));
        all[n++] = (ranked){cosine_of(v, v + width, width), i};
    }
    qsort(all, (size_t)n, sizeof *all, nearest_first);
    for (size_t k = 0; k < top; k++) {
        if ((int)k >= n) {
            assert_null(found[k].text.data);
            continue;
        }
        if (fabs((double)found[k].cosine - all[k].cosine) > 1e-5)
            fail_msg("%s, place %zu: %f, wanted %f", query, k, (double)found[k].cosine,
                     all[k].cosine);
        assert_true(k == 0 || found[k].cosine <= found[k - 1].cosine);
        /* the same place, or one as near */
        const int at = (int)found[k].line - 1;
        assert_int_equal(found[k].text.len, strlen(line[at]));
        assert_memory_equal(found[k].text.data, line[at], found[k].text.len);
        if (k && found[k].cosine == found[k - 1].cosine)
            assert_true(found[k].line > found[k - 1].line);
    }
    free(v);
}

static void finds_what_comparing_all_finds(void **state) {
    (void)state;
    enum { TOP = 200, QUERIES = 70 };
    static qkv_neighbour found[QUERIES * TOP], again[QUERIES * TOP];
    static char asked[QUERIES][32];
    qkv_text queries[QUERIES];
    qkv_text_model *m = open_model("classify");
    qkv_neighbours *s;
    for (int i = 0; i < QUERIES; i++) { /* more than are compared at once */
        snprintf(asked[i], sizeof asked[i], i % 2 ? "seven two" : "four and %d", i);
        queries[i] = text_of(asked[i]);
    }
    assert_ok(qkv_neighbours_open(m, &(qkv_neighbours_request){.in = in_folder("in.txt")}, &s));
    assert_int_equal(qkv_neighbours_count(s), LINES - (LINES + BLANK - 1) / BLANK);
    assert_false(qkv_neighbours_kept(s));
    assert_ok(qkv_neighbours_find(s, queries, QUERIES, TOP, found));
    for (int i = 0; i < QUERIES; i += 23) expect_nearest(m, asked[i], TOP, found + i * TOP);
    qkv_threads_set(1);
    for (int i = 0; i < QUERIES; i += 9) { /* alone, fewer, with one thread: the same bits */
        assert_ok(qkv_neighbours_find(s, &queries[i], 1, 5, again));
        for (int k = 0; k < 5; k++) {
            assert_true(again[k].cosine == found[i * TOP + k].cosine);
            assert_int_equal(again[k].line, found[i * TOP + k].line);
        }
    }
    qkv_threads_set(0);
    qkv_neighbours_close(s);
    qkv_text_model_close(m);
}

static void finds_words(void **state) {
    (void)state;
    qkv_text_model *m = open_model("classify");
    qkv_neighbours *s;
    qkv_neighbour found[3];
    const qkv_text query = text_of("three");
    assert_ok(qkv_neighbours_open(
        m, &(qkv_neighbours_request){.in = in_folder("in.txt"), .words = true}, &s));
    assert_int_equal(qkv_neighbours_count(s), 7);
    assert_ok(qkv_neighbours_find(s, &query, 1, 3, found));
    assert_memory_equal(found[0].text.data, "three", 5);
    assert_true(found[0].cosine > 0.9999f && found[0].text.len == 5);
    assert_int_equal(found[0].line, 3); /* line 2 is "two one four" */
    qkv_neighbours_close(s);
    qkv_text_model_close(m);
}

/* ---- an index ---- */

static bool is_kept(const char *model, const char *in, qkv_neighbour *first) {
    qkv_text_model *m = open_model(model);
    qkv_neighbours *s;
    const qkv_text query = text_of("two six one");
    const qkv_neighbours_request r = {.in = in_folder(in), .index = in_folder("index")};
    assert_ok(qkv_neighbours_open(m, &r, &s));
    assert_ok(qkv_neighbours_find(s, &query, 1, 1, first));
    const bool kept = qkv_neighbours_kept(s);
    first->text = (qkv_text){0};
    qkv_neighbours_close(s);
    qkv_text_model_close(m);
    return kept;
}

static void an_index_is_of_its_model_and_texts(void **state) {
    (void)state;
    qkv_neighbour first, again;
    qkv_file file;
    assert_false(is_kept("classify", "in.txt", &first));
    assert_true(is_kept("classify", "in.txt", &again));
    assert_true(first.cosine == again.cosine && first.line == again.line);
    assert_ok(qkv_file_write(in_folder("other.txt"), "two six one\nfive\n", 17));
    assert_false(is_kept("classify", "other.txt", &first));
    assert_int_equal(first.line, 1);
    assert_false(is_kept("classify", "in.txt", &first));
    make_model_folder(in_folder("b"), "classify", (const char *const[]){"seed=2", NULL});
    assert_false(is_kept("b/classify", "in.txt", &first));
    assert_true(is_kept("b/classify", "in.txt", &first));
    /* cut short: made again */
    assert_ok(qkv_file_open(in_folder("index"), SIZE_MAX, &file));
    assert_ok(qkv_file_write(in_folder("half"), file.data, file.size / 2));
    qkv_file_close(&file);
    assert_int_equal(rename(in_folder("half"), in_folder("index")), 0);
    assert_false(is_kept("b/classify", "in.txt", &again));
    assert_true(first.cosine == again.cosine);
}

static bool stop_at_once(void *user, size_t done, size_t all) {
    (void)user, (void)done, (void)all;
    return false;
}

static void what_is_no_index_stays(void **state) {
    (void)state;
    qkv_text_model *m = open_model("classify");
    qkv_neighbours *s;
    qkv_neighbours_request r = {.in = in_folder("in.txt"), .index = in_folder("in.txt")};
    assert_fails(qkv_neighbours_open(m, &r, &s), QKV_BAD_FILE, "is no index of texts");
    assert_null(s);
    r.index = in_folder("none/index");
    assert_fails(qkv_neighbours_open(m, &r, &s), QKV_FAILED, "none");
    r.index = in_folder("stopped");
    r.progress = stop_at_once;
    assert_fails(qkv_neighbours_open(m, &r, &s), QKV_INTERRUPTED, "stopped before");
    assert_false(qkv_file_exists(in_folder("stopped")));
    r = (qkv_neighbours_request){.in = in_folder("blank.txt")};
    assert_ok(qkv_file_write(r.in, " \n\n", 3));
    assert_fails(qkv_neighbours_open(m, &r, &s), QKV_BAD_FILE, "there is no text in it");
    r.in = NULL;
    assert_fails(qkv_neighbours_open(m, &r, &s), QKV_USAGE, "--in");
    qkv_text_model_close(m);
}

/* ---- words ---- */

/* The mean of the rows of tokens k that lie in bytes begin … end. */
static void mean_rows(const qkv_encoding *e, const qkv_tensor *y, uint32_t begin, uint32_t end,
                      float *out) {
    float n = 0;
    memset(out, 0, (size_t)y->cols * sizeof *out);
    for (size_t k = 0; k < e->n; k++) {
        if (e->begin[k] == e->end[k] || e->end[k] <= begin || e->begin[k] >= end) continue;
        for (int64_t c = 0; c < y->cols; c++) out[c] += (float)y->data[(int64_t)k * y->ld + c];
        n++;
    }
    assert_true(n > 0);
    for (int64_t c = 0; c < y->cols; c++) out[c] /= n;
}

static void words_have_the_mean_of_their_rows(void **state) {
    (void)state;
    qkv_text_model *m = open_model("classify");
    const size_t width = qkv_embed_width(m);
    const qkv_text texts[] = {text_of("one"), text_of(""), text_of("Seven, twelve and threes")};
    static const char *const wanted[] = {"one", "Seven", ",", "twelve", "and", "threes"};
    qkv_word_vectors v;
    float mean[64];
    assert_true(width <= 64);
    assert_ok(qkv_embed_words(m, texts, 3, false, &v));
    assert_int_equal(v.first[1], 1);
    assert_int_equal(v.first[2], 1);
    assert_int_equal(v.first[3], 6);
    for (size_t i = 0; i < 6; i++) {
        const char *text = texts[i ? 2 : 0].data;
        assert_int_equal(v.words[i].end - v.words[i].begin, strlen(wanted[i]));
        assert_memory_equal(text + v.words[i].begin, wanted[i], strlen(wanted[i]));
    }
    qkv_encoding e = {0};
    qkv_tape *t;
    assert_ok(qkv_texts_encode(m, &texts[2], 1, true, &e));
    assert_ok(qkv_text_model_take_tape(m, &t));
    qkv_tape_begin(t, QKV_EVAL, 0, 0);
    const int32_t start[] = {0, (int32_t)e.n};
    const qkv_tokens tokens = {
        .layout = {.n = 1, .start = start}, .ids = e.ids, .rows = (int64_t)e.n};
    const qkv_tensor *y = qkv_model_rows(t, m->model, &tokens);
    for (size_t i = 1; i < 6; i++) {
        mean_rows(&e, y, v.words[i].begin, v.words[i].end, mean);
        for (size_t c = 0; c < width; c++)
            assert_true(fabsf(mean[c] - v.vectors[i * width + c]) < 1e-5f);
    }
    qkv_text_model_give_tape(m, t);
    qkv_encoding_free(&e);
    qkv_word_vectors_free(&v);
    assert_ok(qkv_embed_words(m, &texts[2], 1, true, &v));
    assert_int_equal(v.first[1], 4); /* "Seven," is one */
    qkv_word_vectors_free(&v);
    assert_ok(qkv_text_model_set_max_len(m, 2)); /* the rest is not read */
    assert_ok(qkv_embed_words(m, &texts[2], 1, false, &v));
    assert_true(v.first[1] > 0 && v.first[1] <= 2);
    qkv_word_vectors_free(&v);
    qkv_text_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_comparing_all_finds),
        cmocka_unit_test(finds_words),
        cmocka_unit_test(an_index_is_of_its_model_and_texts),
        cmocka_unit_test(what_is_no_index_stays),
        cmocka_unit_test(words_have_the_mean_of_their_rows),
    };
    return cmocka_run_group_tests(tests, make_models, remove_models);
}
