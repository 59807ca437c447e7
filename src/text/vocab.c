#include "text/vocab.h"
#include "base/mem.h"

#include <string.h>

/* Multiplies 8 bytes at a time into a 64-bit state; the tail is read with overlap where the length
 * allows it. */
uint32_t qkv_text_hash(const char *text, size_t len) {
    const uint64_t k = 0x9E3779B97F4A7C15u;
    uint64_t h = len * k, word;
    while (len >= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * k;
        h ^= h >> 29;
        text += 8;
        len -= 8;
    }
    word = 0;
    if (len >= 4) {
        uint32_t low, high;
        memcpy(&low, text, 4);
        memcpy(&high, text + len - 4, 4);
        word = low | (uint64_t)high << 32;
    } else if (len) {
        const uint8_t *u = (const uint8_t *)text;
        word = u[0] | (uint64_t)u[len / 2] << 8 | (uint64_t)u[len - 1] << 16;
    }
    h = (h ^ word) * k;
    return (uint32_t)(h >> 32);
}

void qkv_vocab_free(qkv_vocab *v) {
    qkv_buf_free(&v->bytes);
    qkv_free(v->entries.at);
    qkv_free(v->by_id.at);
    qkv_free(v->slots);
    *v = (qkv_vocab){0};
}

static qkv_status rehash(qkv_vocab *v, size_t slots) {
    qkv_vocab_slot *fresh;
    QKV_TRY_ALLOC(fresh = qkv_alloc(slots * sizeof *fresh));
    memset(fresh, 0xFF, slots * sizeof *fresh);
    for (size_t old = 0; v->slots && old <= v->mask; old++) {
        if (v->slots[old].entry < 0) continue;
        size_t s = v->slots[old].hash & (slots - 1);
        while (fresh[s].entry >= 0) s = (s + 1) & (slots - 1);
        fresh[s] = v->slots[old];
    }
    qkv_free(v->slots);
    v->slots = fresh;
    v->mask = slots - 1;
    return QKV_OK;
}

qkv_status qkv_vocab_reserve(qkv_vocab *v, size_t n, size_t bytes) {
    if (n > QKV_VOCAB_MAX)
        return qkv_fail(QKV_BAD_FILE, "a vocabulary of %zu tokens: at most %u are read", n,
                        QKV_VOCAB_MAX);
    size_t slots = 16;
    while (slots < 2 * n) slots *= 2;
    if (!v->slots || slots > v->mask + 1) QKV_TRY(rehash(v, slots));
    size_t len = v->bytes.len;
    if (!qkv_buf_extend(&v->bytes, bytes)) return v->bytes.status;
    v->bytes.len = len;
    return QKV_OK;
}

/* The slot of this text, or the free slot where it would go. */
static inline qkv_vocab_slot *find_slot(const qkv_vocab *v, const char *text, size_t len,
                                        uint32_t hash) {
    for (size_t s = hash & v->mask;; s = (s + 1) & v->mask) {
        qkv_vocab_slot *const slot = &v->slots[s];
        if (slot->entry < 0) return slot;
        if (slot->hash != hash) continue;
        const qkv_vocab_entry *e = &v->entries.at[slot->entry];
        if (e->len == len && !memcmp(v->bytes.data + e->at, text, len)) return slot;
    }
}

/* Makes room for ids up to this one, the new ones free;
 * in one step, since a single token may have a high id. */
static bool reach(qkv_vocab *v, size_t id) {
    if (id < v->by_id.n) return true;
    if (id >= v->by_id.cap) {
        const size_t cap = id + id / 2 + 8;
        int32_t *at = qkv_realloc(v->by_id.at, cap * sizeof *at);
        if (!at) return false;
        v->by_id.at = at;
        v->by_id.cap = cap;
    }
    memset(v->by_id.at + v->by_id.n, 0xFF, (id + 1 - v->by_id.n) * sizeof *v->by_id.at);
    v->by_id.n = id + 1;
    return true;
}

qkv_status qkv_vocab_put(qkv_vocab *v, const char *text, size_t len, int32_t id) {
    if (id < 0 || (uint32_t)id >= QKV_VOCAB_MAX)
        return qkv_fail(QKV_BAD_FILE, "token id %d: ids must be 0 … %u", id, QKV_VOCAB_MAX - 1);
    if (len > QKV_TOKEN_MAX)
        return qkv_fail(QKV_BAD_FILE, "a token of %zu bytes (id %d): at most %u are read", len, id,
                        QKV_TOKEN_MAX);
    if (v->entries.n >= QKV_VOCAB_MAX || v->bytes.len > UINT32_MAX - QKV_TOKEN_MAX)
        return qkv_fail(QKV_BAD_FILE, "more than %u tokens", QKV_VOCAB_MAX);
    if (!v->slots || 2 * (v->entries.n + 1) > v->mask + 1)
        QKV_TRY(rehash(v, v->slots ? 2 * (v->mask + 1) : 16));
    const uint32_t hash = qkv_text_hash(text, len);
    qkv_vocab_slot *const slot = find_slot(v, text, len, hash);
    const qkv_vocab_entry entry = {(uint32_t)v->bytes.len, (uint32_t)len, id};
    qkv_buf_add(&v->bytes, text, len);
    if (v->bytes.status != QKV_OK) return v->bytes.status;
    if (!QKV_PUSH(v->entries, entry)) return QKV_FAILED;
    *slot = (qkv_vocab_slot){hash, (int32_t)v->entries.n - 1};
    if (!reach(v, (size_t)id)) return QKV_FAILED;
    v->by_id.at[id] = (int32_t)v->entries.n - 1;
    return QKV_OK;
}

int32_t qkv_vocab_find(const qkv_vocab *v, const char *text, size_t len) {
    if (!v->slots) return -1;
    const int32_t entry = find_slot(v, text, len, qkv_text_hash(text, len))->entry;
    return entry < 0 ? -1 : v->entries.at[entry].id;
}

void qkv_vocab_find_many(const qkv_vocab *v, const qkv_text *texts, size_t n, int32_t *ids) {
    enum { BLOCK = 32 };
    uint32_t hash[BLOCK];
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t m = n - at < BLOCK ? n - at : BLOCK;
        for (size_t i = 0; i < m; i++) {
            hash[i] = qkv_text_hash(texts[at + i].data, texts[at + i].len);
            if (v->slots) __builtin_prefetch(&v->slots[hash[i] & v->mask]);
        }
        for (size_t i = 0; i < m && v->slots; i++) { /* nearly always the first slot is the one */
            const int32_t entry = v->slots[hash[i] & v->mask].entry;
            if (entry >= 0) __builtin_prefetch(&v->entries.at[entry]);
        }
        for (size_t i = 0; i < m && v->slots; i++) {
            const int32_t entry = v->slots[hash[i] & v->mask].entry;
            if (entry >= 0) __builtin_prefetch(v->bytes.data + v->entries.at[entry].at);
        }
        for (size_t i = 0; i < m; i++) {
            const qkv_text *t = &texts[at + i];
            const int32_t entry = v->slots ? find_slot(v, t->data, t->len, hash[i])->entry : -1;
            ids[at + i] = entry < 0 ? -1 : v->entries.at[entry].id;
        }
    }
}

const char *qkv_vocab_text(const qkv_vocab *v, int32_t id, size_t *len) {
    if (id < 0 || (size_t)id >= v->by_id.n || v->by_id.at[id] < 0) return NULL;
    const qkv_vocab_entry *e = &v->entries.at[v->by_id.at[id]];
    *len = e->len;
    return v->bytes.data + e->at;
}
