/* Optimiser steps on one run of parameters. Elementwise: a run gives the same bits whole or in
 * pieces, which the row-by-row updates of embedding tables rely on.
 *
 * Adam and AdamW, t = step (from 1), in this order; factors are made in double, then rounded once:
 *     g ← g_scale·g,  w ← w·(1 − lr·decay_w),  g ← g + decay_g·w
 *     m ← m + (1 − β₁)(g − m),  v ← β₂·v + ((1 − β₂)·g)·g
 *     w ← w − (lr/(1 − β₁ᵗ)) · m / (√v / √(1 − β₂ᵗ) + ε)
 * SGD (momentum 0 leaves m alone; it may be NULL):
 *     g ← g_scale·g + decay·w,  m ← momentum·m + g,  w ← w − lr·(nesterov ? g + momentum·m : m) */
#include "base/thread.h"
#include "kern/simd.h"

#define BLOCK 8192

typedef struct adam_factors {
    real g_scale, keep, decay_g, one_minus_beta1, beta2, one_minus_beta2, rate, root, eps;
} adam_factors;

static void adam_run(const adam_factors *f, real *w, const real *g, real *m, real *v, int64_t n) {
    const vreal root = v_set(f->root), eps = v_set(f->eps), rate = v_set(f->rate),
                keep = v_set(f->keep);
    for (int64_t i = 0; i < n; i += VW) {
        const int64_t lanes = n - i < VW ? n - i : VW;
        vreal wv = v_load_n(w + i, lanes) * keep, mv = v_load_n(m + i, lanes),
              vv = v_load_n(v + i, lanes);
        vreal gv = v_fma(v_set(f->decay_g), wv, v_load_n(g + i, lanes) * f->g_scale);
        mv = v_fma(v_set(f->one_minus_beta1), gv - mv, mv);
        vv = v_fma(gv * f->one_minus_beta2, gv, vv * f->beta2);
        v_store_n(m + i, mv, lanes);
        v_store_n(v + i, vv, lanes);
        v_store_n(w + i, wv - rate * mv / (v_sqrt(vv) / root + eps), lanes);
    }
}

void KERN_NAME(adam)(const qkv_adam *spec) {
    const int64_t n = spec->n;
    const adam_factors f = {
        .g_scale = (real)spec->g_scale,
        .keep = (real)(1 - spec->lr * spec->decay_w),
        .decay_g = (real)spec->decay_g,
        .one_minus_beta1 = (real)(1 - spec->beta1),
        .beta2 = (real)spec->beta2,
        .one_minus_beta2 = (real)(1 - spec->beta2),
        .rate = (real)(spec->lr / (1 - pow(spec->beta1, (double)spec->step))),
        .root = (real)sqrt(1 - pow(spec->beta2, (double)spec->step)),
        .eps = (real)spec->eps,
    };
    QKV_PARALLEL_FOR_IF(n >= QKV_PARALLEL_FROM)
    for (int64_t b = 0; b < n; b += BLOCK)
        adam_run(&f, spec->w + b, spec->g + b, spec->m + b, spec->v + b,
                 n - b < BLOCK ? n - b : BLOCK);
}

/* From b on, n of the run. */
static void sgd_run(const qkv_sgd *spec, int64_t b, int64_t n) {
    real *w = spec->w + b, *m = spec->m ? spec->m + b : NULL;
    const real *g = spec->g + b, g_scale = (real)spec->g_scale;
    const vreal decay = v_set((real)spec->decay), momentum = v_set((real)spec->momentum),
                down = v_set(-(real)spec->lr);
    const bool moving = (real)spec->momentum > 0, nesterov = spec->nesterov;
    for (int64_t i = 0; i < n; i += VW) {
        const int64_t lanes = n - i < VW ? n - i : VW;
        vreal wv = v_load_n(w + i, lanes), gv = v_fma(decay, wv, v_load_n(g + i, lanes) * g_scale);
        vreal step = gv;
        if (moving) {
            vreal mv = v_fma(momentum, v_load_n(m + i, lanes), gv);
            v_store_n(m + i, mv, lanes);
            step = nesterov ? v_fma(momentum, mv, gv) : mv;
        }
        v_store_n(w + i, v_fma(down, step, wv), lanes);
    }
}

void KERN_NAME(sgd)(const qkv_sgd *spec) {
    const int64_t n = spec->n;
    QKV_PARALLEL_FOR_IF(n >= QKV_PARALLEL_FROM)
    for (int64_t b = 0; b < n; b += BLOCK) sgd_run(spec, b, n - b < BLOCK ? n - b : BLOCK);
}
