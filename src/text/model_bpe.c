/* Byte-pair encoding: reading, building and writing the model. Applying it is bpe_merge.c. */
#include "text/merge_list.h"
#include "text/models.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static qkv_bpe *model_of(const qkv_tokenizer *tok) {
    return tok->model;
}

static char *copy_text(qkv_tokenizer *tok, const char *text) {
    return qkv_arena_strndup(&tok->arena, text, strlen(text));
}

/* Takes over `merges` and `ranks` (NULL: by place) and hashes them. Of two merges of one pair the
 * first counts in a ranked list, the last in a plain one: that is what the originals' maps do. */
static qkv_status install(qkv_tokenizer *tok, qkv_merge *merges, uint32_t *ranks, size_t n,
                          const qkv_bpe_options *options) {
    qkv_bpe *m = qkv_arena_zalloc(&tok->arena, sizeof *m);
    if (!m) {
        qkv_free(merges);
        qkv_free(ranks);
        return QKV_FAILED;
    }
    tok->model = m;
    tok->model_kind = &qkv_model_bpe;
    m->merges = merges;
    m->ranks = ranks;
    m->n_merges = n;
    m->options = *options;
    m->unk = -1;
    if (options->unk) QKV_TRY_ALLOC(m->options.unk = copy_text(tok, options->unk));
    if (options->prefix) QKV_TRY_ALLOC(m->options.prefix = copy_text(tok, options->prefix));
    if (options->suffix) QKV_TRY_ALLOC(m->options.suffix = copy_text(tok, options->suffix));
    size_t slots = 16;
    while (slots < 2 * n) slots *= 2;
    QKV_TRY_ALLOC(m->slots = qkv_alloc(slots * sizeof *m->slots));
    memset(m->slots, 0xFF, slots * sizeof *m->slots);
    m->mask = slots - 1;
    for (size_t i = 0; i < n; i++) {
        size_t s = qkv_bpe_slot(m, merges[i].left, merges[i].right);
        while (m->slots[s].left >= 0 &&
               (m->slots[s].left != merges[i].left || m->slots[s].right != merges[i].right))
            s = (s + 1) & m->mask;
        if (ranks && m->slots[s].left >= 0) continue;
        m->slots[s] = (qkv_merge_slot){merges[i].left, merges[i].right, merges[i].result,
                                       ranks ? ranks[i] : (uint32_t)i};
    }
    return QKV_OK;
}

static qkv_status put_tokens(qkv_tokenizer *tok, const qkv_text *tokens, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += tokens[i].data ? tokens[i].len : 0;
    QKV_TRY(qkv_vocab_reserve(&tok->vocab, n, bytes));
    for (size_t i = 0; i < n; i++)
        if (tokens[i].data)
            QKV_TRY(qkv_vocab_put(&tok->vocab, tokens[i].data, tokens[i].len, (int32_t)i));
    tok->n_model_entries = tok->vocab.entries.n;
    return QKV_OK;
}

qkv_status qkv_tokenizer_set_bpe(qkv_tokenizer *tok, const qkv_text *tokens, size_t n,
                                 const qkv_merge *merges, size_t n_merges,
                                 const qkv_bpe_options *options) {
    return qkv_tokenizer_set_ranked_bpe(tok, tokens, n, merges, NULL, n_merges, options);
}

qkv_status qkv_tokenizer_set_ranked_bpe(qkv_tokenizer *tok, const qkv_text *tokens, size_t n,
                                        const qkv_merge *merges, const uint32_t *ranks,
                                        size_t n_merges, const qkv_bpe_options *options) {
    if (n_merges > QKV_MERGES_MAX)
        return qkv_fail(QKV_BAD_FILE, "%zu merges: at most %u are read", n_merges, QKV_MERGES_MAX);
    if (tokens) QKV_TRY(put_tokens(tok, tokens, n));
    n = qkv_tokenizer_size(tok);
    for (size_t i = 0; i < n_merges; i++)
        if ((size_t)merges[i].left >= n || (size_t)merges[i].right >= n ||
            (size_t)merges[i].result >= n)
            return qkv_fail(QKV_USAGE,
                            "merge %zu names a token that is not in the vocabulary of %zu", i, n);
    qkv_merge *copy;
    uint32_t *rank_copy = NULL;
    QKV_TRY_ALLOC(copy = qkv_alloc((n_merges + 1) * sizeof *copy));
    if (n_merges) memcpy(copy, merges, n_merges * sizeof *copy);
    if (ranks) {
        if (!(rank_copy = qkv_alloc((n_merges + 1) * sizeof *ranks))) {
            qkv_free(copy);
            return QKV_FAILED;
        }
        if (n_merges) memcpy(rank_copy, ranks, n_merges * sizeof *ranks);
    }
    return install(tok, copy, rank_copy, n_merges, options);
}

