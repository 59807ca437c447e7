/* What a model looks at, and vectors of texts: weights are those of the softmax, whatever the
 * pattern and position; vectors do not depend on what stands beside them. */
#include "folders.h"

#include "use/textmodel.h"
#include "nn/attention_record.h"
#include "tiny.h"

#include <math.h>
#include <stdlib.h>

static char folder[64];

static int make(void **state) {
    (void)state;
    make_temporary(folder);
    qkv_threads_set(1);
    make_model_folder(folder, "classify", NULL);
    make_model_folder(folder, "translate", NULL);
    make_model_folder(folder, "lm", (const char *const[]){"position=rope", NULL});
    return 0;
}

static int clear(void **state) {
    (void)state;
    remove_temporary(folder);
    return 0;
}

static qkv_text_model *open_model(const char *task) {
    char path[128];
    qkv_text_model *m;
    snprintf(path, sizeof path, "%s/%s", folder, task);
    assert_ok(qkv_text_model_open(path, &m));
    return m;
}

/* ---- weights ---- */

/* Records a pass over two sequences and checks what every softmax has:
 * sums of 1, and zeros where nothing may be seen. */
static void check_record(const char *assignments, bool causal, int window) {
    static const int32_t lengths[] = {9, 5};
    static tiny_batch batch;
    qkv_model *m = tiny_model(assignments, false, 3);
    tiny_batch_make(&batch, lengths, 2, 11, 2, 1);
    qkv_tape tape;
    qkv_attention_record r;
    assert_ok(qkv_tape_init(&tape));
    qkv_tape_begin(&tape, QKV_EVAL, 0, 0);
    qkv_attention_record_start(&r, &tape);
    tiny_hidden(&tape, m, &batch, &batch);
    assert_ok(qkv_tape_status(&tape));
    assert_ok(r.status);
    assert_true(r.list.n >= 2);
    for (size_t i = 0; i < r.list.n; i++) {
        const qkv_recorded *at = &r.list.at[i];
        assert_int_equal(at->n_q, lengths[at->sequence]);
        for (int32_t q = 0; q < at->n_q; q++)
            for (int32_t h = 0; h < at->heads; h++) {
                double sum = 0;
                for (int32_t k = 0; k < at->n_k; k++) {
                    const double w = (double)at->weights[(q * at->heads + h) * at->n_k + k];
                    assert_true(w >= 0 && w <= 1 + 1e-6);
                    if ((causal && k > q) || (window && abs(q - k) > window)) assert_true(w == 0);
                    sum += w;
                }
                assert_true(fabs(sum - 1) < 1e-5);
            }
    }
    qkv_attention_record_free(&r);
    qkv_tape_free(&tape);
    qkv_model_free(m);
}

static void weights_are_those_of_a_softmax(void **state) {
    (void)state;
    check_record("task=classify", false, 0);
    check_record("task=lm position=rope heads=4 kv_heads=2", true, 0);
    check_record("task=lm position=alibi", true, 0);
    check_record("task=classify position=relative", false, 0);
    check_record("task=classify position=t5", false, 0);
    check_record("task=classify attention=local window=2", false, 2);
    check_record("task=classify attention=linformer linformer_rank=3", false, 0);
}

