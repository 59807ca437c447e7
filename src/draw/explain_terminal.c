/* Why an answer was given, in the terminal: the text, its words on grounds from pale to deep, and
 * the words that weigh most. Blue speaks for the answer, orange against it. Without colour the
 * words that weigh more carry signs: "great+++ acting but dull--". */
#include "draw/explain_page.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_LINES = 20, /* of a long text that are shown */
    TOP_WORDS = 10,
    TOP_NGRAMS = 6,
    WEIGHT = 14,       /* columns of a number and the blanks about it */
    WORD_COLUMNS = 24, /* at most, as */
    BAR_COLUMNS = 24
};

static int least(int a, int b) {
    return a < b ? a : b;
}

static int word_columns(qkv_ink ink) {
    return least(WORD_COLUMNS, (ink.columns - WEIGHT) / 2);
}

/* ---- shared with the page ---- */

double qkv_explain_largest(const qkv_explanation *e) {
    double most = 0;
    for (size_t i = 0; i < e->n; i++) most = fmax(most, fabs(e->words[i].weight));
    return most;
}

typedef struct ranked {
    double weight;
    size_t word;
} ranked;

static int by_weight(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return x->word < y->word ? -1 : 1;
}

size_t *qkv_explain_order(const qkv_explanation *e) {
    ranked *list = qkv_alloc((e->n + 1) * sizeof *list);
    size_t *order = qkv_alloc((e->n + 1) * sizeof *order);
    if (!list || !order) {
        qkv_free(list);
        qkv_free(order);
        return NULL;
    }
    for (size_t i = 0; i < e->n; i++) list[i] = (ranked){fabs(e->words[i].weight), i};
    qsort(list, e->n, sizeof *list, by_weight);
    for (size_t i = 0; i < e->n; i++) order[i] = list[i].word;
    qkv_free(list);
    return order;
}

/* ---- words ---- */

/* The ground of a word, and ink that can be read on it. */
static void put_ground(qkv_buf *out, double strength) {
    static const double ends[2][2][3] = {{{224, 232, 244}, {29, 78, 216}},
                                         {{253, 236, 222}, {194, 65, 12}}};
    const double *pale = ends[strength < 0][0], *deep = ends[strength < 0][1], s = fabs(strength);
    qkv_buf_puts(out, "\033[48;2");
    for (int i = 0; i < 3; i++)
        qkv_buf_printf(out, ";%d", (int)lround(pale[i] + (deep[i] - pale[i]) * s));
    qkv_buf_puts(out, s > 0.7 ? "m\033[38;2;255;255;255m" : "m\033[38;2;15;23;42m");
}

/* Signs of a word where there is no colour: one to three, none for what weighs little. */
static int signs(double strength) {
    const double s = fabs(strength);
    return s >= 0.66 ? 3 : s >= 0.33 ? 2 : s >= 0.12 ? 1 : 0;
}

static void put_word(const qkv_explanation *e, size_t i, double most, qkv_ink ink, qkv_buf *out) {
    const qkv_explain_word *w = &e->words[i];
    const char *text = e->text.data + w->begin;
    const size_t len = w->end - w->begin;
    const double strength = most > 0 ? w->weight / most : 0;
    const int columns = ink.columns - (ink.colour ? 0 : signs(strength)),
              width = qkv_text_width(text, len);
    const bool ground = ink.colour && fabs(strength) >= 0.04;
    if (ground) put_ground(out, strength);
    qkv_text_fit(out, text, len, least(width, columns), false);
    if (ground) qkv_buf_puts(out, "\033[0m");
    for (int k = 0; k < signs(strength) && !ink.colour; k++)
        qkv_buf_putc(out, strength < 0 ? '-' : '+');
}

static int word_width(const qkv_explanation *e, size_t i, double most, qkv_ink ink) {
    const qkv_explain_word *w = &e->words[i];
    const int width = qkv_text_width(e->text.data + w->begin, w->end - w->begin) +
                      (ink.colour || most <= 0 ? 0 : signs(w->weight / most));
    return least(width, ink.columns);
}

/* The text, broken between words. */
static void put_text(const qkv_explanation *e, qkv_ink ink, qkv_buf *out) {
    const double most = qkv_explain_largest(e);
    int at = 0, lines = 1;
    for (size_t i = 0; i < e->n; i++) {
        const bool gap = i && e->words[i - 1].end < e->words[i].begin;
        const int width = word_width(e, i, most, ink);
        if (at > 0 && at + gap + width > ink.columns) {
            if (lines++ == TEXT_LINES) {
                qkv_buf_printf(out, "\n… %zu more words", e->n - i);
                break;
            }
            qkv_buf_putc(out, '\n');
            at = 0;
        } else if (gap && at > 0) {
            qkv_buf_putc(out, ' ');
            at++;
        }
        put_word(e, i, most, ink, out);
        at += width;
    }
    if (e->n) qkv_buf_putc(out, '\n');
}

/* ---- what weighs most ---- */

