#include "report/likeness.h"
#include "data/lines.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

qkv_status qkv_likeness_begin(qkv_likeness *l, const char *tokens) {
    *l = (qkv_likeness){.chrf_words.word_orders = QKV_CHRF_WORDS};
    for (int k = 0; tokens && k < QKV_BLEU_TOKENS; k++)
        if (strcmp(tokens, qkv_bleu_token_names[k]) == 0) {
            l->bleu.tokens = (qkv_bleu_tokens)k;
            return QKV_OK;
        }
    if (!tokens) return QKV_OK; /* 13a, the first */
    return qkv_fail(QKV_USAGE, "BLEU has the tokenisations 13a, intl, char and none, not \"%s\"",
                    tokens);
}

qkv_status qkv_likeness_add(qkv_likeness *l, qkv_text hyp, const qkv_text *refs, size_t n_refs) {
    l->lines++;
    QKV_TRY(qkv_bleu_add(&l->bleu, hyp, refs, n_refs));
    QKV_TRY(qkv_chrf_add(&l->chrf, hyp, refs, n_refs));
    return qkv_chrf_add(&l->chrf_words, hyp, refs, n_refs);
}

void qkv_likeness_free(qkv_likeness *l) {
    qkv_bleu_free(&l->bleu);
    qkv_chrf_free(&l->chrf);
    qkv_chrf_free(&l->chrf_words);
}

/* ---- what follows from the counts ---- */

/* A signature is short, whatever was counted. */
static qkv_status take_signature(qkv_buf *text, char *out, size_t size) {
    const qkv_status status = text->status;
    assert(status != QKV_OK || text->len < size);
    if (status == QKV_OK) snprintf(out, size, "%s", text->data);
    qkv_buf_free(text);
    return status;
}

static qkv_status sign_chrf(const qkv_chrf *c, char *out, size_t size) {
    qkv_buf text = {0};
    qkv_chrf_signature(c, &text);
    return take_signature(&text, out, size);
}

static qkv_status sign(const qkv_likeness *l, qkv_translation_score *out) {
    qkv_buf text = {0};
    qkv_bleu_signature(&l->bleu, &text);
    QKV_TRY(take_signature(&text, out->bleu_signature, sizeof out->bleu_signature));
    QKV_TRY(sign_chrf(&l->chrf, out->chrf2_signature, sizeof out->chrf2_signature));
    return sign_chrf(&l->chrf_words, out->chrf2_plus_signature, sizeof out->chrf2_plus_signature);
}

qkv_status qkv_likeness_conclude(const qkv_likeness *l, qkv_translation_score *out) {
    const qkv_bleu_score b = qkv_bleu_result(&l->bleu);
    *out = (qkv_translation_score){.lines = l->lines,
                                   .bleu = b.score,
                                   .chrf2 = qkv_chrf_result(&l->chrf),
                                   .chrf2_plus = qkv_chrf_result(&l->chrf_words),
                                   .brevity_penalty = b.penalty,
                                   .hyp_len = l->bleu.hyp_len,
                                   .ref_len = l->bleu.ref_len};
    _Static_assert(sizeof out->precisions == sizeof b.precision, "one a length of n-grams");
    memcpy(out->precisions, b.precision, sizeof b.precision);
    if (out->ref_len) out->length_ratio = (double)out->hyp_len / (double)out->ref_len;
    return sign(l, out);
}

/* ---- files against files ---- */

enum { MOST_REFERENCES = 16 };

typedef struct files {
    qkv_lines hyp, ref[MOST_REFERENCES];
    size_t n; /* references that are open */
} files;

static qkv_status open_files(const qkv_score_request *q, files *f) {
    QKV_TRY(qkv_lines_read(&f->hyp, q->hypotheses));
    for (const char *const *path = q->references; path && *path; path++) {
        if (f->n == MOST_REFERENCES)
            return qkv_fail(QKV_USAGE, "more than %d references", MOST_REFERENCES);
        QKV_TRY(qkv_lines_read(&f->ref[f->n], *path));
        if (f->ref[f->n++].line.n != f->hyp.line.n)
            return qkv_fail(QKV_BAD_FILE,
                            "%s has %zu lines and %s has %zu; line n of one must answer line n "
                            "of the other",
                            q->hypotheses, f->hyp.line.n, *path, f->ref[f->n - 1].line.n);
    }
    if (f->n == 0) return qkv_fail(QKV_USAGE, "a score needs a reference: --ref FILE");
    return f->hyp.line.n ? QKV_OK : qkv_fail(QKV_BAD_FILE, "%s: the file is empty", q->hypotheses);
}

static qkv_status count_files(const files *f, qkv_likeness *l) {
    for (size_t i = 0; i < f->hyp.line.n; i++) {
        qkv_text refs[MOST_REFERENCES];
        for (size_t k = 0; k < f->n; k++) refs[k] = f->ref[k].line.at[i];
        QKV_TRY(qkv_likeness_add(l, f->hyp.line.at[i], refs, f->n));
    }
    return QKV_OK;
}

qkv_status qkv_score(const qkv_score_request *request, qkv_translation_score *out) {
    qkv_likeness l;
    files f = {0};
    *out = (qkv_translation_score){0};
    QKV_TRY(qkv_likeness_begin(&l, request->tokenize));
    qkv_status status = open_files(request, &f);
    if (status == QKV_OK) status = count_files(&f, &l);
    if (status == QKV_OK) status = qkv_likeness_conclude(&l, out);
    qkv_likeness_free(&l);
    qkv_lines_free(&f.hyp);
    for (size_t k = 0; k < f.n; k++) qkv_lines_free(&f.ref[k]);
    return status;
}