/* Recorded weights times the values are what the kernel gave: one layer without the output map. */
static void weights_make_the_output(void **state) {
    (void)state;
    enum { N = 7, D = 6 };
    static const int32_t start[] = {0, N};
    real q[N * D], k[N * D], v[N * D];
    fill(q, N * D, 1);
    fill(k, N * D, 2);
    fill(v, N * D, 3);
    qkv_tape t;
    qkv_attention_record r;
    assert_ok(qkv_tape_init(&t));
    qkv_tape_begin(&t, QKV_EVAL, 0, 0);
    qkv_attention_record_start(&r, &t);
    const qkv_attention_spec spec = {.heads = 2, .q_layout = {.n = 1, .start = start}};
    qkv_tensor *y = qkv_attend(&t, qkv_tensor_wrap(&t, q, N, D), qkv_tensor_wrap(&t, k, N, D),
                               qkv_tensor_wrap(&t, v, N, D), &spec);
    assert_ok(qkv_tape_status(&t));
    assert_int_equal(r.list.n, 1);
    real made[N * D] = {0};
    for (int i = 0; i < N; i++)
        for (int c = 0; c < D; c++)
            for (int j = 0; j < N; j++)
                made[i * D + c] += r.list.at[0].weights[(i * 2 + c / 3) * N + j] * v[j * D + c];
    assert_close("output", made, y->data, N * D, 1e-6);
    qkv_attention_record_free(&r);
    qkv_tape_free(&t);
}

/* Heads as they are found: even, of a causal model even, on the first mark, on the token before, and
 * one that reads the text. The last says most; the others next to nothing. */
static void what_heads_say(void **state) {
    (void)state;
    enum { N = 200, EVEN = 0, CAUSAL, MARK, BEFORE, READS, HEADS };
    float *w = calloc((size_t)HEADS * N * N, sizeof *w);
    static const char *names[N];
    assert_non_null(w);
    for (int q = 0; q < N; q++) {
        float *row[HEADS];
        for (int h = 0; h < HEADS; h++) row[h] = w + ((size_t)h * N + (size_t)q) * N;
        names[q] = q % 2 ? "odd" : "even";
        for (int k = 0; k < N; k++)
            row[EVEN][k] = 1.f / N, row[CAUSAL][k] = k <= q ? 1.f / (float)(q + 1) : 0;
        row[MARK][0] = 1;
        row[BEFORE][q ? q - 1 : 0] = 1;
        row[READS][q * 37 % N] = 0.5f, row[READS][(q * 91 + 5) % N] += 0.5f;
    }
    qkv_attention_part part = {.name = "encoder",
                               .title = "encoder",
                               .self = true,
                               .layers = 1,
                               .heads = HEADS,
                               .queries = N,
                               .keys = N,
                               .query_names = names,
                               .key_names = names,
                               .weights = w};
    for (int h = 0; h < HEADS; h++) {
        const double said = qkv_attention_head(&part, 0, h).says;
        if (h == READS ? said < 0.7 || said > 1 : said < 0 || said > 0.05)
            fail_msg("head %d says %g", h, said);
    }
    char *shown;
    const qkv_attention_parts all = {.title = "t", .subtitle = "s", .at = &part, .n = 1};
    assert_ok(qkv_attention_show(&all, &(qkv_attention_style){.how = QKV_SHOW_HTML}, &shown));
    assert_non_null(strstr(shown, "\"first\":[0,4]"));
    qkv_text_free(shown);
    assert_ok(qkv_attention_show(&all, &(qkv_attention_style){.how = QKV_SHOW_SVG}, &shown));
    assert_non_null(strstr(shown, "encoder, layer 1, head 5, which says most"));
    assert_true(strlen(shown) < 1000000); /* a rectangle for each weight was 25 megabytes */
    qkv_text_free(shown);
    free(w);
}

