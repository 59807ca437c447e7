/* qkv_train: from text files to a model folder.
 *
 *   read the corpus → train (or open) a tokenizer → ids → choose sizes → build the model → loop → folder
 *
 * The run folder is the model folder: config.json, tokenizer.json, model.safetensors (the best weights), README.md, beside
 * run.json (the effective settings), log.jsonl and checkpoints/. */
#include "api/textmodel.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "data/cache.h"
#include "model/weights.h"
#include "store/checkpoint.h"
#include "train/loop.h"
#include "train/parallel.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct run {
    const qkv_train_request *request;
    qkv_task_kind task;
    qkv_config config;
    qkv_train_config train;
    qkv_corpus corpus, valid_corpus;
    bool has_valid_corpus;
    qkv_tokenizer *tokenizer;
    qkv_encoded train_ids, valid_ids;
    qkv_model *model;
    FILE *log;
    int lock;
} run;

/* ---- settings ---- */

static qkv_status load_config(const char *folder, qkv_config *config) {
    qkv_buf path = {0};
    qkv_status status = qkv_path_join(&path, folder, "config.json");
    if (status == QKV_OK) status = qkv_config_load(config, path.data);
    qkv_buf_free(&path);
    return status;
}

/* Defaults, then the preset's or the first model's sizes, then what the request says. A vocabulary that nobody
 * asks for is 0, to be chosen from the data. */
static qkv_status assign(run *r, const char *preset) {
    qkv_settings groups[2] = {qkv_config_settings(&r->config), qkv_train_settings(&r->train)};
    qkv_config_default(&r->config);
    qkv_settings_default(&groups[1]);
    r->config.vocab_size = 0;
    if (r->request->init)
        QKV_TRY(load_config(r->request->init, &r->config));
    else if (preset)
        QKV_TRY(qkv_config_preset(&r->config, preset));
    if (r->request->config)
        QKV_TRY(qkv_settings_load(groups, 2, r->request->config, qkv_config_foreign));
    for (const char *const *pair = r->request->set; pair && *pair; pair++)
        QKV_TRY(qkv_settings_assign(groups, 2, *pair));
    r->config.task = r->task;
    return QKV_OK;
}

static qkv_status find_task(run *r) {
    const char *names[QKV_TASK_COUNT];
    size_t n = 0;
    for (int k = 0; k < QKV_TASK_COUNT; k++) {
        const qkv_task *row = qkv_task_get((qkv_task_kind)k);
        if (!row) continue;
        names[n++] = row->name;
        if (strcmp(row->name, r->request->task) == 0) return r->task = (qkv_task_kind)k, QKV_OK;
    }
    const char *near = qkv_nearest(r->request->task, names, n);
    return qkv_fail(QKV_USAGE, "there is no task \"%.40s\"; %s%s", r->request->task,
                    near ? "did you mean " : "there are classify, translate, lm and mlm",
                    near ? near : "");
}

/* ---- texts ---- */

static size_t count_paths(const char *const *paths) {
    size_t n = 0;
    while (paths && paths[n]) n++;
    return n;
}

static qkv_status read_texts(run *r) {
    qkv_corpus_spec spec = {.shape = qkv_corpus_shape_of(r->task),
                            .paths = r->request->train,
                            .n_paths = count_paths(r->request->train),
                            .format = r->train.format[0] ? r->train.format : NULL};
    if (spec.n_paths == 0) return qkv_fail(QKV_USAGE, "train needs data: --train FILE");
    QKV_TRY(qkv_corpus_read(&r->corpus, &spec));
    if (r->task == QKV_TASK_CLASSIFY && r->corpus.labels.n < 2)
        return qkv_fail(QKV_BAD_FILE, "%s: all rows have the same label; a classifier needs two",
                        spec.paths[0]);
    if (!r->request->valid) return QKV_OK;
    spec.paths = r->request->valid;
    spec.n_paths = count_paths(spec.paths);
    spec.labels = r->task == QKV_TASK_CLASSIFY ? &r->corpus.labels : NULL;
    QKV_TRY(qkv_corpus_read(&r->valid_corpus, &spec));
    r->has_valid_corpus = true;
    return QKV_OK;
}

