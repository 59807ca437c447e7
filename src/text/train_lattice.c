/* Seed pieces by suffix array, and the lattice of where they stand.
 *
 * All suffixes of all distinct words are sorted; suffixes that share a prefix are then neighbours,
 * and each maximal run of neighbours with a common prefix of length d that no longer prefix shares
 * (an LCP interval) is one candidate: a substring that occurs in as many places as the run is long.
 * A piece has at most max_chars characters and never leaves its word, so the order beyond that
 * depth does not matter, and a multikey quicksort (Bentley and Sedgewick) that stops there is
 * near-linear and needs no other memory. */
#include "text/train_lattice.h"
#include "base/mem.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

typedef struct interval {
    uint32_t begin, end; /* of the suffix array */
    uint32_t depth;      /* characters shared */
    uint64_t weight;     /* how often it stands in the text */
} interval;

typedef struct seeder {
    qkv_lattice *l;
    uint32_t max_chars;
    const uint8_t *kind;
    uint32_t *suffix; /* (n) places in order of what follows */
    uint8_t *lcp;     /* (n + 1) characters shared with the one before; more than max_chars: +1 */
    uint64_t *sum;    /* (n + 1) weights of the suffixes before */
    QKV_VEC(interval) found;
} seeder;

/* ---- sorting suffixes ---- */

static void swap(uint32_t *a, uint32_t *b) {
    uint32_t t = *a;
    *a = *b;
    *b = t;
}

static uint32_t median(uint32_t a, uint32_t b, uint32_t c) {
    if (a > b) swap(&a, &b);
    return c < a ? a : c > b ? b : c;
}

/* Characters that two suffixes share from `depth` on, at most `limit` in all. */
static uint32_t shared(const uint32_t *text, uint32_t a, uint32_t b, uint32_t depth,
                       uint32_t limit) {
    while (depth < limit && text[a + depth] && text[a + depth] == text[b + depth]) depth++;
    return depth;
}

static void insertion_sort(const uint32_t *text, uint32_t *s, size_t n, uint32_t depth,
                           uint32_t limit) {
    for (size_t i = 1; i < n; i++) {
        uint32_t x = s[i];
        size_t j = i;
        for (; j > 0; j--) {
            uint32_t d = shared(text, s[j - 1], x, depth, limit);
            if (d == limit || text[s[j - 1] + d] <= text[x + d]) break;
            s[j] = s[j - 1];
        }
        s[j] = x;
    }
}

/* Sorts suffixes that agree in their first `depth` characters. The larger of the two unequal parts
 * is done by the loop, so the recursion is at most log n + limit deep. */
static void sort_suffixes(const uint32_t *text, uint32_t *s, size_t n, uint32_t depth,
                          uint32_t limit) {
    while (n > 12 && depth < limit) {
        const uint32_t *at = text + depth;
        uint32_t pivot = median(at[s[0]], at[s[n / 2]], at[s[n - 1]]);
        size_t low = 0, high = n;
        for (size_t i = 0; i < high;) {
            uint32_t c = at[s[i]];
            if (c < pivot)
                swap(&s[low++], &s[i++]);
            else if (c > pivot)
                swap(&s[i], &s[--high]);
            else
                i++;
        }
        if (pivot) sort_suffixes(text, s + low, high - low, depth + 1, limit);
        size_t above = n - high;
        if (low < above) {
            sort_suffixes(text, s, low, depth, limit);
            s += high;
            n = above;
        } else {
            sort_suffixes(text, s + high, above, depth, limit);
            n = low;
        }
    }
    if (depth < limit) insertion_sort(text, s, n, depth, limit);
}

/* Distributes the suffixes by their first character and sorts each part; parts are independent. */
static qkv_status sort_all(seeder *s) {
    const qkv_lattice *l = s->l;
    size_t n_chars = l->n_chars + 1;
    uint32_t *begin;
    QKV_TRY_ALLOC(begin = qkv_zalloc(n_chars + 1, sizeof *begin));
    for (uint32_t i = 0; i < l->n; i++) begin[l->text[i] + 1]++;
    for (size_t c = 0; c < n_chars; c++) begin[c + 1] += begin[c];
    for (uint32_t i = 0; i < l->n; i++) s->suffix[begin[l->text[i]]++] = i;
    /* now begin[c] is where c ends */
    QKV_PARALLEL_FOR_UNEVEN
    for (size_t c = 1; c < n_chars; c++)
        sort_suffixes(l->text, s->suffix + begin[c - 1], begin[c] - begin[c - 1], 1,
                      s->max_chars + 1);
    uint32_t ends = begin[0]; /* the first are the ends: they share nothing */
    qkv_free(begin);
    memset(s->lcp, 0, ends);
    s->lcp[l->n] = 0;
    QKV_PARALLEL_FOR
    for (uint32_t i = ends; i < l->n; i++)
        s->lcp[i] =
            i ? (uint8_t)shared(l->text, s->suffix[i - 1], s->suffix[i], 0, s->max_chars + 1) : 0;
    return QKV_OK;
}

