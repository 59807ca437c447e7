/* Shortlists; see shortlist.h.
 *
 * IBM model 1 (Brown et al. 1993): each target token comes from one token of the source, all
 * equally likely beforehand. With p(t | s) the chance that s becomes t, a target token t of a pair
 * with source S was made by s with
 *
 *     p(t | s) / Σ_{s' ∈ S} p(t | s'),
 *
 * and summing these over all pairs gives better p(t | s). The first round, from equal chances,
 * counts which tokens stand together; of it the KEPT best of each source token go on to the next
 * rounds, so that memory is bounded by the vocabulary. A token that stands twice in a source counts
 * twice. One source token is worked on at a time, over the examples that have it: no table of all
 * pairs is needed. Of more than EXAMPLES_MAX examples every second, third … is used. */
#include "task/shortlist.h"
#include "task/companion.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { KEPT = 256, ROUNDS = 4, EXAMPLES_MAX = 200000 };

typedef struct link {
    float chance;
    int32_t target;
} link;

/* The links of one source token: by target while learning. */
typedef struct row {
    link *links;
    int32_t n;
} row;

typedef struct learner {
    const qkv_encoded *pairs;
    int32_t sources, targets;
    int64_t stride; /* from one example that is used to the next */
    int64_t *from;  /* by source token: its first place in `where`; sources + 1 */
    int32_t *where; /* examples that have the token, once for each time */
    row *rows;
    double *sum;   /* by target token: of the source token at work */
    int32_t *seen; /* target tokens whose sum is not 0 */
    int32_t n_seen;
    int64_t *first;     /* by example: its first place in `total` */
    float *total;       /* by target place: Σ_{s' ∈ S} p(t | s') */
    int64_t *frequency; /* by target token */
} learner;

/* ---- order ---- */

static int likelier(const void *a, const void *b) {
    const link *x = a, *y = b;
    if (x->chance != y->chance) return x->chance > y->chance ? -1 : 1;
    return x->target < y->target ? -1 : x->target > y->target;
}

static int by_target(const void *a, const void *b) {
    const link *x = a, *y = b;
    return x->target < y->target ? -1 : x->target > y->target;
}

