/* Pre-tokenizers that need no rewriting and no pattern: cuts between characters by their classes.
 */
#include "text/pipeline.h"
#include "text/script.h"
#include "text/unicode.h"

/* ---- BertPreTokenizer: white space falls away, each punctuation mark stands alone ---- */

static qkv_status bert(const qkv_text_step *step, qkv_draft *w) {
    (void)step;
    for (size_t p = 0; p < w->old.n; p++) {
        size_t begin = w->old.at[p].begin, i = begin, n;
        const size_t end = w->old.at[p].end;
        for (; i < end; i += n) {
            const uint8_t c = qkv_unicode_class_at(w->text, end, i, &n);
            if (!(c & (QKV_U_SPACE | QKV_U_PUNCT))) continue;
            QKV_TRY(qkv_draft_cut(w, begin, i));
            if (!(c & QKV_U_SPACE)) QKV_TRY(qkv_draft_cut(w, i, i + n));
            begin = i + n;
        }
        QKV_TRY(qkv_draft_cut(w, begin, end));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_pre_bert = {.name = "BertPreTokenizer", .split = bert};

/* ---- Whitespace: runs of \w, runs of anything else, without white space ---- */

static qkv_status whitespace(const qkv_text_step *step, qkv_draft *w) {
    (void)step;
    enum { KINDS = QKV_U_SPACE | QKV_U_WORD };
    for (size_t p = 0; p < w->old.n; p++) {
        size_t begin = w->old.at[p].begin, n;
        const size_t end = w->old.at[p].end;
        uint8_t kind = QKV_U_SPACE;
        for (size_t i = begin; i < end; i += n) {
            const uint8_t c = qkv_unicode_class_at(w->text, end, i, &n) & KINDS;
            if (c == kind) continue;
            if (kind != QKV_U_SPACE) QKV_TRY(qkv_draft_cut(w, begin, i));
            begin = i;
            kind = c;
        }
        if (kind != QKV_U_SPACE) QKV_TRY(qkv_draft_cut(w, begin, end));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_pre_whitespace = {.name = "Whitespace", .split = whitespace};

static qkv_status whitespace_split(const qkv_text_step *step, qkv_draft *w) {
    (void)step;
    for (size_t p = 0; p < w->old.n; p++) {
        size_t begin = w->old.at[p].begin, n;
        const size_t end = w->old.at[p].end;
        for (size_t i = begin; i < end; i += n) {
            if (!(qkv_unicode_class_at(w->text, end, i, &n) & QKV_U_SPACE)) continue;
            QKV_TRY(qkv_draft_cut(w, begin, i));
            begin = i + n;
        }
        QKV_TRY(qkv_draft_cut(w, begin, end));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_pre_whitespace_split = {.name = "WhitespaceSplit",
                                                     .split = whitespace_split};

/* ---- FixedLength: pieces of `length` characters ---- */

static qkv_status fixed_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    int64_t length = 5, *args;
    QKV_TRY(qkv_json_get_int(json, "length", false, 1, QKV_TEXT_MAX, &length));
    QKV_TRY_ALLOC(step->args = args = qkv_arena_alloc(&tok->arena, sizeof *args));
    *args = length;
    return QKV_OK;
}

static qkv_status fixed_length(const qkv_text_step *step, qkv_draft *w) {
    const int64_t length = *(const int64_t *)step->args;
    for (size_t p = 0; p < w->old.n; p++) {
        size_t begin = w->old.at[p].begin, n;
        const size_t end = w->old.at[p].end;
        int64_t count = 0;
        for (size_t i = begin; i < end; i += n) {
            qkv_unicode_class_at(w->text, end, i, &n);
            if (++count < length) continue;
            QKV_TRY(qkv_draft_cut(w, begin, i + n));
            begin = i + n;
            count = 0;
        }
        QKV_TRY(qkv_draft_cut(w, begin, end));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_pre_fixed_length = {
    .name = "FixedLength", .parse = fixed_parse, .split = fixed_length};

/* ---- UnicodeScripts: a cut wherever the script changes ---- */

/* What has no script goes with what is before it; at the beginning of a piece it falls away, as in
 * the original. */
static qkv_status scripts(const qkv_text_step *step, qkv_draft *w) {
    (void)step;
    for (size_t p = 0; p < w->old.n; p++) {
        const size_t end = w->old.at[p].end;
        size_t begin = end, n;
        uint8_t last = QKV_SCRIPT_NONE;
        for (size_t i = w->old.at[p].begin; i < end; i += n) {
            int32_t cp;
            n = (size_t)qkv_utf8_decode(w->text + i, end - i, &cp);
            const uint8_t script = qkv_script_of(cp);
            if (script == QKV_SCRIPT_NONE || script == last) continue;
            QKV_TRY(qkv_draft_cut(w, begin, i));
            begin = i;
            last = script;
        }
        QKV_TRY(qkv_draft_cut(w, begin, end));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_pre_scripts = {.name = "UnicodeScripts", .split = scripts};
