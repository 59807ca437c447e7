/* qkv_train: from text files to a model folder.
 *
 *   corpus → tokenizer, trained or opened → ids → sizes chosen → model built → loop → folder
 *
 * The run folder is the model folder: config.json, tokenizer.json, model.safetensors (the best
 * weights), README.md, beside run.json (the effective settings), log.jsonl and checkpoints/. */
#include "run/train_run.h"
#include "base/file.h"
#include "base/mem.h"
#include "data/ids_cache.h"
#include "data/duplicates.h"
#include "folder/folder.h"
#include "foreign/foreign_model.h"
#include "model/weights.h"
#include "store/checkpoint.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "task/companion.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- settings ---- */

/* From a model of another task come sizes and weights;
 * how not to overfit, and n-grams, are the new task's own matter. */
static qkv_status assign_init(qkv_run *r) {
    qkv_config usual;
    qkv_config_default(&usual);
    QKV_TRY(qkv_folder_read_config(r->request->init, &r->config, NULL));
    const qkv_recipe *recipe = r->task->recipe;
    r->config.weights = QKV_WEIGHT_F32;
    r->goes_on = qkv_task_of(&r->config) == r->task;
    if (r->config.arch != QKV_ARCH_TRANSFORMER) { /* a width that its task gave it */
        qkv_config full;
        QKV_TRY(qkv_config_resolve(&r->config, &full));
        r->config.d_state = full.d_state;
    }
    const bool foreign = qkv_is_foreign(r->request->init);
    r->tuning = foreign && !r->goes_on ? recipe->tuning : NULL;
    if (!r->goes_on) r->config.unit = false; /* of vectors that are compared, not classified */
    if (!recipe->regularizer || r->goes_on) return QKV_OK;
    QKV_TRY(qkv_config_preset(&usual, recipe->regularizer));
    r->config.ngrams = usual.ngrams;
    r->config.ngram_idf = usual.ngram_idf;
    if (r->tuning) return QKV_OK; /* dropout as it was trained with */
    r->config.dropout = recipe->regularizer_share * usual.dropout;
    r->config.attention_dropout = usual.attention_dropout;
    r->config.embedding_dropout = usual.embedding_dropout;
    return QKV_OK;
}

/* Defaults, then the preset's or the first model's sizes, then what the request says. A vocabulary
 * that nobody asks for is 0, to be chosen from the data. */
static qkv_status assign(qkv_run *r, const char *preset) {
    qkv_settings groups[2] = {qkv_config_settings(&r->config), qkv_train_settings(&r->train)};
    assert(groups[0].n <= QKV_SETTINGS_MAX);
    groups[0].given = r->given;
    qkv_config_default(&r->config);
    qkv_settings_default(&groups[1]);
    r->config.vocab_size = 0;
    if (r->request->init)
        QKV_TRY(assign_init(r));
    else if (preset)
        QKV_TRY(qkv_config_preset(&r->config, preset));
    if (r->request->config)
        QKV_TRY(qkv_settings_load(groups, 2, r->request->config, qkv_config_foreign));
    for (const char *const *pair = r->request->set; pair && *pair; pair++)
        QKV_TRY(qkv_settings_assign(groups, 2, *pair));
    return qkv_config_set(&r->config, "task", r->task->name);
}

static qkv_status find_task(qkv_run *r) {
    QKV_VEC(const char *) names = {0};
    qkv_buf list = {0};
    const qkv_task *row;
    for (int i = 0; !r->task && (row = qkv_task_at(i)); i++) {
        if (!qkv_task_trains(row)) continue;
        if (strcmp(row->name, r->request->task) == 0) r->task = row;
        qkv_buf_printf(&list, "%s%s", names.n ? ", " : "", row->name);
        if (!QKV_PUSH(names, row->name)) break;
    }
    const char *near = qkv_nearest(r->request->task, names.at, names.n);
    qkv_status status = QKV_OK;
    if (!r->task)
        status = qkv_fail(QKV_USAGE, "there is no task \"%.40s\"; %s%s", r->request->task,
                          near ? "did you mean " : "there are ",
                          near        ? near
                          : list.data ? list.data
                                      : "");
    qkv_free(names.at);
    qkv_buf_free(&list);
    return status;
}

/* ---- texts ---- */

static size_t count_paths(const char *const *paths) {
    size_t n = 0;
    while (paths && paths[n]) n++;
    return n;
}

static const char *given(const char *setting) {
    return setting[0] ? setting : NULL;
}

