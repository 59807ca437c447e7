/* Operands of the product with weights in blocks: panels of weights, rounded rows of x. */
#include "kern/isa/gemm_block.h"
#include "base/half.h"

static inline float block_half(const uint8_t *p) {
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return half_value(bits);
}
#define BLOCK_HALF(p) block_half(p)
#include "kern/blocks.h"

#define INLINE inline __attribute__((always_inline))
#define STEP   (4 * VW) /* inputs that are turned at a time */

/* ---- weights ---- */

typedef struct chunk {
    const uint8_t *row; /* the chunk's first block of a row */
    int blocks;
    uint8_t *u;            /* BLOCK_CHUNK of the row */
    float *scale, *offset; /* of the row's group g: [g·NR] */
} chunk;

/* One row of a chunk; a function per format. */
#define FORMAT(id, name, number, elements, bytes, group, zero, has_offset)                         \
    static void row_##name(chunk c) {                                                              \
        enum { GROUPS = elements / group };                                                        \
        const uint8_t *b = c.row;                                                                  \
        for (int i = 0; i < c.blocks; i++, b += bytes) {                                           \
            float scale[GROUPS], offset[GROUPS];                                                   \
            block_u_##name(b, c.u + i * elements);                                                 \
            block_scales_##name(b, scale, offset);                                                 \
            for (int g = 0; g < GROUPS; g++) {                                                     \
                c.scale[(i * GROUPS + g) * NR] = scale[g];                                         \
                if (has_offset) c.offset[(i * GROUPS + g) * NR] = offset[g];                       \
            }                                                                                      \
        }                                                                                          \
    }
QKV_BLOCK_TABLE(FORMAT)
#undef FORMAT

static void (*const row_of[])(chunk c) = {
#define FORMAT(id, name, number, elements, bytes, group, zero, has_offset) row_##name,
    QKV_BLOCK_TABLE(FORMAT)
#undef FORMAT
};

/* Rows of u become words of VW outputs. */
static INLINE void turn(const uint8_t *u, int64_t k, int32_t *out) {
    for (int64_t p = 0; p < k; p += STEP) {
        vreal quads[VW];
        V_UNROLL(16)
        for (int i = 0; i < VW; i++) {
#ifdef QKV_DOUBLE
            int32_t words[VW];
            memcpy(words, u + i * BLOCK_CHUNK + p, sizeof words);
            for (int j = 0; j < VW; j++) {
                const int64_t bits = words[j];
                memcpy(&quads[i][j], &bits, sizeof bits);
            }
#else
            memcpy(&quads[i], u + i * BLOCK_CHUNK + p, sizeof quads[i]);
#endif
        }
        v_transpose(quads); /* shuffles move bits, whatever they mean */
        for (int q = 0; q < VW; q++) {
            vword quad;
#ifdef QKV_DOUBLE
            for (int j = 0; j < VW; j++) {
                int64_t bits;
                memcpy(&bits, &quads[q][j], sizeof bits);
                quad[j] = (int32_t)bits;
            }
#else
            quad = (vword)quads[q];
#endif
            int32_t *const to = out + (p + 4 * q) / WORD_INPUTS * NR;
            if (WORD_INPUTS == 4) {
                *(vword *)to = quad;
            } else {
                *(vword *)to = quad & 0x00ff00ff;                             /* inputs 0 and 2 */
                *(vword *)(to + NR) = (vword)((vbits)quad >> 8) & 0x00ff00ff; /* 1 and 3 */
            }
        }
    }
}

