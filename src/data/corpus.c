/* Reading: the table of forms, recognition, and the forms that are lines. */
#include "data/corpus.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "data/lines.h"

#include <string.h>

enum { PIECE = 1 << 16 }; /* bytes of a piece of running text, about */

void qkv_corpus_free(qkv_corpus *c) {
    for (size_t i = 0; i < c->n_files; i++) qkv_file_close(&c->files[i]);
    qkv_free(c->rows);
    qkv_labels_free(&c->labels);
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

static bool is_blank(qkv_text t) {
    for (size_t i = 0; i < t.len; i++)
        if (!strchr(" \t\r\n", t.data[i])) return false;
    return true;
}

/* The number of a row's label; −1 after an error. */
static int32_t label_number(qkv_reader *r, qkv_text label, int64_t line) {
    if (is_blank(label)) {
        qkv_fail(QKV_BAD_FILE, "%s, line %lld: the label is empty", r->path, (long long)line);
        return -1;
    }
    if (!r->spec->labels) return qkv_labels_add(&r->corpus->labels, label.data, label.len);
    const int32_t known = qkv_labels_find(r->spec->labels, label.data, label.len);
    if (known < 0)
        qkv_fail(QKV_BAD_FILE,
                 "%s, line %lld: the label \"%.*s\" does not occur in the training data", r->path,
                 (long long)line, (int)(label.len < 60 ? label.len : 60), label.data);
    return known;
}

qkv_status qkv_reader_add(qkv_reader *r, qkv_text label, qkv_text text, qkv_text second,
                          int64_t line) {
    qkv_corpus *c = r->corpus;
    const bool parallel = r->spec->shape == QKV_CORPUS_PARALLEL;
    if (is_blank(text) || (parallel && is_blank(second))) {
        c->n_empty++;
        return QKV_OK;
    }
    qkv_row row = {.text = text, .second = second, .label = -1, .line = line};
    if (r->spec->shape == QKV_CORPUS_LABELLED && (row.label = label_number(r, label, line)) < 0)
        return r->spec->labels || is_blank(label) ? QKV_BAD_FILE : QKV_FAILED;
    if (!qkv_vec_grow((void **)&c->rows, c->n, &c->cap, sizeof *c->rows)) return QKV_FAILED;
    c->rows[c->n++] = row;
    return QKV_OK;
}

char qkv_column_role(qkv_corpus_shape shape, const char *name, size_t len) {
    typedef struct role {
        char role;
        const char *names;
    } role;
    static const role labelled[] = {
        {'l', " label class category sentiment intent target y "},
        {'t', " text sentence review content comment question description sentence1 premise "},
        {'s', " text_pair sentence2 hypothesis "},
        {0, NULL},
    };
    static const role parallel[] = {
        {'t', " source src input "}, {'s', " target tgt output "}, {0, NULL}};
    char word[32];
    if (len + 3 > sizeof word) return 0;
    word[0] = ' ';
    for (size_t i = 0; i < len; i++)
        word[i + 1] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 32) : name[i];
    memcpy(word + len + 1, " ", 2);
    for (const role *k = shape == QKV_CORPUS_PARALLEL ? parallel : labelled; k->names; k++)
        if (strstr(k->names, word)) return k->role;
    return 0;
}

/* ---- forms that are lines ---- */

/* label<TAB>text[<TAB>…]: only the first TAB counts; or source<TAB>target. */
static qkv_status read_tsv(qkv_reader *r) {
    qkv_text line;
    while (qkv_reader_line(r, &line)) {
        if (line.len == 0) {
            r->corpus->n_empty++;
            continue;
        }
        const char *tab = memchr(line.data, '\t', line.len);
        if (!tab)
            return qkv_fail(
                QKV_BAD_FILE, "%s, line %lld: no TAB; wanted %s", r->path, (long long)r->line,
                r->spec->shape == QKV_CORPUS_LABELLED ? "label<TAB>text" : "source<TAB>target");
        const qkv_text first = {line.data, (size_t)(tab - line.data)};
        qkv_text rest = {tab + 1, line.len - first.len - 1};
        if (r->spec->shape == QKV_CORPUS_LABELLED) {
            QKV_TRY(qkv_reader_add(r, first, rest, (qkv_text){0}, r->line));
        } else {
            const char *more = memchr(rest.data, '\t', rest.len); /* further columns: notes */
            if (more) rest.len = (size_t)(more - rest.data);
            QKV_TRY(qkv_reader_add(r, (qkv_text){0}, first, rest, r->line));
        }
    }
    return QKV_OK;
}

