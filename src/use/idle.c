/* The session that waits between calls: its cache and arena are there already, so that a single
 * text is answered without asking the system for memory. */
#include "use/textmodel.h"

qkv_status qkv_text_model_session(const qkv_text_model *m, qkv_session **out) {
    qkv_session *const *idle = &m->idle; /* the one thing in an opened model that changes */
    *out = __atomic_exchange_n((qkv_session **)idle, NULL, __ATOMIC_ACQ_REL);
    return *out ? QKV_OK : qkv_session_new(m->model, out);
}

void qkv_text_model_give_back(const qkv_text_model *m, qkv_session *s) {
    qkv_session *const *idle = &m->idle;
    qkv_session_free(__atomic_exchange_n((qkv_session **)idle, s, __ATOMIC_ACQ_REL));
}