/* Standard input can be read once, by one process. */
static qkv_status check_stdin(const qkv_train_request *q) {
    int n = 0;
    for (int k = 0; k < 2; k++)
        for (const char *const *p = k ? q->valid : q->train; p && *p; p++)
            n += strcmp(*p, "-") == 0;
    if (n > 1) return qkv_fail(QKV_USAGE, "standard input (-) can be read only once");
    return n && qkv_parallel_size() > 1
               ? qkv_fail(QKV_USAGE, "standard input (-) cannot be read by several processes")
               : QKV_OK;
}

static qkv_status read_texts(qkv_run *r) {
    const bool apart = r->task->stream && r->train.documents == QKV_DOCUMENTS_APART,
               labelled = qkv_has_labels(r->task->shape);
    qkv_corpus_spec spec = {.shape = apart ? QKV_CORPUS_LINES : r->task->corpus,
                            .paths = r->request->train,
                            .n_paths = count_paths(r->request->train),
                            .rows = r->request->rows,
                            .n_rows = r->request->n_rows,
                            .format = given(r->train.format),
                            .column = {[QKV_ROLE_LABEL] = given(r->train.label),
                                       [QKV_ROLE_TEXT] = given(r->train.text),
                                       [QKV_ROLE_PAIR] = given(r->train.pair)},
                            .between = given(r->train.labels_separator),
                            .trees = given(r->train.trees)};
    if (spec.n_paths == 0 && !spec.rows)
        return qkv_fail(QKV_USAGE, "train needs data: --train FILE");
    QKV_TRY(check_stdin(r->request));
    QKV_TRY(qkv_corpus_read(&r->corpus, &spec));
    QKV_TRY(qkv_run_understood(r));
    QKV_TRY(qkv_run_set_aside(r));
    r->pairs = r->corpus.rows[0].second.data && r->task->sides == 1 && r->task->shape.encoder;
    if (r->pairs && r->train.too_long == QKV_TOO_LONG_SPLIT)
        return qkv_fail(QKV_USAGE, "too_long=split: a pair of texts cannot be split; use cut (the "
                                   "longer text first) or skip");
    if (!r->request->valid) return QKV_OK;
    spec.rows = NULL;
    spec.paths = r->request->valid;
    spec.n_paths = count_paths(spec.paths);
    spec.labels = labelled ? &r->corpus.labels : NULL;
    spec.several = r->corpus.several;
    spec.second = r->pairs              ? QKV_SECOND_MUST
                  : r->task->sides == 1 ? QKV_SECOND_NOT
                                        : QKV_SECOND_MAY;
    QKV_TRY(qkv_corpus_read(&r->valid_corpus, &spec));
    r->has_valid_corpus = true;
    return qkv_run_understood_valid(r);
}

static int64_t corpus_bytes(const qkv_corpus *c) {
    int64_t bytes = 0;
    for (size_t i = 0; i < c->n; i++)
        bytes += (int64_t)(c->rows[i].text.len + c->rows[i].second.len);
    return bytes;
}

/* ---- tokenizer ---- */

/* A qkv_tok_train.progress. */
static void tell_stage(void *user, const char *stage, double share) {
    qkv_run *r = user;
    char text[64];
    snprintf(text, sizeof text, "tokenizer: %s", stage);
    const qkv_progress p = {.kind = QKV_PROGRESS_PHASE, .text = text, .share = share};
    r->stop |= !qkv_run_tell(r, &p);
}

static qkv_status train_tokenizer(qkv_run *r) {
    const qkv_recipe *recipe = r->task->recipe;
    const bool named = r->train.tokenizer[0];
    const char *kind = named ? r->train.tokenizer : recipe->tokenizer;
    const bool lowercase = r->train.lowercase || (recipe->lowercase && !named);
    if (r->config.vocab_size == 0)
        r->config.vocab_size = qkv_recipe_vocab(recipe, corpus_bytes(&r->corpus));
    const qkv_tokenizer_telling telling = {tell_stage, r};
    QKV_TRY(qkv_run_phase(r, "tokenizer"));
    return qkv_tokenizer_for(kind, &r->corpus, &r->config, lowercase, &telling, &r->tokenizer);
}

/* One framing, in training and in use: the tokenizer's, which is given one where it has none. A
 * model that is gone on from keeps its segments. */
