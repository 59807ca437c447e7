/* What a search found, as texts. All that belongs to one source lies in one block. */
#include "use/translate_text.h"
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

/* A translation before it has its place. */
typedef struct draft {
    qkv_buf text;
    qkv_links links;
    float *log_probs;
} draft;

static qkv_status make_draft(const qkv_text_model *m, const qkv_source *source,
                             const qkv_hypothesis *h, draft *d) {
    qkv_buf_puts(&d->text, "");
    QKV_TRY(qkv_tokenizer_decode(m->tokenizer, h->ids, (size_t)h->n, false, &d->text));
    QKV_TRY(d->text.status);
    QKV_TRY_ALLOC(d->log_probs = qkv_alloc(((size_t)h->n + 1) * sizeof *d->log_probs));
    for (int32_t i = 0; i < h->n; i++) d->log_probs[i] = (float)h->log_probs[i];
    if (!h->attention) return QKV_OK;
    return qkv_links_make(m->tokenizer, source, &(qkv_text){d->text.data, d->text.len}, h,
                          &d->links);
}

static void place(filling *f, const qkv_hypothesis *h, const draft *d, bool source_cut,
                  qkv_translation *out) {
    const size_t n = (size_t)h->n;
    *out = (qkv_translation){.len = d->text.len,
                             .score = h->score,
                             .log_prob = h->log_prob,
                             .n = n,
                             .n_links = d->links.n,
                             .source_cut = source_cut,
                             .cut = !h->ended};
    out->text = put(f, d->text.data, d->text.len + 1);
    out->ids = put(f, h->ids, n * sizeof *h->ids);
    out->log_probs = put(f, d->log_probs, n * sizeof *d->log_probs);
    out->links = put(f, d->links.at, d->links.n * sizeof *d->links.at);
}

qkv_status qkv_translation_write(const qkv_text_model *m, const qkv_source *source,
                                 const qkv_hypothesis *found, size_t nbest, qkv_translation *out,
                                 void **block) {
    draft *drafts = qkv_zalloc(nbest, sizeof *drafts);
    qkv_status status = drafts ? QKV_OK : QKV_FAILED;
    for (size_t k = 0; k < nbest && status == QKV_OK && found[k].ids; k++)
        status = make_draft(m, source, &found[k], &drafts[k]);
    filling f = {0};
    for (int pass = 0; pass < 2 && status == QKV_OK; pass++) {
        if (pass == 1 && !(*block = f.block = qkv_alloc(f.used + 1))) status = QKV_FAILED;
        f.used = 0;
        for (size_t k = 0; k < nbest && status == QKV_OK && found[k].ids; k++)
            place(&f, &found[k], &drafts[k], source->tokens->cut, &out[k]);
    }
    for (size_t k = 0; drafts && k < nbest; k++) {
        qkv_buf_free(&drafts[k].text);
        qkv_free(drafts[k].links.at);
        qkv_free(drafts[k].log_probs);
    }
    qkv_free(drafts);
    return status;
}
