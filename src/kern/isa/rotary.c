/* Rotary positions: the pairs of each head of a row are turned by angles that the row's position
 * selects. Of w turned elements pairs are (i, i + w/2) when half_split, else (2i, 2i + 1); turning by −angle (sign −1)
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

void KERN_NAME(rotate)(const qkv_rotation *spec) {
    const int32_t heads = spec->heads, d = spec->d, half = spec->turned / 2;
    QKV_PARALLEL_FOR_IF(spec->rows * heads * d >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < spec->rows; r++) {
        const int64_t angles = (int64_t)spec->pos[r] * half;
        const real *c = spec->cos + angles, *s = spec->sin + angles;
        for (int32_t h = 0; h < heads; h++) {
            real *head = spec->x + r * spec->ld + (int64_t)h * d;
            if (spec->half_split)
                turn_halves(head, head + half, c, s, (real)spec->sign, half);
            else
                turn_neighbours(head, c, s, (real)spec->sign, half);
        }
    }
}
