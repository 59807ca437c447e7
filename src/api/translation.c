/* What a search found, as texts. All that belongs to one source lies in one block. */
#include "api/translate.h"
#include "base/mem.h"

#include <string.h>

/* Where things go in the block: first counted, then, with memory, filled. */
typedef struct filling {
    char *block; /* NULL while counting */
    size_t used;
} filling;

static void *put(filling *f, const void *data, size_t bytes) {
    const size_t at = f->used;
    f->used += (bytes + 7) & ~(size_t)7;
    if (!f->block) return NULL;
    if (bytes) memcpy(f->block + at, data, bytes);
    return f->block + at;
}

static void put_floats(filling *f, const real *x, size_t n, const float **out) {
    const size_t at = f->used;
    f->used += (n * sizeof **out + 7) & ~(size_t)7;
    if (!f->block) return;
    float *to = (float *)(f->block + at);
    for (size_t i = 0; i < n; i++) to[i] = (float)x[i];
    *out = to;
}

static void put_one(filling *f, const qkv_hypothesis *h, const char *text, size_t len,
                    bool source_cut, qkv_translation *out) {
    *out = (qkv_translation){.len = len,
                             .score = h->score,
                             .log_prob = h->log_prob,
                             .n = (size_t)h->n,
                             .source_cut = source_cut,
                             .cut = !h->ended};
    out->text = put(f, text, len + 1);
    out->ids = put(f, h->ids, (size_t)h->n * sizeof *h->ids);
    put_floats(f, h->log_probs, (size_t)h->n, &out->log_probs);
}

qkv_status qkv_translation_write(const qkv_text_model *m, const qkv_text *source,
                                 const qkv_encoding *e, const qkv_hypothesis *found, size_t nbest,
                                 qkv_translation *out, void **block) {
    (void)source;
    qkv_buf text = {0};
    size_t *end = qkv_alloc(nbest * sizeof *end); /* of each one's text, its NUL included */
    qkv_status status = end ? QKV_OK : QKV_FAILED;
    for (size_t k = 0; k < nbest && status == QKV_OK; k++) {
        if (found[k].ids)
            status =
                qkv_tokenizer_decode(m->tokenizer, found[k].ids, (size_t)found[k].n, false, &text);
        qkv_buf_putc(&text, '\0');
        if (status == QKV_OK) status = text.status;
        end[k] = text.len;
    }
    filling f = {0};
    for (int pass = 0; pass < 2 && status == QKV_OK; pass++) {
        if (pass == 1 && !(*block = f.block = qkv_alloc(f.used + 1))) status = QKV_FAILED;
        f.used = 0;
        for (size_t k = 0; k < nbest && status == QKV_OK; k++) {
            const size_t from = k ? end[k - 1] : 0;
            if (found[k].ids)
                put_one(&f, &found[k], text.data + from, end[k] - from - 1, e->cut, &out[k]);
        }
    }
    qkv_free(end);
    qkv_buf_free(&text);
    return status;
}
