/* Batches of searches; see batches.h. */
#include "decode/batches.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"

enum {
    BATCH_ROWS = 128,      /* hypotheses side by side: enough for products to run at full speed */
    BATCH_TOKENS = 4096,   /* source tokens of a batch */
    CACHE_BYTES = 96 << 20 /* of a session's keys and values */
};

typedef struct batch {
    size_t from, n; /* in job.order */
} batch;

typedef struct job {
    qkv_session *session;
    qkv_model *model;
    const qkv_search_spec *spec;
    const qkv_search_item *items;
    size_t *order; /* longest first */
    size_t n_order;
    batch *batches;
    size_t n_batches, next;
    qkv_found_fn found;
    void *user;
    qkv_status status; /* of the first batch that failed */
    char error[1024];
} job;

/* ---- cutting ---- */

static int longer_first(const void *a, const void *b, void *items) {
    const size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const qkv_search_item *x = (const qkv_search_item *)items + i,
                          *y = (const qkv_search_item *)items + k;
    if (x->n_src != y->n_src) return x->n_src < y->n_src ? 1 : -1;
    if (x->max_length != y->max_length) return x->max_length < y->max_length ? 1 : -1;
    return i < k ? -1 : i > k;
}

/* How many texts like this one, the longest of them, make a batch. */
static size_t batch_size(const job *j, const qkv_search_item *longest) {
    const qkv_config *c = qkv_model_config(j->model);
    const size_t threads = (size_t)qkv_threads(), beam = (size_t)j->spec->beam;
    const size_t layers = (size_t)(c->decoder_layers ? c->decoder_layers : c->layers);
    const size_t per_token = beam * layers * 4 * (size_t)c->d_model * sizeof(real);
    const size_t tokens = (size_t)longest->max_length + (size_t)longest->n_begin;
    /* As many for every thread, and all of a size: none waits for the last. */
    const size_t rows = beam < BATCH_ROWS ? BATCH_ROWS / beam : 1,
                 batches = (j->n_order + threads * rows - 1) / (threads * rows) * threads;
    const size_t limits[] = {(j->n_order + batches - 1) / batches,
                             BATCH_TOKENS / (size_t)(longest->n_src + longest->n_begin),
                             CACHE_BYTES / (tokens * per_token)};
    size_t n = j->n_order;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i] < n) n = limits[i];
    return n ? n : 1;
}

static qkv_status cut(job *j, size_t n) {
    QKV_TRY_ALLOC(j->order = qkv_alloc((n + 1) * sizeof *j->order));
    QKV_TRY_ALLOC(j->batches = qkv_alloc((n + 1) * sizeof *j->batches));
    for (size_t i = 0; i < n; i++)
        if (j->items[i].n_begin) j->order[j->n_order++] = i;
    qsort_r(j->order, j->n_order, sizeof *j->order, longer_first, (void *)j->items);
    for (size_t from = 0; from < j->n_order;) {
        const size_t left = j->n_order - from, size = batch_size(j, &j->items[j->order[from]]);
        j->batches[j->n_batches++] = (batch){from, size < left ? size : left};
        from += size < left ? size : left;
    }
    return QKV_OK;
}

/* ---- running ---- */

static qkv_status run_batch(job *j, qkv_session *s, const batch *b, qkv_arena *arena) {
    const size_t nbest = (size_t)j->spec->nbest;
    qkv_search_item *items = qkv_arena_alloc(arena, b->n * sizeof *items);
    qkv_hypothesis *found = qkv_arena_alloc(arena, b->n * nbest * sizeof *found);
    if (!items || !found) return QKV_FAILED;
    for (size_t i = 0; i < b->n; i++) items[i] = j->items[j->order[b->from + i]];
    QKV_TRY(qkv_beam_search(s, j->spec, items, (int32_t)b->n, arena, found));
    for (size_t i = 0; i < b->n; i++)
        QKV_TRY(j->found(j->user, j->order[b->from + i], found + i * nbest));
    return QKV_OK;
}

/* Takes batches until there are none left, or one failed. */
static void work(job *j, qkv_session *s) {
    qkv_status status = QKV_OK;
    qkv_arena arena;
    qkv_arena_init(&arena);
    while (status == QKV_OK && __atomic_load_n(&j->status, __ATOMIC_RELAXED) == QKV_OK) {
        const size_t i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
        if (i >= j->n_batches) break;
        status = run_batch(j, s, &j->batches[i], &arena);
        qkv_arena_reset(&arena);
    }
    if (status != QKV_OK) {
#pragma omp critical(qkv_search_error)
        if (j->status == QKV_OK) {
            strncpy(j->error, qkv_error(), sizeof j->error - 1);
            __atomic_store_n(&j->status, status, __ATOMIC_RELAXED);
        }
    }
    qkv_arena_free(&arena);
}

/* Workers on one thread each, when there is a batch for every thread. Their sessions stay for the next
 * search: memory that was used before costs less than new one. */
static qkv_status run_all(job *j) {
    const int threads = qkv_threads();
    if (j->n_batches < (size_t)threads || threads == 1) {
        work(j, j->session);
        return QKV_OK;
    }
    qkv_session *crew[QKV_THREADS_MAX] = {j->session};
    for (int w = 1; w < threads; w++) {
        qkv_session **const next = &crew[w - 1]->next;
        if (!*next) QKV_TRY(qkv_session_new(j->model, next));
        crew[w] = *next;
    }
    QKV_PARALLEL_FOR_UNEVEN
    for (int w = 0; w < threads; w++) {
        qkv_threads_set(1);
        work(j, crew[w]);
        qkv_threads_set(threads);
    }
    return QKV_OK;
}

qkv_status qkv_search_all(qkv_session *s, const qkv_search_spec *spec, const qkv_search_item *items,
                          size_t n, qkv_found_fn found, void *user) {
    job j = {.session = s,
             .model = s->model,
             .spec = spec,
             .items = items,
             .found = found,
             .user = user};
    if (spec->beam < 1) return qkv_fail(QKV_USAGE, "search: a beam of %d", (int)spec->beam);
    qkv_status status = cut(&j, n);
    if (status == QKV_OK && j.n_batches) {
        status = run_all(&j);
        if (j.status != QKV_OK) status = qkv_fail(j.status, "%s", j.error);
    }
    qkv_free(j.order);
    qkv_free(j.batches);
    return status;
}
