/* Quantizing rows of weights, and back.
 *
 * int8: scale = max|w|/127, the nearest integer. int4: −7 … 7 around the middle; of a few scales
 * about max|w|/7 the one with the least sum of squared errors is taken, since with so few steps the
 * largest weight should not decide alone. */
#include "kern/weight.h"
#include "base/half.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static float half_at(const uint8_t *p) {
    return qkv_f16_value((uint16_t)(p[0] | p[1] << 8));
}
#define BLOCK_HALF(p) half_at(p)
#include "kern/blocks.h"

#define GROUP 32

static const struct {
    int elements, bytes, group, zero;
    bool offset;
    void (*u)(const uint8_t *block, uint8_t *u);
    void (*scales)(const uint8_t *block, float *scale, float *offset);
} blocks[] = {
#define ROW(id, name, number, elements, bytes, group, zero, offset)                                \
    {elements, bytes, group, zero, offset, block_u_##name, block_scales_##name},
    QKV_BLOCK_TABLE(ROW)
#undef ROW
};
#define FIRST_BLOCK (QKV_WEIGHT_F16 + 1)

/* ---- rounding ---- */

static float largest(const real *x, int64_t n) {
    float most = 0;
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf((float)x[i]));
    return most;
}

/* The nearest of −limit … limit to x/scale. */
static int nearest(real x, float scale, int limit) {
    const float q = scale > 0 ? rintf((float)x / scale) : 0;
    return (int)fminf(fmaxf(q, (float)-limit), (float)limit);
}

static double squared_error(const real *x, int64_t n, float scale) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double e = (double)x[i] - (double)scale * nearest(x[i], scale, 7);
        sum += e * e;
    }
    return sum;
}

static float best_scale(const real *x, int64_t n) {
    const float most = largest(x, n);
    float best = most / 7;
    double least = squared_error(x, n, best);
    for (int step = 1; step <= 10; step++) {
        const float scale = most / (7 + 0.25f * (float)step);
        const double error = squared_error(x, n, scale);
        if (error < least) least = error, best = scale;
    }
    return best;
}

static void make_int4(const real *x, int64_t cols, uint8_t *out, float *scale) {
    for (int64_t from = 0; from < cols; from += GROUP, out += GROUP / 2) {
        const int64_t n = cols - from < GROUP ? cols - from : GROUP;
        const float s = *scale++ = best_scale(x + from, n);
        uint8_t q[GROUP];
        for (int64_t i = 0; i < GROUP; i++)
            q[i] = (uint8_t)(8 + (i < n ? nearest(x[from + i], s, 7) : 0));
        for (int i = 0; i < GROUP / 2; i++) out[i] = (uint8_t)(q[i] | q[i + GROUP / 2] << 4);
    }
}

void qkv_weight_row_make(qkv_weight_format format, const real *x, int64_t cols, void *data,
                         float *scale) {
    switch (format) {
    case QKV_WEIGHT_BF16:
        for (int64_t i = 0; i < cols; i++) ((uint16_t *)data)[i] = qkv_bf16_of((float)x[i]);
        break;
    case QKV_WEIGHT_INT8:
        *scale = largest(x, cols) / 127;
        for (int64_t i = 0; i < cols; i++) ((int8_t *)data)[i] = (int8_t)nearest(x[i], *scale, 127);
        break;
    case QKV_WEIGHT_INT4:
        make_int4(x, cols, data, scale);
        break;
    default:
        assert(!"a format that rows are rounded to");
    }
}

/* ---- and back ---- */

static uint16_t half_of(const uint8_t *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half); /* files promise no alignment */
    return half;
}

static void int4_value(const uint8_t *p, const float *scale, int64_t cols, real factor, real *out) {
    for (int64_t j = 0; j < cols; j++) {
        const int64_t g = j / GROUP, i = j % GROUP;
        const int q = p[g * (GROUP / 2) + i % (GROUP / 2)] >> (i < GROUP / 2 ? 0 : 4) & 15;
        out[j] = factor * (real)scale[g] * (real)(q - 8);
    }
}

static void blocks_value(qkv_weight_format format, const uint8_t *p, int64_t cols, real factor,
                         real *out) {
    const int b = format - FIRST_BLOCK, group = blocks[b].group;
    for (int64_t j = 0; j < cols; j += blocks[b].elements, p += blocks[b].bytes) {
        uint8_t u[256];
        float scale[16], offset[16];
        blocks[b].u(p, u);
        blocks[b].scales(p, scale, offset);
        for (int i = 0; i < blocks[b].elements; i++) {
            const float w = scale[i / group] * (float)(u[i] - blocks[b].zero);
            out[j + i] = factor * (real)(blocks[b].offset ? w - offset[i / group] : w);
        }
    }
}

void qkv_weight_row_value(const qkv_weight *w, int64_t row, real factor, real *out) {
    for (int32_t i = 0; i < w->n_parts; row -= w->parts[i++].rows)
        if (row < w->parts[i].rows) {
            qkv_weight_row_value(&w->parts[i], row, factor, out);
            return;
        }
    const uint8_t *const p =
        (const uint8_t *)w->data + row * qkv_weight_row_bytes(w->format, w->cols);
    const float *const scale =
        w->scale ? w->scale + row * qkv_weight_groups(w->format, w->cols) : NULL;
    switch (w->format) {
    case QKV_WEIGHT_F32:
        for (int64_t j = 0; j < w->cols; j++) {
            float x;
            memcpy(&x, p + 4 * j, sizeof x);
            out[j] = factor * (real)x;
        }
        break;
    case QKV_WEIGHT_BF16:
        for (int64_t j = 0; j < w->cols; j++)
            out[j] = factor * (real)qkv_bf16_value(half_of(p + 2 * j));
        break;
    case QKV_WEIGHT_F16:
        for (int64_t j = 0; j < w->cols; j++)
            out[j] = factor * (real)qkv_f16_value(half_of(p + 2 * j));
        break;
    case QKV_WEIGHT_INT8: {
        const real s = factor * (real)scale[0];
        for (int64_t j = 0; j < w->cols; j++) out[j] = s * (real)(int8_t)p[j];
        break;
    }
    case QKV_WEIGHT_INT4:
        int4_value(p, scale, w->cols, factor, out);
        break;
    default:
        blocks_value(w->format, p, w->cols, factor, out);
    }
}
