/* The forward pass: embed, run the stack, apply the head. The same functions train, evaluate and
 * decode. */
#include <math.h>
#include <string.h>

#include "model/decoder_cache.h"
#include "model/parts.h"

static const qkv_op model_op = {.name = "model"};

/* Refuses a call that the model's task has no part for. */
static bool lacks(qkv_tape *t, const qkv_side *side, const char *what) {
    if (qkv_tape_stopped(t)) return true;
    if (side->name) return false;
    qkv_tape_fail(t, &model_op, QKV_USAGE, "this model has no %s; its task decides which it has",
                  what);
    return true;
}

/* Where the rows stand: positions are counted from each sequence's start, or from what the cache
 * holds already. */
static qkv_place place_of(qkv_tape *t, const qkv_tokens *tokens, const qkv_kv *kv) {
    qkv_place place = {.layout = tokens->layout,
                       .rows = tokens->rows,
                       .pos = tokens->pos,
                       .first = kv ? kv->first : NULL,
                       .column = tokens->column};
    int32_t *pos = NULL;
    if (!place.pos)
        place.pos = pos = qkv_tape_alloc(t, &model_op, (size_t)tokens->rows * sizeof *pos);
    if (!place.pos) return place;
    for (int32_t s = 0; s < tokens->layout.n; s++) {
        int32_t first = kv ? kv->first[s] : 0, start = tokens->layout.start[s];
        for (int32_t i = 0; i < qkv_layout_len(&tokens->layout, s); i++) {
            if (pos) pos[start + i] = first + i;
            if (place.pos[start + i] >= place.n_positions)
                place.n_positions = place.pos[start + i] + 1;
            if (first + i >= place.n_positions) place.n_positions = first + i + 1;
        }
    }
    return place;
}

static bool sound(qkv_tape *t, const qkv_tokens *x) {
    if (qkv_tape_stopped(t)) return false;
    int64_t rows = 0;
    bool right = x && x->ids && x->layout.n > 0 && x->rows > 0;
    for (int32_t s = 0; right && s < x->layout.n; s++) {
        right = x->layout.start[s] == rows && qkv_layout_len(&x->layout, s) > 0;
        rows += qkv_layout_len(&x->layout, s);
    }
    if (right && rows == x->rows) return true;
    qkv_tape_fail(
        t, &model_op, QKV_USAGE,
        "tokens must be at least one sequence, none empty, one after another without gaps");
    return false;
}

/* The vector of each token's segment. A batch that does not say has texts of the first kind. */
static qkv_tensor *embed_segments(qkv_tape *t, const qkv_embedding_layer *e,
                                  const qkv_tokens *tokens) {
    const qkv_cells *cells = tokens->column[QKV_COLUMN_SEGMENTS];
    int32_t *ids = qkv_tape_alloc(t, &model_op, (size_t)tokens->rows * sizeof *ids);
    if (!ids) return &t->nothing;
    memset(ids, 0, (size_t)tokens->rows * sizeof *ids);
    for (int32_t s = 0; s < tokens->layout.n && cells; s++) {
        const int32_t n = qkv_layout_len(&tokens->layout, s);
        if (cells[s].n != n)
            return qkv_tape_fail(t, &model_op, QKV_USAGE,
                                 "%lld segments of the %d tokens of sequence %d",
                                 (long long)cells[s].n, (int)n, (int)s);
        memcpy(ids + tokens->layout.start[s], cells[s].at, (size_t)n * sizeof *ids);
    }
    return qkv_embedding(t, qkv_of(e->segments),
                         &(qkv_embedding_spec){.ids = ids, .rows = tokens->rows});
}

qkv_tensor *qkv_embed_tokens(qkv_tape *t, const qkv_embedding_layer *e, const qkv_tokens *tokens,
                             const qkv_place *place, const qkv_position_terms *at) {
    qkv_tensor *added = at ? at->added : NULL;
    bool late = e->normed || e->segments ||
                added; /* dropout comes after what is still to be added or normed */
    qkv_embedding_spec spec = {.ids = tokens->ids,
                               .rows = tokens->rows,
                               .scale = e->scale,
                               .position = at ? at->table : NULL,
                               .pos = place ? place->pos : NULL,
                               .dropout = late ? 0 : e->dropout};
    qkv_tensor *table = tokens->table ? tokens->table : qkv_of(e->table);
    qkv_tensor *x = qkv_embedding(t, table, &spec); /* (R, D) */
    if (added) x = qkv_add(t, x, added, 0);
    if (e->segments) x = qkv_add(t, x, embed_segments(t, e, tokens), 0);
    if (e->normed) x = qkv_norm_apply(t, &e->norm, x, NULL, NULL);
    return late && e->dropout > 0 ? qkv_dropout(t, x, e->dropout) : x;
}

