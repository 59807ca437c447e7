/* The step. Losses and gradients are sums over targets until the update divides by their number, so
 * that k small batches and one large batch are the same step. */
#include "train/step.h"
#include "base/parallel.h"

#include <math.h>

qkv_status qkv_stepper_init(qkv_stepper *s, qkv_model *model, const qkv_optim_spec *optim,
                            const qkv_task_spec *task, int precision, uint64_t seed) {
    *s = (qkv_stepper){.model = model, .task = *task, .seed = seed};
    QKV_TRY(qkv_tape_init(&s->tape));
    s->tape.precision = precision;
    qkv_status status = qkv_optim_init(&s->optim, qkv_model_params(model), optim);
    if (status != QKV_OK) qkv_tape_free(&s->tape);
    return status;
}

void qkv_stepper_free(qkv_stepper *s) {
    if (s->optim.params) qkv_optim_free(&s->optim);
    qkv_tape_free(&s->tape);
    *s = (qkv_stepper){0};
}

/* Forward over n examples; counts go to *sum. */
static qkv_status forward(qkv_stepper *s, const qkv_batcher *b, const int64_t *examples, int64_t n,
                          qkv_tensor **root, qkv_step_result *sum) {
    qkv_loss_out out;
    QKV_TRY(qkv_task_forward(&s->tape, s->model, &s->task, b, examples, n, &out));
    const qkv_batch *batch = &out.batch;
    *root = out.root;
    sum->loss += out.loss;
    sum->n_right += out.n_right;
    sum->n_targets += batch->n_targets;
    if (!isfinite(out.loss)) return qkv_fail(QKV_NUMERIC, "the loss of a batch is %g", out.loss);
    sum->tokens += batch->tokens;
    sum->sequences += batch->n_sequences;
    sum->macs += qkv_model_macs(s->model, batch->src.rows ? &batch->src.layout : NULL,
                                batch->tgt.rows ? &batch->tgt.layout : NULL, batch->n_targets);
    return QKV_OK;
}

/* ---- several ranks: a gradient travels while others are still made ---- */

typedef struct travel {
    const qkv_optim *optim;
    const int64_t
        *used; /* [k]: the parameters of the first k nodes all stand before this element */
} travel;

static void send_what_is_final(void *user, size_t left) {
    const travel *t = user;
    qkv_parallel_reduce_from(t->optim->params->grads, t->optim->cut, t->used[left]);
}

static qkv_status backward_travelling(qkv_stepper *s, qkv_tensor *root) {
    qkv_tape *t = &s->tape;
    const qkv_params *params = s->optim.params;
    int64_t *used = qkv_tape_alloc(t, NULL, (t->n_nodes + 1) * sizeof *used);
    if (!used) return qkv_tape_status(t);
    used[0] = 0;
    for (size_t i = 0; i < t->n_nodes; i++) {
        used[i + 1] = used[i];
        for (int k = 0; k < QKV_NODE_INPUTS; k++) {
            const qkv_tensor *x = t->nodes[i]->in[k];
            if (x && x->base) x = x->base;
            if (!x || x->life != QKV_LIFE_PARAM) continue;
            const int64_t end = x->grad - params->grads + x->rows * x->ld;
            if (end > used[i + 1]) used[i + 1] = end;
        }
    }
    travel on = {&s->optim, used};
    t->after_node = send_what_is_final;
    t->after_user = &on;
    const qkv_status status = qkv_tape_backward(t, &root, 1);
    t->after_node = NULL;
    return status;
}

/* The first of n examples before which at least share·(their tokens) stand. */
static int64_t cut_at(const qkv_batcher *b, const int64_t *examples, int64_t n, double share) {
    int64_t total = 0, before = 0, i = 0;
    for (int64_t k = 0; k < n; k++) total += qkv_batcher_tokens(b, examples[k]);
    while (i < n && (double)before < share * (double)total)
        before += qkv_batcher_tokens(b, examples[i++]);
    return i;
}

qkv_status qkv_stepper_accumulate_part(qkv_stepper *s, const qkv_batcher *b, int64_t i, int part,
                                       int parts, uint64_t key, qkv_step_result *sum) {
    qkv_tensor *root;
    int64_t n;
    const int64_t *examples = qkv_batcher_get(b, i, &n);
    const int64_t from = cut_at(b, examples, n, (double)part / parts),
                  to = cut_at(b, examples, n, (double)(part + 1) / parts);
    if (from == to) return QKV_OK;
    qkv_tape_begin(&s->tape, QKV_TRAIN, s->seed, key * (uint64_t)parts + (uint64_t)part);
    QKV_TRY(forward(s, b, examples + from, to - from, &root, sum));
    return s->last && qkv_parallel_size() > 1 ? backward_travelling(s, root)
                                              : qkv_tape_backward(&s->tape, &root, 1);
}

qkv_status qkv_stepper_accumulate(qkv_stepper *s, const qkv_batcher *b, int64_t i, uint64_t key,
                                  qkv_step_result *sum) {
    return qkv_stepper_accumulate_part(s, b, i, 0, 1, key, sum);
}

qkv_status qkv_stepper_update(qkv_stepper *s, qkv_update *u, const qkv_step_result *sum) {
    u->grad_scale = 1 / (double)(sum->n_targets > 0 ? sum->n_targets : 1);
    return qkv_optim_step(&s->optim, u);
}

qkv_status qkv_stepper_evaluate(qkv_stepper *s, const qkv_batcher *b, int64_t i,
                                qkv_step_result *sum) {
    qkv_tensor *root;
    int64_t n;
    const int64_t *examples = qkv_batcher_get(b, i, &n);
    qkv_tape_begin(&s->tape, QKV_EVAL, s->seed, (uint64_t)i);
    return forward(s, b, examples, n, &root, sum);
}
