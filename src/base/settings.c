/* Settings described by tables: one parser, one printer, one set of messages for all of them.
 *
 * Numbers go through the JSON reader whether they come from a file or from `key=value`, so that
 * both obey the same grammar and neither follows the locale. */
#include "base/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define KEY_MAX        64  /* bytes of a key; longer ones are nobody's */
#define CANDIDATES_MAX 256 /* names looked at for "did you mean" */

static void *field(const qkv_settings *s, const qkv_setting *row) {
    return (char *)s->values + row->offset;
}

/* Stores a number that is known to be within the row's bounds. */
static void store(const qkv_settings *s, const qkv_setting *row, double value) {
    switch (row->type) {
    case QKV_SETTING_INT:
        *(int64_t *)field(s, row) = (int64_t)value;
        break;
    case QKV_SETTING_REAL:
        *(double *)field(s, row) = value;
        break;
    case QKV_SETTING_BOOL:
        *(bool *)field(s, row) = value != 0;
        break;
    case QKV_SETTING_CHOICE:
        *(int *)field(s, row) = (int)value;
        break;
    case QKV_SETTING_TEXT:
        break;
    }
}

void qkv_settings_default(const qkv_settings *s) {
    for (size_t i = 0; i < s->n; i++) {
        const qkv_setting *row = &s->rows[i];
        if (row->type == QKV_SETTING_TEXT)
            snprintf(field(s, row), QKV_SETTING_TEXT_MAX, "%s", row->text);
        else
            store(s, row, row->standard);
    }
}

/* Underscores for dashes; false when the key is too long to be one. */
static bool plain_key(const char *key, char out[KEY_MAX]) {
    size_t n = strlen(key);
    if (n >= KEY_MAX) return false;
    for (size_t i = 0; i <= n; i++) out[i] = key[i] == '-' ? '_' : key[i];
    return true;
}

const qkv_setting *qkv_settings_find(const qkv_settings *groups, size_t n, const char *key,
                                     size_t *group) {
    char plain[KEY_MAX];
    if (!plain_key(key, plain)) return NULL;
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].n; i++)
            if (strcmp(groups[g].rows[i].name, plain) == 0) {
                if (group) *group = g;
                return &groups[g].rows[i];
            }
    return NULL;
}

static qkv_status unknown_key(const qkv_settings *groups, size_t n, const char *key) {
    const char *names[CANDIDATES_MAX];
    size_t count = 0;
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < groups[g].n && count < CANDIDATES_MAX; i++)
            names[count++] = groups[g].rows[i].name;
    char plain[KEY_MAX];
    const char *near = plain_key(key, plain) ? qkv_nearest(plain, names, count) : NULL;
    if (near) return qkv_fail(QKV_USAGE, "there is no setting \"%s\"; did you mean %s?", key, near);
    return qkv_fail(QKV_USAGE, "there is no setting \"%.60s\"", key);
}

static qkv_status choose(const qkv_settings *s, const qkv_setting *row, const char *value) {
    size_t count = 0;
    for (; row->choices[count]; count++)
        if (strcmp(row->choices[count], value) == 0) {
            store(s, row, (double)count);
            return QKV_OK;
        }
    qkv_buf list = {0};
    for (size_t i = 0; i < count; i++)
        qkv_buf_printf(&list, "%s%s", i ? ", " : "", row->choices[i]);
    const char *near = qkv_nearest(value, row->choices, count);
    qkv_status status = list.status;
    if (status == QKV_OK && near)
        status = qkv_fail(QKV_USAGE, "%s: there is no \"%.60s\"; did you mean %s? (%s)", row->name,
                          value, near, list.data);
    else if (status == QKV_OK)
        status = qkv_fail(QKV_USAGE, "%s: there is no \"%.60s\"; choose one of %s", row->name,
                          value, list.data);
    qkv_buf_free(&list);
    return status;
}

static qkv_status not_in_bounds(const qkv_setting *row, const char *value) {
    return qkv_fail(QKV_USAGE, "%s = %.60s: it must be %s from %.10g to %.10g", row->name, value,
                    row->type == QKV_SETTING_INT ? "an integer" : "a number", row->min, row->max);
}

