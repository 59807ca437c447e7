/* Applying byte-pair merges: always the adjacent pair of lowest rank, the leftmost of equals, until
 * no pair can be merged.
 *
 * A short word is a small array in which the lowest rank is searched afresh each time. A long one
 * is a linked list with a heap of (rank, place), whose stale entries are noticed when they come up:
 * O(n log n), since a text may be one word. */
#include "text/models.h"
#include "text/scratch.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

#define SHORT   40 /* symbols; beyond this the heap is faster */
#define NO_RANK UINT32_MAX

/* ---- from text to symbols ---- */

static bool add_symbol(qkv_scratch *s, int32_t id, size_t len) {
    return QKV_PUSH(s->symbols, ((qkv_symbol){.id = id, .len = (uint32_t)len}));
}

/* The token of one character, with the model's prefix and suffix where it stands inside or at the
 * end. */
static int32_t char_token(const qkv_tokenizer *tok, const qkv_bpe *m, const char *text, size_t n,
                          bool first, bool last) {
    const char *prefix = first ? NULL : m->options.prefix,
               *suffix = last ? m->options.suffix : NULL;
    if (!prefix && !suffix) {
        if (n == 1) return m->byte_id[(uint8_t)*text];
        return qkv_vocab_find(&tok->vocab, text, n);
    }
    char joined[256];
    const size_t before = prefix ? strlen(prefix) : 0, after = suffix ? strlen(suffix) : 0;
    if (before + n + after > sizeof joined) return -1;
    if (before) memcpy(joined, prefix, before);
    memcpy(joined + before, text, n);
    if (after) memcpy(joined + before + n, suffix, after);
    return qkv_vocab_find(&tok->vocab, joined, before + n + after);
}

/* The byte tokens of an unknown character; false when the vocabulary lacks one. */
static bool fall_back(const qkv_bpe *m, const char *text, size_t n, int32_t ids[4]) {
    for (size_t i = 0; i < n; i++)
        if ((ids[i] = m->fallback[(uint8_t)text[i]]) < 0) return false;
    return true;
}

static qkv_status char_symbols(const qkv_tokenizer *tok, const qkv_bpe *m, qkv_scratch *s,
                               const char *word, size_t n) {
    size_t unk_len = 0; /* of an unknown token that is not yet added */
    bool ok = true;
    for (size_t i = 0, len; i < n && ok; i += len) {
        int32_t cp, id = -1, bytes[4];
        len = m->frozen.n ? qkv_trie_longest(&m->frozen, word + i, n - i, &id) : 0;
        if (!len) {
            len = (size_t)qkv_utf8_decode(word + i, n - i, &cp);
            id = char_token(tok, m, word + i, len, i == 0, i + len == n);
        }
        if (id >= 0) {
            if (unk_len) ok = add_symbol(s, m->unk, unk_len);
            unk_len = 0;
            ok = ok && add_symbol(s, id, len);
        } else if (m->options.byte_fallback && fall_back(m, word + i, len, bytes)) {
            for (size_t k = 0; k < len; k++) ok = ok && add_symbol(s, bytes[k], 1);
        } else if (m->unk >= 0) {
            if (unk_len && !m->options.fuse_unk) {
                ok = add_symbol(s, m->unk, unk_len);
                unk_len = 0;
            }
            unk_len += len;
        }
    }
    if (unk_len) ok = ok && add_symbol(s, m->unk, unk_len);
    return ok ? QKV_OK : QKV_FAILED;
}

/* A byte without a token: the unknown token if there is one, else it is left out, as in the
 * original. */
static qkv_status byte_symbols(const qkv_bpe *m, qkv_scratch *s, const char *word, size_t n) {
    bool after_unk = false;
    for (size_t i = 0; i < n; i++) {
        const int32_t id = m->byte_id[(uint8_t)word[i]];
        if (id < 0 && after_unk && m->options.fuse_unk) {
            s->symbols.at[s->symbols.n - 1].len++;
            continue;
        }
        after_unk = id < 0;
        if (id < 0 && m->unk < 0) continue;
        if (!add_symbol(s, id < 0 ? m->unk : id, 1)) return QKV_FAILED;
    }
    return QKV_OK;
}

