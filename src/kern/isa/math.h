/* Vector functions: exp, tanh, sigmoid, the normal distribution, and the activations made of them.
 *
 * Each is one branch-free formula, so a lane's bits do not depend on its neighbours, and a tail
 * that goes through the same code gives the same bits as a body. NaN propagates; exp(−∞) = 0, exp
 * of too much = ∞, results below the smallest normal number are rounded once. Largest errors over
 * all floats are measured and held by tests/test_kern.c. In the double build the lanes call the C
 * library. */
#ifndef QKV_KERN_MATH_H
#define QKV_KERN_MATH_H

#include "kern/simd.h"

#define LOG2E ((real)1.44269504088896340736)
#define LN2   ((real)0.69314718055994530942)

/* ---- integers beside the reals, comparison and choice ---- */

#ifdef QKV_DOUBLE
typedef int64_t vint
    __attribute__((vector_size(VW * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef uint64_t vuint
    __attribute__((vector_size(VW * sizeof(real)), aligned(sizeof(real)), may_alias));
#else
typedef int32_t vint
    __attribute__((vector_size(VW * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef uint32_t vuint
    __attribute__((vector_size(VW * sizeof(real)), aligned(sizeof(real)), may_alias));
#endif

/* a where the mask's lanes are all ones, b where they are zero */
static inline vreal v_select(vint mask, vreal a, vreal b) {
    return (vreal)((mask & (vint)a) | (~mask & (vint)b));
}

#ifdef QKV_DOUBLE

static inline vreal v_exp(vreal x) {
    for (int i = 0; i < VW; i++) x[i] = exp(x[i]);
    return x;
}
/* 2ˣ for x ≤ 0 or little above it, as in a softmax; below −126 it stays at 2⁻¹²⁶. */
static inline vreal v_exp2_down(vreal x) {
    for (int i = 0; i < VW; i++) x[i] = exp2(x[i]);
    return x;
}
/* The same for any x; above 64 it stays at 2⁶⁴. */
static inline vreal v_exp2_bounded(vreal x) {
    return v_exp2_down(v_min(v_set(64), x));
}
static inline vreal v_tanh(vreal x) {
    for (int i = 0; i < VW; i++) x[i] = tanh(x[i]);
    return x;
}
/* Φ(x), the share of a normal distribution below x; *density gets φ(x) when it is not NULL. */
static inline vreal v_normal(vreal x, vreal *density) {
    for (int i = 0; density && i < VW; i++)
        (*density)[i] = 0.3989422804014326779 * exp(-0.5 * x[i] * x[i]);
    for (int i = 0; i < VW; i++) x[i] = 0.5 * erfc(-x[i] * 0.70710678118654752440);
    return x;
}

#else

static inline vint v_abs_mask(void) {
    return (vint)v_set(-0.0f) ^ -1;
}
static inline vreal v_abs(vreal x) {
    return (vreal)((vint)x & v_abs_mask());
}
/* |x| with the sign of s */
static inline vreal v_with_sign(vreal x, vreal s) {
    return (vreal)(((vint)x & v_abs_mask()) | ((vint)s & ~v_abs_mask()));
}

/* exp(x + low) for |low| small beside 1: x = n·ln 2 + r, and exp(r) by a polynomial of degree 6. ln
 * 2 is taken away in two parts, the first so short that n times it is exact. 2ⁿ is multiplied on in
 * two halves, since n may leave the range of an exponent where the result is still a (denormal)
 * number. */
static inline vreal v_exp_sum(vreal x, vreal low) {
    const float round = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
    x = v_min(v_set(89.0f), v_max(v_set(-105.0f), x));
    vreal t = v_fma(x + low, v_set(1.44269504f), v_set(round));
    vreal n = t - round;
    vreal r = v_fma(n, v_set(-0.693359375f), x);
    r = v_fma(n, v_set(2.12194440e-4f), r) + low;
    vreal p = v_fma(v_set(1.38142219e-3f), r, v_set(8.36889867e-3f));
    p = v_fma(p, r, v_set(4.16684057e-2f));
    p = v_fma(p, r, v_set(0.166665191f));
    p = v_fma(p, r, v_set(0.499999933f));
    p = v_fma(p, r * r, r) + 1.0f;
    vint bits = (vint)t - (vint)v_set(round), half = bits >> 1;
    p = p * (vreal)((half + 127) << 23);
    return p * (vreal)((bits - half + 127) << 23);
}
static inline vreal v_exp(vreal x) {
    return v_exp_sum(x, v_set(0));
}

/* 2ⁿ·2ʳ with one polynomial of degree 5 and one factor, since there are no denormals. */
static inline vreal exp2_near_zero(vreal r) {
    vreal p = v_fma(v_set(1.3264727e-3f), r, v_set(9.6715127e-3f));
    p = v_fma(p, r, v_set(5.5507337e-2f));
    p = v_fma(p, r, v_set(0.24022242f));
    p = v_fma(p, r, v_set(0.69314698f));
    return v_fma(p, r, v_set(1.0f));
}
static inline vreal v_exp2_down(vreal x) {
    const float round = 0x1.8p23f + 127; /* leaves the exponent's bits in the low ones */
    x = v_max(v_set(-126.0f), x);
    const vreal t = x + round, p = exp2_near_zero(x - (t - round));
    return p * (vreal)((vuint)t << 23); /* unsigned: scores that ran away may wrap */
}
static inline vreal v_exp2_bounded(vreal x) {
    if (!HAS_EXPONENTS) return v_exp2_down(v_min(v_set(64), x));
    /* Rounding and the exponent are an instruction each, which need no bounds. */
    const vreal r = v_from_nearest(x);
    return v_times_exp2(exp2_near_zero(r), x - r);
}

/* Near 0 an odd polynomial, where 1 − 2/(e²ˣ + 1) would cancel. */
static inline vreal v_tanh(vreal x) {
    vreal a = v_abs(x), z = x * x;
    vreal p = v_set(-5.70498872745e-3f);
    p = v_fma(p, z, v_set(2.06390887954e-2f));
    p = v_fma(p, z, v_set(-5.37397155531e-2f));
    p = v_fma(p, z, v_set(1.33314422036e-1f));
    p = v_fma(p, z, v_set(-3.33332819422e-1f));
    vreal near = v_fma(p * z, x, x);
    vreal far = v_with_sign(1.0f - 2.0f / (v_exp(a + a) + 1.0f), x);
    return v_select((vint)(a < v_set(0.625f)), near, far);
}

/* Near 0, Φ = ½ + x·R(x²). Elsewhere, with a = |x|, Φ(−a) = exp(−a²/2)·Q(t)/(a + k), t = (a − k)/(a
 * + k): relative errors stay small far into the tail, where ½(1 + erf) would have cancelled to
 * nothing. a² is made exact: the square of a's upper half, and the rest, which is small enough to
 * join the exponential's reduced argument. */
static inline vreal v_normal(vreal x, vreal *density) {
    const float k = 2.5f;
    const vreal a = v_min(v_set(15.0f), v_abs(x)), upper = (vreal)((vint)a & -4096);
    const vreal e = v_exp_sum(-0.5f * (upper * upper), -0.5f * ((a - upper) * (a + upper)));
    const vreal inv = 1.0f / (a + k), t = v_fma(v_set(-2.0f * k), inv, v_set(1.0f));
    vreal q = v_fma(v_set(-0.000157702551f), t, v_set(-0.000311623132f));
    q = v_fma(q, t, v_set(0.000684412859f));
    q = v_fma(q, t, v_set(0.00252393302f));
    q = v_fma(q, t, v_set(-0.00160083006f));
    q = v_fma(q, t, v_set(-0.0163861856f));
    q = v_fma(q, t, v_set(0.00923587574f));
    q = v_fma(q, t, v_set(0.131986979f));
    q = v_fma(q, t, v_set(-0.433692012f));
    q = v_fma(q, t, v_set(0.70665666f));
    const vreal below = e * q * inv;
    if (density) *density = 0.398942280f * e;
    const vreal far = v_select((vint)(x > v_set(0)), 1.0f - below, below), z = x * x;
    vreal r = v_fma(v_set(9.24683683e-5f), z, v_set(-1.16535073e-3f));
    r = v_fma(r, z, v_set(9.96416679e-3f));
    r = v_fma(r, z, v_set(-6.6488730e-2f));
    r = v_fma(r, z, v_set(0.398942199f));
    return v_select((vint)(a < v_set(1.0f)), v_fma(r, x, v_set(0.5f)), far);
}

#endif

/* e = exp(−|x|) never overflows: 1/(1 + e) above zero, e/(1 + e) below. */
static inline vreal v_sigmoid(vreal x) {
    vint below = (vint)(x < v_set(0));
    vreal e = v_exp(v_select(below, x, -x));
    return v_select(below, e, v_set(1)) / (e + 1);
}

/* ---- activations: f(x), and f'(x) from x and y = f(x) ---- */

#define TANH_GELU_A ((real)1.59576912160573071176) /* 2√(2/π) */
#define TANH_GELU_B ((real)(1.59576912160573071176 * 0.044715))

/* ½(1 + tanh u) = σ(2u), u = √(2/π)·(x + 0.044715·x³) */
static inline vreal v_tanh_gelu_share(vreal x) {
    return v_sigmoid(x * v_fma(v_set(TANH_GELU_B), x * x, v_set(TANH_GELU_A)));
}

static inline vreal v_act(qkv_act act, vreal x) {
    switch (act) {
    case QKV_ACT_RELU:
        return v_max(v_set(0), x);
    case QKV_ACT_GELU:
        return x * v_normal(x, NULL);
    case QKV_ACT_GELU_TANH:
        return x * v_tanh_gelu_share(x);
    case QKV_ACT_SILU:
        return x * v_sigmoid(x);
    case QKV_ACT_TANH:
        return v_tanh(x);
    case QKV_ACT_SIGMOID:
        return v_sigmoid(x);
    case QKV_ACT_NONE:
    case QKV_ACT_COUNT:
        break;
    }
    return x;
}

/* relu, tanh and sigmoid need y alone. */
static inline vreal v_act_grad(qkv_act act, vreal x, vreal y) {
    switch (act) {
    case QKV_ACT_RELU:
        return v_select((vint)(y > v_set(0)), v_set(1), v_set(0));
    case QKV_ACT_GELU: {
        vreal density, share = v_normal(x, &density);
        return share + x * density;
    }
    case QKV_ACT_GELU_TANH: {
        vreal s = v_tanh_gelu_share(x),
              slope = v_fma(v_set(3 * TANH_GELU_B), x * x, v_set(TANH_GELU_A));
        return s + x * slope * (s * (1 - s));
    }
    case QKV_ACT_SILU: {
        vreal s = v_sigmoid(x);
        return s + x * (s * (1 - s));
    }
    case QKV_ACT_TANH:
        return 1 - y * y;
    case QKV_ACT_SIGMOID:
        return y * (1 - y);
    case QKV_ACT_NONE:
    case QKV_ACT_COUNT:
        break;
    }
    return v_set(1);
}

#endif
