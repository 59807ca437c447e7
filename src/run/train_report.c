/* What a person sees of a run and finds in its folder: the header with what it will take,
 * log.jsonl, the event file, and at the end the loss curve and the model card. The curve is drawn
 * from the log, so it is whole after any number of resumes. */
#include "run/train_run.h"
#include "folder/folder.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/machine.h"
#include "draw/chart.h"
#include "model/description.h"
#include "base/parallel.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- the log ---- */

static const qkv_json_limits line_limits = {.bytes = 4096, .nodes = 64, .depth = 2};

/* What one line of the log says; false for a line that is not whole (cut off by a kill). */
typedef struct entry {
    bool valid;
    int64_t step;
    double loss;
} entry;

static bool read_entry(const char *line, size_t len, entry *e) {
    qkv_json doc;
    if (qkv_json_parse(&doc, "log.jsonl", line, len, line_limits) != QKV_OK) return false;
    const qkv_json_at root = qkv_json_root(&doc);
    const char *kind = "";
    size_t n = 0;
    const bool whole =
        qkv_json_get_string(root, "kind", true, &kind, &n) == QKV_OK &&
        qkv_json_get_int(root, "step", true, 0, INT64_MAX, &e->step) == QKV_OK &&
        qkv_json_get_real(root, "loss", true, -INFINITY, INFINITY, &e->loss) == QKV_OK;
    e->valid = n == 5 && memcmp(kind, "valid", 5) == 0;
    qkv_json_free(&doc);
    return whole;
}

typedef bool (*entry_fn)(void *user, const entry *e, const char *line, size_t len);

/* Calls `use` for every whole line of the log; no log: none. */
static qkv_status each_entry(const char *path, entry_fn use, void *user) {
    qkv_file file;
    if (!qkv_file_exists(path)) return QKV_OK;
    QKV_TRY(qkv_file_open(path, SIZE_MAX, &file));
    bool go_on = true;
    for (const char *at = file.data, *end = at + file.size; at < end && go_on;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) break;
        entry e;
        if (read_entry(at, (size_t)(stop - at), &e))
            go_on = use(user, &e, at, (size_t)(stop + 1 - at));
        at = stop + 1;
    }
    qkv_file_close(&file);
    return go_on ? QKV_OK : QKV_FAILED;
}

typedef struct kept {
    qkv_buf text;
    int64_t step;
} kept;

static bool keep(void *user, const entry *e, const char *line, size_t len) {
    kept *k = user;
    if (e->step <= k->step) qkv_buf_add(&k->text, line, len);
    return k->text.status == QKV_OK;
}

qkv_status qkv_run_open_log(qkv_run *r, int64_t step) {
    qkv_buf path = {0};
    kept k = {.step = step};
    QKV_TRY(qkv_folder_part(r->request->out, QKV_PART_LOG, &path));
    qkv_status status = each_entry(path.data, keep, &k);
    if (status == QKV_OK && qkv_file_exists(path.data))
        status = qkv_file_write(path.data, k.text.len ? k.text.data : "", k.text.len);
    if (status == QKV_OK && !(r->log = fopen(path.data, "a")))
        status = qkv_fail(QKV_FAILED, "%s: cannot be written: %s", path.data, strerror(errno));
    if (r->log) setvbuf(r->log, NULL, _IOLBF, BUFSIZ); /* who follows it sees whole lines */
    if (status == QKV_OK) status = qkv_tensorboard_open(&r->board, r->request->out);
    qkv_buf_free(&k.text);
    qkv_buf_free(&path);
    return status;
}

/* A full disk must not end a training for want of a log line: failures here are passed over. `loss`
 * is that of the steps since the last line, or of the validation. */
static void write_log(qkv_run *r, const qkv_progress *p, double loss) {
    const bool step = p->kind == QKV_PROGRESS_STEP;
    fprintf(r->log,
            "{\"kind\":\"%s\",\"step\":%lld,\"epoch\":%lld,\"loss\":%.6g,\"accuracy\":%.6g,"
            "\"lr\":%.6g,\"norm\":%.6g,\"tokens_per_s\":%.6g}\n",
            step ? "step" : "valid", (long long)p->step, (long long)p->epoch,
            isfinite(loss) ? loss : 0, p->accuracy, p->lr, isfinite(p->norm) ? p->norm : 0,
            p->tokens_per_s);
    const struct {
        const char *tag;
        double value;
        bool of_step;
    } curves[] = {
        {"loss/train", loss, true},
        {"lr", p->lr, true},
        {"tokens_per_s", p->tokens_per_s, true},
        {"loss/valid", loss, false},
        {"accuracy/valid", p->accuracy, false},
    };
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        if (r->board.file && step == curves[i].of_step)
            (void)!qkv_tensorboard_scalar(&r->board, curves[i].tag, p->step, curves[i].value);
    if (!step) fflush(r->log);
}

