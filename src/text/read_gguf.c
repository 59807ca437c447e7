/* The vocabulary of a GGUF file: the tokenizer.ggml.* entries of its header. Nothing is believed
 * before it is checked: counts against the bytes that remain,
 * types against what the entry must be. */
#include "text/models.h"
#include "text/reader.h"
#include "text/scan.h"
#include "base/mem.h"

#include <string.h>

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };
static const uint8_t sizes[TYPES] = {1, 1, 2,  2, 4, 4, 4,
                                     1, 8, 12, 8, 8, 8}; /* on disk, at least */

#define ENTRIES_MAX 100000u
#define NAME_MAX    65535u
#define STRING_MAX  (64u << 20)
#define ARRAY_MAX   (16u << 20)

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

static uint64_t little(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static bool number(cursor *c, size_t n, uint64_t *out) {
    if ((size_t)(c->end - c->at) < n) return false;
    *out = little(c->at, n);
    c->at += n;
    return true;
}

static const char ends[] = "the file ends within it: a truncated download?";

/* Reads a string; the answer, here and below, is what is wrong with it, or NULL. */
static const char *string(cursor *c, size_t most, qkv_text *out) {
    uint64_t len;
    if (!number(c, 8, &len)) return ends;
    if (len > most) return "a string is longer than any that is read";
    if (len > (uint64_t)(c->end - c->at)) return ends;
    *out = (qkv_text){(const char *)c->at, (size_t)len};
    c->at += len;
    return NULL;
}

/* An entry's value: where it stands and what it is. */
typedef struct value {
    uint32_t type; /* of the elements, for an array */
    bool array;
    uint64_t n;
    const uint8_t *at;
} value;

static const char *skip_value(cursor *c, value *v) {
    uint64_t type, n = 1;
    if (!number(c, 4, &type)) return ends;
    if (type == ARRAY) {
        v->array = true;
        if (!number(c, 4, &type) || !number(c, 8, &n)) return ends;
        if (type == ARRAY) return "an array of arrays";
        if (n > ARRAY_MAX) return "an array is longer than any that is read";
    }
    if (type >= TYPES) return "its type is not known";
    if (n > (uint64_t)(c->end - c->at) / sizes[type]) return ends;
    v->type = (uint32_t)type;
    v->n = n;
    v->at = c->at;
    if (type != STRING) {
        c->at += n * sizes[type];
        return NULL;
    }
    qkv_text text;
    const char *wrong = NULL;
    for (uint64_t i = 0; i < n && !wrong; i++) wrong = string(c, STRING_MAX, &text);
    return wrong;
}

typedef enum key {
    MODEL,
    PRE,
    TOKENS,
    SCORES,
    KINDS,
    MERGES,
    BOS,
    EOS,
    UNK,
    PAD,
    ADD_BOS,
    ADD_EOS,
    ADD_PREFIX,
    SQUEEZE,
    CHARSMAP,
    KEYS
} key;
static const struct {
    const char *name;
    uint32_t type;
    bool array;
} keys[KEYS] = {
    [MODEL] = {"model", STRING, false},
    [PRE] = {"pre", STRING, false},
    [TOKENS] = {"tokens", STRING, true},
    [SCORES] = {"scores", F32, true},
    [KINDS] = {"token_type", I32, true},
    [MERGES] = {"merges", STRING, true},
    [BOS] = {"bos_token_id", U32, false},
    [EOS] = {"eos_token_id", U32, false},
    [UNK] = {"unknown_token_id", U32, false},
    [PAD] = {"padding_token_id", U32, false},
    [ADD_BOS] = {"add_bos_token", BOOL, false},
    [ADD_EOS] = {"add_eos_token", BOOL, false},
    [ADD_PREFIX] = {"add_space_prefix", BOOL, false},
    [SQUEEZE] = {"remove_extra_whitespaces", BOOL, false},
    [CHARSMAP] = {"precompiled_charsmap", U8, true},
};

static qkv_status keep(const qkv_text *name, const value *v, value out[KEYS]) {
    static const char prefix[] = "tokenizer.ggml.";
    const size_t skip = sizeof prefix - 1;
    if (name->len <= skip || memcmp(name->data, prefix, skip)) return QKV_OK;
    for (int k = 0; k < KEYS; k++) {
        if (strlen(keys[k].name) != name->len - skip ||
            memcmp(keys[k].name, name->data + skip, name->len - skip))
            continue;
        const bool type_fits = v->type == keys[k].type || (k == CHARSMAP && v->type == I8);
        if (!type_fits || v->array != keys[k].array)
            return qkv_fail(QKV_BAD_FILE, "tokenizer.ggml.%s has type %u%s, wanted %u%s",
                            keys[k].name, v->type, v->array ? " (array)" : "", keys[k].type,
                            keys[k].array ? " (array)" : "");
        if (out[k].at)
            return qkv_fail(QKV_BAD_FILE, "tokenizer.ggml.%s is there twice", keys[k].name);
        out[k] = *v;
    }
    return QKV_OK;
}

static qkv_status read_header(const char *data, size_t n, value out[KEYS]) {
    cursor c = {(const uint8_t *)data + 4, (const uint8_t *)data + n};
    uint64_t version, tensors, entries;
    if (!number(&c, 4, &version) || !number(&c, 8, &tensors) || !number(&c, 8, &entries))
        return qkv_fail(QKV_BAD_FILE, "the file ends within its header: a truncated download?");
    if (version == 0x02000000 || version == 0x03000000)
        return qkv_fail(QKV_BAD_FILE, "a big-endian GGUF file: not supported");
    if (version != 2 && version != 3)
        return qkv_fail(QKV_BAD_FILE, "GGUF version %u: 2 and 3 are read", (unsigned)version);
    if (entries > ENTRIES_MAX)
        return qkv_fail(QKV_BAD_FILE, "%llu entries: at most %u are read",
                        (unsigned long long)entries, ENTRIES_MAX);
    for (uint64_t i = 0; i < entries; i++) {
        qkv_text name = {"?", 1};
        value v = {0};
        const char *wrong = string(&c, NAME_MAX, &name);
        if (!wrong) wrong = skip_value(&c, &v);
        if (wrong)
            return qkv_fail(QKV_BAD_FILE, "entry %u (%.*s): %s", (unsigned)i,
                            (int)(name.len > 60 ? 60 : name.len), name.data, wrong);
        QKV_TRY(keep(&name, &v, out));
    }
    return QKV_OK;
}

/* ---- typed access ---- */

static bool flag(const value *v, bool initial) {
    return v->at ? *v->at != 0 : initial;
}

static int32_t id_of(const value *v, size_t n) {
    const uint64_t id = v->at ? little(v->at, 4) : UINT64_MAX;
    return id < n ? (int32_t)id : -1;
}

static qkv_text text_of(const value *v) {
    qkv_text t = {"", 0};
    if (v->at) t = (qkv_text){(const char *)v->at + 8, (size_t)little(v->at, 8)};
    return t;
}

/* All strings of an array that skip_value has walked. */
static void strings_of(const value *v, qkv_text *out) {
    const uint8_t *at = v->at;
    for (uint64_t i = 0; i < v->n; i++) {
        out[i] = (qkv_text){(const char *)at + 8, (size_t)little(at, 8)};
        at += 8 + out[i].len;
    }
}

static qkv_status fill_types(const value v[KEYS], qkv_pieces *p) {
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t type =
            v[KINDS].at ? (uint32_t)little(v[KINDS].at + 4 * i, 4) : QKV_PIECE_NORMAL;
        if (type < QKV_PIECE_NORMAL || type > QKV_PIECE_BYTE)
            return qkv_fail(QKV_BAD_FILE, "token %zu has type %u, which is not known", i, type);
        p->type[i] = (uint8_t)type;
        const uint32_t bits = v[SCORES].at ? (uint32_t)little(v[SCORES].at + 4 * i, 4) : 0;
        memcpy(&p->score[i], &bits, 4);
        if (!(p->score[i] - p->score[i] == 0))
            return qkv_fail(QKV_BAD_FILE, "token %zu has a score that is no number", i);
    }
    return QKV_OK;
}

