/* JSON: objects, one per line or over several lines, or all in one list [ … ]. The keys are the
 * column names of CSV. For parallel text also {"translation": {"de": …, "en": …}}: the first member is the
 * source, the second the target.
 *
 * Each object is parsed for itself, so a list may be as long as it likes. */
#include "data/corpus.h"
#include "base/json.h"

#include <string.h>

static const char *const options[QKV_ROLES] = {"label", "text", "pair"};

static bool is_key(qkv_text key, const char *data, size_t len) {
    return key.len == len && memcmp(key.data, data, len) == 0;
}

/* The text of a value: strings as they are, numbers and booleans as written. */
static qkv_status text_of(qkv_reader *r, qkv_json_at value, const char *role, qkv_text *out) {
    const char *text = "";
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
    case QKV_JSON_NUMBER:
        qkv_json_number_text(value, &text, &len);
        break;
    case QKV_JSON_NULL:
        break;
    default:
        return qkv_fail(QKV_BAD_FILE, "the %s is %s, not a text", role,
                        qkv_json_kind_of(value) == QKV_JSON_ARRAY ? "a list" : "an object");
    }
    /* The document is gone before the row is used. */
    char *copy = qkv_arena_strndup(&r->corpus->strings, text, len);
    if (!copy) return QKV_FAILED;
    *out = (qkv_text){copy, len};
    return QKV_OK;
}

/* The labels of a list, a zero byte between them. */
static qkv_status list_of(qkv_reader *r, qkv_json_at value, qkv_text *out) {
    qkv_buf list = {0};
    qkv_json_at item;
    qkv_status status = QKV_OK;
    for (bool more = qkv_json_first(value, &item); more && status == QKV_OK;
         more = qkv_json_next(value, &item)) {
        qkv_text label = {0};
        status = text_of(r, item, "label in a list", &label);
        if (status == QKV_OK && (label.len == 0 || memchr(label.data, 0, label.len)))
            status = qkv_fail(QKV_BAD_FILE, label.len ? "a zero byte in the label"
                                                      : "a label of the list is empty");
        qkv_buf_add(&list, label.data, label.len);
        qkv_buf_putc(&list, 0);
    }
    if (status == QKV_OK) status = list.status;
    *out = (qkv_text){"", 0};
    if (status == QKV_OK && list.len) {
        out->len = list.len;
        out->data = qkv_arena_strndup(&r->corpus->strings, list.data, list.len);
        if (!out->data) status = QKV_FAILED;
    }
    qkv_buf_free(&list);
    return status;
}

/* ---- which member is what ---- */

/* The keys that were asked for, and where no key of the first object says outright what it is, the
 * one that says it best. They hold for the whole file. */
static void choose_keys(qkv_reader *r, qkv_json_at object) {
    qkv_json_at child;
    for (int role = 0; role < QKV_ROLES; role++) {
        qkv_column_name *used = &r->reading->used[role];
        const char *wanted = r->spec->column[role];
        if (wanted) {
            used->name = (qkv_text){wanted, strlen(wanted)};
            continue;
        }
        int best = role == QKV_ROLE_PAIR && qkv_has_truth(r->spec->shape); /* rank 2 or 3 */
        for (bool more = qkv_json_first(object, &child); more;
             more = qkv_json_next(object, &child)) {
            qkv_text key;
            qkv_json_key(child, &key.data, &key.len);
            const int rank = qkv_column_rank(r->spec->shape, (qkv_role)role, key);
            if (rank > best) best = rank, used->name = key;
        }
    }
}

static bool is_used(const qkv_reader *r, qkv_text key) {
    for (int role = 0; role < QKV_ROLES; role++) {
        const qkv_text name = r->reading->used[role].name;
        if (name.data && is_key(name, key.data, key.len)) return true;
    }
    return false;
}