/* Every tenth step, and the first ten, leave a line; so does every validation. */
static void keep_log(qkv_run *r, const qkv_progress *p) {
    if (p->kind == QKV_PROGRESS_VALID) write_log(r, p, p->loss);
    if (p->kind != QKV_PROGRESS_STEP) return;
    r->unlogged += p->step_loss;
    r->n_unlogged++;
    if (p->step % 10 != 0 && p->step > 10) return;
    write_log(r, p, r->unlogged / (double)r->n_unlogged);
    r->unlogged = 0;
    r->n_unlogged = 0;
}

bool qkv_run_tell(void *user, const qkv_progress *p) {
    qkv_run *r = user;
    /* Rank 0 speaks for all; the others only ask whether to stop. */
    const qkv_progress alive = {.kind = QKV_PROGRESS_ALIVE};
    if (qkv_parallel_rank() > 0) p = &alive;
    if (r->log) keep_log(r, p);
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

/* Bytes of memory that training takes: arrays parallel to the weights, what a step keeps,
 * the ids. */
static double bytes_needed(const qkv_run *r, const qkv_train_config *c, const qkv_description *d) {
    const double views = c->r_drop > 0 ? 2 : 1,
                 copies = 4 + (c->ema > 0) + (c->average > 1 ? 1 + (double)c->average : 0);
    /* Gradients of activations come and go: about half as much again at the most. */
    return copies * d->weight_bytes + 1.5 * views * d->activation_bytes + 32e6 +
           4 * (double)(qkv_encoded_tokens(&r->train_ids) + qkv_encoded_tokens(&r->valid_ids));
}

/* "12,345" */
typedef struct grouped {
    char text[40];
} grouped;
static grouped group(double x) {
    grouped g;
    qkv_print_grouped(x, g.text);
    return g;
}

qkv_status qkv_run_check_memory(const qkv_run *r) {
    const int64_t batch_tokens = r->train.batch_tokens ? r->train.batch_tokens : 512;
    qkv_description d;
    double total;
    (void)qkv_machine_memory(&total);
    QKV_TRY(describe_batch(r, batch_tokens, &d));
    const double bytes = bytes_needed(r, &r->train, &d);
    qkv_describe_free(&d);
    if (total == 0 || bytes <= total) return QKV_OK;
    return qkv_fail(QKV_FAILED,
                    "the training needs about %.1f GB of memory, the machine has %.1f GB; lower "
                    "batch_tokens (%lld) or the size of the model",
                    bytes / 1e9, total / 1e9, (long long)batch_tokens);
}

static qkv_status say_data(qkv_run *r) {
    const int64_t left_out = r->corpus.n_empty + r->counts.n_empty;
    qkv_buf more = {0};
    if (left_out) qkv_buf_printf(&more, ", %s empty ones left out", group((double)left_out).text);
    static const char *const done[] = {"cut", "split", "left out"}; /* by qkv_too_long */
    if (r->counts.n_cut)
        qkv_buf_printf(&more, ", %s over %lld tokens %s", group((double)r->counts.n_cut).text,
                       (long long)r->config.max_len, done[r->train.too_long]);
    qkv_status status =
        more.status != QKV_OK
            ? more.status
            : qkv_run_note(r,
                           "data      %s rows (%s)%s; %s examples of %s tokens to train on, %s to "
                           "validate%s",
                           group((double)r->corpus.n).text, r->corpus.format,
                           more.len ? more.data : "", group((double)r->train_ids.n).text,
                           group((double)qkv_encoded_tokens(&r->train_ids)).text,
                           group((double)r->valid_ids.n).text,
                           r->has_valid_corpus || !r->valid_ids.n ? "" : " (held out)");
    qkv_buf_free(&more);
    return status;
}

/* What was chosen for those who named no preset, and why. */
static qkv_status say_choice(qkv_run *r) {
    if (!r->chosen) return QKV_OK;
    QKV_TRY(qkv_run_note(r, "chosen    %s, since there are %s rows (%s tokens);", r->chosen->is,
                         group((double)r->corpus.n).text,
                         group((double)qkv_encoded_tokens(&r->train_ids)).text));
    return qkv_run_note(r, "          %s", r->chosen->instead);
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
    qkv_description d;
    double total;
    const double have = qkv_machine_memory(&total);
    l->peak = qkv_kern_get()->peak_gflops((qkv_precision)c->precision, 0.03) * qkv_parallel_size();
    QKV_TRY(describe_batch(r, c->batch_tokens, &d));
    const double bytes = bytes_needed(r, c, &d);
    /* Forward and twice as much backward, two operations a multiply-add, at half of the peak. */
    const double work = 6 * (c->r_drop > 0 ? 2 : 1) * d.macs * (double)c->accumulate,
                 seconds = work * (double)(l->steps - l->step) / (0.5e9 * l->peak);
    qkv_describe_free(&d);
    QKV_TRY(say_data(r));
    if (r->n_shared)
        QKV_TRY(
            qkv_run_note(r,
                         "warning   %s of the validation rows are in the training data too (the "
                         "first: line %lld); their figures flatter",
                         group((double)r->n_shared).text, (long long)r->first_shared));
    QKV_TRY(say_choice(r));
    QKV_TRY(say_model(r));
    QKV_TRY(qkv_run_note(r, "training  %s steps of %s tokens, lr %.3g, %d thread%s%s",
                         group((double)l->steps).text,
                         group((double)(c->batch_tokens * c->accumulate)).text, c->lr,
                         qkv_threads(), qkv_threads() == 1 ? "" : "s", l->step ? "; resumed" : ""));
    QKV_TRY(qkv_run_note(r, "estimate  %.0f MB of memory, %.*f minutes", bytes / 1e6,
                         seconds < 600 ? 1 : 0, seconds / 60));
    if (have > 0 && bytes > have)
        QKV_TRY(qkv_run_note(r,
                             "warning   only %.0f MB of memory are free now: it may swap or be "
                             "killed; lower --batch-tokens",
                             have / 1e6));
    return QKV_OK;
}

/* ---- the loss curve ---- */

typedef struct curve {
    QKV_VEC(double) x, y;
} curve;

typedef struct curves {
    curve train, valid;
} curves;

static bool add_point(void *user, const entry *e, const char *line, size_t len) {
    (void)line, (void)len;
    curves *all = user;
    curve *c = e->valid ? &all->valid : &all->train;
    return QKV_PUSH(c->x, (double)e->step) && QKV_PUSH(c->y, e->loss);
}

static qkv_status draw_curves(qkv_run *r, const curves *all) {
    const qkv_series series[] = {
        {"training", all->train.x.at, all->train.y.at, all->train.x.n},
        {"validation", all->valid.x.at, all->valid.y.at, all->valid.x.n},
    };
    const qkv_chart chart = {.title = "Loss",
                             .x_label = "step",
                             .y_label = "loss",
                             .series = series,
                             .n = all->valid.x.n ? 2 : 1};
    qkv_buf svg = {0}, plot = {0}, path = {0};
    qkv_status status = qkv_chart_svg(&chart, 640, 360, &svg);
    if (status == QKV_OK) status = qkv_path_join(&path, r->request->out, "loss.svg");
    if (status == QKV_OK) status = qkv_file_write(path.data, svg.data, svg.len);
    const int columns = r->request->columns;
    const qkv_ink ink = {.columns = columns > 0 && columns < 80 ? columns : 80};
    if (status == QKV_OK) status = qkv_chart_terminal(&chart, ink, 10, &plot);
    if (status == QKV_OK) { /* the training is done: a wish to stop comes too late */
        const qkv_progress p = {.kind = QKV_PROGRESS_NOTE, .text = plot.data};
        (void)qkv_run_tell(r, &p);
    }
    qkv_buf_free(&svg);
    qkv_buf_free(&plot);
    qkv_buf_free(&path);
    return status;
}

static qkv_status show_curve(qkv_run *r) {
    curves all = {0};
    qkv_buf path = {0};
    if (r->log) fflush(r->log);
    qkv_status status = qkv_folder_part(r->request->out, QKV_PART_LOG, &path);
    if (status == QKV_OK) status = each_entry(path.data, add_point, &all);
    if (status == QKV_OK && all.train.x.n > 1) status = draw_curves(r, &all);
    curve *const both[] = {&all.train, &all.valid};
    for (int i = 0; i < 2; i++) {
        qkv_free(both[i]->x.at);
        qkv_free(both[i]->y.at);
    }
    qkv_buf_free(&path);
    return status;
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
    const char *line = r->task->use, *gap = strstr(line, "%s");
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
    qkv_buf_printf(out, "| steps | %s%s |\n", group((double)l->step).text,
                   l->skipped ? " (some were passed over: see `incidents`)" : "");
    if (r->valid_ids.n && l->best_step > 0)
        qkv_buf_printf(out, "| best validation | %s %.4f at step %s, on %s examples%s |\n",
                       by_class ? "accuracy" : "loss", by_class ? l->best_right : -l->best,
                       group((double)l->best_step).text, group((double)r->valid_ids.n).text,
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

qkv_status qkv_run_summary(qkv_run *r, const qkv_loop *l) {
    qkv_buf path = {0}, card = {0}, use = {0};
    qkv_status status = show_curve(r);
    write_card(r, l, &card);
    put_use(r, &use);
    if (status == QKV_OK) status = card.status != QKV_OK ? card.status : use.status;
    if (status == QKV_OK) status = qkv_folder_part(r->request->out, QKV_PART_CARD, &path);
    if (status == QKV_OK) status = qkv_file_write(path.data, card.data, card.len);
    if (status == QKV_OK) {
        const bool by_class = r->task->counts_right;
        if (l->best_step > 0)
            (void)qkv_run_note(r, "best      validation %s %.4f at step %s",
                               by_class ? "accuracy" : "loss", by_class ? l->best_right : -l->best,
                               group((double)l->best_step).text);
        (void)qkv_run_note(r, "spent     %.2f core-minutes", qkv_loop_cpu(l) / 60);
        (void)qkv_run_note(r, "use it    %s", use.data);
    }
    qkv_buf_free(&path);
    qkv_buf_free(&card);
    qkv_buf_free(&use);
    return status;
}
