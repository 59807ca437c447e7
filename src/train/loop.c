/* The loop proper. */
#include "train/loop.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/thread.h"
#include "task/companion.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const qkv_optimizer_names[] = {
#define OPTIM(id, name) #name,
#include "train/optim.def"
#undef OPTIM
    "auto", NULL}; /* by qkv_optim_kind; QKV_OPTIM_COUNT: left to us */
static const char *const qkv_precision_names[] = {"f32", "bf16", NULL};
static const char *const qkv_class_weights_names[] = {"none", "balanced", NULL};
static const char *const qkv_ngram_trust_names[] = {"both", "rarity", "class", NULL};
static const char *const qkv_documents_names[] = {"joined", "apart", NULL};
static const char *const qkv_on_nan_names[] = {"skip", "stop", NULL};
enum { ON_NAN_SKIP, ON_NAN_STOP };

static const qkv_setting rows[] = {
#define SETTINGS_OWNER qkv_train_config
#include "base/settings_rows.h"
#include "train/train.def"
#include "base/settings_end.h"
};

qkv_settings qkv_train_settings(qkv_train_config *config) {
    return (qkv_settings){.rows = rows, .n = sizeof rows / sizeof *rows, .values = config};
}

/* ---- making ready ---- */

/* Of that, what the fine-tuning of another program's model has ideas of its own about. */
static void choose_tuning(qkv_loop *l, const qkv_tuning *t, int64_t tokens) {
    qkv_train_config *c = &l->config;
    if (c->batch_tokens == 0) c->batch_tokens = qkv_tuning_batch(t, tokens, l->train->n);
    if (c->epochs == 0) c->epochs = qkv_tuning_passes(t, tokens);
    /* The rates are AdamW's: a person who names another optimizer gets what goes with that. */
    if (c->optimizer == QKV_OPTIM_COUNT) c->optimizer = QKV_OPTIM_ADAMW;
    if (c->optimizer != QKV_OPTIM_ADAMW) return;
    if (c->lr == 0) c->lr = qkv_tuning_rate(t, qkv_model_config(l->model)->d_model);
    if (c->head_rate == 0) c->head_rate = t->head_rate;
}

/* Where nobody said how long to train, a network beside a companion goes on while it helps that. */
static void choose_patience(qkv_loop *l, const qkv_recipe *recipe) {
    qkv_train_config *c = &l->config;
    const bool open = !c->epochs && !c->steps && c->minutes == 0 && !c->overfit;
    const qkv_companion *first = qkv_companion_at(qkv_model_config(l->model), 0);
    if (c->patience >= 0) return;
    c->patience = open && first && first->weigh ? recipe->patience : 0;
    l->margin = c->patience ? recipe->margin : 0;
}

/* Fills in what was left to us, by the size of the data and the model. */
static void choose(qkv_loop *l) {
    qkv_train_config *c = &l->config;
    const int64_t tokens = qkv_encoded_tokens(l->train);
    if (l->tuning) choose_tuning(l, l->tuning, tokens);
    if (c->head_rate == 0) c->head_rate = 1;
    const qkv_config *model = qkv_model_config(l->model);
    const qkv_recipe *recipe = qkv_task_of(model)->recipe;
    const bool pre_norm = model->arch == QKV_ARCH_TRANSFORMER && model->norm == QKV_NORM_PRE;
    choose_patience(l, recipe);
    if (c->batch_tokens == 0) c->batch_tokens = qkv_recipe_batch(tokens);
    if (c->epochs == 0) c->epochs = qkv_recipe_passes(recipe, tokens, l->goes_on);
    if (c->overfit && c->steps == 0) c->steps = QKV_OVERFIT_STEPS;
    if (c->optimizer == QKV_OPTIM_COUNT)
        c->optimizer =
            qkv_recipe_adamw(recipe, pre_norm, l->goes_on) ? QKV_OPTIM_ADAMW : QKV_OPTIM_MUON;
    if (c->lr == 0)
        c->lr = qkv_recipe_rate(c->optimizer == QKV_OPTIM_MUON, model->d_model,
                                l->goes_on || model->norm == QKV_NORM_POST);
    if (c->ngram_cost == 0) c->ngram_cost = recipe->ngram_cost;
    if (c->label_smoothing < 0) c->label_smoothing = qkv_recipe_smoothing(recipe, c->overfit);
    if (c->average < 0) c->average = c->ema > 0 ? 0 : qkv_recipe_average(recipe, tokens);
}

