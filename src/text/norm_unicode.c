/* The four Unicode normal forms, and BERT's cleaning. ASCII passes through; only stretches of other
 * text are taken apart. */
#include "text/pipeline.h"
#include "text/unicode.h"
#include "base/utf8.h"

/* End of the ASCII run at i. */
static size_t ascii_end(const char *text, size_t i, size_t len) {
    while (i < len && (uint8_t)text[i] < 0x80) i++;
    return i;
}

/* End of the stretch of other characters at i. */
static size_t other_end(const char *text, size_t i, size_t len) {
    while (i < len && (uint8_t)text[i] >= 0x80) i++;
    return i;
}

static void put(qkv_draft *w, int32_t cp, size_t begin, size_t end) {
    if (cp < 0) { /* a malformed byte stays itself */
        const char byte = (char)(-1 - cp);
        qkv_draft_put(w, &byte, 1, begin, end);
    } else
        qkv_draft_put_char(w, cp, begin, end);
}

static qkv_status normal_form(qkv_draft *w, qkv_normal_form form) {
    size_t i = ascii_end(w->text, 0, w->len);
    if (i == w->len) return QKV_OK;
    qkv_draft_begin(w);
    for (size_t done = 0;;) {
        /* A stretch takes the ASCII character before it along: a mark may join it. */
        const size_t begin = i > done ? i - 1 : i, end = other_end(w->text, i, w->len);
        qkv_draft_keep(w, done, begin);
        QKV_TRY(qkv_unicode_normalize(w->text, begin, end, form, &w->chars));
        for (size_t k = 0; k < w->chars.n; k++)
            put(w, w->chars.at[k].cp, w->chars.at[k].begin, w->chars.at[k].end);
        done = end;
        i = ascii_end(w->text, done, w->len);
        if (i < w->len) continue;
        qkv_draft_keep(w, done, i);
        return qkv_draft_end(w);
    }
}

#define FORM(lower, NAME, FORM_)                                                                   \
    static qkv_status lower(const qkv_text_step *step, qkv_draft *w) {                             \
        (void)step;                                                                                \
        return normal_form(w, FORM_);                                                              \
    }                                                                                              \
    const qkv_text_step_kind qkv_norm_##lower = {.name = NAME, .normalize = lower};
FORM(nfc, "NFC", QKV_NFC)
FORM(nfd, "NFD", QKV_NFD)
FORM(nfkc, "NFKC", QKV_NFKC)
FORM(nfkd, "NFKD", QKV_NFKD)

/* ---- BertNormalizer: clean, set Chinese characters apart, strip accents (after NFD), lower case,
 * in this order ---- */

typedef struct bert_args {
    bool clean, han, accents, lower;
    char ascii[128]; /* what an ASCII character becomes; 0: dropped */
} bert_args;

static qkv_status bert_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    bert_args *a;
    qkv_json_at accents;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    a->clean = a->han = a->lower = true;
    QKV_TRY(qkv_json_get_bool(json, "clean_text", false, &a->clean));
    QKV_TRY(qkv_json_get_bool(json, "handle_chinese_chars", false, &a->han));
    QKV_TRY(qkv_json_get_bool(json, "lowercase", false, &a->lower));
    a->accents = a->lower; /* what null stands for */
    if (qkv_json_member(json, "strip_accents", &accents) &&
        qkv_json_kind_of(accents) != QKV_JSON_NULL)
        QKV_TRY(qkv_json_get_bool(json, "strip_accents", true, &a->accents));
    for (int c = 0; c < 128; c++) {
        const uint8_t class = qkv_unicode_class(c);
        a->ascii[c] = (char)c;
        if (a->clean && class & QKV_U_SPACE) a->ascii[c] = ' ';
        if (a->clean && class & QKV_U_OTHER) a->ascii[c] = 0; /* form feed is both, and goes */
        if (a->lower && c >= 'A' && c <= 'Z') a->ascii[c] = (char)(c | 0x20);
    }
    return QKV_OK;
}

static void bert_ascii(const bert_args *a, qkv_draft *w, size_t begin, size_t end) {
    char run[256];
    while (begin < end) {
        size_t n = 0;
        const size_t start = begin;
        for (; begin < end && n < sizeof run; begin++) {
            const char c = a->ascii[(uint8_t)w->text[begin]];
            if (!c) break;
            run[n++] = c;
        }
        if (!w->track)
            qkv_draft_put(w, run, n, start, begin);
        else
            for (size_t k = 0; k < n; k++) qkv_draft_put(w, run + k, 1, start + k, start + k + 1);
        if (begin < end && !a->ascii[(uint8_t)w->text[begin]]) begin++;
    }
}

static void bert_lower(const bert_args *a, qkv_draft *w, int32_t cp, size_t begin, size_t end) {
    int32_t low[2] = {cp};
    const int n = a->lower && cp >= 0 ? qkv_unicode_lower(cp, low) : 1;
    for (int i = 0; i < n; i++) put(w, low[i], begin, end);
}

/* A stretch without ASCII. Accents go first where they can: what remains needs no reordering, since
 * the order only concerns marks, and of those only the few that are not accents remain. */
static qkv_status bert_other(const bert_args *a, qkv_draft *w, size_t begin, size_t end) {
    qkv_uchars *v = &w->chars;
    if (a->accents)
        QKV_TRY(qkv_unicode_normalize(w->text, begin, end, QKV_NFD, v));
    else {
        v->n = 0;
        for (size_t i = begin; i < end;) {
            int32_t cp;
            const size_t n = (size_t)qkv_utf8_decode(w->text + i, end - i, &cp);
            if (cp < 0) cp = -1 - (uint8_t)w->text[i];
            if (!QKV_PUSH(*v, ((qkv_uchar){cp, 0, (uint32_t)i, (uint32_t)(i + n)})))
                return QKV_FAILED;
            i += n;
        }
    }
    for (size_t k = 0; k < v->n; k++) {
        const qkv_uchar c = v->at[k];
        const uint8_t class = qkv_unicode_class(c.cp);
        if (a->clean && (c.cp < 0 || c.cp == 0xFFFD || class & QKV_U_OTHER)) continue;
        if (a->accents && class & QKV_U_ACCENT) continue;
        if (a->clean && class & QKV_U_SPACE)
            qkv_draft_put(w, " ", 1, c.begin, c.end);
        else if (a->han && class & QKV_U_HAN) {
            qkv_draft_put(w, " ", 1, c.begin, c.end);
            put(w, c.cp, c.begin, c.end);
            qkv_draft_put(w, " ", 1, c.begin, c.end);
        } else
            bert_lower(a, w, c.cp, c.begin, c.end);
    }
    return QKV_OK;
}

static qkv_status bert(const qkv_text_step *step, qkv_draft *w) {
    const bert_args *a = step->args;
    qkv_draft_begin(w);
    for (size_t i = 0; i < w->len;) {
        size_t end = ascii_end(w->text, i, w->len);
        bert_ascii(a, w, i, end);
        i = end;
        end = other_end(w->text, i, w->len);
        if (end > i) QKV_TRY(bert_other(a, w, i, end));
        i = end;
    }
    return qkv_draft_end(w);
}

const qkv_text_step_kind qkv_norm_bert = {
    .name = "BertNormalizer", .parse = bert_parse, .normalize = bert};
