/* The recurrent decoder: it starts from the mean of the encoder's output E, reads the target, and
 * attends to E once for each output (Luong et al. 2015, without input feeding, so that all steps of
 * a sequence are computed together):
 *
 *     h⁰_l = tanh(W_l·mean(E)),  s = RNN(x; h⁰),  c = attention(W_a s, E, E),  y = tanh(W_c [c; s])
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/parts.h"
#include "nn/watch.h"

static const qkv_op recurrent_op = {.name = "recurrent decoder"};

/* Arrays of one tensor per layer, on the tape. */
static bool make_state(qkv_tape *t, const qkv_rnn *r, qkv_rnn_state *state) {
    size_t layers = (size_t)r->spec.layers;
    qkv_tensor **all = qkv_tape_alloc(t, &recurrent_op, 2 * layers * sizeof *all);
    if (!all) return false;
    memset(all, 0, 2 * layers * sizeof *all);
    *state = (qkv_rnn_state){.h = all, .c = r->spec.cell == QKV_CELL_LSTM ? all + layers : NULL};
    return true;
}

/* First states from the encoder's output. */
static void start_from_encoder(qkv_tape *t, const qkv_model *m, qkv_tensor *encoder_out,
                               qkv_layout layout, qkv_rnn_state *state) {
    qkv_tensor *mean = qkv_pool(t, encoder_out, layout, QKV_POOL_MEAN); /* (n, M) */
    for (int32_t i = 0; i < m->decoder.rnn.spec.layers; i++)
        state->h[i] = qkv_dense_apply(t, &m->bridge.start[i], mean, QKV_ACT_TANH);
}

/* States as the cache keeps them, before and after a pass. */
static void load_state(qkv_tape *t, const qkv_cache *c, qkv_rnn_state *state) {
    int64_t k = c->model->config.d_state;
    for (int32_t i = 0; i < c->kv.layers; i++) {
        state->h[i] = qkv_tensor_wrap(t, c->h[i], c->kv.n, k);
        if (state->c) state->c[i] = qkv_tensor_wrap(t, c->c[i], c->kv.n, k);
    }
}

static void keep_state(qkv_cache *c, const qkv_rnn_state *state) {
    size_t bytes = (size_t)c->kv.n * (size_t)c->model->config.d_state * sizeof(real);
    for (int32_t i = 0; i < c->kv.layers; i++) {
        memcpy(c->h[i], state->h[i]->data, bytes);
        if (state->c) memcpy(c->c[i], state->c[i]->data, bytes);
    }
}

static qkv_status keep_encoder_out(qkv_cache *c, const qkv_tensor *encoder_out) {
    size_t bytes = (size_t)encoder_out->rows * (size_t)encoder_out->cols * sizeof(real);
    qkv_free(c->encoder_out);
    QKV_TRY_ALLOC(c->encoder_out = qkv_alloc_aligned(bytes));
    memcpy(c->encoder_out, encoder_out->data, bytes);
    c->kv.cross_rows = encoder_out->rows;
    return QKV_OK;
}

static qkv_tensor *ask(qkv_tape *t, const qkv_model *m, qkv_tensor *s, qkv_layout rows,
                       qkv_tensor *encoder_out, qkv_layout encoder_layout, qkv_cache *cache) {
    qkv_tensor *query = qkv_dense_apply(t, &m->bridge.ask, s, QKV_ACT_NONE); /* (R, M) */
    qkv_attention_spec spec = {.heads = 1, .q_layout = rows, .k_layout = encoder_layout};
    if (cache) qkv_watch(t, &cache->kv, cache->kv.watched_layer, query, encoder_out, &spec);
    qkv_tensor *both[] = {qkv_attend(t, query, encoder_out, encoder_out, &spec), s};
    return qkv_dense_apply(t, &m->bridge.combine, qkv_concat(t, both, 2), QKV_ACT_TANH);
}

qkv_tensor *qkv_decode_recurrent(qkv_tape *t, const qkv_model *m, const qkv_tokens *tgt,
                                 qkv_tensor *encoder_out, const qkv_tokens *src, qkv_cache *cache) {
    qkv_rnn_state state;
    if (!make_state(t, &m->decoder.rnn, &state)) return &t->nothing;
    state.keep = cache != NULL;
    bool resumed = cache && cache->kv.n > 0 && cache->kv.first[0] > 0;
    qkv_layout encoder_layout = src ? src->layout : (qkv_layout){0};
    if (cache)
        encoder_layout = (qkv_layout){
            .n = cache->kv.n, .start = cache->kv.cross_start, .len = cache->kv.cross_len};
    if (cache && cache->kv.cross_rows)
        encoder_out =
            qkv_tensor_wrap(t, cache->encoder_out, cache->kv.cross_rows, m->encoder.width);
    else if (cache && encoder_out && keep_encoder_out(cache, encoder_out) != QKV_OK)
        return qkv_tape_fail_below(t, &recurrent_op);

    if (resumed)
        load_state(t, cache, &state);
    else if (encoder_out)
        start_from_encoder(t, m, encoder_out, src->layout, &state);
    qkv_tensor *x = qkv_embed_tokens(t, &m->decoder.embedding, tgt, NULL, NULL);
    qkv_tensor *s = qkv_rnn_apply(t, &m->decoder.rnn, x, tgt->layout, &state); /* (R, k) */
    qkv_tensor *y = encoder_out ? ask(t, m, s, tgt->layout, encoder_out, encoder_layout, cache) : s;
    if (cache && qkv_tape_stopped(t))
        qkv_kv_undo(&cache->kv);
    else if (cache)
        keep_state(cache, &state);
    return y;
}
