/* Reading: the table of forms, recognition, and the forms that are lines. */
#include "data/corpus.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/unpack.h"
#include "base/utf8.h"
#include "data/lines.h"
#include "data/row_truth.h"

#include <string.h>

enum { PIECE = 1 << 16 }; /* bytes of a piece of running text, about */

void qkv_corpus_free(qkv_corpus *c) {
    for (size_t i = 0; i < c->files.n; i++) qkv_file_close(&c->files.at[i]);
    qkv_free(c->files.at);
    qkv_free(c->readings.at);
    qkv_free(c->rows);
    qkv_labels_free(&c->labels);
    qkv_labels_free(&c->unknown);
    qkv_arena_free(&c->strings);
    qkv_trees_free(&c->trees);
    *c = (qkv_corpus){0};
}

/* ---- rows ---- */

bool qkv_reader_line(qkv_reader *r, qkv_text *line) {
    qkv_text rest = {r->at, (size_t)(r->end - r->at)};
    if (!qkv_text_line(&rest, line)) return false;
    r->at = rest.data;
    r->line++;
    return true;
}

qkv_status qkv_reader_blame(const qkv_reader *r, qkv_status status) {
    const size_t n = strlen(r->path);
    const bool named =
        strncmp(qkv_error(), r->path, n) == 0 && strncmp(qkv_error() + n, ", line ", 7) == 0;
    return status == QKV_OK || named
               ? status
               : qkv_fail_in(status, "%s, line %lld", r->path, (long long)r->line);
}

static bool is_blank(qkv_text t) {
    for (size_t i = 0; i < t.len; i++)
        if (!strchr(" \t\r\n", t.data[i])) return false;
    return true;
}

qkv_status qkv_reader_label(qkv_reader *r, qkv_text label, int64_t line, int32_t *number) {
    const qkv_corpus_spec *spec = r->spec;
    *number = -1;
    if (is_blank(label))
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: the label is empty", r->path,
                        (long long)line);
    if (memchr(label.data, 0, label.len))
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: a zero byte in the label", r->path,
                        (long long)line);
    if (!spec->labels) {
        *number = qkv_labels_add(&r->corpus->labels, label.data, label.len);
        return *number < 0 ? QKV_FAILED : QKV_OK;
    }
    *number = qkv_labels_find(spec->labels, label.data, label.len);
    if (*number >= 0) return QKV_OK;
    if (!spec->pass_unknown && spec->shape != QKV_CORPUS_TAGGED)
        return qkv_fail(
            QKV_BAD_FILE, "%s, line %lld: the label \"%.*s\" does not occur in the training data",
            r->path, (long long)line, (int)(label.len < 60 ? label.len : 60), label.data);
    return qkv_labels_add(&r->corpus->unknown, label.data, label.len) < 0 ? QKV_FAILED : QKV_OK;
}

static qkv_status push(qkv_corpus *c, const qkv_row *row) {
    if (!qkv_vec_grow((void **)&c->rows, c->n, &c->cap, sizeof *c->rows)) return QKV_FAILED;
    c->rows[c->n++] = *row;
    return QKV_OK;
}

qkv_status qkv_reader_add_list(qkv_reader *r, qkv_text labels, qkv_text separator, qkv_text text,
                               qkv_text second, int64_t line) {
    qkv_row row = {.text = text, .second = second, .label = -1, .line = line};
    if (is_blank(text)) {
        r->corpus->n_empty++;
        return QKV_OK;
    }
    QKV_TRY(qkv_row_labels(r, labels, separator, &row));
    return push(r->corpus, &row);
}

qkv_status qkv_reader_add(qkv_reader *r, qkv_text label, qkv_text text, qkv_text second,
                          int64_t line) {
    qkv_corpus *c = r->corpus;
    const bool parallel = r->spec->shape == QKV_CORPUS_PARALLEL;
    if (r->spec->shape == QKV_CORPUS_LABELLED && r->spec->between)
        return qkv_reader_add_list(r, label, (qkv_text){r->spec->between, strlen(r->spec->between)},
                                   text, second, line);
    if (is_blank(text) || (parallel && is_blank(second))) {
        c->n_empty++;
        return QKV_OK;
    }
    qkv_row row = {.text = text, .second = second, .label = -1, .line = line};
    if (r->spec->shape == QKV_CORPUS_RATED && !qkv_row_number(label, &row.value))
        return qkv_row_no_number(r, label, line);
    if (r->spec->shape == QKV_CORPUS_LABELLED)
        QKV_TRY(qkv_reader_label(r, label, line, &row.label));
    if (!qkv_vec_grow((void **)&c->rows, c->n, &c->cap, sizeof *c->rows)) return QKV_FAILED;
    c->rows[c->n++] = row;
    return QKV_OK;
}

