/* Sessions; see session.h. */
#include "decode/session.h"

#include <string.h>

#include "base/mem.h"

qkv_status qkv_session_new(qkv_model *m, qkv_session **out) {
    *out = NULL;
    QKV_TRY(qkv_model_pack(m));
    qkv_session *s = qkv_zalloc(1, sizeof *s);
    if (!s) return QKV_FAILED;
    const qkv_config *c = qkv_model_config(m);
    s->model = m;
    s->vocab = s->scored = c->target_vocab_size ? c->target_vocab_size : c->vocab_size;
    const qkv_status status = qkv_tape_init(&s->tape);
    if (status != QKV_OK) {
        qkv_free(s);
        return status;
    }
    *out = s;
    return QKV_OK;
}

void qkv_session_free(qkv_session *s) {
    if (!s) return;
    qkv_session_free(s->next);
    qkv_cache_free(s->cache);
    qkv_tape_free(&s->tape);
    qkv_vocab_part_free(&s->part);
    qkv_free(s->start);
    qkv_free(s);
}

/* A cache and a layout for max_n sequences; what is there is used again where it is large
 * enough. */
static qkv_status make_room(qkv_session *s, int32_t max_n, int32_t capacity) {
    if (s->cache && qkv_cache_fit(s->cache, max_n, capacity)) return QKV_OK;
    if (max_n < s->max_n) max_n = s->max_n;
    qkv_cache_free(s->cache);
    s->cache = NULL;
    int32_t *start = qkv_realloc(s->start, ((size_t)max_n + 1) * sizeof *start);
    if (!start) return QKV_FAILED;
    for (int32_t i = 0; i <= max_n; i++) start[i] = i;
    s->start = start;
    s->max_n = max_n;
    return qkv_cache_new(s->model, max_n, capacity, &s->cache);
}

/* The last row of each sequence: the only ones whose next token is asked for. */
static qkv_tensor *last_rows(qkv_tape *t, qkv_tensor *x, const qkv_layout *layout) {
    if (qkv_tape_stopped(t) || x->rows == layout->n) return x;
    qkv_tensor *last = qkv_tensor_new(t, layout->n, x->cols);
    if (qkv_tape_stopped(t)) return last;
    for (int32_t i = 0; i < layout->n; i++) {
        const int64_t row = layout->start[i] + qkv_layout_len(layout, i) - 1;
        memcpy(last->data + i * last->ld, x->data + row * x->ld, (size_t)x->cols * sizeof(real));
    }
    return last;
}

static qkv_status run(qkv_session *s, const qkv_tokens *tokens, qkv_tensor *encoder_out,
                      const qkv_tokens *src) {
    qkv_tensor *x = qkv_model_decode(&s->tape, s->model, tokens, encoder_out, src, s->cache);
    x = last_rows(&s->tape, x, &tokens->layout);
    s->logits = (s->scored < s->vocab ? qkv_model_part_logits(&s->tape, s->model, x, &s->part)
                                      : qkv_model_vocab_logits(&s->tape, s->model, x))
                    ->data;
    s->n = tokens->layout.n;
    return qkv_tape_status(&s->tape);
}

qkv_status qkv_session_limit(qkv_session *s, const int32_t *ids, int64_t n) {
    s->scored = s->vocab;
    if (!ids || n >= s->vocab) return QKV_OK;
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= s->vocab)
            return qkv_fail(QKV_USAGE, "session: there is no token %d to score", (int)ids[i]);
    if (n < 1) return qkv_fail(QKV_USAGE, "session: no token may follow");
    QKV_TRY(qkv_vocab_part_fill(&s->part, s->model, ids, n));
    s->scored = n;
    return QKV_OK;
}

qkv_status qkv_session_begin(qkv_session *s, const qkv_tokens *src, const qkv_tokens *begin,
                             int32_t max_n, int32_t capacity) {
    QKV_TRY(make_room(s, max_n, capacity));
    QKV_TRY(qkv_cache_reset(s->cache, begin->layout.n));
    qkv_cache_watch(s->cache, s->watch);
    qkv_tape_begin(&s->tape, QKV_EVAL, 0, 0);
    qkv_tensor *encoder_out = src ? qkv_model_encode(&s->tape, s->model, src) : NULL;
    return run(s, begin, encoder_out, src);
}

qkv_status qkv_session_step(qkv_session *s, const int32_t *ids) {
    qkv_tape_begin(&s->tape, QKV_EVAL, 0, 0);
    const qkv_tokens tokens = {.layout = {.n = s->n, .start = s->start}, .ids = ids, .rows = s->n};
    return run(s, &tokens, NULL, NULL);
}

qkv_status qkv_session_select(qkv_session *s, const int32_t *from, int32_t n) {
    QKV_TRY(qkv_cache_select(s->cache, from, n));
    s->n = n;
    s->logits = NULL;
    return QKV_OK;
}