/* The names in the document are gone when its file has been read on: copies, for the report. */
static qkv_status keep_names(qkv_reader *r, qkv_json_at object) {
    enum { NAMED = 6 };
    qkv_text unused[NAMED];
    qkv_json_at child;
    size_t n = 0;
    for (bool more = qkv_json_first(object, &child); more; more = qkv_json_next(object, &child)) {
        qkv_text key;
        qkv_json_key(child, &key.data, &key.len);
        if (is_used(r, key)) continue;
        if (n < NAMED) unused[n] = key;
        n++;
    }
    QKV_TRY(qkv_name_list(&r->corpus->strings, unused, n < NAMED ? n : NAMED, NAMED,
                          &r->reading->unused));
    r->reading->n_unused = n;
    for (int role = 0; role < QKV_ROLES; role++) {
        qkv_text *name = &r->reading->used[role].name;
        if (name->data &&
            !(name->data = qkv_arena_strndup(&r->corpus->strings, name->data, name->len)))
            return QKV_FAILED;
    }
    return QKV_OK;
}

/* Is the member the one that has the role? By its own name where it says it outright and nobody
 * asked for another, so that it does not matter which object came first. */
static bool has_role(const qkv_reader *r, qkv_role role, qkv_text key) {
    if (role == QKV_ROLE_PAIR && r->spec->second == QKV_SECOND_NOT) return false;
    const qkv_text name = r->reading->used[role].name;
    const bool chosen =
        name.data && (r->spec->column[role] || qkv_column_rank(r->spec->shape, role, name) < 3);
    return chosen ? is_key(name, key.data, key.len)
                  : qkv_column_rank(r->spec->shape, role, key) == 3;
}

static qkv_status take_pair(qkv_reader *r, qkv_json_at object, qkv_text role[QKV_ROLES]) {
    static const qkv_role by_place[] = {QKV_ROLE_TEXT, QKV_ROLE_PAIR};
    qkv_json_at child;
    size_t place = 0;
    for (bool more = qkv_json_first(object, &child); more && place < 2;
         more = qkv_json_next(object, &child), place++)
        QKV_TRY(text_of(r, child, options[by_place[place]], &role[by_place[place]]));
    return QKV_OK;
}

/* The roles of an object's members; *listed: the label is a list of them. */
static qkv_status take(qkv_reader *r, qkv_json_at object, qkv_text role[QKV_ROLES], bool *listed) {
    qkv_json_at child;
    for (bool more = qkv_json_first(object, &child); more; more = qkv_json_next(object, &child)) {
        qkv_text key;
        qkv_json_key(child, &key.data, &key.len);
        if (r->spec->shape == QKV_CORPUS_PARALLEL && is_key(key, "translation", 11) &&
            qkv_json_kind_of(child) == QKV_JSON_OBJECT) {
            QKV_TRY(take_pair(r, child, role));
            continue;
        }
        for (int k = 0; k < QKV_ROLES; k++)
            if (!role[k].data && has_role(r, (qkv_role)k, key)) {
                const bool list = k == QKV_ROLE_LABEL && r->spec->shape == QKV_CORPUS_LABELLED &&
                                  qkv_json_kind_of(child) == QKV_JSON_ARRAY;
                QKV_TRY(list ? list_of(r, child, &role[k])
                             : text_of(r, child, options[k], &role[k]));
                *listed |= list;
                break;
            }
    }
    return QKV_OK;
}

/* ---- objects ---- */

/* What the object has, and how to say which is which. */
static qkv_status lacks(qkv_reader *r, qkv_json_at object, const char *what) {
    enum { NAMED = 8 };
    qkv_text keys[NAMED], list;
    qkv_json_at child;
    size_t n = 0;
    for (bool more = qkv_json_first(object, &child); more && n < NAMED;
         more = qkv_json_next(object, &child), n++)
        qkv_json_key(child, &keys[n].data, &keys[n].len);
    QKV_TRY(qkv_name_list(&r->corpus->strings, keys, n, NAMED, &list));
    return qkv_fail(QKV_BAD_FILE, "lacks %s; it has %.*s (say which is which: %s)", what,
                    (int)list.len, list.data,
                    r->spec->shape == QKV_CORPUS_PARALLEL ? "--text KEY --pair KEY"
                    : r->spec->shape == QKV_CORPUS_LINES  ? "--text KEY"
                                                          : "--text KEY --label KEY");
}

