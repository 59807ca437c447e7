/* Rotary positions: the pairs of each head of a row are turned by angles that the row's position
 * selects. Pairs are (i, i + d/2) when half_split, else (2i, 2i + 1); turning by −angle (sign −1)
 * is the gradient. */
#include "base/thread.h"
#include "kern/simd.h"

static void turn_halves(real *restrict low, real *restrict high, const real *restrict c,
                        const real *restrict s, real sign, int32_t half) {
    for (int32_t i = 0; i < half; i++) {
        const real a = low[i], b = high[i], t = sign * s[i];
        low[i] = a * c[i] - b * t;
        high[i] = b * c[i] + a * t;
    }
}

static void turn_neighbours(real *restrict x, const real *restrict c, const real *restrict s,
                            real sign, int32_t half) {
    for (int32_t i = 0; i < half; i++) {
        const real a = x[2 * i], b = x[2 * i + 1], t = sign * s[i];
        x[2 * i] = a * c[i] - b * t;
        x[2 * i + 1] = b * c[i] + a * t;
    }
}

void KERN_NAME(rotate)(real *x, int64_t ld, const int32_t *pos, const real *cos_table,
                       const real *sin_table, int64_t rows, int32_t heads, int32_t d,
                       bool half_split, int sign) {
    const int32_t half = d / 2;
    QKV_PARALLEL_FOR_IF(rows * heads * d >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++) {
        const real *c = cos_table + (int64_t)pos[r] * half, *s = sin_table + (int64_t)pos[r] * half;
        for (int32_t h = 0; h < heads; h++) {
            real *head = x + r * ld + (int64_t)h * d;
            if (half_split)
                turn_halves(head, head + half, c, s, (real)sign, half);
            else
                turn_neighbours(head, c, s, (real)sign, half);
        }
    }
}
