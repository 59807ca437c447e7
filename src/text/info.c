/* What a tokenizer is, and how it does on a text. */
#include "text/models.h"
#include "text/unicode.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

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

static qkv_status count(const qkv_tokenizer *tok, qkv_text_source next, void *user,
                        qkv_tokenizer_facts *out) {
    const qkv_encode_options options = {.no_special = true, .max_tokens = SIZE_MAX};
    const int32_t unk = qkv_tokenizer_special(tok, QKV_TOK_UNK);
    qkv_encoding e = {0};
    qkv_status status = QKV_OK;
    const char *text;
    size_t len;
    while (status == QKV_OK && next(user, &text, &len)) {
        status = qkv_tokenizer_encode(tok, text, len, NULL, 0, &options, &e);
        out->lines++;
        out->bytes += len;
        out->words += count_words(text, len);
        out->tokens += status == QKV_OK ? e.n : 0;
        for (size_t i = 0; i < e.n && unk >= 0; i++) out->unknown += e.ids[i] == unk;
    }
    qkv_encoding_free(&e);
    if (out->words) out->tokens_per_word = (double)out->tokens / (double)out->words;
    if (out->tokens) out->bytes_per_token = (double)out->bytes / (double)out->tokens;
    return status;
}

enum { LONGEST = 5 };

/* What the facts point to. */
typedef struct listed {
    const char *step[QKV_STAGES][QKV_STEPS_MAX + 1];
    qkv_token special[QKV_TOK_SPECIALS], longest[LONGEST];
    qkv_token around[]; /* as many as the template has parts */
} listed;

static qkv_token token_of(const qkv_tokenizer *tok, int32_t id, const char *role) {
    qkv_token t = {.id = id, .role = role};
    t.text.data = qkv_tokenizer_token(tok, id, &t.text.len);
    return t;
}

/* The tokens with the most bytes, added ones aside. */
static size_t find_longest(const qkv_tokenizer *tok, qkv_token out[LONGEST]) {
    size_t n = 0, lens[LONGEST];
    for (size_t e = 0; e < tok->n_model_entries; e++) {
        const qkv_vocab_entry *entry = &tok->vocab.entries.at[e];
        size_t at = n;
        while (at && lens[at - 1] < entry->len) at--;
        if (at == LONGEST) continue;
        const size_t move = (n < LONGEST ? n : LONGEST - 1) - at;
        memmove(out + at + 1, out + at, move * sizeof *out);
        memmove(lens + at + 1, lens + at, move * sizeof *lens);
        out[at] = token_of(tok, entry->id, NULL);
        lens[at] = entry->len;
        if (n < LONGEST) n++;
    }
    return n;
}

static size_t find_special(const qkv_tokenizer *tok, qkv_token out[QKV_TOK_SPECIALS]) {
    static const char *const roles[QKV_TOK_SPECIALS] = {"pad",  "unk", "bos", "eos",
                                                        "mask", "cls", "sep"};
    size_t n = 0;
    for (int r = 0; r < QKV_TOK_SPECIALS; r++)
        if (tok->special[r] >= 0) out[n++] = token_of(tok, tok->special[r], roles[r]);
    return n;
}

/* One part is the text alone. */
static size_t find_around(const qkv_tokenizer *tok, qkv_token *out) {
    const qkv_template_parts *parts = &tok->template.single;
    if (parts->n < 2) return 0;
    for (size_t i = 0; i < parts->n; i++)
        out[i] = parts->at[i].id < 0 ? (qkv_token){.id = -1} : token_of(tok, parts->at[i].id, NULL);
    return parts->n;
}

static const char *const *find_steps(const qkv_tokenizer *tok, qkv_stage stage, listed *l) {
    const qkv_text_steps *s = &tok->stage[stage];
    for (size_t i = 0; i < s->n; i++) l->step[stage][i] = s->step[i].kind->name;
    return l->step[stage];
}

qkv_status qkv_tokenizer_info(const qkv_tokenizer *tok, qkv_text_source next, void *user,
                              qkv_tokenizer_facts *out) {
    *out = (qkv_tokenizer_facts){0};
    listed *l = qkv_zalloc(1, sizeof *l + tok->template.single.n * sizeof *l->around);
    if (!l) return QKV_FAILED;
    *out = (qkv_tokenizer_facts){.model = tok->model_kind->name,
                                 .size = qkv_tokenizer_size(tok),
                                 .added = tok->added.n,
                                 .normalizer = find_steps(tok, QKV_STAGE_NORMALIZER, l),
                                 .pretokenizer = find_steps(tok, QKV_STAGE_PRETOKENIZER, l),
                                 .decoder = find_steps(tok, QKV_STAGE_DECODER, l),
                                 .special = l->special,
                                 .n_special = find_special(tok, l->special),
                                 .around = l->around,
                                 .n_around = find_around(tok, l->around),
                                 .longest = l->longest,
                                 .n_longest = find_longest(tok, l->longest),
                                 .memory = l};
    const qkv_status status = next ? count(tok, next, user, out) : QKV_OK;
    if (status != QKV_OK) qkv_tokenizer_facts_free(out);
    return status;
}

void qkv_tokenizer_facts_free(qkv_tokenizer_facts *f) {
    qkv_free(f->memory);
    *f = (qkv_tokenizer_facts){0};
}
