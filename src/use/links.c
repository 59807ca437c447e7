/* Word alignment from attention. A word is what blanks separate; its attention is the sum over its
 * tokens, on both sides, and each target word is linked to the source word that it attends to most
 * (to none, when the end of the source gets more: there attention goes that is not needed). */
#include "use/translate_text.h"
#include "base/mem.h"

#include <string.h>

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The word in which byte `at` lies; blanks belong to the word after them. */
static void number_words(const char *text, size_t len, uint32_t *word) {
    uint32_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (i && is_blank(text[i]) && !is_blank(text[i - 1])) n++;
        word[i] = n;
    }
    /* Blanks at the end begin no word; those at the beginning ended none. */
    for (size_t i = len; i-- > 0 && is_blank(text[i]);) word[i] = n ? n - 1 : 0;
}

typedef struct words {
    uint32_t *source, *target; /* word of each byte */
    uint32_t *of_token;        /* target word of each token; UINT32_MAX: of none */
    double *attention;         /* (target words, source words + 1): the last is the source's end */
    uint32_t n_source, n_target;
    size_t *reach; /* bytes of the text after each token */
} words;

static void words_free(words *w) {
    qkv_free(w->source);
    qkv_free(w->target);
    qkv_free(w->of_token);
    qkv_free(w->attention);
    qkv_free(w->reach);
}

/* How far the text reaches after each token. */
static qkv_status measure(const qkv_tokenizer *tok, const qkv_hypothesis *h, size_t *reach) {
    qkv_decode_stream *stream;
    qkv_buf text = {0};
    QKV_TRY(qkv_decode_stream_new(tok, false, &stream));
    qkv_status status = QKV_OK;
    for (int32_t i = 0; i < h->n && status == QKV_OK; i++) {
        status = qkv_decode_stream_push(stream, h->ids[i], &text);
        reach[i] = text.len;
    }
    qkv_decode_stream_free(stream);
    qkv_buf_free(&text);
    return status;
}

static void add_up(words *w, const qkv_encoding *e, const qkv_hypothesis *h, size_t n_src) {
    for (int32_t i = 0; i < h->n; i++) {
        if (w->of_token[i] == UINT32_MAX) continue;
        double *row = w->attention + (size_t)w->of_token[i] * (w->n_source + 1);
        for (size_t j = 0; j < n_src; j++) {
            const bool end = j >= e->n || e->end[j] == e->begin[j];
            row[end ? w->n_source : w->source[e->end[j] - 1]] +=
                (double)h->attention[(size_t)i * n_src + j];
        }
    }
}

static qkv_status make(words *w, const qkv_tokenizer *tok, const qkv_text *source,
                       const qkv_text *text, const qkv_hypothesis *h) {
    QKV_TRY_ALLOC(w->source = qkv_alloc((source->len + 1) * sizeof *w->source));
    QKV_TRY_ALLOC(w->target = qkv_alloc((text->len + 1) * sizeof *w->target));
    QKV_TRY_ALLOC(w->of_token = qkv_alloc(((size_t)h->n + 1) * sizeof *w->of_token));
    QKV_TRY_ALLOC(w->reach = qkv_alloc(((size_t)h->n + 1) * sizeof *w->reach));
    number_words(source->data, source->len, w->source);
    number_words(text->data, text->len, w->target);
    w->n_source = source->len ? w->source[source->len - 1] + 1 : 0;
    w->n_target = text->len ? w->target[text->len - 1] + 1 : 0;
    QKV_TRY(measure(tok, h, w->reach));
    for (int32_t i = 0; i < h->n; i++) {
        /* Bytes held back until a character is whole count for the token that completes it. */
        const size_t from = i ? w->reach[i - 1] : 0;
        size_t to = w->reach[i] < text->len ? w->reach[i] : text->len;
        while (to > from && is_blank(text->data[to - 1])) to--;
        w->of_token[i] = to > from ? w->target[to - 1] : UINT32_MAX;
    }
    QKV_TRY_ALLOC(w->attention = qkv_zalloc((size_t)w->n_target * (w->n_source + 1) + 1,
                                            sizeof *w->attention));
    return QKV_OK;
}

qkv_status qkv_links_make(const qkv_tokenizer *tok, const qkv_source *source, const qkv_text *text,
                          const qkv_hypothesis *h, qkv_links *out) {
    words w = {0};
    qkv_status status = make(&w, tok, source->text, text, h);
    if (status == QKV_OK) add_up(&w, source->tokens, h, source->n);
    for (uint32_t t = 0; t < w.n_target && status == QKV_OK; t++) {
        const double *row = w.attention + (size_t)t * (w.n_source + 1);
        uint32_t best = w.n_source;
        for (uint32_t s = 0; s < w.n_source; s++)
            if (row[s] > row[best]) best = s;
        if (best < w.n_source && !QKV_PUSH(*out, ((qkv_link){best, t}))) status = QKV_FAILED;
    }
    words_free(&w);
    return status;
}
