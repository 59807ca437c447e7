/* Stages: from JSON to an array of steps, by the tables. */
#include "text/bytelevel.h"
#include "text/models.h"
#include "text/template.h"

#include <string.h>

#define QKV_STEP(name) extern const qkv_text_step_kind qkv_##name;
#include "text/decoder.def"
#include "text/normalizer.def"
#include "text/pretokenizer.def"
#undef QKV_STEP

#define QKV_STEP(name) &qkv_##name,
static const qkv_text_step_kind *const normalizers[] = {
#include "text/normalizer.def"
};
static const qkv_text_step_kind *const pretokenizers[] = {
#include "text/pretokenizer.def"
};
static const qkv_text_step_kind *const decoders[] = {
#include "text/decoder.def"
};
#undef QKV_STEP

#define COUNT(array) (sizeof(array) / sizeof *(array))
static const struct {
    const char *name; /* the file's key */
    const char *list; /* the key of a Sequence's members */
    const qkv_text_step_kind *const *kinds;
    size_t n;
} stages[QKV_STAGES] = {
    [QKV_STAGE_NORMALIZER] = {"normalizer", "normalizers", normalizers, COUNT(normalizers)},
    [QKV_STAGE_PRETOKENIZER] = {"pre_tokenizer", "pretokenizers", pretokenizers,
                                COUNT(pretokenizers)},
    [QKV_STAGE_POSTPROCESSOR] = {"post_processor", "processors", NULL, 0},
    [QKV_STAGE_DECODER] = {"decoder", "decoders", decoders, COUNT(decoders)},
};

const char *qkv_stage_name(qkv_stage stage) {
    return stages[stage].name;
}

void qkv_text_steps_drop(qkv_text_steps *s) {
    for (size_t i = 0; i < s->n; i++)
        if (s->step[i].kind->drop) s->step[i].kind->drop(&s->step[i]);
    s->n = 0;
}

static qkv_status parse_step(qkv_tokenizer *tok, qkv_stage stage, qkv_json_at json,
                             const char *type, size_t len) {
    if (stage == QKV_STAGE_POSTPROCESSOR) return qkv_template_parse(tok, json, type, len);
    qkv_text_steps *s = &tok->stage[stage];
    for (size_t i = 0; i < stages[stage].n; i++) {
        const qkv_text_step_kind *kind = stages[stage].kinds[i];
        if (strlen(kind->name) != len || memcmp(kind->name, type, len)) continue;
        if (s->n == QKV_STEPS_MAX)
            return qkv_fail(QKV_BAD_FILE, "%s: more than %d steps", stages[stage].name,
                            QKV_STEPS_MAX);
        qkv_text_step *step = &s->step[s->n++];
        *step = (qkv_text_step){.kind = kind};
        return kind->parse ? kind->parse(tok, json, step) : QKV_OK;
    }
    return qkv_fail(QKV_BAD_FILE, "%s: type \"%.*s\" is not known to this version",
                    stages[stage].name, (int)(len > 60 ? 60 : len), type);
}

/* A Sequence's members are steps like any other; it may hold Sequences itself. */
static qkv_status parse_stage(qkv_tokenizer *tok, qkv_stage stage, qkv_json_at json, int depth) {
    const char *type;
    size_t len;
    qkv_json_at list, at;
    if (qkv_json_kind_of(json) != QKV_JSON_OBJECT || depth > 16)
        return qkv_fail(QKV_BAD_FILE, "%s: an object with a type was expected", stages[stage].name);
    QKV_TRY(qkv_json_get_string(json, "type", true, &type, &len));
    if (len != 8 || memcmp(type, "Sequence", 8)) return parse_step(tok, stage, json, type, len);
    if (!qkv_json_member(json, stages[stage].list, &list) ||
        qkv_json_kind_of(list) != QKV_JSON_ARRAY)
        return qkv_fail(QKV_BAD_FILE, "%s: a Sequence without \"%s\"", stages[stage].name,
                        stages[stage].list);
    for (bool more = qkv_json_first(list, &at); more; more = qkv_json_next(list, &at))
        QKV_TRY(parse_stage(tok, stage, at, depth + 1));
    return QKV_OK;
}

qkv_status qkv_tokenizer_set_stage(qkv_tokenizer *tok, qkv_stage stage, const char *json) {
    qkv_text_steps *s = &tok->stage[stage];
    qkv_text_steps_drop(s);
    s->json = NULL;
    if (stage == QKV_STAGE_POSTPROCESSOR) qkv_template_clear(&tok->template);
    if (!json || !strcmp(json, "null")) return QKV_OK;
    QKV_TRY_ALLOC(s->json = qkv_arena_strndup(&tok->arena, json, strlen(json)));
    qkv_json doc;
    const qkv_json_limits limits = {.bytes = 256u << 20, .nodes = 1u << 20, .depth = 64};
    QKV_TRY(qkv_json_parse(&doc, stages[stage].name, json, strlen(json), limits));
    const qkv_status status = parse_stage(tok, stage, qkv_json_root(&doc), 0);
    qkv_json_free(&doc);
    return status;
}

/* Who writes the byte alphabet: no one if bytes go straight into a byte-level BPE, else every
 * ByteLevel step. */
void qkv_text_steps_settle(qkv_tokenizer *tok) {
    qkv_text_steps *s = &tok->stage[QKV_STAGE_PRETOKENIZER];
    tok->byte_level = s->n && s->step[s->n - 1].kind == &qkv_pre_byte_level &&
                      (!tok->model_kind || tok->model_kind == &qkv_model_bpe);
    for (size_t i = 0; i < s->n; i++)
        if (s->step[i].kind == &qkv_pre_byte_level) {
            qkv_byte_level_args *a = s->step[i].args;
            a->map = !(tok->byte_level && i + 1 == s->n);
        }
    /* Metaspace may ask whether a piece began the text; after a normalizer only the offsets know.
     */
    tok->track_always = false;
    for (size_t i = 0; i < s->n; i++)
        if (s->step[i].kind == &qkv_pre_metaspace && tok->stage[QKV_STAGE_NORMALIZER].n &&
            strstr(s->json, "\"first\""))
            tok->track_always = true;
}

qkv_status qkv_text_steps_normalize(const qkv_tokenizer *tok, qkv_draft *w) {
    const qkv_text_steps *s = &tok->stage[QKV_STAGE_NORMALIZER];
    for (size_t i = 0; i < s->n; i++) QKV_TRY(s->step[i].kind->normalize(&s->step[i], w));
    return QKV_OK;
}

qkv_status qkv_text_steps_split(const qkv_tokenizer *tok, qkv_draft *w) {
    const qkv_text_steps *s = &tok->stage[QKV_STAGE_PRETOKENIZER];
    w->pieces.n = 0;
    QKV_TRY(qkv_draft_cut(w, 0, w->len));
    for (size_t i = 0; i < s->n; i++) {
        qkv_piece *at = w->pieces.at;
        const size_t n = w->pieces.n, cap = w->pieces.cap;
        w->pieces.at = w->old.at;
        w->pieces.cap = w->old.cap;
        w->pieces.n = 0;
        w->old.at = at;
        w->old.n = n;
        w->old.cap = cap;
        QKV_TRY(s->step[i].kind->split(&s->step[i], w));
    }
    return QKV_OK;
}
