/* Batches of searches; see batches.h. */
#include "decode/batches.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/queue.h"
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
    qkv_queue queue; /* of batches */
    qkv_session *crew[QKV_THREADS_MAX];
    qkv_found_fn found;
    void *user;
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
        j->batches[j->queue.n++] = (batch){from, size < left ? size : left};
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

static void work(void *user, int worker) {
    job *j = user;
    qkv_status status = QKV_OK;
    qkv_arena arena;
    size_t i;
    qkv_arena_init(&arena);
    while (status == QKV_OK && qkv_queue_take(&j->queue, &i)) {
        status = run_batch(j, j->crew[worker], &j->batches[i], &arena);
        qkv_arena_reset(&arena);
    }
    qkv_queue_note(&j->queue, status);
    qkv_arena_free(&arena);
}

/* The workers' sessions stay for the next search: memory that was used before costs less than new
 * one. */
static qkv_status run_all(job *j) {
    j->crew[0] = j->session;
    for (int w = 1; w < qkv_queue_workers(&j->queue); w++) {
        qkv_session **const next = &j->crew[w - 1]->next;
        if (!*next) QKV_TRY(qkv_session_new(j->model, next));
        j->crew[w] = *next;
    }
    return qkv_queue_run(&j->queue, work, j);
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
    if (status == QKV_OK && j.queue.n) status = run_all(&j);
    qkv_free(j.order);
    qkv_free(j.batches);
    return status;
}
