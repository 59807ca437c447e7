/* Post-processors: every kind becomes two templates, for one text and for two. */
#include "text/template.h"
#include "text/reader.h"
#include "base/mem.h"

#include <string.h>

enum { TEXT = -1, PAIR = -2 };

void qkv_template_clear(qkv_template *t) {
    qkv_free(t->single.at);
    qkv_free(t->pair.at);
    *t = (qkv_template){0};
}

/* ---- BertProcessing, RobertaProcessing: cls A sep, cls A sep B sep ---- */

/* ["[SEP]", 102] */
static qkv_status get_token(qkv_json_at json, const char *key, int32_t *id) {
    qkv_json_at pair, at;
    int64_t value;
    if (!qkv_json_member(json, key, &pair) || qkv_json_count(pair) != 2 ||
        !qkv_json_first(pair, &at) || !qkv_json_next(pair, &at) ||
        !qkv_json_integer(at, 0, QKV_VOCAB_MAX - 1, &value))
        return qkv_fail(QKV_BAD_FILE, "post_processor: \"%s\" must be [token, id]", key);
    *id = (int32_t)value;
    return QKV_OK;
}

static qkv_status parse_fixed(qkv_tokenizer *tok, qkv_json_at json, bool roberta) {
    qkv_template *t = &tok->template;
    int32_t cls, sep;
    QKV_TRY(get_token(json, "cls", &cls));
    QKV_TRY(get_token(json, "sep", &sep));
    const uint8_t second = roberta ? 0 : 1;
    const qkv_template_part single[] = {{cls, 0}, {TEXT, 0}, {sep, 0}};
    const qkv_template_part pair[] = {{cls, 0}, {TEXT, 0},      {sep, 0},
                                      {sep, 0}, {PAIR, second}, {sep, second}};
    for (size_t i = 0; i < 3; i++)
        if (!QKV_PUSH(t->single, single[i])) return QKV_FAILED;
    for (size_t i = 0; i < 6; i++)
        if ((roberta || i != 3) && !QKV_PUSH(t->pair, pair[i])) return QKV_FAILED;
    tok->special[QKV_TOK_CLS] = cls;
    tok->special[QKV_TOK_SEP] = sep;
    if (!roberta) return QKV_OK;
    t->trim_offsets = true;
    return qkv_json_get_bool(json, "trim_offsets", false, &t->trim_offsets);
}

/* ---- TemplateProcessing ---- */

/* The ids that a special token of the template stands for. */
static qkv_status add_special(qkv_template_part part, qkv_json_at specials, const char *name,
                              size_t len, qkv_template_parts *out) {
    qkv_json_at entry, ids, at;
    for (bool more = qkv_json_first(specials, &entry); more;
         more = qkv_json_next(specials, &entry)) {
        const char *key;
        size_t n;
        qkv_json_key(entry, &key, &n);
        if (n != len || memcmp(key, name, n) || !qkv_json_member(entry, "ids", &ids)) continue;
        for (bool next = qkv_json_first(ids, &at); next; next = qkv_json_next(ids, &at)) {
            int64_t id;
            if (!qkv_json_integer(at, 0, QKV_VOCAB_MAX - 1, &id))
                return qkv_fail(QKV_BAD_FILE, "post_processor: an id of \"%.*s\" is out of range",
                                (int)len, name);
            part.id = (int32_t)id;
            if (!QKV_PUSH(*out, part)) return QKV_FAILED;
        }
        return QKV_OK;
    }
    return qkv_fail(QKV_BAD_FILE, "post_processor: \"%.*s\" is not among its special_tokens",
                    (int)(len > 60 ? 60 : len), name);
}

static qkv_status parse_parts(qkv_json_at json, const char *key, qkv_template_parts *out) {
    qkv_json_at parts, specials, at, part;
    if (!qkv_json_member(json, key, &parts) || !qkv_json_member(json, "special_tokens", &specials))
        return qkv_fail(QKV_BAD_FILE,
                        "post_processor: TemplateProcessing without \"%s\" or special_tokens", key);
    for (bool more = qkv_json_first(parts, &at); more; more = qkv_json_next(parts, &at)) {
        const bool text = qkv_json_member(at, "Sequence", &part);
        if (!text && !qkv_json_member(at, "SpecialToken", &part))
            return qkv_fail(QKV_BAD_FILE,
                            "post_processor: a part of \"%s\" is neither Sequence nor SpecialToken",
                            key);
        const char *id;
        size_t len;
        int64_t type = 0;
        QKV_TRY(qkv_json_get_string(part, "id", true, &id, &len));
        QKV_TRY(qkv_json_get_int(part, "type_id", false, 0, 255, &type));
        qkv_template_part p = {.type = (uint8_t)type};
        if (!text) {
            QKV_TRY(add_special(p, specials, id, len, out));
            continue;
        }
        if (len != 1 || (*id != 'A' && *id != 'B'))
            return qkv_fail(QKV_BAD_FILE, "post_processor: a Sequence must be A or B");
        p.id = *id == 'A' ? TEXT : PAIR;
        if (!QKV_PUSH(*out, p)) return QKV_FAILED;
    }
    return QKV_OK;
}

