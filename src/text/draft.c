/* Text under work: two buffers that steps write in turn, with or without offsets into the original.
 */
#include "text/pipeline.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

/* Steps that replace can multiply a text, one after another without end. Unicode's own forms make at
 * most 18 characters of one, bytes written as characters two of one: what grows beyond is hostile. */
enum { GROWTH = 64, GROWTH_FREE = 1 << 16 };

void qkv_draft_free(qkv_draft *w) {
    for (int i = 0; i < 2; i++) {
        qkv_buf_free(&w->side[i].text);
        qkv_free(w->side[i].from.at);
        qkv_free(w->side[i].to.at);
    }
    qkv_free(w->pieces.at);
    qkv_free(w->old.at);
    qkv_free(w->chars.at);
    qkv_free(w->stretches.at);
    *w = (qkv_draft){0};
}

/* Room for n more offsets in one of the two arrays. */
static uint32_t *extend(uint32_t **at, size_t *n, size_t *cap, size_t more) {
    if (*n + more > *cap) {
        const size_t wanted = (*n + more) + (*n + more) / 2;
        uint32_t *grown = qkv_realloc(*at, wanted * sizeof *grown);
        if (!grown) return NULL;
        *at = grown;
        *cap = wanted;
    }
    *n += more;
    return *at + *n - more;
}

#define EXTEND(v, more) extend(&(v).at, &(v).n, &(v).cap, more)

qkv_status qkv_draft_start(qkv_draft *w, const char *text, size_t len, size_t base, bool track) {
    w->text = text;
    w->len = len;
    w->track = track;
    w->at_start = base == 0;
    w->most = GROWTH_FREE + len * GROWTH;
    w->from = w->to = NULL;
    w->pieces.n = w->old.n = 0;
    w->out = 0;
    if (!track) return QKV_OK;
    struct qkv_draft_side *s = &w->side[1]; /* only its offsets: the text is the caller's */
    s->from.n = s->to.n = 0;
    uint32_t *from, *to;
    if (!(from = EXTEND(s->from, len + 1)) || !(to = EXTEND(s->to, len + 1))) return QKV_FAILED;
    for (size_t i = 0; i < len;) {
        int32_t cp;
        const size_t n = (size_t)qkv_utf8_decode(text + i, len - i, &cp);
        for (size_t k = i; k < i + n; k++) {
            from[k] = (uint32_t)(base + i);
            to[k] = (uint32_t)(base + i + n);
        }
        i += n;
    }
    w->from = from;
    w->to = to;
    return QKV_OK;
}

void qkv_draft_begin(qkv_draft *w) {
    struct qkv_draft_side *s = &w->side[w->out];
    qkv_buf_clear(&s->text);
    s->from.n = s->to.n = 0;
}

void qkv_draft_put(qkv_draft *w, const char *bytes, size_t n, size_t begin, size_t end) {
    struct qkv_draft_side *s = &w->side[w->out];
    if (!n || s->text.status != QKV_OK) return;
    if (s->text.len + n > w->most) {
        s->text.status = qkv_fail(QKV_BAD_FILE,
                                  "the tokenizer's steps make more than %zu bytes of a text, more "
                                  "than %d for each of its own",
                                  w->most, GROWTH);
        return;
    }
    qkv_buf_add(&s->text, bytes, n);
    if (!w->track || s->text.status != QKV_OK) return;
    uint32_t *from = EXTEND(s->from, n), *to = EXTEND(s->to, n);
    if (!from || !to) {
        s->text.status = QKV_FAILED;
        return;
    }
    const bool empty = begin >= w->len;
    const uint32_t first = empty ? 0 : w->from[begin],
                   last = empty ? 0 : w->to[end > begin ? end - 1 : begin];
    for (size_t i = 0; i < n; i++) {
        from[i] = first;
        to[i] = last;
    }
}

void qkv_draft_keep(qkv_draft *w, size_t begin, size_t end) {
    struct qkv_draft_side *s = &w->side[w->out];
    if (begin >= end) return;
    qkv_buf_add(&s->text, w->text + begin, end - begin);
    if (!w->track || s->text.status != QKV_OK) return;
    uint32_t *from = EXTEND(s->from, end - begin), *to = EXTEND(s->to, end - begin);
    if (!from || !to) {
        s->text.status = QKV_FAILED;
        return;
    }
    memcpy(from, w->from + begin, (end - begin) * sizeof *from);
    memcpy(to, w->to + begin, (end - begin) * sizeof *to);
}

void qkv_draft_put_char(qkv_draft *w, int32_t cp, size_t begin, size_t end) {
    char bytes[4];
    const int n = qkv_utf8_encode(cp, bytes);
    qkv_draft_put(w, bytes, (size_t)n, begin, end);
}

size_t qkv_draft_size(const qkv_draft *w) {
    return w->side[w->out].text.len;
}

qkv_status qkv_draft_end(qkv_draft *w) {
    struct qkv_draft_side *s = &w->side[w->out];
    if (s->text.status != QKV_OK) return s->text.status;
    if (s->text.len > QKV_TEXT_MAX)
        return qkv_fail(QKV_USAGE,
                        "a text of %zu bytes after normalisation: at most %u; cut it into parts",
                        s->text.len, QKV_TEXT_MAX);
    w->text = s->text.data ? s->text.data : "";
    w->len = s->text.len;
    w->from = w->track ? s->from.at : NULL;
    w->to = w->track ? s->to.at : NULL;
    w->out = !w->out;
    return QKV_OK;
}

qkv_status qkv_draft_cut(qkv_draft *w, size_t begin, size_t end) {
    if (begin >= end) return QKV_OK;
    return QKV_PUSH(w->pieces, ((qkv_piece){(uint32_t)begin, (uint32_t)end})) ? QKV_OK : QKV_FAILED;
}