/* __label__x text */
static qkv_status read_fasttext(qkv_reader *r) {
    static const char prefix[] = "__label__";
    const size_t n = sizeof prefix - 1;
    qkv_text line;
    while (qkv_reader_line(r, &line)) {
        if (line.len == 0) {
            r->corpus->n_empty++;
            continue;
        }
        if (line.len < n || memcmp(line.data, prefix, n) != 0)
            return qkv_fail(QKV_BAD_FILE, "%s, line %lld: does not begin with __label__", r->path,
                            (long long)r->line);
        size_t end = n;
        while (end < line.len && line.data[end] != ' ' && line.data[end] != '\t') end++;
        const qkv_text label = {line.data + n, end - n};
        while (end < line.len && (line.data[end] == ' ' || line.data[end] == '\t')) end++;
        const qkv_text text = {line.data + end, line.len - end};
        if (text.len >= n && memcmp(text.data, prefix, n) == 0)
            return qkv_fail(QKV_BAD_FILE, "%s, line %lld: two labels; a row may have one", r->path,
                            (long long)r->line);
        QKV_TRY(qkv_reader_add(r, label, text, (qkv_text){0}, r->line));
    }
    return QKV_OK;
}

static qkv_status read_lines(qkv_reader *r) {
    qkv_text line;
    while (qkv_reader_line(r, &line))
        QKV_TRY(qkv_reader_add(r, (qkv_text){0}, line, (qkv_text){0}, r->line));
    return QKV_OK;
}

/* Running text is cut where no tokenizer would join: at a line end between two lines of text. */
static qkv_status read_stream(qkv_reader *r) {
    while (r->at < r->end) {
        const char *from = r->at;
        const int64_t line = r->line + 1;
        qkv_text last;
        do qkv_reader_line(r, &last);
        while (r->at < r->end &&
               (r->at - from < PIECE || last.len == 0 || is_blank((qkv_text){r->at, 1})));
        QKV_TRY(qkv_reader_add(r, (qkv_text){0}, (qkv_text){from, (size_t)(r->at - from)},
                               (qkv_text){0}, line));
    }
    return QKV_OK;
}

/* ---- the table of forms ---- */

#define SHAPE(x) (1u << QKV_CORPUS_##x)

static bool has_ending(const char *path, const char *ending) {
    const size_t n = strlen(path), k = strlen(ending);
    return n >= k && strcmp(path + n - k, ending) == 0;
}

static bool looks_jsonl(const char *path, qkv_text head) {
    return has_ending(path, ".jsonl") || has_ending(path, ".ndjson") ||
           (head.len && head.data[0] == '{');
}

static bool looks_conllu(const char *path, qkv_text head) {
    (void)head;
    return has_ending(path, ".conllu");
}

static bool looks_fasttext(const char *path, qkv_text head) {
    (void)path;
    return head.len > 9 && memcmp(head.data, "__label__", 9) == 0;
}

static bool looks_csv(const char *path, qkv_text head) {
    if (has_ending(path, ".csv")) return true;
    return !has_ending(path, ".tsv") && !memchr(head.data, '\t', head.len) &&
           memchr(head.data, ',', head.len);
}

static bool looks_tsv(const char *path, qkv_text head) {
    return has_ending(path, ".tsv") || memchr(head.data, '\t', head.len);
}

static bool looks_text(const char *path, qkv_text head) {
    (void)path, (void)head;
    return true;
}

