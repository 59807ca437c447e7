/* The attention weights of one pass over a text, with the tokens' names. */
#include "use/predict.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "nn/attention_record.h"

#include <string.h>

typedef struct looking {
    const qkv_text_model *m;
    qkv_text text, target;
    bool own_target; /* not given: the model's own translation */
    qkv_encoding source, written;
    qkv_arena *arena; /* of the result */
    qkv_attention_record record;
    const char *answer; /* of a classifier */
} looking;

/* ---- names ---- */

/* A token as the reader knows it: its part of the text, or (marks that stand for nothing in it)
 * its own name. */
static const char *token_name(looking *l, const qkv_text *text, const qkv_encoding *e, size_t i) {
    uint32_t from = e->begin[i], to = e->end[i];
    while (from < to && text->data[from] == ' ') from++;
    while (to > from && text->data[to - 1] == ' ') to--;
    if (from < to) return qkv_arena_strndup(l->arena, text->data + from, to - from);
    size_t len;
    const char *own = qkv_tokenizer_token(l->m->tokenizer, e->ids[i], &len);
    return qkv_arena_strndup(l->arena, own ? own : "?", own ? len : 1);
}

static const char **token_names(looking *l, const qkv_text *text, const qkv_encoding *e) {
    const char **names = qkv_arena_alloc(l->arena, (e->n + 1) * sizeof *names);
    for (size_t i = 0; names && i < e->n; i++)
        if (!(names[i] = token_name(l, text, e, i))) return NULL;
    return names;
}

/* Linformer's keys are mixtures of tokens and have numbers only. */
static const char **numbers(looking *l, int32_t n) {
    const char **names = qkv_arena_alloc(l->arena, (size_t)n * sizeof *names);
    for (int32_t i = 0; names && i < n; i++)
        if (!(names[i] = qkv_arena_printf(l->arena, "#%d", (int)i + 1))) return NULL;
    return names;
}

/* ---- the pass ---- */

static qkv_tokens tokens_of(const qkv_encoding *e, int32_t start[2]) {
    start[0] = 0;
    start[1] = (int32_t)e->n;
    return (qkv_tokens){.layout = {.n = 1, .start = start}, .ids = e->ids, .rows = (int64_t)e->n};
}

/* The target as the decoder reads it: what was given, or what the model says,
 * after the mark of its beginning. */
static qkv_status encode_target(looking *l, qkv_translations *said) {
    const qkv_text_model *m = l->m;
    if (l->own_target) {
        QKV_TRY(qkv_translate(m, &l->text, 1, NULL, said));
        l->target = (qkv_text){said->at[0].text ? said->at[0].text : "",
                               said->at[0].text ? said->at[0].len : 0};
    }
    const qkv_encode_options how = {.no_special = true,
                                    .offsets = true,
                                    .max_tokens = (size_t)qkv_model_config(m->model)->max_len - 1};
    return qkv_tokenizer_encode(m->tokenizer, l->target.data, l->target.len, NULL, 0, &how,
                                &l->written);
}

static qkv_status run_pass(looking *l, qkv_tape *t) {
    const qkv_text_model *m = l->m;
    int32_t s_start[2], t_start[2];
    qkv_tokens src = tokens_of(&l->source, s_start);
    qkv_tape_begin(t, QKV_EVAL, 0, 0);
    QKV_TRY(qkv_texts_columns(t, m, (qkv_use_texts){&l->text, NULL}, &l->source, &src));
    qkv_attention_record_start(&l->record, t);
    const qkv_task *task = qkv_task_of(qkv_model_config(m->model));
    if (task->shape.head == QKV_HEAD_CLASSES) {
        const qkv_tensor *y = qkv_model_classify(t, m->model, &src);
        int32_t best = 0;
        for (int32_t i = 1; !qkv_tape_stopped(t) && i < m->labels.n; i++)
            if (y->data[i] > y->data[best]) best = i;
        l->answer = m->labels.names[best];
    } else if (!task->shape.decoder) {
        qkv_model_encode(t, m->model, &src);
    } else if (!task->shape.encoder) {
        qkv_model_decode(t, m->model, &src, NULL, NULL, NULL);
    } else {
        int32_t *ids = qkv_arena_alloc(l->arena, (l->written.n + 1) * sizeof *ids);
        if (!ids) return QKV_FAILED;
        ids[0] = qkv_task_frame(task, &m->spec, 1).before;
        if (l->written.n) memcpy(ids + 1, l->written.ids, l->written.n * sizeof *ids);
        qkv_tokens tgt = tokens_of(&l->written, t_start);
        t_start[1]++;
        tgt.rows++;
        tgt.ids = ids;
        qkv_tensor *memory = qkv_model_encode(t, m->model, &src);
        qkv_model_decode(t, m->model, &tgt, memory, &src, NULL);
    }
    QKV_TRY(qkv_tape_status(t));
    return l->record.status;
}