qkv_status qkv_reader_add_words(qkv_reader *r, qkv_text text, qkv_text_words words, int64_t line) {
    qkv_corpus *c = r->corpus;
    qkv_text_word *own = qkv_arena_alloc(&c->strings, words.n * sizeof *own);
    const char *copy = qkv_arena_strndup(&c->strings, text.data, text.len);
    if (!own || !copy) return QKV_FAILED;
    if (text.len >= UINT32_MAX)
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: a sentence of %zu bytes", r->path,
                        (long long)line, text.len);
    memcpy(own, words.at, words.n * sizeof *own);
    if (!qkv_vec_grow((void **)&c->rows, c->n, &c->cap, sizeof *c->rows)) return QKV_FAILED;
    c->rows[c->n++] =
        (qkv_row){.text = {copy, text.len}, .label = -1, .words = {own, words.n}, .line = line};
    return QKV_OK;
}

/* ---- forms that are lines ---- */

static qkv_status read_lines(qkv_reader *r) {
    qkv_text line;
    while (qkv_reader_line(r, &line))
        QKV_TRY(qkv_reader_add(r, (qkv_text){0}, line, (qkv_text){0}, r->line));
    return QKV_OK;
}

/* A piece as lines that end in LF alone: a copy where one ends in CR LF. */
static qkv_status plain_ends(qkv_reader *r, qkv_text *piece) {
    if (!memchr(piece->data, '\r', piece->len)) return QKV_OK;
    char *copy = qkv_arena_alloc(&r->corpus->strings, piece->len), *to = copy;
    if (!copy) return QKV_FAILED;
    for (size_t i = 0; i < piece->len; i++)
        if (piece->data[i] != '\r' || i + 1 == piece->len || piece->data[i + 1] != '\n')
            *to++ = piece->data[i];
    *piece = (qkv_text){copy, (size_t)(to - copy)};
    return QKV_OK;
}

/* Running text is cut where no tokenizer would join: at a line end between two lines of text. */
static qkv_status read_stream(qkv_reader *r) {
    while (r->at < r->end) {
        const char *from = r->at;
        const int64_t line = r->line + 1;
        size_t len = 0; /* with ends of one byte */
        qkv_text last;
        do {
            qkv_reader_line(r, &last);
            len += last.len + 1;
        } while (r->at < r->end &&
                 (len < PIECE || last.len == 0 || is_blank((qkv_text){r->at, 1})));
        qkv_text piece = {from, (size_t)(r->at - from)};
        QKV_TRY(plain_ends(r, &piece));
        QKV_TRY(qkv_reader_add(r, (qkv_text){0}, piece, (qkv_text){0}, line));
    }
    return QKV_OK;
}

/* ---- the table of forms ---- */

#define SHAPE(x) (1u << QKV_CORPUS_##x)

/* Does the name end so? That of the packed file counts. */
static bool has_ending(const char *path, const char *ending) {
    const size_t n = qkv_unpacked_name(path), k = strlen(ending);
    return n >= k && memcmp(path + n - k, ending, k) == 0;
}

/* A list of objects. */
static bool looks_json(const char *path, qkv_text head) {
    (void)path;
    size_t i = 1;
    if (head.len == 0 || head.data[0] != '[') return false;
    while (i < head.len && (head.data[i] == ' ' || head.data[i] == '\t')) i++;
    return i == head.len || head.data[i] == '{' || head.data[i] == ']' || has_ending(path, ".json");
}

static bool looks_jsonl(const char *path, qkv_text head) {
    return has_ending(path, ".jsonl") || has_ending(path, ".ndjson") || has_ending(path, ".json") ||
           (head.len && head.data[0] == '{');
}

static bool looks_conllu(const char *path, qkv_text head) {
    (void)head;
    return has_ending(path, ".conllu");
}

/* Where words have labels, a file of ten columns is CoNLL-U whatever its name. */
static bool looks_tagged_conllu(const char *path, qkv_text head) {
    size_t tabs = 0;
    for (size_t i = 0; i < head.len; i++) tabs += head.data[i] == '\t';
    return looks_conllu(path, head) || tabs == 9 ||
           (head.len > 1 && memcmp(head.data, "# ", 2) == 0);
}

static bool looks_fasttext(const char *path, qkv_text head) {
    (void)path;
    return head.len > 9 && memcmp(head.data, "__label__", 9) == 0;
}

