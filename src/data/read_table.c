/* Tables: a row a line, a field a column.
 *
 *   TSV   fields between TABs, as they are. Without names in the first row and without a wish only
 *         the first TAB counts: label<TAB>text, whatever is in the text; or source<TAB>target
 *   CSV   (RFC 4180) fields between commas, semicolons, TABs or bars, whichever makes rows of one
 *         width; a field in double quotes may hold separators, line ends and doubled quotes
 *
 * table_columns.c says which column is what. */
#include "data/corpus.h"
#include "base/mem.h"
#include "base/unpack.h"
#include "data/table_columns.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLE = 1000, /* rows that are looked at before the table is read */
    LOOKED = 32,   /* columns of them */
    SNIFFED = 50,  /* rows that tell the separator */
    MOST_COLUMNS = 1 << 14
};

typedef QKV_VEC(qkv_text) fields;

typedef struct table {
    qkv_reader *r;
    char separator;
    bool quotes; /* CSV */
    bool rough;  /* a look ahead: quotes are left as they stand */
    fields row;
    int64_t line; /* that the row begins on */
    size_t width; /* of the first row */
    qkv_table_columns columns;
} table;

/* ---- fields ---- */

/* The end of a quoted field (at its closing quote); NULL when it never ends. *plain: no quote in it
 * is doubled, and no line ends in CR LF. */
static const char *quoted_end(const char *p, const char *end, bool *plain) {
    for (*plain = true; p < end; p++) {
        if (*p == '\r' && p + 1 < end && p[1] == '\n') *plain = false;
        if (*p != '"') continue;
        if (p + 1 == end || p[1] != '"') return p;
        *plain = false;
        p++;
    }
    return NULL;
}

/* A copy with doubled quotes made single and line ends made LF. */
static qkv_status make_plain(table *t, qkv_text *field) {
    char *copy = qkv_arena_alloc(&t->r->corpus->strings, field->len), *to = copy;
    if (!copy) return QKV_FAILED;
    for (size_t i = 0; i < field->len; i++) {
        if (field->data[i] == '\r' && i + 1 < field->len && field->data[i + 1] == '\n') continue;
        *to++ = field->data[i];
        if (field->data[i] == '"') i++;
    }
    *field = (qkv_text){copy, (size_t)(to - copy)};
    return QKV_OK;
}

static void read_bare(table *t, qkv_text *out) {
    qkv_reader *r = t->r;
    const char *from = r->at;
    /* behind the label of TSV, TABs are text */
    const char separator = t->columns.rest && !t->quotes && t->row.n ? '\n' : t->separator;
    while (r->at < r->end && *r->at != separator && *r->at != '\n') r->at++;
    *out = (qkv_text){from, (size_t)(r->at - from)};
    if (out->len && (r->at == r->end || *r->at == '\n') && out->data[out->len - 1] == '\r')
        out->len--;
}

static qkv_status read_quoted(table *t, qkv_text *out) {
    qkv_reader *r = t->r;
    bool plain;
    const char *from = r->at + 1, *stop = quoted_end(from, r->end, &plain);
    if (!stop)
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: a quoted field does not end", r->path,
                        (long long)r->line);
    *out = (qkv_text){from, (size_t)(stop - from)};
    for (const char *p = from; p < stop; p++) r->line += *p == '\n';
    r->at = stop + 1;
    if (r->at < r->end && *r->at == '\r') r->at++;
    if (r->at < r->end && *r->at != t->separator && *r->at != '\n')
        return qkv_fail(QKV_BAD_FILE,
                        "%s, line %lld: text after a closing quote; a quote inside a quoted field "
                        "is written twice",
                        r->path, (long long)r->line);
    return plain || t->rough ? QKV_OK : make_plain(t, out);
}

static qkv_status read_row(table *t) {
    qkv_reader *r = t->r;
    t->row.n = 0;
    t->line = ++r->line;
    for (;;) {
        qkv_text field;
        if (t->row.n == MOST_COLUMNS)
            return qkv_fail(QKV_BAD_FILE, "%s, line %lld: more than %d columns", r->path,
                            (long long)t->line, MOST_COLUMNS);
        if (t->quotes && r->at < r->end && *r->at == '"')
            QKV_TRY(read_quoted(t, &field));
        else
            read_bare(t, &field);
        if (!QKV_PUSH(t->row, field)) return QKV_FAILED;
        if (r->at == r->end) return QKV_OK;
        if (*r->at++ == '\n') return QKV_OK;
    }
}

static bool is_blank_row(const table *t) {
    return t->row.n == 1 && t->row.at[0].len == 0;
}

