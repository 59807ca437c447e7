/* BLEU, chrF, TER and the paired bootstrap against sacrebleu's figures (golden/score_golden.h),
 * signatures, words, errors. */
#include "harness.h"
#include "golden/score_golden.h"
#include "report/likeness.h"
#include "score/resample.h"

#include <math.h>
#include <unistd.h>

static qkv_text text_of(const char *s) {
    return (qkv_text){s, strlen(s)};
}

static void expect(const golden *g, int which, double got) {
    static const char *const names[] = {"BLEU 13a",  "BLEU intl", "BLEU char", "BLEU zh",
                                        "BLEU none", "chrF2",     "chrF2++",   "TER"};
    /* To the last digit that the golden figures have: the same counts, the same formula. */
    if (fabs(got - g->figure[which]) > 1e-6)
        fail_msg("%s of lines %d … %d, %d references: %.8f, wanted %.8f", names[which], g->from,
                 g->from + g->n - 1, g->refs, got, g->figure[which]);
}

static void equals_sacrebleu(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const golden *g = &goldens[i];
        qkv_bleu bleu[QKV_BLEU_TOKENS] = {0};
        qkv_chrf chrf[2] = {{.word_orders = 0}, {.word_orders = QKV_CHRF_WORDS}};
        qkv_ter ter = {0};
        for (int k = g->from; k < g->from + g->n; k++) {
            const qkv_text refs[2] = {text_of(ref[k]), text_of(second[k])};
            for (int t = 0; t < QKV_BLEU_TOKENS; t++) {
                bleu[t].tokens = (qkv_bleu_tokens)t;
                assert_ok(qkv_bleu_add(&bleu[t], text_of(hyp[k]), refs, (size_t)g->refs));
            }
            for (int t = 0; t < 2; t++)
                assert_ok(qkv_chrf_add(&chrf[t], text_of(hyp[k]), refs, (size_t)g->refs));
            assert_ok(qkv_ter_add(&ter, text_of(hyp[k]), refs, (size_t)g->refs));
        }
        for (int t = 0; t < QKV_BLEU_TOKENS; t++) {
            expect(g, t, qkv_bleu_of(bleu[t].sum).score);
            qkv_bleu_free(&bleu[t]);
        }
        for (int t = 0; t < 2; t++) {
            expect(g, QKV_BLEU_TOKENS + t, qkv_chrf_of(chrf[t].sum, chrf[t].word_orders));
            qkv_chrf_free(&chrf[t]);
        }
        expect(g, QKV_BLEU_TOKENS + 2, qkv_ter_of(ter.sum));
        qkv_ter_free(&ter);
    }
}

/* Phrases moved, lines of very different lengths, cases beyond ASCII. */
static void moves_phrases_as_sacrebleu(void **state) {
    (void)state;
    qkv_ter t = {0}; /* one after the other: what an earlier line left changes nothing */
    for (size_t i = 0; i < sizeof moved_ter / sizeof *moved_ter; i++) {
        const qkv_text line = text_of(moved_ref[i]);
        assert_ok(qkv_ter_add(&t, text_of(moved_hyp[i]), &line, 1));
        const double got = qkv_ter_of(t.line);
        if (fabs(got - moved_ter[i]) > 1e-6)
            fail_msg("line %zu: TER %.8f, wanted %.8f", i, got, moved_ter[i]);
    }
    qkv_ter_free(&t);
}

/* ---- samples ---- */

/* numpy.random.default_rng(12345).choice(10, 8), and of seed 2**40 + 1 below 3. */
static void draws_are_numpys(void **state) {
    (void)state;
    static const uint32_t ten[] = {6, 2, 7, 3, 2, 7, 6, 6}, three[] = {0, 0, 1, 0, 2, 1, 0, 1};
    uint32_t got[8];
    qkv_draws d;
    qkv_draws_begin(&d, 12345);
    qkv_draws_fill(&d, 10, got, 8);
    assert_memory_equal(got, ten, sizeof ten);
    qkv_draws_begin(&d, (UINT64_C(1) << 40) + 1);
    qkv_draws_fill(&d, 3, got, 8);
    assert_memory_equal(got, three, sizeof three);
    qkv_draws_fill(&d, 1, got, 8);
    for (int i = 0; i < 8; i++) assert_int_equal(got[i], 0);
}

static void write_lines(const char *path, const char *const *lines, size_t n) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) fprintf(f, "%s\n", lines[i]);
    fclose(f);
}

static void expect_paired(int k, qkv_interval a, qkv_interval b, double p) {
    const double got[] = {a.mean, (a.high - a.low) / 2, b.mean, (b.high - b.low) / 2, p};
    for (int i = 0; i < 5; i++)
        if (fabs(got[i] - paired[k][i]) > 1e-4) /* their sums are in single precision */
            fail_msg("figure %d, number %d: %.6f, wanted %.6f", k, i, got[i], paired[k][i]);
}