/* ---- candidates ---- */

/* Whether the characters may stand in one piece. */
static bool one_kind(const seeder *s, uint32_t at, uint32_t len) {
    if (!s->kind) return true;
    uint8_t now = 0;
    for (uint32_t i = 0; i < len; i++) {
        uint8_t kind = s->kind[s->l->text[at + i] - 1];
        if (kind == 255) continue;
        if (kind && now && kind != now) return false;
        now = kind;
    }
    return true;
}

static qkv_status add_candidate(seeder *s, interval v) {
    v.weight = s->sum[v.end] - s->sum[v.begin];
    if (v.depth < 2 || v.depth > s->max_chars || v.weight < 2) return QKV_OK;
    if (!one_kind(s, s->suffix[v.begin], v.depth)) return QKV_OK;
    return QKV_PUSH(s->found, v) ? QKV_OK : QKV_FAILED;
}

/* Closes intervals with a stack while walking down the array; depths on the stack rise. */
static qkv_status find_candidates(seeder *s) {
    interval stack[QKV_PIECE_CHARS + 3] = {{0}};
    size_t top = 0;
    for (uint32_t i = 1; i <= s->l->n; i++) {
        uint32_t depth = s->lcp[i], begin = i - 1;
        while (stack[top].depth > depth) {
            stack[top].end = i;
            begin = stack[top].begin;
            QKV_TRY(add_candidate(s, stack[top--]));
        }
        if (stack[top].depth < depth) stack[++top] = (interval){.begin = begin, .depth = depth};
    }
    return QKV_OK;
}

/* Whole words that are part of no other word have no interval; frequent ones deserve to be seeds
 * too. */
static qkv_status find_words(seeder *s) {
    const qkv_lattice *l = s->l;
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t at = s->suffix[i], len = 0;
        if (at > 0 && !(l->text[at - 1] == 0)) continue;
        while (len <= s->max_chars && l->text[at + len]) len++;
        if (s->lcp[i] < len && s->lcp[i + 1] < len)
            QKV_TRY(add_candidate(s, (interval){.begin = i, .end = i + 1, .depth = len}));
    }
    return QKV_OK;
}

