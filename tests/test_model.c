/* Models: the properties of attention, worked values of positions, refusals, and the invariants
 * that all architectures share: cached = full, packed = alone, any threads = the same bits. */
#include "task/task.h"
#include "tiny.h"

#include <math.h>

#include "base/mem.h"

static qkv_tape tape;

static int set_up(void **state) {
    (void)state;
    return qkv_tape_init(&tape) != QKV_OK;
}

static int tear_down(void **state) {
    (void)state;
    qkv_tape_free(&tape);
    return 0;
}

/* Copies a tensor out of the tape. */
static real *keep(const qkv_tensor *x) {
    assert_ok(qkv_tape_status(&tape));
    real *out = qkv_alloc((size_t)(x->rows * x->cols) * sizeof *out);
    for (int64_t r = 0; r < x->rows; r++)
        memcpy(out + r * x->cols, x->data + r * x->ld, (size_t)x->cols * sizeof *out);
    return out;
}

static const int32_t lengths[] = {9, 1, 5, 7};
#define N_LENGTHS 4

/* Hidden rows of a batch, in EVAL mode. */
static real *hidden(qkv_model *m, const tiny_batch *src, const tiny_batch *tgt) {
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    return keep(tiny_hidden(&tape, m, src, tgt));
}

/* ---- attention ---- */

static void test_permutation(void **state) {
    (void)state;
    qkv_model *m = tiny_model("task=embed position=none", false, 1);
    tiny_batch a, b;
    const int32_t n = 6, order[] = {3, 0, 5, 1, 4, 2};
    tiny_batch_make(&a, &n, 1, 11, 3, 1);
    tiny_batch_make(&b, &n, 1, 11, 3, 1);
    for (int i = 0; i < n; i++) b.ids[i] = a.ids[order[i]];
    real *x = hidden(m, &a, NULL), *y = hidden(m, &b, NULL);
    for (int i = 0; i < n; i++)
        assert_close("a permuted input permutes the output", y + i * 16, x + order[i] * 16, 16,
                     2e-6);
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    real *p = keep(qkv_model_pooled(&tape, m, &a.tokens));
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    real *q = keep(qkv_model_pooled(&tape, m, &b.tokens));
    assert_close("mean pooling does not see the order", q, p, 16, 2e-6);
    qkv_free(x), qkv_free(y), qkv_free(p), qkv_free(q);
    qkv_model_free(m);
}