/* A Transformer side: embed with positions, then the layers. */
static qkv_tensor *run_stack(qkv_tape *t, const qkv_side *side, const qkv_tokens *tokens,
                             qkv_tensor *encoder_out, qkv_layout encoder_layout, qkv_kv *kv) {
    qkv_place place = place_of(t, tokens, kv);
    qkv_pass pass = {.place = place,
                     .terms = qkv_position_begin(t, &side->stack.position, &place),
                     .encoder_out = encoder_out,
                     .encoder_layout = encoder_layout,
                     .kv = kv};
    qkv_tensor *x = qkv_embed_tokens(t, &side->embedding, tokens, &place, &pass.terms);
    return qkv_stack_apply(t, &side->stack, x, &pass);
}

/* A recurrent side: order is in the recurrence, so there are no positions. */
static qkv_tensor *run_rnn(qkv_tape *t, const qkv_side *side, const qkv_tokens *tokens,
                           qkv_rnn_state *state) {
    qkv_tensor *x = qkv_embed_tokens(t, &side->embedding, tokens, NULL, NULL);
    return qkv_rnn_apply(t, &side->rnn, x, tokens->layout, state);
}

qkv_tensor *qkv_model_encode(qkv_tape *t, qkv_model *m, const qkv_tokens *src) {
    if (lacks(t, &m->encoder, "encoder") || !sound(t, src)) return &t->nothing;
    if (m->encoder.recurrent) return run_rnn(t, &m->encoder, src, NULL);
    return run_stack(t, &m->encoder, src, NULL, (qkv_layout){0}, NULL);
}

/* ---- decoding ---- */

/* Opens the cache for a pass: lengths grow, and the first pass notes where each sequence's source
 * lies. */
static bool open_cache(qkv_tape *t, qkv_cache *cache, const qkv_tokens *tgt,
                       const qkv_tensor *encoder_out, const qkv_tokens *src) {
    qkv_kv *kv = &cache->kv;
    if (t->mode != QKV_EVAL) {
        qkv_tape_fail(t, &model_op, QKV_USAGE,
                      "a cache is for decoding; begin the tape in EVAL mode");
        return false;
    }
    if (qkv_kv_begin(kv, &tgt->layout) != QKV_OK) {
        qkv_tape_fail(t, &model_op, QKV_USAGE, "%s", qkv_error());
        return false;
    }
    if (!encoder_out || kv->cross_rows) return true;
    if (src->layout.n != kv->n) {
        qkv_tape_fail(t, &model_op, QKV_USAGE, "the source has %d sequences, the cache %d",
                      (int)src->layout.n, (int)kv->n);
        qkv_kv_undo(kv);
        return false;
    }
    for (int32_t s = 0; s < kv->n; s++) {
        kv->cross_start[s] = src->layout.start[s];
        kv->cross_len[s] = qkv_layout_len(&src->layout, s);
    }
    return true;
}

static qkv_tensor *decode_stack(qkv_tape *t, const qkv_model *m, const qkv_tokens *tgt,
                                qkv_tensor *encoder_out, const qkv_tokens *src, qkv_cache *cache) {
    if (!cache)
        return run_stack(t, &m->decoder, tgt, encoder_out, src ? src->layout : (qkv_layout){0},
                         NULL);
    qkv_kv *kv = &cache->kv;
    qkv_layout seen = {.n = kv->n, .start = kv->cross_start, .len = kv->cross_len};
    qkv_tensor *y = run_stack(t, &m->decoder, tgt, encoder_out, seen, kv);
    if (qkv_tape_stopped(t))
        qkv_kv_undo(kv);
    else if (encoder_out && !kv->cross_rows)
        kv->cross_rows = encoder_out->rows;
    return y;
}

qkv_tensor *qkv_model_decode(qkv_tape *t, qkv_model *m, const qkv_tokens *tgt,
                             qkv_tensor *encoder_out, const qkv_tokens *src, qkv_cache *cache) {
    if (lacks(t, &m->decoder, "decoder") || !sound(t, tgt)) return &t->nothing;
    bool remembered = cache && cache->kv.cross_rows;
    if (m->shape.encoder && !remembered && (!encoder_out || !src || src->layout.n != tgt->layout.n))
        return qkv_tape_fail(
            t, &model_op, QKV_USAGE,
            "the decoder of an encoder-decoder needs the encoder's output, one source "
            "sequence for each target sequence");
    if (!m->shape.encoder) encoder_out = NULL, src = NULL;
    if (cache && !open_cache(t, cache, tgt, encoder_out, src)) return &t->nothing;
    if (m->decoder.recurrent) return qkv_decode_recurrent(t, m, tgt, encoder_out, src, cache);
    return decode_stack(t, m, tgt, encoder_out, src, cache);
}