/* ---- reading the file's form ---- */

/* The two parts of a merge: "a b" or ["a", "b"]. Some files have blanks inside the parts: then the
 * first cut that makes two tokens counts. */
static qkv_status merge_parts(const qkv_tokenizer *tok, qkv_json_at at, size_t place,
                              qkv_text part[2]) {
    qkv_json_at child;
    if (qkv_json_kind_of(at) == QKV_JSON_ARRAY && qkv_json_count(at) == 2) {
        qkv_json_first(at, &child);
        qkv_json_string(child, &part[0].data, &part[0].len);
        qkv_json_next(at, &child);
        qkv_json_string(child, &part[1].data, &part[1].len);
        return QKV_OK;
    }
    const char *text;
    size_t len;
    qkv_json_string(at, &text, &len);
    const char *blank = memchr(text, ' ', len), *const end = text + len;
    if (!blank)
        return qkv_fail(QKV_BAD_FILE, "line %zu: merge %zu is not \"a b\"", qkv_json_line(at),
                        place);
    for (;;) {
        part[0] = (qkv_text){text, (size_t)(blank - text)};
        part[1] = (qkv_text){blank + 1, (size_t)(end - blank - 1)};
        const char *next = memchr(blank + 1, ' ', part[1].len);
        if (!next || (qkv_vocab_find(&tok->vocab, part[0].data, part[0].len) >= 0 &&
                      qkv_vocab_find(&tok->vocab, part[1].data, part[1].len) >= 0))
            return QKV_OK;
        blank = next;
    }
}

static qkv_status read_merges(qkv_tokenizer *tok, qkv_json_at list, qkv_merge_list *out) {
    qkv_json_at at;
    size_t i = 0;
    for (bool more = qkv_json_first(list, &at); more; more = qkv_json_next(list, &at), i++) {
        qkv_text part[2];
        QKV_TRY(merge_parts(tok, at, i, part));
        QKV_TRY(qkv_merge_list_add(out, part[0], part[1]));
    }
    return qkv_merge_list_end(out);
}

qkv_status qkv_vocab_parse(qkv_tokenizer *tok, qkv_json_at json) {
    qkv_json_at vocab;
    if (!qkv_json_member(json, "vocab", &vocab))
        return qkv_fail(QKV_BAD_FILE, "line %zu: the model has no vocab object",
                        qkv_json_line(json));
    return qkv_vocab_put_object(tok, vocab);
}

qkv_status qkv_vocab_put_object(qkv_tokenizer *tok, qkv_json_at vocab) {
    qkv_json_at at;
    if (qkv_json_kind_of(vocab) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "line %zu: a vocabulary must be an object of token: id",
                        qkv_json_line(vocab));
    QKV_TRY(qkv_vocab_reserve(&tok->vocab, qkv_json_count(vocab), 8 * qkv_json_count(vocab)));
    for (bool more = qkv_json_first(vocab, &at); more; more = qkv_json_next(vocab, &at)) {
        const char *text;
        size_t len;
        int64_t id;
        qkv_json_key(at, &text, &len);
        if (!qkv_json_integer(at, 0, QKV_VOCAB_MAX - 1, &id))
            return qkv_fail(QKV_BAD_FILE,
                            "line %zu: vocab: the id of \"%.*s\" must be an integer 0 … %u",
                            qkv_json_line(at), (int)(len > 60 ? 60 : len), text, QKV_VOCAB_MAX - 1);
        QKV_TRY(qkv_vocab_put(&tok->vocab, text, len, (int32_t)id));
    }
    tok->n_model_entries = tok->vocab.entries.n;
    return QKV_OK;
}

