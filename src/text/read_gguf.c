/* The vocabulary of a GGUF file: the tokenizer.ggml.* entries of its header, each checked against
 * the type that it must have. */
#include "text/models.h"
#include "text/reader.h"
#include "base/mem.h"
#include "store/gguf.h"

#include <stdio.h>
#include <string.h>

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
    qkv_gguf_type type;
    bool array;
} keys[KEYS] = {
    [MODEL] = {"model", QKV_GGUF_STRING, false},
    [PRE] = {"pre", QKV_GGUF_STRING, false},
    [TOKENS] = {"tokens", QKV_GGUF_STRING, true},
    [SCORES] = {"scores", QKV_GGUF_F32, true},
    [KINDS] = {"token_type", QKV_GGUF_I32, true},
    [MERGES] = {"merges", QKV_GGUF_STRING, true},
    [BOS] = {"bos_token_id", QKV_GGUF_U32, false},
    [EOS] = {"eos_token_id", QKV_GGUF_U32, false},
    [UNK] = {"unknown_token_id", QKV_GGUF_U32, false},
    [PAD] = {"padding_token_id", QKV_GGUF_U32, false},
    [ADD_BOS] = {"add_bos_token", QKV_GGUF_BOOL, false},
    [ADD_EOS] = {"add_eos_token", QKV_GGUF_BOOL, false},
    [ADD_PREFIX] = {"add_space_prefix", QKV_GGUF_BOOL, false},
    [SQUEEZE] = {"remove_extra_whitespaces", QKV_GGUF_BOOL, false},
    [CHARSMAP] = {"precompiled_charsmap", QKV_GGUF_U8, true},
};

/* The entries by key; NULL: not there. */
typedef const qkv_gguf_entry *const *values;

static qkv_status find_values(const qkv_gguf *g, const qkv_gguf_entry *out[KEYS]) {
    for (int k = 0; k < KEYS; k++) {
        char name[64];
        snprintf(name, sizeof name, "tokenizer.ggml.%s", keys[k].name);
        const qkv_gguf_entry *const e = out[k] = qkv_gguf_find(g, name);
        if (!e) continue;
        const bool type_fits = e->type == keys[k].type || (k == CHARSMAP && e->type == QKV_GGUF_I8);
        if (!type_fits || e->array != keys[k].array)
            return qkv_fail(QKV_BAD_FILE, "%s has type %u%s, wanted %u%s", name, (unsigned)e->type,
                            e->array ? " (array)" : "", (unsigned)keys[k].type,
                            keys[k].array ? " (array)" : "");
    }
    return QKV_OK;
}

static bool flag(const qkv_gguf_entry *e, bool initial) {
    return e ? *e->at != 0 : initial;
}

static int32_t id_of(const qkv_gguf_entry *e, size_t n) {
    const int64_t id = e ? qkv_gguf_int_at(e, 0) : -1;
    return id >= 0 && (uint64_t)id < n ? (int32_t)id : -1;
}

static qkv_text text_of(const qkv_gguf_entry *e) {
    const uint8_t *at = NULL;
    return e ? qkv_gguf_string_at(e, &at) : (qkv_text){"", 0};
}

static qkv_status fill_types(values v, qkv_pieces *p) {
    for (size_t i = 0; i < p->n; i++) {
        const int64_t type = v[KINDS] ? qkv_gguf_int_at(v[KINDS], i) : QKV_PIECE_NORMAL;
        if (type < QKV_PIECE_NORMAL || type > QKV_PIECE_BYTE)
            return qkv_fail(QKV_BAD_FILE, "token %zu has type %lld, which is not known", i,
                            (long long)type);
        p->type[i] = (uint8_t)type;
        p->score[i] = v[SCORES] ? (float)qkv_gguf_real_at(v[SCORES], i) : 0;
        if (!(p->score[i] - p->score[i] == 0))
            return qkv_fail(QKV_BAD_FILE, "token %zu has a score that is no number", i);
    }
    return QKV_OK;
}

/* ---- the kinds ---- */

