/* Forbidden words and tokens; see constraints.h. */
#include "use/constraints.h"
#include "base/mem.h"

static qkv_status choose_never(const qkv_text_model *m, bool no_unknown, qkv_constraints *out) {
    const qkv_config *c = qkv_model_config(m->model);
    const int64_t vocab = c->target_vocab_size ? c->target_vocab_size : c->vocab_size;
    QKV_TRY_ALLOC(out->never = qkv_zalloc((size_t)vocab, sizeof *out->never));
    static const qkv_special roles[] = {QKV_TOK_PAD, QKV_TOK_BOS, QKV_TOK_MASK, QKV_TOK_CLS,
                                        QKV_TOK_UNK};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const int32_t id = qkv_tokenizer_special(m->tokenizer, roles[i]);
        if (roles[i] == QKV_TOK_UNK && !no_unknown) continue;
        if (id >= 0 && id < vocab && id != m->spec.eos) out->never[id] = true;
    }
    for (int32_t i = 0; i < m->n_ends; i++) out->never[m->ends[i]] = false;
    for (int64_t id = (int64_t)qkv_tokenizer_size(m->tokenizer); id < vocab; id++)
        out->never[id] = true;
    return QKV_OK;
}

static qkv_status add(const qkv_tokenizer *tok, const char *text, size_t len,
                      qkv_constraints *out) {
    qkv_encoding e = {0};
    qkv_status status = qkv_tokenizer_encode(tok, text, len, NULL, 0,
                                             &(qkv_encode_options){.no_special = true}, &e);
    for (size_t i = 0; i < e.n && status == QKV_OK; i++)
        if (!QKV_PUSH(out->ids, e.ids[i])) status = QKV_FAILED;
    if (status == QKV_OK && e.n && !QKV_PUSH(out->start, (int32_t)out->ids.n)) status = QKV_FAILED;
    qkv_encoding_free(&e);
    return status;
}

qkv_status qkv_constraints_make(const qkv_text_model *m, const qkv_text *words, size_t n,
                                bool no_unknown, qkv_constraints *out) {
    *out = (qkv_constraints){0};
    QKV_TRY(choose_never(m, no_unknown, out));
    if (!QKV_PUSH(out->start, 0)) return QKV_FAILED;
    qkv_buf spaced = {0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_buf_clear(&spaced);
        qkv_buf_putc(&spaced, ' ');
        qkv_buf_add(&spaced, words[i].data, words[i].len);
        status = spaced.status;
        if (status == QKV_OK) status = add(m->tokenizer, words[i].data, words[i].len, out);
        if (status == QKV_OK) status = add(m->tokenizer, spaced.data, spaced.len, out);
    }
    qkv_buf_free(&spaced);
    return status;
}

void qkv_constraints_free(qkv_constraints *c) {
    qkv_free(c->never);
    qkv_free(c->ids.at);
    qkv_free(c->start.at);
    *c = (qkv_constraints){0};
}

qkv_phrases qkv_constraints_phrases(const qkv_constraints *c) {
    return (qkv_phrases){.n = (int32_t)c->start.n - 1, .start = c->start.at, .ids = c->ids.at};
}
