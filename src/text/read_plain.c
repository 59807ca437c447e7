/* The plain-text vocabularies: BERT's vocab.txt, GPT-2's vocab.json with merges.txt,
 * tiktoken's rank files. */
#include "text/charsmap.h"
#include "text/merge_list.h"
#include "text/models.h"
#include "text/reader.h"
#include "text/scan.h"
#include "base/mem.h"

#include <string.h>

/* The next line without its end; false at the end of the text. */
static bool next_line(const char **at, const char *end, qkv_text *line) {
    if (*at >= end) return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *line = (qkv_text){*at, (size_t)((stop ? stop : end) - *at)};
    *at = stop ? stop + 1 : end;
    if (line->len && line->data[line->len - 1] == '\r') line->len--;
    return true;
}

/* ---- vocab.txt ---- */

/* A vocabulary of lower-case words is for lower-cased text:
 * no token but the bracketed ones has a capital letter. */
static bool is_uncased(const qkv_text *tokens, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < tokens[i].len && tokens[i].data[0] != '['; k++)
            if (tokens[i].data[k] >= 'A' && tokens[i].data[k] <= 'Z') return false;
    return true;
}

static const char bert_template[] =
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":"
    "0}},{\"Sequence\":{\"id\":"
    "\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":0}}],\"pair\":[{"
    "\"SpecialToken\":{\"id\":\"[CLS]\","
    "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"[SEP]"
    "\",\"type_id\":0}},{"
    "\"Sequence\":{\"id\":\"B\",\"type_id\":1}},{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":1}}"
    "],\"special_tokens\":{"
    "\"[CLS]\":{\"id\":\"[CLS]\",\"ids\":[%d],\"tokens\":[\"[CLS]\"]},\"[SEP]\":{\"id\":\"[SEP]\","
    "\"ids\":[%d],\"tokens\":["
    "\"[SEP]\"]}}}";

qkv_status qkv_build_bert(qkv_tokenizer *tok, const qkv_text *tokens, size_t n, bool lower) {
    static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    QKV_TRY(qkv_tokenizer_set_wordpiece(tok, tokens, n, "[UNK]", "##", 100));
    QKV_TRY(qkv_tokenizer_set_stage(
        tok, QKV_STAGE_NORMALIZER,
        lower ? "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
                "\"strip_accents\":null,\"lowercase\":true}"
              : "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
                "\"strip_accents\":null,\"lowercase\":false}"));
    QKV_TRY(
        qkv_tokenizer_set_stage(tok, QKV_STAGE_PRETOKENIZER, "{\"type\":\"BertPreTokenizer\"}"));
    QKV_TRY(qkv_tokenizer_set_stage(tok, QKV_STAGE_DECODER,
                                    "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}"));
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        const int32_t id = qkv_vocab_find(&tok->vocab, specials[i], strlen(specials[i]));
        if (id >= 0) QKV_TRY(qkv_add_special(tok, specials[i], strlen(specials[i]), id));
    }
    const int32_t cls = qkv_vocab_find(&tok->vocab, "[CLS]", 5),
                  sep = qkv_vocab_find(&tok->vocab, "[SEP]", 5);
    if (cls >= 0 && sep >= 0) {
        qkv_buf json = {0};
        qkv_buf_printf(&json, bert_template, cls, sep);
        qkv_status status = json.status;
        if (status == QKV_OK)
            status = qkv_tokenizer_set_stage(tok, QKV_STAGE_POSTPROCESSOR, json.data);
        qkv_buf_free(&json);
        QKV_TRY(status);
    }
    return qkv_tokenizer_finish(tok);
}

qkv_status qkv_read_vocab_txt(qkv_tokenizer *tok, const char *name, const char *data, size_t n) {
    QKV_VEC(qkv_text) tokens = {0};
    qkv_text line;
    bool unk = false;
    qkv_status status = QKV_OK;
    for (const char *at = data; status == QKV_OK && next_line(&at, data + n, &line);) {
        if (tokens.n >= QKV_VOCAB_MAX)
            status = qkv_fail(QKV_BAD_FILE, "more than %u lines", QKV_VOCAB_MAX);
        unk = unk || qkv_text_is(line, "[UNK]");
        if (status == QKV_OK && !QKV_PUSH(tokens, line)) status = QKV_FAILED;
    }
    if (status == QKV_OK && !unk)
        status = qkv_fail(QKV_BAD_FILE, "not a tokenizer: neither a tokenizer.json, a "
                                        "SentencePiece model, a GGUF or rank file, "
                                        "nor a vocab.txt (no line \"[UNK]\")");
    if (status == QKV_OK)
        status = qkv_build_bert(tok, tokens.at, tokens.n, is_uncased(tokens.at, tokens.n));
    qkv_free(tokens.at);
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "%s", name);
}

/* ---- byte-level vocabularies ---- */

