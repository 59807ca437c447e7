/* What is to be told of a text: a number; a label, or several.
 *
 * Whether rows have several labels is told by the rows: where one has, all have lists, of any
 * length; where none has, each must have exactly one. */
#include "data/row_truth.h"
#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static qkv_text trimmed(qkv_text t) {
    while (t.len && is_space(t.data[0])) t.data++, t.len--;
    while (t.len && is_space(t.data[t.len - 1])) t.len--;
    return t;
}

bool qkv_row_number(qkv_text text, float *out) {
    double x;
    text = trimmed(text);
    if (text.len && text.data[0] == '+') text.data++, text.len--;
    if (!qkv_number_parse(text.data, text.len, &x) || fabs(x) > FLT_MAX) return false;
    *out = (float)x;
    return true;
}

qkv_status qkv_row_no_number(const qkv_reader *r, qkv_text label, int64_t line) {
    const bool comma = label.len && memchr(label.data, ',', label.len);
    return qkv_fail(
        QKV_BAD_FILE, "%s, line %lld: %s\"%.*s\" is no number such as 4.5 or -1e3%s", r->path,
        (long long)line,
        trimmed(label).len ? "" : "the number is missing: ", (int)(label.len < 60 ? label.len : 60),
        label.data,
        comma ? " (a point, no comma)"
              : "; name the column of the numbers (--label N), or train classify on labels");
}

/* ---- several labels ---- */

static int by_number(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* In order, each once. */
static void sort_once(qkv_row *row) {
    size_t n = 0;
    if (row->n_labels) qsort(row->labels, row->n_labels, sizeof *row->labels, by_number);
    for (size_t i = 0; i < row->n_labels; i++)
        if (n == 0 || row->labels[n - 1] != row->labels[i]) row->labels[n++] = row->labels[i];
    row->n_labels = n;
}

/* The labels of a list between separators; returns how many, of which `room` are written. */
static size_t split(qkv_text list, qkv_text separator, qkv_text *out, size_t room) {
    size_t n = 0;
    for (size_t at = 0; at <= list.len;) {
        size_t end = at;
        while (end < list.len && (end + separator.len > list.len ||
                                  memcmp(list.data + end, separator.data, separator.len) != 0))
            end++;
        const qkv_text label = trimmed((qkv_text){list.data + at, end - at});
        if (label.len && n++ < room) out[n - 1] = label;
        at = end + separator.len;
    }
    return n;
}

qkv_status qkv_row_labels(qkv_reader *r, qkv_text list, qkv_text separator, qkv_row *row) {
    const size_t n = split(list, separator, NULL, 0);
    qkv_text *names = qkv_arena_alloc(&r->corpus->strings, (n + 1) * sizeof *names);
    row->labels = qkv_arena_alloc(&r->corpus->strings, (n + 1) * sizeof *row->labels);
    if (!names || !row->labels) return QKV_FAILED;
    (void)split(list, separator, names, n);
    for (size_t i = 0; i < n; i++)
        QKV_TRY(qkv_reader_label(r, names[i], row->line, &row->labels[i]));
    row->n_labels = n;
    sort_once(row);
    return QKV_OK;
}

static const char *name_of(const qkv_corpus_spec *spec) {
    return spec->n_paths == 1 ? spec->paths[0] : spec->n_paths ? "data" : "rows";
}

/* All rows get lists. */
static qkv_status list_all(qkv_corpus *c) {
    for (size_t i = 0; i < c->n; i++) {
        qkv_row *row = &c->rows[i];
        if (row->labels) continue;
        row->labels = qkv_arena_alloc(&c->strings, sizeof *row->labels);
        if (!row->labels) return QKV_FAILED;
        row->labels[0] = row->label;
        row->n_labels = 1;
        row->label = -1;
    }
    c->several = true;
    return QKV_OK;
}

qkv_status qkv_rows_settle_labels(qkv_corpus *c, const qkv_corpus_spec *spec) {
    const qkv_row *more = NULL, *none = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const qkv_row *row = &c->rows[i];
        if (row->labels && row->n_labels > 1 && !more) more = row;
        if (row->labels && row->n_labels == 0 && !none) none = row;
    }
    if (spec->several || (more && !spec->labels)) return list_all(c);
    if (more)
        return qkv_fail(QKV_BAD_FILE,
                        "%s, line %lld: several labels; in the training data every row has one",
                        name_of(spec), (long long)more->line);
    if (none)
        return qkv_fail(QKV_BAD_FILE,
                        "%s, line %lld: the row has no label; such rows may stand only beside rows "
                        "of several labels",
                        name_of(spec), (long long)none->line);
    for (size_t i = 0; i < c->n; i++) {
        qkv_row *row = &c->rows[i];
        if (row->labels) row->label = row->labels[0];
        row->labels = NULL;
        row->n_labels = 0;
    }
    return QKV_OK;
}

void qkv_row_renumber(qkv_row *row, const int32_t *map) {
    for (size_t i = 0; i < row->n_labels; i++)
        if (row->labels[i] >= 0) row->labels[i] = map[row->labels[i]];
    sort_once(row);
}
