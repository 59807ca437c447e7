/* Classes and vectors of texts: encode, group into batches of some thousand tokens, run. A batch
 * holds no padding and a row depends on its own text only, so the grouping changes no bit. */
#include "use/predict.h"
#include "base/mem.h"
#include "base/queue.h"

#include <math.h>
#include <math.h>
#include <string.h>

enum { BATCH_TOKENS = 4096 };

/* ---- ids ---- */

/* Puts `id` before or behind the ids; offsets say that it stands for nothing in the text. */
static qkv_status frame(qkv_encoding *e, int32_t id, bool before, bool offsets) {
    int32_t *ids = qkv_realloc(e->ids, (e->n + 1) * sizeof *ids);
    if (!ids) return QKV_FAILED;
    e->ids = ids;
    e->cap = e->n + 1;
    memmove(ids + before, ids, e->n * sizeof *ids);
    ids[before ? 0 : e->n] = id;
    uint32_t **sides[] = {&e->begin, &e->end};
    for (int i = 0; i < 2 && offsets; i++) {
        uint32_t *at = qkv_realloc(*sides[i], (e->n + 1) * sizeof *at);
        if (!at) return QKV_FAILED;
        *sides[i] = at;
        memmove(at + before, at, e->n * sizeof *at);
        at[before ? 0 : e->n] = 0;
    }
    e->n++;
    return QKV_OK;
}

qkv_status qkv_pair_split(qkv_text pair, qkv_text *first, qkv_text *second) {
    const char *tab = pair.len ? memchr(pair.data, '\t', pair.len) : NULL;
    if (!tab)
        return qkv_fail(QKV_USAGE, "no TAB: this model reads pairs of texts, first<TAB>second");
    *first = (qkv_text){pair.data, (size_t)(tab - pair.data)};
    *second = (qkv_text){tab + 1, pair.len - first->len - 1};
    return QKV_OK;
}

static qkv_status encode_pairs(const qkv_text_model *m, const qkv_text *texts, size_t n,
                               const qkv_encode_options *options, qkv_encoding *out) {
    qkv_status status = QKV_OK;
    qkv_text *parts = qkv_alloc((2 * n + 1) * sizeof *parts);
    if (!parts) return QKV_FAILED;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        status = qkv_pair_split(texts[i], &parts[i], &parts[n + i]);
        if (status != QKV_OK && n > 1) status = qkv_fail_in(status, "text %zu of %zu", i + 1, n);
    }
    if (status == QKV_OK) status = qkv_encode_rows(m->tokenizer, parts, parts + n, n, options, out);
    qkv_free(parts);
    return status;
}

qkv_status qkv_texts_encode(const qkv_text_model *m, const qkv_text *texts, size_t n, bool offsets,
                            qkv_encoding *out) {
    const qkv_config *config = qkv_model_config(m->model);
    const qkv_task *task = qkv_task_of(config);
    const qkv_frame marks = qkv_task_frame(task, &m->spec, 0);
    const bool marked = marks.before >= 0 || marks.after >= 0;
    const int64_t longest = qkv_config_longest(config);
    const qkv_encode_options options = {.no_special = task->framing.own,
                                        .offsets = offsets,
                                        .max_tokens = (size_t)(longest > 1 ? longest - marked : 1)};
    QKV_TRY(m->pairs ? encode_pairs(m, texts, n, &options, out)
                     : qkv_encode_rows(m->tokenizer, texts, NULL, n, &options, out));
    size_t n_cut = 0;
    for (size_t i = 0; i < n; i++) n_cut += out[i].cut;
    if (n_cut) qkv_text_model_count_cut(m, n_cut);
    for (size_t i = 0; i < n; i++) {
        if (marks.after >= 0) QKV_TRY(frame(&out[i], marks.after, false, offsets));
        if (marks.before >= 0) QKV_TRY(frame(&out[i], marks.before, true, offsets));
        /* A text without tokens is one unknown token: it too has an answer. */
        if (!out[i].n) QKV_TRY(frame(&out[i], 0, true, offsets));
    }
    return QKV_OK;
}

void qkv_encodings_free(qkv_encoding *e, size_t n) {
    for (size_t i = 0; e && i < n; i++) qkv_encoding_free(&e[i]);
    qkv_free(e);
}

/* ---- batches ---- */

