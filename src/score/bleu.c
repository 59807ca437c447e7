/* BLEU = BP · exp(¼ Σₖ log pₖ), with pₖ the share of the hypotheses' k-grams that a reference has,
 * and the brevity penalty BP = exp(1 − r/h) where the hypotheses' h words are fewer than the
 * references' r (of several references the one nearest in length counts, the shorter of two as
 * near).
 *
 * Smoothing "exp": the i-th order without any match counts as 1/2ⁱ of a match. */
#include "score/score.h"

#include <math.h>
#include <stdlib.h>

enum { HYP, REF, MATCH, TOTAL = MATCH + QKV_BLEU_ORDERS }; /* where the sums are */

void qkv_bleu_free(qkv_bleu *b) {
    qkv_score_words_free(&b->words);
}

/* The length nearest to that of sequence 0. */
static int32_t nearest(const qkv_gram *sequences, size_t n) {
    int32_t best = sequences[1].n;
    for (size_t i = 2; i < n; i++) {
        const int32_t far = abs(sequences[i].n - sequences[0].n), was = abs(best - sequences[0].n);
        if (far < was || (far == was && sequences[i].n < best)) best = sequences[i].n;
    }
    return best;
}

qkv_status qkv_bleu_add(qkv_bleu *b, qkv_text hyp, const qkv_text *refs, size_t n_refs) {
    enum { MOST = 64 };
    if (n_refs < 1 || n_refs > MOST)
        return qkv_fail(QKV_USAGE, "%zu references; a score needs 1 to %d", n_refs, MOST);
    b->n_refs = n_refs;
    qkv_score_words_clear(&b->words);
    for (size_t i = 0; i <= n_refs; i++) {
        QKV_TRY(qkv_bleu_tokenise(b->tokens, i ? refs[i - 1] : hyp, &b->words));
        QKV_TRY(qkv_score_words_end_line(&b->words));
    }
    QKV_TRY(qkv_score_words_number(&b->words));
    qkv_gram sequences[MOST + 1];
    for (size_t i = 0; i <= n_refs; i++) sequences[i] = qkv_score_words_line(&b->words, i);
    int64_t match[QKV_BLEU_ORDERS];
    QKV_TRY(qkv_ngrams_match(&b->words, sequences, n_refs + 1, QKV_BLEU_ORDERS, match));
    b->line[HYP] = sequences[0].n;
    b->line[REF] = nearest(sequences, n_refs + 1);
    for (int k = 0; k < QKV_BLEU_ORDERS; k++) {
        b->line[MATCH + k] = (double)match[k];
        b->line[TOTAL + k] = sequences[0].n > k ? sequences[0].n - k : 0;
    }
    for (int k = 0; k < QKV_BLEU_SUMS; k++) b->sum[k] += b->line[k];
    return QKV_OK;
}

qkv_bleu_score qkv_bleu_of(const double *sums) {
    qkv_bleu_score r = {.penalty = 1};
    if (sums[HYP] < sums[REF]) r.penalty = sums[HYP] > 0 ? exp(1 - sums[REF] / sums[HYP]) : 0;
    if (sums[MATCH] == 0) return r; /* then no order has a match */
    double sum = 0, part = 1;
    for (int k = 0; k < QKV_BLEU_ORDERS; k++) {
        const double match = sums[MATCH + k], total = sums[TOTAL + k];
        /* No line has k + 1 words: sacrebleu gives 0, and so do we. */
        if (total == 0) return r;
        if (match == 0) part /= 2;
        r.precision[k] = 100 * (match > 0 ? match : part) / total;
        sum += log(r.precision[k]);
    }
    r.score = r.penalty * exp(sum / QKV_BLEU_ORDERS);
    return r;
}

void qkv_bleu_signature(const qkv_bleu *b, qkv_buf *out) {
    qkv_buf_printf(out, "nrefs:%zu|case:mixed|eff:no|tok:%s|smooth:exp|version:qkv-%s", b->n_refs,
                   qkv_bleu_token_names[b->tokens], qkv_version());
}