/* Sets a field from a JSON value whose source text (for messages) is `value`. */
static qkv_status set_json(const qkv_settings *s, const qkv_setting *row, qkv_json_at at,
                           const char *value) {
    qkv_json_kind kind = qkv_json_kind_of(at);
    int64_t integer;
    switch (row->type) {
    case QKV_SETTING_INT:
        if (!qkv_json_integer(at, (int64_t)row->min, (int64_t)row->max, &integer))
            return not_in_bounds(row, value);
        store(s, row, (double)integer);
        return QKV_OK;
    case QKV_SETTING_REAL: {
        double number = qkv_json_number(at);
        if (kind != QKV_JSON_NUMBER || !(number >= row->min && number <= row->max))
            return not_in_bounds(row, value);
        store(s, row, number);
        return QKV_OK;
    }
    case QKV_SETTING_BOOL:
        if (kind != QKV_JSON_TRUE && kind != QKV_JSON_FALSE)
            return qkv_fail(QKV_USAGE, "%s = %.60s: it must be true or false", row->name, value);
        store(s, row, kind == QKV_JSON_TRUE);
        return QKV_OK;
    default:
        return qkv_fail(QKV_USAGE, "%s: it must be a string", row->name);
    }
}

static qkv_status set_text(const qkv_settings *s, const qkv_setting *row, const char *value) {
    if (row->type == QKV_SETTING_CHOICE) return choose(s, row, value);
    if (strlen(value) >= QKV_SETTING_TEXT_MAX)
        return qkv_fail(QKV_USAGE, "%s: longer than %d bytes", row->name, QKV_SETTING_TEXT_MAX - 1);
    strcpy(field(s, row), value);
    return QKV_OK;
}

qkv_status qkv_settings_set(const qkv_settings *groups, size_t n, const char *key,
                            const char *value) {
    size_t g;
    const qkv_setting *row = qkv_settings_find(groups, n, key, &g);
    if (!row) return unknown_key(groups, n, key);
    if (groups[g].given) groups[g].given[row - groups[g].rows] = true;
    if (row->type == QKV_SETTING_CHOICE || row->type == QKV_SETTING_TEXT)
        return set_text(&groups[g], row, value);
    qkv_json doc;
    qkv_json_limits limits = {.bytes = 400, .nodes = 1, .depth = 1};
    qkv_status status = qkv_json_parse(&doc, row->name, value, strlen(value), limits);
    if (status == QKV_FAILED) return status;
    if (status != QKV_OK)
        return row->type == QKV_SETTING_BOOL
                   ? qkv_fail(QKV_USAGE, "%s = %.60s: it must be true or false", row->name, value)
                   : not_in_bounds(row, value);
    status = set_json(&groups[g], row, qkv_json_root(&doc), value);
    qkv_json_free(&doc);
    return status;
}

/* Length of the assignment at the front: a word, and behind a TEXT all words that assign nothing
 * ("text=Review Text epochs=2"). */
static size_t assignment_len(const qkv_settings *groups, size_t n, const char *at) {
    static const char blanks[] = " \t\n";
    char key[KEY_MAX];
    size_t len = strcspn(at, blanks), name = strcspn(at, "=");
    if (name >= len || name >= sizeof key) return len;
    memcpy(key, at, name);
    key[name] = 0;
    const qkv_setting *row = qkv_settings_find(groups, n, key, NULL);
    while (row && row->type == QKV_SETTING_TEXT) {
        const size_t gap = strspn(at + len, blanks), word = strcspn(at + len + gap, blanks);
        if (!word || memchr(at + len + gap, '=', word)) break;
        len += gap + word;
    }
    return len;
}

qkv_status qkv_settings_assign(const qkv_settings *groups, size_t n, const char *assignments) {
    while (*assignments) {
        assignments += strspn(assignments, " \t\n");
        size_t len = assignment_len(groups, n, assignments);
        if (!len) break;
        char one[KEY_MAX + QKV_SETTING_TEXT_MAX];
        if (len >= sizeof one) return qkv_fail(QKV_USAGE, "setting %.60s…: too long", assignments);
        memcpy(one, assignments, len);
        one[len] = 0;
        char *equals = strchr(one, '=');
        if (!equals)
            return qkv_fail(QKV_USAGE, "\"%s\" is not of the form key=value, as in d_model=128",
                            one);
        *equals = 0;
        QKV_TRY(qkv_settings_set(groups, n, one, equals + 1));
        assignments += len;
    }
    return QKV_OK;
}

bool qkv_settings_given(const qkv_settings *s, const char *key) {
    const qkv_setting *row = qkv_settings_find(s, 1, key, NULL);
    return row && s->given && s->given[row - s->rows];
}

static bool listed(const char *const *list, const char *key) {
    for (; list && *list; list++)
        if (strcmp(*list, key) == 0) return true;
    return false;
}

