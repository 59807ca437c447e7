/* Attention: softmax(scale·q·kᵀ + bias + q·rel_k) (v + rel_v), by head and packed sequence, and its
 * gradients.
 *
 * A query's weights exist for one row at a time only; backward makes them again from the row's
 * log-sum-exp: p = exp(s − lse),  dp = dout·(v + rel_v)ᵀ·drop,  ds = p·(dp − Σ p·dp) dv += pᵀdout,
 * dq += scale·ds·k + ds·rel_k,  dk += scale·dsᵀq,  dbias += ds,  drel_k += ds·q,  drel_v += p·dout
 */
#include "base/thread.h"
#include "kern/isa/math.h"
#include "kern/isa/random.h"

typedef struct range {
    int32_t from, to;
} range;

/* What the query at position `pos` sees; returns the number of ranges. */
static int visible(const qkv_attention *a, int32_t n_k, int32_t pos, range *out) {
    if (!a->spans) {
        out[0] = (range){0, n_k};
        return n_k > 0;
    }
    qkv_span spans[QKV_SPANS_MAX];
    const int n = a->spans(a->pattern, n_k, pos, pos + 1, spans);
    int count = 0;
    for (int i = 0; i < n; i++) {
        const int32_t low = pos + spans[i].lo, high = pos + spans[i].hi + 1;
        const range r = {spans[i].k0 > low ? spans[i].k0 : low,
                         spans[i].k1 < high ? spans[i].k1 : high};
        if (r.from < r.to) out[count++] = r;
    }
    return count;
}

static int32_t relate(const qkv_relation *rel, int32_t s, int32_t n_k, int32_t i, int32_t pos,
                      int32_t j) {
    if (rel->kind == QKV_REL_MATRIX)
        return rel->matrix[rel->matrix_start[s] + (int64_t)i * n_k + j];
    const int32_t r = j - pos + rel->zero;
    return r < 0 ? 0 : r >= rel->n ? rel->n - 1 : r;
}

static real dot(const real *x, const real *y, int64_t n) {
    vreal sum = v_set(0);
    for (int64_t i = 0; i < n; i += VW) {
        const int64_t lanes = n - i < VW ? n - i : VW;
        sum = v_fma(v_load_n(x + i, lanes), v_load_n(y + i, lanes), sum);
    }
    return v_sum(sum);
}

