/* The two ways to apply a precompiled_charsmap. Hugging Face's looks at grapheme clusters and takes
 * the shortest key; SentencePiece's looks at bytes and takes the longest. They differ on real text,
 * so each file gets its own. */
#include "text/charsmap.h"
#include "text/pipeline.h"
#include "text/unicode.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

static qkv_status read_map(qkv_charsmap *m, qkv_json_at json) {
    qkv_json_at at;
    if (!qkv_json_member(json, "precompiled_charsmap", &at) ||
        qkv_json_kind_of(at) == QKV_JSON_NULL)
        return qkv_charsmap_read(m, NULL, 0);
    const char *text;
    size_t len;
    QKV_TRY(qkv_json_get_string(json, "precompiled_charsmap", true, &text, &len));
    qkv_buf blob = {0};
    qkv_status status = qkv_base64_decode(text, len, &blob);
    if (status == QKV_OK) status = qkv_charsmap_read(m, blob.data, blob.len);
    qkv_buf_free(&blob);
    return status;
}

/* ---- Precompiled ---- */

static qkv_status precompiled_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    QKV_TRY_ALLOC(step->args = qkv_arena_zalloc(&tok->arena, sizeof(qkv_charsmap)));
    return read_map(step->args, json);
}

static void precompiled_drop(qkv_text_step *step) {
    if (step->args) qkv_charsmap_free(step->args);
}

static qkv_status precompiled(const qkv_text_step *step, qkv_draft *w) {
    const qkv_charsmap *m = step->args;
    const char *value;
    size_t done = 0, i = 0;
    qkv_draft_begin(w);
    while (i < w->len) {
        const uint8_t b = (uint8_t)w->text[i];
        if (b < 0x80 && m->plain[b] && b != '\r' &&
            (i + 1 == w->len || (uint8_t)w->text[i + 1] < 0x80)) {
            i++;
            continue;
        }
        const size_t end = qkv_unicode_grapheme(w->text, i, w->len);
        if (end - i < 6 && qkv_charsmap_match(m, w->text + i, end - i, false, &value)) {
            qkv_draft_keep(w, done, i);
            qkv_draft_put(w, value, strlen(value), i, end);
            done = i = end;
            continue;
        }
        while (i < end) {
            int32_t cp;
            const size_t n = (size_t)qkv_utf8_decode(w->text + i, end - i, &cp);
            if (qkv_charsmap_match(m, w->text + i, n, false, &value)) {
                qkv_draft_keep(w, done, i);
                qkv_draft_put(w, value, strlen(value), i, i + n);
                done = i + n;
            }
            i += n;
        }
    }
    if (!done) return QKV_OK;
    qkv_draft_keep(w, done, w->len);
    return qkv_draft_end(w);
}

const qkv_text_step_kind qkv_norm_precompiled = {.name = "Precompiled",
                                                 .parse = precompiled_parse,
                                                 .normalize = precompiled,
                                                 .drop = precompiled_drop};

/* ---- SentencePiece: the whole normalizer of a .model; our own type, made by the reader of those
 * files ---- */

typedef struct sp_args {
    qkv_charsmap map;
    bool prefix, squeeze, escape, suffix;
    qkv_trie symbols; /* user-defined: passed through as they are */
} sp_args;

static const char blank_mark[] = "\xE2\x96\x81";

static qkv_status read_symbols(qkv_trie *t, qkv_json_at json) {
    qkv_json_at list, at;
    QKV_VEC(qkv_trie_key) keys = {0};
    qkv_status status = QKV_OK;
    if (!qkv_json_member(json, "user_defined", &list)) return QKV_OK;
    for (bool more = qkv_json_first(list, &at); more && status == QKV_OK;
         more = qkv_json_next(list, &at)) {
        const char *text;
        size_t len;
        qkv_json_string(at, &text, &len);
        if (!QKV_PUSH(keys, ((qkv_trie_key){text, (uint32_t)len, 0}))) status = QKV_FAILED;
    }
    if (status == QKV_OK && keys.n) status = qkv_trie_build(t, keys.at, keys.n);
    qkv_free(keys.at);
    return status;
}

static qkv_status sp_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    sp_args *a;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    a->prefix = a->squeeze = a->escape = true;
    QKV_TRY(qkv_json_get_bool(json, "add_dummy_prefix", false, &a->prefix));
    QKV_TRY(qkv_json_get_bool(json, "remove_extra_whitespaces", false, &a->squeeze));
    QKV_TRY(qkv_json_get_bool(json, "escape_whitespaces", false, &a->escape));
    QKV_TRY(qkv_json_get_bool(json, "treat_whitespace_as_suffix", false, &a->suffix));
    QKV_TRY(read_map(&a->map, json));
    return read_symbols(&a->symbols, json);
}

static void sp_drop(qkv_text_step *step) {
    sp_args *a = step->args;
    if (!a) return;
    qkv_charsmap_free(&a->map);
    qkv_trie_free(&a->symbols);
}

/* What the text at i becomes: *out, *n; returns the bytes taken. */
static size_t sp_prefix(const sp_args *a, const qkv_draft *w, size_t i, const char **out,
                        size_t *n) {
    int32_t value;
    size_t taken;
    *out = w->text + i;
    if (a->symbols.n && (taken = qkv_trie_longest(&a->symbols, *out, w->len - i, &value)))
        return *n = taken;
    if ((taken = qkv_charsmap_match(&a->map, w->text + i, w->len - i, true, out))) {
        *n = strlen(*out);
        return taken;
    }
    int32_t cp;
    taken = (size_t)qkv_utf8_decode(w->text + i, w->len - i, &cp);
    *out = cp < 0 ? "\xEF\xBF\xBD" : w->text + i;
    *n = cp < 0 ? 3 : taken;
    return taken;
}

