/* How much each voter of a classifier counts. What fits the training data best says nothing about
 * that: the encoder soon knows it by heart, and is surer of itself than it is right.
 * So the factors a and b of
 *     logits = ½ (a · encoder + b · n-grams)
 * are those with which held-out rows have the least loss, of a few that are tried; of squared error
 * the least of all can be solved for. They change no
 * step of the training, and make the probabilities that the model gives about as good
 * as its answers. Where the encoder takes less than a hundredth off the loss that n-grams have
 * alone, which a few hundred rows do not tell from chance, it has no vote, and costs nothing in
 * use. */
#include "base/parallel.h"
#include "task/companion.h"

#include <math.h>

enum { TRIED = 15, CELLS = TRIED * TRIED, FACTOR_MOST = 1000 };

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

/* The same of labels each of which is there or not: Σ log(1 + eᶻ) − t z. */
static double loss_of_labels(const real *x, const real *y, int64_t n, const real *t, double a,
                             double b) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) {
        const double z = 0.5 * (a * (double)x[c] + b * (double)y[c]);
        sum += (z > 0 ? z : 0) + log1p(exp(-fabs(z))) - (double)t[c] * z;
    }
    return sum;
}

/* ---- numbers ---- */

/* Σ over rows of what the normal equations of x·a/2 + y·b/2 ≈ t are made of. */
enum { XX, XY, YY, XT, YT };

static void add_products(double x, double y, double t, double *sums) {
    sums[XX] += x * x;
    sums[XY] += x * y;
    sums[YY] += y * y;
    sums[XT] += x * t;
    sums[YT] += y * t;
}

/* The factors of least squared error, none of them below zero. */
static void solve_numbers(const double *s, double *a, double *b) {
    const double det = s[XX] * s[YY] - s[XY] * s[XY];
    *a = det > 1e-9 * s[XX] * s[YY] ? (s[XT] * s[YY] - s[YT] * s[XY]) / det : -1;
    *b = det > 1e-9 * s[XX] * s[YY] ? (s[YT] * s[XX] - s[XT] * s[XY]) / det : -1;
    if (*a < 0 || *b < 0) { /* one alone is best: the one that explains more */
        const double x = s[XX] > 0 && s[XT] > 0 ? s[XT] / s[XX] : 0,
                     y = s[YY] > 0 && s[YT] > 0 ? s[YT] / s[YY] : 0;
        const bool first = x * s[XT] >= y * s[YT];
        *a = first ? x : 0;
        *b = first ? 0 : y;
    }
    *a = fmin(2 * *a, FACTOR_MOST);
    *b = fmin(2 * *b, FACTOR_MOST);
}

/* ---- rows ---- */

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
    for (int64_t k = 0; k < batch.n_targets; k++) {
        const real *x = encoder->data + k * encoder->ld, *y = ngrams->data + k * ngrams->ld;
        if (batch.numbers && !f->spec->several) {
            add_products((double)*x, (double)*y, (double)batch.numbers[k], losses);
            continue;
        }
        const int64_t v = encoder->cols;
        for (int c = 0; c < CELLS; c++) {
            const double a = encoder_factor(c / TRIED), b = factor(c % TRIED);
            losses[c] += f->spec->several ? loss_of_labels(x, y, v, batch.numbers + k * v, a, b)
                                          : loss_of(x, y, v, batch.targets[k], a, b);
        }
    }
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
    if (qkv_shape_of(qkv_model_config(f->model)->task).head == QKV_HEAD_NUMBER) {
        double a, b;
        solve_numbers(losses, &a, &b);
        qkv_model_set_votes(f->model, a, b);
        return QKV_OK;
    }
    int alone = 0, best = 0;
    for (int c = 1; c < TRIED; c++)
        if (losses[c] < losses[alone]) alone = c;
    for (int c = 1; c < CELLS; c++)
        if (losses[c] < losses[best]) best = c;
    if (losses[best] > WORTH * losses[alone]) best = alone;
    const int64_t n = f->valid->data->n;
    if (f->alone && n && !f->spec->several) *f->alone = losses[alone] / (double)n;
    qkv_model_set_votes(f->model, encoder_factor(best / TRIED), factor(best % TRIED));
    return QKV_OK;
}