qkv_status qkv_template_parse(qkv_tokenizer *tok, qkv_json_at json, const char *type, size_t len) {
    qkv_template *t = &tok->template;
    if (len == 9 && !memcmp(type, "ByteLevel", 9)) {
        t->trim_offsets = true;
        return qkv_json_get_bool(json, "trim_offsets", false, &t->trim_offsets);
    }
    if (t->set) return qkv_fail(QKV_BAD_FILE, "post_processor: two templates in one Sequence");
    t->set = true;
    if (len == 14 && !memcmp(type, "BertProcessing", 14)) return parse_fixed(tok, json, false);
    if (len == 17 && !memcmp(type, "RobertaProcessing", 17)) return parse_fixed(tok, json, true);
    if (len != 18 || memcmp(type, "TemplateProcessing", 18))
        return qkv_fail(QKV_BAD_FILE, "post_processor: type \"%.*s\" is not known to this version",
                        (int)(len > 60 ? 60 : len), type);
    QKV_TRY(parse_parts(json, "single", &t->single));
    return parse_parts(json, "pair", &t->pair);
}

/* ---- templates of our own ---- */

static void put_part(qkv_json_out *j, const char *kind, const char *id, size_t len, int type) {
    qkv_json_open(j, '{');
    qkv_json_put_key(j, kind);
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "id");
    qkv_json_put_string(j, id, len);
    qkv_json_put_key(j, "type_id");
    qkv_json_put_int(j, type);
    qkv_json_close(j, '}');
    qkv_json_close(j, '}');
}

static void put_special(qkv_json_out *j, const qkv_tokenizer *tok, int32_t id) {
    size_t len = 0;
    const char *text = qkv_tokenizer_token(tok, id, &len);
    qkv_json_put_key_n(j, text ? text : "", len);
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "id");
    qkv_json_put_string(j, text ? text : "", len);
    qkv_json_put_key(j, "ids");
    qkv_json_open(j, '[');
    qkv_json_put_int(j, id);
    qkv_json_close(j, ']');
    qkv_json_put_key(j, "tokens");
    qkv_json_open(j, '[');
    qkv_json_put_string(j, text ? text : "", len);
    qkv_json_close(j, ']');
    qkv_json_close(j, '}');
}

/* What stands before and behind each text, and between the two of a pair; −1: nothing. */
typedef struct marks {
    int32_t before, after, between;
} marks;

static void put_mark(qkv_json_out *j, const qkv_tokenizer *tok, int32_t id, int type) {
    size_t len = 0;
    const char *text = qkv_tokenizer_token(tok, id, &len);
    if (text) put_part(j, "SpecialToken", text, len, type);
}

static void put_template(qkv_json_out *j, const qkv_tokenizer *tok, marks m) {
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "type");
    qkv_json_put_text(j, "TemplateProcessing");
    for (int pair = 0; pair < 2; pair++) {
        qkv_json_put_key(j, pair ? "pair" : "single");
        qkv_json_open(j, '[');
        for (int second = 0; second <= pair; second++) {
            if (second) put_mark(j, tok, m.between, 0);
            put_mark(j, tok, m.before, second);
            put_part(j, "Sequence", second ? "B" : "A", 1, second);
            put_mark(j, tok, m.after, second);
        }
        qkv_json_close(j, ']');
    }
    qkv_json_put_key(j, "special_tokens");
    qkv_json_open(j, '{');
    const int32_t ids[] = {m.before, m.after, m.between};
    for (int i = 0; i < 3; i++) {
        bool known = false; /* already, or no token at all */
        size_t len;
        for (int k = 0; k < i; k++) known |= ids[k] == ids[i];
        if (!known && qkv_tokenizer_token(tok, ids[i], &len)) put_special(j, tok, ids[i]);
    }
    qkv_json_close(j, '}');
    qkv_json_close(j, '}');
}

qkv_status qkv_set_template(qkv_tokenizer *tok, int32_t bos, int32_t eos) {
    size_t len;
    if (!qkv_tokenizer_token(tok, bos, &len) && !qkv_tokenizer_token(tok, eos, &len)) return QKV_OK;
    qkv_buf text = {0};
    qkv_json_out j = qkv_json_begin(&text, 0);
    put_template(&j, tok, (marks){bos, eos, -1});
    qkv_status status = text.status;
    if (status == QKV_OK) status = qkv_tokenizer_set_stage(tok, QKV_STAGE_POSTPROCESSOR, text.data);
    qkv_buf_free(&text);
    return status;
}

/* A post-processor that is none of pairs (ByteLevel's, which trims offsets) stays, before the
 * template. */
qkv_status qkv_tokenizer_separate(qkv_tokenizer *tok) {
    const int32_t sep = tok->special[QKV_TOK_SEP], eos = tok->special[QKV_TOK_EOS];
    const char *old = tok->stage[QKV_STAGE_POSTPROCESSOR].json;
    if (tok->template.set || (sep < 0 && eos < 0)) return QKV_OK;
    qkv_buf text = {0}, own = {0};
    qkv_json_out j = qkv_json_begin(&own, 0);
    put_template(&j, tok, (marks){-1, -1, sep >= 0 ? sep : eos});
    if (own.status == QKV_OK && old)
        qkv_buf_printf(&text, "{\"type\":\"Sequence\",\"processors\":[%s,%s]}", old, own.data);
    else if (own.status == QKV_OK)
        qkv_buf_puts(&text, own.data);
    qkv_status status = own.status == QKV_OK ? text.status : own.status;
    if (status == QKV_OK) status = qkv_tokenizer_set_stage(tok, QKV_STAGE_POSTPROCESSOR, text.data);
    qkv_buf_free(&text);
    qkv_buf_free(&own);
    return status;
}

int32_t qkv_tokenizer_types(const qkv_tokenizer *tok) {
    const qkv_template_parts *parts = &tok->template.pair;
    int32_t most = tok->template.set ? 0 : 1; /* without a template: 0 and 1 */
    for (size_t i = 0; i < parts->n; i++)
        if (parts->at[i].type > most) most = parts->at[i].type;
    return most + 1;
}
