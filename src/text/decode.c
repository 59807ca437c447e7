/* Decoding: ids to token strings, through the decoder's steps, joined. And the same, one id at a
 * time. */
#include "text/pipeline.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

static void clear(qkv_strings *s) {
    qkv_buf_clear(&s->text);
    s->start.n = 0;
}

static void release(qkv_strings *s) {
    qkv_buf_free(&s->text);
    qkv_free(s->start.at);
}

static qkv_status token_strings(const qkv_tokenizer *tok, const int32_t *ids, size_t n,
                                bool keep_special, qkv_strings *out) {
    clear(out);
    if (!QKV_PUSH(out->start, 0)) return QKV_FAILED;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *text = qkv_tokenizer_token(tok, ids[i], &len);
        if (!text || (!keep_special && tok->is_special[ids[i]])) continue;
        if (tok->unk_surface.data && ids[i] == tok->special[QKV_TOK_UNK]) {
            text = tok->unk_surface.data;
            len = tok->unk_surface.len;
        }
        qkv_buf_add(&out->text, text, len);
        if (out->text.status != QKV_OK) return out->text.status;
        if (out->text.len > QKV_TEXT_MAX)
            return qkv_fail(QKV_USAGE, "%zu ids: decode them in parts", n);
        if (!QKV_PUSH(out->start, (uint32_t)out->text.len)) return QKV_FAILED;
    }
    return QKV_OK;
}

static qkv_status run(const qkv_tokenizer *tok, const int32_t *ids, size_t n, bool keep_special,
                      qkv_strings *a, qkv_strings *b, qkv_buf *out) {
    QKV_TRY(token_strings(tok, ids, n, keep_special, a));
    const qkv_text_steps *steps = &tok->stage[QKV_STAGE_DECODER];
    for (size_t i = 0; i < steps->n; i++) {
        clear(b);
        if (!QKV_PUSH(b->start, 0)) return QKV_FAILED;
        if (a->start.n > 1) QKV_TRY(steps->step[i].kind->decode(&steps->step[i], a, b));
        qkv_strings *const swap = a;
        a = b;
        b = swap;
    }
    if (steps->n) { /* the strings lie one after another: joined already */
        qkv_buf_add(out, a->text.data ? a->text.data : "", a->text.len);
        return out->status;
    }
    for (size_t i = 0; i + 1 < a->start.n; i++) {
        if (i) qkv_buf_putc(out, ' ');
        qkv_buf_add(out, a->text.data + a->start.at[i], a->start.at[i + 1] - a->start.at[i]);
    }
    return out->status;
}

qkv_status qkv_tokenizer_decode(const qkv_tokenizer *tok, const int32_t *ids, size_t n,
                                bool keep_special, qkv_buf *out) {
    qkv_strings a = {0}, b = {0};
    const qkv_status status = run(tok, ids, n, keep_special, &a, &b, out);
    release(&a);
    release(&b);
    return status;
}

qkv_status qkv_tokenizer_text(const qkv_tokenizer *tok, const int32_t *ids, size_t n,
                              bool keep_special, char **text, size_t *len) {
    qkv_buf out = {0};
    *text = NULL;
    qkv_buf_puts(&out, ""); /* so that there is a text even without tokens */
    const qkv_status status = qkv_tokenizer_decode(tok, ids, n, keep_special, &out);
    if (status != QKV_OK) {
        qkv_buf_free(&out);
        return status;
    }
    if (len) *len = out.len;
    *text = out.data;
    return QKV_OK;
}

/* ---- streaming ---- */

/* What a token adds depends on the tokens before it (a first token loses its blank, bytes make up a
 * character together). So a few tokens already given out are kept and decoded along; what comes
 * after their text is new. The window moves on whenever the text ends with a whole character. */
struct qkv_decode_stream {
    const qkv_tokenizer *tok;
    bool keep_special;
    QKV_VEC(int32_t) window;
    size_t given; /* bytes of the window's text given out */
    qkv_strings a, b;
    qkv_buf text;
};

#define CONTEXT                                                                                    \
    4 /* tokens kept: one shows that the text has begun, the others are for decoders that look     \
         back */

qkv_status qkv_decode_stream_new(const qkv_tokenizer *tok, bool keep_special,
                                 qkv_decode_stream **out) {
    qkv_decode_stream *s;
    QKV_TRY_ALLOC(s = qkv_zalloc(1, sizeof *s));
    s->tok = tok;
    s->keep_special = keep_special;
    *out = s;
    return QKV_OK;
}

static qkv_status decode_window(qkv_decode_stream *s) {
    qkv_buf_clear(&s->text);
    return run(s->tok, s->window.at, s->window.n, s->keep_special, &s->a, &s->b, &s->text);
}

qkv_status qkv_decode_stream_push(qkv_decode_stream *s, int32_t id, qkv_buf *out) {
    size_t len;
    const char *token = qkv_tokenizer_token(s->tok, id, &len);
    if (!token || (!s->keep_special && s->tok->is_special[id])) return QKV_OK;
    if (!QKV_PUSH(s->window, id)) return QKV_FAILED;
    QKV_TRY(decode_window(s));
    const size_t whole = s->text.len ? qkv_utf8_complete(s->text.data, s->text.len) : 0;
    if (whole > s->given) qkv_buf_add(out, s->text.data + s->given, whole - s->given);
    if (whole > s->given) s->given = whole;
    if (whole == s->text.len && s->window.n > 2 * CONTEXT) {
        memmove(s->window.at, s->window.at + s->window.n - CONTEXT, CONTEXT * sizeof *s->window.at);
        s->window.n = CONTEXT;
        s->a.within = s->a.within || s->text.len;
        QKV_TRY(decode_window(s));
        s->given = s->text.len;
    }
    return out->status;
}

qkv_status qkv_decode_stream_end(qkv_decode_stream *s, qkv_buf *out) {
    if (s->window.n) {
        QKV_TRY(decode_window(s));
        if (s->text.len > s->given)
            qkv_buf_add(out, s->text.data + s->given, s->text.len - s->given);
    }
    s->window.n = s->given = 0;
    s->a.within = false;
    return out->status;
}

void qkv_decode_stream_free(qkv_decode_stream *s) {
    if (!s) return;
    release(&s->a);
    release(&s->b);
    qkv_buf_free(&s->text);
    qkv_free(s->window.at);
    qkv_free(s);
}
