/* Softmax by rows, and softmax cross-entropy with its gradient in place. */
#include "base/thread.h"
#include "kern/isa/math.h"

#define RUN 512 /* elements summed in the lanes before the sum moves to a double */

static real row_max(const real *x, int64_t d) {
    vreal m = v_set(-INFINITY);
    int64_t i = 0;
    for (; i + VW <= d; i += VW) m = v_max(m, v_load(x + i));
    real top = v_maximum(m);
    for (; i < d; i++) top = x[i] > top ? x[i] : top;
    return top;
}

/* Σ exp(x − m); y (NULL: not kept) gets the terms. */
static double exp_sum(const real *x, real *y, int64_t d, real m) {
    double total = 0;
    for (int64_t b = 0; b < d; b += RUN) {
        const int64_t end = b + RUN < d ? b + RUN : d;
        vreal sum = v_set(0);
        for (int64_t i = b; i < end; i += VW) {
            const int64_t n = end - i < VW ? end - i : VW;
            vreal e = v_exp(v_load_n(x + i, n) - m);
            if (n < VW) e = v_load_n((const real *)&e, n);
            sum = sum + e;
            if (y) v_store_n(y + i, e, n);
        }
        total += (double)v_sum(sum);
    }
    return total;
}

void KERN_NAME(softmax)(const real *x, real *y, int64_t rows, int64_t d) {
    QKV_PARALLEL_FOR_IF(rows * d >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++) {
        const real inv = (real)(1 / exp_sum(x + r * d, y + r * d, d, row_max(x + r * d, d)));
        for (int64_t j = 0; j < d; j++) y[r * d + j] *= inv;
    }
}

/* No term is kept, so each needs to be right only beside the sum: 2^(x·log₂e) does. */
real KERN_NAME(log_sum_exp)(const real *x, int64_t n) {
    const real top = row_max(x, n);
    double total = 0;
    for (int64_t b = 0; b < n; b += RUN) {
        const int64_t end = b + RUN < n ? b + RUN : n;
        vreal sum = v_set(0);
        int64_t i = b;
        for (; i + VW <= end; i += VW) sum = sum + v_exp2_down((v_load(x + i) - top) * LOG2E);
        for (; i < end; i++) total += exp((double)(x[i] - top));
        total += (double)v_sum(sum);
    }
    return (real)((double)top + log(total));
}

int64_t KERN_NAME(find_above)(const real *x, int64_t n, real least) {
    int64_t i = 0;
    for (; i + 4 * VW <= n; i += 4 * VW) {
        const vreal a = v_max(v_load(x + i), v_load(x + i + VW));
        const vreal b = v_max(v_load(x + i + 2 * VW), v_load(x + i + 3 * VW));
        if (v_maximum(v_max(a, b)) > least) break;
    }
    while (i < n && !(x[i] > least)) i++;
    return i;
}

static double row_sum(const real *x, int64_t d) {
    double total = 0;
    for (int64_t b = 0; b < d; b += RUN) {
        const int64_t end = b + RUN < d ? b + RUN : d;
        vreal sum = v_set(0);
        for (int64_t i = b; i < end; i += VW)
            sum = sum + v_load_n(x + i, end - i < VW ? end - i : VW);
        total += (double)v_sum(sum);
    }
    return total;
}

static double row_weight(const qkv_xent_rows *spec, int64_t r) {
    return spec->weights ? (double)spec->weights[r] : 1;
}

/* dz = scale·w·(softmax(z) − (1 − ε)·[j = t] − ε/V) */
void KERN_NAME(xent)(const qkv_xent_rows *spec) {
    const int64_t v = spec->v;
    QKV_PARALLEL_FOR_IF(spec->rows * v >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < spec->rows; r++) {
        real *row = spec->z + r * v;
        const int32_t t = spec->targets[r];
        const real top = row_max(row, v);
        const double z_t = t >= 0 ? (double)row[t] : 0, w = row_weight(spec, r);
        const double eps = (double)spec->smoothing,
                     mean = eps > 0 ? row_sum(row, v) / (double)v : 0;
        const double sum = exp_sum(row, spec->grad ? row : NULL, v, top),
                     log_sum = (double)top + log(sum);
        if (spec->lse) spec->lse[r] = (real)log_sum;
        spec->loss[r] = t >= 0 ? w * ((1 - eps) * (log_sum - z_t) + eps * (log_sum - mean)) : 0;
        if (!spec->grad) continue;
        const double factor = t >= 0 ? (double)spec->scale * w : 0;
        const real share = (real)(factor / sum), base = (real)(factor * eps / (double)v);
        for (int64_t j = 0; j < v; j++) row[j] = row[j] * share - base;
        if (t >= 0) row[t] -= (real)(factor * (1 - eps));
    }
}