/* ---- looking ahead ---- */

/* The widths that rows would have: the least and the most of those looked at. */
static qkv_status measure(table *t, char separator, int rows, size_t *least, size_t *most) {
    qkv_reader ahead = *t->r, *own = t->r;
    t->r = &ahead;
    t->rough = true;
    t->separator = separator;
    *least = MOST_COLUMNS, *most = 0;
    qkv_status status = QKV_OK;
    while (rows > 0 && ahead.at < ahead.end && (status = read_row(t)) == QKV_OK) {
        if (is_blank_row(t)) continue;
        if (t->row.n < *least) *least = t->row.n;
        if (t->row.n > *most) *most = t->row.n;
        rows--;
    }
    t->r = own;
    t->rough = false;
    return status == QKV_FAILED ? status : QKV_OK; /* what is wrong is said when it is read */
}

/* Spreadsheets write "sep=;" as a first line of its own. */
static bool take_separator_line(table *t) {
    qkv_reader ahead = *t->r;
    qkv_text line;
    if (!qkv_reader_line(&ahead, &line) || line.len != 5 || memcmp(line.data, "sep=", 4) != 0)
        return false;
    t->separator = line.data[4];
    t->r->at = ahead.at;
    t->r->line = ahead.line;
    return true;
}

/* The first separator that makes rows of one width; else the first that all rows have; else the
 * comma. Without quotes it is the TAB. */
static qkv_status find_separator(table *t) {
    static const char tried[] = ",;\t|";
    size_t least, most;
    char some = 0;
    if (!t->quotes) return t->separator = '\t', QKV_OK;
    if (take_separator_line(t)) return QKV_OK;
    for (const char *s = tried; *s; s++) {
        QKV_TRY(measure(t, *s, SNIFFED, &least, &most));
        if (most == 0 || least < 2) continue;
        if (least == most) return t->separator = *s, QKV_OK;
        if (!some) some = *s;
    }
    t->separator = some ? some : ',';
    return QKV_OK;
}

typedef struct look {
    fields head;
    QKV_VEC(qkv_text) cells;
    qkv_table_sample sample;
    bool damaged; /* it ends before a row that cannot be read */
} look;

static bool keep_row(const table *t, look *k) {
    for (int c = 0; c < k->sample.looked; c++)
        if (!QKV_PUSH(k->cells, (size_t)c < t->row.n ? t->row.at[c] : ((qkv_text){"", 0})))
            return false;
    k->sample.even &= t->row.n == (size_t)k->sample.width;
    k->sample.rows++;
    return true;
}

static bool keep_head(const table *t, look *k) {
    for (size_t i = 0; i < t->row.n; i++)
        if (!QKV_PUSH(k->head, t->row.at[i])) return false;
    k->sample.width = (int)t->row.n;
    k->sample.looked = k->sample.width < LOOKED ? k->sample.width : LOOKED;
    return true;
}

/* Reads the first rows, up to one that is damaged: what is wrong is said when it is read. */
static qkv_status look_ahead(table *t, look *k) {
    qkv_reader ahead = *t->r, *own = t->r;
    t->r = &ahead;
    t->rough = true;
    k->sample.even = true;
    qkv_status status = QKV_OK;
    while (k->sample.rows < SAMPLE && ahead.at < ahead.end && status == QKV_OK) {
        status = read_row(t);
        if (status != QKV_OK || is_blank_row(t)) continue;
        if (k->sample.rows == 0 && !keep_head(t, k)) status = QKV_FAILED;
        if (status == QKV_OK && !keep_row(t, k)) status = QKV_FAILED;
    }
    t->r = own;
    t->rough = false;
    k->damaged = status == QKV_BAD_FILE;
    k->sample.quoted = t->quotes;
    k->sample.head = k->head.at;
    k->sample.cells = k->cells.at;
    return status == QKV_FAILED ? status : QKV_OK;
}

/* Rows of another width, and no name that says it were a table: prose with commas in it. */
static bool is_prose(const table *t, const look *k) {
    const char *path = t->r->reading->path;
    const size_t n = qkv_unpacked_name(path);
    const bool named = n > 4 && memcmp(path + n - 4, ".csv", 4) == 0;
    return t->quotes && !t->r->spec->format && !named && !t->columns.header &&
           t->r->spec->shape == QKV_CORPUS_PARALLEL &&
           (k->damaged || !k->sample.even || k->sample.width != 2);
}