static bool looks_csv(const char *path, qkv_text head) {
    if (has_ending(path, ".csv")) return true;
    return !has_ending(path, ".tsv") && !memchr(head.data, '\t', head.len) &&
           (memchr(head.data, ',', head.len) || memchr(head.data, ';', head.len) ||
            memchr(head.data, '|', head.len));
}

static bool looks_tsv(const char *path, qkv_text head) {
    return has_ending(path, ".tsv") || memchr(head.data, '\t', head.len);
}

static bool looks_text(const char *path, qkv_text head) {
    (void)path, (void)head;
    return true;
}

/* A table of lines is one of texts only where somebody says which column has them. */
static bool looks_table(const char *path, qkv_text head) {
    (void)path, (void)head;
    return false;
}

/* In the order in which they are tried; a form is tried only for the shapes it can give. */
static const struct form {
    const char *name;
    unsigned shapes;
    bool columns; /* which can be named */
    bool (*looks)(const char *path, qkv_text head);
    qkv_status (*read)(qkv_reader *r);
} forms[] = {
    {"json", SHAPE(LABELLED) | SHAPE(RATED) | SHAPE(PARALLEL) | SHAPE(LINES), true, looks_json,
     qkv_read_jsonl},
    {"jsonl", SHAPE(LABELLED) | SHAPE(RATED) | SHAPE(PARALLEL) | SHAPE(LINES), true, looks_jsonl,
     qkv_read_jsonl},
    {"conllu", SHAPE(LABELLED) | SHAPE(LINES), false, looks_conllu, qkv_read_conllu},
    {"fasttext", SHAPE(LABELLED), false, looks_fasttext, qkv_read_fasttext},
    {"tsv", SHAPE(LABELLED) | SHAPE(RATED) | SHAPE(PARALLEL), true, looks_tsv, qkv_read_tsv},
    {"csv", SHAPE(LABELLED) | SHAPE(RATED) | SHAPE(PARALLEL), true, looks_csv, qkv_read_csv},
    {"tsv", SHAPE(LINES), true, looks_table, qkv_read_tsv},
    {"csv", SHAPE(LINES), true, looks_table, qkv_read_csv},
    {"jsonl", SHAPE(TAGGED), false, looks_jsonl, qkv_read_tagged_jsonl},
    {"conllu", SHAPE(TAGGED), false, looks_tagged_conllu, qkv_read_tagged_conllu},
    {"conll", SHAPE(TAGGED), false, looks_text, qkv_read_conll},
    {"text", SHAPE(LINES), false, looks_text, read_lines},
    {"text", SHAPE(STREAM), false, looks_text, read_stream},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

/* A form stands in several rows, for several shapes. */
static bool is_repeated(size_t i) {
    for (size_t k = 0; k < i; k++)
        if (strcmp(forms[k].name, forms[i].name) == 0) return true;
    return false;
}

bool qkv_format_row(size_t i, const char **name) {
    for (size_t k = 0; k < N_FORMS; k++)
        if (!is_repeated(k) && i-- == 0) {
            *name = forms[k].name;
            return true;
        }
    return false;
}

/* Lines of a table whose texts are wanted by column: the form is told from what stands between. */
static bool looks_asked(const qkv_corpus_spec *spec, const struct form *f, const char *path,
                        qkv_text head) {
    if (f->looks != looks_table || !spec->column[QKV_ROLE_TEXT]) return f->looks(path, head);
    return f->read == qkv_read_tsv ? looks_tsv(path, head) : looks_csv(path, head);
}

static const struct form *recognise(const qkv_corpus_spec *spec, const char *path, qkv_text head) {
    for (size_t i = 0; i < N_FORMS; i++) {
        if (!(forms[i].shapes >> spec->shape & 1)) continue;
        if (spec->format ? strcmp(spec->format, forms[i].name) == 0
                         : looks_asked(spec, &forms[i], path, head))
            return &forms[i];
    }
    return NULL;
}

/* A format that is insisted on must be one that this shape can have. */
static qkv_status check_format(const qkv_corpus_spec *spec) {
    const char *names[N_FORMS];
    size_t n = 0;
    qkv_buf list = {0};
    for (size_t i = 0; spec->format && i < N_FORMS; i++) {
        if (!(forms[i].shapes >> spec->shape & 1)) continue;
        if (strcmp(forms[i].name, spec->format) == 0) {
            qkv_buf_free(&list);
            return QKV_OK;
        }
        qkv_buf_printf(&list, "%s%s", n ? ", " : "", forms[i].name);
        names[n++] = forms[i].name;
    }
    if (!spec->format) return QKV_OK;
    const char *near = qkv_nearest(spec->format, names, n);
    qkv_status status = list.status;
    if (status == QKV_OK)
        status =
            qkv_fail(QKV_USAGE, "format: there is no \"%.40s\" for this task; %s%s%s%s",
                     spec->format, near ? "did you mean " : "choose one of ",
                     near ? near : list.data, near ? "? There are " : "", near ? list.data : "");
    qkv_buf_free(&list);
    return status;
}

static qkv_status check_columns(const qkv_reader *r, const struct form *form) {
    static const char *const options[QKV_ROLES] = {"label", "text", "pair"};
    for (int k = 0; k < QKV_ROLES && !form->columns; k++)
        if (r->spec->column[k])
            return qkv_fail(QKV_USAGE, "%s: %s=%.60s names a column, but the form \"%s\" has none",
                            r->path, options[k], r->spec->column[k], form->name);
    return QKV_OK;
}

qkv_status qkv_not_recognised(const qkv_reader *r) {
    if (r->at < r->end && *r->at == '<')
        return qkv_fail(QKV_BAD_FILE, "%s: not recognised; it looks like a web page, not data",
                        r->path);
    if (r->spec->shape == QKV_CORPUS_PARALLEL)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: not recognised as pairs of texts; give two files that answer each "
                        "other line by line (--train a.de a.en), or one of source<TAB>target, CSV "
                        "or JSON lines",
                        r->path);
    return qkv_fail(QKV_BAD_FILE,
                    "%s: not recognised; rows may be %s, CSV or JSON lines (--format insists on "
                    "one)",
                    r->path,
                    r->spec->shape == QKV_CORPUS_RATED ? "number<TAB>text"
                                                       : "label<TAB>text, __label__x text");
}