/* By characters of the text covered, most first; then by place. */
static int by_coverage(const void *a, const void *b) {
    const interval *x = a, *y = b;
    double p = (double)x->weight * x->depth, q = (double)y->weight * y->depth;
    if (p != q) return p > q ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

/* ---- the lattice ---- */

/* The pieces: unknown, characters, candidates. */
static qkv_status write_pieces(const seeder *s) {
    qkv_lattice *l = s->l;
    l->n_pieces = 1 + l->n_chars + s->found.n;
    QKV_TRY_ALLOC(l->piece = qkv_zalloc(l->n_pieces, sizeof *l->piece));
    for (size_t k = 0; k <= l->n_chars; k++) l->piece[k].len = 1;
    for (uint32_t i = 0; i < l->n; i++) {
        qkv_lattice_piece *c = &l->piece[l->text[s->suffix[i]]];
        c->at = s->suffix[i];
        c->weight += (double)(s->sum[i + 1] - s->sum[i]);
    }
    for (size_t k = 0; k < s->found.n; k++) {
        const interval *v = &s->found.at[k];
        const double weight = (double)v->weight * v->depth;
        l->piece[1 + l->n_chars + k] = (qkv_lattice_piece){s->suffix[v->begin], v->depth, weight};
    }
    return QKV_OK;
}

/* The edges: one for the character of each place, then one for each candidate that stands there. */
static qkv_status write_edges(const seeder *s) {
    qkv_lattice *l = s->l;
    QKV_TRY_ALLOC(l->first = qkv_zalloc((size_t)l->n + 2, sizeof *l->first));
    uint32_t *next = l->first + 1; /* counts, then where each place's next edge goes */
    for (size_t w = 0; w < l->n_words; w++)
        for (uint32_t i = l->word[w]; i + 1 < l->word[w + 1]; i++) next[i + 1]++;
    for (size_t k = 0; k < s->found.n; k++)
        for (uint32_t i = s->found.at[k].begin; i < s->found.at[k].end; i++)
            next[s->suffix[i] + 1]++;
    for (uint32_t i = 0; i < l->n; i++) next[i + 1] += next[i];
    QKV_TRY_ALLOC(l->edge = qkv_zalloc(next[l->n], sizeof *l->edge));
    for (size_t w = 0; w < l->n_words; w++)
        for (uint32_t i = l->word[w]; i + 1 < l->word[w + 1]; i++)
            l->edge[next[i]++] = l->text[i] << QKV_EDGE_BITS | 1;
    for (size_t k = 0; k < s->found.n; k++) {
        uint32_t edge = (uint32_t)(1 + l->n_chars + k) << QKV_EDGE_BITS | s->found.at[k].depth;
        for (uint32_t i = s->found.at[k].begin; i < s->found.at[k].end; i++)
            l->edge[next[s->suffix[i]]++] = edge;
    }
    return QKV_OK; /* each next[i] has come to next[i + 1]: first[i] is where place i begins */
}

/* The words side by side, each with an end; the rarest are left out when there is too much. */
static qkv_status write_text(const qkv_symbols *symbols, int32_t first_char, qkv_lattice *l) {
    const size_t most = (size_t)48 << 20; /* places: about 2 GiB in all */
    while (l->n_words < symbols->n_words && symbols->start[l->n_words + 1] + l->n_words < most)
        l->n_words++;
    size_t n = symbols->start[l->n_words] + l->n_words;
    QKV_TRY_ALLOC(l->text = qkv_zalloc(n, sizeof *l->text));
    QKV_TRY_ALLOC(l->word = qkv_zalloc(l->n_words + 1, sizeof *l->word));
    QKV_TRY_ALLOC(l->count = qkv_zalloc(l->n_words, sizeof *l->count));
    for (size_t w = 0; w < l->n_words; w++) {
        for (size_t i = symbols->start[w]; i < symbols->start[w + 1]; i++) {
            int32_t c = symbols->at[i];
            l->text[l->n++] = c == QKV_NO_SYMBOL ? 0 : (uint32_t)(c - first_char) + 1;
        }
        l->n++; /* the end stays 0 */
        l->word[w + 1] = l->n;
        l->count[w] = symbols->count[w];
    }
    return QKV_OK;
}

static qkv_status make(seeder *s) {
    qkv_lattice *l = s->l;
    QKV_TRY_ALLOC(s->suffix = qkv_zalloc(l->n, sizeof *s->suffix));
    QKV_TRY_ALLOC(s->lcp = qkv_zalloc((size_t)l->n + 1, 1));
    QKV_TRY_ALLOC(s->sum = qkv_zalloc((size_t)l->n + 1, sizeof *s->sum));
    uint32_t *weight; /* of each place: its word's count, by word number */
    QKV_TRY_ALLOC(weight = qkv_zalloc(l->n, sizeof *weight));
    for (size_t w = 0; w < l->n_words; w++)
        for (uint32_t i = l->word[w]; i < l->word[w + 1]; i++) weight[i] = (uint32_t)w;
    qkv_status status = sort_all(s);
    for (uint32_t i = 0; i < l->n && status == QKV_OK; i++)
        s->sum[i + 1] = s->sum[i] + l->count[weight[s->suffix[i]]];
    qkv_free(weight);
    QKV_TRY(status);
    QKV_TRY(find_candidates(s));
    QKV_TRY(find_words(s));
    if (s->found.n > QKV_SEEDS_MAX) {
        qsort(s->found.at, s->found.n, sizeof *s->found.at, by_coverage);
        s->found.n = QKV_SEEDS_MAX;
    }
    QKV_TRY(write_pieces(s));
    return write_edges(s);
}

qkv_status qkv_lattice_make(const qkv_symbols *symbols, int32_t first_char, size_t n_chars,
                            size_t max_chars, const uint8_t *kind, qkv_lattice *out) {
    *out = (qkv_lattice){.n_chars = n_chars};
    seeder s = {.l = out, .max_chars = (uint32_t)max_chars, .kind = kind};
    qkv_status status = write_text(symbols, first_char, out);
    if (status == QKV_OK) status = make(&s);
    qkv_free(s.suffix);
    qkv_free(s.lcp);
    qkv_free(s.sum);
    qkv_free(s.found.at);
    if (status != QKV_OK) qkv_lattice_free(out);
    return status;
}

void qkv_lattice_free(qkv_lattice *l) {
    qkv_free(l->text);
    qkv_free(l->word);
    qkv_free(l->count);
    qkv_free(l->first);
    qkv_free(l->edge);
    qkv_free(l->piece);
    *l = (qkv_lattice){0};
}

qkv_status qkv_lattice_thin(qkv_lattice *l, const bool *keep) {
    uint32_t *renamed, n = 0, to = 0, begin = 0;
    QKV_TRY_ALLOC(renamed = qkv_zalloc(l->n_pieces, sizeof *renamed));
    for (size_t k = 0; k < l->n_pieces; k++) {
        if (!keep[k]) continue;
        l->piece[n] = l->piece[k];
        renamed[k] = n++;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t end = l->first[i + 1];
        for (uint32_t e = begin; e < end; e++) {
            uint32_t piece = l->edge[e] >> QKV_EDGE_BITS, len = l->edge[e] & QKV_PIECE_CHARS;
            if (keep[piece]) l->edge[to++] = renamed[piece] << QKV_EDGE_BITS | len;
        }
        begin = end;
        l->first[i + 1] = to;
    }
    l->n_pieces = n;
    qkv_free(renamed);
    return QKV_OK;
}