static qkv_status settle_pairs(qkv_run *r) {
    qkv_settings s = qkv_config_settings(&r->config);
    s.given = r->given;
    r->config.pairs = r->pairs;
    if (!r->pairs) return QKV_OK;
    QKV_TRY(qkv_tokenizer_separate(r->tokenizer));
    const int32_t types = qkv_tokenizer_types(r->tokenizer);
    if (!r->config.segments && !qkv_settings_given(&s, "segments"))
        r->config.segments = types > 1 ? types : 0;
    return qkv_task_check_pairs(r->tokenizer, &r->config);
}

/* In this order: the run's own (resuming; `own` NULL: there is no folder), that of the model to
 * start from, a file, a kind to train. */
static qkv_status get_tokenizer(qkv_run *r, const char *own) {
    if (own && qkv_file_exists(own)) {
        QKV_TRY(qkv_tokenizer_open(own, &r->tokenizer));
    } else if (r->request->init) {
        QKV_TRY(qkv_folder_open_tokenizer(r->request->init, &r->tokenizer));
    } else {
        QKV_TRY(train_tokenizer(r));
    }
    /* A model to start from may have more rows than its tokenizer has tokens. */
    const int64_t tokens = (int64_t)qkv_tokenizer_size(r->tokenizer);
    if (!r->request->init || r->config.vocab_size < tokens) r->config.vocab_size = tokens;
    QKV_TRY(settle_pairs(r));
    return own && !qkv_file_exists(own) ? qkv_tokenizer_save(r->tokenizer, own) : QKV_OK;
}

/* ---- ids ---- */

/* Running text gets a row that begins where the part of it that is held out does. */
static qkv_status hold_out_end(qkv_run *r) {
    const int64_t bytes = corpus_bytes(&r->corpus);
    r->first_held = r->corpus.n;
    if (r->has_valid_corpus || r->corpus.shape != QKV_CORPUS_STREAM) return QKV_OK;
    const int64_t held = qkv_recipe_held_out_end(bytes, r->train.valid_share);
    return held ? qkv_corpus_cut(&r->corpus, bytes - held, &r->first_held) : QKV_OK;
}

/* Rows of the training data that are held out: a keyed choice, or the end of running text. */
static void hold_out(const qkv_run *r, bool *train, bool *valid) {
    const size_t n = r->corpus.n;
    const bool stream = r->corpus.shape == QKV_CORPUS_STREAM;
    const qkv_held_out held = qkv_recipe_held_out((int64_t)n, r->train.valid_share);
    const qkv_rng rng = {.seed = (uint64_t)r->train.seed, .stream = 0x73706c6974};
    const size_t rows = r->has_valid_corpus ? 0 : (size_t)held.rows, block = (size_t)held.block,
                 blocks = (n + block - 1) / block;
    for (size_t i = 0; i < n; i++) {
        valid[i] =
            stream ? i >= r->first_held : block * qkv_rng_permute(rng, blocks, i / block) < rows;
        train[i] = !valid[i];
    }
}

/* The ids of the rows in `take`, by way of the run's cache where there is a folder; trees and
 * characters are not kept in it. */
static qkv_status make_set(qkv_run *r, const qkv_corpus *corpus, const bool *take, const char *name,
                           qkv_encoded *out, qkv_tokenise_counts *counts) {
    qkv_tokenise_spec spec = qkv_tokenise_spec_of(&r->config);
    QKV_TRY(qkv_tokenise_spec_trees(&spec, &corpus->trees));
    spec.too_long = (qkv_too_long)r->train.too_long;
    if (corpus->shape == QKV_CORPUS_LINES && spec.join) { /* documents kept apart */
        spec.join = false;
        spec.max_tokens = r->config.max_len - 1;
    }
    if (!r->folder || spec.columns) {
        qkv_encoded_init(out, spec.sides);
        return qkv_tokenise(r->tokenizer, corpus, take, &spec, out, counts);
    }
    qkv_buf path = {0};
    qkv_status status = qkv_folder_part(r->request->out, QKV_PART_CACHE, &path);
    if (status == QKV_OK) status = qkv_folder_make(path.data);
    qkv_buf_printf(&path, "/%s.ids", name);
    if (status == QKV_OK) status = path.status;
    if (status == QKV_OK)
        status = qkv_tokenise_cached(r->tokenizer, corpus, take, &spec, path.data, out, counts);
    qkv_buf_free(&path);
    return status;
}

