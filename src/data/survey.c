/* Texts are told apart by 64 bits of hash. */
#include "data/survey.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "data/duplicates.h"
#include "data/lines.h"
#include "text/unicode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void qkv_survey_free(qkv_survey *s) {
    qkv_free(s->classes);
    qkv_free(s->alike.at);
    *s = (qkv_survey){0};
}

/* ---- rows ---- */

typedef struct seen {
    uint64_t hash; /* 0: free */
    int32_t label;
    float value;
} seen;

static seen *place_of(seen *table, size_t mask, uint64_t hash) {
    size_t i = (size_t)hash & mask;
    while (table[i].hash && table[i].hash != hash) i = (i + 1) & mask;
    return &table[i];
}

static qkv_status count_texts(const qkv_corpus *c, qkv_survey *s) {
    const size_t n = c->n < QKV_COMPARED ? c->n : QKV_COMPARED;
    size_t mask = 63;
    seen *table;
    while (mask < n + n / 2) mask = 2 * mask + 1;
    QKV_TRY_ALLOC(table = qkv_zalloc(mask + 1, sizeof *table));
    for (size_t i = 0; i < n; i++) {
        const uint64_t hash = qkv_row_hash(&c->rows[i]);
        seen *at = place_of(table, mask, hash);
        s->doubled += at->hash != 0;
        const qkv_row *row = &c->rows[i];
        s->disputed += at->hash && (at->label != row->label || at->value != row->value);
        if (!at->hash) *at = (seen){hash, row->label, row->value};
    }
    s->texts = s->rows - s->doubled;
    qkv_free(table);
    return QKV_OK;
}

/* ---- classes ---- */

static int largest_first(const void *a, const void *b) {
    const qkv_class_count *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->name, y->name);
}

static qkv_status count_classes(const qkv_corpus *c, qkv_survey *s) {
    s->n_classes = c->labels.n;
    QKV_TRY_ALLOC(s->classes = qkv_zalloc((size_t)s->n_classes + 1, sizeof *s->classes));
    for (int32_t k = 0; k < s->n_classes; k++) s->classes[k].name = c->labels.names[k];
    for (size_t i = 0; i < c->n; i++) {
        const qkv_row *row = &c->rows[i];
        /* where the classes are another corpus's, there may be others: they are none */
        if (row->label >= 0 && row->label < s->n_classes) s->classes[row->label].n++;
        for (size_t k = 0; k < row->n_labels; k++)
            if (row->labels[k] >= 0 && row->labels[k] < s->n_classes)
                s->classes[row->labels[k]].n++;
        s->labels += (int64_t)row->n_labels;
        s->unlabelled += c->several && row->n_labels == 0;
    }
    for (int32_t k = 0; k < s->n_classes; k++) s->n_rare += s->classes[k].n < QKV_RARE;
    if (s->n_classes) qsort(s->classes, (size_t)s->n_classes, sizeof *s->classes, largest_first);
    return QKV_OK;
}

static void count_numbers(const qkv_corpus *c, qkv_survey *s) {
    double square = 0;
    s->least = s->most = (double)c->rows[0].value;
    for (size_t i = 0; i < c->n; i++) {
        const double x = (double)c->rows[i].value;
        s->least = fmin(s->least, x);
        s->most = fmax(s->most, x);
        s->mean += x;
    }
    s->mean /= (double)c->n;
    for (size_t i = 0; i < c->n; i++)
        square += pow((double)c->rows[i].value - s->mean, 2) / (double)c->n;
    s->deviation = sqrt(square);
}

/* A label without blanks, in lower case. */
static qkv_status fold(const char *name, qkv_buf *out) {
    const size_t n = strlen(name);
    qkv_buf_clear(out);
    for (size_t i = 0; i < n;) {
        int32_t cp, lower[2];
        const size_t begin = i;
        i += (size_t)qkv_utf8_decode(name + i, n - i, &cp);
        if (qkv_unicode_class(cp) & QKV_U_SPACE) continue;
        if (cp < 0) {
            qkv_buf_putc(out, name[begin]);
            continue;
        }
        const int parts = qkv_unicode_lower(cp, lower);
        for (int k = 0; k < parts; k++) {
            char bytes[4];
            qkv_buf_add(out, bytes, (size_t)qkv_utf8_encode(lower[k], bytes));
        }
    }
    return out->status;
}

/* In the order of the labels' bytes. */
static qkv_status find_alike(const qkv_corpus *c, qkv_survey *s) {
    qkv_labels folded = {0};
    qkv_buf name = {0};
    qkv_status status = QKV_OK;
    QKV_VEC(const char *) first = {0};
    for (int32_t k = 0; k < c->labels.n && status == QKV_OK; k++) {
        const int32_t before = folded.n;
        status = fold(c->labels.names[k], &name);
        if (status != QKV_OK) break;
        const int32_t number = qkv_labels_add(&folded, name.data ? name.data : "", name.len);
        bool ok = number >= 0;
        if (ok && number == before)
            ok = QKV_PUSH(first, c->labels.names[k]);
        else if (ok)
            ok = QKV_PUSH(s->alike, ((qkv_alike){first.at[number], c->labels.names[k]}));
        if (!ok) status = QKV_FAILED;
    }
    qkv_labels_free(&folded);
    qkv_free(first.at);
    qkv_buf_free(&name);
    return status;
}

