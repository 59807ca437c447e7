/* Vectors of words: the mean of the last layer's rows of the tokens that a word is made of. */
#include "use/predict.h"
#include "base/mem.h"

enum { TEXTS = 64 }; /* at once: their rows are all in memory */

typedef struct embedding {
    const qkv_text_model *m;
    size_t width;
    QKV_VEC(qkv_word_place) words;
    QKV_VEC(float) vectors;
} embedding;

/* The mean of the rows of tokens that overlap the word; false when none does: it was not read. */
static bool add_mean(embedding *x, const qkv_encoding *e, qkv_text_word word, size_t *at,
                     const float *rows, bool *out_of_memory) {
    size_t n = 0, begin = x->vectors.n;
    while (*at < e->n && e->end[*at] <= word.begin) (*at)++;
    for (size_t k = *at; k < e->n && (e->begin[k] < word.end || e->end[k] == 0); k++) {
        if (e->end[k] <= word.begin || e->begin[k] == e->end[k]) continue; /* marks are no text */
        for (size_t c = 0; c < x->width; c++) {
            const float value = rows[k * x->width + c];
            if (n)
                x->vectors.at[begin + c] += value;
            else if (!QKV_PUSH(x->vectors, value))
                return !(*out_of_memory = true);
        }
        n++;
    }
    for (size_t c = 0; n > 1 && c < x->width; c++) x->vectors.at[begin + c] /= (float)n;
    return n > 0;
}

static qkv_status add_text(embedding *x, qkv_text text, bool blanks, const qkv_encoding *e,
                           const float *rows) {
    qkv_word_list list = {0};
    size_t at = 0;
    bool out_of_memory = false;
    qkv_status status = qkv_words_split(text, blanks, &list);
    for (size_t i = 0; i < list.n && status == QKV_OK; i++) {
        const qkv_word_place place = {list.at[i].begin, list.at[i].end};
        if (add_mean(x, e, list.at[i], &at, rows, &out_of_memory) && !QKV_PUSH(x->words, place))
            status = QKV_FAILED;
        if (out_of_memory) status = QKV_FAILED;
    }
    qkv_free(list.at);
    return status;
}

static qkv_status embed_block(embedding *x, const qkv_text *texts, size_t n, bool blanks,
                              size_t *ends) {
    qkv_encoding e[TEXTS] = {0};
    size_t first[TEXTS + 1] = {0};
    qkv_status status = qkv_texts_encode(x->m, texts, n, true, e);
    for (size_t i = 0; i < n; i++) first[i + 1] = first[i] + e[i].n;
    float *rows = qkv_alloc((first[n] * x->width + 1) * sizeof *rows);
    if (!rows) status = QKV_FAILED;
    if (status == QKV_OK)
        status = qkv_rows_of_encodings(x->m, (qkv_use_texts){texts, NULL}, n, qkv_model_rows,
                                       &(qkv_use_rows){e, first, x->width, rows});
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        status = add_text(x, texts[i], blanks, &e[i], rows + first[i] * x->width);
        ends[i] = x->words.n;
    }
    qkv_free(rows);
    for (size_t i = 0; i < n; i++) qkv_encoding_free(&e[i]);
    return status;
}

qkv_status qkv_embed_words(const qkv_text_model *m, const qkv_text *texts, size_t n, bool blanks,
                           qkv_word_vectors *out) {
    embedding x = {.m = m, .width = qkv_embed_width(m)};
    *out = (qkv_word_vectors){.n = n};
    QKV_TRY_ALLOC(out->first = qkv_zalloc(n + 1, sizeof *out->first));
    qkv_status status = QKV_OK;
    for (size_t from = 0; from < n && status == QKV_OK; from += TEXTS)
        status = embed_block(&x, texts + from, n - from < TEXTS ? n - from : TEXTS, blanks,
                             out->first + from + 1);
    out->words = x.words.at;
    out->vectors = x.vectors.at;
    if (status != QKV_OK) qkv_word_vectors_free(out);
    return status;
}

void qkv_word_vectors_free(qkv_word_vectors *v) {
    qkv_free(v->words);
    qkv_free(v->vectors);
    qkv_free(v->first);
    *v = (qkv_word_vectors){0};
}