/* ---- heads ---- */

int64_t qkv_model_width(const qkv_model *m) {
    return m->shape.encoder ? m->encoder.width : m->decoder.width;
}

qkv_tensor *qkv_model_rows(qkv_tape *t, qkv_model *m, const qkv_tokens *src) {
    return m->shape.encoder ? qkv_model_encode(t, m, src)
                            : qkv_model_decode(t, m, src, NULL, NULL, NULL);
}

qkv_tensor *qkv_model_pooled(qkv_tape *t, qkv_model *m, const qkv_tokens *src) {
    static const qkv_act acts[] = {QKV_ACT_NONE, QKV_ACT_TANH, QKV_ACT_RELU};
    qkv_tensor *x = qkv_model_rows(t, m, src);
    if (qkv_tape_stopped(t)) return &t->nothing;
    qkv_tensor *y = qkv_pool(t, x, src->layout, (qkv_pool_kind)m->config.pool); /* (n, D) */
    if (!m->head.pooler.weight) return y;
    return qkv_dense_apply(t, &m->head.pooler, y, acts[m->config.pooler]);
}

qkv_tensor *qkv_model_encoder_logits(qkv_tape *t, qkv_model *m, const qkv_tokens *src) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (!qkv_is_pooled(m->shape))
        return qkv_tape_fail(t, &model_op, QKV_USAGE, "this model is not a classifier");
    return qkv_dense_apply(t, &m->head.classes, qkv_model_pooled(t, m, src), QKV_ACT_NONE);
}

qkv_tensor *qkv_model_classify(qkv_tape *t, qkv_model *m, const qkv_tokens *src) {
    if (!m->head.ngrams) return qkv_model_encoder_logits(t, m, src);
    qkv_tensor *ngrams = qkv_model_ngram_logits(t, m, src);
    ngrams = qkv_scale(t, ngrams, (real)(0.5 * m->config.ngram_vote));
    if (m->config.encoder_vote == 0 && !t->observer) return ngrams; /* nobody looks */
    qkv_tensor *encoder = qkv_model_encoder_logits(t, m, src);
    encoder = qkv_scale(t, encoder, (real)(0.5 * m->config.encoder_vote));
    return qkv_add(t, encoder, ngrams, 0);
}

qkv_tensor *qkv_model_tag(qkv_tape *t, qkv_model *m, const qkv_tokens *src, const int32_t *rows,
                          int64_t n) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (m->shape.head != QKV_HEAD_TAGS)
        return qkv_tape_fail(t, &model_op, QKV_USAGE, "this model is not a tagger");
    qkv_tensor *x = qkv_model_encode(t, m, src);
    const qkv_embedding_spec words = {.ids = rows, .rows = n, .dropout = (real)m->config.dropout};
    return qkv_dense_apply(t, &m->head.classes, qkv_embedding(t, x, &words), QKV_ACT_NONE);
}

void qkv_model_set_threshold(qkv_model *m, double threshold) {
    m->config.threshold = threshold;
}

void qkv_model_set_votes(qkv_model *m, double encoder, double ngrams) {
    m->config.encoder_vote = encoder;
    m->config.ngram_vote = ngrams;
}

/* What the map to the vocabulary reads. */
static qkv_tensor *before_vocab(qkv_tape *t, qkv_model *m, qkv_tensor *x) {
    const qkv_head *h = &m->head;
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (m->shape.head != QKV_HEAD_VOCAB)
        return qkv_tape_fail(t, &model_op, QKV_USAGE, "this model has no head over the vocabulary");
    if (h->transformed) {
        x = qkv_dense_apply(t, &h->transform, x, qkv_ffn_shapes[m->config.activation].act);
        x = qkv_norm_apply(t, &h->transform_norm, x, NULL, NULL);
    }
    return m->config.head_scale != 1 ? qkv_scale(t, x, (real)m->config.head_scale) : x;
}

qkv_tensor *qkv_model_vocab_loss(qkv_tape *t, qkv_model *m, qkv_tensor *x,
                                 const qkv_xent_spec *spec) {
    return qkv_xent(t, before_vocab(t, m, x), qkv_of(m->head.weight), qkv_of(m->head.bias), spec);
}

qkv_tensor *qkv_model_vocab_logits(qkv_tape *t, qkv_model *m, qkv_tensor *x) {
    return qkv_linear(t, before_vocab(t, m, x), qkv_of(m->head.weight), qkv_of(m->head.bias),
                      QKV_ACT_NONE);
}

qkv_tensor *qkv_model_part_logits(qkv_tape *t, qkv_model *m, qkv_tensor *x, qkv_vocab_part *part) {
    return qkv_linear(t, before_vocab(t, m, x), &part->weight, m->head.bias ? &part->bias : NULL,
                      QKV_ACT_NONE);
}
