/* The samplers; see sample.h.
 *
 * Candidates lie in a list; a sampler that narrows it keeps a run at its beginning. Where an order
 * is needed only the kept part is put in order: a heap over all, from which the best are taken
 * until there are enough, O(V + k log V). */
#include "decode/sample.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kern/kern.h"

typedef struct pool {
    qkv_candidate *list;
    real *run; /* room for as many reals */
    int64_t n;
    const int32_t *recent;
    int64_t n_recent;
    uint8_t *seen;
} pool;

/* ---- order ---- */

static bool before(const qkv_candidate *a, const qkv_candidate *b) {
    return a->key != b->key ? a->key > b->key : a->id < b->id;
}

static void sift(qkv_candidate *heap, int64_t n, int64_t at) {
    const qkv_candidate moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Orders the list by key from its best on, until `enough` of them, or together `share` of all
 * weight, are in order; the others are dropped. */
static void keep_best(pool *p, int64_t enough, double share) {
    const int64_t n = p->n;
    double all = 0, kept = 0;
    for (int64_t i = 0; share > 0 && i < n; i++) all += (double)p->list[i].weight;
    for (int64_t i = n / 2; i-- > 0;) sift(p->list, n, i);
    int64_t taken = 0;
    while (taken < n && taken < enough && (share <= 0 || taken == 0 || kept < share * all)) {
        const qkv_candidate best = p->list[0];
        p->list[0] = p->list[n - 1 - taken];
        p->list[n - 1 - taken] = best;
        sift(p->list, n - 1 - taken, 0);
        if (share > 0) kept += (double)best.weight;
        taken++;
    }
    /* The best lie at the end, the last first: turned round and moved to the front. */
    for (int64_t i = 0; i < n / 2; i++) {
        const qkv_candidate swap = p->list[i];
        p->list[i] = p->list[n - 1 - i];
        p->list[n - 1 - i] = swap;
    }
    p->n = taken;
}

static void key_by_logit(pool *p) {
    for (int64_t i = 0; i < p->n; i++) p->list[i].key = p->list[i].logit;
}

static real largest(const pool *p) {
    real top = -INFINITY;
    for (int64_t i = 0; i < p->n; i++)
        if (p->list[i].logit > top) top = p->list[i].logit;
    return top;
}

/* The weight of each and (in key) its logarithm; returns their sum. */
static double weigh(pool *p) {
    const real top = largest(p);
    double sum = 0;
    for (int64_t i = 0; i < p->n; i++) p->run[i] = p->list[i].key = p->list[i].logit - top;
    qkv_kern_get()->exp(p->run, p->run, p->n);
    for (int64_t i = 0; i < p->n; i++) sum += (double)(p->list[i].weight = p->run[i]);
    return sum;
}

/* ---- the rows ---- */

static void apply_repetition(pool *p, double value) {
    for (int64_t i = 0; i < p->n_recent; i++) p->seen[p->recent[i]] = 1;
    for (int64_t i = 0; i < p->n; i++) {
        qkv_candidate *c = &p->list[i];
        if (p->seen[c->id])
            c->logit = c->logit > 0 ? c->logit / (real)value : c->logit * (real)value;
    }
    for (int64_t i = 0; i < p->n_recent; i++) p->seen[p->recent[i]] = 0;
}

static void apply_temperature(pool *p, double value) {
    for (int64_t i = 0; i < p->n; i++) p->list[i].logit = (real)((double)p->list[i].logit / value);
}

static void apply_top_k(pool *p, double value) {
    key_by_logit(p);
    keep_best(p, (int64_t)value, 0);
}

/* Locally typical sampling (Meister et al. 2022): nearest to the entropy H = −Σ p log p first. */
static void apply_typical(pool *p, double value) {
    if (value >= 1) return;
    const double sum = weigh(p);
    double entropy = 0;
    for (int64_t i = 0; i < p->n; i++)
        entropy -= (double)p->list[i].weight / sum * ((double)p->list[i].key - log(sum));
    for (int64_t i = 0; i < p->n; i++)
        p->list[i].key = (real)-fabs(log(sum) - (double)p->list[i].key - entropy);
    keep_best(p, p->n, value);
}

static void apply_top_p(pool *p, double value) {
    if (value >= 1) return;
    weigh(p);
    key_by_logit(p);
    keep_best(p, p->n, value);
}

static void apply_min_p(pool *p, double value) {
    const double least = (double)largest(p) + log(value);
    int64_t kept = 0;
    for (int64_t i = 0; i < p->n; i++)
        if ((double)p->list[i].logit >= least) p->list[kept++] = p->list[i];
    p->n = kept;
}

static const struct {
    const char *name;
    double largest;
    void (*apply)(pool *p, double value);
} rows[] = {
#define SAMPLER(name, largest, help) {#name, largest, apply_##name},
#include "decode/sample.def"
#undef SAMPLER
};

qkv_status qkv_sampling_check(const qkv_sampling *s) {
    for (int i = 0; i < QKV_SAMPLERS; i++)
        if (!(s->value[i] >= 0 && s->value[i] <= rows[i].largest))
            return qkv_fail(QKV_USAGE, "sampling: %s must lie between 0 and %.10g, not %.10g",
                            rows[i].name, rows[i].largest, s->value[i]);
    return QKV_OK;
}

/* ---- drawing ---- */

qkv_status qkv_sampler_init(qkv_sampler *s, int64_t vocab) {
    *s = (qkv_sampler){.n = vocab};
    QKV_TRY_ALLOC(s->list = qkv_zalloc((size_t)vocab, sizeof *s->list));
    QKV_TRY_ALLOC(s->run = qkv_zalloc((size_t)vocab, sizeof *s->run));
    QKV_TRY_ALLOC(s->seen = qkv_zalloc((size_t)vocab, sizeof *s->seen));
    return QKV_OK;
}

void qkv_sampler_free(qkv_sampler *s) {
    qkv_free(s->list);
    qkv_free(s->run);
    qkv_free(s->seen);
    *s = (qkv_sampler){0};
}

static int32_t likeliest(const pool *p) {
    const qkv_candidate *best = &p->list[0];
    for (int64_t i = 1; i < p->n; i++)
        if (p->list[i].logit > best->logit) best = &p->list[i];
    return best->id;
}

int32_t qkv_sampler_draw(qkv_sampler *s, const qkv_sampling *how, const real *logits,
                         const int32_t *recent, int64_t n_recent, uint64_t index) {
    pool p = {
        .list = s->list, .run = s->run, .recent = recent, .n_recent = n_recent, .seen = s->seen};
    for (int64_t id = 0; id < s->n; id++)
        if (logits[id] > -INFINITY)
            p.list[p.n++] = (qkv_candidate){.logit = logits[id], .id = (int32_t)id};
    if (p.n == 0) return -1;
    const bool greedy = how->value[QKV_SAMPLER_temperature] == 0;
    for (int i = 0; i < QKV_SAMPLERS; i++)
        if (how->value[i] > 0) rows[i].apply(&p, how->value[i]);
    if (greedy) return likeliest(&p);
    double at = qkv_rng_uniform((qkv_rng){.seed = how->seed, .stream = 0x73616d706c65u}, index);
    at *= weigh(&p);
    for (int64_t i = 0; i < p.n; i++) {
        at -= (double)p.list[i].weight;
        if (at < 0) return p.list[i].id;
    }
    return p.list[p.n - 1].id; /* rounding */
}