static void compares_as_sacrebleu(void **state) {
    (void)state;
    const char *const refs[] = {"score_ref.txt", NULL};
    const qkv_score_request q = {
        .hypotheses = "score_second.txt", .baseline = "score_hyp.txt", .references = refs};
    qkv_score_comparison c, again;
    char *text;
    write_lines("score_hyp.txt", hyp, LINES);
    write_lines("score_second.txt", second, LINES);
    write_lines("score_ref.txt", ref, LINES);
    assert_ok(qkv_score_compare(&q, &c));
    const qkv_translation_score *a = &c.baseline, *b = &c.system;
    assert_int_equal(c.samples, 1000);
    expect_paired(0, a->bleu_interval, b->bleu_interval, c.bleu_p);
    expect_paired(1, a->chrf2_interval, b->chrf2_interval, c.chrf2_p);
    expect_paired(2, a->chrf2_plus_interval, b->chrf2_plus_interval, c.chrf2_plus_p);
    expect_paired(3, a->ter_interval, b->ter_interval, c.ter_p);
    qkv_threads_set(1);
    assert_ok(qkv_score_compare(&q, &again));
    qkv_threads_set(0);
    assert_memory_equal(&again.system.ter_interval, &b->ter_interval, sizeof(qkv_interval));
    assert_true(again.bleu_p == c.bleu_p);
    assert_ok(qkv_score_comparison_show(&c, QKV_SHOW_TABLE, &text));
    assert_non_null(strstr(text, "paired bootstrap, seed 12345"));
    qkv_text_free(text);
    assert_ok(qkv_score_comparison_show(&c, QKV_SHOW_JSON, &text));
    assert_non_null(strstr(text, "\"system\":{\"lines\":18,"));
    assert_non_null(strstr(text, "\"bleu_interval\":["));
    qkv_text_free(text);
    const qkv_score_request same = {
        .hypotheses = "score_hyp.txt", .baseline = "score_hyp.txt", .references = refs};
    assert_ok(qkv_score_compare(&same, &c));
    assert_true(c.bleu_p == 1 && c.ter_p == 1); /* no difference is none to explain */
    unlink("score_hyp.txt");
    unlink("score_second.txt");
    unlink("score_ref.txt");
}

/* The words of a line, joined by bars. */
static void words_are(qkv_bleu_tokens how, const char *line, const char *wanted) {
    qkv_score_words w = {0};
    assert_ok(qkv_bleu_tokenise(how, text_of(line), &w));
    char got[256] = "";
    size_t n = 0;
    for (size_t i = 0, at = 0; i < w.ends.n; i++) {
        if (i) got[n++] = '|';
        for (; at < w.ends.at[i]; at++) got[n++] = (char)w.codes.at[at]; /* ASCII in these cases */
    }
    got[n] = 0;
    assert_string_equal(got, wanted);
    qkv_score_words_free(&w);
}

static void words(void **state) {
    (void)state;
    words_are(QKV_BLEU_13A, "Hello, world. It's 3.5-4 (ok)", "Hello|,|world|.|It's|3.5|-|4|(|ok|)");
    words_are(QKV_BLEU_13A, "&lt;a&gt;&amp;quot;", "<|a|>|&|quot|;");
    words_are(QKV_BLEU_INTL, "It's 3.5-4, in 2015.", "It|'|s|3.5-4|,|in|2015.");
    words_are(QKV_BLEU_INTL, "a$b + c", "a|$|b|+|c");
    words_are(QKV_BLEU_CHAR, "a bc ", "a|b|c");
    words_are(QKV_BLEU_ZH, " .5 a-b\u201c\uff0cx,y", ".5|a-b|\x1c|\x0c|x|,|y"); /* low bytes */
    words_are(QKV_BLEU_NONE,
              "  a,b\tc\x1c"
              "d ",
              "a,b|c|d");
    words_are(QKV_BLEU_NONE, "   ", "");
}