/* ---- the kinds ---- */

static qkv_status build_llama(qkv_tokenizer *tok, const value v[KEYS], qkv_pieces *p,
                              bool unigram) {
    p->unigram = unigram;
    p->add_dummy_prefix = flag(&v[ADD_PREFIX], true);
    p->remove_extra_whitespaces = flag(&v[SQUEEZE], unigram);
    p->escape_whitespaces = true;
    p->charsmap = (const char *)v[CHARSMAP].at;
    p->charsmap_len = v[CHARSMAP].at ? (size_t)v[CHARSMAP].n : 0;
    p->unk = id_of(&v[UNK], p->n);
    p->bos = id_of(&v[BOS], p->n);
    p->eos = id_of(&v[EOS], p->n);
    p->pad = id_of(&v[PAD], p->n);
    p->add_bos = flag(&v[ADD_BOS], !unigram);
    p->add_eos = flag(&v[ADD_EOS], unigram);
    p->byte_fallback = true;
    return qkv_pieces_build(tok, p);
}

static qkv_status build_gpt2(qkv_tokenizer *tok, const value v[KEYS], const qkv_pieces *p) {
    const qkv_text pre = text_of(&v[PRE]);
    const char *regex = qkv_text_is(pre, "llama-bpe") || qkv_text_is(pre, "llama3")
                            ? qkv_scan_llama3.regex
                        : qkv_text_is(pre, "qwen2") ? qkv_scan_qwen2.regex
                                                    : NULL;
    if (!v[MERGES].at)
        return qkv_fail(QKV_BAD_FILE, "a gpt2 vocabulary without tokenizer.ggml.merges");
    for (size_t i = 0; i < p->n; i++)
        QKV_TRY(qkv_vocab_put(&tok->vocab, p->text[i].data, p->text[i].len, (int32_t)i));
    tok->n_model_entries = tok->vocab.entries.n;
    qkv_buf lines = {0};
    const uint8_t *at = v[MERGES].at;
    for (uint64_t i = 0; i < v[MERGES].n; i++) {
        const size_t len = (size_t)little(at, 8);
        qkv_buf_add(&lines, at + 8, len);
        qkv_buf_putc(&lines, '\n');
        at += 8 + len;
    }
    qkv_status status = lines.status;
    if (status == QKV_OK)
        status = qkv_build_gpt2(tok, lines.data ? lines.data : "", lines.len, regex);
    qkv_buf_free(&lines);
    for (size_t i = 0; i < p->n && status == QKV_OK; i++)
        if (p->type[i] == QKV_PIECE_CONTROL && !qkv_text_is(p->text[i], "<|endoftext|>"))
            status = qkv_add_special(tok, p->text[i].data, p->text[i].len, (int32_t)i);
    QKV_TRY(status);
    tok->special[QKV_TOK_BOS] = id_of(&v[BOS], p->n);
    tok->special[QKV_TOK_EOS] = id_of(&v[EOS], p->n);
    QKV_TRY(qkv_set_template(tok, flag(&v[ADD_BOS], false) ? tok->special[QKV_TOK_BOS] : -1, -1));
    return qkv_tokenizer_finish(tok);
}