qkv_status qkv_survey_make(const qkv_corpus *c, qkv_survey *s) {
    *s = (qkv_survey){.rows = (int64_t)c->n, .empty = c->n_empty};
    qkv_status status = c->shape == QKV_CORPUS_STREAM ? QKV_OK : count_texts(c, s);
    const bool labelled = c->shape == QKV_CORPUS_LABELLED;
    if (c->shape == QKV_CORPUS_RATED) count_numbers(c, s);
    if (status == QKV_OK && labelled) status = count_classes(c, s);
    if (status == QKV_OK && labelled) status = find_alike(c, s);
    if (status != QKV_OK) qkv_survey_free(s);
    return status;
}

double qkv_survey_imbalance(const qkv_survey *s) {
    if (s->n_classes < 2) return 0;
    const double share = (double)s->classes[0].n / (double)s->rows;
    return share > 0.5 + 0.5 / s->n_classes ? share : 0;
}

/* ---- what is refused ---- */

/* A column as it is given to an option. */
static void put_column(qkv_buf *out, const qkv_column_name *c) {
    if (!c->name.data)
        qkv_buf_printf(out, "%zu", c->number);
    else if (memchr(c->name.data, ' ', c->name.len))
        qkv_buf_printf(out, "\"%.*s\"", (int)c->name.len, c->name.data);
    else
        qkv_buf_printf(out, "%.*s", (int)c->name.len, c->name.data);
}

/* How to name other columns: "--text 1 --label 2" where they changed places; nothing where the form
 * has no columns. */
static void advise(const qkv_corpus *c, bool swapped, qkv_buf *out) {
    const qkv_reading *s = c->readings.n ? &c->readings.at[0] : NULL;
    if (!s || !(s->separator || s->header)) return;
    const qkv_column_name *text = &s->used[QKV_ROLE_TEXT], *label = &s->used[QKV_ROLE_LABEL];
    if (swapped) {
        qkv_buf_puts(out, ". If label and text changed places: --text ");
        put_column(out, label->name.data || label->number ? label : text);
        qkv_buf_puts(out, " --label ");
        put_column(out, text);
        return;
    }
    qkv_buf_puts(out, ". Say which columns: --text N --label N (names or numbers)");
    if (s->n_unused && s->unused.len)
        qkv_buf_printf(out, "; not used so far: %.*s", (int)s->unused.len, s->unused.data);
}

/* "a text that goes on and …" */
static void put_short(qkv_buf *out, const char *text) {
    const bool cut = strlen(text) > 50;
    const size_t n = cut ? qkv_utf8_start(text, 48) : strlen(text);
    qkv_buf_printf(out, "\"%.*s%s\"", (int)n, text, cut ? "…" : "");
}

/* Labels most of which have something between their parts may be lists. */
static void advise_separator(const qkv_survey *s, qkv_buf *out) {
    for (const char *c = ";|,"; *c; c++) {
        int32_t n = 0;
        for (int32_t k = 0; k < s->n_classes; k++) n += strchr(s->classes[k].name, *c) != NULL;
        if (2 * n <= s->n_classes) continue;
        qkv_buf_printf(out, ". If a row has several labels: --labels-separator \"%c\"", *c);
        return;
    }
}

static qkv_status refuse(const qkv_corpus *c, bool swapped, qkv_buf *why) {
    advise(c, swapped, why);
    qkv_status status = why->status;
    if (status == QKV_OK)
        status =
            qkv_fail(QKV_BAD_FILE, "%s: %s",
                     c->readings.n ? qkv_text_name(c->readings.at[0].path) : "rows", why->data);
    qkv_buf_free(why);
    return status;
}

qkv_status qkv_survey_check(const qkv_corpus *c, const qkv_survey *s) {
    enum { FEW = 4, SOME = 20 };
    const int64_t rows = s->rows, classes = s->n_classes;
    qkv_buf why = {0};
    if (c->shape == QKV_CORPUS_RATED && s->least == s->most) {
        qkv_buf_printf(&why, "all rows have the same number, %g: there is nothing to learn",
                       s->least);
        return refuse(c, false, &why);
    }
    if (c->shape != QKV_CORPUS_LABELLED || c->several) return QKV_OK;
    if (classes < 2) {
        qkv_buf_puts(&why, "all rows have the same label");
        if (classes) qkv_buf_puts(&why, ", "), put_short(&why, s->classes[0].name);
        qkv_buf_puts(&why, "; a classifier needs two");
        return refuse(c, false, &why);
    }
    if (rows >= FEW && 2 * s->texts <= classes && 4 * s->texts <= rows) {
        qkv_buf_printf(&why, "%lld different labels, such as ", (long long)classes);
        put_short(&why, s->classes[0].name);
        qkv_buf_printf(&why, ", but only %lld different texts: the texts look like labels",
                       (long long)s->texts);
        return refuse(c, true, &why);
    }
    if (rows >= FEW && (classes == rows || (rows >= SOME && 2 * classes > rows))) {
        qkv_buf_printf(&why, "%lld different labels in %lld rows, such as ", (long long)classes,
                       (long long)rows);
        put_short(&why, s->classes[0].name);
        qkv_buf_printf(&why, ": %s as rows",
                       classes == rows ? "as many labels" : "nearly as many labels");
        advise_separator(s, &why);
        return refuse(c, 4 * s->texts <= rows, &why);
    }
    return QKV_OK;
}