/* ---- pairs ---- */

/* The merge of a pair that has become adjacent, or NULL. */
static const qkv_merge_slot *candidate(const qkv_bpe *m, qkv_scratch *s, int32_t left,
                                       int32_t right) {
    const qkv_merge_slot *slot = qkv_bpe_find(m, left, right);
    if (m->unused && slot && m->unused[slot->result] &&
        !QKV_PUSH(s->unmade, ((qkv_merge){left, right, slot->result})))
        return NULL;
    return slot;
}

/* ---- short words ---- */

static uint32_t rank_of(const qkv_bpe *m, qkv_scratch *s, const qkv_symbol *pair, int32_t *result) {
    const qkv_merge_slot *slot = candidate(m, s, pair[0].id, pair[1].id);
    if (!slot) return NO_RANK;
    *result = slot->result;
    return slot->rank;
}

static void merge_short(const qkv_bpe *m, qkv_scratch *s) {
    qkv_symbol *const sym = s->symbols.at;
    size_t n = s->symbols.n;
    uint32_t rank[SHORT];
    int32_t result[SHORT];
    for (size_t i = 0; i + 1 < n; i++) rank[i] = rank_of(m, s, &sym[i], &result[i]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best]) best = i;
        if (rank[best] == NO_RANK) break;
        sym[best].id = result[best];
        sym[best].len += sym[best + 1].len;
        n--;
        for (size_t i = best + 1; i < n; i++) {
            sym[i] = sym[i + 1];
            rank[i] = rank[i + 1]; /* of the last one: not used */
            result[i] = result[i + 1];
        }
        if (best > 0) rank[best - 1] = rank_of(m, s, &sym[best - 1], &result[best - 1]);
        if (best + 1 < n) rank[best] = rank_of(m, s, &sym[best], &result[best]);
    }
    s->symbols.n = n;
}

/* ---- long words ---- */

/* A heap with four children per node, of rank · 2³² + place: its smallest is the next merge. */
static bool heap_push(qkv_scratch *s, uint64_t key) {
    if (!QKV_PUSH(s->heap, key)) return false;
    uint64_t *heap = s->heap.at;
    size_t i = s->heap.n - 1;
    for (; i && heap[(i - 1) / 4] > key; i = (i - 1) / 4) heap[i] = heap[(i - 1) / 4];
    heap[i] = key;
    return true;
}

static uint64_t heap_pop(qkv_scratch *s) {
    uint64_t *heap = s->heap.at;
    const uint64_t top = heap[0], key = heap[--s->heap.n];
    const size_t n = s->heap.n;
    size_t i = 0;
    for (size_t child; (child = 4 * i + 1) < n; i = child) {
        const size_t end = child + 4 < n ? child + 4 : n;
        for (size_t c = child + 1; c < end; c++)
            if (heap[c] < heap[child]) child = c;
        if (heap[child] >= key) break;
        heap[i] = heap[child];
    }
    if (n) heap[i] = key;
    return top;
}

static bool push_pair(const qkv_bpe *m, qkv_scratch *s, int32_t left) {
    const qkv_symbol *sym = s->symbols.at;
    if (left < 0 || sym[left].next < 0) return true;
    const qkv_merge_slot *slot = candidate(m, s, sym[left].id, sym[sym[left].next].id);
    return !slot || heap_push(s, (uint64_t)slot->rank << 32 | (uint32_t)left);
}

/* The merge this entry stands for, if it still does. */
static const qkv_merge_slot *still_valid(const qkv_bpe *m, const qkv_symbol *sym, uint64_t key) {
    const qkv_symbol *left = &sym[(uint32_t)key];
    if (!left->len || left->next < 0) return NULL;
    const qkv_merge_slot *slot = qkv_bpe_find(m, left->id, sym[left->next].id);
    return slot && slot->rank == key >> 32 ? slot : NULL;
}

