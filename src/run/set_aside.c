/* Rows that are set aside before anything is made of the data: the tokenizer, the rows held out for
 * validations and the training are as if those rows had never been there. So what the result is
 * worth on them is what it is worth on rows to come, which a validation, by which the best weights
 * are chosen, flatters. They are drawn in blocks, as rows are held out (policy/recipe.h); of running
 * text they are one stretch. */
#include "base/mem.h"
#include "base/rng.h"
#include "run/train_run.h"

#include <string.h>

/* Rows [from, to) of running text, of which the part is one in `parts`. */
static qkv_status find_stretch(qkv_run *r, size_t *from, size_t *to) {
    const qkv_aside *a = &r->aside;
    int64_t bytes = 0;
    for (size_t i = 0; i < r->corpus.n; i++) bytes += (int64_t)r->corpus.rows[i].text.len;
    *from = 0;
    if (a->part > 0) QKV_TRY(qkv_corpus_cut(&r->corpus, bytes * a->part / a->parts, from));
    *to = r->corpus.n;
    return a->part + 1 < a->parts ? qkv_corpus_cut(&r->corpus, bytes * (a->part + 1) / a->parts, to)
                                  : QKV_OK;
}

/* Marks the rows of the part. */
static void mark_rows(const qkv_run *r, bool *take) {
    const qkv_aside *a = &r->aside;
    const size_t n = r->corpus.n, block = (size_t)qkv_recipe_held_out((int64_t)n, 0.5).block,
                 blocks = (n + block - 1) / block;
    const qkv_rng rng = {.seed = (uint64_t)r->train.seed, .stream = 0x6173696465};
    for (size_t i = 0; i < n; i++) {
        const uint64_t place = qkv_rng_permute(rng, blocks, i / block);
        take[i] = place * (size_t)a->parts / blocks == (size_t)a->part;
    }
}

qkv_status qkv_run_set_aside(qkv_run *r) {
    qkv_aside *a = &r->aside;
    qkv_corpus *c = &r->corpus;
    size_t from = 0, to = 0, kept = 0;
    if (a->parts == 0) return QKV_OK;
    if (c->shape == QKV_CORPUS_STREAM) QKV_TRY(find_stretch(r, &from, &to));
    bool *take = qkv_zalloc(c->n, sizeof *take);
    a->corpus = *c; /* shares texts, labels and trees */
    a->corpus.rows = qkv_alloc(c->n * sizeof *c->rows);
    a->corpus.n = 0;
    if (!take || !a->corpus.rows) return qkv_free(take), QKV_FAILED;
    if (c->shape != QKV_CORPUS_STREAM) mark_rows(r, take);
    for (size_t i = from; i < to; i++) take[i] = true;
    for (size_t i = 0; i < c->n; i++)
        if (take[i])
            a->corpus.rows[a->corpus.n++] = c->rows[i];
        else
            c->rows[kept++] = c->rows[i];
    c->n = kept;
    qkv_free(take);
    if (a->corpus.n > 0 && kept > 0) return QKV_OK;
    return qkv_fail(QKV_USAGE, "there are too few rows to set one in %d of them aside", a->parts);
}

qkv_status qkv_run_measure_aside(qkv_run *r, qkv_loop *l, qkv_outcome *o) {
    qkv_batcher b = {
        .data = &r->aside.ids, .budget = l->config.batch_tokens, .window = l->train_batches.window};
    qkv_step_result sum;
    if (r->aside.parts == 0) return QKV_OK;
    QKV_TRY(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    const qkv_status status = qkv_loop_measure(l, &b, &sum);
    qkv_batcher_free(&b);
    QKV_TRY(status);
    const double targets = (double)(sum.n_targets > 0 ? sum.n_targets : 1);
    o->aside = sum.n_targets;
    o->aside_loss = sum.loss / targets;
    o->aside_right = (double)sum.n_right / targets;
    return QKV_OK;
}