/* The number of steps that the budget gives; with `minutes` a guess that is corrected
 * before the first. */
static int64_t budget(qkv_loop *l) {
    const qkv_train_config *c = &l->config;
    if (c->steps) return c->steps;
    qkv_batcher_plan(&l->train_batches, 0);
    const int64_t a_pass = (l->train_batches.n_batches + c->accumulate - 1) / c->accumulate;
    return a_pass * c->epochs;
}

void qkv_loop_set_schedule(qkv_loop *l) {
    const qkv_train_config *c = &l->config;
    const int64_t steps = l->state.steps - l->state.from;
    l->schedule = (qkv_schedule){.kind = (qkv_schedule_kind)c->schedule,
                                 .lr = c->lr,
                                 .floor = c->lr_floor,
                                 .warmup = c->warmup < 0 ? qkv_recipe_warmup(steps) : c->warmup,
                                 .steps = steps};
}

static qkv_status make_batches(qkv_loop *l) {
    const qkv_train_config *c = &l->config;
    const qkv_task *task = qkv_task_of(qkv_model_config(l->model));
    const bool joined = task->stream && c->documents == QKV_DOCUMENTS_JOINED;
    const int64_t window = joined ? qkv_model_config(l->model)->max_len : 0;
    l->train_batches = (qkv_batcher){.data = l->train,
                                     .budget = c->batch_tokens,
                                     .window = window,
                                     .pool = c->group,
                                     .seed = (uint64_t)c->seed,
                                     .shuffle = true};
    QKV_TRY(qkv_batcher_init(&l->train_batches));
    if (!l->valid) return QKV_OK;
    l->valid_batches = (qkv_batcher){.data = l->valid, .budget = c->batch_tokens, .window = window};
    QKV_TRY(qkv_batcher_init(&l->valid_batches));
    qkv_batcher_plan(&l->valid_batches, 0);
    l->known_batches = (qkv_batcher){.data = l->train, .budget = c->batch_tokens, .window = window};
    QKV_TRY(qkv_batcher_init(&l->known_batches));
    qkv_batcher_plan(&l->known_batches, 0);
    return QKV_OK;
}

/* A class's weight is what it would have of the examples if all had as many:
 * n / (classes × its own). */
static qkv_status weigh_classes(qkv_loop *l) {
    const int64_t classes = qkv_model_config(l->model)->classes;
    if (l->config.class_weights && qkv_model_config(l->model)->several)
        return qkv_fail(QKV_USAGE, "class_weights=balanced: for one label a row, not for several");
    if (!l->config.class_weights || !l->train->label) return QKV_OK;
    QKV_TRY_ALLOC(l->class_weights = qkv_zalloc((size_t)classes, sizeof *l->class_weights));
    int64_t *count = qkv_zalloc((size_t)classes, sizeof *count);
    if (!count) return QKV_FAILED;
    for (int64_t i = 0; i < l->train->n; i++) count[l->train->label[i]]++;
    for (int64_t k = 0; k < classes; k++)
        if (count[k])
            l->class_weights[k] = (real)((double)l->train->n / (double)(classes * count[k]));
    qkv_free(count);
    l->task.class_weights = l->class_weights;
    return QKV_OK;
}

/* ---- companions ---- */

static qkv_status tell_alive(void *user) {
    qkv_progress alive = {.kind = QKV_PROGRESS_ALIVE};
    return qkv_loop_tell(user, &alive);
}

