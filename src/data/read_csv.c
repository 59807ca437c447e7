/* CSV (RFC 4180): commas, fields in double quotes may hold commas, line ends and doubled quotes.
 *
 * A first row that names columns (label, text, …) says which are which. Without one, the first
 * column is the label and the others, joined by blanks, the text; or source and target. */
#include "data/corpus.h"

#include <string.h>

enum { COLUMNS = 64 };

typedef struct csv_row {
    qkv_text field[COLUMNS];
    size_t n;
    int64_t line;
} csv_row;

/* The end of a quoted field (at its closing quote); NULL when it never ends. Sets *doubled. */
static const char *quoted_end(const char *p, const char *end, bool *doubled) {
    for (*doubled = false; p < end; p++) {
        if (*p != '"') continue;
        if (p + 1 == end || p[1] != '"') return p;
        *doubled = true;
        p++;
    }
    return NULL;
}

/* A copy with doubled quotes made single. */
static qkv_status undouble(qkv_reader *r, qkv_text *t) {
    char *copy = qkv_arena_alloc(&r->corpus->strings, t->len), *to = copy;
    if (!copy) return QKV_FAILED;
    for (size_t i = 0; i < t->len; i++) {
        *to++ = t->data[i];
        if (t->data[i] == '"') i++;
    }
    *t = (qkv_text){copy, (size_t)(to - copy)};
    return QKV_OK;
}

static qkv_status read_field(qkv_reader *r, qkv_text *out) {
    if (r->at == r->end || *r->at != '"') {
        const char *from = r->at;
        while (r->at < r->end && *r->at != ',' && *r->at != '\n') r->at++;
        *out = (qkv_text){from, (size_t)(r->at - from)};
        if (out->len && (r->at == r->end || *r->at == '\n') && out->data[out->len - 1] == '\r')
            out->len--;
        return QKV_OK;
    }
    bool doubled;
    const char *from = r->at + 1, *stop = quoted_end(from, r->end, &doubled);
    if (!stop)
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: a quoted field does not end", r->path,
                        (long long)r->line);
    *out = (qkv_text){from, (size_t)(stop - from)};
    for (const char *p = from; p < stop; p++) r->line += *p == '\n';
    r->at = stop + 1;
    if (r->at < r->end && *r->at == '\r') r->at++;
    if (r->at < r->end && *r->at != ',' && *r->at != '\n')
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: text after a closing quote", r->path,
                        (long long)r->line);
    return doubled ? undouble(r, out) : QKV_OK;
}

static qkv_status read_row(qkv_reader *r, csv_row *row) {
    row->n = 0;
    row->line = ++r->line;
    for (;;) {
        if (row->n == COLUMNS)
            return qkv_fail(QKV_BAD_FILE, "%s, line %lld: more than %d columns", r->path,
                            (long long)row->line, COLUMNS);
        QKV_TRY(read_field(r, &row->field[row->n++]));
        if (r->at == r->end) return QKV_OK;
        if (*r->at++ == '\n') return QKV_OK;
    }
}

/* Fields from `from` on, joined by blanks. */
static qkv_status join(qkv_reader *r, const csv_row *row, size_t from, qkv_text *out) {
    if (row->n == from + 1) return *out = row->field[from], QKV_OK;
    size_t len = 0;
    for (size_t i = from; i < row->n; i++) len += row->field[i].len + 1;
    char *copy = qkv_arena_alloc(&r->corpus->strings, len), *to = copy;
    if (!copy) return QKV_FAILED;
    for (size_t i = from; i < row->n; i++) {
        memcpy(to, row->field[i].data, row->field[i].len);
        to += row->field[i].len;
        *to++ = ' ';
    }
    *out = (qkv_text){copy, len - 1};
    return QKV_OK;
}

typedef struct csv_columns {
    bool named;
    size_t label, text, second; /* COLUMNS: there is none */
} csv_columns;

static csv_columns columns_of(const csv_row *head, qkv_corpus_shape shape) {
    csv_columns c = {.label = COLUMNS, .text = COLUMNS, .second = COLUMNS};
    for (size_t i = 0; i < head->n; i++) {
        const char role = qkv_column_role(shape, head->field[i].data, head->field[i].len);
        size_t *which = role == 'l'   ? &c.label
                        : role == 't' ? &c.text
                        : role == 's' ? &c.second
                                      : NULL;
        if (which && *which == COLUMNS) *which = i;
    }
    c.named = c.text != COLUMNS && (shape == QKV_CORPUS_PARALLEL ? c.second : c.label) != COLUMNS;
    return c;
}

static qkv_status add_row(qkv_reader *r, const csv_row *row, const csv_columns *c) {
    const bool parallel = r->spec->shape == QKV_CORPUS_PARALLEL;
    const size_t wanted =
        c->named ? (c->label > c->text && c->label != COLUMNS ? c->label : c->text) + 1 : 2;
    if (row->n == 1 && row->field[0].len == 0) return r->corpus->n_empty++, QKV_OK;
    if (row->n < wanted)
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: %zu columns, wanted at least %zu", r->path,
                        (long long)row->line, row->n, wanted);
    qkv_text text = row->field[c->named ? c->text : 0], none = {0};
    if (c->named)
        return qkv_reader_add(r, c->label < row->n ? row->field[c->label] : none, text,
                              c->second < row->n ? row->field[c->second] : none, row->line);
    if (parallel) return qkv_reader_add(r, none, text, row->field[1], row->line);
    QKV_TRY(join(r, row, 1, &text));
    return qkv_reader_add(r, row->field[0], text, none, row->line);
}

qkv_status qkv_read_csv(qkv_reader *r) {
    csv_row row;
    if (r->at == r->end) return QKV_OK;
    QKV_TRY(read_row(r, &row));
    const csv_columns columns = columns_of(&row, r->spec->shape);
    if (!columns.named) QKV_TRY(add_row(r, &row, &columns));
    while (r->at < r->end) {
        QKV_TRY(read_row(r, &row));
        QKV_TRY(add_row(r, &row, &columns));
    }
    return QKV_OK;
}
