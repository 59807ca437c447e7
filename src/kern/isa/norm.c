/* Layer norm and RMS norm with the residual sum in front.
 *
 * Forward, for each row (RMS norm has μ = 0):
 *     s = x + dropout(r),  ρ = 1/√(mean (s − μ)² + ε),  h = (s − μ)·ρ,  y = h·gain + bias
 * Backward, with g = dy·gain and means over the row (RMS: without mean g):
 *     ds = ρ·(g − mean g − h·mean(g·h)) + ds_in
 *     dgain = Σ_rows dy·h,  dbias = Σ_rows dy
 * The sums over rows are taken in fixed blocks of rows and added in block order. */
#include "base/thread.h"
#include "kern/isa/random.h"

/* Runs the statements for n lanes of a row of d from i on: whole vectors, for which loads and
 * stores need no mask, then what is left. */
#define FOR_ROW(i, n, d, ...)                                                                      \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + VW <= (d); i += VW) {                                                           \
            enum { n = VW };                                                                       \
            __VA_ARGS__                                                                            \
        }                                                                                          \
        if (i < (d)) {                                                                             \
            const int64_t n = (d)-i;                                                               \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    } while (0)

static void add_residual(const real *x, const real *r, real p, qkv_rng rng, int64_t index, real *s,
                         int64_t d) {
    if (p <= 0) {
        FOR_ROW(i, n, d, v_store_n(s + i, v_load_n(x + i, n) + v_load_n(r + i, n), n););
        return;
    }
    real factors[DROP_RUN];
    for (int64_t b = 0; b < d; b += DROP_RUN) {
        const int64_t count = d - b < DROP_RUN ? d - b : DROP_RUN;
        drop_factors(rng, (uint64_t)(index + b), count, p, factors);
        FOR_ROW(i, n, count, {
            const vreal kept = v_load_n(r + b + i, n) * v_load_n(factors + i, n);
            v_store_n(s + b + i, v_load_n(x + b + i, n) + kept, n);
        });
    }
}

static void apply_row(const real *s, const real *gain, const real *bias, const real *stats, real *y,
                      int64_t d) {
    const real mean = stats[0], inv = stats[1];
    if (bias)
        FOR_ROW(i, n, d, {
            const vreal h = (v_load_n(s + i, n) - mean) * inv;
            v_store_n(y + i, h * v_load_n(gain + i, n) + v_load_n(bias + i, n), n);
        });
    else
        FOR_ROW(i, n, d, {
            const vreal h = (v_load_n(s + i, n) - mean) * inv;
            v_store_n(y + i, h * v_load_n(gain + i, n), n);
        });
}

/* s is a row as the norm sees it, the residual added. */
static void norm_row(const qkv_norm_rows *spec, const real *s, int64_t row) {
    const int64_t d = spec->d;
    real mean = 0;
    if (spec->kind == QKV_NORM_LAYER) {
        vreal sum = v_set(0);
        FOR_ROW(i, n, d, sum = sum + v_load_n(s + i, n););
        mean = v_sum(sum) / (real)d;
    }
    vreal squares = v_set(0);
    FOR_ROW(i, n, d, {
        vreal c = v_load_n(s + i, n) - mean;
        if (n < VW) c = v_load_n((const real *)&c, n); /* lanes beyond the row count nothing */
        squares = v_fma(c, c, squares);
    });
    real *stats = spec->stats + 2 * row;
    stats[0] = mean;
    stats[1] = 1 / (real)sqrt((double)(v_sum(squares) / (real)d + spec->eps));
    apply_row(s, spec->gain, spec->bias, stats, spec->y + row * d, d);
}

