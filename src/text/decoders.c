/* Decoder steps: each turns a list of token strings into another. What remains at the end is
 * joined.
 *
 * Bytes that byte-level and byte-fallback tokens stand for are given as they are, not replaced by
 * U+FFFD where they are no UTF-8: so what was encoded comes back exactly. */
#include "text/bytelevel.h"
#include "text/pattern.h"
#include "text/pipeline.h"
#include "base/utf8.h"

#include <string.h>

static size_t count_of(const qkv_strings *s) {
    return s->start.n ? s->start.n - 1 : 0;
}

static const char *string_at(const qkv_strings *s, size_t i, size_t *n) {
    *n = s->start.at[i + 1] - s->start.at[i];
    return s->text.data + s->start.at[i];
}

/* Closes the string that was being appended to out->text. */
static qkv_status close_string(qkv_strings *out) {
    if (out->text.status != QKV_OK) return out->text.status;
    if (out->text.len > QKV_TEXT_MAX)
        return qkv_fail(QKV_USAGE, "a text of more than %u bytes: decode it in parts",
                        QKV_TEXT_MAX);
    return QKV_PUSH(out->start, (uint32_t)out->text.len) ? QKV_OK : QKV_FAILED;
}

/* Appends text with every `from` replaced by `to`. */
static void add_replaced(qkv_buf *out, const char *text, size_t n, const char *from,
                         size_t from_len, const char *to, size_t to_len) {
    while (from_len) {
        const char *hit = memmem(text, n, from, from_len);
        if (!hit) break;
        qkv_buf_add(out, text, (size_t)(hit - text));
        qkv_buf_add(out, to, to_len);
        n -= (size_t)(hit - text) + from_len;
        text = hit + from_len;
    }
    qkv_buf_add(out, text, n);
}

/* Reads the string member `key` (NUL-terminated copy), or the initial one. */
static qkv_status get_text(qkv_tokenizer *tok, qkv_json_at json, const char *key,
                           const char *initial, char **out) {
    const char *text = initial;
    size_t len = strlen(initial);
    QKV_TRY(qkv_json_get_string(json, key, false, &text, &len));
    QKV_TRY_ALLOC(*out = qkv_arena_strndup(&tok->arena, text, len));
    return QKV_OK;
}

/* ---- ByteLevel ---- */

static qkv_status byte_level(const qkv_text_step *step, const qkv_strings *in, qkv_strings *out) {
    (void)step;
    for (size_t i = 0; i < count_of(in); i++) {
        size_t n;
        const char *text = string_at(in, i, &n);
        const size_t before = out->text.len;
        if (!qkv_byte_level_bytes(text, n,
                                  &out->text)) { /* a token outside of the alphabet is itself */
            out->text.len = before;
            qkv_buf_add(&out->text, text, n);
        }
    }
    return close_string(out);
}

const qkv_text_step_kind qkv_dec_byte_level = {.name = "ByteLevel", .decode = byte_level};

/* ---- WordPiece ---- */

typedef struct wordpiece_args {
    char *prefix;
    bool cleanup;
} wordpiece_args;

static qkv_status wordpiece_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    wordpiece_args *a;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    a->cleanup = true;
    QKV_TRY(qkv_json_get_bool(json, "cleanup", false, &a->cleanup));
    return get_text(tok, json, "prefix", "##", &a->prefix);
}

/* The originals' list of blanks that were not in the text, in their order. */
static qkv_status clean_up(qkv_buf *text) {
    static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    qkv_buf next = {0};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!text->len || !memmem(text->data, text->len, pairs[i][0], strlen(pairs[i][0])))
            continue;
        qkv_buf_clear(&next);
        add_replaced(&next, text->data, text->len, pairs[i][0], strlen(pairs[i][0]), pairs[i][1],
                     strlen(pairs[i][1]));
        const qkv_buf swap = *text;
        *text = next;
        next = swap;
    }
    qkv_buf_free(&next);
    return text->status;
}

static qkv_status wordpiece(const qkv_text_step *step, const qkv_strings *in, qkv_strings *out) {
    const wordpiece_args *a = step->args;
    const size_t prefix = strlen(a->prefix);
    qkv_buf word = {0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < count_of(in) && status == QKV_OK; i++) {
        size_t n;
        const char *text = string_at(in, i, &n);
        qkv_buf_clear(&word);
        if (i && n >= prefix && !memcmp(text, a->prefix, prefix)) {
            text += prefix;
            n -= prefix;
        } else if (i)
            qkv_buf_putc(&word, ' ');
        qkv_buf_add(&word, text, n);
        if (a->cleanup) status = clean_up(&word);
        qkv_buf_add(&out->text, word.data ? word.data : "", word.len);
        if (status == QKV_OK) status = word.status;
        if (status == QKV_OK) status = close_string(out);
    }
    qkv_buf_free(&word);
    return status;
}

const qkv_text_step_kind qkv_dec_wordpiece = {
    .name = "WordPiece", .parse = wordpiece_parse, .decode = wordpiece};

/* ---- Metaspace ---- */

