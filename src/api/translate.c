/* Translation of texts: encode, sort by length, search in batches, write the results in the order of the texts.
 *
 * Batches are independent of each other, so each runs on one thread with a session of its own where there are enough of
 * them; a single batch uses all threads inside. Neither changes a bit of the results. */
#include "api/translate.h"
#include "api/constraints.h"
#include "base/mem.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

enum {
    BATCH_ROWS =
        128, /* hypotheses decoded side by side: enough for the matrix products to run at full speed */
    BATCH_TOKENS = 4096,   /* source tokens of a batch */
    CACHE_BYTES = 96 << 20 /* of a session's keys and values */
};

typedef struct batch {
    size_t from, n; /* in job.order */
} batch;

typedef struct job {
    const qkv_text_model *m;
    const qkv_translate_options *options;
    const qkv_text *texts;
    size_t n;
    qkv_search_spec spec;
    qkv_constraints constraints;
    qkv_encoding *sources, *prefixes; /* ids, the end of text included */
    qkv_search_item *items;
    size_t *order; /* texts that have tokens, longest first */
    size_t n_order;
    batch *batches;
    size_t n_batches, next;
    qkv_translations *out;
    void **blocks;
    qkv_status status; /* of the first batch that failed */
    char error[1024];
} job;

/* ---- options ---- */

static qkv_status check(const qkv_text_model *m, const qkv_translate_options *o) {
    if (qkv_model_config(m->model)->task != QKV_TASK_TRANSLATE)
        return qkv_fail(QKV_USAGE, "this model was trained to %s, not to translate",
                        qkv_text_model_task(m));
    if (m->spec.eos < 0)
        return qkv_fail(
            QKV_BAD_FILE,
            "the model's tokenizer has no end-of-text token, so no translation would end");
    if (o->beam < 0 || o->beam > QKV_BEAM_MAX || o->nbest < 0 || o->min_tokens < 0 ||
        o->max_tokens < 0)
        return qkv_fail(QKV_USAGE, "translate: beam must be 1 to %d, nbest and tokens not negative",
                        QKV_BEAM_MAX);
    const int32_t beam = o->beam ? o->beam : 5;
    if (o->nbest > beam)
        return qkv_fail(QKV_USAGE, "translate: the %d best of a beam of %d; make the beam as wide",
                        (int)o->nbest, (int)beam);
    if (!(o->coverage >= 0) || !(o->alpha > -100 && o->alpha < 100))
        return qkv_fail(
            QKV_USAGE,
            "translate: alpha must lie between -100 and 100, coverage must not be negative");
    return QKV_OK;
}

static qkv_status make_spec(job *j) {
    const qkv_translate_options *o = j->options;
    QKV_TRY(
        qkv_constraints_make(j->m, o->forbidden, o->n_forbidden, o->no_unknown, &j->constraints));
    j->spec = (qkv_search_spec){.beam = o->beam ? o->beam : 5,
                                .nbest = o->nbest ? o->nbest : 1,
                                .penalty = o->penalty,
                                .alpha = o->alpha != 0 ? o->alpha : 1,
                                .coverage = o->coverage,
                                .eos = j->m->spec.eos,
                                .min_length = o->min_tokens,
                                .never = j->constraints.never,
                                .forbidden = qkv_constraints_phrases(&j->constraints),
                                .align = o->align};
    return QKV_OK;
}

/* ---- texts ---- */

static qkv_status encode_all(job *j) {
    const qkv_config *c = qkv_model_config(j->m->model);
    QKV_TRY_ALLOC(j->sources = qkv_zalloc(j->n, sizeof *j->sources));
    QKV_TRY_ALLOC(j->prefixes = qkv_zalloc(j->n, sizeof *j->prefixes));
    qkv_encode_options how = {
        .no_special = true, .offsets = j->options->align, .max_tokens = (size_t)c->max_len - 1};
    if (how.max_tokens == 0) how.max_tokens = 1;
    QKV_TRY(qkv_tokenizer_encode_batch(j->m->tokenizer, j->texts, j->n, &how, j->sources));
    if (!j->options->prefixes) return QKV_OK;
    how.offsets = false;
    return qkv_tokenizer_encode_batch(j->m->tokenizer, j->options->prefixes, j->n, &how,
                                      j->prefixes);
}

