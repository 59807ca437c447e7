/* What a tokenizer is, and how it does on a text. */
#include "text/models.h"
#include "text/unicode.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

typedef struct tally {
    uint64_t lines, bytes, words, tokens, unknown;
} tally;

/* Words as people count them: runs of characters that are not white space. */
static uint64_t count_words(const char *text, size_t len) {
    uint64_t n = 0;
    bool inside = false;
    for (size_t i = 0; i < len;) {
        int32_t cp;
        i += (size_t)qkv_utf8_decode(text + i, len - i, &cp);
        const bool space = qkv_unicode_class(cp) & QKV_U_SPACE;
        n += !space && !inside;
        inside = !space;
    }
    return n;
}

static qkv_status count(const qkv_tokenizer *tok, qkv_text_source next, void *user, tally *t) {
    const qkv_encode_options options = {.no_special = true, .max_tokens = SIZE_MAX};
    const int32_t unk = qkv_tokenizer_special(tok, QKV_TOK_UNK);
    qkv_encoding e = {0};
    qkv_status status = QKV_OK;
    const char *text;
    size_t len;
    while (status == QKV_OK && next(user, &text, &len)) {
        status = qkv_tokenizer_encode(tok, text, len, NULL, 0, &options, &e);
        t->lines++;
        t->bytes += len;
        t->words += count_words(text, len);
        t->tokens += status == QKV_OK ? e.n : 0;
        for (size_t i = 0; i < e.n && unk >= 0; i++) t->unknown += e.ids[i] == unk;
    }
    qkv_encoding_free(&e);
    return status;
}

#define LONGEST 5

/* The tokens with the most bytes, added ones aside. */
static size_t find_longest(const qkv_tokenizer *tok, int32_t out[LONGEST]) {
    size_t n = 0, lens[LONGEST];
    for (size_t e = 0; e < tok->n_model_entries; e++) {
        const qkv_vocab_entry *entry = &tok->vocab.entries.at[e];
        size_t at = n;
        while (at && lens[at - 1] < entry->len) at--;
        if (at == LONGEST) continue;
        const size_t move = (n < LONGEST ? n : LONGEST - 1) - at;
        memmove(out + at + 1, out + at, move * sizeof *out);
        memmove(lens + at + 1, lens + at, move * sizeof *lens);
        out[at] = entry->id;
        lens[at] = entry->len;
        if (n < LONGEST) n++;
    }
    return n;
}

static const char *const role_names[QKV_TOK_SPECIALS] = {"pad",  "unk", "bos", "eos",
                                                         "mask", "cls", "sep"};

static double ratio(uint64_t a, uint64_t b) {
    return b ? (double)a / (double)b : 0;
}

static void write_steps(const qkv_tokenizer *tok, qkv_stage stage, qkv_buf *out) {
    const qkv_text_steps *s = &tok->stage[stage];
    for (size_t i = 0; i < s->n; i++)
        qkv_buf_printf(out, "%s%s", i ? " → " : "", s->step[i].kind->name);
    if (!s->n) qkv_buf_puts(out, "none");
}

/* What encoding puts around a text, if anything. */
static void write_template(const qkv_tokenizer *tok, qkv_buf *out) {
    const qkv_template_parts *parts = &tok->template.single;
    if (parts->n < 2) return;
    qkv_buf_puts(out, "\ntemplate      ");
    for (size_t i = 0; i < parts->n; i++) {
        const char *name = "(text)";
        size_t len = strlen(name);
        if (parts->at[i].id >= 0) name = qkv_tokenizer_token(tok, parts->at[i].id, &len);
        if (name) qkv_buf_printf(out, " %.*s", (int)len, name);
    }
}