static qkv_fit fit_in(qkv_loop *l, bool whole) {
    return (qkv_fit){.model = l->model,
                     .tape = &l->stepper.tape,
                     .spec = &l->stepper.task,
                     .train = l->train,
                     .held_out = l->valid_held_out ? l->valid : NULL,
                     .valid = l->valid ? &l->valid_batches : NULL,
                     .seed = l->stepper.seed,
                     .whole = whole,
                     .alone = &l->alone,
                     .tell = tell_alive,
                     .user = l};
}

static qkv_status fit_companions(qkv_loop *l, bool whole, bool *any) {
    const qkv_companion *companion;
    const qkv_fit fit = fit_in(l, whole);
    for (int i = 0; (companion = qkv_companion_at(qkv_model_config(l->model), i)); i++)
        if (companion->fit) {
            QKV_TRY(qkv_loop_phase(l, whole ? "last fit" : companion->name, 0));
            QKV_TRY(companion->fit(&fit));
            *any = true;
        }
    return QKV_OK;
}

qkv_status qkv_loop_weigh(qkv_loop *l) {
    const qkv_companion *companion;
    const qkv_fit fit = fit_in(l, false);
    for (int i = 0; (companion = qkv_companion_at(qkv_model_config(l->model), i)); i++)
        if (companion->weigh) QKV_TRY(companion->weigh(&fit));
    return QKV_OK;
}

/* A run begins: fitting companions takes seconds on much text,
 * which is worth a checkpoint before the first step. A run that goes on after its end keeps what it
 * ended with as its best so far. */
static qkv_status begin(qkv_loop *l) {
    bool any = false;
    const double began = qkv_now();
    QKV_TRY(fit_companions(l, false, &any));
    l->state.fit_seconds = any ? qkv_now() - began : 0;
    return l->run && (any || l->after) ? qkv_loop_save(l, l->after != NULL) : QKV_OK;
}

/* Where the run stands, before its first step in this process; *found: in the middle. */
static qkv_status find_state(qkv_loop *l, bool *found) {
    l->state =
        l->after ? *l->after
                 : (qkv_loop_state){.best = -INFINITY, .best_right = -INFINITY, .mark = -INFINITY};
    l->state.steps = budget(l);
    l->state.timed = l->config.minutes > 0;
    if (!l->after) return l->run ? qkv_loop_restore(l, "last", found) : QKV_OK;
    l->state.from = l->state.step;
    l->state.stale = 0;
    l->state.mark = -INFINITY;
    if (l->state.timed || l->state.steps > l->state.step) return QKV_OK;
    return qkv_fail(QKV_USAGE,
                    "the run there is finished, after %lld steps; these settings give it %lld: "
                    "raise --epochs or --steps to go on from it, or start over with --overwrite",
                    (long long)l->state.step, (long long)l->state.steps);
}

static qkv_status make_ready(qkv_loop *l) {
    const qkv_train_config *c = &l->config;
    if (c->ema > 0 && c->average > 1)
        return qkv_fail(QKV_USAGE, "ema and average are two ways to the same; give one of them");
    const qkv_task *task = qkv_task_of(qkv_model_config(l->model));
    if (c->r_drop > 0 && task->one_view)
        return qkv_fail(QKV_USAGE, "r_drop: not for %s, where two passes hide different tokens",
                        task->name);
    choose(l);
    QKV_TRY(make_batches(l));
    qkv_optim_spec optim = qkv_optim_defaults((qkv_optim_kind)c->optimizer);
    optim.beta2 = c->beta2;
    optim.decay = c->weight_decay;
    optim.ema = c->ema;
    optim.precision = (qkv_precision)c->precision;
    l->task.smoothing = c->label_smoothing;
    l->task.r_drop = c->r_drop;
    l->task.mask_rate = c->mask_rate;
    l->task.ngram_cost = c->ngram_cost;
    l->task.ngram_prior = c->ngram_prior;
    l->task.ngram_passes = c->ngram_passes;
    l->task.ngram_trust = c->ngram_trust;
    QKV_TRY(weigh_classes(l));
    QKV_TRY(
        qkv_stepper_init(&l->stepper, l->model, &optim, &l->task, c->precision, (uint64_t)c->seed));
    const qkv_rates_spec rates = {
        .decay = c->layer_decay, .head = c->head_rate, .unfreeze = c->unfreeze};
    QKV_TRY(qkv_rates_init(&l->rates, &l->stepper.optim, &rates));
    QKV_TRY(qkv_average_init(&l->average, &l->stepper.optim, c->average));
    bool found = false;
    if (l->cpu_start == 0) l->cpu_start = qkv_cpu_seconds();
    if (l->clock_start == 0) l->clock_start = qkv_now();
    QKV_TRY(find_state(l, &found));
    if (!found) QKV_TRY(begin(l));
    if (l->state.timed) QKV_TRY(qkv_loop_find_steps(l));
    qkv_loop_set_schedule(l);
    return QKV_OK;
}