static int by_number(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- what stands where ---- */

static bool is_token(int32_t id, int32_t vocab) {
    return id >= 0 && id < vocab;
}

static qkv_status index_pairs(learner *l) {
    const qkv_encoded *e = l->pairs;
    QKV_TRY_ALLOC(l->from = qkv_zalloc((size_t)l->sources + 2, sizeof *l->from));
    QKV_TRY_ALLOC(l->first = qkv_zalloc((size_t)e->n + 1, sizeof *l->first));
    for (int64_t i = 0; i < e->n; i++) {
        int64_t n, m;
        const int32_t *ids = qkv_encoded_ids(e, i, 0, &n);
        for (int64_t k = 0; k < n && i % l->stride == 0; k++)
            if (is_token(ids[k], l->sources)) l->from[ids[k] + 2]++;
        qkv_encoded_ids(e, i, 1, &m);
        l->first[i + 1] = l->first[i] + m;
    }
    for (int32_t s = 0; s < l->sources; s++) l->from[s + 2] += l->from[s + 1];
    QKV_TRY_ALLOC(l->where = qkv_zalloc((size_t)l->from[l->sources + 1] + 1, sizeof *l->where));
    for (int64_t i = 0; i < e->n; i += l->stride) {
        int64_t n;
        const int32_t *ids = qkv_encoded_ids(e, i, 0, &n);
        for (int64_t k = 0; k < n; k++)
            if (is_token(ids[k], l->sources)) l->where[l->from[ids[k] + 1]++] = (int32_t)i;
    }
    QKV_TRY_ALLOC(l->total = qkv_zalloc((size_t)l->first[e->n] + 1, sizeof *l->total));
    QKV_TRY_ALLOC(l->sum = qkv_zalloc((size_t)l->targets, sizeof *l->sum));
    QKV_TRY_ALLOC(l->seen = qkv_zalloc((size_t)l->targets, sizeof *l->seen));
    QKV_TRY_ALLOC(l->frequency = qkv_zalloc((size_t)l->targets, sizeof *l->frequency));
    QKV_TRY_ALLOC(l->rows = qkv_zalloc((size_t)l->sources, sizeof *l->rows));
    return QKV_OK;
}

/* ---- rounds ---- */

static float chance_of(const row *r, int32_t target) {
    const link wanted = {.target = target};
    const link *found =
        r->n ? bsearch(&wanted, r->links, (size_t)r->n, sizeof wanted, by_target) : NULL;
    return found ? found->chance : 0;
}

/* How likely each target place is, by all of its source;
 * in the first round all tokens are alike. */
static void weigh_places(learner *l, bool first) {
    for (int64_t i = 0; i < l->pairs->n; i += l->stride) {
        int64_t n, m;
        const int32_t *source = qkv_encoded_ids(l->pairs, i, 0, &n);
        const int32_t *target = qkv_encoded_ids(l->pairs, i, 1, &m);
        for (int64_t k = 0; k < m; k++) {
            float sum = first ? (float)n : 0;
            for (int64_t s = 0; s < n && !first; s++)
                if (is_token(source[s], l->sources))
                    sum += chance_of(&l->rows[source[s]], target[k]);
            l->total[l->first[i] + k] = sum;
            if (first && is_token(target[k], l->targets)) l->frequency[target[k]]++;
        }
    }
}

/* Adds up what source token s made, by target token. */
static void add_up(learner *l, int32_t s, bool first) {
    for (int64_t w = l->from[s]; w < l->from[s + 1]; w++) {
        const int64_t i = l->where[w];
        int64_t m;
        const int32_t *target = qkv_encoded_ids(l->pairs, i, 1, &m);
        for (int64_t k = 0; k < m; k++) {
            const int32_t t = target[k];
            if (!is_token(t, l->targets)) continue;
            const float chance = first ? 1 : chance_of(&l->rows[s], t);
            if (!(chance > 0)) continue;
            if (l->sum[t] == 0) l->seen[l->n_seen++] = t;
            l->sum[t] += (double)chance / (double)l->total[l->first[i] + k];
        }
    }
}

/* Makes the sums the token's new links: chances that sum to 1, of the likeliest only, by target. */
static qkv_status take_links(learner *l, int32_t s, link *spare) {
    double all = 0;
    const int32_t n = l->n_seen;
    for (int32_t k = 0; k < n; k++) all += l->sum[l->seen[k]];
    for (int32_t k = 0; k < n; k++) {
        spare[k] = (link){(float)(l->sum[l->seen[k]] / all), l->seen[k]};
        l->sum[l->seen[k]] = 0;
    }
    l->n_seen = 0;
    qsort(spare, (size_t)n, sizeof *spare, likelier);
    row *r = &l->rows[s];
    r->n = n < KEPT ? n : KEPT;
    if (r->n == 0) return QKV_OK;
    if (!r->links) QKV_TRY_ALLOC(r->links = qkv_alloc((size_t)r->n * sizeof *r->links));
    memcpy(r->links, spare, (size_t)r->n * sizeof *spare);
    qsort(r->links, (size_t)r->n, sizeof *r->links, by_target);
    return QKV_OK;
}

static qkv_status learn(learner *l) {
    QKV_TRY(index_pairs(l));
    link *spare = qkv_alloc((size_t)l->targets * sizeof *spare);
    qkv_status status = spare ? QKV_OK : QKV_FAILED;
    for (int round = 0; round < ROUNDS && status == QKV_OK; round++) {
        weigh_places(l, round == 0);
        for (int32_t s = 0; s < l->sources && status == QKV_OK; s++) {
            add_up(l, s, round == 0);
            status = take_links(l, s, spare);
        }
    }
    qkv_free(spare);
    return status;
}

/* ---- writing ---- */

/* The most frequent targets, ascending; returns how many. */
static int32_t choose_frequent(const learner *l, link *spare, int32_t *out) {
    int32_t n = 0;
    for (int32_t t = 0; t < l->targets; t++)
        if (l->frequency[t]) spare[n++] = (link){(float)l->frequency[t], t};
    qsort(spare, (size_t)n, sizeof *spare, likelier);
    if (n > QKV_SHORTLIST_FREQUENT) n = QKV_SHORTLIST_FREQUENT;
    for (int32_t k = 0; k < n; k++) out[k] = spare[k].target;
    qsort(out, (size_t)n, sizeof *out, by_number);
    return n;
}

static qkv_status write(learner *l, const char *path) {
    const size_t most = (size_t)l->sources * QKV_SHORTLIST_WIDTH;
    int32_t *start = qkv_alloc(((size_t)l->sources + 1) * sizeof *start);
    int32_t *targets = qkv_alloc((most + 1) * sizeof *targets);
    link *spare = qkv_alloc((size_t)l->targets * sizeof *spare);
    int32_t frequent[QKV_SHORTLIST_FREQUENT + 1] = {0};
    qkv_status status = start && targets && spare ? QKV_OK : QKV_FAILED;
    int32_t n = 0;
    for (int32_t s = 0; s < l->sources && status == QKV_OK; s++) {
        row *r = &l->rows[s];
        start[s] = n;
        if (r->n == 0) continue;
        qsort(r->links, (size_t)r->n, sizeof *r->links, likelier);
        for (int32_t k = 0; k < r->n && k < QKV_SHORTLIST_WIDTH; k++)
            targets[n++] = r->links[k].target;
        qsort(targets + start[s], (size_t)(n - start[s]), sizeof *targets, by_number);
    }
    if (status == QKV_OK) {
        start[l->sources] = n;
        const int32_t n_frequent = choose_frequent(l, spare, frequent);
        const qkv_to_store tensors[] = {
            {"frequent", QKV_DTYPE_I32, 1, {n_frequent}, frequent},
            {"start", QKV_DTYPE_I32, 1, {l->sources + 1}, start},
            {"targets", QKV_DTYPE_I32, 1, {n}, targets},
        };
        status = qkv_safetensors_write(path, tensors, 3, NULL);
    }
    qkv_free(start);
    qkv_free(targets);
    qkv_free(spare);
    return status;
}

qkv_status qkv_shortlist_learn(const qkv_encoded *pairs, int32_t source_vocab, int32_t target_vocab,
                               const char *path) {
    if (pairs->sides != 2 || pairs->n > INT32_MAX || source_vocab < 1 || target_vocab < 1)
        return qkv_fail(QKV_USAGE, "shortlist: %d sides, %lld examples; it needs pairs of texts",
                        pairs->sides, (long long)pairs->n);
    learner l = {.pairs = pairs,
                 .sources = source_vocab,
                 .targets = target_vocab,
                 .stride = (pairs->n + EXAMPLES_MAX - 1) / EXAMPLES_MAX};
    if (l.stride == 0) l.stride = 1;
    qkv_status status = learn(&l);
    if (status == QKV_OK) status = write(&l, path);
    for (int32_t s = 0; l.rows && s < l.sources; s++) qkv_free(l.rows[s].links);
    qkv_free(l.rows);
    qkv_free(l.from);
    qkv_free(l.where);
    qkv_free(l.first);
    qkv_free(l.total);
    qkv_free(l.sum);
    qkv_free(l.seen);
    qkv_free(l.frequency);
    return status;
}

/* ---- reading ---- */

/* A list of numbers of the file. */
static qkv_status find(const qkv_safetensors *file, const char *name, const int32_t **out,
                       int64_t *n) {
    const qkv_stored *t = qkv_safetensors_find(file, name);
    if (!t || t->dtype != QKV_DTYPE_I32 || t->rank != 1 || (uintptr_t)t->data % sizeof **out)
        return qkv_fail(QKV_BAD_FILE, "there is no list of 32-bit integers \"%s\"", name);
    *out = t->data;
    *n = t->elements;
    return QKV_OK;
}

static qkv_status check(qkv_shortlist *s) {
    int64_t n_start = 0, n_targets = 0, n_frequent = 0;
    QKV_TRY(find(&s->file, "start", &s->start, &n_start));
    QKV_TRY(find(&s->file, "targets", &s->targets, &n_targets));
    QKV_TRY(find(&s->file, "frequent", &s->frequent, &n_frequent));
    bool sound = n_start == (int64_t)s->source_vocab + 1 && n_frequent <= s->target_vocab &&
                 s->start[0] == 0 && s->start[n_start - 1] == n_targets;
    for (int64_t i = 1; i < n_start && sound; i++) sound = s->start[i] >= s->start[i - 1];
    for (int64_t i = 0; i < n_targets && sound; i++)
        sound = is_token(s->targets[i], s->target_vocab);
    for (int64_t i = 0; i < n_frequent && sound; i++)
        sound = is_token(s->frequent[i], s->target_vocab);
    s->n_frequent = (int32_t)n_frequent;
    return sound
               ? QKV_OK
               : qkv_fail(QKV_BAD_FILE, "its lists do not fit each other or the vocabulary; train "
                                        "again, or remove the file");
}

qkv_status qkv_shortlist_open(const char *path, int32_t source_vocab, int32_t target_vocab,
                              qkv_shortlist *out) {
    *out = (qkv_shortlist){.source_vocab = source_vocab, .target_vocab = target_vocab};
    QKV_TRY(qkv_safetensors_open(path, &out->file));
    qkv_status status = check(out);
    if (status == QKV_OK) return QKV_OK;
    status = qkv_fail_in(status, "%s", path);
    qkv_shortlist_close(out);
    return status;
}

void qkv_shortlist_close(qkv_shortlist *s) {
    qkv_safetensors_close(&s->file);
    *s = (qkv_shortlist){0};
}

void qkv_shortlist_mark(const qkv_shortlist *s, const int32_t *ids, int64_t n, uint8_t *mark) {
    for (int32_t k = 0; k < s->n_frequent; k++) mark[s->frequent[k]] = 1;
    for (int64_t i = 0; i < n; i++) {
        if (!is_token(ids[i], s->source_vocab)) continue;
        for (int32_t k = s->start[ids[i]]; k < s->start[ids[i] + 1]; k++) mark[s->targets[k]] = 1;
    }
}

static bool wanted(const qkv_config *c) {
    (void)c;
    return true;
}

static qkv_status learn_file(const qkv_encoded *train, const qkv_config *c, const char *path) {
    const int64_t targets = c->target_vocab_size ? c->target_vocab_size : c->vocab_size;
    return qkv_shortlist_learn(train, (int32_t)c->vocab_size, (int32_t)targets, path);
}

const qkv_companion qkv_companion_shortlist = {
    .name = "shortlist",
    .wanted = wanted,
    .file = QKV_SHORTLIST_FILE,
    .learn = learn_file,
};
