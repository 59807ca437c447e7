/* The generators. Each row is a function of (seed, i), drawn from a small grammar.
 *
 * reviews: some remarks, then a verdict; the label is the verdict's. Words alone do not tell it: remarks may say the opposite,
 * and a negation turns a word's meaning around.
 * numbers: a number up to 999 999, or a date, in words; the translation is its digits. */
#include "data/made_up.h"
#include "base/rng.h"

#include <stdio.h>
#include <string.h>

typedef struct dice {
    qkv_rng rng;
    uint64_t n;
} dice;

static uint64_t draw(dice *d, uint64_t below) {
    return qkv_rng_below(d->rng, d->n++, below);
}

#define PICK(d, list) ((list)[draw(d, sizeof(list) / sizeof *(list))])

/* ---- reviews ---- */

static const char *const things[] = {"the film",  "the plot",       "the acting", "the music",
                                     "the story", "the ending",     "the cast",   "the dialogue",
                                     "the pace",  "the camera work"};
static const char *const words[2][10] = {
    {"dull", "awful", "boring", "weak", "tiresome", "clumsy", "dreadful", "poor", "flat", "silly"},
    {"great", "lovely", "brilliant", "superb", "charming", "moving", "fine", "clever", "fresh",
     "wonderful"}};
static const char *const degrees[] = {"", "very ", "really ", "quite ", "truly ", "rather "};
static const char *const verdicts[] = {"all in all", "in the end", "on the whole", "still"};

/* One remark with this opinion, in one of several turns of phrase. */
static void remark(dice *d, int opinion, qkv_buf *out) {
    const char *thing = PICK(d, things), *degree = PICK(d, degrees);
    const char *same = words[opinion][draw(d, 10)], *opposite = words[!opinion][draw(d, 10)];
    switch (draw(d, 5)) {
    case 0:
    case 1:
        qkv_buf_printf(out, "%s was %s%s", thing, degree, same);
        break;
    case 2:
        qkv_buf_printf(out, "%s was not %s%s", thing, degree, opposite);
        break;
    case 3:
        qkv_buf_printf(out, "%s was anything but %s", thing, opposite);
        break;
    default:
        qkv_buf_printf(out, "nobody could call %s %s", thing, opposite);
        break;
    }
}

static void review(uint64_t seed, uint64_t i, qkv_buf *out) {
    dice d = {.rng = qkv_rng_derive((qkv_rng){.seed = seed, .stream = 11}, i, 0)};
    const int label = (int)draw(&d, 2);
    qkv_buf_printf(out, "%s\t", label ? "good" : "bad");
    for (uint64_t k = 0, n = 1 + draw(&d, 2); k < n; k++) {
        remark(&d, (int)draw(&d, 2), out);
        qkv_buf_puts(out, " . ");
    }
    qkv_buf_printf(out, "%s , ", PICK(&d, verdicts));
    remark(&d, label, out);
    qkv_buf_puts(out, " .\n");
}

/* ---- numbers and dates ---- */

static const char *const ones[] = {"zero",    "one",     "two",       "three",    "four",
                                   "five",    "six",     "seven",     "eight",    "nine",
                                   "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                   "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                   "fifty", "sixty", "seventy", "eighty", "ninety"};
static const char *const months[] = {"january",   "february", "march",    "april",
                                     "may",       "june",     "july",     "august",
                                     "september", "october",  "november", "december"};

static void say_below_1000(uint64_t n, qkv_buf *out) {
    if (n >= 100) {
        qkv_buf_printf(out, "%s hundred", ones[n / 100]);
        if (n % 100) qkv_buf_puts(out, " and ");
        n %= 100;
        if (!n) return;
    }
    if (n < 20) {
        qkv_buf_puts(out, ones[n]);
        return;
    }
    qkv_buf_puts(out, tens[n / 10]);
    if (n % 10) qkv_buf_printf(out, " %s", ones[n % 10]);
}

static void say(uint64_t n, qkv_buf *out) {
    if (n >= 1000) {
        say_below_1000(n / 1000, out);
        qkv_buf_puts(out, " thousand");
        if (n % 1000) qkv_buf_puts(out, n % 1000 < 100 ? " and " : " ");
        n %= 1000;
        if (!n) return;
    }
    say_below_1000(n, out);
}

/* Digits with blanks between, so that each is a word. */
static void put_digits(const char *digits, qkv_buf *out) {
    for (const char *c = digits; *c; c++) {
        if (c != digits) qkv_buf_putc(out, ' ');
        qkv_buf_putc(out, *c);
    }
    qkv_buf_putc(out, '\n');
}

static void number(uint64_t seed, uint64_t i, qkv_buf *out) {
    static const uint64_t limits[] = {100, 1000, 10000, 1000000};
    dice d = {.rng = qkv_rng_derive((qkv_rng){.seed = seed, .stream = 12}, i, 0)};
    char digits[32];
    if (draw(&d, 3) == 0) {
        const uint64_t day = 1 + draw(&d, 28), month = draw(&d, 12), year = 1000 + draw(&d, 1000);
        qkv_buf_puts(out, "day ");
        say(day, out);
        qkv_buf_printf(out, " of %s in the year ", months[month]);
        say(year, out);
        snprintf(digits, sizeof digits, "%llu-%02llu-%02llu", (unsigned long long)year,
                 (unsigned long long)month + 1, (unsigned long long)day);
    } else {
        const uint64_t n = draw(&d, PICK(&d, limits));
        say(n, out);
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    }
    qkv_buf_putc(out, '\t');
    put_digits(digits, out);
}

static const qkv_made_up table[] = {
    {"reviews", "made-up reviews with a verdict: good or bad", "classify", review},
    {"numbers", "numbers and dates in words, and their digits", "translate", number},
};

const qkv_made_up *qkv_made_up_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}