/* A string member that may be null or missing; "" counts as none. */
static qkv_status optional_text(qkv_tokenizer *tok, qkv_json_at json, const char *key,
                                const char **out) {
    qkv_json_at at;
    const char *text;
    size_t len;
    *out = NULL;
    if (!qkv_json_member(json, key, &at) || qkv_json_kind_of(at) == QKV_JSON_NULL) return QKV_OK;
    QKV_TRY(qkv_json_get_string(json, key, true, &text, &len));
    if (len) QKV_TRY_ALLOC(*out = qkv_arena_strndup(&tok->arena, text, len));
    return QKV_OK;
}

static qkv_status parse(qkv_tokenizer *tok, qkv_json_at json) {
    qkv_bpe_options o = {0};
    qkv_json_at at;
    QKV_TRY(qkv_vocab_parse(tok, json));
    QKV_TRY(optional_text(tok, json, "unk_token", &o.unk));
    QKV_TRY(optional_text(tok, json, "continuing_subword_prefix", &o.prefix));
    QKV_TRY(optional_text(tok, json, "end_of_word_suffix", &o.suffix));
    QKV_TRY(qkv_json_get_bool(json, "fuse_unk", false, &o.fuse_unk));
    QKV_TRY(qkv_json_get_bool(json, "byte_fallback", false, &o.byte_fallback));
    QKV_TRY(qkv_json_get_bool(json, "ignore_merges", false, &o.ignore_merges));
    if (qkv_json_member(json, "dropout", &at) && qkv_json_kind_of(at) != QKV_JSON_NULL)
        QKV_TRY(qkv_json_get_real(json, "dropout", true, 0, 1, &o.dropout));
    if (!qkv_json_member(json, "merges", &at) || qkv_json_kind_of(at) != QKV_JSON_ARRAY)
        return qkv_fail(QKV_BAD_FILE, "line %zu: BPE without merges", qkv_json_line(json));
    qkv_merge_list list = {.tok = tok, .prefix_len = o.prefix ? strlen(o.prefix) : 0};
    qkv_status status = read_merges(tok, at, &list);
    if (status == QKV_OK)
        status = qkv_tokenizer_set_bpe(tok, NULL, 0, list.merges.at, list.merges.n, &o);
    qkv_merge_list_free(&list);
    return status;
}

/* ---- ready to run ---- */

void qkv_byte_fallback(const qkv_vocab *v, int32_t out[256]) {
    for (int b = 0; b < 256; b++) {
        char name[8];
        out[b] = qkv_vocab_find(v, name, (size_t)snprintf(name, sizeof name, "<0x%02X>", b));
    }
}

/* True if ▁ is a token and no merge makes one in which it follows another character. */
static bool marks_begin_words(const qkv_tokenizer *tok, const qkv_bpe *m) {
    static const char mark[] = "\xE2\x96\x81";
    if (qkv_vocab_find(&tok->vocab, mark, 3) < 0 || m->options.prefix || m->options.suffix ||
        m->frozen.n)
        return false;
    for (size_t i = 0; i < m->n_merges; i++) {
        size_t len, at = 0;
        const char *text = qkv_vocab_text(&tok->vocab, m->merges[i].result, &len);
        while (at + 3 <= len && !memcmp(text + at, mark, 3)) at += 3;
        if (len > at && memmem(text + at, len - at, mark, 3)) return false;
    }
    return true;
}

static qkv_status prepare_whole_words(qkv_tokenizer *tok, qkv_bpe *m) {
    qkv_buf bytes = {0};
    qkv_status status = qkv_vocab_reserve(&m->whole, tok->n_model_entries, tok->vocab.bytes.len);
    for (size_t e = 0; e < tok->n_model_entries && status == QKV_OK; e++) {
        const qkv_vocab_entry *entry = &tok->vocab.entries.at[e];
        qkv_buf_clear(&bytes);
        if (qkv_byte_level_bytes(tok->vocab.bytes.data + entry->at, entry->len, &bytes))
            status = bytes.status == QKV_OK ? qkv_vocab_put(&m->whole, bytes.data ? bytes.data : "",
                                                            bytes.len, entry->id)
                                            : bytes.status;
    }
    qkv_buf_free(&bytes);
    return status;
}

