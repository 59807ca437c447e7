/* The table of tasks and what they share: framing, laying out a batch, one forward pass. */
#include "task/companion.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

/* ---- the table ---- */

/* tests/toy builds the command with one task more. */
#ifndef QKV_TASKS_DEF
#define QKV_TASKS_DEF "task/tasks.def"
#endif

#define TASK(id, name) extern const qkv_task qkv_task_##name;
#include QKV_TASKS_DEF
#undef TASK

static const qkv_task *const table[] = {
#define TASK(id, name) &qkv_task_##name,
#include QKV_TASKS_DEF
#undef TASK
};

const char *const qkv_task_names[] = {
#define TASK(id, name) #name,
#include QKV_TASKS_DEF
#undef TASK
    NULL};

qkv_shape qkv_shape_of(int task) {
    return table[task]->shape;
}

const qkv_task *qkv_task_of(const qkv_config *c) {
    return table[c->task];
}

const qkv_task *qkv_task_at(int i) {
    return i < (int)(sizeof table / sizeof *table) ? table[i] : NULL;
}

bool qkv_task_row(size_t i, const char **name, const char **summary) {
    const qkv_task *row;
    for (int k = 0; (row = qkv_task_at(k)); k++)
        if (qkv_task_trains(row) && i-- == 0) {
            *name = row->name;
            *summary = row->help;
            return true;
        }
    return false;
}

/* ---- texts to ids ---- */

qkv_task_spec qkv_task_spec_of(const qkv_tokenizer *tok, const qkv_config *config) {
    qkv_task_spec spec = {.bos = qkv_tokenizer_special(tok, QKV_TOK_BOS),
                          .eos = qkv_tokenizer_special(tok, QKV_TOK_EOS),
                          .mask = qkv_tokenizer_special(tok, QKV_TOK_MASK),
                          .bare_source = !config->source_eos,
                          .vocab_size = (int32_t)qkv_tokenizer_size(tok),
                          .classes = (int32_t)config->classes,
                          .several = config->several,
                          .rate_mean = config->rate_mean,
                          .rate_deviation = config->rate_deviation};
    /* BERT's tokenizers begin and end a text with [CLS] and [SEP]. */
    if (spec.bos < 0) spec.bos = qkv_tokenizer_special(tok, QKV_TOK_CLS);
    if (spec.eos < 0) spec.eos = qkv_tokenizer_special(tok, QKV_TOK_SEP);
    if (config->begin_token >= 0) spec.bos = (int32_t)config->begin_token;
    if (config->end_token >= 0) spec.eos = (int32_t)config->end_token;
    /* Special tokens come first in tokenizers trained here; elsewhere only that run is spared. */
    for (int role = 0; role < QKV_TOK_SPECIALS; role++) {
        const int32_t id = qkv_tokenizer_special(tok, (qkv_special)role);
        if (id >= 0 && id < 8 && id >= spec.n_special) spec.n_special = id + 1;
    }
    return spec;
}

qkv_status qkv_task_check_pairs(const qkv_tokenizer *tok, const qkv_config *config) {
    const int32_t types = qkv_tokenizer_types(tok);
    if (config->segments == 0 || types <= config->segments) return QKV_OK;
    return qkv_fail(QKV_USAGE,
                    "the tokenizer tells %d segments apart in a pair of texts, the model has %lld "
                    "(segments)",
                    (int)types, (long long)config->segments);
}

/* The columns that a model of this configuration reads. */
static unsigned columns_of(const qkv_config *c) {
    unsigned columns = qkv_task_of(c)->columns;
    if (c->position == QKV_POSITION_STRUCTURAL) columns |= QKV_COLUMNS_TREE;
    if (c->segments) columns |= qkv_column_bit(QKV_COLUMN_SEGMENTS);
    if (c->several) columns |= qkv_column_bit(QKV_COLUMN_LABELS);
    const qkv_companion *companion;
    for (int i = 0; (companion = qkv_companion_at(c, i)); i++)
        if (companion->columns) columns |= companion->columns(c);
    return columns;
}

