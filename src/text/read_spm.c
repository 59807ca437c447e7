/* SentencePiece .model files: protobuf, read by hand.
 * Only lengths that fit into what remains are believed. */
#include "text/reader.h"
#include "base/mem.h"

#include <string.h>

#define FILE_MAX  (64u << 20)
#define PIECE_MAX (64u << 10)

/* One field of a message. */
typedef struct field {
    uint32_t number;
    int wire; /* 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
    uint64_t value;
    const uint8_t *data;
    size_t len;
} field;

typedef struct message {
    const uint8_t *at, *end;
} message;

static bool varint(message *m, uint64_t *out) {
    *out = 0;
    for (int shift = 0; shift < 70 && m->at < m->end; shift += 7) {
        const uint8_t b = *m->at++;
        if (shift < 64) *out |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) return true;
    }
    return false;
}

/* The next field; false at the end, and with *ok cleared when what follows is no field. */
static bool next_field(message *m, field *f, bool *ok) {
    uint64_t tag, len;
    if (m->at == m->end) return false;
    *ok = false;
    if (!varint(m, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF) return false;
    *f = (field){.number = (uint32_t)(tag >> 3), .wire = (int)(tag & 7)};
    switch (f->wire) {
    case 0:
        if (!varint(m, &f->value)) return false;
        break;
    case 1:
    case 5:
        len = f->wire == 1 ? 8 : 4;
        if ((size_t)(m->end - m->at) < len) return false;
        for (uint64_t i = 0; i < len; i++) f->value |= (uint64_t)m->at[i] << (8 * i);
        m->at += len;
        break;
    case 2:
        if (!varint(m, &len) || len > (uint64_t)(m->end - m->at)) return false;
        f->data = m->at;
        f->len = (size_t)len;
        m->at += len;
        break;
    default:
        return false;
    }
    *ok = true;
    return true;
}

static qkv_status broken(const char *what, const message *m, const char *data) {
    return qkv_fail(QKV_BAD_FILE,
                    "byte %zu: %s is broken: a truncated download, or no SentencePiece model",
                    (size_t)((const char *)m->at - data), what);
}

static float float_of(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

/* ---- pieces ---- */

typedef struct reading {
    qkv_pieces p;
    size_t cap;
    const char *data; /* the file */
    uint64_t model_type;
    int32_t unk, bos, eos, pad;
} reading;

static bool grow(reading *r) {
    if (r->p.n < r->cap) return true;
    const size_t cap = r->cap ? 2 * r->cap : 1024;
    qkv_text *text = qkv_realloc(r->p.text, cap * sizeof *text);
    if (text) r->p.text = text;
    float *score = text ? qkv_realloc(r->p.score, cap * sizeof *score) : NULL;
    if (score) r->p.score = score;
    uint8_t *type = score ? qkv_realloc(r->p.type, cap) : NULL;
    if (!type) return false;
    r->p.type = type;
    r->cap = cap;
    return true;
}

static qkv_status read_piece(reading *r, const field *whole) {
    message m = {whole->data, whole->data + whole->len};
    field f;
    bool ok = true;
    if (r->p.n >= QKV_VOCAB_MAX)
        return qkv_fail(QKV_BAD_FILE, "more than %u pieces", QKV_VOCAB_MAX);
    if (!grow(r)) return QKV_FAILED;
    qkv_text text = {"", 0};
    float score = 0;
    uint64_t type = QKV_PIECE_NORMAL;
    while (next_field(&m, &f, &ok)) {
        if (f.number == 1 && f.wire == 2) text = (qkv_text){(const char *)f.data, f.len};
        if (f.number == 2 && f.wire == 5) score = float_of(f.value);
        if (f.number == 3 && f.wire == 0) type = f.value;
    }
    if (!ok) return broken("a piece", &m, r->data);
    if (text.len > PIECE_MAX)
        return qkv_fail(QKV_BAD_FILE, "piece %zu has %zu bytes: at most %u are read", r->p.n,
                        text.len, PIECE_MAX);
    if (type < QKV_PIECE_NORMAL || type > QKV_PIECE_BYTE)
        return qkv_fail(QKV_BAD_FILE, "piece %zu has type %llu, which is not known", r->p.n,
                        (unsigned long long)type);
    if (!(score - score == 0))
        return qkv_fail(QKV_BAD_FILE, "piece %zu has a score that is no number", r->p.n);
    r->p.text[r->p.n] = text;
    r->p.score[r->p.n] = score;
    r->p.type[r->p.n++] = (uint8_t)type;
    return QKV_OK;
}

static qkv_status read_trainer(reading *r, const field *whole) {
    message m = {whole->data, whole->data + whole->len};
    field f;
    bool ok = true;
    while (next_field(&m, &f, &ok)) {
        if (f.number == 44 && f.wire == 2)
            r->p.unk_surface = (qkv_text){(const char *)f.data, f.len};
        if (f.wire != 0) continue;
        const int32_t id =
            (int64_t)f.value >= -1 && (int64_t)f.value < QKV_VOCAB_MAX ? (int32_t)f.value : -1;
        switch (f.number) {
        case 3:
            r->model_type = f.value;
            break;
        case 24:
            r->p.whitespace_as_suffix = f.value != 0;
            break;
        case 35:
            r->p.byte_fallback = f.value != 0;
            break;
        case 40:
            r->unk = id;
            break;
        case 41:
            r->bos = id;
            break;
        case 42:
            r->eos = id;
            break;
        case 43:
            r->pad = id;
            break;
        default:
            break;
        }
    }
    return ok ? QKV_OK : broken("the trainer's part", &m, r->data);
}

static qkv_status read_normalizer(reading *r, const field *whole) {
    message m = {whole->data, whole->data + whole->len};
    field f;
    bool ok = true;
    while (next_field(&m, &f, &ok)) {
        if (f.number == 2 && f.wire == 2) {
            r->p.charsmap = (const char *)f.data;
            r->p.charsmap_len = f.len;
        }
        if (f.wire != 0) continue;
        if (f.number == 3) r->p.add_dummy_prefix = f.value != 0;
        if (f.number == 4) r->p.remove_extra_whitespaces = f.value != 0;
        if (f.number == 5) r->p.escape_whitespaces = f.value != 0;
    }
    return ok ? QKV_OK : broken("the normaliser's part", &m, r->data);
}

static qkv_status read_fields(reading *r, size_t n) {
    message m = {(const uint8_t *)r->data, (const uint8_t *)r->data + n};
    field f;
    bool ok = true;
    while (next_field(&m, &f, &ok)) {
        if (f.wire != 2) continue;
        if (f.number == 1) QKV_TRY(read_piece(r, &f));
        if (f.number == 2) QKV_TRY(read_trainer(r, &f));
        if (f.number == 3) QKV_TRY(read_normalizer(r, &f));
    }
    if (!ok) return broken("a field", &m, r->data);
    if (!r->p.n) return qkv_fail(QKV_BAD_FILE, "no pieces: not a SentencePiece model");
    if (r->model_type < 1 || r->model_type > 2)
        return qkv_fail(QKV_BAD_FILE, "model type %llu: only Unigram (1) and BPE (2) are read",
                        (unsigned long long)r->model_type);
    return QKV_OK;
}

/* The id of a role: the trainer's, if such a piece is there. */
static int32_t role(const reading *r, int32_t id) {
    return id >= 0 && (size_t)id < r->p.n ? id : -1;
}

qkv_status qkv_read_sentencepiece(qkv_tokenizer *tok, const char *name, const char *data,
                                  size_t n) {
    if (n > FILE_MAX)
        return qkv_fail(QKV_BAD_FILE, "%s: %zu bytes: SentencePiece models are read up to %u", name,
                        n, FILE_MAX);
    reading r = {.data = data, .model_type = 1, .unk = 0, .bos = 1, .eos = 2, .pad = -1};
    r.p.add_dummy_prefix = r.p.remove_extra_whitespaces = r.p.escape_whitespaces = true;
    r.p.unk_surface = (qkv_text){" \xE2\x81\x87 ", 5};
    qkv_status status = read_fields(&r, n);
    if (status == QKV_OK) {
        r.p.unigram = r.model_type == 1;
        r.p.unk = role(&r, r.unk);
        r.p.bos = role(&r, r.bos);
        r.p.eos = role(&r, r.eos);
        r.p.pad = role(&r, r.pad);
        for (size_t i = 0; i < r.p.n; i++)
            if (r.p.type[i] == QKV_PIECE_UNKNOWN) r.p.unk = (int32_t)i;
        status = qkv_pieces_build(tok, &r.p);
    }
    qkv_free(r.p.text);
    qkv_free(r.p.score);
    qkv_free(r.p.type);
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "%s", name);
}
