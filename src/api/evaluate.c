/* Scores on files: loss and accuracy for every task; per class precision, recall and F1 for classifiers; perplexity and
 * bits per byte for language models. */
#include "api/textmodel.h"
#include "base/json.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { BATCH_TOKENS = 4096 };

typedef struct scores {
    double loss; /* Σ */
    int64_t n_right, n_targets, n_bytes, n_examples;
    int64_t *confusion; /* classify: [truth][answer] */
    int32_t classes;
} scores;

/* ---- counting ---- */

static qkv_status count_classes(qkv_text_model *m, const qkv_corpus *corpus, scores *s) {
    const size_t c = (size_t)m->labels.n;
    s->classes = m->labels.n;
    s->confusion = qkv_zalloc(c * c, sizeof *s->confusion);
    qkv_text *texts = qkv_alloc(corpus->n * sizeof *texts);
    float *p = qkv_alloc(corpus->n * c * sizeof *p);
    qkv_status status = s->confusion && texts && p ? QKV_OK : QKV_FAILED;
    for (size_t i = 0; status == QKV_OK && i < corpus->n; i++) texts[i] = corpus->rows[i].text;
    if (status == QKV_OK) status = qkv_classify(m, texts, corpus->n, p);
    for (size_t i = 0; status == QKV_OK && i < corpus->n; i++) {
        const size_t truth = (size_t)corpus->rows[i].label;
        size_t answer = 0;
        for (size_t k = 1; k < c; k++)
            if (p[i * c + k] > p[i * c + answer]) answer = k;
        s->confusion[truth * c + answer]++;
        s->n_right += truth == answer;
        s->n_targets++;
        s->loss -= log(fmax((double)p[i * c + truth], 1e-30));
    }
    qkv_free(texts);
    qkv_free(p);
    return status;
}

static qkv_status count_tokens(qkv_text_model *m, const qkv_encoded *data, scores *s) {
    const qkv_config *config = qkv_model_config(m->model);
    const qkv_task *task = qkv_task_get((qkv_task_kind)config->task);
    qkv_batcher b = {
        .data = data, .budget = BATCH_TOKENS, .window = task->stream ? config->max_len : 0};
    QKV_TRY(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < b.n_batches && status == QKV_OK; i++) {
        int64_t n;
        const int64_t *examples = qkv_batcher_get(&b, i, &n);
        qkv_batch batch;
        qkv_loss_out out;
        qkv_tape_begin(&m->tape, QKV_EVAL, 0, (uint64_t)i);
        status =
            qkv_task_forward(&m->tape, m->model, &m->spec, &b, examples, n, &batch, NULL, &out);
        s->loss += out.loss;
        s->n_right += out.n_right;
        s->n_targets += batch.n_targets;
    }
    qkv_batcher_free(&b);
    return status;
}

static qkv_status count(qkv_text_model *m, const qkv_corpus *corpus, scores *s) {
    const qkv_config *config = qkv_model_config(m->model);
    for (size_t i = 0; i < corpus->n; i++)
        s->n_bytes += (int64_t)(config->task == QKV_TASK_TRANSLATE ? corpus->rows[i].second.len
                                                                   : corpus->rows[i].text.len);
    s->n_examples = (int64_t)corpus->n;
    if (config->task == QKV_TASK_CLASSIFY) return count_classes(m, corpus, s);
    const qkv_tokenise_spec spec = qkv_tokenise_spec_of(config);
    qkv_tokenise_counts counts;
    qkv_encoded data;
    qkv_encoded_init(&data, spec.sides);
    qkv_status status = qkv_tokenise(m->tokenizer, corpus, NULL, &spec, &data, &counts);
    if (status == QKV_OK) status = count_tokens(m, &data, s);
    qkv_encoded_free(&data);
    return status;
}

/* ---- writing ---- */

typedef struct class_score {
    double precision, recall, f1;
    int64_t support;
} class_score;

static class_score score_of(const scores *s, int32_t k) {
    int64_t answered = 0;
    class_score r = {0};
    for (int32_t i = 0; i < s->classes; i++) {
        answered += s->confusion[i * s->classes + k];
        r.support += s->confusion[k * s->classes + i];
    }
    const double right = (double)s->confusion[k * s->classes + k];
    if (answered) r.precision = right / (double)answered;
    if (r.support) r.recall = right / (double)r.support;
    if (right > 0) r.f1 = 2 * r.precision * r.recall / (r.precision + r.recall);
    return r;
}