void KERN_NAME(norm)(const qkv_norm_rows *spec) {
    const int64_t d = spec->d;
    QKV_PARALLEL_FOR_IF(spec->rows * d >= QKV_PARALLEL_FROM)
    for (int64_t row = 0; row < spec->rows; row++) {
        const real *x = spec->x + row * d, *source = x;
        real *s = spec->s ? spec->s + row * d : NULL;
        if (spec->r) {
            add_residual(x, spec->r + row * d, spec->dropout, spec->rng, row * d, s, d);
            source = s;
        } else if (s && s != x) {
            memcpy(s, x, (size_t)d * sizeof *s);
        }
        norm_row(spec, source, row);
    }
}

void KERN_NAME(norm_again)(const real *s, const real *gain, const real *bias, const real *stats,
                           real *y, int64_t rows, int64_t d) {
    QKV_PARALLEL_FOR_IF(rows * d >= QKV_PARALLEL_FROM)
    for (int64_t row = 0; row < rows; row++)
        apply_row(s + row * d, gain, bias, stats + 2 * row, y + row * d, d);
}

/* dgain and dbias here are this block of rows' own sums. */
static void norm_grad_row(const qkv_norm_grad *spec, int64_t row, real *dgain, real *dbias) {
    const int64_t d = spec->d;
    const real *s = spec->s + row * d, *gain = spec->gain, *dy = spec->dy + row * d;
    const real *ds_in = spec->ds_in ? spec->ds_in + row * d : NULL, *stats = spec->stats + 2 * row;
    real *ds = spec->ds + row * d;
    const real mean = stats[0], inv = stats[1];
    vreal sum_g = v_set(0), sum_gh = v_set(0);
    FOR_ROW(i, n, d, {
        const vreal h = (v_load_n(s + i, n) - mean) * inv, dyv = v_load_n(dy + i, n);
        const vreal g = dyv * v_load_n(gain + i, n);
        sum_g = sum_g + g;
        sum_gh = v_fma(g, h, sum_gh);
        v_store_n(dgain + i, v_fma(dyv, h, v_load_n(dgain + i, n)), n);
        v_store_n(dbias + i, dyv + v_load_n(dbias + i, n), n);
    });
    const real mean_g = spec->kind == QKV_NORM_LAYER ? v_sum(sum_g) / (real)d : 0,
               mean_gh = v_sum(sum_gh) / (real)d;
    FOR_ROW(i, n, d, {
        const vreal h = (v_load_n(s + i, n) - mean) * inv;
        const vreal g = v_load_n(dy + i, n) * v_load_n(gain + i, n);
        vreal out = (g - mean_g - h * mean_gh) * inv;
        if (ds_in) out = out + v_load_n(ds_in + i, n);
        v_store_n(ds + i, out, n);
    });
}

#define ROW_BLOCKS 64

bool KERN_NAME(norm_grad)(const qkv_norm_grad *spec) {
    const int64_t rows = spec->rows, d = spec->d;
    const int64_t size = rows < 16 * ROW_BLOCKS ? 16 : (rows + ROW_BLOCKS - 1) / ROW_BLOCKS;
    const int64_t blocks = (rows + size - 1) / size;
    real *parts = qkv_kern_scratch(0, (size_t)(blocks * 2 * d) * sizeof *parts);
    if (!parts) return false;
    QKV_PARALLEL_FOR_IF(rows * d >= QKV_PARALLEL_FROM)
    for (int64_t b = 0; b < blocks; b++) {
        real *part = parts + b * 2 * d;
        memset(part, 0, (size_t)(2 * d) * sizeof *part);
        for (int64_t r = b * size; r < (b + 1) * size && r < rows; r++)
            norm_grad_row(spec, r, part, part + d);
    }
    real *dgain = spec->dgain, *dbias = spec->dbias;
    for (int64_t b = 0; b < blocks; b++) {
        const real *part = parts + b * 2 * d;
        for (int64_t j = 0; dgain && j < d; j++) dgain[j] += part[j];
        for (int64_t j = 0; dbias && j < d; j++) dbias[j] += part[d + j];
    }
    return true;
}