/* With dropout each merge is passed over with that probability whenever its turn comes; it has
 * another chance after the next merge that is made. */
static qkv_status merge_long(const qkv_bpe *m, qkv_scratch *s) {
    qkv_symbol *sym = s->symbols.at;
    const int32_t n = (int32_t)s->symbols.n;
    bool ok = true;
    s->heap.n = s->skipped.n = 0;
    for (int32_t i = 0; i < n; i++) {
        sym[i].prev = i - 1;
        sym[i].next = i + 1 < n ? i + 1 : -1;
    }
    for (int32_t i = 0; i < n && ok; i++) ok = push_pair(m, s, i);
    while (s->heap.n && ok) {
        const uint64_t key = heap_pop(s);
        const qkv_merge_slot *slot = still_valid(m, sym, key);
        if (!slot) continue;
        if (s->dropout > 0 && qkv_scratch_draw(s) < s->dropout) {
            ok = QKV_PUSH(s->skipped, key);
            continue;
        }
        while (s->skipped.n && ok) ok = heap_push(s, s->skipped.at[--s->skipped.n]);
        const int32_t left = (int32_t)(uint32_t)key, right = sym[left].next;
        sym[left].id = slot->result;
        sym[left].len += sym[right].len;
        sym[right].len = 0;
        sym[left].next = sym[right].next;
        if (sym[right].next >= 0) sym[sym[right].next].prev = left;
        ok = ok && push_pair(m, s, sym[left].prev) && push_pair(m, s, left);
    }
    return ok ? QKV_OK : QKV_FAILED;
}

/* ---- one word ---- */

#define UNMAKE_DEPTH 100 /* as in the original */

/* Appends a token that ends the merging; an unused one as the two that it was last made of. */
static qkv_status emit(const qkv_tokenizer *tok, qkv_scratch *s, int32_t id, uint32_t at, size_t n,
                       int depth, qkv_encoding *out) {
    const qkv_bpe *m = tok->model;
    for (size_t i = m->unused && m->unused[id] && depth < UNMAKE_DEPTH ? s->unmade.n : 0; i--;) {
        const qkv_merge made = s->unmade.at[i];
        if (made.result != id) continue;
        size_t left = 0;
        qkv_vocab_text(&tok->vocab, made.left, &left);
        QKV_TRY(emit(tok, s, made.left, at, left, depth + 1, out));
        return emit(tok, s, made.right, at + (uint32_t)left, n - left, depth + 1, out);
    }
    return qkv_emit(s, out, id, at, at + n) ? QKV_OK : QKV_FAILED;
}

qkv_status qkv_bpe_encode(const qkv_tokenizer *tok, qkv_scratch *s, const char *word, size_t n,
                          uint32_t at, qkv_encoding *out) {
    const qkv_bpe *m = tok->model;
    if (m->options.ignore_merges) {
        const int32_t id = qkv_vocab_find(tok->byte_level ? &m->whole : &tok->vocab, word, n);
        if (id >= 0) return qkv_emit(s, out, id, at, at + n) ? QKV_OK : QKV_FAILED;
    }
    s->symbols.n = s->unmade.n = 0;
    QKV_TRY(tok->byte_level ? byte_symbols(m, s, word, n) : char_symbols(tok, m, s, word, n));
    if (s->symbols.n <= SHORT && s->dropout <= 0)
        merge_short(m, s);
    else
        QKV_TRY(merge_long(m, s));
    for (size_t i = 0; i < s->symbols.n; i++) {
        const qkv_symbol *sym = &s->symbols.at[i];
        if (!sym->len) continue;
        QKV_TRY(emit(tok, s, sym->id, at, sym->len, 0, out));
        at += sym->len;
    }
    return QKV_OK;
}
