/* What an instruction set's traits file does not define itself, in C. Each HAS_… stands for the
 * functions below it. */
#ifndef QKV_KERN_ISA_PORTABLE_H
#define QKV_KERN_ISA_PORTABLE_H

#include "base/half.h"
#include "base/rng.h"

/* The first n lanes (0 ≤ n ≤ VW); the rest are zero. */
#ifndef HAS_MASKS
static inline vreal v_load_n(const real *p, int64_t n) {
    vreal r = {0};
    memcpy(&r, p, (size_t)n * sizeof(real));
    return r;
}
static inline void v_store_n(real *p, vreal x, int64_t n) {
    memcpy(p, &x, (size_t)n * sizeof(real));
}
#endif

#ifndef HAS_ARITHMETIC
static inline vreal v_fma(vreal a, vreal b, vreal c) {
    return a * b + c;
}
static inline vreal v_max(vreal a, vreal b) { /* as on x86: b when unordered */
    for (int i = 0; i < VW; i++) b[i] = a[i] > b[i] ? a[i] : b[i];
    return b;
}
static inline vreal v_min(vreal a, vreal b) {
    for (int i = 0; i < VW; i++) b[i] = a[i] < b[i] ? a[i] : b[i];
    return b;
}
static inline vreal v_sqrt(vreal a) {
    for (int i = 0; i < VW; i++) a[i] = (real)sqrt((double)a[i]);
    return a;
}
#endif

/* Over the lanes in one fixed order: halves, quarters, … */
#ifndef HAS_LANE_SUMS
static inline real v_sum(vreal x) {
    real t[VW];
    memcpy(t, &x, sizeof t);
    for (int w = VW / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++) t[i] += t[i + w];
    return t[0];
}
static inline real v_maximum(vreal x) {
    real t[VW];
    memcpy(t, &x, sizeof t);
    for (int w = VW / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++) t[i] = t[i] > t[i + w] ? t[i] : t[i + w];
    return t[0];
}
#endif

/* s += a·b inside a tile of sums, of attention and of the matrix product: where compilers need help
 * to keep the sums in registers, a set gives it here. */
#ifndef HAS_TILE_SUMS
V_INLINE void v_add_product(vreal *s, vreal a, vreal b) {
    *s = v_fma(a, b, *s);
}
V_INLINE void v_add_in_tile(vreal *s, vreal a, vreal b) {
    *s = v_fma(a, b, *s);
}
#endif

/* Words of two bf16, see pairs.h. pair_lanes: word i is lo[i] and, in its upper half, hi[i].
 * pair_run: reals 2i and 2i + 1 of a run of 2·VW. v_dot_pairs: s + a₁·b₁ + a₀·b₀ in each lane, 0
 * being the lower half. A set without them is never asked; what follows compiles without asking. */
#ifndef HAS_PAIRS
#define HAS_PAIRS      0
#define PAIRS_ARE_FAST 0
static inline vreal pair_lanes(vreal lo, vreal hi) {
    return (void)hi, lo;
}
static inline vreal pair_run(vreal x, vreal y) {
    return (void)y, x;
}
static inline vreal v_dot_pairs(vreal a, vreal b, vreal s) {
    return (void)a, (void)b, s;
}
#endif

/* s = v_dot_pairs(a, b, s), as v_add_product and v_add_in_tile */
#ifndef HAS_TILE_PAIRS
V_INLINE void v_add_pairs(vreal *s, vreal a, vreal b) {
    *s = v_dot_pairs(a, b, *s);
}
V_INLINE void v_add_pairs_in_tile(vreal *s, vreal a, vreal b) {
    *s = v_dot_pairs(a, b, *s);
}
#endif

/* Instructions for exponents: x − the nearest integer (ties to even), x − ⌊x⌋, and x·2 to the power
 * ⌊e⌋. Sets without them are never asked: math.h has a formula. */
#ifndef HAS_EXPONENTS
#define HAS_EXPONENTS 0
static inline vreal v_from_nearest(vreal x) {
    return x;
}
static inline vreal v_from_floor(vreal x) {
    return x;
}
static inline vreal v_times_exp2(vreal x, vreal e) {
    return (void)e, x;
}
#endif

/* s += Σ over the inputs of a word a·b, see gemm_int.h; in C for words of two */
#ifndef HAS_WORDS
V_INLINE void int_add_words(vword *s, vword a, vword b) {
    *s += (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
}
#endif

/* The float of an f16. */
#ifndef HAS_HALVES
static inline float half_value(uint16_t bits) {
    return qkv_f16_value(bits);
}
#endif

/* Words of blocks first … first + n − 1 of the stream, four each; n is rounded up to a multiple of
 * RANDOM_GROUP. */
#ifndef RANDOM_GROUP
#define RANDOM_GROUP 1
static inline void random_blocks(qkv_rng rng, uint64_t first, int64_t n, uint32_t *out) {
    for (int64_t i = 0; i < n; i++) qkv_rng_block(rng, first + (uint64_t)i, out + 4 * i);
}
#endif

#endif
