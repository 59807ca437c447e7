/* What was counted, as a table for people or as a JSON object. */
#include "report/evaluate.h"
#include "draw/table.h"

#include <math.h>

enum { MOST_COLUMNS = 12 }; /* classes up to which the table of answers is shown */

typedef struct class_score {
    double precision, recall, f1;
    int64_t support;
} class_score;

static class_score score_of(const qkv_scores *s, int32_t k) {
    int64_t answered = 0;
    class_score r = {0};
    for (int32_t i = 0; i < s->classes; i++) {
        answered += s->confusion[i * s->classes + k];
        r.support += s->confusion[k * s->classes + i];
    }
    const double right = (double)s->confusion[k * s->classes + k];
    if (answered) r.precision = right / (double)answered;
    if (r.support) r.recall = right / (double)r.support;
    if (right > 0) r.f1 = 2 * r.precision * r.recall / (r.precision + r.recall);
    return r;
}

static double macro_f1(const qkv_scores *s) {
    double sum = 0;
    for (int32_t k = 0; k < s->classes; k++) sum += score_of(s, k).f1;
    return sum / s->classes;
}

static double mean_loss(const qkv_scores *s) {
    return s->loss / (double)s->n_targets;
}

/* Bits for each byte of the original text: the mean loss of a token, times the tokens a byte.
 * (Where only some tokens are guessed, as in mlm, as if all were.) */
static double bits_per_byte(const qkv_scores *s) {
    const int64_t tokens = s->translated ? s->n_targets : s->n_tokens;
    return mean_loss(s) / log(2) * (double)tokens / (double)s->n_bytes;
}

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

static void classes_json(const qkv_text_model *m, const qkv_scores *s, qkv_json_out *j) {
    qkv_json_put_key(j, "classes");
    qkv_json_open(j, '{');
    for (int32_t k = 0; k < s->classes; k++) {
        const class_score r = score_of(s, k);
        qkv_json_put_key(j, m->labels.names[k]);
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
    put_numbers(j, (const number[]){{"macro_f1", macro_f1(s)}}, 1);
    qkv_json_put_key(j, "confusion");
    qkv_json_open(j, '[');
    for (int32_t k = 0; k < s->classes; k++) {
        qkv_json_open(j, '[');
        for (int32_t i = 0; i < s->classes; i++)
            qkv_json_put_int(j, s->confusion[k * s->classes + i]);
        qkv_json_close(j, ']');
    }
    qkv_json_close(j, ']');
}

void qkv_scores_json(const qkv_text_model *m, const qkv_scores *s, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "task");
    qkv_json_put_text(&j, qkv_text_model_task(m));
    put_numbers(&j,
                (const number[]){{"examples", (double)s->n_examples},
                                 {"left_out", (double)s->n_left_out},
                                 {"cut", (double)s->n_cut},
                                 {"targets", (double)s->n_targets},
                                 {"loss", mean_loss(s)},
                                 {"accuracy", (double)s->n_right / (double)s->n_targets}},
                6);
    if (s->confusion)
        classes_json(m, s, &j);
    else
        put_numbers(&j,
                    (const number[]){{"perplexity", exp(mean_loss(s))},
                                     {"bits_per_byte", bits_per_byte(s)},
                                     {"bytes", (double)s->n_bytes}},
                    3);
    if (s->translated) qkv_likeness_json(&s->likeness, &j);
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

/* ---- tables ---- */

static qkv_status classes_table(const qkv_text_model *m, const qkv_scores *s, qkv_buf *out) {
    static const char *const head[] = {"class", "precision", "recall", "F1", "rows"};
    qkv_table t = qkv_table_begin("lrrrr");
    for (size_t i = 0; i < 5; i++) qkv_table_cell(&t, "%s", head[i]);
    for (int32_t k = 0; k < s->classes; k++) {
        const class_score r = score_of(s, k);
        qkv_table_cell(&t, "%s", m->labels.names[k]);
        qkv_table_cell(&t, "%.4f", r.precision);
        qkv_table_cell(&t, "%.4f", r.recall);
        qkv_table_cell(&t, "%.4f", r.f1);
        qkv_table_cell(&t, "%lld", (long long)r.support);
    }
    const qkv_status status = qkv_table_print(&t, (qkv_ink){.columns = 100}, out);
    qkv_table_free(&t);
    return status;
}

/* Rows are the true classes, columns the answers. */
static qkv_status confusion_table(const qkv_text_model *m, const qkv_scores *s, qkv_buf *out) {
    char align[MOST_COLUMNS + 2] = "l";
    for (int32_t k = 0; k < s->classes; k++) align[k + 1] = 'r';
    qkv_table t = qkv_table_begin(align);
    qkv_table_cell(&t, "true \\ answered");
    for (int32_t k = 0; k < s->classes; k++) qkv_table_cell(&t, "%s", m->labels.names[k]);
    for (int32_t k = 0; k < s->classes; k++) {
        qkv_table_cell(&t, "%s", m->labels.names[k]);
        for (int32_t i = 0; i < s->classes; i++)
            qkv_table_cell(&t, "%lld", (long long)s->confusion[k * s->classes + i]);
    }
    qkv_buf_putc(out, '\n');
    const qkv_status status = qkv_table_print(&t, (qkv_ink){.columns = 100}, out);
    qkv_table_free(&t);
    return status;
}

void qkv_scores_table(const qkv_text_model *m, const qkv_scores *s, qkv_buf *out) {
    if (s->n_left_out || s->n_cut)
        qkv_buf_printf(out, "rows: %lld, %lld left out as empty, %lld cut to the longest text\n",
                       (long long)s->n_examples, (long long)s->n_left_out, (long long)s->n_cut);
    if (!s->confusion) {
        qkv_buf_printf(out,
                       "loss %.4f nats   perplexity %.3f   bits per byte %.4f   (%lld tokens)\n",
                       mean_loss(s), exp(mean_loss(s)), bits_per_byte(s), (long long)s->n_targets);
        if (s->translated) qkv_likeness_table(&s->likeness, out);
        return;
    }
    qkv_buf_printf(out, "accuracy %.2f %%   macro F1 %.4f   loss %.4f   (%lld of %lld right)\n\n",
                   100 * (double)s->n_right / (double)s->n_targets, macro_f1(s), mean_loss(s),
                   (long long)s->n_right, (long long)s->n_targets);
    qkv_status status = classes_table(m, s, out);
    if (status == QKV_OK && s->classes <= MOST_COLUMNS) status = confusion_table(m, s, out);
    if (status != QKV_OK) out->status = status;
}