/* The line that each training example stands on, where every marked row has become one example. */
static qkv_status find_rows(qkv_run *r, const bool *take) {
    size_t n = 0;
    for (size_t i = 0; i < r->corpus.n; i++) n += take[i];
    if ((int64_t)n != r->train_ids.n) return QKV_OK;
    QKV_TRY_ALLOC(r->train_rows = qkv_zalloc(n, sizeof *r->train_rows));
    n = 0;
    for (size_t i = 0; i < r->corpus.n; i++)
        if (take[i]) r->train_rows[n++] = r->corpus.rows[i].line;
    return QKV_OK;
}

static qkv_status make_ids(qkv_run *r) {
    qkv_tokenise_counts counts;
    QKV_TRY(hold_out_end(r));
    bool *take = qkv_zalloc(2 * r->corpus.n, sizeof *take), *held = take + r->corpus.n;
    if (!take) return QKV_FAILED;
    const qkv_companion *companion;
    if (qkv_run_phase(r, "tokens") != QKV_OK) return qkv_free(take), QKV_INTERRUPTED;
    for (int i = 0; (companion = qkv_companion_at(&r->config, i)); i++)
        if (companion->size) companion->size(&r->config, corpus_bytes(&r->corpus));
    hold_out(r, take, held);
    qkv_status status = make_set(r, &r->corpus, take, "train", &r->train_ids, &r->counts);
    if (status == QKV_OK && r->corpus.shape != QKV_CORPUS_STREAM)
        status = qkv_corpus_duplicates(
            &r->corpus, take, r->has_valid_corpus ? &r->valid_corpus : &r->corpus,
            r->has_valid_corpus ? NULL : held, &r->n_shared, &r->first_shared);
    if (status == QKV_OK)
        status = make_set(r, r->has_valid_corpus ? &r->valid_corpus : &r->corpus,
                          r->has_valid_corpus ? NULL : held, "valid", &r->valid_ids, &counts);
    if (status == QKV_OK && r->aside.corpus.n)
        status = make_set(r, &r->aside.corpus, NULL, "aside", &r->aside.ids, &counts);
    if (status == QKV_OK) status = find_rows(r, take);
    if (status == QKV_OK && r->task->settle && !r->goes_on)
        r->task->settle(&r->train_ids, &r->config);
    qkv_free(take);
    return status;
}

/* ---- the run ---- */

/* Recurrent presets are skipped when the user chose positions or an attention pattern. */
static const qkv_choice *preset_by_size(qkv_run *r) {
    qkv_settings s = qkv_config_settings(&r->config);
    s.given = r->given;
    return qkv_choice_for(r->task->recipe->presets, qkv_recipe_tokens(corpus_bytes(&r->corpus)),
                          qkv_settings_given(&s, "position") ||
                              qkv_settings_given(&s, "attention"));
}

/* The tokenizer and the ids; with `folder` the tokenizer is kept there, or found. */
static qkv_status make_tokens(qkv_run *r, bool folder) {
    qkv_buf own = {0};
    if (folder) QKV_TRY(qkv_folder_part(r->request->out, QKV_PART_TOKENIZER, &own));
    const qkv_status status = get_tokenizer(r, folder ? own.data : NULL);
    qkv_buf_free(&own);
    QKV_TRY(status);
    if (r->task->whole_words && r->train.whole_word) {
        const qkv_task_spec special = qkv_task_spec_of(r->tokenizer, &r->config);
        QKV_TRY(qkv_task_words(r->tokenizer, &special, &r->continues));
    }
    return make_ids(r);
}

/* Refuses a model that cannot be built or does not fit into this machine, before anything is
 * written, let alone an old run overwritten. The vocabulary is a guess where none was asked for. */
static qkv_status check_size(qkv_run *r) {
    const qkv_config settled = r->config;
    const qkv_companion *companion;
    if (r->config.vocab_size == 0)
        r->config.vocab_size = qkv_recipe_vocab(r->task->recipe, corpus_bytes(&r->corpus));
    for (int i = 0; (companion = qkv_companion_at(&r->config, i)); i++)
        if (companion->size) companion->size(&r->config, corpus_bytes(&r->corpus));
    r->train_ids.sides = r->task->sides;
    qkv_status status = qkv_model_build(&r->config, &r->model);
    if (status == QKV_OK) status = qkv_run_check_memory(r);
    if (r->model) qkv_model_free(r->model);
    r->model = NULL;
    r->config = settled;
    return status;
}

