/* What was counted, as a table for people, as a JSON object, or as a picture. */
#include "report/evaluate.h"
#include "report/show.h"
#include "base/mem.h"
#include "draw/text_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 80,        /* columns of what is shown */
    MOST_CLASSES = 30, /* that are all shown; of more the worst */
    WORST = 15,
    MOST_COLUMNS = 10, /* classes up to which the table of answers is shown */
    CONFUSED = 10      /* pairs of classes named where there are more */
};

/* ---- JSON ---- */

typedef struct number {
    const char *key;
    double value;
} number;

static void put_numbers(qkv_json_out *j, const number *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        qkv_json_put_key(j, rows[i].key);
        qkv_json_put_real(j, rows[i].value, 9);
    }
}

static void rows_json(const char *key, const qkv_class_score *rows, size_t n, qkv_json_out *j) {
    qkv_json_put_key(j, key);
    qkv_json_open(j, '{');
    for (size_t k = 0; k < n; k++) {
        const qkv_class_score r = rows[k];
        qkv_json_put_key(j, r.label);
        qkv_json_open(j, '{');
        put_numbers(j,
                    (const number[]){{"precision", r.precision},
                                     {"recall", r.recall},
                                     {"f1", r.f1},
                                     {"support", (double)r.support}},
                    4);
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, '}');
}

static void classes_json(const qkv_evaluation *e, qkv_json_out *j) {
    rows_json("classes", e->classes, e->n_classes, j);
    put_numbers(j, (const number[]){{"macro_f1", e->macro_f1}}, 1);
    if (e->several) {
        put_numbers(j,
                    (const number[]){{"micro_precision", e->micro_precision},
                                     {"micro_recall", e->micro_recall},
                                     {"micro_f1", e->micro_f1},
                                     {"exact_match", e->accuracy}},
                    4);
        return;
    }
    qkv_json_put_key(j, "confusion");
    qkv_json_open(j, '[');
    for (size_t k = 0; k < e->n_classes; k++) {
        qkv_json_open(j, '[');
        for (size_t i = 0; i < e->n_classes; i++)
            qkv_json_put_int(j, e->confusion[k * e->n_classes + i]);
        qkv_json_close(j, ']');
    }
    qkv_json_close(j, ']');
}

static void put_interval(qkv_json_out *j, const char *key, qkv_interval i) {
    if (isnan(i.mean)) return;
    qkv_json_put_key(j, key);
    qkv_json_open(j, '[');
    qkv_json_put_real(j, i.low, 9);
    qkv_json_put_real(j, i.high, 9);
    qkv_json_close(j, ']');
}

