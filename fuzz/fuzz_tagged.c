/* Sentences with labels: the first byte says which form is insisted on, the rest is the file. Words lie
 * in their text, in order, apart, each with a label that exists; a file's spans are well formed. */
#include "fuzz.h"
#include "base/utf8.h"
#include "data/corpus.h"
#include "data/spans.h"

#include <stdlib.h>
#include <string.h>

static void look_sentence(const qkv_corpus *c, const qkv_row *row) {
    uint32_t at = 0;
    assert(row->words.n > 0 && row->label == -1 && row->line > 0);
    assert(qkv_utf8_valid(row->text.data, row->text.len) == row->text.len);
    for (size_t k = 0; k < row->words.n; k++) {
        const qkv_text_word w = row->words.at[k];
        assert(w.begin >= at && w.end > w.begin && w.end <= row->text.len);
        assert(w.tag >= 0 && w.tag < c->labels.n);
        at = w.end + 1;
    }
}

static void look_spans(const qkv_span_scheme *scheme, const qkv_row *row) {
    const size_t n = row->words.n;
    int32_t *label = malloc(n * sizeof *label);
    qkv_word_span *span = malloc(n * sizeof *span);
    if (label && span) {
        for (size_t k = 0; k < n; k++) label[k] = row->words.at[k].tag;
        const size_t found = qkv_spans_find(scheme, label, n, span);
        for (size_t k = 0; k < found; k++) {
            assert(span[k].from < span[k].to && span[k].to <= n && span[k].type >= 0);
            assert(k == 0 || span[k].from >= span[k - 1].to);
        }
    }
    free(label);
    free(span);
}

void fuzz_tagged(const uint8_t *data, size_t n) {
    static const char *const formats[] = {NULL, "conllu", "conll", "jsonl"};
    if (n == 0) return;
    const char *path = fuzz_as_file(data + 1, n - 1);
    const qkv_corpus_spec spec = {
        .shape = QKV_CORPUS_TAGGED, .paths = &path, .n_paths = 1, .format = formats[data[0] & 3]};
    qkv_corpus c;
    qkv_span_scheme scheme;
    if (qkv_corpus_read(&c, &spec) != QKV_OK) return;
    const qkv_status status = qkv_span_scheme_of(&c.labels, &scheme);
    assert(status == QKV_OK && c.n > 0);
    for (size_t i = 0; i < c.n; i++) {
        look_sentence(&c, &c.rows[i]);
        look_spans(&scheme, &c.rows[i]);
    }
    qkv_span_scheme_free(&scheme);
    qkv_corpus_free(&c);
}