/* What the search gets: the source ends with the end of text, the translation goes on from the beginning of text. */
static qkv_status make_items(job *j) {
    const qkv_config *c = qkv_model_config(j->m->model);
    const int32_t *begin = j->m->spec.bos >= 0 ? &j->m->spec.bos : &j->m->spec.eos;
    QKV_TRY_ALLOC(j->items = qkv_zalloc(j->n, sizeof *j->items));
    QKV_TRY_ALLOC(j->order = qkv_alloc(j->n * sizeof *j->order));
    for (size_t i = 0; i < j->n; i++) {
        qkv_encoding *e = &j->sources[i];
        if (e->n == 0) continue; /* nothing to translate */
        int32_t *ids = qkv_realloc(e->ids, (e->n + 1) * sizeof *ids);
        if (!ids) return QKV_FAILED;
        e->ids = ids;
        if (!j->m->spec.bare_source) ids[e->n] = j->m->spec.eos;
        int64_t most = j->options->max_tokens ? j->options->max_tokens : 2 * (int64_t)e->n + 20;
        /* Learned positions end there. */
        if (c->arch == QKV_ARCH_TRANSFORMER && c->position == QKV_POSITION_LEARNED &&
            most > c->max_len)
            most = c->max_len;
        j->items[i] = (qkv_search_item){.src = ids,
                                        .n_src = (int32_t)e->n + (j->m->spec.bare_source ? 0 : 1),
                                        .begin = begin,
                                        .n_begin = 1,
                                        .prefix = j->prefixes[i].ids,
                                        .n_prefix = (int32_t)j->prefixes[i].n,
                                        .max_length = (int32_t)most};
        j->order[j->n_order++] = i;
    }
    return QKV_OK;
}

static int longer_first(const void *a, const void *b, void *items) {
    const size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const int32_t n = ((const qkv_search_item *)items)[i].n_src,
                  m = ((const qkv_search_item *)items)[k].n_src;
    if (n != m) return n < m ? 1 : -1;
    return i < k ? -1 : i > k;
}

/* Cuts the sorted texts into batches. */
static qkv_status make_batches(job *j) {
    const qkv_config *c = qkv_model_config(j->m->model);
    qsort_r(j->order, j->n_order, sizeof *j->order, longer_first, j->items);
    QKV_TRY_ALLOC(j->batches = qkv_alloc((j->n_order + 1) * sizeof *j->batches));
    const size_t threads = (size_t)qkv_threads(), beam = (size_t)j->spec.beam;
    const size_t each = (j->n_order + threads - 1) / threads; /* work for all threads */
    const size_t layers = (size_t)(c->decoder_layers ? c->decoder_layers : c->layers);
    const size_t per_token = beam * layers * 4 * (size_t)c->d_model * sizeof(real);
    for (size_t from = 0; from < j->n_order;) {
        const qkv_search_item *longest = &j->items[j->order[from]];
        size_t n = BATCH_ROWS / beam, tokens = (size_t)longest->n_src;
        const size_t bytes = ((size_t)longest->max_length + 1) * per_token;
        if (n > each) n = each;
        if (n > BATCH_TOKENS / tokens) n = BATCH_TOKENS / tokens;
        if (n > CACHE_BYTES / bytes) n = CACHE_BYTES / bytes;
        if (n < 1) n = 1;
        if (n > j->n_order - from) n = j->n_order - from;
        j->batches[j->n_batches++] = (batch){from, n};
        from += n;
    }
    return QKV_OK;
}

/* ---- running ---- */

