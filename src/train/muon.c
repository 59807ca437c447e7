/* Muon: orthogonalised momentum for matrices.
 *
 *   m ← μ m + (1 − μ) g        u = nesterov ? μ m + (1 − μ) g : m
 *   X = u / ‖u‖;  five times:  X ← X (a I + b A + c A²),  A = XᵀX   (or from the left: the smaller
 * Gram matrix of the two)         w ← (1 − lr λ) w − lr · 0.2 √max(rows, cols) · X
 *
 * The quintic (a, b, c) = (3.4445, −4.775, 2.0315) drives all singular values into about
 * [0.7, 1.2]. The factor 0.2 √max gives the step the root mean square of an AdamW step, so that one
 * rate serves both; singular values that are only about 1 do not ask for more than bf16, so in bf16
 * runs the products are. Maps stacked in one parameter (queries, keys, values) are orthogonalised
 * each by itself. */
#include "train/muon.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

struct qkv_muon {
    real *x, *y;        /* the matrix and its successor */
    real *gram, *gram2; /* A and A² */
};

bool qkv_muon_takes(const qkv_param_spec *p) {
    return !p->vector && !p->sparse && !p->no_decay && p->rows > 1 && p->cols > 1;
}

/* Rows of one of the maps that are stacked in the parameter. */
static int64_t part_rows(const qkv_param_spec *p) {
    bool stacked = p->fan_out > 0 && p->fan_out < p->rows && p->rows % p->fan_out == 0;
    return stacked ? p->fan_out : p->rows;
}

qkv_status qkv_muon_new(const qkv_params *params, qkv_muon **out) {
    size_t largest = 0, widest = 0;
    for (size_t i = 0; i < params->n; i++) {
        const qkv_param_spec *p = &params->list[i]->spec;
        if (!qkv_muon_takes(p)) continue;
        size_t rows = (size_t)part_rows(p), cols = (size_t)p->cols,
               small = rows < cols ? rows : cols;
        if (rows * cols > largest) largest = rows * cols;
        if (small > widest) widest = small;
    }
    qkv_muon *muon = qkv_zalloc(1, sizeof *muon);
    if (!muon) return QKV_FAILED;
    if (!(muon->x = qkv_alloc_aligned(largest * sizeof(real))) ||
        !(muon->y = qkv_alloc_aligned(largest * sizeof(real))) ||
        !(muon->gram = qkv_alloc_aligned(widest * widest * sizeof(real))) ||
        !(muon->gram2 = qkv_alloc_aligned(widest * widest * sizeof(real)))) {
        qkv_muon_free(muon);
        return QKV_FAILED;
    }
    *out = muon;
    return QKV_OK;
}

void qkv_muon_free(qkv_muon *muon) {
    if (!muon) return;
    qkv_free(muon->x);
    qkv_free(muon->y);
    qkv_free(muon->gram);
    qkv_free(muon->gram2);
    qkv_free(muon);
}

/* One quintic step: y = X·P or P·X with P = aI + bA + cA². */
static bool quintic(qkv_muon *muon, const real *x, real *y, int64_t rows, int64_t cols,
                    qkv_precision precision) {
    const double a = 3.4445, b = -4.775, c = 2.0315;
    const qkv_kern *kern = qkv_kern_get();
    const bool tall = rows > cols;
    const int64_t k = tall ? cols : rows;
    const qkv_gemm gram = {.m = k,
                           .n = k,
                           .k = tall ? rows : cols,
                           .a = x,
                           .b = x,
                           .c = muon->gram,
                           .lda = cols,
                           .ldb = cols,
                           .ldc = k,
                           .a_trans = tall,
                           .b_trans = !tall,
                           .precision = precision};
    const qkv_gemm square = {.m = k,
                             .n = k,
                             .k = k,
                             .a = muon->gram,
                             .b = muon->gram,
                             .c = muon->gram2,
                             .lda = k,
                             .ldb = k,
                             .ldc = k,
                             .precision = precision};
    if (!kern->gemm(&gram) || !kern->gemm(&square)) return false;

    kern->scale((real)c, muon->gram2, muon->gram2, k * k);
    kern->axpy((real)b, muon->gram, muon->gram2, k * k);
    for (int64_t i = 0; i < k; i++) muon->gram2[i * k + i] += (real)a;

    const qkv_gemm left = {.m = rows,
                           .n = cols,
                           .k = rows,
                           .a = muon->gram2,
                           .b = x,
                           .c = y,
                           .lda = k,
                           .ldb = cols,
                           .ldc = cols,
                           .precision = precision};
    const qkv_gemm right = {.m = rows,
                            .n = cols,
                            .k = cols,
                            .a = x,
                            .b = muon->gram2,
                            .c = y,
                            .lda = cols,
                            .ldb = k,
                            .ldc = cols,
                            .precision = precision};
    return kern->gemm(tall ? &right : &left);
}

/* Replaces muon->x (rows × cols) by its approximate orthogonal factor. */
static bool orthogonalise(qkv_muon *muon, int64_t rows, int64_t cols, qkv_precision precision) {
    const qkv_kern *kern = qkv_kern_get();
    const double norm = sqrt(kern->sum_squares(muon->x, rows * cols));
    kern->scale((real)(1 / (norm > 1e-7 ? norm : 1e-7)), muon->x, muon->x, rows * cols);
    for (int i = 0; i < 5; i++) {
        if (!quintic(muon, muon->x, muon->y, rows, cols, precision)) return false;
        real *swap = muon->x;
        muon->x = muon->y;
        muon->y = swap;
    }
    return true;
}

bool qkv_muon_update(qkv_muon *muon, const qkv_param_spec *p, real *w, const real *g, real *m,
                     const qkv_muon_step *s) {
    const qkv_kern *kern = qkv_kern_get();
    const int64_t rows = part_rows(p), n = rows * p->cols;
    const double larger = (double)(rows > p->cols ? rows : p->cols);
    const real mu = (real)s->momentum, fresh = (real)((1 - s->momentum) * s->g_scale);
    for (int64_t at = 0; at < p->rows * p->cols; at += n) {
        kern->scale(mu, m + at, m + at, n);
        kern->axpy(fresh, g + at, m + at, n);
        if (s->nesterov) {
            kern->scale(mu, m + at, muon->x, n);
            kern->axpy(fresh, g + at, muon->x, n);
        } else {
            memcpy(muon->x, m + at, (size_t)n * sizeof(real));
        }
        if (!orthogonalise(muon, rows, p->cols, s->precision)) return false;
        if (s->decay != 0) kern->scale((real)(1 - s->lr * s->decay), w + at, w + at, n);
        kern->axpy((real)(-s->lr * s->lr_scale * 0.2 * sqrt(larger)), muon->x, w + at, n);
    }
    return true;
}