/* ---- the result ---- */

/* `layers` attentions of the record, from `first` on by `step`, as one part. */
static qkv_status put_part(looking *l, qkv_attention_part shape, size_t first, size_t step,
                           qkv_attention_parts *out) {
    const qkv_recorded *at = &l->record.list.at[first];
    qkv_attention_part p = shape;
    p.heads = at->heads;
    p.queries = at->n_q;
    p.keys = at->n_k;
    const size_t heads = (size_t)p.heads, queries = (size_t)p.queries, keys = (size_t)p.keys;
    float *w = qkv_arena_alloc(l->arena, (size_t)p.layers * heads * queries * keys * sizeof *w);
    if (!w) return QKV_FAILED;
    p.weights = w;
    for (int32_t layer = 0; layer < p.layers; layer++) {
        at = &l->record.list.at[first + (size_t)layer * step];
        for (size_t h = 0; h < heads; h++)
            for (size_t q = 0; q < queries; q++)
                for (size_t k = 0; k < keys; k++)
                    *w++ = (float)at->weights[(q * heads + h) * keys + k];
    }
    out->at[out->n++] = p;
    return QKV_OK;
}

/* The names of target tokens: as they are read (the mark first),
 * or as they are written (the end last). */
static const char **target_names(looking *l, bool written) {
    const char **inner = token_names(l, &l->target, &l->written);
    const char **names = qkv_arena_alloc(l->arena, (l->written.n + 1) * sizeof *names);
    if (!inner || !names) return NULL;
    size_t len;
    const qkv_task_spec *spec = &l->m->spec;
    const int32_t mark = written || spec->bos < 0 ? spec->eos : spec->bos;
    const char *own = qkv_tokenizer_token(l->m->tokenizer, mark, &len);
    memcpy(names + !written, inner, l->written.n * sizeof *names);
    const char *name = qkv_arena_strndup(l->arena, own ? own : "?", own ? len : 1);
    names[written ? l->written.n : 0] = name;
    return name ? names : NULL;
}

/* Says what to use instead. */
static qkv_status no_attention(const qkv_text_model *m) {
    const qkv_config *c = qkv_model_config(m->model);
    const char *layers = c->arch == QKV_ARCH_LSTM ? "LSTMs" : "GRUs";
    const qkv_shape shape = qkv_task_of(c)->shape;
    if (qkv_has_labels(shape) || qkv_is_pooled(shape))
        return qkv_fail(QKV_USAGE,
                        "this model has no attention: its layers are %s; `qkv %s DIR --explain` "
                        "shows what each word added to its answer",
                        layers, qkv_text_model_task(m));
    return qkv_fail(QKV_USAGE,
                    "this model has no attention: its layers are %s; train one with --arch "
                    "transformer to see what it looks at",
                    layers);
}

