/* Pre-tokenizers that change the text as they cut it: ByteLevel and Metaspace. */
#include "text/bytelevel.h"
#include "text/pipeline.h"
#include "text/scan.h"
#include "base/utf8.h"

#include <string.h>

/* End of the first character of the piece. */
static size_t first_char(const qkv_draft *w, qkv_piece piece) {
    int32_t cp;
    return piece.begin +
           (size_t)qkv_utf8_decode(w->text + piece.begin, piece.end - piece.begin, &cp);
}

/* ---- ByteLevel ---- */

static qkv_status byte_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    qkv_byte_level_args *a;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    a->prefix_space = a->use_regex = true;
    QKV_TRY(qkv_json_get_bool(json, "add_prefix_space", false, &a->prefix_space));
    return qkv_json_get_bool(json, "use_regex", false, &a->use_regex);
}

/* Puts a blank before each piece that has none. */
static qkv_status add_blanks(qkv_draft *w) {
    bool needed = false;
    for (size_t p = 0; p < w->old.n && !needed; p++) needed = w->text[w->old.at[p].begin] != ' ';
    if (!needed) return QKV_OK;
    qkv_draft_begin(w);
    for (size_t p = 0; p < w->old.n; p++) {
        const qkv_piece piece = w->old.at[p];
        const uint32_t begin = (uint32_t)qkv_draft_size(w);
        if (w->text[piece.begin] != ' ')
            qkv_draft_put(w, " ", 1, piece.begin, first_char(w, piece));
        qkv_draft_keep(w, piece.begin, piece.end);
        w->old.at[p] = (qkv_piece){begin, (uint32_t)qkv_draft_size(w)};
    }
    return qkv_draft_end(w);
}

/* Writes the pieces in the byte alphabet, for what follows to read as characters. */
static qkv_status map_bytes(qkv_draft *w) {
    qkv_draft_begin(w);
    for (size_t p = 0; p < w->pieces.n; p++) {
        const qkv_piece piece = w->pieces.at[p];
        const uint32_t begin = (uint32_t)qkv_draft_size(w);
        for (size_t i = piece.begin; i < piece.end; i++) {
            char name[4];
            const int n = qkv_byte_level_char((uint8_t)w->text[i], name);
            qkv_draft_put(w, name, (size_t)n, i, i + 1);
        }
        w->pieces.at[p] = (qkv_piece){begin, (uint32_t)qkv_draft_size(w)};
    }
    return qkv_draft_end(w);
}

static qkv_status byte_level(const qkv_text_step *step, qkv_draft *w) {
    const qkv_byte_level_args *a = step->args;
    if (a->prefix_space) QKV_TRY(add_blanks(w));
    for (size_t p = 0; p < w->old.n; p++) {
        const qkv_piece piece = w->old.at[p];
        if (!a->use_regex) {
            QKV_TRY(qkv_draft_cut(w, piece.begin, piece.end));
            continue;
        }
        const char *text = w->text + piece.begin;
        const size_t len = piece.end - piece.begin;
        for (size_t i = 0, end; i < len; i = end) {
            end = qkv_scan_next(&qkv_scan_gpt2, text, len, i);
            QKV_TRY(qkv_draft_cut(w, piece.begin + i, piece.begin + end));
        }
    }
    return a->map ? map_bytes(w) : QKV_OK;
}

const qkv_text_step_kind qkv_pre_byte_level = {
    .name = "ByteLevel", .parse = byte_parse, .split = byte_level};

/* ---- Metaspace ---- */

typedef struct metaspace_args {
    char mark[4];
    uint8_t n; /* bytes of the mark */
    bool split;
    int prepend; /* one of the schemes */
} metaspace_args;

enum { ALWAYS, FIRST, NEVER };

static qkv_status get_scheme(qkv_json_at json, metaspace_args *a) {
    static const char *const names[] = {"always", "first", "never"};
    bool prefix = true;
    QKV_TRY(qkv_json_get_bool(json, "add_prefix_space", false, &prefix));
    a->prepend = prefix ? ALWAYS : NEVER;
    return qkv_json_get_choice(json, "prepend_scheme", false, names, 3, &a->prepend);
}

static qkv_status metaspace_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    metaspace_args *a;
    const char *mark = "\xE2\x96\x81";
    size_t len = 3;
    int32_t cp = -1;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    a->split = true;
    QKV_TRY(qkv_json_get_string(json, "replacement", false, &mark, &len));
    QKV_TRY(qkv_json_get_bool(json, "split", false, &a->split));
    if (!len || (size_t)qkv_utf8_decode(mark, len, &cp) != len || cp < 0)
        return qkv_fail(QKV_BAD_FILE, "line %zu: replacement must be one character",
                        qkv_json_line(json));
    memcpy(a->mark, mark, len);
    a->n = (uint8_t)len;
    return get_scheme(json, a);
}

static bool is_mark(const metaspace_args *a, const char *text, size_t len) {
    return len >= a->n && !memcmp(text, a->mark, a->n);
}

/* Cuts before every mark. */
static qkv_status cut_at_marks(const metaspace_args *a, qkv_draft *w, size_t begin, size_t end) {
    for (size_t i = begin + 1; i + a->n <= end; i++)
        if (w->text[i] == a->mark[0] && is_mark(a, w->text + i, end - i)) {
            QKV_TRY(qkv_draft_cut(w, begin, i));
            begin = i;
        }
    return qkv_draft_cut(w, begin, end);
}

/* Whether this piece gets a mark in front: by scheme, and only if it does not begin with one or a
 * blank. */
static bool wants_mark(const metaspace_args *a, const qkv_draft *w, qkv_piece piece) {
    if (a->prepend == NEVER || w->text[piece.begin] == ' ') return false;
    if (is_mark(a, w->text + piece.begin, piece.end - piece.begin)) return false;
    if (a->prepend == ALWAYS) return true;
    return w->track ? w->from[piece.begin] == 0 : w->at_start && piece.begin == 0;
}

static qkv_status metaspace(const qkv_text_step *step, qkv_draft *w) {
    const metaspace_args *a = step->args;
    qkv_draft_begin(w);
    for (size_t p = 0; p < w->old.n; p++) {
        const qkv_piece piece = w->old.at[p];
        const uint32_t start = (uint32_t)qkv_draft_size(w);
        size_t done = piece.begin;
        if (wants_mark(a, w, piece))
            qkv_draft_put(w, a->mark, a->n, piece.begin, first_char(w, piece));
        for (const char *blank; (blank = memchr(w->text + done, ' ', piece.end - done));) {
            const size_t at = (size_t)(blank - w->text);
            if (at > done) qkv_draft_keep(w, done, at);
            qkv_draft_put(w, a->mark, a->n, at, at + 1);
            done = at + 1;
        }
        if (piece.end > done) qkv_draft_keep(w, done, piece.end);
        w->old.at[p] = (qkv_piece){start, (uint32_t)qkv_draft_size(w)};
    }
    QKV_TRY(qkv_draft_end(w));
    for (size_t p = 0; p < w->old.n; p++) {
        const qkv_piece piece = w->old.at[p];
        QKV_TRY(a->split ? cut_at_marks(a, w, piece.begin, piece.end)
                         : qkv_draft_cut(w, piece.begin, piece.end));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_pre_metaspace = {
    .name = "Metaspace", .parse = metaspace_parse, .split = metaspace};