qkv_status qkv_loop_init(qkv_loop *l) {
    qkv_status status = make_ready(l);
    if (status != QKV_OK) qkv_loop_free(l);
    return status;
}

void qkv_loop_free(qkv_loop *l) {
    qkv_average_free(&l->average);
    qkv_rates_free(&l->rates);
    qkv_free(l->class_weights);
    if (l->stepper.model) qkv_stepper_free(&l->stepper);
    qkv_batcher_free(&l->train_batches);
    qkv_batcher_free(&l->valid_batches);
    qkv_batcher_free(&l->known_batches);
}

double qkv_loop_cpu(const qkv_loop *l) {
    return l->state.cpu_before + qkv_cpu_seconds() - l->cpu_start;
}

double qkv_loop_seconds(const qkv_loop *l) {
    return l->state.seconds_before + qkv_now() - l->clock_start;
}

/* ---- telling ---- */

qkv_status qkv_loop_tell(qkv_loop *l, qkv_progress *p) {
    p->step = l->state.step;
    p->steps = l->state.steps;
    p->epoch = l->epoch;
    bool stop = l->progress && !l->progress(l->user, p);
    /* Ranks stop together, at points that all of them pass: after a step, after a validation. */
    if (qkv_parallel_size() > 1)
        stop = (p->kind == QKV_PROGRESS_STEP || p->kind == QKV_PROGRESS_VALID) &&
               qkv_parallel_any(stop);
    if (!stop || l->closing) return QKV_OK;
    return qkv_fail(QKV_INTERRUPTED, "stopped at step %lld of %lld", (long long)l->state.step,
                    (long long)l->state.steps);
}

qkv_status qkv_loop_note(qkv_loop *l, const char *format, ...) {
    char line[200];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    qkv_progress p = {.kind = QKV_PROGRESS_NOTE, .text = line};
    return qkv_loop_tell(l, &p);
}

qkv_status qkv_loop_phase(qkv_loop *l, const char *name, double share) {
    qkv_progress p = {.kind = QKV_PROGRESS_PHASE, .text = name, .share = share};
    return qkv_loop_tell(l, &p);
}

double qkv_loop_right(const qkv_loop *l, const qkv_step_result *r) {
    const bool counted = qkv_task_of(qkv_model_config(l->model))->unit != NULL;
    return counted ? (double)r->n_right / (double)(r->n_targets ? r->n_targets : 1) : NAN;
}

static qkv_status report_step(qkv_loop *l, const qkv_update *u) {
    const qkv_step_result *r = &l->recent;
    const double targets = r->n_targets ? (double)r->n_targets : 1;
    qkv_progress p = {.kind = QKV_PROGRESS_STEP,
                      .loss = r->loss / targets,
                      .step_loss = l->step_loss,
                      .accuracy = qkv_loop_right(l, r),
                      .lr = u->lr,
                      .norm = u->norm,
                      .tokens_per_s = (double)r->tokens / l->recent_seconds};
    p.gflops = 6 * r->macs / l->recent_seconds * 1e-9;
    if (l->peak > 0)
        l->peak = fmax(l->peak, p.gflops); /* it was measured while others had the processor */
    p.share = l->peak > 0 ? p.gflops / l->peak : 0;
    p.seconds_left = l->pace.n
                         ? qkv_loop_left(l, l->state.steps)
                         : (qkv_now() - l->started) * (double)(l->state.steps - l->state.step);
    return qkv_loop_tell(l, &p);
}