qkv_status qkv_texts_columns(qkv_tape *t, const qkv_text_model *m, qkv_use_texts texts,
                             const qkv_encoding *e, qkv_tokens *src) {
    unsigned wanted = qkv_tokenise_spec_of(qkv_model_config(m->model)).columns;
    if (!texts.words) wanted &= ~(unsigned)QKV_COLUMNS_WORD;
    wanted &= ~(unsigned)QKV_COLUMNS_TRUTH;
    for (qkv_column c = 0; c < QKV_COLUMNS; c++) {
        if (!(wanted & qkv_column_bit(c))) continue;
        qkv_cells *cells = qkv_tape_alloc(t, NULL, (size_t)src->layout.n * sizeof *cells);
        for (int32_t i = 0; i < src->layout.n && cells; i++) {
            qkv_column_source s = {.text = texts.at[i],
                                   .words = texts.words ? texts.words[i] : (qkv_text_words){0},
                                   .e = &e[i],
                                   .to = (int64_t)e[i].n,
                                   .trees = &m->trees};
            if (m->pairs) QKV_TRY(qkv_pair_split(texts.at[i], &s.text, &s.second));
            int32_t *own = qkv_tape_alloc(t, NULL, (size_t)qkv_column_room(c, &s) * sizeof *own);
            if (!own) break;
            QKV_TRY(qkv_column_make(c, &s, own, &cells[i].n));
            cells[i].at = own;
        }
        src->column[c] = cells;
    }
    return qkv_tape_status(t);
}

/* All batches, over all threads; how they are shared out changes no bit of the results. */
typedef struct job {
    const qkv_text_model *m;
    qkv_use_texts texts;
    size_t n;
    qkv_rows_fn rows;
    qkv_use_rows to;
    size_t *start;   /* batch i is the texts start[i] … start[i + 1] − 1 */
    qkv_queue queue; /* of batches */
} job;

static qkv_status run_batch(qkv_tape *t, const job *j, size_t i) {
    const size_t from = j->start[i], n = j->start[i + 1] - from;
    const qkv_encoding *e = j->to.e + from;
    qkv_tape_begin(t, QKV_EVAL, 0, 0);
    size_t rows = 0;
    for (size_t row = 0; row < n; row++) rows += e[row].n;
    int32_t *start = qkv_tape_alloc(t, NULL, (n + 1) * sizeof *start);
    int32_t *ids = qkv_tape_alloc(t, NULL, rows * sizeof *ids);
    if (!start || !ids) return qkv_tape_status(t);
    start[0] = 0;
    for (size_t row = 0; row < n; row++) {
        memcpy(ids + start[row], e[row].ids, e[row].n * sizeof *ids);
        start[row + 1] = start[row] + (int32_t)e[row].n;
    }
    qkv_tokens batch = {
        .layout = {.n = (int32_t)n, .start = start}, .ids = ids, .rows = (int64_t)rows};
    const qkv_use_texts texts = {j->texts.at + from, j->texts.words ? j->texts.words + from : NULL};
    QKV_TRY(qkv_texts_columns(t, j->m, texts, e, &batch));
    const qkv_tensor *y = j->rows(t, j->m->model, &batch);
    QKV_TRY(qkv_tape_status(t));
    for (int64_t row = 0; row < y->rows; row++)
        if (qkv_kern_get()->first_not_finite(y->data + row * y->ld, (int64_t)j->to.width) >= 0)
            return qkv_fail(QKV_NUMERIC,
                            "an answer is not finite: the model's numbers grow out of range with "
                            "this text; its training diverged");
    float *out = j->to.out + (j->to.first ? j->to.first[from] : from) * j->to.width;
    for (int64_t row = 0; row < y->rows; row++)
        for (size_t c = 0; c < j->to.width; c++) *out++ = (float)y->data[row * y->ld + (int64_t)c];
    return QKV_OK;
}

static qkv_status cut(job *j) {
    QKV_TRY_ALLOC(j->start = qkv_alloc((j->n + 1) * sizeof *j->start));
    for (size_t from = 0; from < j->n;) {
        size_t filled = 0;
        j->start[j->queue.n++] = from;
        do filled += j->to.e[from++].n;
        while (from < j->n && filled + j->to.e[from].n <= BATCH_TOKENS);
    }
    j->start[j->queue.n] = j->n;
    return QKV_OK;
}

static void work(void *user, int worker) {
    (void)worker;
    job *j = user;
    qkv_tape *t;
    size_t i;
    qkv_status status = qkv_text_model_take_tape(j->m, &t);
    while (status == QKV_OK && qkv_queue_take(&j->queue, &i)) status = run_batch(t, j, i);
    qkv_queue_note(&j->queue, status);
    if (t) qkv_text_model_give_tape(j->m, t);
}

