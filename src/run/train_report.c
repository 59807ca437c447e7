/* What a person sees of a run and finds in its folder: the header with what was chosen and what it
 * will take, and at the end the model card. */
#include "run/train_run.h"
#include "folder/folder.h"
#include "base/file.h"
#include "base/mem.h"
#include "model/description.h"
#include "base/parallel.h"
#include "task/companion.h"

#include <math.h>
#include <string.h>

/* ---- telling ---- */

bool qkv_run_tell(void *user, const qkv_progress *p) {
    qkv_run *r = user;
    /* Rank 0 speaks for all; the others only ask whether to stop. */
    const qkv_progress alive = {.kind = QKV_PROGRESS_ALIVE};
    if (qkv_parallel_rank() > 0) p = &alive;
    qkv_run_log_keep(&r->log, p);
    return !r->request->progress || r->request->progress(r->request->user, p);
}

qkv_status qkv_run_note(qkv_run *r, const char *format, ...) {
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const qkv_progress p = {.kind = QKV_PROGRESS_NOTE, .text = line};
    return qkv_run_tell(r, &p) ? QKV_OK
                               : qkv_fail(QKV_INTERRUPTED, "stopped before the first step");
}

qkv_status qkv_run_phase(qkv_run *r, const char *name) {
    const qkv_progress p = {.kind = QKV_PROGRESS_PHASE, .text = name};
    const bool go_on = qkv_run_tell(r, &p) && !r->stop;
    return go_on ? QKV_OK : qkv_fail(QKV_INTERRUPTED, "stopped before the first step");
}

/* ---- the header ---- */

/* "12,345" */
typedef struct grouped {
    char text[40];
} grouped;
static grouped group(double x) {
    grouped g;
    qkv_print_grouped(x, g.text);
    return g;
}

static qkv_status say_data(qkv_run *r) {
    static const char *const done[] = {"cut", "split", "left out"}; /* by qkv_too_long */
    QKV_TRY(qkv_run_note(r, "data      %s examples of %s tokens to train on, %s %s",
                         group((double)r->train_ids.n).text,
                         group((double)qkv_encoded_tokens(&r->train_ids)).text,
                         group((double)r->valid_ids.n).text,
                         r->has_valid_corpus || !r->valid_ids.n ? "to validate" : "held out"));
    if (r->counts.n_empty)
        QKV_TRY(qkv_run_note(r, "          %s rows without a token left out",
                             group((double)r->counts.n_empty).text));
    if (!r->counts.n_cut) return QKV_OK;
    return qkv_run_note(
        r, "          %s over %lld tokens %s%s", group((double)r->counts.n_cut).text,
        (long long)r->config.max_len, done[r->train.too_long],
        r->pairs && r->train.too_long == QKV_TOO_LONG_CUT ? ", the longer text first" : "");
}

/* ---- what was chosen for those who left it to us ---- */

/* Notes `text` in lines of at most 80 columns, the first behind `label`. Takes the text. */
static qkv_status say_wrapped(qkv_run *r, const char *label, qkv_buf *text) {
    enum { WIDTH = 70 };
    qkv_status status = text->status;
    for (const char *at = text->len ? text->data : "", *next; *at && status == QKV_OK; at = next) {
        size_t n = strlen(at);
        for (size_t end = WIDTH; n > WIDTH && end > 0; end--)
            if (at[end] == ' ') n = end;
        status = qkv_run_note(r, "%-9s %.*s", label, (int)n, at);
        next = at + n + (at[n] == ' ');
        label = "";
    }
    qkv_buf_free(text);
    return status;
}