static qkv_status read_member(const qkv_settings *groups, size_t n, qkv_json_at at,
                              const char *key) {
    size_t g;
    const qkv_setting *row = qkv_settings_find(groups, n, key, &g);
    if (!row) return unknown_key(groups, n, key);
    if (groups[g].given) groups[g].given[row - groups[g].rows] = true;
    if (qkv_json_kind_of(at) != QKV_JSON_STRING) {
        char shown[40];
        snprintf(shown, sizeof shown, "%.10g", qkv_json_number(at));
        return set_json(&groups[g], row, at,
                        qkv_json_kind_of(at) == QKV_JSON_NUMBER ? shown : "(not a number)");
    }
    const char *text;
    size_t len;
    qkv_json_string(at, &text, &len);
    char value[QKV_SETTING_TEXT_MAX];
    if (len >= sizeof value || memchr(text, 0, len))
        return qkv_fail(QKV_USAGE, "%s: longer than %d bytes, or with a NUL", row->name,
                        QKV_SETTING_TEXT_MAX - 1);
    memcpy(value, text, len);
    value[len] = 0;
    if (row->type != QKV_SETTING_CHOICE && row->type != QKV_SETTING_TEXT)
        return qkv_fail(QKV_USAGE, "%s: \"%.60s\" is a string; write it without quotes", row->name,
                        value);
    return set_text(&groups[g], row, value);
}

qkv_status qkv_settings_read(const qkv_settings *groups, size_t n, qkv_json_at object,
                             const char *const *foreign) {
    const char *file = object.doc->name;
    if (qkv_json_kind_of(object) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "%s: expected an object of settings", file);
    qkv_json_at at;
    for (bool more = qkv_json_first(object, &at); more; more = qkv_json_next(object, &at)) {
        const char *text;
        size_t len;
        qkv_json_key(at, &text, &len);
        char key[KEY_MAX] = "";
        if (len < sizeof key) memcpy(key, text, len), key[len] = 0;
        if (listed(foreign, key)) continue;
        if (read_member(groups, n, at, key) != QKV_OK)
            return qkv_fail_in(QKV_BAD_FILE, "%s:%zu", file, qkv_json_line(at));
    }
    return QKV_OK;
}

qkv_status qkv_settings_load(const qkv_settings *groups, size_t n, const char *path,
                             const char *const *foreign) {
    const size_t most = (size_t)16 << 20; /* label lists of other programs can be long */
    const qkv_json_limits limits = {.bytes = most, .nodes = 1 << 20, .depth = 16};
    qkv_file file;
    qkv_json doc;
    QKV_TRY(qkv_file_open(path, most, &file));
    qkv_status status = qkv_json_parse(&doc, path, file.data, file.size, limits);
    if (status == QKV_OK) {
        status = qkv_settings_read(groups, n, qkv_json_root(&doc), foreign);
        qkv_json_free(&doc);
    }
    qkv_file_close(&file);
    return status;
}

static bool is_default(const qkv_settings *s, const qkv_setting *row) {
    const char *text;
    double number;
    qkv_setting_value(s, row, &number, &text);
    return row->type == QKV_SETTING_TEXT ? !strcmp(text, row->text) : number == row->standard;
}

void qkv_settings_write(const qkv_settings *s, qkv_json_out *j) {
    for (size_t i = 0; i < s->n; i++) {
        const qkv_setting *row = &s->rows[i];
        const void *at = field(s, row);
        if (s->seldom && row->offset >= s->seldom && is_default(s, row)) continue;
        qkv_json_put_key(j, row->name);
        switch (row->type) {
        case QKV_SETTING_INT:
            qkv_json_put_int(j, *(const int64_t *)at);
            break;
        case QKV_SETTING_REAL:
            qkv_json_put_real(j, *(const double *)at, 0);
            break;
        case QKV_SETTING_BOOL:
            qkv_json_put_bool(j, *(const bool *)at);
            break;
        case QKV_SETTING_CHOICE:
            qkv_json_put_text(j, row->choices[*(const int *)at]);
            break;
        case QKV_SETTING_TEXT:
            qkv_json_put_text(j, at);
            break;
        }
    }
}

void qkv_setting_value(const qkv_settings *s, const qkv_setting *row, double *number,
                       const char **text) {
    const void *at = field(s, row);
    *number = 0;
    *text = NULL;
    switch (row->type) {
    case QKV_SETTING_INT:
        *number = (double)*(const int64_t *)at;
        break;
    case QKV_SETTING_REAL:
        *number = *(const double *)at;
        break;
    case QKV_SETTING_BOOL:
        *number = *(const bool *)at;
        break;
    case QKV_SETTING_CHOICE:
        *number = *(const int *)at;
        *text = row->choices[*(const int *)at];
        break;
    case QKV_SETTING_TEXT:
        *text = at;
        break;
    }
}
