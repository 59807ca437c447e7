/* Axes: round numbers to write beside a range. */
#ifndef QKV_DRAW_AXIS_H
#define QKV_DRAW_AXIS_H

#include <stdbool.h>

#define QKV_TICKS_MAX 16

typedef struct qkv_axis {
    double low, high; /* widened to round numbers when `round_out` */
    double tick[QKV_TICKS_MAX];
    int n;
    int decimals; /* that tell neighbouring ticks apart */
} qkv_axis;

/* About `wanted` ticks at multiples of 1, 2 or 5 times a power of ten. */
qkv_axis qkv_axis_make(double low, double high, int wanted, bool round_out);
/* "1.5", "20k", "3M" */
void qkv_axis_label(const qkv_axis *a, double value, char out[32]);

#endif