/* In the order in which they are tried; a form is tried only for the shapes it can give. */
static const struct form {
    const char *name;
    unsigned shapes;
    bool (*looks)(const char *path, qkv_text head);
    qkv_status (*read)(qkv_reader *r);
} forms[] = {
    {"jsonl", SHAPE(LABELLED) | SHAPE(PARALLEL) | SHAPE(LINES), looks_jsonl, qkv_read_jsonl},
    {"conllu", SHAPE(LABELLED) | SHAPE(LINES), looks_conllu, qkv_read_conllu},
    {"fasttext", SHAPE(LABELLED), looks_fasttext, read_fasttext},
    {"tsv", SHAPE(LABELLED) | SHAPE(PARALLEL), looks_tsv, read_tsv},
    {"csv", SHAPE(LABELLED) | SHAPE(PARALLEL), looks_csv, qkv_read_csv},
    {"text", SHAPE(LINES), looks_text, read_lines},
    {"text", SHAPE(STREAM), looks_text, read_stream},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

static const struct form *recognise(const qkv_corpus_spec *spec, const char *path, qkv_text head) {
    for (size_t i = 0; i < N_FORMS; i++) {
        if (!(forms[i].shapes >> spec->shape & 1)) continue;
        if (spec->format ? strcmp(spec->format, forms[i].name) == 0 : forms[i].looks(path, head))
            return &forms[i];
    }
    return NULL;
}

/* ---- files ---- */

/* Maps a file into the corpus and checks that it is text. */
static qkv_status open_text(qkv_corpus *c, const char *path, qkv_text *out) {
    if (c->n_files == sizeof c->files / sizeof *c->files)
        return qkv_fail(QKV_USAGE, "%s: more than %zu files; join some of them", path, c->n_files);
    QKV_TRY(qkv_text_open(path, &c->files[c->n_files], out));
    c->n_files++;
    return QKV_OK;
}

static qkv_status read_one(qkv_corpus *c, const qkv_corpus_spec *spec, const char *path) {
    qkv_text all, head;
    QKV_TRY(open_text(c, path, &all));
    qkv_reader r = {
        .corpus = c, .spec = spec, .path = path, .at = all.data, .end = all.data + all.len};
    qkv_reader first = r;
    while (qkv_reader_line(&first, &head) && head.len == 0) {}
    if (all.len == 0) return qkv_fail(QKV_BAD_FILE, "%s: the file is empty", path);
    const struct form *form = recognise(spec, path, head);
    if (!form)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: not recognised; rows may be label<TAB>text, __label__x text, CSV or "
                        "JSON lines (--format insists on one)",
                        path);
    c->format = form->name;
    return form->read(&r);
}

/* Two files, line by line. */
static qkv_status read_two(qkv_corpus *c, const qkv_corpus_spec *spec) {
    qkv_text all[2], line[2];
    qkv_reader r[2];
    for (int i = 0; i < 2; i++) {
        QKV_TRY(open_text(c, spec->paths[i], &all[i]));
        r[i] = (qkv_reader){.corpus = c,
                            .spec = spec,
                            .path = spec->paths[i],
                            .at = all[i].data,
                            .end = all[i].data + all[i].len};
    }
    c->format = "parallel lines";
    for (;;) {
        const bool a = qkv_reader_line(&r[0], &line[0]), b = qkv_reader_line(&r[1], &line[1]);
        if (a != b) {
            while (qkv_reader_line(&r[a ? 0 : 1], &line[0])) {}
            return qkv_fail(QKV_BAD_FILE,
                            "%s has %lld lines and %s has %lld; line n of one must be the "
                            "translation of line n of the other",
                            spec->paths[0], (long long)r[0].line, spec->paths[1],
                            (long long)r[1].line);
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
    for (size_t i = 0; status == QKV_OK && i < c->n; i++) c->rows[i].label = map[c->rows[i].label];
    qkv_free(map);
    return status;
}

static qkv_status read_all(qkv_corpus *c, const qkv_corpus_spec *spec) {
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
    return spec->shape == QKV_CORPUS_LABELLED && !spec->labels ? sort_labels(c) : QKV_OK;
}

qkv_status qkv_corpus_read(qkv_corpus *c, const qkv_corpus_spec *spec) {
    *c = (qkv_corpus){.shape = spec->shape};
    qkv_arena_init(&c->strings);
    qkv_status status = read_all(c, spec);
    if (status != QKV_OK) qkv_corpus_free(c);
    return status;
}
