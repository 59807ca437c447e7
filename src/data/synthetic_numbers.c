/* Numbers up to 999 999 and dates, written in words in one of three languages; the translation is
 * their digits. Each language has something to learn: English "and", German units before tens in
 * one long word, French scores and elevens. */
#include "data/synthetic.h"

#include <stdio.h>

typedef unsigned long long number;

/* ---- English ---- */

static const char *const en_ones[] = {"zero",    "one",     "two",       "three",    "four",
                                      "five",    "six",     "seven",     "eight",    "nine",
                                      "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                      "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const en_tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                      "fifty", "sixty", "seventy", "eighty", "ninety"};
static const char *const en_months[] = {"january",   "february", "march",    "april",
                                        "may",       "june",     "july",     "august",
                                        "september", "october",  "november", "december"};

static void en_below_100(number n, qkv_buf *out) {
    if (n < 20) {
        qkv_buf_puts(out, en_ones[n]);
        return;
    }
    qkv_buf_puts(out, en_tens[n / 10]);
    if (n % 10) qkv_buf_printf(out, "-%s", en_ones[n % 10]);
}

static void en_below_1000(number n, qkv_buf *out) {
    if (n >= 100) qkv_buf_printf(out, "%s hundred%s", en_ones[n / 100], n % 100 ? " and " : "");
    if (n % 100 || n == 0) en_below_100(n % 100, out);
}

static void en_number(number n, qkv_buf *out) {
    if (n >= 1000) {
        en_below_1000(n / 1000, out);
        qkv_buf_puts(out, " thousand");
        if (n % 1000) qkv_buf_puts(out, n % 1000 < 100 ? " and " : " ");
    }
    if (n % 1000 || n == 0) en_below_1000(n % 1000, out);
}

/* "may twelve, nineteen oh five" */
static void en_date(number year, number month, number day, qkv_buf *out) {
    qkv_buf_printf(out, "%s ", en_months[month - 1]);
    en_below_100(day, out);
    qkv_buf_puts(out, ", ");
    en_below_100(year / 100, out);
    qkv_buf_puts(out, year % 100 == 0 ? " hundred" : year % 100 < 10 ? " oh " : " ");
    if (year % 100) en_below_100(year % 100, out);
}

/* ---- German ---- */