static qkv_status run_batch(job *j, qkv_session *s, const batch *b, qkv_arena *arena) {
    const size_t nbest = (size_t)j->spec.nbest;
    qkv_search_item *items = qkv_arena_alloc(arena, b->n * sizeof *items);
    qkv_hypothesis *found = qkv_arena_alloc(arena, b->n * nbest * sizeof *found);
    if (!items || !found) return QKV_FAILED;
    for (size_t i = 0; i < b->n; i++) items[i] = j->items[j->order[b->from + i]];
    QKV_TRY(qkv_beam_search(s, &j->spec, items, (int32_t)b->n, arena, found));
    for (size_t i = 0; i < b->n; i++) {
        const size_t text = j->order[b->from + i];
        QKV_TRY(qkv_translation_write(j->m, &j->texts[text], &j->sources[text], found + i * nbest,
                                      nbest, (size_t)items[i].n_src, j->out->at + text * nbest,
                                      &j->blocks[text]));
    }
    return QKV_OK;
}

/* Takes batches until there are none left, or one failed. */
static void work(job *j) {
    qkv_session *s = NULL;
    qkv_arena arena;
    qkv_arena_init(&arena);
    qkv_status status = qkv_session_new(j->m->model, &s);
    while (status == QKV_OK && __atomic_load_n(&j->status, __ATOMIC_RELAXED) == QKV_OK) {
        const size_t i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
        if (i >= j->n_batches) break;
        status = run_batch(j, s, &j->batches[i], &arena);
        qkv_arena_reset(&arena);
    }
    if (status != QKV_OK) {
#pragma omp critical(qkv_translate_error)
        if (j->status == QKV_OK) {
            strncpy(j->error, qkv_error(), sizeof j->error - 1);
            __atomic_store_n(&j->status, status, __ATOMIC_RELAXED);
        }
    }
    qkv_session_free(s);
    qkv_arena_free(&arena);
}

static qkv_status run_all(job *j) {
    const int threads = qkv_threads();
    const int64_t workers = j->n_batches < (size_t)threads ? (int64_t)j->n_batches : threads;
    if (workers <= 1) {
        if (workers == 1) work(j);
    } else {
        QKV_PARALLEL_FOR_UNEVEN
        for (int64_t w = 0; w < workers; w++) {
            const int before = qkv_threads();
            qkv_threads_set(1);
            work(j);
            qkv_threads_set(before);
        }
    }
    return j->status == QKV_OK ? QKV_OK : qkv_fail(j->status, "%s", j->error);
}

static qkv_status translate(job *j) {
    QKV_TRY(make_spec(j));
    QKV_TRY(encode_all(j));
    QKV_TRY(make_items(j));
    QKV_TRY(make_batches(j));
    qkv_translations *out = j->out;
    *out = (qkv_translations){.n = j->n, .nbest = (size_t)j->spec.nbest};
    QKV_TRY_ALLOC(out->memory = j->blocks = qkv_zalloc(j->n, sizeof *j->blocks));
    QKV_TRY_ALLOC(out->at = qkv_zalloc(j->n * out->nbest, sizeof *out->at));
    for (size_t i = 0; i < j->n; i++)
        if (j->sources[i].n == 0) out->at[i * out->nbest].text = ""; /* nothing becomes nothing */
    return run_all(j);
}

qkv_status qkv_translate(const qkv_text_model *m, const qkv_text *texts, size_t n,
                         const qkv_translate_options *options, qkv_translations *out) {
    static const qkv_translate_options standard;
    *out = (qkv_translations){0};
    job j = {.m = m, .options = options ? options : &standard, .texts = texts, .n = n, .out = out};
    QKV_TRY(check(m, j.options));
    if (n == 0) return QKV_OK;
    const qkv_status status = translate(&j);
    for (size_t i = 0; i < n; i++) {
        if (j.sources) qkv_encoding_free(&j.sources[i]);
        if (j.prefixes) qkv_encoding_free(&j.prefixes[i]);
    }
    qkv_free(j.sources);
    qkv_free(j.prefixes);
    qkv_free(j.items);
    qkv_free(j.order);
    qkv_free(j.batches);
    qkv_constraints_free(&j.constraints);
    if (status != QKV_OK) qkv_translations_free(out);
    return status;
}

void qkv_translations_free(qkv_translations *t) {
    void **blocks = t->memory;
    for (size_t i = 0; blocks && i < t->n; i++) qkv_free(blocks[i]);
    qkv_free(blocks);
    qkv_free(t->at);
    *t = (qkv_translations){0};
}
