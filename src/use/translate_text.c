/* Translation of texts: encode, search, write the results in the order of the texts. */
#include "use/translate_text.h"
#include "use/constraints.h"
#include "use/predict.h"
#include "base/mem.h"
#include "decode/batches.h"

#include <string.h>

typedef struct job {
    const qkv_text_model *m;
    const qkv_translate_options *options;
    const qkv_text *texts;
    size_t n;
    qkv_search_spec spec;
    qkv_constraints constraints;
    qkv_encoding *sources, *prefixes; /* ids, the end of text included */
    qkv_search_item *items;
    int32_t begin;   /* the id that every translation goes on from */
    qkv_arena lists; /* of allowed tokens, and the trees */
    qkv_translations *out;
    void **blocks;
} job;

/* ---- options ---- */

static qkv_status check(const qkv_text_model *m, const qkv_translate_options *o) {
    const qkv_shape shape = qkv_task_of(qkv_model_config(m->model))->shape;
    if (!shape.encoder || !shape.decoder) return qkv_other_use(m, "translate");
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
    if (o->shortlist && !m->shortlist.start)
        return qkv_fail(QKV_USAGE, "translate: the model has no shortlist (" QKV_SHORTLIST_FILE
                                   ", made by qkv train); translate without");
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
                                .no_repeat = o->no_repeat_ngram,
                                .align = o->align};
    return QKV_OK;
}

/* ---- texts ---- */

static qkv_status encode_all(job *j) {
    const qkv_config *c = qkv_model_config(j->m->model);
    QKV_TRY_ALLOC(j->sources = qkv_zalloc(j->n, sizeof *j->sources));
    QKV_TRY_ALLOC(j->prefixes = qkv_zalloc(j->n, sizeof *j->prefixes));
    qkv_encode_options how = {.no_special = true,
                              .offsets =
                                  j->options->align || c->position == QKV_POSITION_STRUCTURAL,
                              .max_tokens = (size_t)c->max_len - 1};
    if (how.max_tokens == 0) how.max_tokens = 1;
    QKV_TRY(qkv_tokenizer_encode_batch(j->m->tokenizer, j->texts, j->n, &how, j->sources));
    if (!j->options->prefixes) return QKV_OK;
    how.offsets = false;
    return qkv_tokenizer_encode_batch(j->m->tokenizer, j->options->prefixes, j->n, &how,
                                      j->prefixes);
}

/* The tokens that a translation of `item` may have: its shortlist, the end, its prefix, and, where
 * both sides share a vocabulary, the source's own: names and numbers stay as they are. */
static qkv_status limit(job *j, qkv_search_item *item, uint8_t *mark) {
    const qkv_shortlist *s = &j->m->shortlist;
    const int32_t vocab = s->target_vocab;
    memset(mark, 0, (size_t)vocab);
    qkv_shortlist_mark(s, item->src, item->n_src, mark);
    if (j->m->spec.eos < vocab) mark[j->m->spec.eos] = 1;
    for (int32_t k = 0; k < item->n_prefix; k++)
        if (item->prefix[k] < vocab) mark[item->prefix[k]] = 1;
    for (int32_t k = 0; k < item->n_src && s->source_vocab == vocab; k++) mark[item->src[k]] = 1;
    int32_t *ids, n = 0;
    for (int32_t id = 0; id < vocab; id++) n += mark[id];
    QKV_TRY_ALLOC(ids = qkv_arena_alloc(&j->lists, (size_t)n * sizeof *ids));
    item->allowed = ids;
    item->n_allowed = n;
    for (int32_t id = 0; id < vocab; id++)
        if (mark[id]) *ids++ = id;
    return QKV_OK;
}

static qkv_status limit_all(job *j) {
    if (!j->options->shortlist) return QKV_OK;
    uint8_t *mark = qkv_alloc((size_t)j->m->shortlist.target_vocab);
    qkv_status status = mark ? QKV_OK : QKV_FAILED;
    for (size_t i = 0; i < j->n && status == QKV_OK; i++)
        if (j->items[i].n_begin) status = limit(j, &j->items[i], mark);
    qkv_free(mark);
    return status;
}

/* What the search gets: the source ends with the end of text,
 * the translation goes on from the beginning of text. */
