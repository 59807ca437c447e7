/* What calls leave for the next ones, so that a text is answered without asking the system for
 * memory: tapes, never more of them than calls ran at once, and a decoder's session. */
#include "use/textmodel.h"
#include "base/mem.h"

#include <pthread.h>

struct qkv_idle {
    pthread_mutex_t lock;
    QKV_VEC(qkv_tape *) tapes;
    qkv_session *session; /* of a decoder */
    qkv_model *plain;     /* of a quantized model */
    size_t n_cut;         /* texts that were too long */
};

struct qkv_idle *qkv_idle_new(void) {
    struct qkv_idle *p = qkv_zalloc(1, sizeof *p);
    if (p) pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void drop_tape(qkv_tape *t) {
    qkv_tape_free(t);
    qkv_free(t);
}

void qkv_idle_free(struct qkv_idle *p) {
    if (!p) return;
    for (size_t i = 0; i < p->tapes.n; i++) drop_tape(p->tapes.at[i]);
    qkv_free(p->tapes.at);
    qkv_session_free(p->session);
    qkv_model_free(p->plain);
    pthread_mutex_destroy(&p->lock);
    qkv_free(p);
}

qkv_status qkv_text_model_take_tape(const qkv_text_model *m, qkv_tape **out) {
    *out = NULL;
    /* Sessions of decoders pack the weights when the first of them begins, so it is
     * done before another call can read them. */
    if (qkv_task_of(qkv_model_config(m->model))->shape.decoder) QKV_TRY(qkv_model_pack(m->model));
    pthread_mutex_lock(&m->idle->lock);
    *out = m->idle->tapes.n ? m->idle->tapes.at[--m->idle->tapes.n] : NULL;
    pthread_mutex_unlock(&m->idle->lock);
    if (*out) return QKV_OK;
    QKV_TRY_ALLOC(*out = qkv_zalloc(1, sizeof **out));
    return qkv_tape_init(*out); /* takes no memory, so it cannot fail */
}

void qkv_text_model_give_tape(const qkv_text_model *m, qkv_tape *t) {
    pthread_mutex_lock(&m->idle->lock);
    const bool kept = QKV_PUSH(m->idle->tapes, t);
    pthread_mutex_unlock(&m->idle->lock);
    if (!kept) drop_tape(t);
}

qkv_status qkv_text_model_plain(const qkv_text_model *m, qkv_model **out) {
    struct qkv_idle *p = m->idle;
    qkv_status status = QKV_OK;
    *out = m->model;
    if (!qkv_model_is_quantized(m->model)) return QKV_OK;
    pthread_mutex_lock(&p->lock);
    if (!p->plain) status = qkv_model_plain(m->model, &p->plain);
    *out = p->plain;
    pthread_mutex_unlock(&p->lock);
    return status;
}

void qkv_text_model_count_cut(const qkv_text_model *m, size_t n) {
    pthread_mutex_lock(&m->idle->lock);
    m->idle->n_cut += n;
    pthread_mutex_unlock(&m->idle->lock);
}

size_t qkv_text_model_cut(const qkv_text_model *m) {
    pthread_mutex_lock(&m->idle->lock);
    const size_t n = m->idle->n_cut;
    pthread_mutex_unlock(&m->idle->lock);
    return n;
}

/* The session that waits becomes `s`; returns the one before. */
static qkv_session *exchange(struct qkv_idle *p, qkv_session *s) {
    pthread_mutex_lock(&p->lock);
    qkv_session *const before = p->session;
    p->session = s;
    pthread_mutex_unlock(&p->lock);
    return before;
}

qkv_status qkv_text_model_take_session(const qkv_text_model *m, qkv_session **out) {
    *out = exchange(m->idle, NULL);
    return *out ? QKV_OK : qkv_session_new(m->model, out);
}

void qkv_text_model_give_session(const qkv_text_model *m, qkv_session *s) {
    qkv_session_free(exchange(m->idle, s));
}