/* ---- a step ---- */

/* Passes differ in their number of batches only for streams. */
void qkv_loop_find_place(qkv_loop *l) {
    int64_t left = l->config.overfit ? 0 : l->state.step * l->config.accumulate;
    l->epoch = 0;
    for (;;) {
        qkv_batcher_plan(&l->train_batches, l->epoch);
        if (left < l->train_batches.n_batches) break;
        left -= l->train_batches.n_batches;
        l->epoch++;
    }
    l->batch = left;
}

/* This rank's share of batch i of a step's k: whole batches where they can be dealt out evenly,
 * else a part of each. */
static qkv_status accumulate(qkv_loop *l, int64_t batch, int64_t i, qkv_step_result *r) {
    const int rank = qkv_parallel_rank(), size = qkv_parallel_size();
    const int64_t k = l->config.accumulate;
    const bool whole = k % size == 0;
    if (whole && i / (k / size) != rank) return QKV_OK;
    l->stepper.last = i + 1 == (whole ? (rank + 1) * (k / size) : k);
    return qkv_stepper_accumulate_part(&l->stepper, &l->train_batches, batch, whole ? 0 : rank,
                                       whole ? 1 : size, (uint64_t)(l->state.step * k + i), r);
}

qkv_status qkv_loop_add_ranks(qkv_status status, qkv_step_result *r) {
    double x[] = {
        status != QKV_OK,     r->loss, (double)r->n_targets, (double)r->n_right, (double)r->tokens,
        (double)r->sequences, r->macs};
    if (qkv_parallel_size() == 1) return status;
    qkv_parallel_sum(x, sizeof x / sizeof *x);
    *r = (qkv_step_result){.loss = x[1],
                           .n_targets = (int64_t)x[2],
                           .n_right = (int64_t)x[3],
                           .tokens = (int64_t)x[4],
                           .sequences = (int64_t)x[5],
                           .macs = x[6]};
    return x[0] > 0 ? qkv_parallel_agree(status) : QKV_OK;
}

qkv_status qkv_loop_gradients(qkv_loop *l, qkv_step_result *r) {
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < l->config.accumulate; i++) {
        const int64_t batch = qkv_loop_next_batch(l);
        if (status == QKV_OK) status = accumulate(l, batch, i, r);
    }
    status = qkv_loop_add_ranks(status, r);
    /* What has been sent already must arrive; the sum is not used. */
    if (status != QKV_OK)
        (void)qkv_parallel_reduce(l->stepper.optim.params->grads, l->stepper.optim.cut);
    return status;
}

int64_t qkv_loop_next_batch(qkv_loop *l) {
    if (l->config.overfit) return 0;
    if (l->batch == l->train_batches.n_batches) {
        qkv_batcher_plan(&l->train_batches, ++l->epoch);
        l->batch = 0;
    }
    return l->batch++;
}

static qkv_status run_step(qkv_loop *l, qkv_update *u, qkv_step_result *r) {
    qkv_rates_set(&l->rates, l->epoch + (l->batch == l->train_batches.n_batches));
    QKV_TRY(qkv_loop_gradients(l, r));
    QKV_TRY(qkv_stepper_update(&l->stepper, u, r));
    qkv_loop_norm_seen(l, u->norm);
    l->step_loss = r->loss / (double)(r->n_targets > 0 ? r->n_targets : 1);
    l->recent.loss += r->loss;
    l->recent.n_targets += r->n_targets;
    l->recent.n_right += r->n_right;
    l->recent.tokens += r->tokens;
    l->recent.macs += r->macs;
    return QKV_OK;
}