static qkv_status prepare(qkv_tokenizer *tok) {
    qkv_bpe *m = model_of(tok);
    if (m->options.unk) {
        m->unk = qkv_vocab_find(&tok->vocab, m->options.unk, strlen(m->options.unk));
        tok->special[QKV_TOK_UNK] = m->unk;
    }
    qkv_buf name = {0};
    for (int b = 0; b < 256; b++) {
        const char byte = (char)b;
        qkv_buf_clear(&name);
        if (tok->byte_level)
            qkv_byte_level_name(&byte, 1, &name);
        else
            qkv_buf_add(&name, &byte, 1);
        if (name.status != QKV_OK) break;
        m->byte_id[b] =
            tok->byte_level || b < 128 ? qkv_vocab_find(&tok->vocab, name.data, name.len) : -1;
    }
    const qkv_status status = name.status;
    qkv_buf_free(&name);
    QKV_TRY(status);
    qkv_byte_fallback(&tok->vocab, m->fallback);
    m->word_start =
        !tok->byte_level && !m->options.ignore_merges && !m->unused && marks_begin_words(tok, m);
    if (tok->byte_level && m->options.ignore_merges) return prepare_whole_words(tok, m);
    return QKV_OK;
}

/* ---- writing ---- */

/* Hugging Face numbers added tokens on from the model's size;
 * where ours have other ids they must stand in the vocabulary. */
static bool added_follow(const qkv_tokenizer *tok) {
    for (size_t e = tok->n_model_entries; e < tok->vocab.entries.n; e++)
        if (tok->vocab.entries.at[e].id != (int32_t)e) return false;
    return true;
}

void qkv_vocab_write(const qkv_tokenizer *tok, qkv_json_out *json) {
    qkv_json_put_key(json, "vocab");
    qkv_json_open(json, '{');
    const size_t n = added_follow(tok) ? tok->n_model_entries : tok->vocab.entries.n;
    for (size_t e = 0; e < n; e++) {
        const qkv_vocab_entry *entry = &tok->vocab.entries.at[e];
        qkv_json_put_key_n(json, tok->vocab.bytes.data + entry->at, entry->len);
        qkv_json_put_int(json, entry->id);
    }
    qkv_json_close(json, '}');
}

static void put_optional(qkv_json_out *json, const char *key, const char *text) {
    qkv_json_put_key(json, key);
    if (text)
        qkv_json_put_text(json, text);
    else
        qkv_json_put_null(json);
}

static void write(const qkv_tokenizer *tok, qkv_json_out *json) {
    const qkv_bpe *m = model_of(tok);
    qkv_json_put_key(json, "dropout");
    if (m->options.dropout > 0)
        qkv_json_put_real(json, m->options.dropout, 9);
    else
        qkv_json_put_null(json);
    put_optional(json, "unk_token", m->options.unk);
    put_optional(json, "continuing_subword_prefix", m->options.prefix);
    put_optional(json, "end_of_word_suffix", m->options.suffix);
    const struct {
        const char *key;
        bool value;
    } flags[] = {{"fuse_unk", m->options.fuse_unk},
                 {"byte_fallback", m->options.byte_fallback},
                 {"ignore_merges", m->options.ignore_merges}};
    for (size_t i = 0; i < 3; i++) {
        qkv_json_put_key(json, flags[i].key);
        qkv_json_put_bool(json, flags[i].value);
    }
    qkv_vocab_write(tok, json);
    qkv_json_put_key(json, "merges");
    qkv_json_open(json, '[');
    for (size_t i = 0; i < m->n_merges; i++) {
        qkv_json_open(json, '[');
        for (int side = 0; side < 2; side++) {
            size_t len = 0;
            const char *text =
                qkv_vocab_text(&tok->vocab, side ? m->merges[i].right : m->merges[i].left, &len);
            qkv_json_put_string(json, text ? text : "", len);
        }
        qkv_json_close(json, ']');
    }
    qkv_json_close(json, ']');
}

static void drop(qkv_tokenizer *tok) {
    qkv_bpe *m = model_of(tok);
    qkv_free(m->slots);
    qkv_free(m->merges);
    qkv_free(m->ranks);
    qkv_free(m->unused);
    qkv_vocab_free(&m->whole);
    qkv_trie_free(&m->frozen);
}

const qkv_tokenizer_model qkv_model_bpe = {.name = "BPE",
                                           .parse = parse,
                                           .prepare = prepare,
                                           .encode = qkv_bpe_encode,
                                           .write = write,
                                           .drop = drop};
