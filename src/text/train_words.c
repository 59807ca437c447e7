/* A table of distinct strings with counts: the words of a text, or the tokens of a vocabulary.
 *
 * Open addressing on 32-bit slots over a dense array of entries: the array is what the trainers
 * read, the slots only find. Words are short, so the hash reads eight bytes at a time and mixes by
 * multiplication. */
#include "text/train.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void qkv_words_init(qkv_words *w) {
    *w = (qkv_words){0};
    qkv_arena_init(&w->text);
}

void qkv_words_free(qkv_words *w) {
    qkv_free(w->at);
    qkv_free(w->slots);
    qkv_arena_free(&w->text);
    *w = (qkv_words){0};
}

void qkv_words_clear(qkv_words *w) {
    w->n = 0;
    if (w->slots) memset(w->slots, 0, w->n_slots * sizeof *w->slots);
    qkv_arena_reset(&w->text);
    w->room = NULL;
    w->n_room = 0;
}

uint32_t qkv_words_hash(const char *text, size_t len) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t h = len * odd, part;
    for (; len >= 8; text += 8, len -= 8) {
        memcpy(&part, text, 8);
        h = (h ^ part) * odd;
        h ^= h >> 29;
    }
    if (len >= 4) { /* 4…7 bytes: two overlapping halves */
        uint32_t low, high;
        memcpy(&low, text, 4);
        memcpy(&high, text + len - 4, 4);
        part = (uint64_t)high << 32 | low;
    } else if (len > 0) { /* 1…3: first, middle and last */
        part = (uint64_t)(uint8_t)text[0] << 16 | (uint64_t)(uint8_t)text[len / 2] << 8 |
               (uint8_t)text[len - 1];
    } else {
        part = 0;
    }
    h = (h ^ part) * odd;
    h ^= h >> 32;
    h *= odd;
    return (uint32_t)(h >> 32);
}

/* Copies a word's bytes side by side into blocks: the arena alone would give each a cache line. */
static const char *keep(qkv_words *w, const char *text, size_t len) {
    const size_t block = (size_t)64 << 10;
    if (len > w->n_room) {
        size_t bytes = len > block ? len : block;
        w->room = qkv_arena_alloc(&w->text, bytes);
        w->n_room = w->room ? bytes : 0;
        if (!w->room) return NULL;
    }
    char *place = w->room;
    if (len) memcpy(place, text, len);
    w->room += len;
    w->n_room -= len;
    return place;
}

static void enter(qkv_words *w, uint32_t index) {
    size_t mask = w->n_slots - 1, slot = w->at[index].hash & mask;
    while (w->slots[slot]) slot = (slot + 1) & mask;
    w->slots[slot] = index + 1;
}

/* Makes room for one more word in entries and slots. */
static qkv_status grow(qkv_words *w) {
    if (!qkv_vec_grow((void **)&w->at, w->n, &w->cap, sizeof *w->at)) return QKV_FAILED;
    if ((w->n + 1) * 4 <= w->n_slots * 3) return QKV_OK;
    if (w->n >= INT32_MAX / 2) return qkv_fail(QKV_FAILED, "more than %zu distinct words", w->n);
    size_t n_slots = w->n_slots ? 2 * w->n_slots : 256;
    uint32_t *slots;
    QKV_TRY_ALLOC(slots = qkv_zalloc(n_slots, sizeof *slots));
    qkv_free(w->slots);
    w->slots = slots;
    w->n_slots = n_slots;
    for (size_t i = 0; i < w->n; i++) enter(w, (uint32_t)i);
    return QKV_OK;
}

/* The slot that holds the word, or the free one where it belongs. */
static uint32_t *find(const qkv_words *w, const char *text, size_t len, uint32_t hash) {
    size_t mask = w->n_slots - 1, slot = hash & mask;
    for (; w->slots[slot]; slot = (slot + 1) & mask) {
        const qkv_word *word = &w->at[w->slots[slot] - 1];
        if (word->hash == hash && word->len == len && memcmp(word->text, text, len) == 0) break;
    }
    return &w->slots[slot];
}

bool qkv_words_find(const qkv_words *w, const char *text, size_t len, uint32_t *index) {
    uint32_t *slot = w->n_slots ? find(w, text, len, qkv_words_hash(text, len)) : NULL;
    if (!slot || !*slot) return false;
    *index = *slot - 1;
    return true;
}

qkv_status qkv_words_add(qkv_words *w, const char *text, size_t len, uint64_t count, bool copy,
                         uint32_t *index) {
    if (!w->n_slots || (w->n + 1) * 4 > w->n_slots * 3 || w->n == w->cap) QKV_TRY(grow(w));
    uint32_t hash = qkv_words_hash(text, len), *slot = find(w, text, len, hash);
    if (!*slot) {
        if (copy) QKV_TRY_ALLOC(text = keep(w, text, len));
        w->at[w->n++] = (qkv_word){.text = text, .len = (uint32_t)len, .hash = hash};
        *slot = (uint32_t)w->n;
    }
    w->at[*slot - 1].count += count;
    if (index) *index = *slot - 1;
    return QKV_OK;
}

static int by_count_then_bytes(const void *a, const void *b) {
    const qkv_word *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    size_t shared = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->text, y->text, shared);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

void qkv_words_sort(qkv_words *w) {
    qkv_free(w->slots);
    w->slots = NULL;
    w->n_slots = 0;
    if (w->n) qsort(w->at, w->n, sizeof *w->at, by_count_then_bytes);
}