qkv_tokenise_spec qkv_tokenise_spec_of(const qkv_config *config) {
    const qkv_task *task = qkv_task_of(config);
    return (qkv_tokenise_spec){.sides = task->sides,
                               .no_special = task->framing.own,
                               .join = task->stream,
                               .columns = columns_of(config),
                               .max_tokens = task->stream        ? 0
                                             : task->framing.own ? qkv_config_longest(config) - 1
                                                                 : qkv_config_longest(config)};
}

/* Where a tokenizer has no mark of the beginning, that of the end stands for it. */
qkv_frame qkv_task_frame(const qkv_task *task, const qkv_task_spec *spec, int side) {
    const bool reads = side == 0 && task->shape.encoder;
    const qkv_mark mark = reads ? task->framing.source : task->framing.target;
    qkv_frame frame = {.before = -1, .after = -1};
    if (reads && mark == QKV_MARK_END && !spec->bare_source) frame.after = spec->eos;
    if (!reads && mark == QKV_MARK_BEGIN)
        frame.before = spec->bos >= 0 ? spec->bos : task->shape.encoder ? spec->eos : -1;
    return frame;
}

qkv_status qkv_task_words(const qkv_tokenizer *tok, const qkv_task_spec *spec, bool **out) {
    const size_t n = qkv_tokenizer_size(tok);
    size_t joined = 0, opened = 0, len;
    QKV_TRY_ALLOC(*out = qkv_zalloc(n, sizeof **out));
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            const char *text = qkv_tokenizer_token(tok, (int32_t)i, &len);
            const bool goes_on = text && len > 2 && memcmp(text, "##", 2) == 0,
                       opens = text && ((len >= 3 && memcmp(text, "\xe2\x96\x81", 3) == 0) ||
                                        (len >= 2 && memcmp(text, "\xc4\xa0", 2) == 0));
            if (pass == 0)
                joined += goes_on, opened += opens;
            else if ((int32_t)i >= spec->n_special)
                (*out)[i] = joined ? goes_on : opened && !opens;
        }
    return QKV_OK;
}

/* ---- counting ---- */

static int32_t likeliest(const real *p, int32_t n) {
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++)
        if (p[k] > p[best]) best = k;
    return best;
}

/* The sequence of a target, which is that of the target before or a later one. */
static int32_t sequence_of(const qkv_batch *b, int64_t target, int32_t s) {
    if (!b->target_rows) return (int32_t)target;
    while (b->target_rows[target] >= b->src.layout.start[s + 1]) s++;
    return s;
}

qkv_status qkv_task_count_classes(qkv_tensor *logits, const qkv_batch *b, qkv_tally *sum) {
    qkv_kern_get()->softmax(logits->data, logits->data, logits->rows, logits->cols);
    for (int64_t i = 0, first = 0, s = 0; i < logits->rows; i++) {
        const real *p = logits->data + i * logits->ld;
        const int32_t truth = b->targets[i], answer = likeliest(p, sum->classes);
        const int32_t own = sequence_of(b, i, (int32_t)s);
        if (own != s) s = own, first = i;
        const qkv_answer kept = {.example = sum->keep ? sum->examples[s] : 0,
                                 .place = (int32_t)(i - first),
                                 .truth = truth,
                                 .answer = answer,
                                 .p_truth = truth < 0 ? 0 : (float)p[truth],
                                 .p_answer = (float)p[answer]};
        if (sum->keep && !QKV_PUSH(sum->answers, kept)) return QKV_FAILED;
        sum->n_targets++;
        sum->n_unknown += truth < 0;
        if (truth < 0) continue;
        sum->confusion[truth * sum->classes + answer]++;
        sum->n_right += truth == answer;
        sum->loss -= log(fmax((double)p[truth], 1e-30));
    }
    return QKV_OK;
}

/* ---- batches ---- */

qkv_tensor *qkv_task_vocab_loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec,
                                const qkv_batch *b, qkv_tensor *x, int64_t *n_right) {
    const bool training = t->mode == QKV_TRAIN;
    return qkv_model_vocab_loss(t, m, x,
                                &(qkv_xent_spec){.targets = b->targets,
                                                 .smoothing = training ? (real)spec->smoothing : 0,
                                                 .agree = training ? (real)spec->r_drop : 0,
                                                 .scale = 1,
                                                 .n_right = n_right});
}