static qkv_status choose_columns(table *t) {
    look k = {0};
    qkv_status status = look_ahead(t, &k);
    t->width = (size_t)k.sample.width;
    if (status == QKV_OK && k.sample.rows > 0)
        status = qkv_table_choose(t->r, &k.sample, &t->columns);
    if (status == QKV_OK && is_prose(t, &k)) status = qkv_not_recognised(t->r);
    qkv_free(k.head.at);
    qkv_free(k.cells.at);
    return status;
}

/* ---- rows ---- */

/* Fields from `from` on: of CSV joined by blanks, of TSV as they stand, TABs between. */
static qkv_status join(table *t, size_t from, qkv_text *out) {
    const qkv_text *f = t->row.at + from, *last = t->row.at + t->row.n - 1;
    if (!t->quotes) {
        *out = (qkv_text){f->data, (size_t)(last->data + last->len - f->data)};
        return QKV_OK;
    }
    if (f == last) return *out = *f, QKV_OK;
    size_t len = 0;
    for (const qkv_text *p = f; p <= last; p++) len += p->len + 1;
    char *copy = qkv_arena_alloc(&t->r->corpus->strings, len), *to = copy;
    if (!copy) return QKV_FAILED;
    for (const qkv_text *p = f; p <= last; p++) {
        if (p->len) memcpy(to, p->data, p->len);
        to += p->len;
        *to++ = ' ';
    }
    *out = (qkv_text){copy, len - 1};
    return QKV_OK;
}

static qkv_status too_narrow(const table *t, size_t wanted) {
    const qkv_reader *r = t->r;
    if (!t->quotes && t->row.n == 1 && !t->columns.strict)
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: no TAB; wanted %s", r->path,
                        (long long)t->line,
                        r->spec->shape == QKV_CORPUS_LABELLED ? "label<TAB>text"
                        : r->spec->shape == QKV_CORPUS_RATED  ? "number<TAB>text"
                                                              : "source<TAB>target");
    return qkv_fail(QKV_BAD_FILE, "%s, line %lld: %zu columns, wanted at least %zu", r->path,
                    (long long)t->line, t->row.n, wanted);
}

/* A row of more fields than the first has broken into pieces: its text would be cut, its label
 * another. */
static qkv_status check_width(const table *t) {
    size_t n = t->row.n;
    while (n > t->width && t->row.at[n - 1].len == 0) n--;
    if (!t->columns.strict || n <= t->width) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE, "%s, line %lld: %zu columns, but the first row has %zu; %s",
                    t->r->path, (long long)t->line, n, t->width,
                    t->quotes ? "a field with the separator in it must stand in double quotes"
                              : "a field may not have a TAB in it");
}

static qkv_status add_row(table *t) {
    const int *column = t->columns.column;
    qkv_text role[QKV_ROLES] = {{0}};
    size_t wanted = 0;
    if (is_blank_row(t)) return t->r->corpus->n_empty++, QKV_OK;
    QKV_TRY(check_width(t));
    for (int k = 0; k < QKV_ROLES; k++) {
        const bool needed = k != QKV_ROLE_PAIR || t->r->spec->shape == QKV_CORPUS_PARALLEL;
        if (needed && column[k] >= (int)wanted) wanted = (size_t)column[k] + 1;
    }
    if (t->row.n < wanted) return too_narrow(t, wanted);
    for (int k = 0; k < QKV_ROLES; k++)
        if (column[k] != QKV_NO_COLUMN)
            role[k] = (size_t)column[k] < t->row.n ? t->row.at[column[k]] : (qkv_text){"", 0};
    if (t->columns.rest) QKV_TRY(join(t, (size_t)column[QKV_ROLE_TEXT], &role[QKV_ROLE_TEXT]));
    return qkv_reader_add(t->r, role[QKV_ROLE_LABEL], role[QKV_ROLE_TEXT], role[QKV_ROLE_PAIR],
                          t->line);
}

static qkv_status read_rows(table *t) {
    QKV_TRY(find_separator(t));
    QKV_TRY(choose_columns(t));
    t->r->reading->separator = t->separator;
    bool head = t->columns.header;
    while (t->r->at < t->r->end) {
        QKV_TRY(read_row(t));
        if (head && !is_blank_row(t))
            head = false;
        else
            QKV_TRY(add_row(t));
    }
    return QKV_OK;
}

static qkv_status read_table(qkv_reader *r, bool quotes) {
    table t = {.r = r, .quotes = quotes};
    const qkv_status status = read_rows(&t);
    qkv_free(t.row.at);
    return status;
}

qkv_status qkv_read_tsv(qkv_reader *r) {
    return read_table(r, false);
}

qkv_status qkv_read_csv(qkv_reader *r) {
    return read_table(r, true);
}