/* Adds to a list of facts. */
static void also(qkv_buf *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void also(qkv_buf *list, const char *format, ...) {
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    qkv_buf_printf(list, "%s%s", list->len ? ", " : "", text);
}

/* The preset, and why; what else there is. */
static void list_preset(const qkv_run *r, qkv_buf *is, qkv_buf *instead) {
    if (!r->chosen) return;
    qkv_buf_printf(is, "%s, since there are %s rows (%s tokens);", r->chosen->is,
                   group((double)r->corpus.n).text,
                   group((double)qkv_encoded_tokens(&r->train_ids)).text);
    qkv_buf_puts(instead, r->chosen->instead);
}

/* What it reads: tokens, and what companions read beside them. */
static void list_reading(qkv_run *r, qkv_buf *out) {
    const qkv_recipe *recipe = r->task->recipe;
    if (!r->train.tokenizer[0] && !r->request->init)
        also(out, "%s %s%s", group((double)r->config.vocab_size).text,
             qkv_recipe_tokens_are(recipe), recipe->lowercase ? " in lower case" : "");
    qkv_settings settings = qkv_config_settings(&r->config);
    settings.given = r->given;
    char text[120];
    const qkv_companion *companion;
    for (int i = 0; !r->goes_on && (companion = qkv_companion_at(&r->config, i)); i++)
        if (companion->say && companion->say(&settings, text, sizeof text)) also(out, "%s", text);
}

/* How it learns. What was left open in the request's settings is filled in in the loop's. */
static void list_learning(const qkv_run *r, const qkv_loop *l, qkv_buf *out) {
    const qkv_train_config *asked = &r->train, *c = &l->config;
    if (!asked->epochs && !c->steps && c->minutes == 0)
        also(out, "%s%lld passes", l->margin > 0 ? "at most " : "", (long long)c->epochs);
    if (!asked->steps && c->steps) also(out, "%lld steps", (long long)c->steps);
    if (asked->optimizer == QKV_OPTIM_COUNT)
        also(out, "%s", qkv_optim_name((qkv_optim_kind)c->optimizer));
    if (asked->lr == 0) also(out, "rate %.3g", c->lr);
    if (asked->head_rate == 0 && c->head_rate != 1)
        also(out, "%.3g times that for the head", c->head_rate);
    if (asked->label_smoothing < 0 && c->label_smoothing > 0)
        also(out, "smoothing %.3g", c->label_smoothing);
    if (asked->average < 0 && c->average > 1)
        also(out, "mean of %lld validations", (long long)c->average);
}

static qkv_status say_choices(qkv_run *r, const qkv_loop *l) {
    enum { LISTS = 4 };
    qkv_buf lists[LISTS] = {{0}};
    const char *label = "chosen";
    qkv_status status = QKV_OK;
    list_preset(r, &lists[0], &lists[1]);
    list_reading(r, &lists[2]);
    list_learning(r, l, &lists[3]);
    for (int i = 0; i < LISTS; i++) {
        const bool any = lists[i].len > 0;
        const qkv_status said = say_wrapped(r, label, &lists[i]);
        if (status == QKV_OK) status = said;
        if (any) label = "";
    }
    return status;
}

static qkv_status say_model(qkv_run *r) {
    const qkv_config *c = qkv_model_config(r->model);
    return qkv_run_note(r,
                        "model     %s parameters: %s, %lld layer%s, d_model %lld, %s tokens known",
                        group((double)qkv_model_params(r->model)->count).text,
                        c->arch == QKV_ARCH_LSTM  ? "LSTM"
                        : c->arch == QKV_ARCH_GRU ? "GRU"
                                                  : "Transformer",
                        (long long)c->layers, c->layers == 1 ? "" : "s", (long long)c->d_model,
                        group((double)c->vocab_size).text);
}

qkv_status qkv_run_header(qkv_run *r, qkv_loop *l) {
    const qkv_train_config *c = &l->config;
    l->peak = qkv_kern_get()->peak_gflops((qkv_precision)c->precision, 0.03) * qkv_parallel_size();
    QKV_TRY(say_data(r));
    if (r->n_shared) {
        QKV_TRY(qkv_run_note(r, "warning   %s of the validation rows are in the training data too",
                             group((double)r->n_shared).text));
        QKV_TRY(qkv_run_note(r, "          (the first: line %lld); their figures flatter",
                             (long long)r->first_shared));
    }
    QKV_TRY(say_choices(r, l));
    QKV_TRY(say_model(r));
    QKV_TRY(qkv_run_note(r, "training  %s steps of %s tokens, lr %.3g, %d thread%s%s",
                         group((double)l->state.steps).text,
                         group((double)(c->batch_tokens * c->accumulate)).text, c->lr,
                         qkv_threads(), qkv_threads() == 1 ? "" : "s",
                         l->state.step > l->state.from ? "; resumed" : ""));
    if (l->state.from > 0 && l->state.from == l->state.step)
        QKV_TRY(qkv_run_note(r, "          from step %s on, the end of the run that is there: its",
                             group((double)l->state.from).text));
    if (l->state.from > 0 && l->state.from == l->state.step)
        QKV_TRY(qkv_run_note(r, "          weights, and a new schedule of the rate"));
    return qkv_run_say_memory(r, c);
}

/* ---- the model card ---- */

/* A word of a command line, quoted where a shell would not take it as it is. */
static void put_word(qkv_buf *out, const char *word) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+@%-";
    if (*word && strspn(word, plain) == strlen(word)) {
        qkv_buf_puts(out, word);
        return;
    }
    qkv_buf_putc(out, '\'');
    for (; *word; word++)
        if (*word == '\'')
            qkv_buf_puts(out, "'\\''");
        else
            qkv_buf_putc(out, *word);
    qkv_buf_putc(out, '\'');
}

