/* Decoding: beam search against a slow one that recomputes everything and never stops early,
 * against exhaustive search, alone against in a batch; constraints. */
#include "base/mem.h"
#include "decode/batches.h"
#include "tiny.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { V = 11, BOS = 1, EOS = 2, MOST = 12 };

static qkv_tape tape;
static qkv_arena arena;

/* Log-probabilities of what follows begin + written, among what the text may have,
 * by the full pass. */
static void slow_next(qkv_model *m, const qkv_search_item *x, const int32_t *written, int32_t n,
                      double *out) {
    int32_t ids[64];
    memcpy(ids, x->begin, (size_t)x->n_begin * sizeof *ids);
    if (n) memcpy(ids + x->n_begin, written, (size_t)n * sizeof *ids);
    tiny_next(&tape, m, x->src, x->n_src, ids, x->n_begin + n, V, out);
    if (!x->allowed) return;
    double sum = 0;
    for (int32_t k = 0; k < x->n_allowed; k++) sum += exp(out[x->allowed[k]]);
    for (int32_t id = 0, k = 0; id < V; id++) {
        const bool may = k < x->n_allowed && x->allowed[k] == id;
        out[id] = may ? out[id] - log(sum) : -INFINITY;
        k += may;
    }
}

/* ---- the slow search ---- */

typedef struct hyp {
    int32_t ids[MOST + 1], n;
    double total, score;
} hyp;

static double slow_score(const qkv_search_spec *s, double total, int32_t n) {
    return s->penalty == QKV_LENGTH_GNMT      ? total / pow((5.0 + n) / 6, s->alpha)
           : s->penalty == QKV_LENGTH_AVERAGE ? total / pow(n, s->alpha)
                                              : total;
}

static bool slow_allowed(const qkv_search_spec *s, const qkv_search_item *x, const hyp *h,
                         int32_t id) {
    if (h->n < x->n_prefix) return id == x->prefix[h->n];
    if (s->never && s->never[id]) return false;
    bool listed = !x->allowed;
    for (int32_t k = 0; k < x->n_allowed; k++) listed = listed || x->allowed[k] == id;
    if (!listed) return false;
    if (id == s->eos && h->n < s->min_length) return false;
    for (int32_t i = 0; i < s->forbidden.n; i++) {
        const int32_t *p = s->forbidden.ids + s->forbidden.start[i];
        const int32_t len = s->forbidden.start[i + 1] - s->forbidden.start[i];
        bool same = len - 1 <= h->n && p[len - 1] == id;
        for (int32_t k = 0; same && k < len - 1; k++) same = h->ids[h->n - (len - 1) + k] == p[k];
        if (same) return false;
    }
    const int32_t n = s->no_repeat;
    for (int32_t at = 0; n > 0 && at + n <= h->n; at++) { /* the n tokens from `at` on, again? */
        bool same = h->ids[at + n - 1] == id;
        for (int32_t k = 0; same && k < n - 1; k++)
            same = h->ids[at + k] == h->ids[h->n - (n - 1) + k];
        if (same) return false;
    }
    return true;
}