/* One row of a pair, with what is known once both were summed. */
typedef struct view {
    real *z;
    real top;
    double sum, lse, dot; /* Σ exp(z − top), top + log of it, Σ exp(z − top)·(z_p − z_q) */
    double kl;            /* KL of this row's softmax from the other's */
} view;

/* Sums of both rows, in one pass over them. */
static void sum_views(view *p, view *q, int64_t v) {
    p->top = row_max(p->z, v), q->top = row_max(q->z, v);
    p->sum = q->sum = p->dot = q->dot = 0;
    for (int64_t b = 0; b < v; b += RUN) {
        const int64_t end = b + RUN < v ? b + RUN : v;
        vreal sum_p = v_set(0), sum_q = v_set(0), dot_p = v_set(0), dot_q = v_set(0);
        for (int64_t i = b; i < end; i += VW) {
            const int64_t n = end - i < VW ? end - i : VW;
            const vreal z_p = v_load_n(p->z + i, n), z_q = v_load_n(q->z + i, n);
            vreal e_p = v_exp(z_p - p->top), e_q = v_exp(z_q - q->top);
            if (n < VW) {
                e_p = v_load_n((const real *)&e_p, n);
                e_q = v_load_n((const real *)&e_q, n);
            }
            sum_p = sum_p + e_p, sum_q = sum_q + e_q;
            dot_p = dot_p + e_p * (z_p - z_q), dot_q = dot_q + e_q * (z_p - z_q);
        }
        p->sum += (double)v_sum(sum_p), q->sum += (double)v_sum(sum_q);
        p->dot += (double)v_sum(dot_p), q->dot += (double)v_sum(dot_q);
    }
    p->lse = (double)p->top + log(p->sum), q->lse = (double)q->top + log(q->sum);
    p->kl = p->dot / p->sum - (p->lse - q->lse), q->kl = (p->lse - q->lse) - q->dot / q->sum;
}

/* With d = log p − log q and J = (KL(p‖q) + KL(q‖p))/2, the derivative of J by the logits of p is
 *   ½·(p·(d − KL(p‖q)) + p − q),   and that by the logits of q the same with p and q exchanged.
 * Both rows become factor·(softmax − ε/V) + factor·agree·dJ; the target's share is left to the
 * caller. */
static void pair_grads(const view *p, const view *q, int64_t v, double factor, double base,
                       double agree) {
    const real inv_p = (real)(factor / p->sum), inv_q = (real)(factor / q->sum);
    const real half = (real)(agree / 2), shift = (real)(p->lse - q->lse), off = (real)base;
    const real k_p = (real)p->kl, k_q = (real)q->kl;
    for (int64_t i = 0; i < v; i += VW) {
        const int64_t n = v - i < VW ? v - i : VW;
        const vreal z_p = v_load_n(p->z + i, n), z_q = v_load_n(q->z + i, n), d = z_p - z_q - shift;
        const vreal s_p = v_exp(z_p - p->top) * inv_p, s_q = v_exp(z_q - q->top) * inv_q;
        v_store_n(p->z + i, s_p - off + half * (s_p * (d - k_p) + s_p - s_q), n);
        v_store_n(q->z + i, s_q - off + half * (s_q * (-d - k_q) + s_q - s_p), n);
    }
}

void KERN_NAME(xent_pairs)(const qkv_xent_rows *spec) {
    const int64_t pairs = spec->rows, v = spec->v;
    QKV_PARALLEL_FOR_IF(2 * pairs * v >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < pairs; r++) {
        view p = {.z = spec->z + r * v}, q = {.z = spec->z + (pairs + r) * v};
        const int32_t t = spec->targets[r];
        const double w = row_weight(spec, r), eps = (double)spec->smoothing;
        const double mean_p = eps > 0 ? row_sum(p.z, v) / (double)v : 0,
                     mean_q = eps > 0 ? row_sum(q.z, v) / (double)v : 0;
        const double t_p = t >= 0 ? (double)p.z[t] : 0, t_q = t >= 0 ? (double)q.z[t] : 0;
        sum_views(&p, &q, v);
        if (spec->lse) spec->lse[r] = (real)p.lse, spec->lse[pairs + r] = (real)q.lse;
        const double agree = (double)spec->agree, apart = agree * (p.kl + q.kl) / 4;
        const bool counts = t >= 0;
        spec->loss[r] =
            counts ? w * ((1 - eps) * (p.lse - t_p) + eps * (p.lse - mean_p) + apart) : 0;
        spec->loss[pairs + r] =
            counts ? w * ((1 - eps) * (q.lse - t_q) + eps * (q.lse - mean_q) + apart) : 0;
        if (!spec->grad) continue;
        const double factor = counts ? (double)spec->scale * w : 0;
        pair_grads(&p, &q, v, factor, factor * eps / (double)v, agree);
        if (counts) {
            p.z[t] -= (real)(factor * (1 - eps));
            q.z[t] -= (real)(factor * (1 - eps));
        }
    }
}
