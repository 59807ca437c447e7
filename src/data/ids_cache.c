/* The file: ids (int32), zeros to a multiple of 8, the starts of the sequences (int64), labels
 * (int32; none when there are none), zeros to a multiple of 8, and a tail of 8-byte words. The
 * tail stands last because only the end knows the counts; all in the machine's own byte order,
 * since it is nobody else's file. */
#include "data/ids_cache.h"
#include "base/mem.h"

#include <string.h>

enum {
    MAGIC,
    KEY,  /* what it was made from */
    KEY2, /* the same with another seed */
    HASH, /* of all before the tail */
    EXAMPLES,
    SIDES,
    SEQUENCES,
    TOKENS,
    LABELLED,
    CUT,
    EMPTY,
    TAIL_HASH, /* of the words before this one */
    TAIL
};
static const uint64_t magic = 0x31736469766b71;  /* "qkvids1" */
static const uint64_t seeds[2] = {0x7469, 0xb1}; /* any two */

/* ---- what the ids depend on ---- */

static uint64_t hash_text(qkv_text t, uint64_t h) {
    return t.data ? qkv_hash64(t.data, t.len, h ^ 1) : h + 1;
}

static qkv_status find_key(const qkv_tokenizer *tok, const qkv_corpus *corpus, const bool *take,
                           const qkv_tokenise_spec *spec, uint64_t key[2]) {
    qkv_buf json = {0};
    const int64_t settings[] = {spec->sides, spec->no_special, spec->join, spec->max_tokens,
                                (int64_t)spec->too_long};
    qkv_status status = qkv_tokenizer_json(tok, &json);
    if (status == QKV_OK) status = json.status;
    for (int k = 0; k < 2 && status == QKV_OK; k++) {
        uint64_t h = qkv_hash64(json.data, json.len, seeds[k]);
        h = qkv_hash64(settings, sizeof settings, h);
        for (size_t i = 0; i < corpus->n; i++) {
            const qkv_row *row = &corpus->rows[i];
            if (take && !take[i]) continue;
            h = hash_text(row->second, hash_text(row->text, h));
            h = qkv_hash64(&row->label, sizeof row->label, h);
        }
        key[k] = h;
    }
    qkv_buf_free(&json);
    return status;
}

/* In blocks of a fixed size, as the writer sees them. */
static uint64_t hash_body(const char *data, size_t n) {
    uint64_t h = 0;
    for (size_t at = 0; at < n; at += QKV_SPILL)
        h = qkv_hash64(data + at, n - at < QKV_SPILL ? n - at : QKV_SPILL, h);
    return h;
}

/* ---- reading ---- */

typedef struct parts {
    uint64_t ids, start, label, end; /* byte offsets */
} parts;

/* Where things are, by the counts of the tail; false when the counts make no sense for the size. */
static bool place(const uint64_t *tail, uint64_t size, parts *p) {
    const uint64_t most = size / sizeof(int32_t);
    if (tail[TOKENS] > most || tail[SEQUENCES] > most || tail[SIDES] < 1 || tail[SIDES] > 2 ||
        tail[LABELLED] > 1 || tail[EXAMPLES] != tail[SEQUENCES] / tail[SIDES])
        return false;
    p->ids = 0;
    p->start = (tail[TOKENS] * sizeof(int32_t) + 7) & ~(uint64_t)7;
    p->label = p->start + (tail[SEQUENCES] + 1) * sizeof(int64_t);
    p->end = p->label + tail[LABELLED] * ((tail[EXAMPLES] * sizeof(int32_t) + 7) & ~(uint64_t)7);
    return p->end + TAIL * sizeof(uint64_t) == size;
}

/* Do the starts rise to the number of tokens, and is every id one of the vocabulary? */
static bool sensible(const qkv_encoded *e, int64_t tokens, int32_t vocabulary) {
    for (int64_t i = 0; i < e->n_seq; i++)
        if (e->start[i] > e->start[i + 1]) return false;
    if (e->start[0] != 0 || e->start[e->n_seq] != tokens) return false;
    uint32_t most = 0;
    for (int64_t i = 0; i < tokens; i++)
        most = (uint32_t)e->ids[i] > most ? (uint32_t)e->ids[i] : most;
    return tokens == 0 || most < (uint32_t)vocabulary;
}