static const char *const de_ones[] = {"null",     "ein",      "zwei",     "drei",     "vier",
                                      "fünf",     "sechs",    "sieben",   "acht",     "neun",
                                      "zehn",     "elf",      "zwölf",    "dreizehn", "vierzehn",
                                      "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
static const char *const de_tens[] = {"",        "",        "zwanzig", "dreißig", "vierzig",
                                      "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};
static const char *const de_months[] = {"januar",    "februar", "märz",     "april",
                                        "mai",       "juni",    "juli",     "august",
                                        "september", "oktober", "november", "dezember"};

/* `last`: a one at the end is "eins". */
static void de_below_1000(number n, bool last, qkv_buf *out) {
    if (n >= 100) qkv_buf_printf(out, "%shundert", de_ones[n / 100]);
    n %= 100;
    if (n == 0) return;
    if (n < 20) {
        qkv_buf_printf(out, "%s%s", de_ones[n], n == 1 && last ? "s" : "");
        return;
    }
    if (n % 10) qkv_buf_printf(out, "%sund", de_ones[n % 10]);
    qkv_buf_puts(out, de_tens[n / 10]);
}

static void de_number(number n, qkv_buf *out) {
    if (n == 0) qkv_buf_puts(out, de_ones[0]);
    if (n >= 1000) {
        de_below_1000(n / 1000, false, out);
        qkv_buf_puts(out, "tausend");
    }
    de_below_1000(n % 1000, true, out);
}

/* "zwölfter mai neunzehnhundertfünf" */
static void de_date(number year, number month, number day, qkv_buf *out) {
    static const char *const odd[] = {
        [1] = "erster", [3] = "dritter", [7] = "siebter", [8] = "achter"};
    if (day < 9 && odd[day]) {
        qkv_buf_puts(out, odd[day]);
    } else {
        de_below_1000(day, false, out);
        qkv_buf_puts(out, day < 20 ? "ter" : "ster");
    }
    qkv_buf_printf(out, " %s ", de_months[month - 1]);
    de_below_1000(year / 100, false, out);
    qkv_buf_puts(out, "hundert");
    de_below_1000(year % 100, true, out);
}

/* ---- French ---- */

static const char *const fr_ones[] = {"zéro",   "un",    "deux",     "trois",    "quatre",
                                      "cinq",   "six",   "sept",     "huit",     "neuf",
                                      "dix",    "onze",  "douze",    "treize",   "quatorze",
                                      "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"};
static const char *const fr_tens[] = {
    "",          "",         "vingt",    "trente",       "quarante",
    "cinquante", "soixante", "soixante", "quatre-vingt", "quatre-vingt"};
static const char *const fr_months[] = {"janvier",   "février", "mars",     "avril",
                                        "mai",       "juin",    "juillet",  "août",
                                        "septembre", "octobre", "novembre", "décembre"};

/* Seventy is sixty and ten, ninety four score and ten; an "s" ends a round eighty. */
static void fr_below_100(number n, bool last, qkv_buf *out) {
    if (n < 20) {
        qkv_buf_puts(out, fr_ones[n]);
        return;
    }
    const number ten = n / 10, rest = ten == 7 || ten == 9 ? n % 10 + 10 : n % 10;
    qkv_buf_puts(out, fr_tens[ten]);
    if (rest == 0)
        qkv_buf_puts(out, ten == 8 && last ? "s" : "");
    else
        qkv_buf_printf(out, "%s%s", rest % 10 == 1 && ten < 8 ? " et " : "-", fr_ones[rest]);
}

static void fr_below_1000(number n, bool last, qkv_buf *out) {
    if (n >= 200) qkv_buf_printf(out, "%s ", fr_ones[n / 100]);
    if (n >= 100)
        qkv_buf_printf(out, "cent%s%s", n >= 200 && n % 100 == 0 && last ? "s" : "",
                       n % 100 ? " " : "");
    if (n % 100 || n == 0) fr_below_100(n % 100, last, out);
}

static void fr_number(number n, qkv_buf *out) {
    if (n >= 2000) {
        fr_below_1000(n / 1000, false, out);
        qkv_buf_putc(out, ' ');
    }
    if (n >= 1000) qkv_buf_printf(out, "mille%s", n % 1000 ? " " : "");
    if (n % 1000 || n == 0) fr_below_1000(n % 1000, true, out);
}

/* "le douze mai mille neuf cent cinq" */
static void fr_date(number year, number month, number day, qkv_buf *out) {
    qkv_buf_puts(out, "le ");
    if (day == 1)
        qkv_buf_puts(out, "premier");
    else
        fr_below_100(day, true, out);
    qkv_buf_printf(out, " %s ", fr_months[month - 1]);
    fr_number(year, out);
}

/* ---- rows ---- */

static const struct {
    void (*number)(number n, qkv_buf *out);
    void (*date)(number year, number month, number day, qkv_buf *out);
} languages[] = {{en_number, en_date}, {de_number, de_date}, {fr_number, fr_date}};

void qkv_synthetic_number(uint64_t seed, uint64_t i, qkv_buf *out) {
    static const uint64_t limits[] = {1000, 10000, 100000, 1000000};
    qkv_dice d = {.rng = qkv_rng_derive((qkv_rng){.seed = seed, .stream = 12}, i, 0)};
    const size_t language = qkv_draw(&d, sizeof languages / sizeof *languages);
    if (qkv_draw(&d, 3) == 0) {
        const number year = 1100 + qkv_draw(&d, 900), month = 1 + qkv_draw(&d, 12),
                     day = 1 + qkv_draw(&d, 28);
        languages[language].date(year, month, day, out);
        qkv_buf_printf(out, "\t%llu-%02llu-%02llu\n", year, month, day);
    } else {
        const number n = qkv_draw(&d, QKV_PICK(&d, limits));
        languages[language].number(n, out);
        qkv_buf_printf(out, "\t%llu\n", n);
    }
}