int32_t *qkv_task_layout(qkv_tape *t, const qkv_batcher *b, const int64_t *examples, int64_t n,
                         int side, int64_t extra, qkv_tokens *out) {
    int32_t *start = qkv_tape_alloc(t, NULL, ((size_t)n + 1) * sizeof *start);
    if (!start) return NULL;
    int64_t rows = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t len;
        qkv_batcher_ids(b, examples[i], side, &len);
        start[i] = (int32_t)rows;
        rows += len + extra;
        if (rows > INT32_MAX) {
            qkv_tape_fail(t, NULL, QKV_USAGE, "a batch of over 2^31 tokens; lower batch_tokens");
            return NULL;
        }
    }
    start[n] = (int32_t)rows;
    int32_t *ids = qkv_tape_alloc(t, NULL, (size_t)rows * sizeof *ids);
    *out = (qkv_tokens){.layout = {.n = (int32_t)n, .start = start}, .ids = ids, .rows = rows};
    return ids;
}

void qkv_task_columns(qkv_tape *t, const qkv_batcher *b, const int64_t *examples, int64_t n,
                      qkv_tokens *out) {
    for (qkv_column c = 0; c < QKV_COLUMNS; c++) {
        if (b->data->column[c].start.n == 0) continue;
        qkv_cells *cells = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *cells);
        for (int64_t i = 0; i < n && cells; i++)
            cells[i] = qkv_encoded_cells(b->data, c, examples[i]);
        out->column[c] = cells;
    }
}

bool qkv_task_read(qkv_tape *t, const qkv_batcher *b, const int64_t *examples, int64_t n,
                   qkv_batch *out) {
    int32_t *ids = qkv_task_layout(t, b, examples, n, 0, 0, &out->src);
    for (int64_t i = 0; i < n && ids; i++) {
        int64_t len;
        const int32_t *from = qkv_batcher_ids(b, examples[i], 0, &len);
        memcpy(ids + out->src.layout.start[i], from, (size_t)len * sizeof *ids);
    }
    if (ids) qkv_task_columns(t, b, examples, n, &out->src);
    out->tokens = out->src.rows;
    return !qkv_tape_stopped(t);
}

/* The list and the list again, in the arena. */
static const int64_t *twice(qkv_tape *t, const int64_t *examples, int64_t n) {
    int64_t *list = qkv_tape_alloc(t, NULL, 2 * (size_t)n * sizeof *list);
    for (int64_t i = 0; i < 2 * n && list; i++) list[i] = examples[i % n];
    return list;
}

qkv_status qkv_task_forward(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec,
                            const qkv_batcher *b, const int64_t *examples, int64_t n,
                            qkv_loss_out *out) {
    const qkv_task *task = qkv_task_of(qkv_model_config(m));
    if (t->mode == QKV_TRAIN && spec->r_drop > 0) {
        examples = twice(t, examples, n);
        n *= 2;
        if (!examples) return qkv_tape_status(t);
    }
    *out = (qkv_loss_out){.batch.n_sequences = n};
    task->assemble(t, spec, b, examples, n, &out->batch);
    if (qkv_tape_stopped(t)) return qkv_tape_status(t);
    out->root = task->loss(t, m, spec, &out->batch, &out->n_right);
    QKV_TRY(qkv_tape_status(t));
    out->loss = (double)out->root->data[0];
    return QKV_OK;
}

qkv_status qkv_task_count(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec,
                          const qkv_batcher *b, const int64_t *examples, int64_t n,
                          qkv_tally *sum) {
    const qkv_task *task = qkv_task_of(qkv_model_config(m));
    if (task->count) {
        qkv_batch batch = {.n_sequences = n};
        task->assemble(t, spec, b, examples, n, &batch);
        QKV_TRY(qkv_tape_status(t));
        sum->examples = examples;
        QKV_TRY(task->count(t, m, &batch, sum));
    } else {
        qkv_loss_out out;
        QKV_TRY(qkv_task_forward(t, m, spec, b, examples, n, &out));
        sum->loss += out.loss;
        sum->n_right += out.n_right;
        sum->n_targets += out.batch.n_targets;
    }
    if (isfinite(sum->loss)) return QKV_OK;
    return qkv_fail(QKV_NUMERIC, "the loss is not finite: the model's numbers grow out of range");
}
