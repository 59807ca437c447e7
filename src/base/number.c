/* Decimal ↔ double without the locale.
 *
 * Reading has two paths. Nearly all numbers have at most 19 digits that form an integer below 2⁵³
 * and a small power of ten: both are exact doubles, so one multiplication or division rounds once
 * and correctly. The rest go to strtod_l with a "C" locale of our own, which rounds correctly at
 * any length. */
#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1024 };

static locale_t c_locale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static bool slow_parse(const char *text, size_t n, double *out) {
    char copy[LONGEST + 1];
    pthread_once(&once, make_locale);
    if (!c_locale) return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    *out = strtod_l(copy, NULL, c_locale);
    return isfinite(*out);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Reads digits into *value while it has fewer than 20 of them; returns where they end. */
static const char *read_digits(const char *p, const char *end, uint64_t *value, int *significant) {
    for (; p < end && is_digit(*p); p++) {
        if (*significant < 19) *value = *value * 10 + (uint64_t)(*p - '0');
        if (*value) ++*significant;
    }
    return p;
}

bool qkv_number_parse(const char *text, size_t n, double *out) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (n == 0 || n > LONGEST) return false;
    const char *p = text, *end = text + n;
    bool negative = *p == '-';
    p += negative;
    uint64_t value = 0;
    int significant = 0;
    const char *whole = p;
    p = read_digits(p, end, &value, &significant);
    long n_whole = p - whole, power = 0;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        p = read_digits(p, end, &value, &significant);
        power = -(long)(p - fraction);
    }
    if (n_whole - power == 0) return false; /* no digit on either side of the point */
    if (p < end && (*p == 'e' || *p == 'E')) {
        bool down = ++p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) p++;
        long e = 0;
        const char *exponent = p;
        for (; p < end && is_digit(*p); p++)
            if (e < 100000) e = e * 10 + (*p - '0');
        if (p == exponent) return false;
        power += down ? -e : e;
    }
    if (p != end) return false;
    if (significant > 19 || value > (uint64_t)1 << 53 || power < -22 || power > 22)
        return slow_parse(text, n, out);
    double v = (double)value;
    v = power < 0 ? v / tens[-power] : v * tens[power];
    *out = negative ? -v : v;
    return true;
}

/* %.*g prints the program's decimal point, whatever that is: anything unexpected becomes one '.'.
 */
static void print_digits(double value, int digits, char out[QKV_NUMBER_TEXT]) {
    char local[64];
    snprintf(local, sizeof local, "%.*g", digits, value);
    size_t n = 0;
    for (const char *p = local; *p && n + 1 < QKV_NUMBER_TEXT; p++) {
        if (is_digit(*p) || strchr("+-eE", *p))
            out[n++] = *p;
        else if (n == 0 || out[n - 1] != '.')
            out[n++] = '.';
    }
    out[n] = 0;
}

void qkv_number_print(double value, int digits, char out[QKV_NUMBER_TEXT]) {
    if (digits > 0) {
        print_digits(value, digits > 17 ? 17 : digits, out);
        return;
    }
    for (int d = 6; d <= 17; d++) { /* most configuration values are short */
        double back;
        print_digits(value, d, out);
        if (qkv_number_parse(out, strlen(out), &back) && back == value) return;
    }
}
