/* How much each voter of a classifier counts. What fits the training data best says nothing about
 * that: the encoder soon knows it by heart, and is surer of itself than it is right.
 * So the factors a and b of
 *     logits = ½ (a · encoder + b · n-grams)
 * are those with which held-out rows have the least loss, of a few that are tried. They change no
 * step of the training, and make the probabilities that the model gives about as good
 * as its answers. Where the encoder takes less than a hundredth off the loss that n-grams have
 * alone, which a few hundred rows do not tell from chance, it has no vote, and costs nothing in
 * use. */
#include "base/parallel.h"
#include "task/companion.h"

#include <math.h>

enum { TRIED = 15, CELLS = TRIED * TRIED };

static const double WORTH = 0.99; /* of the loss of n-grams alone, that an encoder is to reach */

/* ⅛ … 16 in steps of √2. */
static double factor(int i) {
    return exp2(0.5 * i - 3);
}
/* The encoder's begins with none. */
static double encoder_factor(int i) {
    return i ? factor(i) : 0;
}

/* −log of the probability of class `target` with logits ½ (a x + b y). */
static double loss_of(const real *x, const real *y, int64_t n, int32_t target, double a, double b) {
    double most = -INFINITY, sum = 0;
    for (int64_t c = 0; c < n; c++) {
        const double z = 0.5 * (a * (double)x[c] + b * (double)y[c]);
        if (z > most)
            sum = sum * exp(most - z) + 1, most = z;
        else
            sum += exp(z - most);
    }
    return most + log(sum) - 0.5 * (a * (double)x[target] + b * (double)y[target]);
}

/* Adds a batch's losses to those of each pair of factors. */
static qkv_status add_batch(const qkv_fit *f, int64_t i, double *losses) {
    qkv_tape *t = f->tape;
    qkv_batch batch = {0};
    int64_t n;
    const int64_t *examples = qkv_batcher_get(f->valid, i, &n);
    qkv_tape_begin(t, QKV_EVAL, f->seed, (uint64_t)i);
    batch.n_sequences = n;
    qkv_task_of(qkv_model_config(f->model))->assemble(t, f->spec, f->valid, examples, n, &batch);
    QKV_TRY(qkv_tape_status(t));
    const qkv_tensor *encoder = qkv_model_encoder_logits(t, f->model, &batch.src),
                     *ngrams = qkv_model_ngram_logits(t, f->model, &batch.src);
    QKV_TRY(qkv_tape_status(t));
    for (int64_t k = 0; k < batch.n_targets; k++)
        for (int c = 0; c < CELLS; c++)
            losses[c] += loss_of(encoder->data + k * encoder->ld, ngrams->data + k * ngrams->ld,
                                 encoder->cols, batch.targets[k], encoder_factor(c / TRIED),
                                 factor(c % TRIED));
    return QKV_OK;
}

qkv_status qkv_votes_weigh(const qkv_fit *f) {
    double losses[CELLS] = {0};
    if (!f->valid) return QKV_OK;
    qkv_status status = QKV_OK;
    for (int64_t i = qkv_parallel_rank(); i < f->valid->n_batches && status == QKV_OK;
         i += qkv_parallel_size())
        status = add_batch(f, i, losses);
    QKV_TRY(qkv_parallel_agree(status));
    qkv_parallel_sum(losses, CELLS);
    int alone = 0, best = 0;
    for (int c = 1; c < TRIED; c++)
        if (losses[c] < losses[alone]) alone = c;
    for (int c = 1; c < CELLS; c++)
        if (losses[c] < losses[best]) best = c;
    if (losses[best] > WORTH * losses[alone]) best = alone;
    const int64_t n = f->valid->data->n;
    if (f->alone && n) *f->alone = losses[alone] / (double)n;
    qkv_model_set_votes(f->model, encoder_factor(best / TRIED), factor(best % TRIED));
    return QKV_OK;
}