/* softmax(X Xᵀ) X on the bare op: nearly the identity for long orthogonal rows. */
static void test_basic_attention(void **state) {
    (void)state;
    const int32_t start[] = {0, 4};
    real x[16] = {0};
    for (int i = 0; i < 4; i++) x[5 * i] = 20;
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    qkv_tensor *in = qkv_tensor_wrap(&tape, x, 4, 4);
    qkv_attention_spec spec = {.heads = 1, .scale = 1, .q_layout = {.n = 1, .start = start}};
    qkv_tensor *y = qkv_attend(&tape, in, in, in, &spec);
    assert_ok(qkv_tape_status(&tape));
    assert_close("orthogonal rows attend to themselves", y->data, x, 16, 1e-6);
    /* values of 1 come out as the sum of the weights */
    real ones[4] = {1, 1, 1, 1}, small[8];
    fill(small, 8, 5);
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    qkv_tensor *q = qkv_tensor_wrap(&tape, small, 4, 2), *v = qkv_tensor_wrap(&tape, ones, 4, 1);
    y = qkv_attend(&tape, q, q, v, &spec);
    assert_ok(qkv_tape_status(&tape));
    assert_close("weights sum to 1", y->data, ones, 4, 1e-6);
    /* softmax(3, 1, −3): one query of 1 against keys 3, 1, −3, values 1, 0, 0 and so on */
    const int32_t one[] = {0, 1}, three[] = {0, 3};
    real query[] = {1}, keys[] = {3, 1, -3}, values[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const real by_hand[] = {(real)0.878880, (real)0.118944, (real)0.002178};
    spec = (qkv_attention_spec){.heads = 1,
                                .scale = 1,
                                .q_layout = {.n = 1, .start = one},
                                .k_layout = {.n = 1, .start = three}};
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    y = qkv_attend(&tape, qkv_tensor_wrap(&tape, query, 1, 1), qkv_tensor_wrap(&tape, keys, 3, 1),
                   qkv_tensor_wrap(&tape, values, 3, 3), &spec);
    assert_ok(qkv_tape_status(&tape));
    assert_close("softmax(3, 1, -3)", y->data, by_hand, 3, 2e-6);
}

/* E[(aᵀb)²] = D for independent standard normal entries: why scores are scaled. */
static void test_score_variance(void **state) {
    (void)state;
    const int d = 64, trials = 4000;
    double sum = 0;
    for (int k = 0; k < trials; k++) {
        double dot = 0;
        for (int i = 0; i < d; i++)
            dot += qkv_rng_normal((qkv_rng){1, 2}, (uint64_t)(k * d + i)) *
                   qkv_rng_normal((qkv_rng){1, 3}, (uint64_t)(k * d + i));
        sum += dot * dot;
    }
    assert_true(fabs(sum / trials / d - 1) < 0.1);
}

/* ---- positions: worked values ---- */

static void test_sinusoidal_values(void **state) {
    (void)state;
    static const struct {
        double base;
        real rows[3][4];
    } cases[] = {{10000,
                  {{0, 1, 0, 1},
                   {0.841471, 0.540302, 0.01, 0.99995},
                   {0.909297, -0.416147, 0.019999, 0.9998}}},
                 {100,
                  {{0, 1, 0, 1},
                   {0.841471, 0.540302, 0.099833, 0.995004},
                   {0.909297, -0.416147, 0.198669, 0.980067}}}};
    for (int k = 0; k < 2; k++) {
        real out[12];
        qkv_position_spec spec = {.d_model = 4, .base = cases[k].base};
        qkv_position_sinusoidal.constant_fill(&spec, 3, out);
        assert_close("sinusoidal", out, cases[k].rows[0], 12, 1e-6);
    }
}

static void test_rope(void **state) {
    (void)state;
    real table[2 * 40 * 2];
    qkv_position_spec spec = {.d_head = 4, .turned = 4, .base = 10000};
    qkv_position_rope.constant_fill(&spec, 40, table);
    const real angles[] = {1, (real)0.01};
    for (int i = 0; i < 2; i++) {
        assert_true(table[i] == 1 && table[80 + i] == 0); /* position 0 is the identity */
        assert_true(fabs((double)table[2 + i] - cos((double)angles[i])) < 1e-7);
        assert_true(fabs((double)table[82 + i] - sin((double)angles[i])) < 1e-7);
    }
    /* q_m·k_n depends on m − n only, and norms stay. */
    for (int half = 0; half < 2; half++) {
        double dots[3];
        for (int k = 0; k < 3; k++) {
            const int32_t pos[] = {(int32_t)(5 + 13 * k), (int32_t)(2 + 13 * k)};
            real rows[8] = {1, 2, -1, 3, 2, -1, (real)0.5, 1};
            qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
            qkv_rope_spec turn = {.heads = 1,
                                  .pos = pos,
                                  .cos = table,
                                  .sin = table + 80,
                                  .positions = 40,
                                  .half_split = half};
            qkv_tensor *y = qkv_rope(&tape, qkv_tensor_wrap(&tape, rows, 2, 4), &turn);
            assert_ok(qkv_tape_status(&tape));
            double norm = 0;
            dots[k] = 0;
            for (int i = 0; i < 4; i++) {
                dots[k] += (double)y->data[i] * (double)y->data[4 + i];
                norm += (double)y->data[i] * (double)y->data[i];
            }
            assert_true(fabs(norm - 15) < 1e-5);
        }
        assert_true(fabs(dots[0] - dots[1]) < 1e-5 && fabs(dots[0] - dots[2]) < 1e-5);
    }
}

/* Without a longest length a model runs beyond max_len; learned positions refuse it with a way
 * out. */
static void test_beyond_max_len(void **state) {
    (void)state;
    static const char *const free_length[] = {"sinusoidal", "rope",     "alibi",
                                              "t5",         "relative", "none"};
    const int32_t n = 40;
    tiny_batch b;
    tiny_batch_make(&b, &n, 1, 11, 3, 1);
    for (size_t i = 0; i < sizeof free_length / sizeof *free_length; i++) {
        char s[100];
        snprintf(s, sizeof s, "task=lm max_len=8 position=%s", free_length[i]);
        qkv_model *m = tiny_model(s, false, 1);
        qkv_free(hidden(m, NULL, &b));
        qkv_model_free(m);
    }
    qkv_model *m = tiny_model("task=lm max_len=8 position=learned", false, 1);
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    tiny_hidden(&tape, m, NULL, &b);
    assert_fails(qkv_tape_status(&tape), QKV_USAGE, "position=rope");
    qkv_model_free(m);
}

/* ---- equalities ---- */

static void assert_same_hidden(const char *what, const char *one, const char *other) {
    tiny_batch b;
    tiny_batch_make(&b, lengths, N_LENGTHS, 11, 3, 1);
    qkv_model *m = tiny_model(one, false, 3), *w = tiny_model(other, false, 3);
    real *x = hidden(m, &b, &b), *y = hidden(w, &b, &b);
    assert_close(what, x, y, b.rows * 16, 2e-6);
    qkv_free(x), qkv_free(y);
    qkv_model_free(m), qkv_model_free(w);
}

static void test_wide_patterns_are_full(void **state) {
    (void)state;
    assert_same_hidden("a window over all is full attention",
                       "task=embed attention=local window=20", "task=embed attention=full");
    assert_same_hidden("causal too", "task=lm attention=local window=20", "task=lm attention=full");
    assert_same_hidden("one block is all", "task=embed attention=random",
                       "task=embed attention=full");
    assert_same_hidden("global positions see all", "task=embed attention=global global_tokens=9",
                       "task=embed attention=full");
    assert_same_hidden("with a window too", "task=lm attention=bigbird global_tokens=9",
                       "task=lm attention=full");
}

static void test_linformer_identity_is_full(void **state) {
    (void)state;
    tiny_batch b;
    tiny_batch_make(&b, lengths, N_LENGTHS, 11, 3, 1);
    for (int per_head = 0; per_head < 2; per_head++) {
        char s[120];
        snprintf(s, sizeof s,
                 "task=embed attention=linformer linformer_rank=12 linformer_per_head=%s",
                 per_head ? "true" : "false");
        qkv_model *m = tiny_model(s, false, 3), *w = tiny_model("task=embed", false, 3);
        qkv_params *p = qkv_model_params(m);
        for (size_t i = 0; i < p->n; i++) {
            if (!strstr(p->list[i]->name, "along_")) continue;
            qkv_tensor *e = &p->list[i]->tensor;
            memset(e->data, 0, (size_t)(e->rows * e->cols) * sizeof *e->data);
            for (int64_t r = 0; r < e->rows; r++) e->data[r * e->cols + r % 12] = 1;
        }
        real *x = hidden(m, &b, NULL), *y = hidden(w, &b, NULL);
        assert_close("identity projections are full attention", x, y, b.rows * 16, 2e-6);
        qkv_free(x), qkv_free(y);
        qkv_model_free(m), qkv_model_free(w);
    }
}

/* Grouped heads are heads whose keys and values repeat. */
static void test_grouped_heads(void **state) {
    (void)state;
    tiny_batch b;
    tiny_batch_make(&b, lengths, N_LENGTHS, 11, 3, 1);
    qkv_model *m = tiny_model("task=lm heads=4 kv_heads=2 layers=1", false, 3);
    qkv_model *w = tiny_model("task=lm heads=4 kv_heads=4 layers=1", false, 3);
    const char *const parts[] = {"weight", "bias"};
    for (int k = 0; k < 2; k++) {
        char name[80];
        snprintf(name, sizeof name, "decoder.layers.0.attention.qkv.%s", parts[k]);
        qkv_tensor *from = &qkv_param_find(qkv_model_params(m), name)->tensor;
        qkv_tensor *to = &qkv_param_find(qkv_model_params(w), name)->tensor;
        int64_t cols = k ? 1 : 16;
        for (int64_t r = 0; r < 48;
             r++) { /* 4 query heads, then 4 key heads, then 4 value heads, of 4 rows */
            int64_t head = r / 4, source = head < 4   ? head
                                           : head < 8 ? 4 + (head - 4) / 2
                                                      : 6 + (head - 8) / 2;
            memcpy(to->data + r * cols, from->data + (4 * source + r % 4) * cols,
                   (size_t)cols * sizeof(real));
        }
    }
    real *x = hidden(m, NULL, &b), *y = hidden(w, NULL, &b);
    assert_close("grouped heads", x, y, b.rows * 16, 2e-6);
    qkv_free(x), qkv_free(y);
    qkv_model_free(m), qkv_model_free(w);
}

/* ---- invariants of every architecture ---- */

static const char *const families[] = {"task=classify",
                                       "task=mlm norm=pre",
                                       "task=lm",
                                       "task=translate",
                                       "task=lm arch=lstm",
                                       "task=classify arch=gru",
                                       "task=translate arch=lstm",
                                       "task=translate arch=gru bidirectional=false"};

static void test_packed_is_alone(void **state) {
    (void)state;
    tiny_batch all, one;
    tiny_batch_make(&all, lengths, N_LENGTHS, 11, 3, 1);
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        qkv_model *m = tiny_model(families[f], false, 3);
        qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
        int64_t width = tiny_hidden(&tape, m, &all, &all)->cols;
        real *together = hidden(m, &all, &all);
        for (int32_t s = 0; s < N_LENGTHS; s++) {
            tiny_batch_make(&one, &lengths[s], 1, 11, 3, 1);
            memcpy(one.ids, all.ids + all.start[s], (size_t)lengths[s] * sizeof *one.ids);
            real *alone = hidden(m, &one, &one);
            assert_same_bits(families[f], alone, together + all.start[s] * width,
                             lengths[s] * width);
            qkv_free(alone);
        }
        qkv_free(together);
        qkv_model_free(m);
    }
}