static void parts_have_names_and_shapes(void **state) {
    (void)state;
    qkv_text_model *m = open_model("translate");
    const qkv_text text = {"two four and five", 17}, target = {"2 4 5", 5};
    qkv_attention_parts a;
    assert_ok(qkv_attention_of(m, &text, &target, &a));
    assert_int_equal(a.n, 3);
    static const char *const names[] = {"encoder", "decoder", "cross"};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(a.at[i].name, names[i]);
        assert_int_equal(a.at[i].layers, 2);
        assert_int_equal(a.at[i].heads, 2);
        assert_int_equal(a.at[i].self, i < 2);
        for (int32_t h = 0; h < 2; h++) {
            const qkv_head_statistics s = qkv_attention_head(&a.at[i], 1, h);
            assert_true(s.entropy >= 0 && s.entropy <= log2(a.at[i].keys) + 1e-6);
            assert_true(s.peak > 0 && s.peak <= 1 + 1e-6);
            assert_true(i < 2 ? s.distance >= 0 : isnan(s.distance));
        }
    }
    /* Target tokens as they are read begin with the mark,
     * as they are written end with the other. */
    assert_int_equal(a.at[1].queries, a.at[2].queries);
    assert_string_equal(a.at[1].query_names[1], a.at[2].query_names[0]);
    assert_int_equal(a.at[2].keys, a.at[0].keys);
    static const qkv_show hows[] = {QKV_SHOW_TABLE, QKV_SHOW_JSON, QKV_SHOW_SVG, QKV_SHOW_HTML};
    for (size_t i = 0; i < 4; i++) {
        char *shown;
        assert_ok(
            qkv_attention_show(&a, &(qkv_attention_style){.how = hows[i], .colour = true}, &shown));
        assert_true(strlen(shown) > 500);
        /* One page, no outside request: the only addresses are names of XML's. */
        for (const char *at = shown; hows[i] == QKV_SHOW_HTML && (at = strstr(at, "http")); at++)
            assert_true(!strncmp(at, "http://www.w3.org/", 18));
        qkv_text_free(shown);
    }
    qkv_attention_free(&a);
    qkv_text_model_close(m);
    m = open_model("classify");
    assert_fails(qkv_attention_of(m, &text, &target, &a), QKV_USAGE, "target");
    assert_ok(qkv_attention_of(m, &text, NULL, &a));
    assert_int_equal(a.n, 1);
    qkv_attention_free(&a);
    qkv_text_model_close(m);
}

/* A token cannot close the page's script. */
static void hostile_text_stays_text(void **state) {
    (void)state;
    qkv_text_model *m = open_model("classify");
    const qkv_text text = {"</script><b>two", 15};
    qkv_attention_parts a;
    char *page;
    assert_ok(qkv_attention_of(m, &text, NULL, &a));
    assert_ok(qkv_attention_show(&a, &(qkv_attention_style){.how = QKV_SHOW_HTML}, &page));
    const char *end = strstr(page, "</script>");
    assert_non_null(end);
    assert_null(strstr(end + 1, "</script>"));
    qkv_text_free(page);
    qkv_attention_free(&a);
    qkv_text_model_close(m);
}

/* ---- vectors ---- */

static void vectors_do_not_depend_on_the_batch(void **state) {
    (void)state;
    static const char *const tasks[] = {"classify", "translate", "lm"};
    static const char *const lines[] = {"one two and three", "", "seven", "one two and three",
                                        "six five and four six five and four"};
    enum { N = 5 };
    for (size_t t = 0; t < 3; t++) {
        qkv_text_model *m = open_model(tasks[t]);
        const size_t width = qkv_embed_width(m);
        assert_int_equal(width, 16);
        qkv_text texts[N];
        float together[N * 16], alone[16];
        for (int i = 0; i < N; i++) texts[i] = (qkv_text){lines[i], strlen(lines[i])};
        assert_ok(qkv_embed(m, texts, N, together));
        for (int i = 0; i < N; i++) {
            assert_ok(qkv_embed(m, &texts[i], 1, alone));
            assert_memory_equal(alone, together + (size_t)i * width, width * sizeof *alone);
        }
        assert_memory_equal(together, together + 3 * width, width * sizeof *alone);
        assert_memory_not_equal(together, together + 4 * width, width * sizeof *alone);
        assert_ok(qkv_embed(m, texts, 0, NULL));
        qkv_text_model_close(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_a_softmax),
        cmocka_unit_test(weights_make_the_output),
        cmocka_unit_test(what_heads_say),
        cmocka_unit_test(parts_have_names_and_shapes),
        cmocka_unit_test(hostile_text_stays_text),
        cmocka_unit_test(vectors_do_not_depend_on_the_batch),
    };
    return cmocka_run_group_tests(tests, make, clear);
}