void KERN_NAME(gemm_block_panel)(const qkv_weight *w, int64_t col, int64_t k0, int64_t k,
                                 block_panel *out) {
    const block_form form = block_form_of(w->format);
    const int64_t row_bytes = w->cols / form.elements * form.bytes, groups = k / form.group;
    const uint8_t *const first =
        (const uint8_t *)w->data + col * row_bytes + k0 / form.elements * form.bytes;
    _Alignas(64) uint8_t u[VW * BLOCK_CHUNK];
    if (k < BLOCK_CHUNK) memset(u, 0, sizeof u);
    for (int half = 0; half < NR; half += VW) {
        for (int i = 0; i < VW; i++) {
            const int j = half + i;
            if (col + j < w->rows) {
                const chunk c = {.row = first + j * row_bytes,
                                 .blocks = (int)(k / form.elements),
                                 .u = u + i * BLOCK_CHUNK,
                                 .scale = out->scale + j,
                                 .offset = out->offset + j};
                row_of[w->format - QKV_WEIGHT_F16 - 1](c);
                /* the same of the next panel, which is wanted when this one is used up */
                for (int64_t at = 0; at < k / form.elements * form.bytes; at += 64)
                    __builtin_prefetch(c.row + NR * row_bytes + at);
            } else {
                memset(u + i * BLOCK_CHUNK, 0, BLOCK_CHUNK);
                for (int64_t g = 0; g < groups; g++)
                    out->scale[g * NR + j] = out->offset[g * NR + j] = 0;
            }
        }
        turn(u, k, out->words + half);
    }
}

/* ---- x ---- */

#define P_MOST 32512.0f

/* 32 numbers of x to p; returns s: NaN when one of them is not finite. */
static INLINE float round_run(const real *x, int32_t *p) {
    float v[32];
    int32_t bits[32], most_bits = 0;
    for (int j = 0; j < 32; j++) v[j] = (float)x[j];
    memcpy(bits, v, sizeof bits);
    /* read as integers, larger numbers are larger, and NaN is above all */
    for (int j = 0; j < 32; j++) {
        const int32_t b = bits[j] & 0x7fffffff;
        most_bits = b > most_bits ? b : most_bits;
    }
    float most;
    memcpy(&most, &most_bits, sizeof most);
    if (most_bits >= 0x7f800000 || most <= 0x1p-100f) {
        memset(p, 0, 32 * sizeof *p);
        return most_bits >= 0x7f800000 ? NAN : 0;
    }
    /* Adding 1.5·2²³ leaves no place for a fraction: the FPU rounds, ties to even, and the low bits
     * are the integer. */
    const float magic = 12582912.0f, factor = P_MOST / most;
    int32_t magic_bits;
    memcpy(&magic_bits, &magic, sizeof magic_bits);
    for (int j = 0; j < 32; j++) v[j] = v[j] * factor + magic;
    memcpy(p, v, sizeof v);
    for (int j = 0; j < 32; j++) p[j] -= magic_bits;
    return most / P_MOST;
}

/* Words of 32 inputs, in the order that gemm_int.h tells; of bytes the high ones, then the low. */
static INLINE void store_run(const int32_t *p, int rows, int32_t *out) {
    for (int w = 0; w < 32 / WORD_INPUTS; w++) {
        if (WORD_INPUTS == 4) {
            uint32_t high = 0, low = 0;
            for (int q = 0; q < 4; q++) {
                const int32_t x = p[4 * w + q], upper = (x + 128) >> 8;
                high |= (uint32_t)(upper & 255) << (8 * q);
                low |= (uint32_t)((x - 256 * upper) & 255) << (8 * q);
            }
            out[w * rows] = (int32_t)high;
            out[(X_WORDS / 2 + w) * rows] = (int32_t)low;
        } else {
            const int32_t *const q = p + w / 2 * 4 + w % 2;
            out[w * rows] = (int32_t)((uint32_t)(q[0] & 0xffff) | (uint32_t)q[2] << 16);
        }
    }
}

void KERN_NAME(gemm_block_row)(const real *x, int64_t k, const block_form *form, int rows, int i,
                               const block_rows *to) {
    const int per_run = 32 / form->group;
    for (int64_t run = 0; run < k / 32; run++) {
        int32_t p[32];
        const float s = round_run(x + 32 * run, p);
        to->scale[run * rows + i] = s;
        store_run(p, rows, to->words + run * X_WORDS * rows + i);
        int32_t sums[2] = {0, 0};
        for (int j = 0; j < 16; j++) sums[0] += p[j];
        for (int j = 16; j < 32; j++) sums[1] += p[j];
        if (per_run == 1) sums[0] += sums[1];
        for (int j = 0; j < per_run; j++) {
            const int64_t at = (run * per_run + j) * rows + i;
            to->start[at] = -form->zero * sums[j];
            to->part[at] = s * (float)sums[j];
        }
    }
}
