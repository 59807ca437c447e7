/* What quantizing did: sizes and scores beside each other. */
#include "report/show.h"

#include <math.h>
#include <stddef.h>

/* Scores worth comparing, where evaluation gives them. */
static const struct {
    const char *key;
    size_t field;    /* of qkv_evaluation */
    double factor;   /* shares are shown in per cent */
    int digits;      /* behind the point, in the table */
    int significant; /* in JSON: as many as `eval` gives */
} compared[] = {{"accuracy", offsetof(qkv_evaluation, accuracy), 100, 2, 9},
                {"macro_f1", offsetof(qkv_evaluation, macro_f1), 100, 2, 9},
                {"bleu", offsetof(qkv_evaluation, bleu), 1, 2, 7},
                {"chrf", offsetof(qkv_evaluation, chrf2), 1, 2, 7},
                {"perplexity", offsetof(qkv_evaluation, perplexity), 1, 3, 9},
                {"bits_per_byte", offsetof(qkv_evaluation, bits_per_byte), 1, 4, 9},
                {"loss", offsetof(qkv_evaluation, loss), 1, 4, 9}};
#define N_COMPARED (sizeof compared / sizeof *compared)

/* Score i of an evaluation; NaN where there is none. */
static double score_of(const qkv_evaluation *e, size_t i) {
    if (!e->task) return NAN;
    return compared[i].factor * *(const double *)((const char *)e + compared[i].field);
}

typedef struct pair {
    double before, after;
} pair;

static bool get_pair(const qkv_quantization *q, size_t i, pair *out) {
    *out = (pair){score_of(&q->before, i), score_of(&q->after, i)};
    return !isnan(out->before) && !isnan(out->after);
}

static void table(const void *result, qkv_buf *out) {
    const qkv_quantization *q = result;
    const pair bytes = {(double)q->bytes_before, (double)q->bytes_after};
    pair p;
    qkv_buf_printf(out, "%-14s %12s %12s %12s\n", "", "before", q->weights, "change");
    qkv_buf_printf(out, "%-14s %9.2f MB %9.2f MB %10.1f ×\n", "weights", bytes.before / 1e6,
                   bytes.after / 1e6, bytes.before / bytes.after);
    for (size_t i = 0; i < N_COMPARED; i++)
        if (get_pair(q, i, &p))
            qkv_buf_printf(out, "%-14s %12.*f %12.*f %+12.*f\n", compared[i].key,
                           compared[i].digits, p.before, compared[i].digits, p.after,
                           compared[i].digits, p.after - p.before);
}

static void put_pair(qkv_json_out *j, const char *key, pair p, int digits) {
    qkv_json_put_key(j, key);
    qkv_json_open(j, '[');
    qkv_json_put_real(j, p.before, digits);
    qkv_json_put_real(j, p.after, digits);
    qkv_json_close(j, ']');
}

static void members(const void *result, qkv_json_out *j) {
    const qkv_quantization *q = result;
    pair p;
    qkv_put_text(j, "weights", q->weights);
    put_pair(j, "bytes", (pair){(double)q->bytes_before, (double)q->bytes_after}, 9);
    for (size_t i = 0; i < N_COMPARED; i++)
        if (get_pair(q, i, &p)) put_pair(j, compared[i].key, p, compared[i].significant);
}

qkv_status qkv_quantization_show(const qkv_quantization *q, qkv_show how, char **text) {
    return qkv_show_result(q, &(qkv_wording){table, members}, how, text);
}
