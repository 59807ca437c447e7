/* How much memory a training takes. What is in use when the question is asked is known and counted
 * as it is: texts, ids, the program itself, of a model that is there its arrays. To that come
 *
 *   weights, gradients, two moments; copies that are averaged; parameters that are only fitted
 *   what a step keeps, of a batch in examples of the mean length, and gradients of some of that at
 *     a time: 1.4 of it in all, as was measured; 2.3 in recurrent layers, whose gates have gradients
 *     as large as what is kept
 *   what companions need while they are fitted: at the end once more, beside all of this
 *
 * docs/TRAINING.md holds it against what came. Time is told by the loop (train/pace.c), once some
 * steps were made. */
#include "base/machine.h"
#include "model/description.h"
#include "run/train_run.h"
#include "task/companion.h"

static const double PROGRAM = 12e6; /* where the system does not say what is in use */

/* The model over a batch of `batch_tokens` in examples of the mean length. */
static qkv_status describe_batch(const qkv_run *r, int64_t batch_tokens, qkv_description *d) {
    const int64_t tokens = qkv_encoded_tokens(&r->train_ids),
                  sequences = r->train_ids.n * r->train_ids.sides;
    int64_t length = tokens / (sequences > 0 ? sequences : 1);
    if (length > r->config.max_len) length = r->config.max_len; /* windows of joined text */
    if (length < 1) length = 1;
    const int64_t batch = batch_tokens / (length * r->train_ids.sides);
    return qkv_describe_make(r->model, batch < 1 ? 1 : batch, length, d);
}

/* What the fits of companions take beside the model, at most one at a time. */
static double bytes_of_fits(const qkv_run *r) {
    double most = 0;
    const qkv_companion *companion;
    for (int i = 0; (companion = qkv_companion_at(&r->config, i)); i++) {
        const double bytes =
            companion->bytes ? companion->bytes(&r->config, r->train_ids.n + r->valid_ids.n) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}

/* Bytes at the most; `there`: the model's arrays are among what is in use. */
static double bytes_needed(const qkv_run *r, const qkv_train_config *c, const qkv_description *d,
                           bool there) {
    double before;
    const double now = qkv_process_memory(&before), views = c->r_drop > 0 ? 2 : 1,
                 kept = r->config.arch == QKV_ARCH_TRANSFORMER ? 1.4 : 2.3;
    const qkv_params *p = qkv_model_params(r->model);
    double bytes =
        (now > 0 ? now : PROGRAM) + kept * views * d->activation_bytes + bytes_of_fits(r);
    if (!there) bytes += 4 * d->weight_bytes + sizeof(real) * (double)(p->count - p->length);
    bytes +=
        d->weight_bytes * ((c->ema > 0 && !there) + (c->average > 1 ? 1 + (double)c->average : 0));
    return bytes > before ? bytes : before;
}

qkv_status qkv_run_check_memory(const qkv_run *r) {
    const int64_t tokens = qkv_encoded_tokens(&r->train_ids);
    const int64_t batch_tokens = r->train.batch_tokens ? r->train.batch_tokens
                                 : r->tuning ? qkv_tuning_batch(r->tuning, tokens, r->train_ids.n)
                                             : qkv_recipe_batch(tokens);
    qkv_description d;
    double total;
    (void)qkv_machine_memory(&total);
    QKV_TRY(describe_batch(r, batch_tokens, &d));
    const double bytes = bytes_needed(r, &r->train, &d, false);
    qkv_description_free(&d);
    if (total == 0 || bytes <= total) return QKV_OK;
    return qkv_fail(QKV_FAILED,
                    "the training needs about %.1f GB of memory, the machine has %.1f GB; lower "
                    "batch_tokens (%lld) or the size of the model",
                    bytes / 1e9, total / 1e9, (long long)batch_tokens);
}

qkv_status qkv_run_say_memory(qkv_run *r, const qkv_train_config *c) {
    qkv_description d;
    double total;
    const double have = qkv_machine_memory(&total);
    QKV_TRY(describe_batch(r, c->batch_tokens, &d));
    double before;
    const double bytes = bytes_needed(r, c, &d, true), more = bytes - qkv_process_memory(&before);
    qkv_description_free(&d);
    QKV_TRY(qkv_run_note(r, "memory    about %.0f MB", bytes / 1e6));
    if (have == 0 || more <= have) return QKV_OK;
    return qkv_run_note(r,
                        "warning   only %.0f MB more are free now: it may swap or be killed; lower "
                        "--batch-tokens",
                        have / 1e6);
}
