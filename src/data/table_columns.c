/* The first row names columns where a person says so (by asking for a name), where two of its cells
 * are known names, or where its cells look like names and the rows below like something else. */
#include "data/table_columns.h"
#include "base/mem.h"
#include "data/row_truth.h"

#include <stdlib.h>
#include <string.h>

static const char *const options[QKV_ROLES] = {"label", "text", "pair"};

/* ---- cells ---- */

static qkv_text cell(const qkv_table_sample *s, int row, int column) {
    return s->cells[(size_t)row * (size_t)s->looked + (size_t)column];
}

static bool same(qkv_text a, qkv_text b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static int words_of(qkv_text t) {
    int n = 0;
    for (size_t i = 0; i < t.len; i++) n += t.data[i] != ' ' && (i == 0 || t.data[i - 1] == ' ');
    return n;
}

/* Could it be the name of a column? Three words at most, of letters, digits and what joins them. */
static bool like_name(qkv_text t) {
    if (t.len == 0 || t.len > 40 || words_of(t) > 3) return false;
    for (size_t i = 0; i < t.len; i++) {
        const unsigned char c = (unsigned char)t.data[i];
        const bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
        if (!letter && (i == 0 || !strchr("0123456789 -.:/()#", c))) return false;
    }
    return !strchr(" .:-", t.data[t.len - 1]);
}

static bool is_number(qkv_text t) {
    bool digit = false;
    for (size_t i = 0; i < t.len; i++) {
        if (!strchr("0123456789.,+-eE%:/ ", t.data[i])) return false;
        digit |= t.data[i] >= '0' && t.data[i] <= '9';
    }
    return digit;
}

/* Does the head's cell come again below? */
static bool comes_again(const qkv_table_sample *s, int column) {
    for (int i = 1; i < s->rows; i++)
        if (same(cell(s, i, column), cell(s, 0, column))) return true;
    return false;
}

static int by_bytes(const void *a, const void *b) {
    const qkv_text *x = a, *y = b;
    const size_t n = x->len < y->len ? x->len : y->len;
    const int order = n ? memcmp(x->data, y->data, n) : 0;
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Different values of a column from row `from` on, and how many of them occur but once. */
typedef struct variety {
    int values, once;
} variety;

static qkv_status count_values(const qkv_table_sample *s, int column, int from, variety *out) {
    qkv_text *sorted = qkv_alloc(((size_t)s->rows + 1) * sizeof *sorted);
    if (!sorted) return QKV_FAILED;
    const int n = s->rows - from;
    for (int i = 0; i < n; i++) sorted[i] = cell(s, from + i, column);
    qsort(sorted, (size_t)n, sizeof *sorted, by_bytes);
    *out = (variety){0};
    for (int i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && same(sorted[i], sorted[i + run]);) run++;
        out->values++;
        out->once += run == 1;
    }
    qkv_free(sorted);
    return QKV_OK;
}

/* ---- is there a header? ---- */

enum { FEW_ROWS = 8 }; /* below this nothing is told from the cells */

/* A column of numbers under a word. */
static bool heads_numbers(const qkv_table_sample *s, int column) {
    int n = 0;
    for (int i = 1; i < s->rows; i++) {
        const qkv_text t = cell(s, i, column);
        if (t.len && !is_number(t)) return false;
        n += t.len > 0;
    }
    return n >= FEW_ROWS && cell(s, 0, column).len && !is_number(cell(s, 0, column));
}

/* Rows from `from` on whose cell is a number that a text may be rated with. */
static int numbers_in(const qkv_table_sample *s, int column, int from) {
    int n = 0;
    float x;
    for (int i = from; i < s->rows; i++) n += qkv_row_number(cell(s, i, column), &x);
    return n;
}

/* Is there a column of such numbers alone, under something that looks like a name? */
static bool heads_any_numbers(const qkv_table_sample *s) {
    for (int c = 0; c < s->looked; c++)
        if (s->rows > 1 && like_name(cell(s, 0, c)) && numbers_in(s, c, 1) == s->rows - 1)
            return true;
    return false;
}

/* A column of few values, each of which comes often, under a word that never comes again. */
static qkv_status heads_classes(const qkv_table_sample *s, int column, bool *out) {
    variety v;
    *out = false;
    if (cell(s, 0, column).len == 0 || comes_again(s, column)) return QKV_OK;
    QKV_TRY(count_values(s, column, 1, &v));
    *out = v.once == 0 && 4 * v.values <= s->rows;
    return QKV_OK;
}

/* A column of sentences under a word or two. */
static bool heads_texts(const qkv_table_sample *s, int column) {
    int words = 0;
    for (int i = 1; i < s->rows; i++) words += words_of(cell(s, i, column));
    return words >= (words_of(cell(s, 0, column)) + 2) * (s->rows - 1);
}

static qkv_status looks_headed(const qkv_table_sample *s, bool *out) {
    bool numbers = false, classes = false, texts = false;
    *out = false;
    if (s->rows <= FEW_ROWS || s->looked < 2) return QKV_OK;
    for (int c = 0; c < s->looked; c++) {
        const qkv_text name = cell(s, 0, c);
        if (name.len ? !like_name(name) : c > 0) return QKV_OK;
        for (int b = 0; b < c; b++)
            if (same(name, cell(s, 0, b))) return QKV_OK;
    }
    for (int c = 0; c < s->looked; c++) {
        bool here;
        QKV_TRY(heads_classes(s, c, &here));
        numbers |= heads_numbers(s, c);
        classes |= here;
        texts |= heads_texts(s, c);
    }
    *out = numbers || (classes && texts);
    return QKV_OK;
}

/* ---- by name ---- */

/* The column whose name says best that it has the role; the first of those that say it alike. */
static int best_column(const qkv_reader *r, const qkv_table_sample *s, qkv_role role, int *rank) {
    int best = QKV_NO_COLUMN;
    *rank = 0;
    for (int c = 0; c < s->width; c++) {
        const int here = qkv_column_rank(r->spec->shape, role, s->head[c]);
        if (here > *rank) *rank = here, best = c;
    }
    return best;
}

static qkv_status ask(const qkv_reader *r, const qkv_table_sample *s, const char *what) {
    qkv_text names;
    QKV_TRY(qkv_name_list(&r->corpus->strings, s->head, (size_t)s->width, 8, &names));
    const bool parallel = r->spec->shape == QKV_CORPUS_PARALLEL;
    return qkv_fail(QKV_BAD_FILE, "%s: %s; its first row is %.*s: say which is which with %s",
                    r->path, what, (int)names.len, names.data,
                    parallel                             ? "--text N --pair N"
                    : r->spec->shape == QKV_CORPUS_LINES ? "--text N"
                                                         : "--text N --label N (names or numbers)");
}

static bool same_but_case(qkv_text a, const char *b) {
    if (a.len != strlen(b)) return false;
    for (size_t i = 0; i < a.len; i++) {
        const char x = a.data[i], y = b[i];
        if (x != y && !((x | 32) == (y | 32) && (x | 32) >= 'a' && (x | 32) <= 'z')) return false;
    }
    return true;
}

/* The column of a name that was asked for: as it is written, else whatever its case. */
static qkv_status find_name(const qkv_reader *r, const qkv_table_sample *s, qkv_role role,
                            int *out) {
    const char *wanted = r->spec->column[role];
    for (int c = s->width - 1; c >= 0; c--)
        if (same_but_case(s->head[c], wanted)) *out = c;
    for (int c = s->width - 1; c >= 0; c--)
        if (same(s->head[c], (qkv_text){wanted, strlen(wanted)})) *out = c;
    if (*out != QKV_NO_COLUMN) return QKV_OK;
    qkv_text names;
    QKV_TRY(qkv_name_list(&r->corpus->strings, s->head, (size_t)s->width, 8, &names));
    return qkv_fail(QKV_USAGE, "%s: --%s: no column is named \"%.60s\"; the first row is %.*s",
                    r->path, options[role], wanted, (int)names.len, names.data);
}

/* Columns that were asked for. Sets *by_name when one was by its name. */
static qkv_status take_wishes(const qkv_reader *r, const qkv_table_sample *s, qkv_table_columns *t,
                              bool *by_name) {
    for (int role = 0; role < QKV_ROLES; role++) {
        const char *wanted = r->spec->column[role];
        if (!wanted) continue;
        const size_t number = qkv_column_number(wanted);
        if (!number) {
            *by_name = true;
            QKV_TRY(find_name(r, s, (qkv_role)role, &t->column[role]));
        } else if (number > (size_t)s->width) {
            return qkv_fail(QKV_USAGE, "%s: --%s: there is no column %zu; the first row has %d",
                            r->path, options[role], number, s->width);
        } else {
            t->column[role] = (int)number - 1;
        }
        for (int other = 0; other < role; other++)
            if (t->column[other] == t->column[role])
                return qkv_fail(QKV_USAGE, "%s: --%s and --%s name the same column", r->path,
                                options[other], options[role]);
    }
    return QKV_OK;
}

static bool is_taken(const qkv_table_columns *t, int column) {
    for (int role = 0; role < QKV_ROLES; role++)
        if (t->column[role] == column) return true;
    return false;
}

/* Roles that a row must have. */
static bool is_needed(qkv_corpus_shape shape, int role) {
    return role == QKV_ROLE_TEXT || role == (qkv_has_truth(shape)           ? QKV_ROLE_LABEL
                                             : shape == QKV_CORPUS_PARALLEL ? QKV_ROLE_PAIR
                                                                            : QKV_ROLE_TEXT);
}

/* Do the names in the first row, with what was asked for by number, say all that is needed? */
static bool names_suffice(const qkv_reader *r, const qkv_table_sample *s,
                          const qkv_table_columns *t) {
    bool known = false;
    for (int role = 0; role < QKV_ROLES; role++) {
        int rank, column = t->column[role];
        if (!is_needed(r->spec->shape, role)) continue;
        if (column == QKV_NO_COLUMN)
            column = best_column(r, s, (qkv_role)role, &rank);
        else
            rank = qkv_column_rank(r->spec->shape, (qkv_role)role, s->head[column]);
        if (column == QKV_NO_COLUMN || !like_name(s->head[column])) return false;
        if (role == QKV_ROLE_LABEL && column < s->looked && comes_again(s, column)) return false;
        if (rank == 0 && t->column[role] == QKV_NO_COLUMN) return false;
        known |= rank > 0;
    }
    return known;
}

static void take_names(const qkv_reader *r, const qkv_table_sample *s, qkv_table_columns *t) {
    for (int role = 0; role < QKV_ROLES; role++) {
        int rank;
        if (t->column[role] != QKV_NO_COLUMN) continue;
        const int column = best_column(r, s, (qkv_role)role, &rank);
        /* A pair that nobody asked for must say so outright. */
        if (role == QKV_ROLE_PAIR && !is_needed(r->spec->shape, role) &&
            (rank < 2 || r->spec->second == QKV_SECOND_NOT))
            continue;
        if (column != QKV_NO_COLUMN && !is_taken(t, column)) t->column[role] = column;
    }
}

/* ---- by place ---- */

/* Of two columns, is the second clearly that of the labels? Few values there, many in the first. */
static qkv_status second_is_label(const qkv_table_sample *s, int from, bool *out) {
    variety first, second;
    *out = false;
    if (s->rows - from < FEW_ROWS) return QKV_OK;
    QKV_TRY(count_values(s, 0, from, &first));
    QKV_TRY(count_values(s, 1, from, &second));
    *out = 3 * second.values <= first.values && 2 * first.values > s->rows - from;
    return QKV_OK;
}

static qkv_status place_labelled(const qkv_reader *r, const qkv_table_sample *s,
                                 qkv_table_columns *t) {
    int *label = &t->column[QKV_ROLE_LABEL], *text = &t->column[QKV_ROLE_TEXT],
        *pair = &t->column[QKV_ROLE_PAIR];
    if (*label != QKV_NO_COLUMN && *text != QKV_NO_COLUMN) return QKV_OK;
    if (*label == QKV_NO_COLUMN && *text == QKV_NO_COLUMN && *pair == QKV_NO_COLUMN && s->even &&
        s->width == 2 && (s->quoted || t->header)) {
        QKV_TRY(second_is_label(s, t->header, &t->counted));
        *label = t->counted;
        *text = !t->counted;
        t->rest = !t->header && !t->counted;
        return QKV_OK;
    }
    if (*label == QKV_NO_COLUMN && *text == QKV_NO_COLUMN && !t->header) {
        *label = *pair == 0;
        *text = *label + 1 + (*pair == *label + 1);
        if (r->spec->second == QKV_SECOND_MUST && *pair == QKV_NO_COLUMN && s->width > 2) *pair = 2;
        t->rest = *pair == QKV_NO_COLUMN;
        t->strict |= !t->rest;
        return QKV_OK;
    }
    if (s->width == 2 && *pair == QKV_NO_COLUMN &&
        (*label == QKV_NO_COLUMN) != (*text == QKV_NO_COLUMN)) {
        *(*label == QKV_NO_COLUMN ? label : text) = 1 - (*label == QKV_NO_COLUMN ? *text : *label);
        return QKV_OK;
    }
    return ask(r, s,
               *text != QKV_NO_COLUMN    ? "which column has the labels?"
               : *label != QKV_NO_COLUMN ? "which column has the texts?"
                                         : "which columns have labels and texts?");
}

/* The column of which most rows have a number, at least half of them; the first of those alike.
 * *alike says how many those are. */
static int column_of_numbers(const qkv_table_sample *s, const qkv_table_columns *t, int *alike) {
    int best = QKV_NO_COLUMN, most = 0;
    *alike = 0;
    for (int c = 0; c < s->looked; c++) {
        const int n = is_taken(t, c) ? 0 : numbers_in(s, c, t->header);
        if (n == 0 || 2 * n < s->rows - t->header || n < most) continue;
        *alike = n > most ? 1 : *alike + 1;
        if (n > most) best = c, most = n;
    }
    return best;
}

/* Which column has the numbers is told by what is in it; a text is what stands beside it. */
static qkv_status place_rated(const qkv_reader *r, const qkv_table_sample *s,
                              qkv_table_columns *t) {
    int *label = &t->column[QKV_ROLE_LABEL], *text = &t->column[QKV_ROLE_TEXT],
        *pair = &t->column[QKV_ROLE_PAIR], alike;
    const bool none = *label == QKV_NO_COLUMN && *text == QKV_NO_COLUMN && *pair == QKV_NO_COLUMN;
    if (*label == QKV_NO_COLUMN) {
        const int found = column_of_numbers(s, t, &alike);
        if (alike > 1 && t->header) return ask(r, s, "which column has the numbers?");
        /* no row has one: let the first say so */
        *label = found != QKV_NO_COLUMN ? found : *text == 0 ? 1 : 0;
    }
    if (*text != QKV_NO_COLUMN) return QKV_OK;
    if (s->width == 2 && *pair == QKV_NO_COLUMN) {
        *text = 1 - *label;
        t->rest = none && !t->header && *label == 0;
    } else if (none && !t->header && *label == 0) {
        const bool pairs = r->spec->second == QKV_SECOND_MUST ||
                           (r->spec->second == QKV_SECOND_MAY && s->even && s->width == 3);
        *text = 1;
        if (pairs && s->width > 2) *pair = 2;
        t->rest = *pair == QKV_NO_COLUMN;
        t->strict |= !t->rest;
    } else {
        return ask(r, s, "which column has the texts?");
    }
    return QKV_OK;
}

static qkv_status place_parallel(const qkv_reader *r, const qkv_table_sample *s,
                                 qkv_table_columns *t) {
    int *text = &t->column[QKV_ROLE_TEXT], *pair = &t->column[QKV_ROLE_PAIR];
    t->column[QKV_ROLE_LABEL] = QKV_NO_COLUMN;
    if (*text != QKV_NO_COLUMN && *pair != QKV_NO_COLUMN) return QKV_OK;
    if (*text == QKV_NO_COLUMN && *pair == QKV_NO_COLUMN) {
        *text = 0, *pair = 1;
        return QKV_OK;
    }
    if (s->width != 2)
        return ask(r, s,
                   *text == QKV_NO_COLUMN ? "which column has the sources?"
                                          : "which column has the targets?");
    *(*text == QKV_NO_COLUMN ? text : pair) = 1 - (*text == QKV_NO_COLUMN ? *pair : *text);
    return QKV_OK;
}

static qkv_status place_lines(const qkv_reader *r, const qkv_table_sample *s,
                              qkv_table_columns *t) {
    int *text = &t->column[QKV_ROLE_TEXT];
    t->column[QKV_ROLE_LABEL] = t->column[QKV_ROLE_PAIR] = QKV_NO_COLUMN;
    if (*text == QKV_NO_COLUMN && s->width == 1) *text = 0;
    return *text == QKV_NO_COLUMN ? ask(r, s, "which column has the texts?") : QKV_OK;
}

/* ---- the whole ---- */

static qkv_status note(const qkv_reader *r, const qkv_table_sample *s, const qkv_table_columns *t) {
    qkv_reading *reading = r->reading;
    reading->header = t->header;
    reading->counted = t->counted;
    reading->rest = t->rest;
    for (int role = 0; role < QKV_ROLES; role++) {
        const int c = t->column[role];
        if (c == QKV_NO_COLUMN) continue;
        reading->used[role].number = (size_t)c + 1;
        if (t->header) reading->used[role].name = s->head[c];
    }
    qkv_text *names = qkv_zalloc((size_t)s->width + 1, sizeof *names);
    if (!names) return QKV_FAILED;
    for (int c = 0; c < s->width && !t->rest; c++)
        if (!is_taken(t, c))
            names[reading->n_unused++] = t->header ? s->head[c] : (qkv_text){"", 0};
    const qkv_status status = t->header ? qkv_name_list(&r->corpus->strings, names,
                                                        reading->n_unused, 6, &reading->unused)
                                        : QKV_OK;
    qkv_free(names);
    return status;
}

qkv_status qkv_table_choose(const qkv_reader *r, const qkv_table_sample *s,
                            qkv_table_columns *out) {
    const qkv_corpus_shape shape = r->spec->shape;
    bool wished = false;
    *out = (qkv_table_columns){.column = {QKV_NO_COLUMN, QKV_NO_COLUMN, QKV_NO_COLUMN}};
    QKV_TRY(take_wishes(r, s, out, &out->header));
    for (int role = 0; role < QKV_ROLES; role++) wished |= r->spec->column[role] != NULL;
    if (!out->header) out->header = names_suffice(r, s, out);
    if (!out->header && shape == QKV_CORPUS_LABELLED) QKV_TRY(looks_headed(s, &out->header));
    if (!out->header && shape == QKV_CORPUS_RATED) out->header = heads_any_numbers(s);
    if (out->header) take_names(r, s, out);
    out->strict = out->header || wished;
    QKV_TRY(shape == QKV_CORPUS_LABELLED   ? place_labelled(r, s, out)
            : shape == QKV_CORPUS_RATED    ? place_rated(r, s, out)
            : shape == QKV_CORPUS_PARALLEL ? place_parallel(r, s, out)
                                           : place_lines(r, s, out));
    out->strict |= out->counted;
    return note(r, s, out);
}