static void signatures(void **state) {
    (void)state;
    qkv_bleu b = {.tokens = QKV_BLEU_INTL};
    qkv_chrf c = {.word_orders = 2};
    const qkv_text refs[2] = {text_of("a b c d"), text_of("a b")};
    assert_ok(qkv_bleu_add(&b, text_of("a b c d"), refs, 2));
    assert_ok(qkv_chrf_add(&c, text_of("a b c d"), refs, 1));
    assert_true(fabs(qkv_bleu_of(b.sum).score - 100) < 1e-9);
    assert_true(fabs(qkv_chrf_of(c.sum, 2) - 100) < 1e-9);
    qkv_buf out = {0};
    qkv_bleu_signature(&b, &out);
    qkv_buf_putc(&out, ' ');
    qkv_chrf_signature(&c, &out);
    char wanted[256];
    snprintf(wanted, sizeof wanted,
             "nrefs:2|case:mixed|eff:no|tok:intl|smooth:exp|version:qkv-%s "
             "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:qkv-%s",
             qkv_version(), qkv_version());
    assert_string_equal(out.data, wanted);
    assert_fails(qkv_bleu_add(&b, refs[0], refs, 0), QKV_USAGE, "0 references");
    qkv_buf_free(&out);
    qkv_bleu_free(&b);
    qkv_chrf_free(&c);
}

static qkv_status score_once(const void *text) {
    qkv_bleu b = {0};
    qkv_chrf c = {.word_orders = 2};
    qkv_ter t = {0};
    const qkv_text line = text_of(text);
    qkv_status status = qkv_bleu_add(&b, line, &line, 1);
    if (status == QKV_OK) status = qkv_chrf_add(&c, line, &line, 1);
    if (status == QKV_OK) status = qkv_ter_add(&t, line, &line, 1);
    qkv_bleu_free(&b);
    qkv_chrf_free(&c);
    qkv_ter_free(&t);
    return status;
}

static void allocations_fail(void **state) {
    (void)state;
    assert_fails_cleanly(score_once, "some words, and some more words; a lot of them in all.", 0);
}

static void write_file(const char *path, const char *content) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

static void files(void **state) {
    (void)state;
    char *text;
    qkv_translation_score s;
    const char *const refs[] = {"score_ref.txt", NULL};
    const qkv_score_request q = {.hypotheses = "score_hyp.txt", .references = refs};
    write_file("score_hyp.txt", "the cat sat on the mat .\n\nlast line without end");
    write_file("score_ref.txt", "the cat sat on a mat .\n\nlast line without an end\n");
    assert_ok(qkv_score(&q, &s));
    assert_int_equal(s.lines, 3);
    assert_int_equal(s.hyp_len, 11);
    assert_int_equal(s.ref_len, 12);
    assert_true(fabs(s.length_ratio - 11.0 / 12) < 1e-12);
    assert_true(fabs(s.brevity_penalty - exp(1 - 12.0 / 11)) < 1e-12);
    assert_true(fabs(s.precisions[0] - 100 * 10.0 / 11) < 1e-12); /* all words but one "the" */
    assert_true(s.bleu > 0 && s.bleu < s.precisions[0]);
    assert_true(s.chrf2 > 50 && s.chrf2 < 100 && s.chrf2_plus < s.chrf2);
    assert_ok(qkv_translation_score_show(&s, QKV_SHOW_JSON, &text));
    assert_non_null(strstr(text, "{\"lines\":3,\"bleu\":"));
    assert_non_null(strstr(text, "\"chrf_words_signature\":\"nrefs:1|"));
    qkv_text_free(text);
    assert_ok(qkv_translation_score_show(&s, QKV_SHOW_TABLE, &text));
    assert_non_null(strstr(text, "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|"));
    qkv_text_free(text);
    assert_fails(qkv_translation_score_show(&s, QKV_SHOW_SVG, &text), QKV_USAGE, "as JSON");
    assert_null(text);
    write_file("score_ref.txt", "one\n");
    assert_fails(qkv_score(&q, &s), QKV_BAD_FILE, "has 3 lines and");
    write_file("score_ref.txt", "one\ntwo\n\xff\n");
    assert_fails(qkv_score(&q, &s), QKV_BAD_FILE, "line 3: byte 0xFF is not UTF-8");
    const qkv_score_request wrong = {
        .hypotheses = "score_hyp.txt", .references = refs, .tokenize = "ja-mecab"};
    assert_fails(qkv_score(&wrong, &s), QKV_USAGE, "not \"ja-mecab\"");
    const qkv_score_request twice = {.hypotheses = "-",
                                     .references = (const char *const[]){"-", NULL}};
    assert_fails(qkv_score(&twice, &s), QKV_USAGE, "only one of the files");
    assert_fails(qkv_score_compare(&q, &(qkv_score_comparison){0}), QKV_USAGE, "--baseline");
    unlink("score_hyp.txt");
    unlink("score_ref.txt");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_sacrebleu),
        cmocka_unit_test(moves_phrases_as_sacrebleu),
        cmocka_unit_test(draws_are_numpys),
        cmocka_unit_test(compares_as_sacrebleu),
        cmocka_unit_test(words),
        cmocka_unit_test(signatures),
        cmocka_unit_test(allocations_fail),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