/* The file marks word beginnings with ▁ instead of continuations with ##. */
static qkv_status build_bert(qkv_tokenizer *tok, const qkv_pieces *p) {
    for (size_t i = 0; i < p->n; i++) {
        qkv_text *t = &p->text[i];
        if (p->type[i] != QKV_PIECE_NORMAL) continue;
        if (t->len >= 3 && !memcmp(t->data, "\xE2\x96\x81", 3)) {
            t->data += 3;
            t->len -= 3;
            continue;
        }
        char *name = qkv_arena_alloc(&tok->arena, t->len + 2);
        if (!name) return QKV_FAILED;
        memcpy(name, "##", 2);
        memcpy(name + 2, t->data, t->len);
        *t = (qkv_text){name, t->len + 2};
    }
    return qkv_build_bert(tok, p->text, p->n, true);
}

static qkv_status build(qkv_tokenizer *tok, const value v[KEYS]) {
    if (!v[TOKENS].at)
        return qkv_fail(QKV_BAD_FILE, "a GGUF file without a vocabulary (tokenizer.ggml.tokens)");
    const size_t n = (size_t)v[TOKENS].n;
    if (n > QKV_VOCAB_MAX || (v[SCORES].at && v[SCORES].n != n) || (v[KINDS].at && v[KINDS].n != n))
        return qkv_fail(QKV_BAD_FILE, "%zu tokens, but %llu scores and %llu types", n,
                        (unsigned long long)v[SCORES].n, (unsigned long long)v[KINDS].n);
    qkv_pieces p = {.n = n, .unk = -1};
    p.text = qkv_zalloc(n + 1, sizeof *p.text);
    p.score = qkv_zalloc(n + 1, sizeof *p.score);
    p.type = qkv_zalloc(n + 1, 1);
    qkv_status status = p.text && p.score && p.type ? fill_types(v, &p) : QKV_FAILED;
    const qkv_text model = text_of(&v[MODEL]);
    if (status == QKV_OK) {
        strings_of(&v[TOKENS], p.text);
        status =
            qkv_text_is(model, "llama")  ? build_llama(tok, v, &p, false)
            : qkv_text_is(model, "t5")   ? build_llama(tok, v, &p, true)
            : qkv_text_is(model, "gpt2") ? build_gpt2(tok, v, &p)
            : qkv_text_is(model, "bert")
                ? build_bert(tok, &p)
                : qkv_fail(
                      QKV_BAD_FILE,
                      "tokenizer.ggml.model \"%.*s\" is not known: llama, gpt2, bert and t5 are",
                      (int)(model.len > 40 ? 40 : model.len), model.data);
    }
    qkv_free(p.text);
    qkv_free(p.score);
    qkv_free(p.type);
    return status;
}

qkv_status qkv_read_gguf(qkv_tokenizer *tok, const char *name, const char *data, size_t n) {
    value v[KEYS] = {0};
    qkv_status status = read_header(data, n, v);
    if (status == QKV_OK) status = build(tok, v);
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "%s", name);
}