static const char byte_level_gpt2[] =
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}";

/* Pre-tokenizer, decoder and offsets of a byte-level BPE that splits by these expressions, one after
 * another (NULL: GPT-2's). */
qkv_status qkv_set_byte_level(qkv_tokenizer *tok, const char *const *regexes) {
    qkv_buf json = {0};
    if (regexes) {
        qkv_json_out j = qkv_json_begin(&json, 0);
        qkv_buf_puts(&json, "{\"type\":\"Sequence\",\"pretokenizers\":[");
        for (; *regexes; regexes++) {
            qkv_buf_puts(&json, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
            qkv_json_put_text(&j, *regexes);
            j = qkv_json_begin(&json, 0);
            qkv_buf_puts(&json, "},\"behavior\":\"Isolated\",\"invert\":false},");
        }
        qkv_buf_puts(&json, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                            "\"trim_offsets\":true,\"use_regex\":false}]}");
    } else
        qkv_buf_puts(&json, byte_level_gpt2);
    qkv_status status = json.status;
    if (status == QKV_OK) status = qkv_tokenizer_set_stage(tok, QKV_STAGE_PRETOKENIZER, json.data);
    qkv_buf_free(&json);
    QKV_TRY(status);
    return qkv_tokenizer_set_stage(tok, QKV_STAGE_DECODER, byte_level_gpt2);
}

/* Lines "a b", after a first one that states the version. */
static qkv_status read_merge_lines(const char *merges, size_t n, qkv_merge_list *out) {
    qkv_text line;
    size_t number = 0;
    for (const char *at = merges; next_line(&at, merges + n, &line); number++) {
        if (!line.len || (number == 0 && line.len >= 8 && !memcmp(line.data, "#version", 8)))
            continue;
        const char *blank = memchr(line.data, ' ', line.len);
        if (!blank)
            return qkv_fail(QKV_BAD_FILE, "line %zu of the merges is not \"a b\"", number + 1);
        const size_t left = (size_t)(blank - line.data);
        QKV_TRY(qkv_merge_list_add(out, (qkv_text){line.data, left},
                                   (qkv_text){blank + 1, line.len - left - 1}));
    }
    return qkv_merge_list_end(out);
}

qkv_status qkv_build_gpt2(qkv_tokenizer *tok, const char *merges, size_t n,
                          const char *const *regexes, bool ignore_merges) {
    qkv_merge_list list = {.tok = tok};
    qkv_status status = read_merge_lines(merges, n, &list);
    if (status == QKV_OK)
        status = qkv_tokenizer_set_bpe(tok, NULL, 0, list.merges.at, list.merges.n,
                                       &(qkv_bpe_options){.ignore_merges = ignore_merges});
    qkv_merge_list_free(&list);
    QKV_TRY(status);
    QKV_TRY(qkv_set_byte_level(tok, regexes));
    const int32_t end = qkv_vocab_find(&tok->vocab, "<|endoftext|>", 13);
    return end < 0 ? QKV_OK : qkv_add_special(tok, "<|endoftext|>", 13, end);
}

qkv_status qkv_read_vocab_json(qkv_tokenizer *tok, const char *name, const char *vocab, size_t n,
                               const char *merges, size_t n_merges) {
    qkv_json doc;
    const qkv_json_limits limits = {.bytes = 256u << 20, .nodes = 64u << 20, .depth = 4};
    QKV_TRY(qkv_json_parse(&doc, name, vocab, n, limits));
    qkv_status status = qkv_vocab_put_object(tok, qkv_json_root(&doc));
    qkv_json_free(&doc);
    if (status == QKV_OK) status = qkv_build_gpt2(tok, merges, n_merges, NULL, false);
    if (status == QKV_OK) status = qkv_tokenizer_finish(tok);
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "%s", name);
}

/* ---- tiktoken ---- */