static qkv_status make_items(job *j) {
    const qkv_config *c = qkv_model_config(j->m->model);
    const qkv_task *task = qkv_task_of(c);
    const qkv_frame source = qkv_task_frame(task, &j->m->spec, 0);
    j->begin = qkv_task_frame(task, &j->m->spec, 1).before;
    QKV_TRY_ALLOC(j->items = qkv_zalloc(j->n, sizeof *j->items));
    for (size_t i = 0; i < j->n; i++) {
        qkv_encoding *e = &j->sources[i];
        if (e->n == 0) continue; /* nothing to translate */
        int32_t *ids = qkv_realloc(e->ids, (e->n + 1) * sizeof *ids);
        if (!ids) return QKV_FAILED;
        e->ids = ids;
        if (source.after >= 0) ids[e->n] = source.after;
        int64_t most = j->options->max_tokens ? j->options->max_tokens : 2 * (int64_t)e->n + 10;
        /* Learned positions end there. */
        if (c->arch == QKV_ARCH_TRANSFORMER &&
            qkv_config_position(c, true) == QKV_POSITION_LEARNED && most > c->max_len)
            most = c->max_len;
        j->items[i] = (qkv_search_item){.src = ids,
                                        .n_src = (int32_t)e->n + (source.after >= 0 ? 1 : 0),
                                        .begin = &j->begin,
                                        .n_begin = 1,
                                        .prefix = j->prefixes[i].ids,
                                        .n_prefix = (int32_t)j->prefixes[i].n,
                                        .max_length = (int32_t)most};
    }
    return QKV_OK;
}

/* The columns of an item's source; of the mark at its end there is nothing to say. */
static qkv_status add_columns(job *j, size_t i, unsigned wanted) {
    const qkv_column_source s = {.text = j->texts[i],
                                 .e = &j->sources[i],
                                 .to = (int64_t)j->sources[i].n,
                                 .trees = &j->m->trees};
    for (qkv_column c = 0; c < QKV_COLUMNS; c++) {
        if (!(wanted & qkv_column_bit(c))) continue;
        qkv_cells *cells = &j->items[i].column[c];
        int32_t *own;
        QKV_TRY_ALLOC(own =
                          qkv_arena_alloc(&j->lists, (size_t)qkv_column_room(c, &s) * sizeof *own));
        QKV_TRY(qkv_column_make(c, &s, own, &cells->n));
        cells->at = own;
    }
    return QKV_OK;
}

static qkv_status add_all_columns(job *j) {
    const unsigned wanted = qkv_tokenise_spec_of(qkv_model_config(j->m->model)).columns;
    for (size_t i = 0; i < j->n && wanted; i++)
        if (j->items[i].n_begin) QKV_TRY(add_columns(j, i, wanted));
    return QKV_OK;
}

/* ---- running ---- */

static qkv_status found(void *user, size_t i, const qkv_hypothesis *list) {
    job *j = user;
    const size_t nbest = (size_t)j->spec.nbest;
    const qkv_source source = {&j->texts[i], &j->sources[i], (size_t)j->items[i].n_src};
    return qkv_translation_write(j->m, &source, list, nbest, j->out->at + i * nbest, &j->blocks[i]);
}

static qkv_status translate(job *j) {
    QKV_TRY(make_spec(j));
    QKV_TRY(encode_all(j));
    QKV_TRY(make_items(j));
    QKV_TRY(limit_all(j));
    QKV_TRY(add_all_columns(j));
    qkv_translations *out = j->out;
    *out = (qkv_translations){.n = j->n, .nbest = (size_t)j->spec.nbest};
    QKV_TRY_ALLOC(out->memory = j->blocks = qkv_zalloc(j->n, sizeof *j->blocks));
    QKV_TRY_ALLOC(out->at = qkv_zalloc(j->n * out->nbest, sizeof *out->at));
    for (size_t i = 0; i < j->n; i++)
        if (j->sources[i].n == 0) out->at[i * out->nbest].text = ""; /* nothing becomes nothing */
    qkv_session *s;
    QKV_TRY(qkv_text_model_take_session(j->m, &s));
    const qkv_status status = qkv_search_all(s, &j->spec, j->items, j->n, found, j);
    qkv_text_model_give_session(j->m, s);
    return status;
}

qkv_status qkv_translate(const qkv_text_model *m, const qkv_text *texts, size_t n,
                         const qkv_translate_options *options, qkv_translations *out) {
    static const qkv_translate_options standard;
    *out = (qkv_translations){0};
    job j = {.m = m, .options = options ? options : &standard, .texts = texts, .n = n, .out = out};
    QKV_TRY(check(m, j.options));
    if (n == 0) return QKV_OK;
    qkv_arena_init(&j.lists);
    const qkv_status status = translate(&j);
    qkv_arena_free(&j.lists);
    for (size_t i = 0; i < n; i++) {
        if (j.sources) qkv_encoding_free(&j.sources[i]);
        if (j.prefixes) qkv_encoding_free(&j.prefixes[i]);
    }
    qkv_free(j.sources);
    qkv_free(j.prefixes);
    qkv_free(j.items);
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
