/* What was understood of the data, in lines of at most 80 columns, before anything is trained: how
 * each file was read, rows and classes, a row as a sample, and what to beware of. */
#include "run/train_run.h"
#include "base/mem.h"
#include "data/lines.h"
#include "data/survey.h"
#include "model/description.h"
#include "text/unicode.h"

#include <string.h>

enum {
    LABEL = 10,  /* columns of what stands before the text of a line: "read      " */
    WIDTH = 80,  /* columns of a line */
    SHOWN = 30,  /* columns of a label, a name */
    SAMPLE = 64, /* of the sample's text */
    CLASSES = 10
};

/* ---- text that fits ---- */

/* Columns that a character takes in a terminal. */
static int columns_of(int32_t cp) {
    static const struct {
        int32_t from, to;
    } wide[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
                {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
    if (cp < 0x300) return 1;
    if (qkv_unicode_is_mark(cp) || cp == 0x200D) return 0;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (cp >= wide[i].from && cp <= wide[i].to) return 2;
    return 1;
}

/* Adds a text of the data: what would act on a terminal is a blank, what is too wide is cut. */
static void put_shown(qkv_buf *out, qkv_text text, int most) {
    int columns = 0;
    size_t fits = out->len; /* up to where there is room for the mark of a cut */
    for (size_t i = 0; i < text.len;) {
        int32_t cp;
        const int n = qkv_utf8_decode(text.data + i, text.len - i, &cp);
        if (cp < ' ' || (cp >= 0x7F && cp < 0xA0)) cp = ' ';
        columns += columns_of(cp);
        if (columns > most) {
            out->len = fits;
            qkv_buf_puts(out, "…");
            return;
        }
        char bytes[4];
        qkv_buf_add(out, bytes, (size_t)qkv_utf8_encode(cp, bytes));
        if (columns < most) fits = out->len;
        i += (size_t)n;
    }
}

/* A path; of one that is long for the terminal the end, from a folder on. */
static void put_path(const qkv_run *r, qkv_buf *out, const char *path) {
    enum { MOST = 44 };
    const int columns = r->request->columns;
    const size_t room = columns && columns < 80 ? (size_t)columns / 2 : MOST;
    const char *from = path;
    while (qkv_utf8_count(from, strlen(from)) > room && strchr(from + 1, '/'))
        from = strchr(from + 1, '/');
    if (from > path) qkv_buf_puts(out, "…");
    put_shown(out, (qkv_text){from, strlen(from)}, MOST);
}

static qkv_text text_of(const char *text) {
    return (qkv_text){text, strlen(text)};
}

/* Bytes of the text that fit into a line: up to its last blank, where there is one. */
static size_t line_len(const char *text) {
    int columns = 0;
    size_t blank = 0, i = 0;
    const size_t len = strlen(text);
    while (i < len) {
        int32_t cp;
        const int n = qkv_utf8_decode(text + i, len - i, &cp);
        columns += columns_of(cp);
        if (columns > WIDTH - LABEL) return blank ? blank : i;
        if (cp == ' ') blank = i;
        i += (size_t)n;
    }
    return len;
}

/* Says a text in lines, the first behind `label`. Takes the text. */
static qkv_status say(qkv_run *r, const char *label, qkv_buf *text) {
    qkv_status status = text->status;
    for (const char *at = text->len ? text->data : ""; *at && status == QKV_OK;) {
        const size_t n = line_len(at);
        status = qkv_run_note(r, "%-*s%.*s", LABEL, label, (int)n, at);
        at += n + (at[n] == ' ');
        label = "";
    }
    qkv_buf_free(text);
    return status;
}

static void put_count(qkv_buf *out, int64_t n) {
    char text[40];
    qkv_print_grouped((double)n, text);
    qkv_buf_puts(out, text);
}

/* ---- how it was read ---- */

static const char *form_of(const qkv_reading *s) {
    static const char *const names[][2] = {{"tsv", "TSV"},
                                           {"csv", "CSV"},
                                           {"jsonl", "JSON lines"},
                                           {"json", "a JSON list"},
                                           {"conllu", "CoNLL-U"},
                                           {"fasttext", "fastText's form"},
                                           {"folder", "one folder per class"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(s->format, names[i][0]) == 0) return names[i][1];
    return s->format;
}

static void put_separator(const qkv_reading *s, qkv_buf *out) {
    if (s->separator == '\t' && strcmp(s->format, "tsv") != 0)
        qkv_buf_puts(out, " with TABs");
    else if (s->separator && !strchr(",\t", s->separator))
        qkv_buf_printf(out, " with \"%c\"", s->separator);
}

static void put_column(qkv_buf *out, const char *role, const qkv_column_name *c, bool rest) {
    qkv_buf_printf(out, "%s%s: ", out->len ? "; " : "", role);
    if (rest) {
        qkv_buf_puts(out, "the rest");
    } else if (c->name.data) {
        qkv_buf_putc(out, '"');
        put_shown(out, c->name, SHOWN);
        qkv_buf_putc(out, '"');
    }
    if (c->number && !rest)
        qkv_buf_printf(out, c->name.data ? " (column %zu)" : "column %zu", c->number);
}

static void put_columns(const qkv_corpus *c, const qkv_reading *s, qkv_buf *out) {
    static const char *const labelled[QKV_ROLES] = {"label", "text", "pair"},
                             *const rated[QKV_ROLES] = {"number", "text", "pair"},
                             *const parallel[QKV_ROLES] = {"label", "source", "target"};
    const char *const *roles = c->shape == QKV_CORPUS_PARALLEL ? parallel
                               : c->shape == QKV_CORPUS_RATED  ? rated
                                                               : labelled;
    if (s->separator)
        qkv_buf_puts(out, s->header ? "named in the first row" : "no names in the first row");
    for (int k = 0; k < QKV_ROLES; k++)
        if (s->used[k].name.data || s->used[k].number) {
            put_column(out, roles[k], &s->used[k], k == QKV_ROLE_TEXT && s->rest);
            if (s->counted && k == QKV_ROLE_LABEL) qkv_buf_puts(out, ", told by counting");
        }
}

/* What was left aside: columns, keys, folders. */
static void put_unused(const qkv_reading *s, qkv_buf *out) {
    if (s->n_unused && s->unused.len)
        qkv_buf_printf(out, "not used: %.*s", (int)s->unused.len, s->unused.data);
    else if (s->n_unused)
        qkv_buf_printf(out, "not used: %zu other column%s", s->n_unused,
                       s->n_unused == 1 ? "" : "s");
    if (s->left_out.len)
        qkv_buf_printf(out, "left out, as texts without labels: %.*s", (int)s->left_out.len,
                       s->left_out.data);
}

static bool same_text(qkv_text a, qkv_text b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool read_alike(const qkv_reading *a, const qkv_reading *b) {
    bool alike = strcmp(a->format, b->format) == 0 && a->separator == b->separator &&
                 a->header == b->header && a->rest == b->rest && a->packed == b->packed &&
                 same_text(a->unused, b->unused) && same_text(a->left_out, b->left_out);
    for (int k = 0; k < QKV_ROLES; k++)
        alike = alike && a->used[k].number == b->used[k].number &&
                same_text(a->used[k].name, b->used[k].name);
    return alike;
}

/* How `n` files of a corpus were read, of which this is the first; they are for `what`. */
static qkv_status say_reading(qkv_run *r, const qkv_corpus *c, size_t first, size_t n,
                              const char *what) {
    const qkv_reading *s = &c->readings.at[first];
    qkv_buf form = {0}, columns = {0}, unused = {0};
    put_path(r, &form, qkv_text_name(s->path));
    if (n > 1) qkv_buf_printf(&form, " and %zu more", n - 1);
    qkv_buf_printf(&form, ": %s", form_of(s));
    put_separator(s, &form);
    if (s->packed) qkv_buf_printf(&form, ", packed with %s", s->packed);
    put_columns(c, s, &columns);
    put_unused(s, &unused);
    qkv_status status = say(r, what, &form);
    const qkv_status second = say(r, "", &columns), third = say(r, "", &unused);
    return status != QKV_OK ? status : second != QKV_OK ? second : third;
}

/* Files that were read alike share their lines. */
static qkv_status say_readings(qkv_run *r, const qkv_corpus *c, const char *what) {
    for (size_t i = 0, n; i < c->readings.n; i += n) {
        const qkv_reading *s = &c->readings.at[i];
        for (n = 1; i + n < c->readings.n && read_alike(s, s + n);) n++;
        QKV_TRY(say_reading(r, c, i, n, what));
    }
    return QKV_OK;
}

/* ---- what is in it ---- */

static qkv_status say_rows(qkv_run *r, const qkv_survey *s, const char *what) {
    qkv_buf line = {0};
    put_count(&line, s->rows);
    qkv_buf_puts(&line, "; ");
    put_count(&line, s->empty);
    qkv_buf_puts(&line, " without text left out, ");
    put_count(&line, s->doubled);
    qkv_buf_puts(&line, " double");
    if (s->disputed) {
        qkv_buf_puts(&line, ", ");
        put_count(&line, s->disputed);
        qkv_buf_puts(&line, r->corpus.shape == QKV_CORPUS_RATED ? " of them with another number"
                                                                : " of them with another label");
    }
    return say(r, what, &line);
}

static void put_quoted(qkv_buf *out, qkv_text text, int most) {
    qkv_buf_putc(out, '"');
    put_shown(out, text, most);
    qkv_buf_putc(out, '"');
}

/* Blanks at its ends would not be seen. */
static void put_class(qkv_buf *out, const qkv_class_count *c) {
    const qkv_text name = text_of(c->name);
    if (name.data[0] == ' ' || name.data[name.len - 1] == ' ')
        put_quoted(out, name, SHOWN);
    else
        put_shown(out, name, SHOWN);
    qkv_buf_putc(out, ' ');
    put_count(out, c->n);
}

static qkv_status say_lists(qkv_run *r, const qkv_survey *s) {
    qkv_buf line = {0};
    qkv_buf_printf(&line, "several labels a row: %.2f on average",
                   (double)s->labels / (double)s->rows);
    if (s->unlabelled) {
        qkv_buf_puts(&line, "; ");
        put_count(&line, s->unlabelled);
        qkv_buf_puts(&line, s->unlabelled == 1 ? " row without any" : " rows without any");
    }
    return say(r, "labels", &line);
}

static qkv_status say_classes(qkv_run *r, const qkv_survey *s) {
    qkv_buf line = {0};
    put_count(&line, s->n_classes);
    for (int32_t k = 0; k < s->n_classes && k < CLASSES; k++) {
        qkv_buf_puts(&line, k ? ", " : ": ");
        put_class(&line, &s->classes[k]);
    }
    if (s->n_classes > CLASSES) {
        qkv_buf_puts(&line, " and ");
        put_count(&line, s->n_classes - CLASSES);
        qkv_buf_puts(&line, " more, down to ");
        put_class(&line, &s->classes[s->n_classes - 1]);
    }
    return say(r, "classes", &line);
}

static qkv_status say_numbers(qkv_run *r, const qkv_survey *s) {
    qkv_buf line = {0};
    qkv_buf_printf(&line, "%.6g to %.6g, mean %.4g, standard deviation %.4g", s->least, s->most,
                   s->mean, s->deviation);
    return say(r, "numbers", &line);
}

static qkv_status say_sample(qkv_run *r) {
    const qkv_corpus *c = &r->corpus;
    const qkv_row *row = &c->rows[0];
    qkv_buf line = {0};
    if (row->label >= 0) {
        put_shown(&line, text_of(c->labels.names[row->label]), SHOWN);
        qkv_buf_puts(&line, ": ");
    }
    for (size_t k = 0; k < row->n_labels; k++) {
        if (k) qkv_buf_puts(&line, ", ");
        put_shown(&line, text_of(c->labels.names[row->labels[k]]), SHOWN);
    }
    if (c->several) qkv_buf_puts(&line, row->n_labels ? ": " : "no label: ");
    if (c->shape == QKV_CORPUS_RATED) qkv_buf_printf(&line, "%.6g: ", (double)row->value);
    put_quoted(&line, row->text, row->second.data ? SAMPLE / 2 : SAMPLE);
    if (row->second.data) {
        qkv_buf_puts(&line, c->shape == QKV_CORPUS_PARALLEL ? " → " : " and ");
        put_quoted(&line, row->second, SAMPLE / 2);
    }
    return say(r, "first", &line);
}

/* ---- what to beware of ---- */

static qkv_status warn_rare(qkv_run *r, const qkv_survey *s) {
    enum { NAMED = 5 };
    qkv_buf line = {0};
    if (!s->n_rare) return QKV_OK;
    qkv_buf_printf(&line, "%d %s fewer than %d rows, too few to learn from: ", s->n_rare,
                   s->n_rare == 1 ? "class has" : "classes have", QKV_RARE);
    for (int32_t k = 0; k < s->n_rare && k < NAMED; k++) {
        if (k) qkv_buf_puts(&line, ", ");
        put_class(&line, &s->classes[s->n_classes - 1 - k]);
    }
    if (s->n_rare > NAMED) qkv_buf_printf(&line, " and %d more", s->n_rare - NAMED);
    return say(r, "warning", &line);
}

static qkv_status warn_imbalance(qkv_run *r, const qkv_survey *s) {
    const double share = qkv_survey_imbalance(s);
    qkv_buf line = {0};
    if (share == 0) return QKV_OK;
    qkv_buf_puts(&line, "always answering ");
    put_quoted(&line, text_of(s->classes[0].name), SHOWN);
    qkv_buf_printf(&line,
                   " would be right in %.1f %% of the rows: judge by macro F1; --class-weights "
                   "balanced counts each class alike",
                   100 * share);
    return say(r, "warning", &line);
}

static qkv_status warn_alike(qkv_run *r, const qkv_survey *s) {
    enum { NAMED = 3 };
    qkv_buf line = {0};
    if (!s->alike.n) return QKV_OK;
    qkv_buf_puts(&line, "labels that differ only by blanks or case are classes of their own: ");
    for (size_t i = 0; i < s->alike.n && i < NAMED; i++) {
        if (i) qkv_buf_puts(&line, ", ");
        put_quoted(&line, text_of(s->alike.at[i].a), SHOWN);
        qkv_buf_puts(&line, " and ");
        put_quoted(&line, text_of(s->alike.at[i].b), SHOWN);
    }
    if (s->alike.n > NAMED) qkv_buf_printf(&line, " and %zu more", s->alike.n - NAMED);
    return say(r, "warning", &line);
}

static qkv_status say_all(qkv_run *r, const qkv_survey *s) {
    const qkv_corpus *c = &r->corpus;
    QKV_TRY(say_readings(r, c, "read"));
    if (c->shape == QKV_CORPUS_STREAM) return QKV_OK;
    QKV_TRY(say_rows(r, s, "rows"));
    if (c->several) QKV_TRY(say_lists(r, s));
    if (c->shape == QKV_CORPUS_LABELLED) QKV_TRY(say_classes(r, s));
    if (c->shape == QKV_CORPUS_RATED) QKV_TRY(say_numbers(r, s));
    QKV_TRY(say_sample(r));
    QKV_TRY(qkv_survey_check(c, s));
    if (c->shape != QKV_CORPUS_LABELLED) return QKV_OK;
    QKV_TRY(warn_rare(r, s));
    if (!c->several) QKV_TRY(warn_imbalance(r, s));
    return warn_alike(r, s);
}

qkv_status qkv_run_understood(qkv_run *r) {
    qkv_survey s;
    QKV_TRY(qkv_survey_make(&r->corpus, &s));
    const qkv_status status = say_all(r, &s);
    qkv_survey_free(&s);
    return status;
}

/* ---- what is validated on ---- */

/* Classes that no row has, since nothing is then known of them. */
static qkv_status say_missing(qkv_run *r) {
    enum { NAMED = 5 };
    const qkv_corpus *c = &r->valid_corpus;
    const qkv_labels *labels = &r->corpus.labels;
    qkv_buf line = {0};
    int32_t missing = 0;
    bool *has;
    if (c->shape != QKV_CORPUS_LABELLED) return QKV_OK;
    QKV_TRY_ALLOC(has = qkv_zalloc((size_t)labels->n + 1, sizeof *has));
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].label >= 0) has[c->rows[i].label] = true;
    for (int32_t k = 0; k < labels->n; k++) {
        if (has[k]) continue;
        if (missing++ < NAMED) {
            qkv_buf_puts(&line, missing > 1 ? ", " : "no row of ");
            put_quoted(&line, text_of(labels->names[k]), SHOWN);
        }
    }
    if (missing > NAMED) qkv_buf_printf(&line, " and %d more classes", missing - NAMED);
    qkv_free(has);
    return say(r, "", &line);
}

qkv_status qkv_run_understood_valid(qkv_run *r) {
    qkv_survey s;
    QKV_TRY(say_readings(r, &r->valid_corpus, "valid"));
    if (r->valid_corpus.shape == QKV_CORPUS_STREAM) return QKV_OK;
    QKV_TRY(qkv_survey_make(&r->valid_corpus, &s));
    const qkv_status status = say_rows(r, &s, "");
    qkv_survey_free(&s);
    return status == QKV_OK ? say_missing(r) : status;
}
