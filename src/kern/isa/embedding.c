/* Rows of a table by id. */
#include "base/thread.h"
#include "kern/simd.h"

static void scaled_row(const real *restrict from, real scale, real *restrict to, int64_t d) {
    for (int64_t j = 0; j < d; j++) to[j] = scale * from[j];
}

void KERN_NAME(gather)(const real *table, const int32_t *ids, int64_t rows, int64_t d, real scale,
                       real *out) {
    QKV_PARALLEL_FOR_IF(rows * d >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++)
        scaled_row(table + (int64_t)ids[r] * d, scale, out + r * d, d);
}
