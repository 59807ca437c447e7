/* rate: a number for each text, or pair of texts. The head has one output and learns by squared
 * error, in deviations from the mean of the training rows: so that one rate of learning suits stars
 * from 1 to 10 and prices in the millions. A loss of 1 is that of always answering the mean. */
#include "task/companion.h"

#include <math.h>
#include <string.h>

static double number_of(const qkv_encoded *data, int64_t example) {
    float value;
    memcpy(&value, qkv_encoded_cells(data, QKV_COLUMN_VALUE, example).at, sizeof value);
    return (double)value;
}

static void settle(const qkv_encoded *train, qkv_config *c) {
    const double n = (double)train->n;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < train->n; i++) mean += number_of(train, i);
    mean /= n;
    for (int64_t i = 0; i < train->n; i++) {
        const double off = number_of(train, i) - mean;
        square += off * off / n;
    }
    c->rate_mean = mean;
    c->rate_deviation = square > 0 ? sqrt(square) : 1;
}

static void assemble(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out) {
    real *numbers = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *numbers);
    if (!numbers || !qkv_task_read(t, b, examples, n, out)) return;
    for (int64_t i = 0; i < n; i++)
        numbers[i] =
            (real)((number_of(b->data, examples[i]) - spec->rate_mean) / spec->rate_deviation);
    out->numbers = numbers;
    out->n_targets = n;
}

/* The encoder learns as if it were alone, as a classifier's does. */
static qkv_tensor *loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec, const qkv_batch *b,
                        int64_t *n_right) {
    const bool training = t->mode == QKV_TRAIN;
    qkv_tensor *y =
        training ? qkv_model_encoder_logits(t, m, &b->src) : qkv_model_classify(t, m, &b->src);
    *n_right = 0;
    return qkv_pointwise(t, y,
                         &(qkv_pointwise_spec){.kind = QKV_POINT_SQUARE,
                                               .targets = b->numbers,
                                               .agree = training ? (real)spec->r_drop : 0,
                                               .scale = 1});
}

static qkv_status count(qkv_tape *t, qkv_model *m, const qkv_batch *b, qkv_tally *sum) {
    const qkv_config *c = qkv_model_config(m);
    const qkv_tensor *y = qkv_model_classify(t, m, &b->src);
    QKV_TRY(qkv_tape_status(t));
    for (int64_t i = 0; i < b->n_targets; i++) {
        const double truth = (double)b->numbers[i], off = (double)y->data[i] - truth;
        sum->loss += off * off;
        sum->n_targets++;
        if (!QKV_PUSH(sum->truth, truth * c->rate_deviation + c->rate_mean) ||
            !QKV_PUSH(sum->answer, (double)y->data[i] * c->rate_deviation + c->rate_mean))
            return QKV_FAILED;
    }
    return QKV_OK;
}

static const qkv_companion *const companions[] = {&qkv_companion_ngrams, NULL};

const qkv_task qkv_task_rate = {
    .name = "rate",
    .help = "a number for each text: stars, prices, likeness",
    .use = "echo \"some text\" | qkv rate %s",
    .shape = {.encoder = true, .head = QKV_HEAD_NUMBER},
    .corpus = QKV_CORPUS_RATED,
    .recipe = &qkv_recipe_numbers,
    .settle = settle,
    .sides = 1,
    .columns = 1u << QKV_COLUMN_VALUE,
    .companions = companions,
    .assemble = assemble,
    .loss = loss,
    .count = count,
};
