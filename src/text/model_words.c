/* WordPiece (greedy longest match) and WordLevel (whole words). */
#include "text/models.h"
#include "text/scratch.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

static qkv_status put_tokens(qkv_tokenizer *tok, const qkv_text *tokens, size_t n) {
    QKV_TRY(qkv_vocab_reserve(&tok->vocab, n, 8 * n));
    for (size_t i = 0; i < n; i++)
        if (tokens[i].data)
            QKV_TRY(qkv_vocab_put(&tok->vocab, tokens[i].data, tokens[i].len, (int32_t)i));
    tok->n_model_entries = tok->vocab.entries.n;
    return QKV_OK;
}

/* ---- WordPiece ---- */

static qkv_status install_wordpiece(qkv_tokenizer *tok, const char *unk, const char *prefix,
                                    size_t max_chars) {
    qkv_wordpiece *m;
    QKV_TRY_ALLOC(m = qkv_arena_zalloc(&tok->arena, sizeof *m));
    tok->model = m;
    tok->model_kind = &qkv_model_wordpiece;
    m->max_chars = max_chars;
    QKV_TRY_ALLOC(m->unk_text = qkv_arena_strndup(&tok->arena, unk, strlen(unk)));
    QKV_TRY_ALLOC(m->prefix = qkv_arena_strndup(&tok->arena, prefix, strlen(prefix)));
    return QKV_OK;
}

qkv_status qkv_tokenizer_set_wordpiece(qkv_tokenizer *tok, const qkv_text *tokens, size_t n,
                                       const char *unk, const char *prefix, size_t max_chars) {
    QKV_TRY(put_tokens(tok, tokens, n));
    return install_wordpiece(tok, unk, prefix, max_chars);
}

static qkv_status wordpiece_parse(qkv_tokenizer *tok, qkv_json_at json) {
    const char *unk = "[UNK]", *prefix = "##";
    size_t unk_len = 5, prefix_len = 2;
    int64_t max_chars = 100;
    QKV_TRY(qkv_vocab_parse(tok, json));
    QKV_TRY(qkv_json_get_string(json, "unk_token", false, &unk, &unk_len));
    QKV_TRY(qkv_json_get_string(json, "continuing_subword_prefix", false, &prefix, &prefix_len));
    QKV_TRY(qkv_json_get_int(json, "max_input_chars_per_word", false, 1, QKV_TEXT_MAX, &max_chars));
    char *unk_copy, *prefix_copy;
    QKV_TRY_ALLOC(unk_copy = qkv_arena_strndup(&tok->arena, unk, unk_len));
    QKV_TRY_ALLOC(prefix_copy = qkv_arena_strndup(&tok->arena, prefix, prefix_len));
    return install_wordpiece(tok, unk_copy, prefix_copy, (size_t)max_chars);
}

static qkv_status wordpiece_prepare(qkv_tokenizer *tok) {
    qkv_wordpiece *m = tok->model;
    const size_t n = tok->n_model_entries, prefix = strlen(m->prefix);
    m->unk = tok->special[QKV_TOK_UNK] =
        qkv_vocab_find(&tok->vocab, m->unk_text, strlen(m->unk_text));
    qkv_trie_key *keys;
    QKV_TRY_ALLOC(keys = qkv_alloc((n + 1) * sizeof *keys));
    qkv_status status = QKV_OK;
    for (int rest = 0; rest < 2 && status == QKV_OK; rest++) {
        size_t count = 0;
        for (size_t e = 0; e < n; e++) {
            const qkv_vocab_entry *entry = &tok->vocab.entries.at[e];
            const char *text = tok->vocab.bytes.data + entry->at;
            const size_t skip = rest ? prefix : 0;
            if (rest && (entry->len <= prefix || memcmp(text, m->prefix, prefix))) continue;
            keys[count++] = (qkv_trie_key){text + skip, (uint32_t)(entry->len - skip), entry->id};
        }
        status = qkv_trie_build(rest ? &m->rest : &m->first, keys, count);
    }
    qkv_free(keys);
    return status;
}

/* One failure makes the whole word unknown. */
static qkv_status unknown_word(qkv_scratch *s, int32_t unk, const char *unk_text, size_t n,
                               uint32_t at, size_t before, qkv_encoding *out) {
    out->n = before;
    if (unk < 0)
        return qkv_fail(QKV_BAD_FILE,
                        "a word that the vocabulary does not cover, and \"%s\" is not in it either",
                        unk_text);
    return qkv_emit(s, out, unk, at, at + n) ? QKV_OK : QKV_FAILED;
}

