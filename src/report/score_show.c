/* Scores of translations in sacrebleu's words, and as JSON. */
#include "report/likeness.h"
#include "report/show.h"
#include "draw/text_table.h"

#include <math.h>

static void put_interval(qkv_json_out *j, const char *mean, const char *key, qkv_interval i) {
    if (isnan(i.mean)) return;
    qkv_put_real(j, mean, i.mean, 7);
    qkv_json_put_key(j, key);
    qkv_json_open(j, '[');
    qkv_json_put_real(j, i.low, 7);
    qkv_json_put_real(j, i.high, 7);
    qkv_json_close(j, ']');
}

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
    qkv_put_real(j, "ter", s->ter, 7);
    qkv_put_text(j, "ter_signature", s->ter_signature);
    put_interval(j, "bleu_mean", "bleu_interval", s->bleu_interval);
    put_interval(j, "chrf_mean", "chrf_interval", s->chrf2_interval);
    put_interval(j, "chrf_words_mean", "chrf_words_interval", s->chrf2_plus_interval);
    put_interval(j, "ter_mean", "ter_interval", s->ter_interval);
    if (s->samples) qkv_put_count(j, "samples", s->samples);
}

/* As sacrebleu writes it: the mean of the samples, and half of what lies between the bounds. */
static void put_spread(qkv_buf *out, qkv_interval i) {
    if (!isnan(i.mean)) qkv_buf_printf(out, " (μ = %.2f ± %.2f)", i.mean, (i.high - i.low) / 2);
}

static void put_line(qkv_buf *out, const char *name, const char *signature, double value,
                     qkv_interval i) {
    qkv_buf_printf(out, "%s|%s = %.2f", name, signature, value);
    put_spread(out, i);
    qkv_buf_putc(out, '\n');
}

void qkv_translation_score_table(const qkv_translation_score *s, qkv_buf *out) {
    const double *p = s->precisions;
    qkv_buf_printf(out, "BLEU|%s = %.2f", s->bleu_signature, s->bleu);
    put_spread(out, s->bleu_interval);
    qkv_buf_printf(out,
                   " %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)\n",
                   p[0], p[1], p[2], p[3], s->brevity_penalty, s->length_ratio,
                   (long long)s->hyp_len, (long long)s->ref_len);
    put_line(out, "chrF2", s->chrf2_signature, s->chrf2, s->chrf2_interval);
    put_line(out, "chrF2++", s->chrf2_plus_signature, s->chrf2_plus, s->chrf2_plus_interval);
    put_line(out, "TER", s->ter_signature, s->ter, s->ter_interval);
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

/* ---- two systems ---- */

static void members_of_both(const void *result, qkv_json_out *j) {
    const qkv_score_comparison *c = result;
    const struct {
        const char *key;
        const qkv_translation_score *score;
    } systems[] = {{"baseline", &c->baseline}, {"system", &c->system}};
    for (int k = 0; k < 2; k++) {
        qkv_json_put_key(j, systems[k].key);
        qkv_json_open(j, '{');
        qkv_translation_score_json(systems[k].score, j);
        qkv_json_close(j, '}');
    }
    qkv_put_real(j, "bleu_p", c->bleu_p, 7);
    qkv_put_real(j, "chrf_p", c->chrf2_p, 7);
    qkv_put_real(j, "chrf_words_p", c->chrf2_plus_p, 7);
    qkv_put_real(j, "ter_p", c->ter_p, 7);
    qkv_put_count(j, "samples", c->samples);
    qkv_put_count(j, "seed", (int64_t)c->seed);
}

static void put_compared(qkv_table *t, const char *name, const double value[2],
                         const qkv_interval i[2], double p) {
    qkv_table_cell(t, "%s", name);
    for (int k = 0; k < 2; k++)
        qkv_table_cell(t, "%.2f ± %.2f", value[k], (i[k].high - i[k].low) / 2);
    qkv_table_cell(t, "%+.2f", value[1] - value[0]);
    qkv_table_cell(t, p < 0.05 ? "%.4f *" : "%.4f  ", p);
}

static void table_of_both(const void *result, qkv_buf *out) {
    const qkv_score_comparison *c = result;
    const qkv_translation_score *a = &c->baseline, *b = &c->system;
    const char *const head[] = {"", "baseline", "system", "change", "p  "};
    qkv_table t = qkv_table_begin("lrrrr");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) qkv_table_cell(&t, "%s", head[i]);
    put_compared(&t, "BLEU", (double[]){a->bleu, b->bleu},
                 (qkv_interval[]){a->bleu_interval, b->bleu_interval}, c->bleu_p);
    put_compared(&t, "chrF2", (double[]){a->chrf2, b->chrf2},
                 (qkv_interval[]){a->chrf2_interval, b->chrf2_interval}, c->chrf2_p);
    put_compared(&t, "chrF2++", (double[]){a->chrf2_plus, b->chrf2_plus},
                 (qkv_interval[]){a->chrf2_plus_interval, b->chrf2_plus_interval}, c->chrf2_plus_p);
    put_compared(&t, "TER (less is better)", (double[]){a->ter, b->ter},
                 (qkv_interval[]){a->ter_interval, b->ter_interval}, c->ter_p);
    const qkv_status status = qkv_table_print(&t, (qkv_ink){.columns = 80}, out);
    qkv_table_free(&t);
    if (status != QKV_OK) out->status = status;
    qkv_buf_printf(out,
                   "\n%lld lines; ± holds 95 %% of %lld samples of them (paired bootstrap, seed "
                   "%llu);\np: how likely such a difference is by chance; *: less than 0.05\n\n",
                   (long long)b->lines, (long long)c->samples, (unsigned long long)c->seed);
    qkv_buf_printf(out, "BLEU|%s\nchrF2|%s\nchrF2++|%s\nTER|%s\n", b->bleu_signature,
                   b->chrf2_signature, b->chrf2_plus_signature, b->ter_signature);
}

qkv_status qkv_score_comparison_show(const qkv_score_comparison *c, qkv_show how, char **text) {
    return qkv_show_result(c, &(qkv_wording){table_of_both, members_of_both}, how, text);
}