typedef struct metaspace_args {
    char *mark;
    bool never; /* no mark was put before the text, so none is taken away */
} metaspace_args;

static qkv_status metaspace_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    metaspace_args *a;
    bool prefix = true;
    const char *scheme = "";
    size_t len = 0;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    QKV_TRY(qkv_json_get_bool(json, "add_prefix_space", false, &prefix));
    QKV_TRY(qkv_json_get_string(json, "prepend_scheme", false, &scheme, &len));
    a->never = len ? len == 5 && !memcmp(scheme, "never", 5) : !prefix;
    return get_text(tok, json, "replacement", "\xE2\x96\x81", &a->mark);
}

static qkv_status metaspace(const qkv_text_step *step, const qkv_strings *in, qkv_strings *out) {
    const metaspace_args *a = step->args;
    for (size_t i = 0; i < count_of(in); i++) {
        size_t n;
        const char *text = string_at(in, i, &n);
        add_replaced(&out->text, text, n, a->mark, strlen(a->mark), " ", i || a->never);
        QKV_TRY(close_string(out));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_dec_metaspace = {
    .name = "Metaspace", .parse = metaspace_parse, .decode = metaspace};

/* ---- BPEDecoder: the suffix of a word's end becomes a blank ---- */

static qkv_status bpe_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    char *suffix;
    QKV_TRY(get_text(tok, json, "suffix", "</w>", &suffix));
    step->args = suffix;
    return QKV_OK;
}

static qkv_status bpe(const qkv_text_step *step, const qkv_strings *in, qkv_strings *out) {
    const char *suffix = step->args;
    for (size_t i = 0; i < count_of(in); i++) {
        size_t n;
        const char *text = string_at(in, i, &n);
        add_replaced(&out->text, text, n, suffix, strlen(suffix), " ", i + 1 < count_of(in));
        QKV_TRY(close_string(out));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_dec_bpe = {.name = "BPEDecoder", .parse = bpe_parse, .decode = bpe};

/* ---- ByteFallback ---- */

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

int qkv_byte_token(const char *text, size_t n) {
    if (n != 6 || memcmp(text, "<0x", 3) || text[5] != '>') return -1;
    const int high = hex_digit(text[3]), low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static qkv_status byte_fallback(const qkv_text_step *step, const qkv_strings *in,
                                qkv_strings *out) {
    (void)step;
    for (size_t i = 0; i < count_of(in); i++) {
        size_t n, after;
        const char *text = string_at(in, i, &n);
        const int byte = qkv_byte_token(text, n);
        if (byte < 0)
            qkv_buf_add(&out->text, text, n);
        else
            qkv_buf_putc(&out->text, (char)byte);
        const char *next = byte >= 0 && i + 1 < count_of(in) ? string_at(in, i + 1, &after) : NULL;
        if (next && qkv_byte_token(next, after) >= 0) continue; /* bytes in a row are one string */
        QKV_TRY(close_string(out));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_dec_byte_fallback = {.name = "ByteFallback", .decode = byte_fallback};

/* ---- Fuse ---- */

static qkv_status fuse(const qkv_text_step *step, const qkv_strings *in, qkv_strings *out) {
    (void)step;
    qkv_buf_add(&out->text, in->text.data ? in->text.data : "", in->text.len);
    return close_string(out);
}

const qkv_text_step_kind qkv_dec_fuse = {.name = "Fuse", .decode = fuse};

/* ---- Strip: up to `start` and `stop` of one character from the ends ---- */

typedef struct strip_args {
    char *content;
    int64_t start, stop;
} strip_args;

static qkv_status strip_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    strip_args *a;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    QKV_TRY(qkv_json_get_int(json, "start", true, 0, QKV_TEXT_MAX, &a->start));
    QKV_TRY(qkv_json_get_int(json, "stop", true, 0, QKV_TEXT_MAX, &a->stop));
    return get_text(tok, json, "content", " ", &a->content);
}

static qkv_status strip(const qkv_text_step *step, const qkv_strings *in, qkv_strings *out) {
    const strip_args *a = step->args;
    const size_t len = strlen(a->content);
    for (size_t i = 0; i < count_of(in); i++) {
        size_t n;
        const char *text = string_at(in, i, &n);
        for (int64_t k = 0; k < a->start && len && n >= len && !memcmp(text, a->content, len); k++)
            text += len, n -= len;
        for (int64_t k = 0;
             k < a->stop && len && n >= len && !memcmp(text + n - len, a->content, len); k++)
            n -= len;
        qkv_buf_add(&out->text, text, n);
        QKV_TRY(close_string(out));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_dec_strip = {.name = "Strip", .parse = strip_parse, .decode = strip};

/* ---- Replace ---- */

typedef struct replace_args {
    qkv_text_pattern pattern;
    char *content;
} replace_args;

static qkv_status replace_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    replace_args *a;
    qkv_json_at pattern;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    QKV_TRY(get_text(tok, json, "content", "", &a->content));
    if (!qkv_json_member(json, "pattern", &pattern))
        return qkv_fail(QKV_BAD_FILE, "line %zu: Replace without a pattern", qkv_json_line(json));
    return qkv_text_pattern_parse(&a->pattern, pattern);
}

static void replace_drop(qkv_text_step *step) {
    replace_args *a = step->args;
    if (a) qkv_text_pattern_free(&a->pattern);
}

static qkv_status replace(const qkv_text_step *step, const qkv_strings *in, qkv_strings *out) {
    const replace_args *a = step->args;
    for (size_t i = 0; i < count_of(in); i++) {
        size_t n, done = 0, begin, end;
        const char *text = string_at(in, i, &n);
        bool found;
        qkv_search s = qkv_search_begin(&a->pattern, text, n);
        qkv_status status;
        while ((status = qkv_search_next(&s, &begin, &end, &found)) == QKV_OK && found) {
            qkv_buf_add(&out->text, text + done, begin - done);
            qkv_buf_puts(&out->text, a->content);
            done = end;
        }
        qkv_search_end(&s);
        QKV_TRY(status);
        qkv_buf_add(&out->text, text + done, n - done);
        QKV_TRY(close_string(out));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_dec_replace = {
    .name = "Replace", .parse = replace_parse, .decode = replace, .drop = replace_drop};

/* ---- CTC: repeated tokens once, without the blank token ---- */

typedef struct ctc_args {
    char *pad, *delimiter;
    bool cleanup;
} ctc_args;

static qkv_status ctc_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    ctc_args *a;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    a->cleanup = true;
    QKV_TRY(qkv_json_get_bool(json, "cleanup", false, &a->cleanup));
    QKV_TRY(get_text(tok, json, "pad_token", "<pad>", &a->pad));
    return get_text(tok, json, "word_delimiter_token", "|", &a->delimiter);
}

static qkv_status ctc(const qkv_text_step *step, const qkv_strings *in, qkv_strings *out) {
    const ctc_args *a = step->args;
    qkv_buf word = {0}, plain = {0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < count_of(in) && status == QKV_OK; i++) {
        size_t n, before;
        const char *text = string_at(in, i, &n), *last = i ? string_at(in, i - 1, &before) : NULL;
        if (last && before == n && !memcmp(last, text, n)) continue;
        qkv_buf_clear(&plain);
        qkv_buf_clear(&word);
        add_replaced(&plain, text, n, a->pad, strlen(a->pad), "", 0);
        if (a->cleanup && (status = clean_up(&plain)) != QKV_OK) break;
        add_replaced(&word, plain.data ? plain.data : "", plain.len, a->cleanup ? a->delimiter : "",
                     a->cleanup ? strlen(a->delimiter) : 0, " ", 1);
        if (!word.len) continue;
        qkv_buf_add(&out->text, word.data, word.len);
        status = close_string(out);
    }
    qkv_buf_free(&word);
    qkv_buf_free(&plain);
    return status;
}

const qkv_text_step_kind qkv_dec_ctc = {.name = "CTC", .parse = ctc_parse, .decode = ctc};

/* ---- SentencePiece: ▁ back to blanks ----
 *
 * Without what its normaliser put or would have taken away in front. */

typedef struct sentencepiece_args {
    bool prefix, squeeze; /* the normaliser's add_dummy_prefix, remove_extra_whitespaces */
} sentencepiece_args;

static qkv_status sentencepiece_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    sentencepiece_args *a;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    QKV_TRY(qkv_json_get_bool(json, "add_dummy_prefix", true, &a->prefix));
    return qkv_json_get_bool(json, "remove_extra_whitespaces", true, &a->squeeze);
}

/* As the original: one ▁ is taken off the first piece that begins with it, or, where extra blanks
 * are removed, off every piece until there is text. */
static qkv_status sentencepiece(const qkv_text_step *step, const qkv_strings *in,
                                qkv_strings *out) {
    static const char mark[] = "\xE2\x96\x81";
    const sentencepiece_args *a = step->args;
    bool before_text = (a->prefix || a->squeeze) && !in->within;
    for (size_t i = 0; i < count_of(in); i++) {
        size_t n;
        const char *text = string_at(in, i, &n);
        if (before_text && n >= 3 && !memcmp(text, mark, 3)) {
            text += 3, n -= 3;
            before_text = a->squeeze;
        }
        add_replaced(&out->text, text, n, mark, 3, " ", 1);
        if (out->text.len) before_text = false;
        QKV_TRY(close_string(out));
    }
    return QKV_OK;
}

/* The nearest that Hugging Face has: one blank at most is taken off the whole text. */
static qkv_status sentencepiece_translate(const qkv_text_steps *stage, qkv_buf *out) {
    const sentencepiece_args *a = stage->step[0].args;
    qkv_buf_puts(
        out,
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
        "\"\xE2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}");
    if (a->prefix)
        qkv_buf_puts(out, ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}");
    qkv_buf_puts(out, "]}");
    return out->status;
}

const qkv_text_step_kind qkv_dec_sentencepiece = {.name = "SentencePiece",
                                                  .parse = sentencepiece_parse,
                                                  .decode = sentencepiece,
                                                  .translate = sentencepiece_translate};