/* Loss and all gradients of one step. */
static real *step(qkv_model *m, const tiny_batch *b) {
    qkv_params *p = qkv_model_params(m);
    qkv_params_zero_grads(p);
    qkv_tape_begin(&tape, QKV_TRAIN, 7, 3);
    qkv_tensor *loss = tiny_loss(&tape, m, b, b);
    assert_ok(qkv_tape_status(&tape));
    assert_ok(qkv_tape_backward(&tape, &loss, 1));
    real *out = qkv_alloc((size_t)(p->length + 1) * sizeof *out);
    memcpy(out, p->grads, (size_t)p->length * sizeof *out);
    out[p->length] = loss->data[0];
    return out;
}

static void test_threads_same_bits(void **state) {
    (void)state;
    tiny_batch b;
    static const int32_t long_ones[] = {64, 3, 60, 64, 17};
    tiny_batch_make(&b, long_ones, 5, 11, 3, 1);
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        char s[200];
        snprintf(s, sizeof s, "%s dropout=0.1 layer_drop=0.2", families[f]);
        qkv_model *m = tiny_model(s, true, 3);
        int64_t n = qkv_model_params(m)->length + 1;
        qkv_threads_set(1);
        real *one = step(m, &b);
        qkv_threads_set(3);
        real *three = step(m, &b);
        qkv_threads_set(0);
        assert_same_bits(families[f], one, three, n);
        qkv_free(one), qkv_free(three);
        qkv_model_free(m);
    }
}