static qkv_status wordpiece_encode(const qkv_tokenizer *tok, qkv_scratch *s, const char *word,
                                   size_t n, uint32_t at, qkv_encoding *out) {
    const qkv_wordpiece *m = tok->model;
    const size_t before = out->n;
    if (n > m->max_chars && qkv_utf8_count(word, n) > m->max_chars)
        return unknown_word(s, m->unk, m->unk_text, n, at, before, out);
    for (size_t i = 0; i < n;) {
        int32_t id;
        const size_t len = qkv_trie_longest(i ? &m->rest : &m->first, word + i, n - i, &id);
        if (!len) return unknown_word(s, m->unk, m->unk_text, n, at, before, out);
        if (!qkv_emit(s, out, id, at + i, at + i + len)) return QKV_FAILED;
        i += len;
    }
    return QKV_OK;
}

static void wordpiece_write(const qkv_tokenizer *tok, qkv_json_out *json) {
    const qkv_wordpiece *m = tok->model;
    qkv_json_put_key(json, "unk_token");
    qkv_json_put_text(json, m->unk_text);
    qkv_json_put_key(json, "continuing_subword_prefix");
    qkv_json_put_text(json, m->prefix);
    qkv_json_put_key(json, "max_input_chars_per_word");
    qkv_json_put_int(json, (int64_t)m->max_chars);
    qkv_vocab_write(tok, json);
}

static void wordpiece_drop(qkv_tokenizer *tok) {
    qkv_wordpiece *m = tok->model;
    qkv_trie_free(&m->first);
    qkv_trie_free(&m->rest);
}

const qkv_tokenizer_model qkv_model_wordpiece = {.name = "WordPiece",
                                                 .parse = wordpiece_parse,
                                                 .prepare = wordpiece_prepare,
                                                 .encode = wordpiece_encode,
                                                 .write = wordpiece_write,
                                                 .drop = wordpiece_drop};

/* ---- WordLevel ---- */

static qkv_status install_wordlevel(qkv_tokenizer *tok, const char *unk, size_t len) {
    qkv_wordlevel *m;
    QKV_TRY_ALLOC(m = qkv_arena_zalloc(&tok->arena, sizeof *m));
    tok->model = m;
    tok->model_kind = &qkv_model_wordlevel;
    QKV_TRY_ALLOC(m->unk_text = qkv_arena_strndup(&tok->arena, unk, len));
    return QKV_OK;
}

qkv_status qkv_tokenizer_set_wordlevel(qkv_tokenizer *tok, const qkv_text *tokens, size_t n,
                                       const char *unk) {
    QKV_TRY(put_tokens(tok, tokens, n));
    return install_wordlevel(tok, unk, strlen(unk));
}

static qkv_status wordlevel_parse(qkv_tokenizer *tok, qkv_json_at json) {
    const char *unk = "<unk>";
    size_t len = 5;
    QKV_TRY(qkv_vocab_parse(tok, json));
    QKV_TRY(qkv_json_get_string(json, "unk_token", false, &unk, &len));
    return install_wordlevel(tok, unk, len);
}

static qkv_status wordlevel_prepare(qkv_tokenizer *tok) {
    qkv_wordlevel *m = tok->model;
    m->unk = tok->special[QKV_TOK_UNK] =
        qkv_vocab_find(&tok->vocab, m->unk_text, strlen(m->unk_text));
    return QKV_OK;
}

static qkv_status wordlevel_encode(const qkv_tokenizer *tok, qkv_scratch *s, const char *word,
                                   size_t n, uint32_t at, qkv_encoding *out) {
    const qkv_wordlevel *m = tok->model;
    const int32_t id = qkv_vocab_find(&tok->vocab, word, n);
    if (id < 0) return unknown_word(s, m->unk, m->unk_text, n, at, out->n, out);
    return qkv_emit(s, out, id, at, at + n) ? QKV_OK : QKV_FAILED;
}

static void wordlevel_write(const qkv_tokenizer *tok, qkv_json_out *json) {
    const qkv_wordlevel *m = tok->model;
    qkv_vocab_write(tok, json);
    qkv_json_put_key(json, "unk_token");
    qkv_json_put_text(json, m->unk_text);
}

static void wordlevel_drop(qkv_tokenizer *tok) {
    (void)tok;
}

const qkv_tokenizer_model qkv_model_wordlevel = {.name = "WordLevel",
                                                 .parse = wordlevel_parse,
                                                 .prepare = wordlevel_prepare,
                                                 .encode = wordlevel_encode,
                                                 .write = wordlevel_write,
                                                 .drop = wordlevel_drop};