static qkv_status run_all(job *j) {
    QKV_TRY(cut(j));
    const qkv_status status = qkv_queue_run(&j->queue, work, j);
    qkv_free(j->start);
    return status;
}

qkv_status qkv_rows_of_encodings(const qkv_text_model *m, qkv_use_texts texts, size_t n,
                                 qkv_rows_fn rows, const qkv_use_rows *to) {
    job j = {.m = m, .texts = texts, .n = n, .rows = rows, .to = *to};
    return n ? run_all(&j) : QKV_OK;
}

/* One row per word, where the texts have words. */
static qkv_status number_words(qkv_use_texts texts, size_t n, size_t **first) {
    if (!texts.words) return QKV_OK;
    QKV_TRY_ALLOC(*first = qkv_zalloc(n + 1, sizeof **first));
    for (size_t i = 0; i < n; i++) (*first)[i + 1] = (*first)[i] + texts.words[i].n;
    return QKV_OK;
}

qkv_status qkv_rows_of_texts(const qkv_text_model *m, qkv_use_texts texts, size_t n,
                             qkv_rows_fn rows, size_t width, float *out) {
    if (n == 0) return QKV_OK;
    const unsigned wanted = qkv_tokenise_spec_of(qkv_model_config(m->model)).columns;
    size_t *first = NULL;
    qkv_encoding *e = qkv_zalloc(n, sizeof *e);
    qkv_status status =
        e ? qkv_texts_encode(m, texts.at, n, wanted & QKV_COLUMNS_BY_PLACE, e) : QKV_FAILED;
    if (status == QKV_OK) status = number_words(texts, n, &first);
    if (status == QKV_OK)
        status = qkv_rows_of_encodings(m, texts, n, rows, &(qkv_use_rows){e, first, width, out});
    qkv_free(first);
    qkv_encodings_free(e, n);
    return status;
}

/* ---- classes ---- */

static qkv_tensor *class_rows(qkv_tape *t, qkv_model *m, const qkv_tokens *batch) {
    qkv_tensor *y = qkv_model_classify(t, m, batch);
    if (qkv_tape_stopped(t)) return y;
    if (qkv_model_config(m)->several)
        for (int64_t i = 0; i < y->rows * y->cols; i++)
            y->data[i] = (real)(1 / (1 + exp(-(double)y->data[i])));
    else
        qkv_kern_get()->softmax(y->data, y->data, y->rows, y->cols);
    return y;
}

qkv_status qkv_classify(const qkv_text_model *m, const qkv_text *texts, size_t n,
                        float *probabilities) {
    if (qkv_task_of(qkv_model_config(m->model))->shape.head != QKV_HEAD_CLASSES)
        return qkv_other_use(m, "classify");
    return qkv_rows_of_texts(m, (qkv_use_texts){texts, NULL}, n, class_rows, (size_t)m->labels.n,
                             probabilities);
}

/* ---- numbers ---- */

qkv_status qkv_rate(const qkv_text_model *m, const qkv_text *texts, size_t n, float *numbers) {
    const qkv_config *c = qkv_model_config(m->model);
    if (qkv_task_of(c)->shape.head != QKV_HEAD_NUMBER) return qkv_other_use(m, "rate");
    QKV_TRY(qkv_rows_of_texts(m, (qkv_use_texts){texts, NULL}, n, qkv_model_classify, 1, numbers));
    for (size_t i = 0; i < n; i++)
        numbers[i] = (float)((double)numbers[i] * c->rate_deviation + c->rate_mean);
    return QKV_OK;
}

/* ---- vectors ---- */

size_t qkv_embed_width(const qkv_text_model *m) {
    return (size_t)qkv_model_width(m->model);
}

/* Divides a vector by its length; one of nothing but zeros stays what it is. */
static void make_unit(float *x, size_t n) {
    double squares = 0;
    for (size_t i = 0; i < n; i++) squares += (double)x[i] * (double)x[i];
    const double length = sqrt(squares);
    for (size_t i = 0; i < n && length > 0; i++) x[i] = (float)((double)x[i] / length);
}

qkv_status qkv_embed(const qkv_text_model *m, const qkv_text *texts, size_t n, float *vectors) {
    const size_t width = qkv_embed_width(m);
    QKV_TRY(
        qkv_rows_of_texts(m, (qkv_use_texts){texts, NULL}, n, qkv_model_pooled, width, vectors));
    if (qkv_model_config(m->model)->unit)
        for (size_t i = 0; i < n; i++) make_unit(vectors + i * width, width);
    return QKV_OK;
}