/* Maps the file into *out if it is there, whole, and made from the same; else *fits is false. */
static qkv_status try_map(const char *path, const uint64_t key[2], int32_t vocabulary,
                          qkv_encoded *out, qkv_tokenise_counts *counts, bool *fits) {
    qkv_file f;
    uint64_t tail[TAIL];
    parts p = {0};
    *fits = false;
    if (!qkv_file_exists(path)) return QKV_OK;
    QKV_TRY(qkv_file_open(path, SIZE_MAX / 2, &f));
    if (f.size >= sizeof tail) {
        memcpy(tail, f.data + f.size - sizeof tail, sizeof tail);
        *fits = tail[MAGIC] == magic && tail[KEY] == key[0] && tail[KEY2] == key[1] &&
                tail[TAIL_HASH] == qkv_hash64(tail, TAIL_HASH * sizeof *tail, magic) &&
                place(tail, f.size, &p) && tail[HASH] == hash_body(f.data, p.end);
    }
    if (*fits) {
        /* The map is read-only, and so is an encoded that has one: nothing is added to it. */
        char *base = (char *)(uintptr_t)f.data;
        qkv_encoded_init(out, (int)tail[SIDES]);
        out->n = (int64_t)tail[EXAMPLES];
        out->n_seq = (int64_t)tail[SEQUENCES];
        out->ids = (int32_t *)(base + p.ids);
        out->start = (int64_t *)(base + p.start);
        out->label = tail[LABELLED] ? (int32_t *)(base + p.label) : NULL;
        out->map = f;
        *counts =
            (qkv_tokenise_counts){.n_cut = (int64_t)tail[CUT], .n_empty = (int64_t)tail[EMPTY]};
        *fits = sensible(out, (int64_t)tail[TOKENS], vocabulary);
    }
    if (!*fits) {
        qkv_file_close(&f);
        *out = (qkv_encoded){0};
    }
    return QKV_OK;
}

/* ---- writing ---- */

/* Zeros after n bytes, up to a multiple of 8. */
static void pad(qkv_spill *s, size_t n) {
    static const char zeros[8] = {0};
    qkv_spill_add(s, zeros, -n & 7);
}

static qkv_status write_file(const qkv_tokenizer *tok, const qkv_corpus *corpus, const bool *take,
                             const qkv_tokenise_spec *spec, const uint64_t key[2], qkv_spill *s) {
    qkv_encoded e;
    qkv_tokenise_counts counts;
    qkv_encoded_init(&e, spec->sides);
    e.spill = s;
    qkv_status status = qkv_tokenise(tok, corpus, take, spec, &e, &counts);
    if (status == QKV_OK) {
        static const int64_t none = 0; /* where no sequence was added there are no starts either */
        const int64_t tokens = qkv_encoded_tokens(&e);
        pad(s, (size_t)tokens * sizeof(int32_t));
        qkv_spill_add(s, e.start ? e.start : &none, ((size_t)e.n_seq + 1) * sizeof *e.start);
        if (e.label) {
            qkv_spill_add(s, e.label, (size_t)e.n * sizeof *e.label);
            pad(s, (size_t)e.n * sizeof *e.label);
        }
        qkv_spill_flush(s);
        uint64_t tail[TAIL] = {
            [MAGIC] = magic,
            [KEY] = key[0],
            [KEY2] = key[1],
            [HASH] = s->hash,
            [EXAMPLES] = (uint64_t)e.n,
            [SIDES] = (uint64_t)e.sides,
            [SEQUENCES] = (uint64_t)e.n_seq,
            [TOKENS] = (uint64_t)tokens,
            [LABELLED] = e.label != NULL,
            [CUT] = (uint64_t)counts.n_cut,
            [EMPTY] = (uint64_t)counts.n_empty,
        };
        tail[TAIL_HASH] = qkv_hash64(tail, TAIL_HASH * sizeof *tail, magic);
        qkv_writer_add(&s->file, tail, sizeof tail);
        status = s->file.status;
    }
    qkv_encoded_free(&e);
    return status;
}

static qkv_status make(const qkv_tokenizer *tok, const qkv_corpus *corpus, const bool *take,
                       const qkv_tokenise_spec *spec, const uint64_t key[2], const char *path) {
    qkv_spill s = {0};
    QKV_TRY(qkv_writer_open(&s.file, path, 0));
    const qkv_status status = write_file(tok, corpus, take, spec, key, &s);
    qkv_buf_free(&s.held);
    if (status == QKV_OK) return qkv_writer_commit(&s.file);
    qkv_writer_abandon(&s.file);
    return status;
}

qkv_status qkv_tokenise_cached(const qkv_tokenizer *tok, const qkv_corpus *corpus, const bool *take,
                               const qkv_tokenise_spec *spec, const char *path, qkv_encoded *out,
                               qkv_tokenise_counts *counts) {
    uint64_t key[2];
    bool fits;
    const int32_t vocabulary = (int32_t)qkv_tokenizer_size(tok);
    *out = (qkv_encoded){0};
    QKV_TRY(find_key(tok, corpus, take, spec, key));
    QKV_TRY(try_map(path, key, vocabulary, out, counts, &fits));
    if (fits) {
        counts->kept = true;
        return QKV_OK;
    }
    QKV_TRY(make(tok, corpus, take, spec, key, path));
    uint64_t after[2];
    QKV_TRY(find_key(tok, corpus, take, spec, after));
    if (after[0] != key[0] || after[1] != key[1])
        return qkv_fail(QKV_FAILED, "the data changed while they were read; start again when they "
                                    "are whole");
    QKV_TRY(try_map(path, key, vocabulary, out, counts, &fits));
    return fits ? QKV_OK
                : qkv_fail(QKV_FAILED,
                           "%s: does not read as it was just written; is the disk sound?", path);
}