static int64_t corpus_bytes(const qkv_corpus *c) {
    int64_t bytes = 0;
    for (size_t i = 0; i < c->n; i++)
        bytes += (int64_t)(c->rows[i].text.len + c->rows[i].second.len);
    return bytes;
}

/* ---- tokenizer ---- */

/* In this order: the run's own (resuming), that of the model to start from, a file, a kind to train. */
static qkv_status get_tokenizer(run *r, const char *own) {
    qkv_buf path = {0};
    if (qkv_file_exists(own)) {
        QKV_TRY(qkv_tokenizer_open(own, &r->tokenizer));
    } else if (r->request->init) {
        qkv_status status = qkv_path_join(&path, r->request->init, "tokenizer.json");
        if (status == QKV_OK) status = qkv_tokenizer_open(path.data, &r->tokenizer);
        qkv_buf_free(&path);
        if (status == QKV_OK) status = qkv_tokenizer_save(r->tokenizer, own);
        QKV_TRY(status);
    } else {
        if (r->config.vocab_size == 0) { /* a token a hundred bytes: most are then seen often */
            const int64_t fit = corpus_bytes(&r->corpus) / 100;
            r->config.vocab_size = fit < 500 ? 500 : fit > 16000 ? 16000 : fit;
        }
        QKV_TRY(qkv_tokenizer_for(r->train.tokenizer[0] ? r->train.tokenizer : "bpe", &r->corpus,
                                  &r->config, r->train.lowercase, &r->tokenizer));
        QKV_TRY(qkv_tokenizer_save(r->tokenizer, own));
    }
    r->config.vocab_size = (int64_t)qkv_tokenizer_size(r->tokenizer);
    return QKV_OK;
}

/* ---- ids ---- */

/* Rows of the training data that are held out: a keyed choice, or the end of running text. */
static void hold_out(const run *r, bool *train, bool *valid) {
    const size_t n = r->corpus.n;
    const size_t held = (size_t)(r->train.valid_share * (double)n + 0.999);
    const bool any = !r->has_valid_corpus && n >= (r->task == QKV_TASK_LM ? 2 : 20);
    const qkv_rng rng = {.seed = (uint64_t)r->train.seed, .stream = 0x73706c6974};
    for (size_t i = 0; i < n; i++) {
        const size_t place = r->task == QKV_TASK_LM ? n - 1 - i : qkv_rng_permute(rng, n, i);
        valid[i] = any && place < held;
        train[i] = !valid[i];
    }
}

/* The ids of the rows in `take`, by way of the run's cache. */
static qkv_status make_set(run *r, const qkv_corpus *corpus, const bool *take, const char *name,
                           qkv_encoded *out) {
    const qkv_tokenise_spec spec = qkv_tokenise_spec_of(&r->config);
    qkv_tokenise_counts counts;
    qkv_buf path = {0};
    qkv_buf_printf(&path, "%s/cache", r->request->out);
    qkv_status status = path.status;
    if (status == QKV_OK) status = qkv_folder_make(path.data);
    qkv_buf_printf(&path, "/%s.ids", name);
    if (status == QKV_OK) status = path.status;
    if (status == QKV_OK)
        status =
            qkv_tokenise_cached(r->tokenizer, corpus, take, &spec, path.data, out, &counts, NULL);
    qkv_buf_free(&path);
    return status;
}

static qkv_status make_ids(run *r) {
    bool *take = qkv_zalloc(2 * r->corpus.n, sizeof *take), *held = take + r->corpus.n;
    if (!take) return QKV_FAILED;
    hold_out(r, take, held);
    qkv_status status = make_set(r, &r->corpus, take, "train", &r->train_ids);
    if (status == QKV_OK && r->has_valid_corpus)
        status = make_set(r, &r->valid_corpus, NULL, "valid", &r->valid_ids);
    else if (status == QKV_OK)
        status = make_set(r, &r->corpus, held, "valid", &r->valid_ids);
    qkv_free(take);
    return status;
}