static qkv_status put_parts(looking *l, qkv_attention_parts *out) {
    const qkv_config *c = qkv_model_config(l->m->model);
    const qkv_shape shape = qkv_shape_of(c->task);
    const bool both = shape.encoder && shape.decoder, layered = c->arch == QKV_ARCH_TRANSFORMER;
    const size_t n = l->record.list.n,
                 in_encoder = shape.encoder && layered ? (size_t)c->encoder_layers : 0;
    if (!n) return no_attention(l->m);
    QKV_TRY_ALLOC(out->at = qkv_arena_zalloc(l->arena, 3 * sizeof *out->at));
    const char **source = token_names(l, &l->text, &l->source);
    const char **read = both ? target_names(l, false) : source,
               **written = both ? target_names(l, true) : NULL;
    if (!source || !read || (both && !written)) return QKV_FAILED;
    qkv_attention_part part = {.name = "encoder",
                               .title = both ? "encoder: source looks at source" : "encoder",
                               .self = true,
                               .layers = (int32_t)in_encoder,
                               .query_names = source,
                               .key_names = source};
    if (in_encoder) {
        const qkv_recorded *first = &l->record.list.at[0];
        const bool mixed = first->n_k != first->n_q;
        part.self = !mixed;
        if (mixed && !(part.key_names = numbers(l, first->n_k))) return QKV_FAILED;
        QKV_TRY(put_part(l, part, 0, 1, out));
    }
    if (!shape.decoder) return QKV_OK;
    part = (qkv_attention_part){.name = "decoder",
                                .title = both ? "decoder: target looks at target" : "decoder",
                                .self = true,
                                .layers = (int32_t)c->decoder_layers,
                                .query_names = read,
                                .key_names = read};
    if (layered) QKV_TRY(put_part(l, part, in_encoder, both ? 2 : 1, out));
    if (!both) return QKV_OK;
    part = (qkv_attention_part){.name = "cross",
                                .title = "cross: target looks at source",
                                .layers = layered ? (int32_t)c->decoder_layers : 1,
                                .query_names = written,
                                .key_names = source};
    return put_part(l, part, in_encoder + (layered ? 1 : 0), layered ? 2 : 1, out);
}

static qkv_status put_titles(looking *l, qkv_attention_parts *out) {
    const qkv_attention_part *last = &out->at[out->n - 1];
    const size_t shown = l->text.len > 100 ? qkv_utf8_start(l->text.data, 100) : l->text.len;
    out->title = qkv_arena_printf(l->arena, "%.*s%s", (int)shown, l->text.data,
                                  shown < l->text.len ? "…" : "");
    const bool translates = l->target.data != NULL;
    out->subtitle =
        qkv_arena_printf(l->arena, "%s%s%.*s%s%s, %d layer%s of %d head%s", translates ? "→ " : "",
                         l->answer ? l->answer : "", translates ? (int)l->target.len : 0,
                         translates ? l->target.data : "", translates || l->answer ? " · " : "",
                         qkv_text_model_task(l->m), (int)last->layers, last->layers == 1 ? "" : "s",
                         (int)last->heads, last->heads == 1 ? "" : "s");
    return out->title && out->subtitle ? QKV_OK : QKV_FAILED;
}

static qkv_status look(looking *l, qkv_tape *t, qkv_attention_parts *out) {
    qkv_translations said = {0};
    qkv_status status = qkv_texts_encode(l->m, &l->text, 1, true, &l->source);
    const qkv_shape shape = qkv_task_of(qkv_model_config(l->m->model))->shape;
    const bool translates = shape.encoder && shape.decoder;
    if (status == QKV_OK && translates) status = encode_target(l, &said);
    if (status == QKV_OK && (l->source.cut || l->written.cut)) qkv_text_model_count_cut(l->m, 1);
    if (status == QKV_OK) status = run_pass(l, t);
    t->observer = NULL;
    if (status == QKV_OK) status = put_parts(l, out);
    if (status == QKV_OK) status = put_titles(l, out);
    qkv_translations_free(&said);
    return status;
}

qkv_status qkv_attention_of(const qkv_text_model *m, const qkv_text *text, const qkv_text *target,
                            qkv_attention_parts *out) {
    *out = (qkv_attention_parts){0};
    const qkv_shape shape = qkv_task_of(qkv_model_config(m->model))->shape;
    if (target && !(shape.encoder && shape.decoder))
        return qkv_fail(QKV_USAGE, "a target is for translators; this model was trained to %s",
                        qkv_text_model_task(m));
    qkv_tape *t;
    QKV_TRY(qkv_text_model_take_tape(m, &t));
    looking l = {.m = m, .text = *text, .own_target = !target};
    if (target) l.target = *target;
    qkv_status status = QKV_FAILED;
    if ((l.arena = qkv_zalloc(1, sizeof *l.arena))) {
        qkv_arena_init(l.arena);
        out->memory = l.arena;
        status = look(&l, t, out);
    }
    qkv_encoding_free(&l.source);
    qkv_encoding_free(&l.written);
    qkv_attention_record_free(&l.record);
    qkv_text_model_give_tape(m, t);
    if (status != QKV_OK) qkv_attention_free(out);
    return status;
}

void qkv_attention_free(qkv_attention_parts *a) {
    if (a->memory) qkv_arena_free(a->memory);
    qkv_free(a->memory);
    *a = (qkv_attention_parts){0};
}