static void put_option(qkv_buf *out, const char *name, const char *const *values) {
    if (!values || !*values) return;
    qkv_buf_printf(out, " --%s", name);
    for (; *values; values++) {
        qkv_buf_putc(out, ' ');
        put_word(out, *values);
    }
}

static void put_command(const qkv_train_request *q, qkv_buf *out) {
    const char *const texts[] = {q->out, q->preset, q->init};
    static const char *const names[] = {"out", "preset", "init"};
    qkv_buf_printf(out, "qkv train %s", q->task);
    put_option(out, "train", q->train);
    put_option(out, "valid", q->valid);
    for (int i = 0; i < 3; i++)
        if (texts[i]) put_option(out, names[i], (const char *const[]){texts[i], NULL});
    for (const char *const *pair = q->set; pair && *pair; pair++)
        put_option(out, "set", (const char *const[]){*pair, NULL});
}

static void put_use(const qkv_run *r, qkv_buf *out) {
    static const char one[] = "echo \"some text\"";
    const char *line = r->task->use, *gap = strstr(line, "%s");
    if (r->config.pairs && strncmp(line, one, sizeof one - 1) == 0) {
        qkv_buf_puts(out, "printf 'some text\\tanother\\n'");
        line += sizeof one - 1;
    }
    qkv_buf_add(out, line, (size_t)(gap - line));
    put_word(out, r->request->out);
    qkv_buf_puts(out, gap + 2);
}

static void write_card(const qkv_run *r, const qkv_loop *l, qkv_buf *out) {
    const qkv_config *c = qkv_model_config(r->model);
    const bool by_class = r->task->counts_right;
    qkv_buf_printf(out, "# A model for: %s\n\nTrained with qkv %s on", r->request->task,
                   qkv_version());
    for (const char *const *p = r->request->train; p && *p; p++) qkv_buf_printf(out, " `%s`", *p);
    qkv_buf_printf(out, ".\n\n| what | value |\n| --- | --- |\n");
    qkv_buf_printf(out, "| rows, examples, tokens | %s, %s, %s |\n",
                   group((double)r->corpus.n).text, group((double)r->train_ids.n).text,
                   group((double)qkv_encoded_tokens(&r->train_ids)).text);
    qkv_buf_printf(out, "| parameters | %s |\n| layers, d_model, vocabulary | %lld, %lld, %s |\n",
                   group((double)qkv_model_params(r->model)->count).text, (long long)c->layers,
                   (long long)c->d_model, group((double)c->vocab_size).text);
    qkv_buf_printf(out, "| steps | %s%s |\n", group((double)l->state.step).text,
                   l->state.skipped ? " (some were passed over: see `incidents`)" : "");
    if (r->valid_ids.n && l->state.best_step > 0)
        qkv_buf_printf(out, "| best validation | %s %.4f at step %s, on %s examples%s |\n",
                       by_class ? "accuracy" : "loss",
                       by_class ? l->state.best_right : -l->state.best,
                       group((double)l->state.best_step).text, group((double)r->valid_ids.n).text,
                       r->has_valid_corpus ? "" : " held out of the training data");
    if (l->average.most || l->stepper.optim.ema)
        qkv_buf_printf(out, "| weights | %s |\n",
                       l->average.most ? "mean of the last validations' (`average`)"
                                       : "moving average (`ema`)");
    qkv_buf_printf(out, "| core-minutes | %.2f |\n| seed | %lld |\n\n", qkv_loop_cpu(l) / 60,
                   (long long)r->train.seed);
    qkv_buf_puts(out, "Made by\n\n    ");
    put_command(r->request, out);
    qkv_buf_puts(out, "\n\nUse it:\n\n    ");
    put_use(r, out);
    qkv_buf_puts(out, "\n\n![loss](loss.svg)\n\n`run.json` holds every setting, `log.jsonl` (and "
                      "the event files, for TensorBoard) the course of the training.\n");
}