static void write_text(const qkv_tokenizer *tok, const tally *t, qkv_buf *out) {
    int32_t longest[LONGEST];
    size_t len;
    qkv_buf_printf(out, "model          %s, %zu ids (%zu added tokens)\n", tok->model_kind->name,
                   qkv_tokenizer_size(tok), tok->added.n);
    qkv_buf_puts(out, "normalizer     ");
    write_steps(tok, QKV_STAGE_NORMALIZER, out);
    qkv_buf_puts(out, "\npre-tokenizer  ");
    write_steps(tok, QKV_STAGE_PRETOKENIZER, out);
    qkv_buf_puts(out, "\ndecoder        ");
    write_steps(tok, QKV_STAGE_DECODER, out);
    write_template(tok, out);
    qkv_buf_puts(out, "\nspecial      ");
    for (int r = 0; r < QKV_TOK_SPECIALS; r++) {
        const char *name = qkv_tokenizer_token(tok, tok->special[r], &len);
        if (name)
            qkv_buf_printf(out, "  %s %.*s (%d)", role_names[r], (int)len, name, tok->special[r]);
    }
    qkv_buf_puts(out, "\nlongest      ");
    for (size_t i = 0, n = find_longest(tok, longest); i < n; i++) {
        const char *name = qkv_tokenizer_token(tok, longest[i], &len);
        qkv_buf_printf(out, "  %.*s%s", (int)(len > 24 ? qkv_utf8_complete(name, 24) : len), name,
                       len > 24 ? "…" : "");
    }
    qkv_buf_putc(out, '\n');
    if (!t->lines) return;
    qkv_buf_printf(out, "text           %llu lines, %llu bytes, %llu words, %llu tokens\n",
                   (unsigned long long)t->lines, (unsigned long long)t->bytes,
                   (unsigned long long)t->words, (unsigned long long)t->tokens);
    qkv_buf_printf(
        out, "               %.3f tokens per word, %.3f bytes per token, %llu unknown (%.4f %%)\n",
        ratio(t->tokens, t->words), ratio(t->bytes, t->tokens), (unsigned long long)t->unknown,
        100 * ratio(t->unknown, t->tokens));
}

static void write_json(const qkv_tokenizer *tok, const tally *t, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 0);
    int32_t longest[LONGEST];
    size_t len;
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "model");
    qkv_json_put_text(&j, tok->model_kind->name);
    qkv_json_put_key(&j, "size");
    qkv_json_put_int(&j, (int64_t)qkv_tokenizer_size(tok));
    qkv_json_put_key(&j, "added");
    qkv_json_put_int(&j, (int64_t)tok->added.n);
    qkv_json_put_key(&j, "special");
    qkv_json_open(&j, '{');
    for (int r = 0; r < QKV_TOK_SPECIALS; r++)
        if (tok->special[r] >= 0) {
            qkv_json_put_key(&j, role_names[r]);
            qkv_json_put_int(&j, tok->special[r]);
        }
    qkv_json_close(&j, '}');
    qkv_json_put_key(&j, "longest");
    qkv_json_open(&j, '[');
    for (size_t i = 0, n = find_longest(tok, longest); i < n; i++) {
        const char *name = qkv_tokenizer_token(tok, longest[i], &len);
        qkv_json_put_string(&j, name, len);
    }
    qkv_json_close(&j, ']');
    if (t->lines) {
        const struct {
            const char *key;
            uint64_t value;
        } counts[] = {{"lines", t->lines},
                      {"bytes", t->bytes},
                      {"words", t->words},
                      {"tokens", t->tokens},
                      {"unknown", t->unknown}};
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            qkv_json_put_key(&j, counts[i].key);
            qkv_json_put_int(&j, (int64_t)counts[i].value);
        }
        qkv_json_put_key(&j, "tokens_per_word");
        qkv_json_put_real(&j, ratio(t->tokens, t->words), 6);
        qkv_json_put_key(&j, "bytes_per_token");
        qkv_json_put_real(&j, ratio(t->bytes, t->tokens), 6);
    }
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

qkv_status qkv_tokenizer_info(const qkv_tokenizer *tok, qkv_text_source next, void *user, bool json,
                              char **text) {
    tally t = {0};
    qkv_buf out = {0};
    *text = NULL;
    if (next) QKV_TRY(count(tok, next, user, &t));
    if (json)
        write_json(tok, &t, &out);
    else
        write_text(tok, &t, &out);
    if (out.status != QKV_OK) {
        const qkv_status status = out.status;
        qkv_buf_free(&out);
        return status;
    }
    *text = out.data;
    return QKV_OK;
}