/* Step-by-step decoding through a cache equals the full pass: two tokens first, then one by one;
 * sequences have different lengths, and those that are finished leave the cache. */
static void check_cached(const char *settings, const int32_t tgt_len[3]) {
    tiny_batch src, tgt;
    tiny_batch_make(&src, lengths, 3, 11, 3, 1);
    tiny_batch_make(&tgt, tgt_len, 3, 11, 3, 2);
    qkv_model *m = tiny_model(settings, false, 3);
    bool two_sided = qkv_shape_of(qkv_model_config(m)->task).encoder;
    real *full = hidden(m, &src, &tgt);
    qkv_cache *cache;
    assert_ok(qkv_cache_new(m, 3, 160, &cache));
    int32_t live[] = {0, 1, 2}, n = 3, done = 0;
    while (n > 0) {
        int32_t ids[6], start[4] = {0}, take = done ? 1 : 2;
        for (int32_t k = 0; k < n; k++) {
            memcpy(ids + start[k], tgt.ids + tgt.start[live[k]] + done, (size_t)take * sizeof *ids);
            start[k + 1] = start[k] + take;
        }
        qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
        qkv_tokens now = {.layout = {.n = n, .start = start}, .ids = ids, .rows = start[n]};
        qkv_tensor *memory = two_sided && !done ? qkv_model_encode(&tape, m, &src.tokens) : NULL;
        qkv_tensor *y =
            qkv_model_decode(&tape, m, &now, memory, memory ? &src.tokens : NULL, cache);
        if (qkv_tape_status(&tape) != QKV_OK) fail_msg("%s: %s", settings, qkv_error());
        for (int32_t k = 0; k < n; k++)
            assert_close(settings, y->data + start[k] * y->ld,
                         full + (tgt.start[live[k]] + done) * y->cols, take * y->cols, 5e-6);
        done += take;
        int32_t from[3], left = 0;
        for (int32_t k = 0; k < n; k++)
            if (tgt_len[live[k]] > done) {
                from[left] = k;
                live[left++] = live[k];
            }
        if (left && left < n) assert_ok(qkv_cache_select(cache, from, left));
        n = left;
    }
    qkv_cache_free(cache);
    qkv_free(full);
    qkv_model_free(m);
}

