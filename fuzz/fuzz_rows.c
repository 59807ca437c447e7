/* Rows in any form: the first byte says what is asked for, the rest is the file. What is read is
 * UTF-8 text with labels that exist, counts add up, and reading the same again gives the same. */
#include "fuzz.h"
#include "base/utf8.h"
#include "data/survey.h"

#include <math.h>
#include <string.h>

static void look_text(qkv_text t) {
    assert(t.len == 0 || (t.data && qkv_utf8_valid(t.data, t.len) == t.len));
}

static void look(const qkv_corpus *c) {
    assert(c->n > 0 && c->format && c->readings.n == 1);
    for (size_t i = 0; i < c->n; i++) {
        const qkv_row *row = &c->rows[i];
        look_text(row->text);
        look_text(row->second);
        assert(row->text.len > 0 && row->line > 0);
        assert(c->shape == QKV_CORPUS_LABELLED && !c->several
                   ? row->label >= 0 && row->label < c->labels.n
                   : row->label == -1);
        assert(c->several ? row->labels != NULL : row->n_labels == 0);
        for (size_t k = 0; k < row->n_labels; k++)
            assert(row->labels[k] >= 0 && row->labels[k] < c->labels.n &&
                   (k == 0 || row->labels[k] > row->labels[k - 1]));
        assert(isfinite(row->value) && (c->shape == QKV_CORPUS_RATED || row->value == 0));
        assert((row->second.data != NULL) == (c->rows[0].second.data != NULL));
    }
    for (int32_t k = 1; k < c->labels.n; k++)
        assert(strcmp(c->labels.names[k - 1], c->labels.names[k]) < 0);
}

static void look_survey(const qkv_corpus *c) {
    qkv_survey s;
    int64_t rows = 0;
    qkv_status status = qkv_survey_make(c, &s);
    assert(status == QKV_OK && s.rows == (int64_t)c->n && s.disputed <= s.doubled);
    for (int32_t k = 0; k < s.n_classes; k++) {
        assert(s.classes[k].n > 0 && (k == 0 || s.classes[k - 1].n >= s.classes[k].n));
        rows += s.classes[k].n;
    }
    assert(c->shape != QKV_CORPUS_LABELLED || rows == (c->several ? s.labels : s.rows));
    (void)qkv_survey_check(c, &s);
    qkv_survey_free(&s);
}

void fuzz_rows(const uint8_t *data, size_t n) {
    static const char *const formats[] = {NULL, "csv", "tsv", "jsonl"};
    static const char *const columns[][QKV_ROLES] = {
        {NULL, NULL, NULL}, {"label", "text", NULL}, {"1", "2", NULL}, {NULL, "2", "3"}};
    static const qkv_corpus_shape shapes[] = {QKV_CORPUS_LABELLED, QKV_CORPUS_PARALLEL,
                                              QKV_CORPUS_LINES, QKV_CORPUS_STREAM};
    if (n == 0) return;
    const char *path = fuzz_as_file(data + 1, n - 1);
    qkv_corpus_spec spec = {.shape = shapes[data[0] & 3],
                            .paths = &path,
                            .n_paths = 1,
                            .format = formats[data[0] >> 2 & 3]};
    if (data[0] & 0x40 && spec.shape == QKV_CORPUS_LABELLED) spec.shape = QKV_CORPUS_RATED;
    if (data[0] & 0x80) spec.between = ";";
    memcpy(spec.column, columns[data[0] >> 4 & 3], sizeof spec.column);
    qkv_corpus c, again;
    if (qkv_corpus_read(&c, &spec) != QKV_OK) return;
    look(&c);
    if (c.shape != QKV_CORPUS_STREAM) look_survey(&c);
    qkv_status status = qkv_corpus_read(&again, &spec);
    assert(status == QKV_OK && again.n == c.n && again.labels.n == c.labels.n);
    qkv_corpus_free(&again);
    qkv_corpus_free(&c);
}
