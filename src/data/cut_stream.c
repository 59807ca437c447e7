/* Where running text may be cut in two: the place nearest to the one that is wanted, within a
 * hundredth of the whole, that lies behind an empty line (the end of a document, a chapter, a
 * speech); else behind any line, else between two words. Nothing is copied: a piece becomes two. */
#include "base/mem.h"
#include "data/corpus.h"

#include <string.h>

enum { NEAR_LEAST = 256 }; /* bytes to either side that are looked at, at the least */

/* How good a place `at` is within the text: 3 behind an empty line, 2 a line, 1 a word; 0: none. */
static int worth(qkv_text t, size_t at) {
    if (at == 0 || at >= t.len) return 0;
    const char before = t.data[at - 1];
    if (before == '\n') return t.data[at] != '\n' && at > 1 && t.data[at - 2] == '\n' ? 3 : 2;
    return before == ' ' && t.data[at] != ' ';
}

/* The best place within `near` bytes of `wanted`, of equals the nearest; 0: there is none. */
static size_t best_place(qkv_text t, size_t wanted, size_t near) {
    size_t best = 0;
    int most = 0;
    for (size_t d = 0; d <= near; d++)
        for (int side = 0; side < 2; side++) {
            if (side && d > wanted) continue;
            const size_t at = side ? wanted - d : wanted + d;
            const int here = worth(t, at);
            if (here > most) most = here, best = at;
        }
    return best;
}

/* Row i ends at byte `at` of its text, what is left of it becomes row i + 1. */
static qkv_status cut_row(qkv_corpus *c, size_t i, size_t at) {
    if (!qkv_vec_grow((void **)&c->rows, c->n, &c->cap, sizeof *c->rows)) return QKV_FAILED;
    qkv_row *first = &c->rows[i], *second = first + 1;
    memmove(second, first, (c->n - i) * sizeof *first);
    c->n++;
    first->text.len = at;
    second->text.data += at;
    second->text.len -= at;
    for (size_t k = 0; k < at; k++) second->line += first->text.data[k] == '\n';
    return QKV_OK;
}

qkv_status qkv_corpus_cut(qkv_corpus *c, int64_t wanted, size_t *row) {
    int64_t all = 0, from = 0;
    size_t i = 0;
    for (size_t k = 0; k < c->n; k++) all += (int64_t)c->rows[k].text.len;
    while (i < c->n && from + (int64_t)c->rows[i].text.len <= wanted)
        from += (int64_t)c->rows[i++].text.len;
    *row = i;
    if (i == c->n || from == wanted) return QKV_OK;
    const size_t near = all / 100 > NEAR_LEAST ? (size_t)all / 100 : NEAR_LEAST,
                 at = best_place(c->rows[i].text, (size_t)(wanted - from), near);
    *row = i + 1;
    return at ? cut_row(c, i, at) : QKV_OK;
}
