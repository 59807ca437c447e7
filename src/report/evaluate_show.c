/* What was counted, as a table for people or as a JSON object. */
#include "report/likeness.h"
#include "report/show.h"
#include "draw/text_table.h"

#include <math.h>
#include <string.h>

enum { MOST_COLUMNS = 10 /* classes up to which the table of answers is shown */, WIDTH = 80 };

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
    if (e->confusion)
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

static qkv_status classes_table(const char *what, const qkv_class_score *rows, size_t n,
                                qkv_buf *out) {
    const char *const head[] = {what, "precision", "recall", "F1", "rows"};
    qkv_table t = qkv_table_begin("lrrrr");
    for (size_t i = 0; i < 5; i++) qkv_table_cell(&t, "%s", head[i]);
    for (size_t k = 0; k < n; k++) {
        const qkv_class_score r = rows[k];
        qkv_table_cell(&t, "%s", r.label);
        qkv_table_cell(&t, "%.4f", r.precision);
        qkv_table_cell(&t, "%.4f", r.recall);
        qkv_table_cell(&t, "%.4f", r.f1);
        qkv_table_cell(&t, "%lld", (long long)r.support);
    }
    const qkv_status status = qkv_table_print(&t, (qkv_ink){.columns = WIDTH}, out);
    qkv_table_free(&t);
    return status;
}

/* What fits of a label above a column of numbers. */
static void put_short(qkv_table *t, const char *label, int columns) {
    qkv_buf text = {0};
    const int width = qkv_text_width(label, strlen(label));
    qkv_text_fit(&text, label, strlen(label), width < columns ? width : columns, false);
    qkv_table_cell(t, "%s", text.data ? text.data : "");
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

static void table(const void *result, qkv_buf *out) {
    const qkv_evaluation *e = result;
    if (e->left_out || e->cut)
        qkv_buf_printf(out, "rows: %lld, %lld left out as empty, %lld cut to the longest text\n",
                       (long long)e->examples, (long long)e->left_out, (long long)e->cut);
    if (!isnan(e->mse)) {
        qkv_buf_printf(out, "mse %.6g   mae %.6g   pearson %.4f   spearman %.4f   (%lld rows)\n",
                       e->mse, e->mae, e->pearson, e->spearman, (long long)e->targets);
        return;
    }
    if (!e->confusion) {
        qkv_buf_printf(out,
                       "loss %.4f nats   perplexity %.3f   bits per byte %.4f   (%lld tokens)\n",
                       e->loss, e->perplexity, e->bits_per_byte, (long long)e->targets);
        if (e->translation) qkv_translation_score_table(e->translation, out);
        return;
    }
    qkv_buf_printf(out, "accuracy %.2f %%   macro F1 %.4f   loss %.4f   (%lld of %lld right)\n\n",
                   100 * e->accuracy, e->macro_f1, e->loss, (long long)e->right,
                   (long long)e->targets);
    if (e->types)
        qkv_buf_printf(out, "spans: F1 %.4f   precision %.4f   recall %.4f\n\n", e->span_f1,
                       e->span_precision, e->span_recall);
    qkv_status status = classes_table(e->types ? "type" : "class", e->types ? e->types : e->classes,
                                      e->types ? e->n_types : e->n_classes, out);
    if (status == QKV_OK && !e->types && e->n_classes <= MOST_COLUMNS)
        status = confusion_table(e, out);
    if (status != QKV_OK) out->status = status;
}

qkv_status qkv_evaluation_show(const qkv_evaluation *e, qkv_show how, char **text) {
    return qkv_show_result(e, &(qkv_wording){table, members}, how, text);
}