qkv_status qkv_run_prepare(qkv_run *r, const qkv_run_wish *wish) {
    const qkv_train_request *request = wish->request;
    const bool folder = wish->folder;
    *r = (qkv_run){.request = request,
                   .folder = folder,
                   .aside = {.part = wish->part, .parts = wish->parts},
                   .lock = -1,
                   .cpu_start = qkv_cpu_seconds(),
                   .clock_start = qkv_now()};
    QKV_TRY(find_task(r));
    QKV_TRY(assign(r, request->preset));
    if (folder && !request->out)
        return qkv_fail(QKV_USAGE, "train needs a folder for the model: --out DIR");
    if (folder && !request->overwrite) {
        QKV_TRY(qkv_run_look_back(r));
        if (r->repeats) return QKV_OK;
    }
    if (r->train.trees[0] && r->train.too_long == QKV_TOO_LONG_SPLIT)
        return qkv_fail(QKV_USAGE, "too_long=split: a tree cannot be split; use cut or skip");
    if (r->task->sides == 2 && r->train.too_long == QKV_TOO_LONG_SPLIT)
        return qkv_fail(QKV_USAGE, "too_long=split: a translation has two sides, which cannot be "
                                   "split alike; use cut or skip");
    QKV_TRY(qkv_run_phase(r, "reading"));
    QKV_TRY(read_texts(r));
    if (!request->preset && !request->init) {
        r->chosen = preset_by_size(r);
        QKV_TRY(assign(r, r->chosen->preset));
    }
    if (qkv_has_labels(r->task->shape)) r->config.classes = r->corpus.labels.n;
    r->config.several = r->corpus.several;
    if (r->task->shape.head == QKV_HEAD_NUMBER) r->config.classes = 1;
    if (r->train.overfit)
        r->config.dropout = r->config.attention_dropout = r->config.embedding_dropout = 0;
    QKV_TRY(check_size(r));
    if (folder) QKV_TRY(qkv_run_open_folder(r));
    QKV_TRY(make_tokens(r, folder));
    return folder ? qkv_run_check_settings(r) : QKV_OK;
}

/* Weights of another model, where names and shapes agree;
 * says which were not there and which are of no use. */
static qkv_status take_weights(qkv_run *r) {
    const char *const from = r->request->init;
    qkv_weights_taken t;
    qkv_status status = qkv_folder_take_weights(from, qkv_model_params(r->model), &t);
    if (status == QKV_OK && t.taken == 0)
        status = qkv_fail(QKV_USAGE, "%s: no tensor fits this model", from);
    if (status == QKV_OK)
        status =
            qkv_run_note(r, "start     %zu of %zu tensors from %s%s%s", t.taken, t.taken + t.fresh,
                         from, t.fresh ? "; new: " : "", t.fresh ? t.fresh_names.data : "");
    if (status == QKV_OK && t.unused)
        status = qkv_run_note(r, "          not used of it: %s", t.unused_names.data);
    qkv_weights_taken_free(&t);
    return status;
}

/* Those that the finished run left. */
static qkv_status take_own_weights(qkv_run *r) {
    qkv_buf path = {0};
    qkv_status status = qkv_folder_find(r->request->out, QKV_PART_WEIGHTS, &path);
    if (status == QKV_OK) status = qkv_weights_load(qkv_model_params(r->model), path.data);
    qkv_buf_free(&path);
    return status;
}

qkv_status qkv_run_model(qkv_run *r) {
    QKV_TRY(qkv_model_build(&r->config, &r->model));
    QKV_TRY(qkv_run_check_memory(r));
    /* A row's state may lie on another rank: then tables are updated like all else,
     * which gives the same bits. */
    if (qkv_parallel_size() > 1) qkv_params_densify(qkv_model_params(r->model));
    QKV_TRY(qkv_model_allocate(r->model, true));
    qkv_model_initialise(r->model, (uint64_t)r->train.seed);
    return r->further ? take_own_weights(r) : r->request->init ? take_weights(r) : QKV_OK;
}

void qkv_run_free(qkv_run *r) {
    if (r->model) qkv_model_free(r->model);
    qkv_run_log_close(&r->log);
    if (r->lock >= 0) qkv_run_unlock(r->lock);
    qkv_free(r->train_rows);
    qkv_free(r->continues);
    qkv_tokenizer_free(r->tokenizer);
    qkv_encoded_free(&r->train_ids);
    qkv_encoded_free(&r->valid_ids);
    qkv_encoded_free(&r->aside.ids);
    qkv_free(r->aside.corpus.rows);
    qkv_corpus_free(&r->corpus);
    qkv_corpus_free(&r->valid_corpus);
}