/* The best validation, if there was one. */
static void say_best(qkv_run *r, const qkv_loop_state *s, const char *more) {
    const bool by_class = r->task->counts_right;
    if (s->best_step > 0)
        (void)qkv_run_note(r, "best      validation %s %.4f at step %s%s",
                           by_class ? "accuracy" : "loss", by_class ? s->best_right : -s->best,
                           group((double)s->best_step).text, more);
}

static void say_use(qkv_run *r) {
    qkv_buf use = {0};
    put_use(r, &use);
    if (use.status == QKV_OK) (void)qkv_run_note(r, "use it    %s", use.data);
    qkv_buf_free(&use);
}

qkv_status qkv_run_summary(qkv_run *r, const qkv_loop *l) {
    qkv_buf path = {0}, card = {0};
    qkv_status status = qkv_run_show_course(r, l);
    write_card(r, l, &card);
    if (status == QKV_OK) status = card.status;
    if (status == QKV_OK) status = qkv_folder_part(r->request->out, QKV_PART_CARD, &path);
    if (status == QKV_OK) status = qkv_file_write(path.data, card.data, card.len);
    if (status == QKV_OK) {
        say_best(r, &l->state, "");
        if (r->config.ngrams && r->config.encoder_vote == 0)
            (void)qkv_run_note(r,
                               "          the n-grams decide alone: the encoder added too little");
        (void)qkv_run_note(r, "spent     %.2f core-minutes", qkv_loop_cpu(l) / 60);
        say_use(r);
    }
    qkv_buf_free(&path);
    qkv_buf_free(&card);
    return status;
}

void qkv_run_say_stopped(qkv_run *r, const qkv_loop *l) {
    if (l->state.best_step > 0)
        say_best(r, &l->state, ": its weights are in place");
    else
        (void)qkv_run_note(r, "stopped   no validation yet: the weights of this step are in place");
    say_use(r);
    (void)qkv_run_note(r, "go on     by the same command");
}

qkv_status qkv_run_say_finished(qkv_run *r) {
    const qkv_outcome *o = &r->before;
    const qkv_loop_state s = {
        .best_step = o->best_step, .best = o->best, .best_right = o->best_right};
    QKV_TRY(qkv_folder_read_config(r->request->out, &r->config, NULL)); /* is it there, whole? */
    const bool minutes = o->seconds >= 120;
    QKV_TRY(qkv_run_note(r, "finished  this run is done: %s steps in %.*f %s",
                         group((double)o->step).text, minutes,
                         minutes ? o->seconds / 60 : o->seconds, minutes ? "minutes" : "seconds"));
    say_best(r, &s, "");
    say_use(r);
    QKV_TRY(qkv_run_note(r, "go on     with a larger --%s; start over with --overwrite",
                         o->minutes > 0 ? "minutes"
                         : o->steps > 0 ? "steps"
                                        : "epochs"));
    if (o->minutes > 0 || o->steps > 0) return QKV_OK;
    return qkv_run_note(r, "          (it made %lld passes)", (long long)o->passes);
}