static void add_scaled(real a, const real *x, real *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

/* One query of one head: where its rows are and what it sees. */
typedef struct query {
    int32_t s, h, kv, i, pos, n_k;
    int64_t row, key0;
    range ranges[QKV_SPANS_MAX];
    int n;
} query;

static query find_query(const qkv_attention *a, int32_t s, int32_t h, int32_t i) {
    query q = {.s = s, .h = h, .kv = h / (a->heads / a->kv_heads), .i = i};
    q.pos = (a->q_pos ? a->q_pos[s] : 0) + i;
    q.n_k = qkv_layout_len(&a->k_layout, s);
    q.row = a->q_layout.start[s] + i;
    q.key0 = a->k_layout.start[s];
    q.n = visible(a, q.n_k, q.pos, q.ranges);
    return q;
}

#define FOR_KEYS(j, q)                                                                             \
    for (int range_ = 0; range_ < (q)->n; range_++)                                                \
        for (int32_t j = (q)->ranges[range_].from; j < (q)->ranges[range_].to; j++)

static const real *key_row(const qkv_attention *a, const query *q, int32_t j) {
    return a->k + (q->key0 + j) * a->ldk + (int64_t)q->kv * a->d_head;
}
static const real *value_row(const qkv_attention *a, const query *q, int32_t j) {
    return a->v + (q->key0 + j) * a->ldv + (int64_t)q->kv * a->d_value;
}
static int32_t relation_of(const qkv_attention *a, const query *q, int32_t j) {
    return relate(&a->relation, q->s, q->n_k, q->i, q->pos, j);
}

static void scores(const qkv_attention *a, const query *q, real *p) {
    const real *qr = a->q + q->row * a->ldq + (int64_t)q->h * a->d_head;
    const bool related = a->relation.kind != QKV_REL_NONE;
    FOR_KEYS(j, q) {
        p[j] = a->scale * dot(qr, key_row(a, q, j), a->d_head);
        if (related && a->bias)
            p[j] += a->bias[(int64_t)q->h * a->relation.n + relation_of(a, q, j)];
        if (related && a->rel_k)
            p[j] += dot(qr, a->rel_k + (int64_t)relation_of(a, q, j) * a->d_head, a->d_head);
    }
}

/* Multiplies by the dropout factors, or sets them where there is none to multiply. */
static void drop(const qkv_attention *a, const query *q, real *p) {
    if (a->dropout <= 0) return;
    FOR_KEYS(j, q) {
        real factor;
        drop_factors(a->rng, qkv_attention_drop_index(a, q->row, q->h, j), 1, a->dropout, &factor);
        p[j] *= factor;
    }
}

static void forward_query(const qkv_attention *a, const query *q, real *p) {
    real *out = a->out + q->row * a->ldo + (int64_t)q->h * a->d_value;

    memset(out, 0, (size_t)a->d_value * sizeof *out);
    scores(a, q, p);
    real top = -INFINITY, sum = 0;
    FOR_KEYS(j, q) top = p[j] > top ? p[j] : top;
    FOR_KEYS(j, q) sum += p[j] = (real)exp((double)(p[j] - top));
    if (a->lse) a->lse[q->row * a->heads + q->h] = q->n ? top + (real)log((double)sum) : 0;
    drop(a, q, p);
    FOR_KEYS(j, q) {
        add_scaled(p[j] / sum, value_row(a, q, j), out, a->d_value);
        if (a->rel_v && a->relation.kind != QKV_REL_NONE)
            add_scaled(p[j] / sum, a->rel_v + (int64_t)relation_of(a, q, j) * a->d_value, out,
                       a->d_value);
    }
}

static int32_t longest(const qkv_layout *l) {
    int32_t most = 1;
    for (int32_t s = 0; s < l->n; s++)
        if (qkv_layout_len(l, s) > most) most = qkv_layout_len(l, s);
    return most;
}

bool KERN_NAME(attention)(const qkv_attention *a) {
    const size_t bytes = (size_t)longest(&a->k_layout) * sizeof(real);
    bool ok = true;
    QKV_PARALLEL_FOR_UNEVEN
    for (int64_t item = 0; item < (int64_t)a->q_layout.n * a->heads; item++) {
        const int32_t s = (int32_t)(item / a->heads), h = (int32_t)(item % a->heads);
        real *p = qkv_kern_scratch(0, bytes);
        if (!p) {
#pragma omp atomic write
            ok = false;
            continue;
        }
        for (int32_t i = 0; i < qkv_layout_len(&a->q_layout, s); i++) {
            const query q = find_query(a, s, h, i);
            forward_query(a, &q, p);
        }
    }
    return ok;
}

static void backward_query(const qkv_attention *a, const qkv_attention_grad *g, const query *q,
                           real *p, real *dp, real *factor) {

    const real lse = a->lse[q->row * a->heads + q->h];
    const real *qr = a->q + q->row * a->ldq + (int64_t)q->h * a->d_head;
    const real *dout = g->dout + q->row * g->lddo + (int64_t)q->h * a->d_value;
    const bool related = a->relation.kind != QKV_REL_NONE;
    real sum = 0;
    scores(a, q, p);
    FOR_KEYS(j, q) {
        p[j] = (real)exp((double)(p[j] - lse));
        factor[j] = 1;
    }
    drop(a, q, factor);
    FOR_KEYS(j, q) {
        dp[j] = dot(dout, value_row(a, q, j), a->d_value);
        if (related && a->rel_v)
            dp[j] += dot(dout, a->rel_v + (int64_t)relation_of(a, q, j) * a->d_value, a->d_value);
        dp[j] *= factor[j];
        sum += p[j] * dp[j];
    }
    if (g->dq)
        memset(g->dq + q->row * g->lddq + (int64_t)q->h * a->d_head, 0,
               (size_t)a->d_head * sizeof(real));
    FOR_KEYS(j, q) {
        const real ds = p[j] * (dp[j] - sum), kept = p[j] * factor[j];
        const int64_t key = q->key0 + j;
        real *dq = g->dq ? g->dq + q->row * g->lddq + (int64_t)q->h * a->d_head : NULL;
        if (g->dv)
            add_scaled(kept, dout, g->dv + key * g->lddv + (int64_t)q->kv * a->d_value, a->d_value);
        if (dq) add_scaled(a->scale * ds, key_row(a, q, j), dq, a->d_head);
        if (g->dk)
            add_scaled(a->scale * ds, qr, g->dk + key * g->lddk + (int64_t)q->kv * a->d_head,
                       a->d_head);
        if (!related) continue;
        const int64_t r = relation_of(a, q, j);
        if (g->dbias && a->bias) g->dbias[(int64_t)q->h * a->relation.n + r] += ds;
        if (dq && a->rel_k) add_scaled(ds, a->rel_k + r * a->d_head, dq, a->d_head);
        if (g->drel_k && a->rel_k) add_scaled(ds, qr, g->drel_k + r * a->d_head, a->d_head);
        if (g->drel_v && a->rel_v) add_scaled(kept, dout, g->drel_v + r * a->d_value, a->d_value);
    }
}

static void clear_keys(const qkv_attention *a, const qkv_attention_grad *g, int32_t s, int32_t kv) {
    for (int32_t j = 0; j < qkv_layout_len(&a->k_layout, s); j++) {
        const int64_t key = a->k_layout.start[s] + j;
        if (g->dk)
            memset(g->dk + key * g->lddk + (int64_t)kv * a->d_head, 0,
                   (size_t)a->d_head * sizeof(real));
        if (g->dv)
            memset(g->dv + key * g->lddv + (int64_t)kv * a->d_value, 0,
                   (size_t)a->d_value * sizeof(real));
    }
}

bool KERN_NAME(attention_grad)(const qkv_attention *a, const qkv_attention_grad *g) {
    const int64_t most = longest(&a->k_layout);
    const int32_t group = a->heads / a->kv_heads;
    const bool shared = g->dbias || g->drel_k || g->drel_v;
    bool ok = true;
    QKV_PARALLEL_FOR_IF(!shared)
    for (int64_t item = 0; item < (int64_t)a->q_layout.n * a->kv_heads; item++) {
        const int32_t s = (int32_t)(item / a->kv_heads), kv = (int32_t)(item % a->kv_heads);
        real *p = qkv_kern_scratch(0, (size_t)(3 * most) * sizeof(real));
        if (!p) {
#pragma omp atomic write
            ok = false;
            continue;
        }
        clear_keys(a, g, s, kv);
        for (int32_t h = kv * group; h < (kv + 1) * group; h++)
            for (int32_t i = 0; i < qkv_layout_len(&a->q_layout, s); i++) {
                const query q = find_query(a, s, h, i);
                backward_query(a, g, &q, p, p + most, p + 2 * most);
            }
    }
    return ok;
}