static qkv_status read_object(qkv_reader *r, const qkv_json *doc) {
    const qkv_json_at root = qkv_json_root(doc);
    qkv_text role[QKV_ROLES] = {{0}};
    if (qkv_json_kind_of(root) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "not an object, as in {\"label\": …, \"text\": …}");
    if (!r->reading->header) {
        r->reading->header = true;
        choose_keys(r, root);
        QKV_TRY(keep_names(r, root));
    }
    bool listed = false;
    QKV_TRY(take(r, root, role, &listed));
    const bool labelled = qkv_has_truth(r->spec->shape);
    const bool parallel = r->spec->shape == QKV_CORPUS_PARALLEL;
    if (!role[QKV_ROLE_TEXT].data || (labelled && !role[QKV_ROLE_LABEL].data) ||
        (parallel && !role[QKV_ROLE_PAIR].data))
        return lacks(r, root,
                     parallel                             ? "\"source\" or \"target\""
                     : r->spec->shape == QKV_CORPUS_RATED ? "the number (\"score\") or \"text\""
                     : labelled                           ? "\"label\" or \"text\""
                                                          : "\"text\"");
    if (listed)
        return qkv_reader_add_list(r, role[QKV_ROLE_LABEL], (qkv_text){"", 1}, role[QKV_ROLE_TEXT],
                                   role[QKV_ROLE_PAIR], r->line);
    return qkv_reader_add(r, role[QKV_ROLE_LABEL], role[QKV_ROLE_TEXT], role[QKV_ROLE_PAIR],
                          r->line);
}

/* ---- the file ---- */

/* Behind the string whose quote is at p. */
static const char *string_end(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++) p += *p == '\\';
    return p < end ? p + 1 : end;
}

/* Behind the value that begins at p. */
static const char *value_end(const char *p, const char *end) {
    int64_t depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = string_end(p, end);
            if (depth == 0) return p;
            continue;
        }
        if (*p == '{' || *p == '[') depth++;
        if ((*p == '}' || *p == ']') && --depth <= 0) return p + 1;
        if (depth == 0 && strchr(" \t\r\n,", *p)) return p;
        p++;
    }
    return p;
}

/* One value, from its own piece of the text. */
static qkv_status read_value(qkv_reader *r) {
    const qkv_json_limits limits = {.bytes = (size_t)64 << 20, .nodes = 100000, .depth = 32};
    const char *stop = value_end(r->at, r->end);
    qkv_json doc;
    qkv_status status = qkv_json_parse(&doc, r->path, r->at, (size_t)(stop - r->at), limits);
    if (status == QKV_OK) {
        status = read_object(r, &doc);
        qkv_json_free(&doc);
    }
    QKV_TRY(qkv_reader_blame(r, status));
    for (const char *p = r->at; p < stop; p++) r->line += *p == '\n';
    r->at = stop;
    return QKV_OK;
}

/* Goes to the next value or bracket; returns how many lines had nothing on them, the one at hand
 * among them if it is `blank` so far. */
static int64_t skip_space(qkv_reader *r, bool blank) {
    int64_t n = 0;
    for (; r->at < r->end && strchr(" \t\r\n", *r->at); r->at++) {
        if (*r->at != '\n') continue;
        n += blank;
        r->line++;
        blank = true;
    }
    return n;
}

static qkv_status refuse(const qkv_reader *r, const char *why) {
    return qkv_fail(QKV_BAD_FILE, "%s, line %lld: %s", r->path, (long long)r->line, why);
}

/* [ {…}, {…} ] */
static qkv_status read_list(qkv_reader *r) {
    r->at++;
    for (bool first = true;; first = false) {
        skip_space(r, false);
        if (r->at == r->end)
            return refuse(r, "the list [ … ] does not end; was the file cut short?");
        if (*r->at == ']') break;
        if (!first && *r->at++ != ',') return refuse(r, "a comma is missing in the list [ … ]");
        if (!first) skip_space(r, false);
        if (r->at < r->end && *r->at != ']') QKV_TRY(read_value(r));
    }
    r->at++;
    skip_space(r, false);
    return r->at == r->end ? QKV_OK : refuse(r, "something stands behind the end of the list");
}

qkv_status qkv_read_jsonl(qkv_reader *r) {
    r->line = 1;
    int64_t empty = skip_space(r, true);
    if (r->at < r->end && *r->at == '[') return read_list(r);
    while (r->at < r->end) {
        QKV_TRY(read_value(r));
        empty += skip_space(r, false);
    }
    r->corpus->n_empty += empty;
    return QKV_OK;
}