static const char o200k_regex[] =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'"
    "s|'t|'re|'ve|'m|'ll|'d)?|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'"
    "s|'t|'re|'ve|'m|'ll|'d)?|"
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/* The rank files do not say how text is split nor which tokens are special; their sizes do. */
static const struct {
    size_t tokens;
    const char *regex; /* NULL: GPT-2's */
    struct {
        const char *text;
        int32_t id;
    } specials[5];
} known[] = {
    {50256, NULL, {{"<|endoftext|>", 50256}}},
    {50280, NULL, {{"<|endoftext|>", 50256}}},
    {100256,
     "",
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {199998, o200k_regex, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
};

static qkv_status read_rank_line(const qkv_text *line, size_t number, qkv_buf *bytes,
                                 int64_t *rank) {
    const char *blank = memchr(line->data, ' ', line->len);
    if (!blank) return qkv_fail(QKV_BAD_FILE, "line %zu is not \"base64 rank\"", number);
    *rank = 0;
    const char *at = blank + 1, *const end = line->data + line->len;
    bool ok = at < end;
    for (; at < end && ok; at++) {
        ok = *at >= '0' && *at <= '9' && *rank < QKV_VOCAB_MAX;
        *rank = 10 * *rank + (*at - '0');
    }
    if (!ok || *rank >= QKV_VOCAB_MAX)
        return qkv_fail(QKV_BAD_FILE, "line %zu: the rank must be 0 … %u", number,
                        QKV_VOCAB_MAX - 1);
    qkv_buf_clear(bytes);
    const qkv_status status = qkv_base64_decode(line->data, (size_t)(blank - line->data), bytes);
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "line %zu", number);
}

/* Tokens in the order of the file: as bytes (for the merges), which lie in `pool`, and their ranks,
 * which are their ids. */
typedef struct ranks {
    QKV_VEC(qkv_text) bytes;
    QKV_VEC(uint32_t) rank;
    qkv_arena pool;
} ranks;

/* Keeps a token, and puts its name in the byte alphabet into the vocabulary. */
static qkv_status put_rank(qkv_tokenizer *tok, ranks *r, int64_t rank, const qkv_buf *bytes,
                           qkv_buf *name) {
    const char *data = bytes->data ? bytes->data : "";
    qkv_buf_clear(name);
    qkv_byte_level_name(data, bytes->len, name);
    if (name->status != QKV_OK) return name->status;
    QKV_TRY(qkv_vocab_put(&tok->vocab, name->data ? name->data : "", name->len, (int32_t)rank));
    const char *copy;
    QKV_TRY_ALLOC(copy = qkv_arena_strndup(&r->pool, data, bytes->len));
    if (!QKV_PUSH(r->bytes, ((qkv_text){copy, bytes->len})) || !QKV_PUSH(r->rank, (uint32_t)rank))
        return QKV_FAILED;
    return QKV_OK;
}

static qkv_status read_ranks(qkv_tokenizer *tok, ranks *r, const char *data, size_t n) {
    qkv_buf bytes = {0}, name = {0};
    qkv_text line;
    qkv_status status = QKV_OK;
    size_t number = 0;
    for (const char *at = data; status == QKV_OK && next_line(&at, data + n, &line);) {
        int64_t rank = 0;
        number++;
        if (!line.len) continue;
        status = read_rank_line(&line, number, &bytes, &rank);
        if (status == QKV_OK) status = put_rank(tok, r, rank, &bytes, &name);
    }
    qkv_buf_free(&bytes);
    qkv_buf_free(&name);
    return status;
}

static qkv_status build_ranks(qkv_tokenizer *tok, const ranks *r) {
    qkv_merge *merges;
    uint32_t *rank;
    size_t n = 0, k = 0;
    qkv_status status =
        qkv_merges_from_tokens(r->bytes.at, r->rank.at, r->bytes.n, &merges, &rank, &n);
    for (size_t i = 0; i < n && status == QKV_OK; i++) /* from places in the file to ids */
        merges[i] =
            (qkv_merge){(int32_t)r->rank.at[merges[i].left], (int32_t)r->rank.at[merges[i].right],
                        (int32_t)r->rank.at[merges[i].result]};
    tok->n_model_entries = tok->vocab.entries.n;
    /* A word that is a token is that token, whatever merges would say:
     * the original looks it up first. */
    if (status == QKV_OK)
        status = qkv_tokenizer_set_ranked_bpe(tok, NULL, 0, merges, rank, n,
                                              &(qkv_bpe_options){.ignore_merges = true});
    qkv_free(merges);
    qkv_free(rank);
    QKV_TRY(status);
    while (k + 1 < sizeof known / sizeof *known && known[k].tokens < r->bytes.n) k++;
    const char *regex = known[k].regex && !*known[k].regex ? qkv_scan_cl100k.regex : known[k].regex;
    const char *const regexes[] = {regex, NULL};
    QKV_TRY(qkv_set_byte_level(tok, regex ? regexes : NULL));
    for (size_t i = 0; i < 5 && known[k].specials[i].text && known[k].tokens == r->bytes.n; i++)
        QKV_TRY(qkv_add_special(tok, known[k].specials[i].text, strlen(known[k].specials[i].text),
                                known[k].specials[i].id));
    return qkv_tokenizer_finish(tok);
}

qkv_status qkv_read_tiktoken(qkv_tokenizer *tok, const char *name, const char *data, size_t n) {
    ranks r = {0};
    qkv_arena_init(&r.pool);
    qkv_status status = read_ranks(tok, &r, data, n);
    if (status == QKV_OK && !r.bytes.n) status = qkv_fail(QKV_BAD_FILE, "no tokens");
    if (status == QKV_OK) status = build_ranks(tok, &r);
    qkv_free(r.bytes.at);
    qkv_free(r.rank.at);
    qkv_arena_free(&r.pool);
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "%s", name);
}