static void test_cached_is_full(void **state) {
    static const int32_t short_ones[] = {9, 4, 7}, long_ones[] = {150, 4, 70};
    (void)state;
    char s[200];
    for (int p = 0; qkv_position_names[p]; p++)
        for (int a = 0; qkv_pattern_names[a]; a++) {
            qkv_model *m;
            snprintf(s, sizeof s, "task=lm position=%s attention=%s window=2 kv_heads=1",
                     qkv_position_names[p], qkv_pattern_names[a]);
            if (tiny_build(s, &m) != QKV_OK) continue;
            qkv_model_free(m);
            check_cached(s, short_ones);
        }
    for (int p = 0; qkv_position_names[p]; p++) {
        snprintf(s, sizeof s, "task=translate position=%s norm=%s %s", qkv_position_names[p],
                 p % 2 ? "pre" : "post",
                 qkv_position_has((qkv_position_kind)p, QKV_POSITION_WANTS_TREES)
                     ? "decoder_position=relative"
                     : "");
        check_cached(s, short_ones);
    }
    check_cached("task=translate attention=linformer decoder_attention=local window=2", short_ones);
    /* several blocks of queries, so that links and global positions matter */
    for (int a = 0; qkv_pattern_names[a]; a++) {
        if (a == QKV_PATTERN_LINFORMER) continue;
        snprintf(s, sizeof s, "task=lm position=alibi attention=%s max_len=160",
                 qkv_pattern_names[a]);
        check_cached(s, long_ones);
    }
    check_cached("task=lm arch=lstm", short_ones);
    check_cached("task=lm arch=gru", short_ones);
    check_cached("task=translate arch=lstm d_state=10", short_ones);
    check_cached("task=translate arch=gru bidirectional=false", short_ones);
}

/* ---- configuration ---- */

