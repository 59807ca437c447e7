/* Where a text may have several labels: from which probability on a label is given. One threshold for
 * all classes, that with which held-out rows have the highest micro F1,
 *     F1 = 2 · both / (true + given),
 * over all labels of all rows. Probabilities are counted into bins, whose edges are the thresholds
 * that are tried; of equals the one nearest to a half is taken. */
#include "base/parallel.h"
#include "task/companion.h"

#include <math.h>
#include <stdlib.h>

enum { BINS = 200 };

/* Of labels whose probability lies in a bin: all of them, and those that are true. */
typedef struct bins {
    double all[BINS], true_ones[BINS];
} bins;

static int bin_of(double z) {
    const int i = (int)(BINS / (1 + exp(-z)));
    return i < BINS ? i : BINS - 1;
}

static qkv_status add_batch(const qkv_fit *f, int64_t i, bins *sum) {
    qkv_tape *t = f->tape;
    qkv_batch batch = {0};
    int64_t n;
    const int64_t *examples = qkv_batcher_get(f->valid, i, &n);
    qkv_tape_begin(t, QKV_EVAL, f->seed, (uint64_t)i);
    batch.n_sequences = n;
    qkv_task_of(qkv_model_config(f->model))->assemble(t, f->spec, f->valid, examples, n, &batch);
    QKV_TRY(qkv_tape_status(t));
    const qkv_tensor *y = qkv_model_classify(t, f->model, &batch.src);
    QKV_TRY(qkv_tape_status(t));
    for (int64_t k = 0; k < y->rows; k++)
        for (int64_t c = 0; c < y->cols; c++) {
            const int bin = bin_of((double)y->data[k * y->ld + c]);
            sum->all[bin]++;
            sum->true_ones[bin] += batch.numbers[k * y->cols + c] >= (real)0.5;
        }
    return QKV_OK;
}

static double best_threshold(const bins *b) {
    double truth = 0, given = 0, both = 0, most = 0;
    int best = BINS / 2;
    for (int i = 0; i < BINS; i++) truth += b->true_ones[i];
    for (int i = BINS - 1; i > 0; i--) {
        given += b->all[i];
        both += b->true_ones[i];
        const double f1 = both > 0 ? 2 * both / (truth + given) : 0;
        if (f1 > most || (f1 >= most && abs(i - BINS / 2) < abs(best - BINS / 2)))
            most = f1, best = i;
    }
    return (double)best / BINS;
}

static qkv_status weigh(const qkv_fit *f) {
    bins sum = {{0}, {0}};
    if (!f->valid) return QKV_OK;
    qkv_status status = QKV_OK;
    for (int64_t i = qkv_parallel_rank(); i < f->valid->n_batches && status == QKV_OK;
         i += qkv_parallel_size())
        status = add_batch(f, i, &sum);
    QKV_TRY(qkv_parallel_agree(status));
    qkv_parallel_sum(sum.all, BINS);
    qkv_parallel_sum(sum.true_ones, BINS);
    qkv_model_set_threshold(f->model, best_threshold(&sum));
    return QKV_OK;
}

static bool wanted(const qkv_config *c) {
    return c->several;
}

static void keep(qkv_config *kept, const qkv_config *trained) {
    kept->threshold = trained->threshold;
}

const qkv_companion qkv_companion_threshold = {
    .name = "threshold",
    .wanted = wanted,
    .weigh = weigh,
    .keep = keep,
};
