/* chrF = 5·P·R / (4·P + R), with P and R the means over the orders (characters 1 … 6, white
 * space left out; chrF++: words 1 and 2 as well) of the shares of n-grams that both have. An
 * order that either side has no n-grams of is left out of the means; so is, line by line, the
 * hypothesis' count of an order that the reference is too short for. */
#include "score/score.h"
#include "base/mem.h"

#include <ctype.h>
#include <string.h>

enum { ORDERS = QKV_CHRF_ORDERS, HYP = 0, REF = ORDERS, MATCH = 2 * ORDERS }; /* of the sums */

void qkv_chrf_free(qkv_chrf *c) {
    qkv_score_words_free(&c->words);
    qkv_free(c->chars.at);
    c->chars.at = NULL;
    c->chars.n = c->chars.cap = 0;
}

double qkv_chrf_of(const double *sums, int word_orders) {
    double precision = 0, recall = 0;
    int used = 0;
    for (int k = 0; k < QKV_CHRF_CHARS + word_orders; k++) {
        if (sums[HYP + k] == 0 || sums[REF + k] == 0) continue;
        precision += sums[MATCH + k] / sums[HYP + k];
        recall += sums[MATCH + k] / sums[REF + k];
        used++;
    }
    if (precision + recall == 0) return 0;
    precision /= used;
    recall /= used;
    return 100 * 5 * precision * recall / (4 * precision + recall);
}

static bool is_mark(int32_t cp) {
    return cp < 128 && ispunct(cp);
}

/* A word, with one ASCII punctuation mark at its end (or else its beginning) as a word of its
 * own. */
static qkv_status add_word(qkv_score_words *w, const int32_t *word, size_t n) {
    const bool last = n > 1 && is_mark(word[n - 1]), first = n > 1 && !last && is_mark(word[0]);
    const size_t cut = last ? n - 1 : first ? 1 : 0;
    QKV_TRY(qkv_score_words_add(w, word, cut));
    return qkv_score_words_add(w, word + cut, n - cut);
}

/* A line's characters without white space onto c->chars, its words into c->words. */
static qkv_status read_line(qkv_chrf *c, qkv_text line, size_t *begin) {
    *begin = c->chars.n;
    for (size_t i = 0; i <= line.len; i++)
        if (!QKV_PUSH(c->chars, ' ')) return QKV_FAILED;
    int32_t *at = c->chars.at + *begin;
    size_t n, kept = 0, word = 0;
    QKV_TRY(qkv_score_decode(line, at, &n));
    at[n] = ' ';
    for (size_t i = 0; i <= n; i++) {
        if (!qkv_score_is_space(at[i])) {
            at[kept++] = at[i];
            continue;
        }
        if (c->word_orders) QKV_TRY(add_word(&c->words, at + word, kept - word));
        word = kept;
    }
    c->chars.n = *begin + kept;
    return qkv_score_words_end_line(&c->words);
}

static void fill(double *line, int at, int orders, const qkv_gram pair[2], const int64_t *match) {
    for (int k = 0; k < orders; k++) {
        const int32_t hyp = pair[0].n > k ? pair[0].n - k : 0,
                      ref = pair[1].n > k ? pair[1].n - k : 0;
        line[REF + at + k] = ref;
        line[HYP + at + k] = ref ? hyp : 0;
        line[MATCH + at + k] = (double)match[k];
    }
}

/* One hypothesis, one reference: lines 0 and 1 of what was read. */
static qkv_status count_pair(qkv_chrf *c, qkv_text hyp, qkv_text ref, double *out) {
    size_t begin[2];
    int64_t match[QKV_CHRF_CHARS];
    qkv_score_words_clear(&c->words);
    c->chars.n = 0;
    QKV_TRY(read_line(c, hyp, &begin[0]));
    QKV_TRY(read_line(c, ref, &begin[1]));
    const qkv_gram chars[2] = {
        {c->chars.at, (int32_t)begin[1], 0},
        {c->chars.at + begin[1], (int32_t)(c->chars.n - begin[1]), 1},
    };
    QKV_TRY(qkv_ngrams_match(&c->words, chars, 2, QKV_CHRF_CHARS, match));
    fill(out, 0, QKV_CHRF_CHARS, chars, match);
    if (!c->word_orders) return QKV_OK;
    QKV_TRY(qkv_score_words_number(&c->words));
    const qkv_gram words[2] = {qkv_score_words_line(&c->words, 0),
                               qkv_score_words_line(&c->words, 1)};
    QKV_TRY(qkv_ngrams_match(&c->words, words, 2, c->word_orders, match));
    fill(out, QKV_CHRF_CHARS, c->word_orders, words, match);
    return QKV_OK;
}

qkv_status qkv_chrf_add(qkv_chrf *c, qkv_text hyp, const qkv_text *refs, size_t n_refs) {
    if (n_refs < 1) return qkv_fail(QKV_USAGE, "a score needs a reference");
    c->n_refs = n_refs;
    for (size_t i = 0; i < n_refs; i++) {
        double one[QKV_CHRF_SUMS] = {0};
        QKV_TRY(count_pair(c, hyp, refs[i], one));
        if (i == 0 || qkv_chrf_of(one, c->word_orders) > qkv_chrf_of(c->line, c->word_orders))
            memcpy(c->line, one, sizeof one);
    }
    for (int k = 0; k < QKV_CHRF_SUMS; k++) c->sum[k] += c->line[k];
    return QKV_OK;
}

void qkv_chrf_signature(const qkv_chrf *c, qkv_buf *out) {
    qkv_buf_printf(out, "nrefs:%zu|case:mixed|eff:yes|nc:%d|nw:%d|space:no|version:qkv-%s",
                   c->n_refs, QKV_CHRF_CHARS, c->word_orders, qkv_version());
}
