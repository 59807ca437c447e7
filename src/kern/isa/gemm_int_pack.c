/* Operands of the product with integer weights: rows of x rounded to words, rows of weights turned
 * into panels. */
#include "kern/isa/gemm_int.h"

/* ---- x ---- */

static inline vfloat load_float(const real *p, int64_t n) {
    return __builtin_convertvector(n >= VW ? v_load(p) : v_load_n(p, n), vfloat);
}

/* The bits of the largest |x|: read as integers, larger numbers are larger, and NaN is above
 * all. */
static int32_t largest_bits(const real *x, int64_t k) {
    vword most = {0};
    for (int64_t p = 0; p < k; p += VW) {
        const vword bits = (vword)load_float(x + p, k - p) & 0x7fffffff,
                    more = (vword)(bits > most);
        most = (bits & more) | (most & ~more);
    }
    int32_t lane[VW], result = 0;
    memcpy(lane, &most, sizeof lane);
    for (int i = 0; i < VW; i++) result = lane[i] > result ? lane[i] : result;
    return result;
}

/* VW words' worth of bytes or halves, in the order that gemm_int.h tells. */
static inline void store_words(vword q, int64_t step, int32_t *out) {
    typedef uint8_t vbyte __attribute__((vector_size(VW)));
    typedef int16_t vhalf __attribute__((vector_size(VW * 2)));
    if (WORD_INPUTS == 4) {
        const vbyte bytes = __builtin_convertvector(q + 128, vbyte);
        int32_t words[VW / 4];
        memcpy(words, &bytes, sizeof words);
        for (int i = 0; i < VW / 4; i++) out[i * step] = words[i];
    } else { /* rows are read in place: no step */
        const vhalf in_order = __builtin_convertvector(q, vhalf),
                    halves = V_MIX(in_order, in_order, 0, 2, 1, 3);
        memcpy(out, &halves, sizeof halves);
    }
}

float KERN_NAME(gemm_int_row)(const real *x, int64_t k, int64_t step, int32_t *out) {
    const int32_t bits = largest_bits(x, k);
    float most;
    memcpy(&most, &bits, sizeof most);
    const bool finite = bits < 0x7f800000;
    /* Adding 1.5·2²³ leaves no place for a fraction: the FPU rounds, ties to even, and the low bits
     * are the integer. */
    const vfloat magic = 12582912.0f - (vfloat){0};
    const float factor = finite && most > 0x1p-100f ? 127 / most : 0;
    const int64_t whole = int_whole(k);
    for (int64_t p = 0; p < whole; p += VW, out += VW / WORD_INPUTS * step) {
        vword q = {0};
        if (p < k && factor > 0)
            q = (vword)(load_float(x + p, k - p) * factor + magic) - (vword)magic;
        store_words(q, step, out);
    }
    return finite ? (factor > 0 ? most / 127 : 0) : NAN;
}

/* ---- weights ---- */

/* Inputs p … p + QUANT_STEP − 1 of a row as bytes; zeros past its end. */
static void row_bytes(const qkv_weight *w, int64_t row, int64_t p, int8_t *out) {
    memset(out, 0, QUANT_STEP);
    if (row >= w->rows || p >= w->cols) return;
    const int64_t bytes = qkv_weight_row_bytes(w->format, w->cols);
    const uint8_t *const x = (const uint8_t *)w->data + row * bytes;
    if (w->format == QKV_WEIGHT_INT8) {
        const int64_t n = w->cols - p < QUANT_STEP ? w->cols - p : QUANT_STEP;
        memcpy(out, x + p, (size_t)n);
        return;
    }
    for (int64_t j = p; j < p + QUANT_STEP && j / 32 * 16 < bytes; j++)
        out[j - p] = (int8_t)((x[j / 32 * 16 + j % 16] >> (j % 32 < 16 ? 0 : 4) & 15) - 8);
}

/* The same where all of them exist. */
static inline vbytes row_vector(const qkv_weight *w, const uint8_t *x, int64_t p) {
    if (w->format == QKV_WEIGHT_INT8) return *(const vbytes *)(x + p);
    return load_nibbles(x, p) - 8;
}

/* VW rows of QUANT_STEP inputs each, as VW vectors of four inputs each. */
static inline void load_quads(const qkv_weight *w, int64_t row, int64_t p, vword quads[VW]) {
    const int64_t bytes = qkv_weight_row_bytes(w->format, w->cols);
    const uint8_t *const x = (const uint8_t *)w->data + row * bytes;
    if (row + VW <= w->rows && p + QUANT_STEP <= w->cols) {
        V_UNROLL(16)
        for (int i = 0; i < VW; i++) quads[i] = (vword)row_vector(w, x + i * bytes, p);
    } else {
        for (int i = 0; i < VW; i++) {
            int8_t edge[QUANT_STEP];
            row_bytes(w, row + i, p, edge);
            memcpy(&quads[i], edge, sizeof edge);
        }
    }
    i_transpose(quads);
}

static inline void store_quad(vword quad, int32_t *out) {
    if (WORD_INPUTS == 4) {
        i_store(out, quad);
        return;
    }
    i_store(out, (vword)((vshort)((vshort)quad << 8) >> 8)); /* inputs 0 and 2 */
    i_store(out + NR, (vword)((vshort)quad >> 8));           /* 1 and 3 */
}

/* −128·Σ of the words, what p + 128 adds too much. */
static inline vword start_of(const int32_t *words, int64_t n) {
    vword sum = {0};
    for (int64_t i = 0; WORD_INPUTS == 4 && i < n; i++, words += NR) {
        const vword quad = i_load(words);
        V_UNROLL(4)
        for (int q = 0; q < 4; q++) sum += quad << (24 - 8 * q) >> 24;
    }
    return sum * -128;
}

void KERN_NAME(gemm_int_panel)(const qkv_weight *w, int64_t col, int32_t *out) {
    const int_shape shape = int_shape_of(w);
    const int64_t inputs = shape.words * WORD_INPUTS, whole = inputs * shape.groups;
    const int64_t scales = qkv_weight_groups(w->format, w->cols);
    for (int half = 0; half < NR; half += VW)
        for (int64_t p = 0; p < whole; p += QUANT_STEP) {
            vword quads[VW];
            load_quads(w, col + half, p, quads);
            for (int q = 0; q < VW; q++) {
                const int64_t at = p + 4 * q, g = at / inputs, word = at % inputs / WORD_INPUTS;
                store_quad(quads[q], out + g * shape.stride + (2 + word) * NR + half);
            }
        }
    for (int64_t g = 0; g < shape.groups; g++) {
        int32_t *const head = out + g * shape.stride;
        for (int j = 0; j < NR; j++) {
            const bool there = col + j < w->rows && g < scales;
            const float scale = there ? w->scale[(col + j) * scales + g] : 0;
            memcpy(head + j, &scale, sizeof scale);
        }
        for (int half = 0; half < NR; half += VW)
            i_store(head + NR + half, start_of(head + 2 * NR + half, shape.words));
    }
}