/* Appends a replacement; blanks become the mark. */
static void sp_put(const sp_args *a, qkv_draft *w, const char *text, size_t n, size_t begin,
                   size_t end) {
    while (n) {
        const char *blank = a->escape ? memchr(text, ' ', n) : NULL;
        const size_t run = blank ? (size_t)(blank - text) : n;
        if (run) qkv_draft_put(w, text, run, begin, end);
        if (blank) qkv_draft_put(w, blank_mark, 3, begin, end);
        text += run + (blank != NULL);
        n -= run + (blank != NULL);
    }
}

/* End of the run of characters at i that no rule concerns, blanks excepted. */
static size_t plain_run(const qkv_charsmap *m, const char *text, size_t i, size_t len) {
    const size_t begin = i;
    while (i < len && (uint8_t)text[i] < 0x80 && text[i] != ' ' && m->plain[(uint8_t)text[i]]) i++;
    return i > begin && i < len && (uint8_t)text[i] >= 0x80 ? i - 1
                                                            : i; /* a mark may join the last one */
}

static void sp_trim(const sp_args *a, qkv_draft *w) {
    struct qkv_draft_side *s = &w->side[w->out];
    const char *mark = a->escape ? blank_mark : " ";
    const size_t n = strlen(mark);
    while (s->text.len >= n && !memcmp(s->text.data + s->text.len - n, mark, n)) s->text.len -= n;
    if (w->track) s->from.n = s->to.n = s->text.len;
}

static qkv_status sentencepiece(const qkv_text_step *step, qkv_draft *w) {
    const sp_args *a = step->args;
    const char *mark = a->escape ? blank_mark : " ", *out;
    size_t i = 0, n, taken;
    qkv_draft_begin(w);
    while (a->squeeze && i < w->len) { /* blanks at the beginning */
        taken = sp_prefix(a, w, i, &out, &n);
        if (n != 1 || *out != ' ') break;
        i += taken;
    }
    if (i == w->len) return qkv_draft_end(w);
    if (a->prefix && !a->suffix) qkv_draft_put(w, mark, strlen(mark), i, i + 1);
    bool after_blank = a->squeeze;
    while (i < w->len) {
        const size_t run = a->symbols.n ? i : plain_run(&a->map, w->text, i, w->len);
        if (run > i) {
            qkv_draft_keep(w, i, run);
            after_blank = false;
            i = run;
            continue;
        }
        taken = sp_prefix(a, w, i, &out, &n);
        while (after_blank && n && *out == ' ') out++, n--;
        if (n) {
            sp_put(a, w, out, n, i, i + taken);
            after_blank = out[n - 1] == ' ';
        }
        if (!a->squeeze) after_blank = false;
        i += taken;
    }
    if (a->squeeze) sp_trim(a, w);
    if (a->prefix && a->suffix) qkv_draft_put(w, mark, strlen(mark), w->len - 1, w->len);
    return qkv_draft_end(w);
}

static void put_replace(qkv_json_out *j, const char *kind, const char *pattern,
                        const char *content) {
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "type");
    qkv_json_put_text(j, "Replace");
    qkv_json_put_key(j, "pattern");
    qkv_json_open(j, '{');
    qkv_json_put_key(j, kind);
    qkv_json_put_text(j, pattern);
    qkv_json_close(j, '}');
    qkv_json_put_key(j, "content");
    qkv_json_put_text(j, content);
    qkv_json_close(j, '}');
}

/* The map as the stage's own JSON holds it. */
static void put_map(qkv_json_out *j, const char *json) {
    static const char key[] = "\"precompiled_charsmap\":";
    const char *at = strstr(json, key), *end = at ? strchr(at + sizeof key, '"') : NULL;
    if (!end) return;
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "type");
    qkv_json_put_text(j, "Precompiled");
    qkv_json_put_key(j, "precompiled_charsmap");
    qkv_json_put_string(j, at + sizeof key, (size_t)(end - at) - sizeof key);
    qkv_json_close(j, '}');
}

/* Our own type in steps that Hugging Face has: the same on all but a few characters
 * of the map (see the top). */
static qkv_status sp_translate(const qkv_text_steps *stage, qkv_buf *out) {
    const sp_args *a = stage->step[0].args;
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "type");
    qkv_json_put_text(&j, "Sequence");
    qkv_json_put_key(&j, "normalizers");
    qkv_json_open(&j, '[');
    put_map(&j, stage->json);
    if (a->squeeze) {
        qkv_json_put_raw(&j, "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}");
        put_replace(&j, "Regex", " {2,}", " ");
    }
    if (a->prefix && !a->suffix)
        qkv_json_put_raw(&j, a->escape ? "{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"}"
                                       : "{\"type\":\"Prepend\",\"prepend\":\" \"}");
    if (a->escape) put_replace(&j, "String", " ", blank_mark);
    qkv_json_close(&j, ']');
    qkv_json_close(&j, '}');
    return out->status;
}

const qkv_text_step_kind qkv_norm_sentencepiece = {.name = "SentencePiece",
                                                   .parse = sp_parse,
                                                   .normalize = sentencepiece,
                                                   .translate = sp_translate,
                                                   .drop = sp_drop};