static void write_classes_json(const qkv_text_model *m, const scores *s, qkv_json_out *j) {
    double sum = 0;
    qkv_json_put_key(j, "classes");
    qkv_json_open(j, '{');
    for (int32_t k = 0; k < s->classes; k++) {
        const class_score r = score_of(s, k);
        const struct {
            const char *key;
            double value;
        } rows[] = {{"precision", r.precision},
                    {"recall", r.recall},
                    {"f1", r.f1},
                    {"support", (double)r.support}};
        qkv_json_put_key(j, m->labels.names[k]);
        qkv_json_open(j, '{');
        for (size_t i = 0; i < 4; i++) {
            qkv_json_put_key(j, rows[i].key);
            qkv_json_put_real(j, rows[i].value, 6);
        }
        qkv_json_close(j, '}');
        sum += r.f1;
    }
    qkv_json_close(j, '}');
    qkv_json_put_key(j, "macro_f1");
    qkv_json_put_real(j, sum / s->classes, 6);
    qkv_json_put_key(j, "confusion");
    qkv_json_open(j, '[');
    for (int32_t k = 0; k < s->classes; k++) {
        qkv_json_open(j, '[');
        for (int32_t i = 0; i < s->classes; i++)
            qkv_json_put_int(j, s->confusion[k * s->classes + i]);
        qkv_json_close(j, ']');
    }
    qkv_json_close(j, ']');
}

static void write_json(const qkv_text_model *m, const scores *s, qkv_buf *out) {
    const double loss = s->loss / (double)s->n_targets;
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "task");
    qkv_json_put_text(&j, qkv_text_model_task(m));
    qkv_json_put_key(&j, "examples");
    qkv_json_put_int(&j, s->n_examples);
    qkv_json_put_key(&j, "loss");
    qkv_json_put_real(&j, loss, 7);
    qkv_json_put_key(&j, "accuracy");
    qkv_json_put_real(&j, (double)s->n_right / (double)s->n_targets, 7);
    if (s->confusion) {
        write_classes_json(m, s, &j);
    } else {
        qkv_json_put_key(&j, "perplexity");
        qkv_json_put_real(&j, exp(loss), 7);
        qkv_json_put_key(&j, "bits_per_byte");
        qkv_json_put_real(&j, s->loss / log(2) / (double)s->n_bytes, 7);
        qkv_json_put_key(&j, "targets");
        qkv_json_put_int(&j, s->n_targets);
    }
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

static void write_table(const qkv_text_model *m, const scores *s, qkv_buf *out) {
    const double loss = s->loss / (double)s->n_targets;
    if (!s->confusion) {
        qkv_buf_printf(
            out, "loss %.4f nats   perplexity %.3f   bits per byte %.4f   (%lld tokens)\n", loss,
            exp(loss), s->loss / log(2) / (double)s->n_bytes, (long long)s->n_targets);
        return;
    }
    qkv_buf_printf(out, "accuracy %.2f %%   loss %.4f   (%lld of %lld right)\n\n",
                   100 * (double)s->n_right / (double)s->n_targets, loss, (long long)s->n_right,
                   (long long)s->n_targets);
    qkv_buf_printf(out, "%-20s %9s %9s %9s %9s\n", "class", "precision", "recall", "F1", "rows");
    for (int32_t k = 0; k < s->classes; k++) {
        const class_score r = score_of(s, k);
        qkv_buf_printf(out, "%-20s %9.4f %9.4f %9.4f %9lld\n", m->labels.names[k], r.precision,
                       r.recall, r.f1, (long long)r.support);
    }
}

qkv_status qkv_evaluate(qkv_text_model *m, const char *const *files, bool json, char **text) {
    *text = NULL;
    size_t n = 0;
    while (files && files[n]) n++;
    const qkv_task_kind task = (qkv_task_kind)qkv_model_config(m->model)->task;
    const qkv_corpus_spec spec = {
        .shape = qkv_corpus_shape_of(task), .paths = files, .n_paths = n, .labels = &m->labels};
    if (n == 0 || !qkv_task_get(task))
        return qkv_fail(QKV_USAGE, n ? "a model that only embeds has no score"
                                     : "eval needs data: --data FILE");
    qkv_corpus corpus;
    QKV_TRY(qkv_corpus_read(&corpus, &spec));
    scores s = {0};
    qkv_status status = count(m, &corpus, &s);
    qkv_buf out = {0};
    if (status == QKV_OK) (json ? write_json : write_table)(m, &s, &out);
    if (status == QKV_OK) status = out.status;
    qkv_free(s.confusion);
    qkv_corpus_free(&corpus);
    if (status == QKV_OK)
        *text = out.data;
    else
        qkv_buf_free(&out);
    return status;
}