static qkv_status build_llama(qkv_tokenizer *tok, values v, qkv_pieces *p, bool unigram) {
    p->unigram = unigram;
    p->add_dummy_prefix = flag(v[ADD_PREFIX], true);
    p->remove_extra_whitespaces = flag(v[SQUEEZE], unigram);
    p->escape_whitespaces = true;
    p->charsmap = v[CHARSMAP] ? (const char *)v[CHARSMAP]->at : NULL;
    p->charsmap_len = v[CHARSMAP] ? (size_t)v[CHARSMAP]->n : 0;
    p->unk = id_of(v[UNK], p->n);
    p->bos = id_of(v[BOS], p->n);
    p->eos = id_of(v[EOS], p->n);
    p->pad = id_of(v[PAD], p->n);
    p->add_bos = flag(v[ADD_BOS], !unigram);
    p->add_eos = flag(v[ADD_EOS], unigram);
    p->byte_fallback = true;
    return qkv_pieces_build(tok, p);
}

static qkv_status build_gpt2(qkv_tokenizer *tok, values v, const qkv_pieces *p) {
    qkv_pre_facts pre;
    QKV_TRY(qkv_pre_named(v[PRE] ? text_of(v[PRE]) : (qkv_text){"default", 7}, &pre));
    if (!v[MERGES])
        return qkv_fail(QKV_BAD_FILE, "a gpt2 vocabulary without tokenizer.ggml.merges");
    for (size_t i = 0; i < p->n; i++)
        QKV_TRY(qkv_vocab_put(&tok->vocab, p->text[i].data, p->text[i].len, (int32_t)i));
    tok->n_model_entries = tok->vocab.entries.n;
    qkv_buf lines = {0};
    const uint8_t *at = NULL;
    for (uint64_t i = 0; i < v[MERGES]->n; i++) {
        const qkv_text merge = qkv_gguf_string_at(v[MERGES], &at);
        qkv_buf_add(&lines, merge.data, merge.len);
        qkv_buf_putc(&lines, '\n');
    }
    qkv_status status = lines.status;
    if (status == QKV_OK)
        status = qkv_build_gpt2(tok, lines.data ? lines.data : "", lines.len, pre.steps, pre.whole);
    qkv_buf_free(&lines);
    for (size_t i = 0; i < p->n && status == QKV_OK; i++)
        if (p->type[i] == QKV_PIECE_CONTROL && !qkv_text_is(p->text[i], "<|endoftext|>"))
            status = qkv_add_special(tok, p->text[i].data, p->text[i].len, (int32_t)i);
    QKV_TRY(status);
    tok->special[QKV_TOK_BOS] = id_of(v[BOS], p->n);
    tok->special[QKV_TOK_EOS] = id_of(v[EOS], p->n);
    QKV_TRY(qkv_set_template(tok, flag(v[ADD_BOS], pre.bos) ? tok->special[QKV_TOK_BOS] : -1, -1));
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

static qkv_status build(qkv_tokenizer *tok, values v) {
    if (!v[TOKENS])
        return qkv_fail(QKV_BAD_FILE, "a GGUF file without a vocabulary (tokenizer.ggml.tokens)");
    const size_t n = (size_t)v[TOKENS]->n;
    const uint64_t scores = v[SCORES] ? v[SCORES]->n : n, kinds = v[KINDS] ? v[KINDS]->n : n;
    if (n > QKV_VOCAB_MAX || scores != n || kinds != n)
        return qkv_fail(QKV_BAD_FILE, "%zu tokens, but %llu scores and %llu types", n,
                        (unsigned long long)scores, (unsigned long long)kinds);
    qkv_pieces p = {.n = n, .unk = -1};
    p.text = qkv_zalloc(n + 1, sizeof *p.text);
    p.score = qkv_zalloc(n + 1, sizeof *p.score);
    p.type = qkv_zalloc(n + 1, 1);
    qkv_status status = p.text && p.score && p.type ? fill_types(v, &p) : QKV_FAILED;
    const qkv_text model = text_of(v[MODEL]);
    if (status == QKV_OK) {
        const uint8_t *at = NULL;
        for (size_t i = 0; i < n; i++) p.text[i] = qkv_gguf_string_at(v[TOKENS], &at);
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
    const qkv_gguf_entry *v[KEYS];
    qkv_gguf g;
    qkv_status status = qkv_gguf_read(data, n, false, &g);
    if (status == QKV_OK) {
        status = find_values(&g, v);
        if (status == QKV_OK) status = build(tok, v);
        qkv_gguf_free(&g);
    }
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "%s", name);
}