/* ---- files ---- */

/* Begins to read a path: the reader's names and its entry among the readings. */
static qkv_status begin(qkv_corpus *c, const qkv_corpus_spec *spec, const char *path,
                        qkv_reader *r) {
    if (!QKV_PUSH(c->readings, ((qkv_reading){.path = path, .first = c->n}))) return QKV_FAILED;
    *r = (qkv_reader){.corpus = c,
                      .spec = spec,
                      .path = qkv_text_name(path),
                      .reading = &c->readings.at[c->readings.n - 1]};
    return QKV_OK;
}

/* Maps the file into the corpus and checks that it is text. */
static qkv_status open_text(qkv_reader *r) {
    qkv_corpus *c = r->corpus;
    qkv_text all;
    qkv_file file;
    QKV_TRY(qkv_text_open(r->reading->path, &file, &all));
    if (!QKV_PUSH(c->files, file)) {
        qkv_file_close(&file);
        return QKV_FAILED;
    }
    r->reading->packed = file.packed;
    r->at = all.data;
    r->end = all.data + all.len;
    return QKV_OK;
}

static void name_format(qkv_reader *r, const char *format) {
    r->reading->format = r->corpus->format = format;
}

static qkv_status read_folder(qkv_reader *r) {
    if (r->spec->shape != QKV_CORPUS_LABELLED)
        return qkv_fail(
            QKV_USAGE,
            "%s: this is a folder, which only a classifier reads (one folder per class); "
            "give its files",
            r->path);
    if (r->spec->format)
        return qkv_fail(QKV_USAGE, "%s: this is a folder; \"%s\" is a form of files", r->path,
                        r->spec->format);
    QKV_TRY(check_columns(r, &(struct form){.name = "folder"}));
    name_format(r, "folder");
    return qkv_read_folder(r);
}

static qkv_status read_one(qkv_corpus *c, const qkv_corpus_spec *spec, const char *path) {
    qkv_reader r;
    qkv_text head;
    struct stat s;
    QKV_TRY(begin(c, spec, path, &r));
    if (qkv_sys.stat(path, &s) == 0 && S_ISDIR(s.st_mode)) return read_folder(&r);
    QKV_TRY(open_text(&r));
    if (r.at == r.end) return qkv_fail(QKV_BAD_FILE, "%s: the file is empty", r.path);
    qkv_reader first = r;
    while (qkv_reader_line(&first, &head) && head.len == 0) {}
    const struct form *form = recognise(spec, path, head);
    if (!form) return qkv_not_recognised(&r);
    QKV_TRY(check_columns(&r, form));
    name_format(&r, form->name);
    return form->read(&r);
}