static qkv_status one_step(qkv_loop *l, qkv_update *u) {
    const double begin = qkv_now();
    qkv_step_result r = {0};
    *u = (qkv_update){.lr = qkv_schedule_lr(&l->schedule, l->state.step + 1 - l->state.from),
                      .clip = l->config.clip,
                      .limit = qkv_loop_norm_limit(l),
                      .norm = NAN};
    if (l->crew.open) qkv_threads_set(qkv_crew_alone(&l->crew));
    qkv_status status = run_step(l, u, &r);
    qkv_crew_made(&l->crew, r.macs, qkv_now() - begin);
    if (l->crew.open) qkv_threads_set(l->crew.one);
    const bool skipped = status == QKV_NUMERIC;
    if (skipped)
        status = qkv_loop_skip(l, u, &r, l->config.on_nan == ON_NAN_STOP);
    else
        l->state.skipped_in_a_row = 0;
    QKV_TRY(status);
    l->state.step++;
    if (skipped)
        qkv_loop_find_place(l); /* all batches of the step are passed over, whichever failed */
    l->recent_seconds += qkv_now() - begin;
    qkv_loop_count_step(l, qkv_now() - begin);
    return QKV_OK;
}

/* ---- stretches ---- */

static bool out_of_patience(const qkv_loop *l) {
    return l->config.patience > 0 && l->state.stale >= l->config.patience;
}

/* Has the step just made ended a stretch? `epoch` and `fresh`:
 * the pass before it, and whether it was to begin another. */
static bool is_due(const qkv_loop *l, int64_t epoch, bool fresh) {
    if (l->state.step >= l->state.steps) return true;
    if (l->config.save_every) return l->state.step % l->config.save_every == 0;
    if (l->config.overfit) return false;
    return l->batch == l->train_batches.n_batches || (l->epoch > epoch && !fresh);
}

/* Steps until a stretch ends, and marks that. */
static qkv_status run_stretch(qkv_loop *l) {
    while (!l->state.pending) {
        qkv_update u;
        const int64_t epoch = l->epoch;
        const bool fresh = l->batch == l->train_batches.n_batches;
        QKV_TRY(one_step(l, &u));
        const qkv_status told = qkv_loop_correct(l);
        l->state.pending = is_due(l, epoch, fresh);
        QKV_TRY(told);
        QKV_TRY(report_step(l, &u));
        QKV_TRY(qkv_loop_say_time(l));
    }
    return qkv_loop_mark(l);
}

qkv_status qkv_loop_run(qkv_loop *l) {
    l->started = qkv_now();
    l->started_at = l->state.step;
    if (qkv_threads_open()) qkv_crew_begin(&l->crew);
    qkv_loop_find_place(l);
    qkv_status status = qkv_loop_phase(l, l->state.pending ? "validation" : "steps", 0);
    while (status == QKV_OK &&
           (l->state.pending || (l->state.step < l->state.steps && !out_of_patience(l))))
        status = run_stretch(l);
    if (l->crew.open) qkv_threads_set(0);
    if (status == QKV_INTERRUPTED && l->run && l->saved != l->state.step) {
        QKV_TRY(qkv_loop_save(l, false));
        qkv_fail(QKV_INTERRUPTED, "stopped and saved at step %lld of %lld",
                 (long long)l->state.step, (long long)l->state.steps);
    }
    return status;
}

/* ---- the end ---- */

qkv_status qkv_loop_conclude(qkv_loop *l, bool whole) {
    const qkv_loop_state now = l->state;
    bool found;
    qkv_average_leave(&l->average); /* an end that was interrupted begins once more */
    if (l->run && now.best_step > 0 && now.best_step != now.step)
        QKV_TRY(qkv_loop_restore(l, "best", &found));
    l->state = now; /* the weights are older, the training is as far as it was */
    qkv_optim_settle(&l->stepper.optim);
    qkv_average_enter(&l->average);
    QKV_TRY(qkv_loop_weigh(l));
    return whole ? fit_companions(l, true, &found) : QKV_OK;
}