static void labels_json(const qkv_evaluation *e, qkv_json_out *j) {
    qkv_put_count(j, "unknown", e->unknown);
    qkv_json_put_key(j, "unknown_labels");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < e->n_unknown_labels; i++) qkv_json_put_text(j, e->unknown_labels[i]);
    qkv_json_close(j, ']');
    qkv_json_put_key(j, "mistaken");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < e->n_mistaken; i++) {
        qkv_json_open(j, '{');
        qkv_put_text(j, "truth", e->mistaken[i].truth);
        qkv_put_text(j, "answer", e->mistaken[i].answer);
        qkv_put_count(j, "n", e->mistaken[i].n);
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
    if (!isnan(e->ece)) qkv_put_real(j, "ece", e->ece, 9);
    if (e->n_bins == 0) return;
    qkv_json_put_key(j, "calibration");
    qkv_json_open(j, '[');
    for (size_t k = 0; k < e->n_bins; k++) {
        qkv_json_open(j, '{');
        qkv_put_count(j, "n", e->bins[k].n);
        qkv_put_real(j, "confidence", e->bins[k].confidence, 9);
        qkv_put_real(j, "accuracy", e->bins[k].accuracy, 9);
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
}

static void errors_json(const qkv_evaluation *e, qkv_json_out *j) {
    qkv_json_put_key(j, "errors");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < e->n_errors; i++) {
        const qkv_wrong_answer *w = &e->errors[i];
        qkv_json_open(j, '{');
        qkv_put_text(j, "file", w->file);
        qkv_put_count(j, "line", w->line);
        qkv_json_put_key(j, "text");
        qkv_json_put_string(j, w->text.data, w->text.len);
        if (w->end - w->begin < w->text.len) {
            qkv_put_count(j, "begin", (int64_t)w->begin);
            qkv_put_count(j, "end", (int64_t)w->end);
        }
        qkv_put_text(j, "truth", w->truth);
        qkv_put_text(j, "answer", w->answer);
        if (isnan(w->score)) {
            qkv_put_real(j, "p_truth", w->p_truth, 6);
            qkv_put_real(j, "p_answer", w->p_answer, 6);
        } else {
            qkv_put_real(j, "chrf", w->score, 6);
        }
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
}

static void lengths_json(const qkv_evaluation *e, qkv_json_out *j) {
    qkv_json_put_key(j, "lengths");
    qkv_json_open(j, '[');
    for (size_t k = 0; k < e->n_lengths; k++) {
        const qkv_length_score *l = &e->lengths[k];
        qkv_json_open(j, '{');
        qkv_put_count(j, "length", l->length);
        qkv_put_count(j, "targets", l->targets);
        qkv_put_real(j, "loss", l->loss, 9);
        qkv_put_real(j, "perplexity", l->perplexity, 9);
        qkv_put_real(j, "bits_per_byte", l->bits_per_byte, 9);
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
}

static void members(const void *result, qkv_json_out *j) {
    const qkv_evaluation *e = result;
    qkv_put_text(j, "task", e->task);
    put_numbers(j,
                (const number[]){{"examples", (double)e->examples},
                                 {"left_out", (double)e->left_out},
                                 {"cut", (double)e->cut},
                                 {"targets", (double)e->targets},
                                 {"loss", e->loss},
                                 {"accuracy", e->accuracy}},
                isnan(e->accuracy) ? 5 : 6);
    put_interval(j, "accuracy_interval", e->accuracy_interval);
    put_interval(j, "macro_f1_interval", e->macro_f1_interval);
    put_interval(j, "span_f1_interval", e->span_f1_interval);
    put_interval(j, "mse_interval", e->mse_interval);
    put_interval(j, "pearson_interval", e->pearson_interval);
    put_interval(j, "spearman_interval", e->spearman_interval);
    if (e->samples && !e->translation) qkv_put_count(j, "samples", e->samples);
    if (e->confusion) labels_json(e, j);
    if (e->n_errors) errors_json(e, j);
    if (e->n_lengths) lengths_json(e, j);
    if (e->classes)
        classes_json(e, j);
    else if (!isnan(e->mse))
        put_numbers(j,
                    (const number[]){{"mse", e->mse},
                                     {"mae", e->mae},
                                     {"pearson", e->pearson},
                                     {"spearman", e->spearman}},
                    4);
    else
        put_numbers(j,
                    (const number[]){{"perplexity", e->perplexity},
                                     {"bits_per_byte", e->bits_per_byte},
                                     {"bytes", (double)e->bytes}},
                    3);
    if (e->types) {
        rows_json("spans", e->types, e->n_types, j);
        put_numbers(j,
                    (const number[]){{"span_precision", e->span_precision},
                                     {"span_recall", e->span_recall},
                                     {"span_f1", e->span_f1}},
                    3);
    }
    if (e->translation) qkv_translation_score_json(e->translation, j);
}

/* ---- tables ---- */

static int by_f1(const void *a, const void *b) {
    const qkv_class_score *x = *(const qkv_class_score *const *)a,
                          *y = *(const qkv_class_score *const *)b;
    if (x->f1 != y->f1) return x->f1 < y->f1 ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* All classes; of very many those with the lowest F1 (JSON has all). */
static qkv_status classes_table(const char *what, const qkv_class_score *rows, size_t n,
                                qkv_buf *out) {
    const char *const head[] = {what, "precision", "recall", "F1", "rows"};
    const size_t shown = n > MOST_CLASSES ? WORST : n;
    const qkv_class_score **order = qkv_alloc((n + 1) * sizeof *order);
    if (!order) return QKV_FAILED;
    for (size_t k = 0; k < n; k++) order[k] = &rows[k];
    if (shown < n) {
        qsort(order, n, sizeof *order, by_f1);
        qkv_buf_printf(out, "the %zu of %zu with the lowest F1 (--json has all)\n", shown, n);
    }
    qkv_table t = qkv_table_begin("lrrrr");
    for (size_t i = 0; i < 5; i++) qkv_table_cell(&t, "%s", head[i]);
    for (size_t k = 0; k < shown; k++) {
        const qkv_class_score r = *order[k];
        qkv_table_cell(&t, "%s", r.label);
        qkv_table_cell(&t, "%.4f", r.precision);
        qkv_table_cell(&t, "%.4f", r.recall);
        qkv_table_cell(&t, "%.4f", r.f1);
        qkv_table_cell(&t, "%lld", (long long)r.support);
    }
    const qkv_status status = qkv_table_print(&t, (qkv_ink){.columns = WIDTH}, out);
    qkv_table_free(&t);
    qkv_free(order);
    return status;
}

/* What fits of a label above a column of numbers. */
static void put_short(qkv_table *t, const char *label, int columns) {
    qkv_buf text = {0};
    const int width = qkv_text_width(label, strlen(label));
    qkv_text_fit(&text, label, strlen(label), width < columns ? width : columns, false);
    qkv_table_cell(t, "%s", text.data ? text.data : "");
    if (text.status != QKV_OK) t->status = text.status;
    qkv_buf_free(&text);
}

/* Rows are the true classes, columns the answers. */
static qkv_status confusion_table(const qkv_evaluation *e, qkv_buf *out) {
    enum { CORNER = 15, LEAST = 4 };
    const int room = (WIDTH - CORNER) / (int)e->n_classes - 2;
    char align[MOST_COLUMNS + 2] = "l";
    for (size_t k = 0; k < e->n_classes; k++) align[k + 1] = 'r';
    qkv_table t = qkv_table_begin(align);
    qkv_table_cell(&t, "true \\ answered");
    for (size_t k = 0; k < e->n_classes; k++)
        put_short(&t, e->classes[k].label, room < LEAST ? LEAST : room);
    for (size_t k = 0; k < e->n_classes; k++) {
        put_short(&t, e->classes[k].label, CORNER);
        for (size_t i = 0; i < e->n_classes; i++)
            qkv_table_cell(&t, "%lld", (long long)e->confusion[k * e->n_classes + i]);
    }
    qkv_buf_putc(out, '\n');
    const qkv_status status = qkv_table_print(&t, (qkv_ink){.columns = WIDTH}, out);
    qkv_table_free(&t);
    return status;
}

static qkv_status mistaken_table(const qkv_evaluation *e, qkv_buf *out) {
    if (e->n_mistaken == 0) return QKV_OK;
    qkv_table t = qkv_table_begin("llr");
    qkv_table_cell(&t, "most confused: true");
    qkv_table_cell(&t, "answered");
    qkv_table_cell(&t, "times");
    for (size_t i = 0; i < e->n_mistaken && i < CONFUSED; i++) {
        qkv_table_cell(&t, "%s", e->mistaken[i].truth);
        qkv_table_cell(&t, "%s", e->mistaken[i].answer);
        qkv_table_cell(&t, "%lld", (long long)e->mistaken[i].n);
    }
    qkv_buf_putc(out, '\n');
    const qkv_status status = qkv_table_print(&t, (qkv_ink){.columns = WIDTH}, out);
    qkv_table_free(&t);
    return status;
}

/* ---- what went wrong ---- */

/* A label, as much as leaves room for others in a line. */
static void put_label(const char *label, qkv_buf *out) {
    enum { MOST = 20 };
    const size_t len = strlen(label);
    if (qkv_text_width(label, len) <= MOST)
        qkv_buf_add(out, label, len);
    else
        qkv_text_fit(out, label, len, MOST, false);
}

static void put_unknown(const qkv_evaluation *e, qkv_buf *out) {
    enum { NAMED = 3 };
    if (e->unknown == 0) return;
    qkv_buf_printf(out, "labels that the model does not know, counted as wrong: %lld\n    ",
                   (long long)e->unknown);
    for (size_t i = 0; i < e->n_unknown_labels && i < NAMED; i++) {
        qkv_buf_puts(out, i ? ", \"" : "\"");
        put_label(e->unknown_labels[i], out);
        qkv_buf_putc(out, '"');
    }
    if (e->n_unknown_labels > NAMED)
        qkv_buf_printf(out, " and %zu more", e->n_unknown_labels - NAMED);
    qkv_buf_printf(out, "\nwithout them: accuracy %.2f %%\n",
                   100 * (double)e->right / (double)(e->targets - e->unknown));
}

/* A text on one line of the terminal, as much as fits; what would act on it is a blank. */
static void put_line(qkv_buf *out, const char *text, size_t len, int columns) {
    qkv_buf shown = {0};
    qkv_buf_add(&shown, text, len);
    for (size_t i = 0; shown.status == QKV_OK && i < shown.len; i++)
        if ((unsigned char)shown.data[i] < ' ') shown.data[i] = ' ';
    if (qkv_text_width(shown.len ? shown.data : "", shown.len) <= columns)
        qkv_buf_add(out, shown.len ? shown.data : "", shown.len);
    else
        qkv_text_fit(out, shown.data, shown.len, columns, false);
    qkv_buf_putc(out, '\n');
    if (shown.status != QKV_OK) out->status = shown.status;
    qkv_buf_free(&shown);
}

/* The word between brackets, with as much of the text as fits before and behind. */
static void put_word(qkv_buf *out, const qkv_wrong_answer *w) {
    enum { BEFORE = 30 };
    size_t from = w->begin > BEFORE ? w->begin - BEFORE : 0;
    while (from && from < w->begin && w->text.data[from - 1] != ' ') from++;
    qkv_buf line = {0};
    qkv_buf_printf(&line, "%s%.*s[%.*s]%.*s", from ? "… " : "", (int)(w->begin - from),
                   w->text.data + from, (int)(w->end - w->begin), w->text.data + w->begin,
                   (int)(w->text.len - w->end), w->text.data + w->end);
    put_line(out, line.len ? line.data : "", line.len, WIDTH - 4);
    if (line.status != QKV_OK) out->status = line.status;
    qkv_buf_free(&line);
}

static void put_error(const qkv_wrong_answer *w, bool files, qkv_buf *out) {
    if (files) qkv_buf_printf(out, "%s, ", w->file);
    if (!isnan(w->score)) {
        qkv_buf_printf(out, "line %lld: chrF2 %.1f\n    ", (long long)w->line, w->score);
        put_line(out, w->text.data, w->text.len, WIDTH - 4);
        qkv_buf_puts(out, "  wrote ");
        put_line(out, w->answer, strlen(w->answer), WIDTH - 8);
        qkv_buf_puts(out, "  right ");
        put_line(out, w->truth, strlen(w->truth), WIDTH - 8);
        return;
    }
    qkv_buf_printf(out, "line %lld: ", (long long)w->line);
    put_label(w->answer, out);
    if (!isnan(w->p_answer)) qkv_buf_printf(out, " %.4f", w->p_answer);
    qkv_buf_puts(out, ", but it is ");
    put_label(w->truth, out);
    if (!isnan(w->p_truth)) qkv_buf_printf(out, " %.4f", w->p_truth);
    qkv_buf_puts(out, "\n    ");
    if (w->end - w->begin < w->text.len)
        put_word(out, w);
    else
        put_line(out, w->text.data, w->text.len, WIDTH - 4);
}

static void put_errors(const qkv_evaluation *e, qkv_buf *out) {
    if (e->n_errors) qkv_buf_printf(out, "\nthe worst answers\n");
    for (size_t i = 0; i < e->n_errors; i++) put_error(&e->errors[i], e->n_files > 1, out);
}

/* ---- the whole ---- */

static void put_lengths(const qkv_evaluation *e, qkv_buf *out) {
    if (e->n_lengths == 0) return;
    qkv_table t = qkv_table_begin("rrrr");
    const char *const head[] = {"window", "loss", "perplexity", "bits per byte"};
    for (size_t i = 0; i < 4; i++) qkv_table_cell(&t, "%s", head[i]);
    for (size_t k = 0; k < e->n_lengths; k++) {
        qkv_table_cell(&t, "%lld", (long long)e->lengths[k].length);
        qkv_table_cell(&t, "%.4f", e->lengths[k].loss);
        qkv_table_cell(&t, "%.3f", e->lengths[k].perplexity);
        qkv_table_cell(&t, "%.4f", e->lengths[k].bits_per_byte);
    }
    qkv_buf_putc(out, '\n');
    const qkv_status status = qkv_table_print(&t, (qkv_ink){.columns = WIDTH}, out);
    qkv_table_free(&t);
    if (status != QKV_OK) out->status = status;
}

static void put_intervals(const qkv_evaluation *e, qkv_buf *out) {
    if (e->samples) {
        qkv_buf_printf(out, "95 %% interval: accuracy %.2f to %.2f %%   macro F1 %.4f to %.4f",
                       100 * e->accuracy_interval.low, 100 * e->accuracy_interval.high,
                       e->macro_f1_interval.low, e->macro_f1_interval.high);
        if (e->types)
            qkv_buf_printf(out, "\n               spans F1 %.4f to %.4f", e->span_f1_interval.low,
                           e->span_f1_interval.high);
        qkv_buf_putc(out, '\n');
    }
    if (!isnan(e->ece)) qkv_buf_printf(out, "calibration error (ECE) %.4f\n", e->ece);
}

static void table(const void *result, qkv_buf *out) {
    const qkv_evaluation *e = result;
    if (e->left_out || e->cut)
        qkv_buf_printf(out, "rows: %lld, %lld left out as empty, %lld cut to the longest text\n",
                       (long long)e->examples, (long long)e->left_out, (long long)e->cut);
    if (!isnan(e->mse)) {
        qkv_buf_printf(out, "mse %.6g   mae %.6g   pearson %.4f   spearman %.4f   (%lld rows)\n",
                       e->mse, e->mae, e->pearson, e->spearman, (long long)e->targets);
        if (e->samples)
            qkv_buf_printf(out,
                           "95 %% interval: mse %.6g to %.6g   pearson %.4f to %.4f\n"
                           "               spearman %.4f to %.4f\n",
                           e->mse_interval.low, e->mse_interval.high, e->pearson_interval.low,
                           e->pearson_interval.high, e->spearman_interval.low,
                           e->spearman_interval.high);
        put_errors(e, out);
        return;
    }
    if (!e->classes) {
        qkv_buf_printf(out,
                       "loss %.4f nats   perplexity %.3f   bits per byte %.4f   (%lld tokens)\n",
                       e->loss, e->perplexity, e->bits_per_byte, (long long)e->targets);
        if (e->translation) qkv_translation_score_table(e->translation, out);
        put_lengths(e, out);
        put_errors(e, out);
        return;
    }
    if (e->several)
        qkv_buf_printf(out, "micro F1 %.4f   precision %.4f   recall %.4f   macro F1 %.4f\n",
                       e->micro_f1, e->micro_precision, e->micro_recall, e->macro_f1);
    qkv_buf_printf(out, e->several ? "exact match %.2f %%" : "accuracy %.2f %%", 100 * e->accuracy);
    if (!e->several) qkv_buf_printf(out, "   macro F1 %.4f", e->macro_f1);
    qkv_buf_printf(out, "   loss %.4f   (%lld of %lld right)\n", e->loss, (long long)e->right,
                   (long long)e->targets);
    put_intervals(e, out);
    put_unknown(e, out);
    qkv_buf_putc(out, '\n');
    if (e->types)
        qkv_buf_printf(out, "spans: F1 %.4f   precision %.4f   recall %.4f\n\n", e->span_f1,
                       e->span_precision, e->span_recall);
    qkv_status status = classes_table(e->types ? "type" : "class", e->types ? e->types : e->classes,
                                      e->types ? e->n_types : e->n_classes, out);
    if (status == QKV_OK && !e->types && !e->several)
        status = (e->n_classes <= MOST_COLUMNS ? confusion_table : mistaken_table)(e, out);
    if (status != QKV_OK) out->status = status;
    if (e->n_bins) qkv_reliability_terminal(e, out);
    put_errors(e, out);
}

qkv_status qkv_evaluation_show(const qkv_evaluation *e, qkv_show how, char **text) {
    qkv_buf out = {0};
    if (how != QKV_SHOW_SVG) return qkv_show_result(e, &(qkv_wording){table, members}, how, text);
    return qkv_show_end(qkv_reliability_svg(e, &out), &out, text);
}
