/* JSON lines: one object per line; the keys are the column names of CSV. For parallel text also
 * {"translation": {"de": …, "en": …}}: the first member is the source, the second the target. */
#include "data/corpus.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

/* The text of a value: strings as they are, numbers and booleans as written. */
static qkv_status text_of(qkv_reader *r, qkv_json_at value, qkv_text *out) {
    char number[32];
    const char *text = number;
    size_t len = 0;
    switch (qkv_json_kind_of(value)) {
    case QKV_JSON_STRING:
        qkv_json_string(value, &text, &len);
        break;
    case QKV_JSON_TRUE:
        text = "true", len = 4;
        break;
    case QKV_JSON_FALSE:
        text = "false", len = 5;
        break;
    case QKV_JSON_NUMBER: {
        int64_t whole;
        if (!qkv_json_integer(value, INT64_MIN, INT64_MAX, &whole)) break;
        len = (size_t)snprintf(number, sizeof number, "%lld", (long long)whole);
        break;
    }
    default:
        break;
    }
    /* The document is gone before the row is used. */
    char *copy = qkv_arena_strndup(&r->corpus->strings, text, len);
    if (!copy) return QKV_FAILED;
    *out = (qkv_text){copy, len};
    return QKV_OK;
}

/* The roles of an object's members; `by_place`: the first is the text, the second the second text.
 */
static qkv_status take(qkv_reader *r, qkv_json_at object, bool by_place, qkv_text role[3]) {
    qkv_json_at child;
    size_t place = 0;
    for (bool more = qkv_json_first(object, &child); more; more = qkv_json_next(object, &child)) {
        const char *key;
        size_t len;
        qkv_json_key(child, &key, &len);
        if (!by_place && r->spec->shape == QKV_CORPUS_PARALLEL && len == 11 &&
            memcmp(key, "translation", 11) == 0 && qkv_json_kind_of(child) == QKV_JSON_OBJECT) {
            QKV_TRY(take(r, child, true, role));
            continue;
        }
        const char kind =
            by_place ? "ts\0"[place < 2 ? place : 2] : qkv_column_role(r->spec->shape, key, len);
        const int which = kind == 'l' ? 0 : kind == 't' ? 1 : kind == 's' ? 2 : -1;
        if (which >= 0 && !role[which].data) QKV_TRY(text_of(r, child, &role[which]));
        place++;
    }
    return QKV_OK;
}

static qkv_status read_object(qkv_reader *r, const qkv_json *doc) {
    qkv_text role[3] = {{0}}; /* label, text, second */
    if (qkv_json_kind_of(qkv_json_root(doc)) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "not an object");
    QKV_TRY(take(r, qkv_json_root(doc), false, role));
    const bool labelled = r->spec->shape == QKV_CORPUS_LABELLED;
    const bool parallel = r->spec->shape == QKV_CORPUS_PARALLEL;
    if (!role[1].data || (labelled && !role[0].data) || (parallel && !role[2].data))
        return qkv_fail(QKV_BAD_FILE, "lacks %s",
                        parallel   ? "\"source\" or \"target\""
                        : labelled ? "\"label\" or \"text\""
                                   : "\"text\"");
    return qkv_reader_add(r, role[0], role[1], role[2], r->line);
}

qkv_status qkv_read_jsonl(qkv_reader *r) {
    const qkv_json_limits limits = {.bytes = (size_t)64 << 20, .nodes = 100000, .depth = 32};
    qkv_text line;
    while (qkv_reader_line(r, &line)) {
        if (line.len == 0) {
            r->corpus->n_empty++;
            continue;
        }
        qkv_json doc;
        qkv_status status = qkv_json_parse(&doc, r->path, line.data, line.len, limits);
        if (status == QKV_OK) {
            status = read_object(r, &doc);
            qkv_json_free(&doc);
        }
        if (status != QKV_OK)
            return qkv_fail_in(status, "%s, line %lld", r->path, (long long)r->line);
    }
    return QKV_OK;
}