static void test_refusals(void **state) {
    static const struct {
        const char *settings, *words;
    } cases[] = {
        {"d_modle=8", "did you mean d_model?"},
        {"position=ropee", "did you mean rope?"},
        {"position=banana", "choose one of none, sinusoidal"},
        {"d_model=0", "an integer from 1 to"},
        {"d_model=8.5", "an integer from"},
        {"dropout=1", "a number from 0 to 0.95"},
        {"tie=perhaps", "true or false"},
        {"layers", "key=value"},
        {"heads=3", "not a multiple of heads"},
        {"heads=4 kv_heads=3", "do not form groups"},
        {"position=rope d_head=5", "d_head must be even"},
        {"task=lm attention=linformer", "use attention=local or bigbird"},
        {"attention=linformer position=alibi", "another attention"},
        {"task=lm position=structural", "use it in an encoder"},
        {"task=translate position=structural", "decoder_position=relative"},
        {"task=translate attention=linformer", "decoder_attention"},
        {"task=translate decoder_position=structural", "needs the tree"},
        {"task=translate vocab_size=5 target_vocab_size=6", "share_embeddings=false"},
        {"projections=false position=rope", "basic attention"},
        {"projections=false task=translate", "no cross-attention"},
        {"projections=false d_head=4", "heads·d_head must be d_model"},
        {"position=t5 t5_buckets=6", "multiple of 4"},
        {"task=lm arch=lstm d_state=5", "tie=false"},
        {"task=mlm arch=lstm d_state=5", "d_model/2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_model *m;
        assert_fails(tiny_build(cases[i].settings, &m), QKV_USAGE, cases[i].words);
        assert_null(m);
    }
}

static void test_misuse(void **state) {
    (void)state;
    tiny_batch b;
    tiny_batch_make(&b, lengths, N_LENGTHS, 11, 3, 1);
    qkv_model *m = tiny_model("task=lm", false, 1);
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    qkv_model_classify(&tape, m, &b.tokens);
    assert_fails(qkv_tape_status(&tape), QKV_USAGE, "not a classifier");
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    qkv_model_encode(&tape, m, &b.tokens);
    assert_fails(qkv_tape_status(&tape), QKV_USAGE, "no encoder");
    qkv_cache *cache;
    assert_ok(qkv_cache_new(m, 2, 4, &cache));
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    qkv_model_decode(&tape, m, &b.tokens, NULL, NULL, cache);
    assert_fails(qkv_tape_status(&tape), QKV_USAGE, "holds 2 sequences");
    const int32_t from[] = {0, 2};
    assert_fails(qkv_cache_select(cache, from, 2), QKV_USAGE, "no sequence 2");
    assert_ok(qkv_cache_reset(cache, 1));
    const int32_t five[] = {0, 5};
    qkv_tokens tokens = {.layout = {.n = 1, .start = five}, .ids = b.ids, .rows = 5};
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    qkv_model_decode(&tape, m, &tokens, NULL, NULL, cache);
    assert_fails(qkv_tape_status(&tape), QKV_USAGE, "longer than the 4 tokens");
    assert_int_equal(qkv_cache_len(cache, 0), 0);
    qkv_cache_free(cache);
    qkv_model_free(m);
    m = tiny_model("task=classify position=structural", false, 1);
    b.tokens.column[QKV_COLUMN_NODES] = NULL;
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    qkv_model_classify(&tape, m, &b.tokens);
    assert_fails(qkv_tape_status(&tape), QKV_USAGE, "CoNLL-U");
    qkv_model_free(m);
}

/* Any allocation of building, allocating and running may fail: an error, no leak, no crash. */
static void test_out_of_memory(void **state) {
    (void)state;
    tiny_batch b;
    tiny_batch_make(&b, lengths, N_LENGTHS, 11, 3, 1);
    uint64_t live = qkv_mem_count().live;
    for (uint64_t n = 1;; n++) {
        qkv_model *m = NULL;
        qkv_tape t;
        qkv_mem_fail(n, false);
        qkv_status status = qkv_tape_init(&t);
        if (status == QKV_OK) status = tiny_build("task=translate position=relative", &m);
        if (status == QKV_OK) status = qkv_model_allocate(m, true);
        if (status == QKV_OK) {
            qkv_model_initialise(m, 1);
            qkv_tape_begin(&t, QKV_TRAIN, 1, 1);
            qkv_tensor *loss = tiny_loss(&t, m, &b, &b);
            status = qkv_tape_status(&t);
            if (status == QKV_OK) status = qkv_tape_backward(&t, &loss, 1);
        }
        qkv_mem_fail(0, false);
        qkv_model_free(m);
        qkv_tape_free(&t);
        if (status == QKV_OK) break;
        assert_int_equal(status, QKV_FAILED);
        if (n < 100)
            assert_true(qkv_mem_count().live <= live + 64); /* kernels keep scratch of their own */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_basic_attention),
        cmocka_unit_test(test_score_variance),
        cmocka_unit_test(test_sinusoidal_values),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_beyond_max_len),
        cmocka_unit_test(test_wide_patterns_are_full),
        cmocka_unit_test(test_linformer_identity_is_full),
        cmocka_unit_test(test_grouped_heads),
        cmocka_unit_test(test_packed_is_alone),
        cmocka_unit_test(test_threads_same_bits),
        cmocka_unit_test(test_cached_is_full),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