/* Two files, line by line. */
static qkv_status read_two(qkv_corpus *c, const qkv_corpus_spec *spec) {
    qkv_text line[2];
    qkv_reader r[2];
    for (int i = 0; i < 2; i++) QKV_TRY(begin(c, spec, spec->paths[i], &r[i]));
    for (int i = 0; i < 2; i++) {
        r[i].reading = &c->readings.at[i];
        QKV_TRY(open_text(&r[i]));
        name_format(&r[i], "parallel lines");
    }
    for (;;) {
        const bool a = qkv_reader_line(&r[0], &line[0]), b = qkv_reader_line(&r[1], &line[1]);
        if (a != b) {
            while (qkv_reader_line(&r[a ? 0 : 1], &line[0])) {}
            return qkv_fail(QKV_BAD_FILE,
                            "%s has %lld lines and %s has %lld; line n of one must be the "
                            "translation of line n of the other",
                            r[0].path, (long long)r[0].line, r[1].path, (long long)r[1].line);
        }
        if (!a) return QKV_OK;
        QKV_TRY(qkv_reader_add(&r[0], (qkv_text){0}, line[0], line[1], r[0].line));
    }
}

/* Rows that the caller has in memory. */
static qkv_status read_rows(qkv_corpus *c, const qkv_corpus_spec *spec) {
    qkv_reader r = {.corpus = c, .spec = spec, .path = "rows"};
    c->format = "rows in memory";
    for (size_t i = 0; i < spec->n_rows; i++) {
        const qkv_train_row *row = &spec->rows[i];
        const qkv_text texts[] = {row->label, row->text, row->second};
        for (int k = 0; k < 3; k++)
            if (texts[k].len && qkv_utf8_valid(texts[k].data, texts[k].len) < texts[k].len)
                return qkv_fail(QKV_BAD_FILE, "row %zu is not UTF-8", i + 1);
        QKV_TRY(qkv_reader_add(&r, row->label, row->text, row->second, (int64_t)i + 1));
    }
    return QKV_OK;
}

/* Numbers labels by their bytes, so that they do not depend on the order of the rows. */
static qkv_status sort_labels(qkv_corpus *c) {
    int32_t *map = qkv_alloc(((size_t)c->labels.n + 1) * sizeof *map);
    if (!map) return QKV_FAILED;
    qkv_status status = qkv_labels_sort(&c->labels, map);
    for (size_t i = 0; status == QKV_OK && i < c->n; i++) {
        qkv_row *row = &c->rows[i];
        if (row->label >= 0) row->label = map[row->label];
        qkv_row_renumber(row, map);
        for (size_t k = 0; k < row->words.n; k++) row->words.at[k].tag = map[row->words.at[k].tag];
    }
    qkv_free(map);
    return status;
}

/* Where one row has a second text, all have: whether it is there must not depend on the row. */
static qkv_status even_pairs(qkv_corpus *c, const qkv_corpus_spec *spec) {
    bool any = false;
    for (size_t i = 0; i < c->n; i++) any |= c->rows[i].second.data != NULL;
    if (!any && spec->second == QKV_SECOND_MUST)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: rows with a second text were to come: name its column (--pair N)",
                        spec->n_paths ? spec->paths[0] : "rows");
    for (size_t i = 0; i < c->n && any; i++)
        if (!c->rows[i].second.data) c->rows[i].second = (qkv_text){"", 0};
    return QKV_OK;
}

static qkv_status read_all(qkv_corpus *c, const qkv_corpus_spec *spec) {
    QKV_TRY(check_format(spec));
    if (spec->trees) QKV_TRY(qkv_trees_read(&c->trees, spec->trees));
    if (spec->rows) {
        QKV_TRY(read_rows(c, spec));
    } else if (spec->shape == QKV_CORPUS_PARALLEL && spec->n_paths == 2) {
        QKV_TRY(read_two(c, spec));
    } else {
        for (size_t i = 0; i < spec->n_paths; i++) QKV_TRY(read_one(c, spec, spec->paths[i]));
    }
    if (c->n == 0)
        return qkv_fail(QKV_BAD_FILE, "%s: no row has text",
                        spec->rows      ? "rows"
                        : spec->n_paths ? spec->paths[0]
                                        : "no file");
    QKV_TRY(even_pairs(c, spec));
    if (c->shape == QKV_CORPUS_LABELLED) QKV_TRY(qkv_rows_settle_labels(c, spec));
    return c->labels.n && !spec->labels ? sort_labels(c) : QKV_OK;
}

qkv_status qkv_corpus_read(qkv_corpus *c, const qkv_corpus_spec *spec) {
    *c = (qkv_corpus){.shape = spec->shape};
    qkv_arena_init(&c->strings);
    qkv_status status = read_all(c, spec);
    if (status != QKV_OK) qkv_corpus_free(c);
    return status;
}