static int by_total(const void *a, const void *b) {
    const double x = ((const hyp *)a)->total, y = ((const hyp *)b)->total;
    return x < y ? 1 : x > y ? -1 : 0;
}
static int by_score(const void *a, const void *b) {
    const double x = ((const hyp *)a)->score, y = ((const hyp *)b)->score;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The best of `done`, found by a beam that runs to the longest length;
 * returns how many there are. */
static int slow_search(qkv_model *m, const qkv_search_spec *s, const qkv_search_item *x,
                       hyp *done) {
    hyp *open = calloc((size_t)s->beam, sizeof *open),
        *next = calloc((size_t)s->beam * V, sizeof *next);
    int n_open = 1, n_done = 0, places = s->beam;
    for (int32_t step = 0; step < x->max_length && n_open; step++) {
        int n = 0;
        for (int i = 0; i < n_open; i++) {
            double p[V];
            slow_next(m, x, open[i].ids, open[i].n, p);
            for (int32_t id = 0; id < V; id++) {
                if (!slow_allowed(s, x, &open[i], id)) continue;
                next[n] = open[i];
                next[n].ids[next[n].n++] = id;
                next[n++].total += p[id];
            }
        }
        qsort(next, (size_t)n, sizeof *next, by_total);
        n_open = 0;
        const int taken = n < places ? n : places;
        for (int i = 0; i < taken; i++) {
            next[i].score = slow_score(s, next[i].total, next[i].n);
            const bool ended = next[i].ids[next[i].n - 1] == s->eos;
            if (ended || step + 1 == x->max_length) {
                next[i].n -= ended;
                done[n_done++] = next[i];
                places--;
            } else {
                open[n_open++] = next[i];
            }
        }
    }
    qsort(done, (size_t)n_done, sizeof *done, by_score);
    free(open);
    free(next);
    return n_done;
}

/* ---- comparing ---- */

static const int32_t source[] = {3, 4, 5, 9, 6, 2};
static const int32_t begin[] = {BOS};

static qkv_search_item item_of(qkv_model *m, int32_t n_src, int32_t most) {
    const bool two_sided = qkv_shape_of(qkv_model_config(m)->task).encoder;
    return (qkv_search_item){.src = source,
                             .n_src = two_sided ? n_src : 0,
                             .begin = begin,
                             .n_begin = 1,
                             .max_length = most};
}

static void check_search(qkv_model *m, const qkv_search_spec *spec, const qkv_search_item *x) {
    hyp done[QKV_BEAM_MAX];
    qkv_hypothesis found[64];
    qkv_session *s;
    assert_ok(qkv_session_new(m, &s));
    const int n = slow_search(m, spec, x, done);
    assert_ok(qkv_beam_search(s, spec, x, 1, &arena, found));
    for (int k = 0; k < spec->nbest; k++) {
        if (k >= n) {
            assert_null(found[k].ids);
            continue;
        }
        assert_int_equal(found[k].n, done[k].n);
        assert_memory_equal(found[k].ids, done[k].ids, (size_t)done[k].n * sizeof(int32_t));
        if (fabs(found[k].score - done[k].score) > 1e-4 * (1 + fabs(done[k].score)))
            fail_msg("score %g, wanted %g", found[k].score, done[k].score);
        double sum = found[k].ended ? (double)found[k].log_probs[found[k].n] : 0;
        for (int32_t i = 0; i < found[k].n; i++) sum += (double)found[k].log_probs[i];
        assert_true(fabs(sum - found[k].log_prob) < 1e-6);
    }
    qkv_session_free(s);
    qkv_arena_reset(&arena);
}

static const char *const families[] = {
    "task=translate",           "task=translate norm=post position=rope tie=false",
    "task=lm position=alibi",   "task=lm position=learned",
    "task=lm arch=lstm",        "task=lm arch=gru",
    "task=translate arch=lstm", "task=translate arch=gru bidirectional=false"};
enum { FAMILIES = sizeof families / sizeof *families };

/* Beams of every width stop early and find what they would have found without stopping. */
static void test_stops_exactly(void **state) {
    (void)state;
    for (int f = 0; f < FAMILIES; f++) {
        qkv_model *m = tiny_sharp_model(families[f], (uint64_t)f + 5);
        for (int32_t beam = 1; beam <= 4; beam++)
            for (int p = 0; p < 4; p++) {
                const qkv_search_item x = item_of(m, 6, MOST);
                const qkv_search_spec spec = {.beam = beam,
                                              .nbest = 1 + p % beam,
                                              .penalty = (qkv_length_penalty)(p % 3),
                                              .alpha = p == 3 ? -0.5 : 1,
                                              .eos = EOS};
                check_search(m, &spec, &x);
            }
        qkv_model_free(m);
    }
}

/* A beam wider than there are texts finds the best of all: compared with plain enumeration. */
static void test_exhaustive(void **state) {
    (void)state;
    enum { LONGEST = 3, ALL = 1 + 10 + 100 + 1000 };
    qkv_model *m = tiny_sharp_model("task=translate", 21);
    const qkv_search_item x = item_of(m, 5, LONGEST);
    qkv_search_spec spec = {
        .beam = ALL, .nbest = 5, .penalty = QKV_LENGTH_AVERAGE, .alpha = 1, .eos = EOS};
    hyp *all = calloc(ALL + 1, sizeof *all);
    int n = 0, from = 0, open = 1; /* all[from … open − 1]: texts of one length that go on */
    hyp *level = calloc(ALL + 1, sizeof *level);
    for (int32_t len = 0; len < LONGEST; len++) {
        const int to = open;
        for (int i = from; i < to; i++) {
            double p[V];
            slow_next(m, &x, level[i].ids, len, p);
            for (int32_t id = 0; id < V; id++) {
                hyp h = level[i];
                h.total += p[id];
                h.score = h.total / (len + 1);
                if (id != EOS) h.ids[h.n++] = id;
                if (id == EOS || len + 1 == LONGEST) all[n++] = h;
                if (id != EOS && len + 1 < LONGEST) level[open++] = h;
            }
        }
        from = to;
    }
    assert_int_equal(n, ALL);
    qsort(all, (size_t)n, sizeof *all, by_score);
    qkv_session *s;
    qkv_hypothesis found[5];
    assert_ok(qkv_session_new(m, &s));
    assert_ok(qkv_beam_search(s, &spec, &x, 1, &arena, found));
    for (int k = 0; k < 5; k++) {
        assert_int_equal(found[k].n, all[k].n);
        assert_memory_equal(found[k].ids, all[k].ids, (size_t)all[k].n * sizeof(int32_t));
    }
    free(all);
    free(level);
    qkv_session_free(s);
    qkv_arena_reset(&arena);
    qkv_model_free(m);
}

static void test_constraints(void **state) {
    (void)state;
    qkv_model *m = tiny_sharp_model("task=translate", 8);
    static const int32_t prefix[] = {7, 3}, phrase_start[] = {0, 1, 3}, phrases[] = {4, 5, 6};
    static const bool never[V] = {[0] = true, [BOS] = true};
    for (int32_t beam = 1; beam <= 3; beam++) {
        qkv_search_item x = item_of(m, 6, 9);
        x.prefix = prefix;
        x.n_prefix = 2;
        qkv_search_spec spec = {.beam = beam,
                                .nbest = 1,
                                .alpha = 1,
                                .eos = EOS,
                                .min_length = 4,
                                .never = never,
                                .forbidden = {.n = 2, .start = phrase_start, .ids = phrases}};
        check_search(m, &spec, &x);
        qkv_hypothesis found;
        qkv_session *s;
        assert_ok(qkv_session_new(m, &s));
        assert_ok(qkv_beam_search(s, &spec, &x, 1, &arena, &found));
        assert_true(found.n >= 4 && found.ids[0] == 7 && found.ids[1] == 3);
        for (int32_t i = 2; i < found.n; i++)
            assert_true(found.ids[i] != 4 && !never[found.ids[i]]);
        qkv_session_free(s);
        qkv_arena_reset(&arena);
    }
    qkv_model_free(m);
}

/* No n tokens twice: what the slow search finds, and there is none in what is found. Models that
 * repeat themselves when they may are part of it. */
static void test_no_repeat(void **state) {
    (void)state;
    int repeats = 0;
    for (int k = 0; k < FAMILIES * 4; k++) {
        qkv_model *m = tiny_sharp_model(families[k % FAMILIES], (uint64_t)k + 1);
        for (int32_t n = 0; n <= 3; n++) {
            const qkv_search_item x = item_of(m, 6, 9);
            const qkv_search_spec spec = {.beam = 1 + k % 3,
                                          .nbest = 1,
                                          .alpha = 1,
                                          .eos = EOS,
                                          .min_length = 8,
                                          .no_repeat = n};
            check_search(m, &spec, &x);
            qkv_hypothesis found;
            qkv_session *s;
            assert_ok(qkv_session_new(m, &s));
            assert_ok(qkv_beam_search(s, &spec, &x, 1, &arena, &found));
            const int32_t size = n ? n : 2;
            for (int32_t i = 0; i + size <= found.n; i++)
                for (int32_t j = 0; j < i; j++) {
                    const bool same =
                        memcmp(found.ids + i, found.ids + j, (size_t)size * sizeof(int32_t)) == 0;
                    assert_true(n == 0 || !same);
                    repeats += same;
                }
            qkv_session_free(s);
            qkv_arena_reset(&arena);
        }
        qkv_model_free(m);
    }
    assert_true(repeats > 0);
}

/* A text that may have some tokens only: the search and its probabilities are over these, whatever
 * the others of its batch may have. */
static void test_allowed(void **state) {
    (void)state;
    static const int32_t few[] = {EOS, 4, 5, 9}, more[] = {0, 1, EOS, 3, 7, 8, 10},
                         prefix[] = {9, 4};
    static const int32_t descending[] = {EOS, 5, 4}, beyond[] = {EOS, V};
    for (int f = 0; f < FAMILIES; f++) {
        qkv_model *m = tiny_sharp_model(families[f], 90 + (uint64_t)f);
        const qkv_search_spec spec = {
            .beam = 3, .nbest = 2, .alpha = 1, .eos = EOS, .min_length = f % 2 ? 2 : 0};
        qkv_search_item items[4];
        for (int i = 0; i < 4; i++) items[i] = item_of(m, 3 + i % 3, 7);
        items[0].allowed = items[3].allowed = few, items[0].n_allowed = items[3].n_allowed = 4;
        items[1].allowed = more, items[1].n_allowed = 7;
        items[3].prefix = prefix, items[3].n_prefix = 2;
        qkv_hypothesis together[8], alone[2];
        qkv_session *s;
        assert_ok(qkv_session_new(m, &s));
        assert_ok(qkv_beam_search(s, &spec, items, 4, &arena, together));
        for (int i = 0; i < 4; i++) {
            assert_ok(qkv_beam_search(s, &spec, &items[i], 1, &arena, alone));
            for (int k = 0; k < 2; k++) {
                const qkv_hypothesis *a = &alone[k], *b = &together[2 * i + k];
                assert_int_equal(a->n, b->n);
                assert_true(a->score == b->score);
                assert_memory_equal(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
                assert_same_bits(families[f], a->log_probs, b->log_probs, a->n + a->ended);
            }
        }
        items[0].allowed = descending, items[0].n_allowed = 3;
        assert_fails(qkv_beam_search(s, &spec, items, 1, &arena, alone), QKV_USAGE, "ascend");
        items[0].allowed = beyond, items[0].n_allowed = 2;
        assert_fails(qkv_beam_search(s, &spec, items, 1, &arena, alone), QKV_USAGE, "ascend");
        items[3].allowed = more, items[3].n_allowed = 7;
        assert_fails(qkv_beam_search(s, &spec, &items[3], 1, &arena, alone), QKV_USAGE, "allowed");
        qkv_session_free(s);
        items[0].allowed = few, items[0].n_allowed = 4;
        check_search(m, &spec, &items[0]);
        check_search(m, &spec, &items[1]);
        qkv_model_free(m);
    }
}

/* What else is in the batch, and how many threads there are, changes no bit. */
static void test_batch_independent(void **state) {
    (void)state;
    static const int32_t sources[] = {6, 1, 4, 2, 5, 3};
    for (int f = 0; f < FAMILIES; f++) {
        qkv_model *m = tiny_sharp_model(families[f], 40 + (uint64_t)f);
        const qkv_search_spec spec = {.beam = 3, .nbest = 2, .alpha = 1, .eos = EOS};
        qkv_search_item items[6];
        for (int i = 0; i < 6; i++) {
            items[i] = item_of(m, sources[i], 4 + 2 * i);
            items[i].begin =
                source + i % 3; /* for language models the beginnings differ in length */
            items[i].n_begin = 1 + i % 3;
        }
        qkv_hypothesis together[12], alone[2];
        qkv_session *s;
        assert_ok(qkv_session_new(m, &s));
        qkv_threads_set(3);
        assert_ok(qkv_beam_search(s, &spec, items, 6, &arena, together));
        qkv_threads_set(1);
        for (int i = 0; i < 6; i++) {
            assert_ok(qkv_beam_search(s, &spec, &items[i], 1, &arena, alone));
            for (int k = 0; k < 2; k++) {
                const qkv_hypothesis *a = &alone[k], *b = &together[2 * i + k];
                assert_int_equal(a->n, b->n);
                assert_true(a->score == b->score && a->log_prob == b->log_prob);
                assert_memory_equal(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
                assert_same_bits(families[f], a->log_probs, b->log_probs, a->n + a->ended);
            }
        }
        qkv_threads_set(0);
        qkv_session_free(s);
        qkv_arena_reset(&arena);
        qkv_model_free(m);
    }
}

/* Attention comes with the text: a row for each token that sums to 1, the same in any beam that
 * finds the same text; coverage lowers scores and ranks by it. */
static void test_attention(void **state) {
    (void)state;
    static const char *const models[] = {"task=translate", "task=translate kv_heads=1 layers=3",
                                         "task=translate arch=lstm"};
    for (size_t f = 0; f < sizeof models / sizeof *models; f++) {
        qkv_model *m = tiny_sharp_model(models[f], 90 + f);
        qkv_search_item items[2] = {item_of(m, 6, 8), item_of(m, 3, 5)};
        qkv_search_spec spec = {.beam = 3, .nbest = 3, .alpha = 1, .eos = EOS, .align = true};
        qkv_hypothesis plain[6], covered[6], alone[3];
        qkv_session *s;
        assert_ok(qkv_session_new(m, &s));
        assert_ok(qkv_beam_search(s, &spec, items, 2, &arena, plain));
        for (int k = 0; k < 6; k++)
            for (int32_t i = 0; i < plain[k].n; i++) {
                double sum = 0;
                const int32_t n = items[k / 3].n_src;
                for (int32_t j = 0; j < n; j++) sum += (double)plain[k].attention[i * n + j];
                assert_true(fabs(sum - 1) < 1e-5);
            }
        assert_ok(qkv_beam_search(s, &spec, &items[1], 1, &arena, alone));
        assert_same_bits(models[f], alone[0].attention, plain[3].attention, 3 * alone[0].n);
        spec.coverage = 0.5;
        spec.align = false;
        assert_ok(qkv_beam_search(s, &spec, items, 2, &arena, covered));
        for (int k = 0; k < 6; k++) {
            assert_null(covered[k].attention);
            if (k % 3) assert_true(covered[k].score <= covered[k - 1].score);
            /* By hand: the same hypothesis without coverage, less what it does not attend to. */
            for (int p = k / 3 * 3; p < k / 3 * 3 + 3; p++) {
                if (plain[p].n != covered[k].n || plain[p].ended || covered[k].ended ||
                    memcmp(plain[p].ids, covered[k].ids, (size_t)plain[p].n * sizeof(int32_t)))
                    continue;
                const int32_t n = items[k / 3].n_src;
                double score = plain[p].score;
                for (int32_t j = 0; j < n; j++) {
                    double seen = 0;
                    for (int32_t i = 0; i < plain[p].n; i++)
                        seen += (double)plain[p].attention[i * n + j];
                    score += 0.5 * log(fmin(1, seen));
                }
                assert_true(fabs(score - covered[k].score) < 1e-5 * (1 + fabs(score)));
            }
        }
        qkv_session_free(s);
        qkv_arena_reset(&arena);
        qkv_model_free(m);
    }
}

/* ---- many texts, many threads ---- */

enum { TEXTS = 40, CALLERS = 4 };

typedef struct caller {
    qkv_model *model;
    const qkv_search_item *items;
    double scores[TEXTS];
    int32_t ids[TEXTS][MOST];
    int calls[TEXTS];
    qkv_status status;
} caller;

static qkv_status note(void *user, size_t i, const qkv_hypothesis *found) {
    caller *c = user;
    c->scores[i] = found->score;
    c->calls[i]++;
    memcpy(c->ids[i], found->ids, (size_t)found->n * sizeof *found->ids);
    return QKV_OK;
}

static void *call(void *user) {
    caller *c = user;
    const qkv_search_spec spec = {.beam = 3, .nbest = 1, .alpha = 1, .eos = EOS};
    qkv_threads_set(2);
    qkv_session *s;
    c->status = qkv_session_new(c->model, &s);
    if (c->status == QKV_OK) c->status = qkv_search_all(s, &spec, c->items, TEXTS, note, c);
    qkv_session_free(s);
    return NULL;
}

/* One model, several callers at once with several threads each: all get what one gets alone. */
static void test_search_all(void **state) {
    (void)state;
    qkv_model *m = tiny_sharp_model("task=translate", 33);
    qkv_search_item items[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        items[i] = item_of(m, 1 + i * 5 % 6, 2 + i % (MOST - 2));
        if (i == 7) items[i].n_begin = 0; /* nothing to do */
    }
    static caller callers[CALLERS], alone;
    pthread_t threads[CALLERS];
    for (int c = 0; c < CALLERS; c++) {
        callers[c] = (caller){.model = m, .items = items};
        assert_int_equal(pthread_create(&threads[c], NULL, call, &callers[c]), 0);
    }
    for (int c = 0; c < CALLERS; c++) pthread_join(threads[c], NULL);
    alone = (caller){.model = m, .items = items};
    qkv_session *s;
    assert_ok(qkv_session_new(m, &s));
    const qkv_search_spec spec = {.beam = 3, .nbest = 1, .alpha = 1, .eos = EOS};
    qkv_threads_set(1);
    for (int i = 0; i < TEXTS; i++) {
        caller one = {.model = m, .items = items};
        assert_ok(qkv_search_all(s, &spec, items + i, 1, note, &one));
        alone.scores[i] = one.scores[0];
        memcpy(alone.ids[i], one.ids[0], sizeof one.ids[0]);
    }
    qkv_threads_set(0);
    for (int c = 0; c < CALLERS; c++) {
        assert_int_equal(callers[c].status, QKV_OK);
        for (int i = 0; i < TEXTS; i++) assert_int_equal(callers[c].calls[i], i != 7);
        assert_memory_equal(callers[c].scores, alone.scores, sizeof alone.scores);
        assert_memory_equal(callers[c].ids, alone.ids, sizeof alone.ids);
    }
    /* The message of a worker that failed arrives at the caller. */
    qkv_param_find(qkv_model_params(m), "decoder.norm.weight")->tensor.data[0] = (real)NAN;
    assert_fails(qkv_search_all(s, &spec, items, TEXTS, note, &alone), QKV_NUMERIC, "not finite");
    qkv_session_free(s);
    qkv_model_free(m);
}

static void test_search_errors(void **state) {
    (void)state;
    qkv_model *m = tiny_sharp_model("task=translate", 1);
    qkv_session *s;
    qkv_hypothesis found[4];
    assert_ok(qkv_session_new(m, &s));
    qkv_search_item x = item_of(m, 4, 5);
    qkv_search_spec spec = {.beam = 2, .nbest = 3, .alpha = 1, .eos = EOS};
    assert_fails(qkv_beam_search(s, &spec, &x, 1, &arena, found), QKV_USAGE, "a beam of 2");
    spec.nbest = 1;
    static const int32_t wrong[] = {V}, start[] = {0, 1};
    x.prefix = wrong;
    x.n_prefix = 1;
    assert_fails(qkv_beam_search(s, &spec, &x, 1, &arena, found), QKV_USAGE, "no token 11");
    x.n_prefix = 0;
    spec.forbidden = (qkv_phrases){.n = 1, .start = start, .ids = wrong};
    assert_fails(qkv_beam_search(s, &spec, &x, 1, &arena, found), QKV_USAGE, "to forbid");
    spec.forbidden.n = 0;
    spec.no_repeat = QKV_NO_REPEAT_MAX + 1;
    assert_fails(qkv_beam_search(s, &spec, &x, 1, &arena, found), QKV_USAGE, "0 (off) to 64");
    spec.no_repeat = 0;
    /* All forbidden: the text is what was written so far, nothing. */
    bool never[V];
    memset(never, 1, sizeof never);
    spec.never = never;
    assert_ok(qkv_beam_search(s, &spec, &x, 1, &arena, found));
    assert_int_equal(found[0].n, 0);
    spec.never = NULL;
    qkv_model_params(m)->values[0] = (real)NAN;
    qkv_param *head = qkv_param_find(qkv_model_params(m), "decoder.norm.weight");
    head->tensor.data[0] = (real)NAN;
    assert_fails(qkv_beam_search(s, &spec, &x, 1, &arena, found), QKV_NUMERIC, "not finite");
    qkv_session_free(s);
    qkv_arena_reset(&arena);
    qkv_model_free(m);
}

/* Every allocation may fail: an error, no leak, and the next call works. */
static void test_out_of_memory(void **state) {
    (void)state;
    qkv_threads_set(1);
    static const char *const models[] = {"task=translate", "task=translate arch=gru"};
    for (size_t f = 0; f < sizeof models / sizeof *models; f++) {
        qkv_model *m = tiny_sharp_model(models[f], 12);
        const qkv_search_item items[] = {item_of(m, 5, 6), item_of(m, 2, 4)};
        const qkv_search_spec spec = {.beam = 2, .nbest = 1, .alpha = 1, .eos = EOS, .align = true};
        caller c = {.items = items};
        qkv_session *s;
        qkv_mem_fail(1, false);
        assert_fails(qkv_session_new(m, &s), QKV_FAILED, "memory");
        qkv_mem_fail(0, false);
        assert_null(s);
        /* Once, for what stays: packed weights and the kernels' scratch memory. */
        assert_ok(qkv_session_new(m, &s));
        assert_ok(qkv_search_all(s, &spec, items, 2, note, &c));
        qkv_session_free(s);
        qkv_status status = QKV_FAILED;
        for (uint64_t n = 1; status != QKV_OK; n++) {
            const uint64_t before = qkv_mem_count().live;
            qkv_mem_fail(n, false);
            status = qkv_session_new(m, &s);
            if (status == QKV_OK) status = qkv_search_all(s, &spec, items, 2, note, &c);
            qkv_mem_fail(0, false);
            if (s && status != QKV_OK) {
                assert_int_equal(status, QKV_FAILED);
                assert_ok(qkv_search_all(s, &spec, items, 2, note, &c));
            }
            qkv_session_free(s);
            assert_int_equal(qkv_mem_count().live, before);
            assert_true(n < 2000);
        }
        qkv_model_free(m);
    }
    qkv_threads_set(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops_exactly),     cmocka_unit_test(test_exhaustive),
        cmocka_unit_test(test_constraints),       cmocka_unit_test(test_no_repeat),
        cmocka_unit_test(test_batch_independent), cmocka_unit_test(test_attention),
        cmocka_unit_test(test_search_errors),     cmocka_unit_test(test_search_all),
        cmocka_unit_test(test_out_of_memory),     cmocka_unit_test(test_allowed),
    };
    qkv_tape_init(&tape);
    qkv_arena_init(&arena);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    qkv_tape_free(&tape);
    qkv_arena_free(&arena);
    return failed;
}
