/* Operands of the product with integer weights: rows of x rounded to words, rows of weights turned into panels. */
#include "kern/isa/gemm_int.h"

/* ---- x ---- */

static inline vfloat load_float(const real *p, int64_t n) {
    return __builtin_convertvector(n >= VW ? v_load(p) : v_load_n(p, n), vfloat);
}

/* The bits of the largest |x|: read as integers, larger numbers are larger, and NaN is above all. */
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
#if WORD_INPUTS == 4
    typedef uint8_t vbyte __attribute__((vector_size(VW)));
    const vbyte bytes = __builtin_convertvector(q + 128, vbyte);
    int32_t words[VW / 4];
    memcpy(words, &bytes, sizeof words);
    for (int i = 0; i < VW / 4; i++) out[i * step] = words[i];
#else
    typedef int16_t vhalf __attribute__((vector_size(VW * 2)));
    const vhalf in_order = __builtin_convertvector(q, vhalf);
#if VW == 8
    const vhalf halves = __builtin_shufflevector(in_order, in_order, 0, 2, 1, 3, 4, 6, 5, 7);
#else
    const vhalf halves = __builtin_shufflevector(in_order, in_order, 0, 2, 1, 3);
#endif
    (void)step; /* rows are read in place */
    memcpy(out, &halves, sizeof halves);
#endif
}

float KERN_NAME(gemm_int_row)(const real *x, int64_t k, int64_t step, int32_t *out) {
    const int32_t bits = largest_bits(x, k);
    float most;
    memcpy(&most, &bits, sizeof most);
    const bool finite = bits < 0x7f800000;
    /* Adding 1.5·2²³ leaves no place for a fraction: the FPU rounds, ties to even, and the low bits are the integer. */
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

#if VW >= 8
typedef int8_t vbytes __attribute__((vector_size(QUANT_STEP), aligned(1), may_alias));

/* The same where all of them exist. */
static inline vbytes row_vector(const qkv_weight *w, const uint8_t *x, int64_t p) {
    if (w->format == QKV_WEIGHT_INT8) return *(const vbytes *)(x + p);
    typedef uint8_t vhalf __attribute__((vector_size(QUANT_STEP / 2), aligned(1), may_alias));
    const vhalf packed = *(const vhalf *)(x + p / 2), low = packed & 15, high = packed >> 4;
#if VW == 16
    const vbytes all = (vbytes)__builtin_shufflevector(
        low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 32, 33, 34, 35, 36, 37, 38,
        39, 40, 41, 42, 43, 44, 45, 46, 47, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
        30, 31, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63);
#else
    const vbytes all = (vbytes)__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                                       11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                       22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
#endif
    return all - 8;
}
#endif

/* VW rows of QUANT_STEP inputs each, as VW vectors of four inputs each. */
static inline void load_quads(const qkv_weight *w, int64_t row, int64_t p, vword quads[VW]) {
#if VW >= 8
    const int64_t bytes = qkv_weight_row_bytes(w->format, w->cols);
    const uint8_t *const x = (const uint8_t *)w->data + row * bytes;
    vreal turned[VW]; /* shuffles move bits, whatever they mean */
    if (row + VW <= w->rows && p + QUANT_STEP <= w->cols) {
        V_UNROLL(16)
        for (int i = 0; i < VW; i++) turned[i] = (vreal)row_vector(w, x + i * bytes, p);
    } else {
        for (int i = 0; i < VW; i++) {
            int8_t edge[QUANT_STEP];
            row_bytes(w, row + i, p, edge);
            memcpy(&turned[i], edge, sizeof edge);
        }
    }
    v_transpose(turned);
    V_UNROLL(16)
    for (int i = 0; i < VW; i++) quads[i] = (vword)turned[i];
#else
    for (int i = 0; i < VW; i++) {
        int8_t bytes[QUANT_STEP];
        row_bytes(w, row + i, p, bytes);
        for (int q = 0; q < VW; q++) {
            int32_t word;
            memcpy(&word, bytes + 4 * q, sizeof word);
            quads[q][i] = word;
        }
    }
#endif
}

static inline void store_quad(vword quad, int32_t *out) {
#if WORD_INPUTS == 4
    i_store(out, quad);
#else
    i_store(out, (vword)((vshort)((vshort)quad << 8) >> 8)); /* inputs 0 and 2 */
    i_store(out + NR, (vword)((vshort)quad >> 8));           /* 1 and 3 */
#endif
}

/* −128·Σ of the words, what p + 128 adds too much. */
static inline vword start_of(const int32_t *words, int64_t n) {
    vword sum = {0};
#if WORD_INPUTS == 4
    for (int64_t i = 0; i < n; i++, words += NR) {
        const vword quad = i_load(words);
        V_UNROLL(4)
        for (int q = 0; q < 4; q++) sum += quad << (24 - 8 * q) >> 24;
    }
#else
    (void)words, (void)n;
#endif
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
