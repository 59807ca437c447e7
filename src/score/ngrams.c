#include "score/ngrams.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

void qkv_score_words_free(qkv_score_words *w) {
    qkv_free(w->codes.at);
    qkv_free(w->ends.at);
    qkv_free(w->lines.at);
    qkv_free(w->ids.at);
    qkv_free(w->grams.at);
    qkv_free(w->counts.at);
    qkv_free(w->from.at);
    qkv_free(w->to.at);
    qkv_buf_free(&w->text);
    *w = (qkv_score_words){0};
}

void qkv_score_words_clear(qkv_score_words *w) {
    w->codes.n = w->ends.n = w->lines.n = w->ids.n = 0;
}

bool qkv_score_is_space(int32_t cp) {
    if (cp < 0x80) return (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x20);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

qkv_status qkv_score_decode(qkv_text line, int32_t *out, size_t *n) {
    if (line.len > INT32_MAX)
        return qkv_fail(QKV_BAD_FILE, "a line of %zu bytes; a score takes lines below 2^31",
                        line.len);
    *n = 0;
    for (size_t i = 0; i < line.len; (*n)++) {
        i += (size_t)qkv_utf8_decode(line.data + i, line.len - i, &out[*n]);
        if (out[*n] < 0) out[*n] = 0xFFFD;
    }
    return QKV_OK;
}

/* ---- words ---- */

qkv_status qkv_score_words_add(qkv_score_words *w, const int32_t *codes, size_t n) {
    if (n == 0) return QKV_OK;
    for (size_t i = 0; i < n; i++)
        if (!QKV_PUSH(w->codes, codes[i])) return QKV_FAILED;
    return QKV_PUSH(w->ends, w->codes.n) ? QKV_OK : QKV_FAILED;
}

qkv_status qkv_score_words_end_line(qkv_score_words *w) {
    return QKV_PUSH(w->lines, w->ends.n) ? QKV_OK : QKV_FAILED;
}

/* By symbols, a beginning before what it begins. */
static int compare(const void *a, const void *b) {
    const qkv_gram *x = a, *y = b;
    const int32_t n = x->n < y->n ? x->n : y->n;
    for (int32_t i = 0; i < n; i++)
        if (x->at[i] != y->at[i]) return x->at[i] < y->at[i] ? -1 : 1;
    return (x->n > y->n) - (x->n < y->n);
}

qkv_status qkv_score_words_number(qkv_score_words *w) {
    w->grams.n = w->ids.n = 0;
    for (size_t i = 0, begin = 0; i < w->ends.n; begin = w->ends.at[i++]) {
        const qkv_gram word = {w->codes.at + begin, (int32_t)(w->ends.at[i] - begin), (int32_t)i};
        if (!QKV_PUSH(w->grams, word) || !QKV_PUSH(w->ids, 0)) return QKV_FAILED;
    }
    if (w->grams.n) qsort(w->grams.at, w->grams.n, sizeof *w->grams.at, compare);
    int32_t id = 0;
    for (size_t i = 0; i < w->grams.n; i++) {
        id += i > 0 && compare(&w->grams.at[i - 1], &w->grams.at[i]) != 0;
        w->ids.at[w->grams.at[i].owner] = id;
    }
    return QKV_OK;
}

qkv_gram qkv_score_words_line(const qkv_score_words *w, size_t i) {
    const size_t begin = i ? w->lines.at[i - 1] : 0, n = w->lines.at[i] - begin;
    return (qkv_gram){.at = n ? w->ids.at + begin : NULL, .n = (int32_t)n, .owner = (int32_t)i};
}

/* ---- n-grams ---- */

static bool same_start(const qkv_gram *x, const qkv_gram *y, int32_t n) {
    return x->n >= n && y->n >= n && memcmp(x->at, y->at, (size_t)n * sizeof *x->at) == 0;
}

/* What the first sequence has in common with the others of one n-gram, counted in `counts`. */
static int64_t common(const int64_t *counts, size_t n) {
    int64_t most = 0;
    for (size_t s = 1; s < n; s++)
        if (counts[s] > most) most = counts[s];
    return counts[0] < most ? counts[0] : most;
}

qkv_status qkv_ngrams_match(qkv_score_words *w, const qkv_gram *sequences, size_t n, int orders,
                            int64_t *match) {
    w->grams.n = w->counts.n = 0;
    for (size_t s = 0; s < n; s++) {
        if (!QKV_PUSH(w->counts, 0)) return QKV_FAILED;
        for (int32_t i = 0; i < sequences[s].n; i++) {
            const int32_t left = sequences[s].n - i;
            const qkv_gram g = {sequences[s].at + i, left < orders ? left : orders, (int32_t)s};
            if (!QKV_PUSH(w->grams, g)) return QKV_FAILED;
        }
    }
    const qkv_gram *g = w->grams.at;
    if (w->grams.n) qsort(w->grams.at, w->grams.n, sizeof *w->grams.at, compare);
    for (int32_t k = 1; k <= orders; k++) {
        match[k - 1] = 0;
        for (size_t i = 0; i < w->grams.n; i++) {
            if (g[i].n < k) continue; /* the sequence ends here: no k-gram */
            w->counts.at[g[i].owner]++;
            if (i + 1 < w->grams.n && same_start(&g[i], &g[i + 1], k)) continue;
            match[k - 1] += common(w->counts.at, n);
            memset(w->counts.at, 0, n * sizeof *w->counts.at);
        }
    }
    return QKV_OK;
}