/* ---- what a person sees, and the log ---- */

static bool tell(void *user, const qkv_progress *p) {
    run *r = user;
    /* Rank 0 speaks for all; the others only ask whether to stop. */
    if (qkv_parallel_rank() > 0 && p->kind != QKV_PROGRESS_ALIVE)
        return tell(user, &(qkv_progress){.kind = QKV_PROGRESS_ALIVE});
    if (r->log && (p->kind == QKV_PROGRESS_STEP || p->kind == QKV_PROGRESS_VALID)) {
        const bool step = p->kind == QKV_PROGRESS_STEP;
        if (!step || p->step % 10 == 0 || p->step <= 10)
            fprintf(r->log,
                    "{\"kind\":\"%s\",\"step\":%lld,\"epoch\":%lld,\"loss\":%.6g,\"accuracy\":%.6g,"
                    "\"lr\":%.6g,\"norm\":%.6g,\"tokens_per_s\":%.6g}\n",
                    step ? "step" : "valid", (long long)p->step, (long long)p->epoch, p->loss,
                    p->accuracy, p->lr, p->norm, p->tokens_per_s);
        if (!step) fflush(r->log);
    }
    return !r->request->progress || r->request->progress(r->request->user, p);
}

static qkv_status note(run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static qkv_status note(run *r, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const qkv_progress p = {.kind = QKV_PROGRESS_NOTE, .text = text};
    return tell(r, &p) ? QKV_OK : qkv_fail(QKV_INTERRUPTED, "stopped before the first step");
}

static qkv_status say_header(run *r, const qkv_loop *l) {
    const qkv_train_config *c = &l->config;
    QKV_TRY(
        note(r,
             "data: %zu rows (%s)%s%lld left out as empty; %lld training tokens in %lld examples, "
             "%lld examples to validate%s",
             r->corpus.n, r->corpus.format, r->corpus.n_empty ? ", " : ", ",
             (long long)r->corpus.n_empty, (long long)qkv_encoded_tokens(&r->train_ids),
             (long long)r->train_ids.n, (long long)r->valid_ids.n,
             r->has_valid_corpus ? "" : " (held out of the training data)"));
    QKV_TRY(note(r, "model: %lld parameters, vocabulary %lld, d_model %lld, %lld layers",
                 (long long)qkv_model_params(r->model)->count, (long long)r->config.vocab_size,
                 (long long)r->config.d_model, (long long)r->config.layers));
    return note(r, "training: %lld steps of about %lld tokens, lr %.3g, %d threads%s",
                (long long)l->steps, (long long)(c->batch_tokens * c->accumulate), c->lr,
                qkv_threads(), l->step ? "; resumed" : "");
}

/* ---- the folder ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info, (void)kind, (void)place;
    return remove(path);
}

/* With `overwrite` the old run's checkpoints and tokenizer go first. */
static qkv_status open_folder(run *r) {
    qkv_buf path = {0};
    if (qkv_parallel_rank() > 0) return QKV_OK; /* rank 0 has it, and has locked it */
    QKV_TRY(qkv_folder_make(r->request->out));
    QKV_TRY(qkv_run_lock(r->request->out, &r->lock));
    static const char *const old[] = {"checkpoints", "tokenizer.json", "run.json", "log.jsonl"};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < 4 && r->request->overwrite && status == QKV_OK; i++) {
        qkv_buf_clear(&path);
        status = qkv_path_join(&path, r->request->out, old[i]);
        if (status == QKV_OK && nftw(path.data, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 &&
            errno != ENOENT)
            status = qkv_fail(QKV_FAILED, "%s: cannot be removed: %s", path.data, strerror(errno));
    }
    qkv_buf_free(&path);
    return status;
}

/* The effective settings, which must be the same for a run to be resumed. */
static qkv_status check_settings(run *r, const char *path) {
    qkv_buf text = {0};
    qkv_json_out j = qkv_json_begin(&text, 2);
    const qkv_settings train = qkv_train_settings(&r->train);
    qkv_json_open(&j, '{');
    qkv_config_write(&r->config, &j);
    qkv_settings_write(&train, &j);
    qkv_json_put_key(&j, "train_tokens");
    qkv_json_put_int(&j, qkv_encoded_tokens(&r->train_ids));
    qkv_json_close(&j, '}');
    qkv_buf_putc(&text, '\n');
    qkv_status status = text.status;
    if (status == QKV_OK && qkv_file_exists(path)) {
        qkv_file old;
        status = qkv_file_open(path, 1 << 20, &old);
        if (status == QKV_OK) {
            if (old.size != text.len || memcmp(old.data, text.data, text.len) != 0)
                status =
                    qkv_fail(QKV_USAGE,
                             "%s: this folder holds a run with other settings or data; give the "
                             "same command to go on, another --out, or --overwrite",
                             path);
            qkv_file_close(&old);
        }
    } else if (status == QKV_OK) {
        status = qkv_file_write(path, text.data, text.len);
    }
    qkv_buf_free(&text);
    return status;
}

static void write_card(const run *r, const qkv_loop *l, qkv_buf *out) {
    qkv_buf_printf(out, "# A model for: %s\n\n", r->request->task);
    qkv_buf_printf(out, "Trained with qkv %s on", qkv_version());
    for (const char *const *p = r->request->train; p && *p; p++) qkv_buf_printf(out, " `%s`", *p);
    qkv_buf_printf(out, " (%zu rows, %lld tokens), %lld steps, seed %lld.\n\n", r->corpus.n,
                   (long long)qkv_encoded_tokens(&r->train_ids), (long long)l->step,
                   (long long)r->train.seed);
    if (r->valid_ids.n)
        qkv_buf_printf(out, "Best validation at step %lld: %s %.4f.\n\n", (long long)l->best_step,
                       r->task == QKV_TASK_CLASSIFY ? "accuracy" : "loss",
                       r->task == QKV_TASK_CLASSIFY ? l->best : -l->best);
    qkv_buf_printf(out,
                   "`run.json` holds every setting; `log.jsonl` the course of the training.\n");
}

/* Puts the best weights and what belongs to them into the folder. */
static qkv_status finish(run *r, qkv_loop *l) {
    qkv_buf path = {0}, card = {0};
    qkv_status status = qkv_loop_conclude(l);
    if (qkv_parallel_rank() > 0) return status;
    if (status == QKV_OK)
        status = qkv_text_model_write_config(&r->config, &r->corpus.labels, r->request->out);
    if (status == QKV_OK) status = qkv_path_join(&path, r->request->out, "model.safetensors");
    if (status == QKV_OK) status = qkv_weights_save(qkv_model_params(r->model), path.data);
    write_card(r, l, &card);
    qkv_buf_clear(&path);
    if (status == QKV_OK) status = card.status;
    if (status == QKV_OK) status = qkv_path_join(&path, r->request->out, "README.md");
    if (status == QKV_OK) status = qkv_file_write(path.data, card.data, card.len);
    qkv_buf_free(&path);
    qkv_buf_free(&card);
    return status;
}

/* ---- the run ---- */

static qkv_status prepare(run *r) {
    qkv_buf path = {0};
    QKV_TRY(find_task(r));
    QKV_TRY(assign(r, r->request->preset));
    if (!r->request->out)
        return qkv_fail(QKV_USAGE, "train needs a folder for the model: --out DIR");
    QKV_TRY(read_texts(r));
    QKV_TRY(open_folder(r));
    if (!r->request->preset && !r->request->init) /* by an estimate: a token has some four bytes */
        QKV_TRY(assign(r, qkv_preset_for(r->task, corpus_bytes(&r->corpus) / 4)));
    if (r->task == QKV_TASK_CLASSIFY) r->config.classes = r->corpus.labels.n;
    QKV_TRY(qkv_path_join(&path, r->request->out, "tokenizer.json"));
    qkv_status status = get_tokenizer(r, path.data);
    qkv_buf_clear(&path);
    if (status == QKV_OK) status = make_ids(r);
    if (status == QKV_OK) status = qkv_path_join(&path, r->request->out, "run.json");
    if (status == QKV_OK) status = check_settings(r, path.data);
    qkv_buf_clear(&path);
    if (status == QKV_OK) status = qkv_path_join(&path, r->request->out, "log.jsonl");
    if (status == QKV_OK && qkv_parallel_rank() == 0 && !(r->log = fopen(path.data, "a")))
        status = qkv_fail(QKV_FAILED, "%s: cannot be written: %s", path.data, strerror(errno));
    qkv_buf_free(&path);
    return status;
}

/* Rank 0 makes what is missing in the folder (tokenizer, ids, settings); the others then find it there. */
static qkv_status prepare_ranks(run *r) {
    const int rank = qkv_parallel_rank();
    QKV_TRY(qkv_parallel_agree(rank == 0 ? prepare(r) : QKV_OK));
    return qkv_parallel_agree(rank > 0 ? prepare(r) : QKV_OK);
}

/* Weights of another model, where names and shapes agree. */
static qkv_status take_weights(run *r) {
    const qkv_params *params = qkv_model_params(r->model);
    qkv_buf path = {0};
    size_t taken = 0;
    qkv_status status = qkv_path_join(&path, r->request->init, "model.safetensors");
    if (status == QKV_OK) status = qkv_weights_take(qkv_model_params(r->model), path.data, &taken);
    if (status == QKV_OK && taken == 0)
        status = qkv_fail(QKV_USAGE, "%s: no tensor fits this model", path.data);
    if (status == QKV_OK)
        status = note(r, "start: %zu of %zu tensors from %s; the others are new", taken, params->n,
                      path.data);
    qkv_buf_free(&path);
    return status;
}

static qkv_status train(run *r) {
    QKV_TRY(qkv_model_build(&r->config, &r->model));
    /* A row's state may lie on another rank: then tables are updated like all else, which gives the same bits. */
    if (qkv_parallel_size() > 1) qkv_params_densify(qkv_model_params(r->model));
    QKV_TRY(qkv_model_allocate(r->model, true));
    qkv_model_initialise(r->model, (uint64_t)r->train.seed);
    if (r->request->init) QKV_TRY(take_weights(r));
    qkv_loop l = {.config = r->train,
                  .model = r->model,
                  .task = qkv_task_spec_of(r->tokenizer, &r->config),
                  .train = &r->train_ids,
                  .valid = r->valid_ids.n ? &r->valid_ids : NULL,
                  .run = r->request->out,
                  .progress = tell,
                  .user = r};
    QKV_TRY(qkv_loop_init(&l));
    qkv_status status = say_header(r, &l);
    if (status == QKV_OK) status = qkv_loop_run(&l);
    if (status == QKV_OK) status = finish(r, &l);
    qkv_loop_free(&l);
    return status;
}

qkv_status qkv_train(const qkv_train_request *request) {
    run r = {.request = request, .lock = -1};
    QKV_TRY(qkv_parallel_begin());
    qkv_status status = prepare_ranks(&r);
    if (status == QKV_OK) status = train(&r);
    /* These all ranks have alike. After others a rank just goes, and the launcher ends those that wait for it. */
    if (status == QKV_OK || status == QKV_INTERRUPTED || status == QKV_NUMERIC) qkv_parallel_end();
    if (r.model) qkv_model_free(r.model);
    if (r.log) fclose(r.log);
    if (r.lock >= 0) qkv_run_unlock(r.lock);
    qkv_tokenizer_free(r.tokenizer);
    qkv_encoded_free(&r.train_ids);
    qkv_encoded_free(&r.valid_ids);
    qkv_corpus_free(&r.corpus);
    qkv_corpus_free(&r.valid_corpus);
    return status;
}

int qkv_train_rank(void) {
    return qkv_parallel_rank();
}
