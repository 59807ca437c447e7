/* Scores of a translation in sacrebleu's words, and as JSON. */
#include "report/likeness.h"
#include "report/show.h"

void qkv_translation_score_json(const qkv_translation_score *s, qkv_json_out *j) {
    qkv_put_count(j, "lines", s->lines);
    qkv_put_real(j, "bleu", s->bleu, 7);
    qkv_put_text(j, "bleu_signature", s->bleu_signature);
    qkv_json_put_key(j, "precisions");
    qkv_json_open(j, '[');
    for (int k = 0; k < QKV_BLEU_ORDERS; k++) qkv_json_put_real(j, s->precisions[k], 7);
    qkv_json_close(j, ']');
    qkv_put_real(j, "brevity_penalty", s->brevity_penalty, 7);
    qkv_put_real(j, "ratio", s->length_ratio, 7);
    qkv_put_count(j, "hyp_len", s->hyp_len);
    qkv_put_count(j, "ref_len", s->ref_len);
    qkv_put_real(j, "chrf", s->chrf2, 7);
    qkv_put_text(j, "chrf_signature", s->chrf2_signature);
    qkv_put_real(j, "chrf_words", s->chrf2_plus, 7);
    qkv_put_text(j, "chrf_words_signature", s->chrf2_plus_signature);
}

void qkv_translation_score_table(const qkv_translation_score *s, qkv_buf *out) {
    const double *p = s->precisions;
    qkv_buf_printf(out,
                   "BLEU|%s = %.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld "
                   "ref_len = %lld)\n",
                   s->bleu_signature, s->bleu, p[0], p[1], p[2], p[3], s->brevity_penalty,
                   s->length_ratio, (long long)s->hyp_len, (long long)s->ref_len);
    qkv_buf_printf(out, "chrF2|%s = %.2f\n", s->chrf2_signature, s->chrf2);
    qkv_buf_printf(out, "chrF2++|%s = %.2f\n", s->chrf2_plus_signature, s->chrf2_plus);
}

static void members(const void *result, qkv_json_out *j) {
    qkv_translation_score_json(result, j);
}

static void table(const void *result, qkv_buf *out) {
    qkv_translation_score_table(result, out);
}

qkv_status qkv_translation_score_show(const qkv_translation_score *s, qkv_show how, char **text) {
    return qkv_show_result(s, &(qkv_wording){table, members}, how, text);
}