static void put_row(const char *name, size_t len, double weight, const char *note, qkv_ink ink,
                    qkv_buf *out) {
    qkv_buf_puts(out, "  ");
    qkv_text_fit(out, name, len, word_columns(ink), false);
    qkv_buf_printf(out, " %+9.3f", weight);
    if (!note) return;
    const int width = qkv_text_width(note, strlen(note)),
              room = ink.columns - WEIGHT - word_columns(ink);
    qkv_buf_puts(out, ink.colour ? "  \033[2m" : "  ");
    qkv_text_fit(out, note, strlen(note), least(width, room), false);
    qkv_buf_puts(out, ink.colour ? "\033[0m" : "");
}

static void put_bar(double share, qkv_ink ink, qkv_buf *out) {
    const int all = least(BAR_COLUMNS, ink.columns - WEIGHT - word_columns(ink)),
              n = (int)lround(fabs(share) * all);
    qkv_buf_puts(out, "  ");
    if (ink.colour) qkv_buf_puts(out, share < 0 ? "\033[38;2;234;88;12m" : "\033[38;2;59;130;246m");
    for (int i = 0; i < n; i++) qkv_buf_puts(out, share < 0 && !ink.colour ? "░" : "█");
    qkv_buf_puts(out, ink.colour ? "\033[0m\n" : "\n");
}

static qkv_status put_words(const qkv_explanation *e, qkv_ink ink, qkv_buf *out) {
    const double most = qkv_explain_largest(e);
    const size_t shown = e->n <= TOP_WORDS + 1 ? e->n : TOP_WORDS;
    size_t *order = qkv_explain_order(e);
    char name[40], note[80];
    double others = 0;
    if (!order) return QKV_FAILED;
    for (size_t i = 0; i < e->n; i++) {
        const qkv_explain_word *w = &e->words[order[i]];
        if (i >= shown) {
            others += w->weight;
            continue;
        }
        put_row(e->text.data + w->begin, w->end - w->begin, w->weight, NULL, ink, out);
        put_bar(most > 0 ? w->weight / most : 0, ink, out);
    }
    qkv_free(order);
    if (shown < e->n) {
        snprintf(name, sizeof name, "(%zu other words)", e->n - shown);
        put_row(name, strlen(name), others, NULL, ink, out);
        qkv_buf_putc(out, '\n');
    }
    if (e->passes)
        snprintf(note, sizeof note, "a text that says nothing: %+.3f", e->start);
    else
        snprintf(note, sizeof note, "words hidden one by one do not add up");
    put_row("(rest)", 6, e->rest, note, ink, out);
    qkv_buf_putc(out, '\n');
    return out->status;
}

static void put_ngrams(const qkv_explanation *e, qkv_ink ink, qkv_buf *out) {
    static const char label[] = "  n-grams";
    int at = (int)strlen(label);
    if (!e->n_ngrams) return;
    qkv_buf_puts(out, label);
    for (size_t i = 0; i < e->n_ngrams && i < TOP_NGRAMS; i++) {
        const qkv_explain_ngram *g = &e->ngrams[i];
        const char *text = e->text.data + g->begin;
        int width = qkv_text_width(text, g->end - g->begin);
        char weight[40];
        snprintf(weight, sizeof weight, "”%s %+.3f", g->ends ? "$" : "", g->weight);
        width = least(width, least(WORD_COLUMNS, ink.columns - 26));
        const int all = 3 + g->begins + width + qkv_text_width(weight, strlen(weight));
        if (at + all > ink.columns) {
            qkv_buf_printf(out, "\n%*s", (int)strlen(label), "");
            at = (int)strlen(label);
        }
        qkv_buf_puts(out, g->begins ? "  ^“" : "  “");
        qkv_text_fit(out, text, g->end - g->begin, width, false);
        qkv_buf_puts(out, weight);
        at += all;
    }
    qkv_buf_putc(out, '\n');
}

static void put_name(const char *name, size_t len, bool bold, qkv_ink ink, qkv_buf *out) {
    const int width = qkv_text_width(name, len);
    qkv_buf_puts(out, bold && ink.colour ? "\033[1m" : "");
    qkv_text_fit(out, name, len, least(width, (ink.columns - 24) / 2), false);
    qkv_buf_puts(out, bold && ink.colour ? "\033[0m" : "");
}

/* "NUM 0.9812, +4.313 over DESC"; of a word "Paris: B-LOC 0.9982, …"; a number */
static void put_head(const qkv_explanation *e, qkv_ink ink, qkv_buf *out) {
    if (e->begin > 0 || e->end < e->text.len) {
        put_name(e->text.data + e->begin, e->end - e->begin, false, ink, out);
        qkv_buf_puts(out, ": ");
    }
    char number[40];
    snprintf(number, sizeof number, "%.6g", e->lead);
    const char *answer = e->label ? e->label : number;
    put_name(answer, strlen(answer), true, ink, out);
    if (e->label) qkv_buf_printf(out, " %.4f, %+.3f", e->probability, e->lead);
    if (e->against) {
        qkv_buf_puts(out, " over ");
        put_name(e->against, strlen(e->against), false, ink, out);
    }
    qkv_buf_putc(out, '\n');
}

qkv_status qkv_explain_terminal(const qkv_explanation *e, qkv_ink ink, qkv_buf *out) {
    if (ink.columns <= 0) ink.columns = 80;
    if (ink.columns < 40) ink.columns = 40;
    put_head(e, ink, out);
    put_text(e, ink, out);
    QKV_TRY(put_words(e, ink, out));
    put_ngrams(e, ink, out);
    return out->status;
}
