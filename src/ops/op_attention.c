/* Attention, by head and sequence, over the keys j that query i sees; r = r_ij relates them:
 *   s_ij = scale·q_i·k_j + bias[r] + q_i·rel_k[r],   P = dropout(softmax(s)),
 *   o_i = Σ_j P_ij·(v_j + rel_v[r])
 *
 * With p the softmax before dropout and m its mask, divided by 1 − rate already:
 *   dp_ij = m_ij·do_i·(v_j + rel_v[r]),   ds = p·(dp − Σ_j p·dp)     as dp/ds = diag(p) − p pᵀ
 *   dv_j = Σ_i m·p·do_i,                  drel_v[r] = Σ_{r_ij = r} m·p·do_i
 *   dq_i = Σ_j ds·(scale·k_j + rel_k[r]), dk_j = scale·Σ_i ds·q_i
 *   dbias[r] = Σ_{r_ij = r} ds,           drel_k[r] = Σ_{r_ij = r} ds·q_i
 * The kernel makes p again from q, k and the log of each row's softmax sum, which is all that is
 * kept: there is no T×T matrix in memory. In bf16 runs q, k and v are rounded to bf16 when they
 * arrive, and kept as that where they are brief (qkv_linear_brief). */
#include "ops/ops.h"
#include "ops/expect.h"

#include <math.h>

enum { Q, K, V, BIAS, REL_K, REL_V };

/* The kernel may have failed in another thread, whose message this one cannot see. */
static qkv_tensor *no_scratch(qkv_tape *t) {
    return qkv_tape_fail(t, &qkv_op_attention, QKV_FAILED, "out of memory: the kernel's scratch");
}

typedef struct saved {
    qkv_attention a;
    uint16_t
        *narrow[V + 1]; /* what q, k or v is a view of, as bf16; NULL: as it is, or had before */
} saved;

static qkv_tensor *whole(qkv_tensor *x) {
    return x->base ? x->base : x;
}

/* q, k and v are views of up to three tensors: is the one of in[i] another than those before? */
static bool is_new(qkv_tensor *const *in, int i) {
    for (int k = 0; k < i; k++)
        if (whole(in[k]) == whole(in[i])) return false;
    return true;
}

/* Rounds what is brief to bf16 and keeps it as that. */
static void narrow(qkv_tape *t, saved *s, qkv_tensor *const *in) {
    for (int i = Q; i <= V; i++) {
        qkv_tensor *x = whole(in[i]);
        if (!qkv_has_one_reader(x) || !is_new(in, i)) continue;
        const int64_t n = x->rows * x->ld;
        s->narrow[i] =
            qkv_tape_take(t, &qkv_op_attention, QKV_LIFE_KEPT, (size_t)n * sizeof *s->narrow[i]);
        if (s->narrow[i]) qkv_kern_get()->narrow(x->data, s->narrow[i], n);
    }
}

/* The tensors once more; they may lie elsewhere now. */
static void widen(qkv_tape *t, saved *s, qkv_tensor *const *in) {
    const real **const data[] = {&s->a.q, &s->a.k, &s->a.v};
    for (int i = Q; i <= V && !qkv_tape_stopped(t); i++) {
        qkv_tensor *x = whole(in[i]);
        const int64_t n = x->rows * x->ld;
        if (s->narrow[i] && (x->data = qkv_tape_take(t, &qkv_op_attention, QKV_LIFE_KEPT,
                                                     (size_t)n * sizeof(real))))
            qkv_kern_get()->widen(s->narrow[i], x->data, n);
        *data[i] = x->data + in[i]->offset;
    }
}

/* Do those of q, k and v that share a tensor lie side by side in it, in this order? */
static bool side_by_side(qkv_tensor *const *in) {
    for (int i = K; i <= V; i++)
        if (whole(in[i]) == whole(in[i - 1]) && in[i]->base_from != in[i - 1]->base_to)
            return false;
    return whole(in[Q]) != whole(in[V]) || whole(in[Q]) == whole(in[K]);
}

static void backward(qkv_tape *t, qkv_node *node) {
    saved *s = node->saved;
    qkv_tensor *const *in = node->in;
    widen(t, s, in);
    for (int i = Q; i <= V && side_by_side(in); i++) qkv_tensor_spend(whole(in[i]));
    qkv_attention_grad g = {.dout = qkv_grad_of(t, node->out[0]), .lddo = node->out[0]->ld};
    g.dq = qkv_grad_write(t, in[Q], NULL), g.lddq = in[Q]->ld;
    g.dk = qkv_grad_write(t, in[K], NULL), g.lddk = in[K]->ld;
    g.dv = qkv_grad_write(t, in[V], NULL), g.lddv = in[V]->ld;
    g.dbias = qkv_grad_add(t, in[BIAS], NULL, 0);
    g.drel_k = qkv_grad_add(t, in[REL_K], NULL, 0);
    g.drel_v = qkv_grad_add(t, in[REL_V], NULL, 0);
    if (qkv_tape_stopped(t)) return;
    if (!qkv_kern_get()->attention_grad(&s->a, &g)) no_scratch(t);
    for (int i = Q; i <= V; i++) {
        qkv_heap_give(s->narrow[i]);
        qkv_tensor_done(whole(in[i]));
    }
}

const qkv_op qkv_op_attention = {.name = "attention", .backward = backward};

/* ---- what must hold ---- */

static bool heads_fit(qkv_tape *t, const qkv_attention_spec *s, const qkv_tensor *q,
                      const qkv_tensor *k, const qkv_tensor *v) {
    const int32_t h = s->heads, kv = s->kv_heads ? s->kv_heads : h;
    if (h >= 1 && kv >= 1 && h % kv == 0 && q->cols % h == 0 && k->cols == q->cols / h * kv &&
        v->cols % kv == 0 && k->rows == v->rows)
        return true;
    qkv_tape_fail(t, &qkv_op_attention, QKV_USAGE,
                  "q is %lld×%lld, k %lld×%lld, v %lld×%lld; %d heads and %d key heads do not fit: "
                  "heads must be a multiple "
                  "of key heads, q and k have heads of one width, k and v the same rows",
                  (long long)q->rows, (long long)q->cols, (long long)k->rows, (long long)k->cols,
                  (long long)v->rows, (long long)v->cols, h, kv);
    return false;
}

/* Every entry of a matrix of relations is an index into tables of n rows. */
static bool matrix_fits(qkv_tape *t, const qkv_attention *a) {
    const qkv_relation *rel = &a->relation;
    for (int32_t s = 0; s < a->q_layout.n; s++) {
        const int64_t n_k = qkv_layout_len(&a->k_layout, s),
                      n = qkv_layout_len(&a->q_layout, s) * n_k;
        const uint8_t *m = rel->matrix + rel->matrix_start[s];
        for (int64_t i = 0; i < n; i++)
            if (m[i] >= rel->n) {
                qkv_tape_fail(t, &qkv_op_attention, QKV_USAGE,
                              "the relation of query %lld to key %lld of sequence %d is %d; there "
                              "are %d relations",
                              (long long)(i / n_k), (long long)(i % n_k), s, m[i], rel->n);
                return false;
            }
    }
    return true;
}

static bool relation_fits(qkv_tape *t, const qkv_attention *a, const qkv_attention_spec *s) {
    const qkv_op *op = &qkv_op_attention;
    const qkv_tensor *tables[] = {s->bias, s->rel_k, s->rel_v};
    const char *const names[] = {"bias", "rel_k", "rel_v"};
    const int64_t n = s->relation.n, rows[] = {s->heads, n, n}, cols[] = {n, a->d_head, a->d_value};
    for (int i = 0; i < 3; i++) {
        if (!tables[i]) continue;
        if (s->relation.kind == QKV_REL_NONE || n < 1) {
            qkv_tape_fail(t, op, QKV_USAGE, "%s is given, but no relation that selects from it",
                          names[i]);
            return false;
        }
        if (!qkv_expect_shape(t, op, names[i], tables[i], rows[i], cols[i]) ||
            !qkv_expect_packed(t, op, names[i], tables[i]))
            return false;
    }
    return s->relation.kind != QKV_REL_MATRIX || matrix_fits(t, a);
}

static bool arguments_fit(qkv_tape *t, const qkv_attention *a, const qkv_attention_spec *s,
                          const qkv_tensor *q, const qkv_tensor *k) {
    const qkv_op *op = &qkv_op_attention;
    if (a->q_layout.n != a->k_layout.n) {
        qkv_tape_fail(t, op, QKV_USAGE, "queries of %d sequences, keys of %d", a->q_layout.n,
                      a->k_layout.n);
        return false;
    }
    return qkv_expect_layout(t, op, "q_layout", &a->q_layout, q->rows, true) &&
           qkv_expect_layout(t, op, "k_layout", &a->k_layout, k->rows,
                             k->wants_grad && t->mode != QKV_EVAL) &&
           (!a->q_pos ||
            qkv_expect_ids(t, op, "q_pos", a->q_pos, a->q_layout.n, 0, QKV_SPAN_ANY)) &&
           qkv_expect_rate(t, op, s->dropout) && relation_fits(t, a, s);
}

/* ---- the op ---- */

/* The kernel's view of the arguments, outputs excepted. */
static qkv_attention describe(const qkv_attention_spec *s, const qkv_tensor *q, const qkv_tensor *k,
                              const qkv_tensor *v) {
    qkv_attention a = {.heads = s->heads, .kv_heads = s->kv_heads ? s->kv_heads : s->heads};
    a.d_head = (int32_t)(q->cols / a.heads);
    a.d_value = (int32_t)(v->cols / a.kv_heads);
    a.scale = s->scale != 0 ? s->scale : (real)(1 / sqrt((double)a.d_head));
    a.q_layout = s->q_layout;
    a.k_layout = s->k_layout.n ? s->k_layout : s->q_layout;
    a.q_pos = s->q_pos, a.spans = s->spans, a.pattern = s->pattern;
    a.q = q->data, a.k = k->data, a.v = v->data;
    a.ldq = q->ld, a.ldk = k->ld, a.ldv = v->ld;
    a.relation = s->relation;
    a.bias = s->bias ? s->bias->data : NULL;
    a.rel_k = s->rel_k ? s->rel_k->data : NULL;
    a.rel_v = s->rel_v ? s->rel_v->data : NULL;
    return a;
}

qkv_tensor *qkv_attend(qkv_tape *t, qkv_tensor *q, qkv_tensor *k, qkv_tensor *v,
                       const qkv_attention_spec *spec) {
    if (qkv_tape_stopped(t) || !heads_fit(t, spec, q, k, v)) return &t->nothing;
    saved *s = qkv_tape_alloc(t, &qkv_op_attention, sizeof *s);
    if (!s) return &t->nothing;
    qkv_attention *const a = &s->a;
    *s = (saved){.a = describe(spec, q, k, v)};
    if (!arguments_fit(t, a, spec, q, k)) return &t->nothing;
    qkv_tensor *const in[] = {q, k, v, spec->bias, spec->rel_k, spec->rel_v};
    qkv_tensor *o = qkv_tensor_new(t, q->rows, (int64_t)a->heads * a->d_value);
    const bool records = qkv_tape_records(t, in, 6), rounded = t->precision == QKV_BF16;
    if (records && rounded) narrow(t, s, in);
    if (records)
        a->lse = qkv_tape_alloc(t, &qkv_op_attention, (size_t)(q->rows * a->heads) * sizeof(real));
    if (qkv_tape_stopped(t)) return &t->nothing;
    a->dropout = t->mode == QKV_TRAIN ? spec->dropout : 0;
    a->rng = qkv_tape_rng(t, qkv_tape_next_index(t));
    a->precision = spec->rounded ? QKV_BF16 : (qkv_precision)t->precision;
    a->out = o->data, a->ldo = o->ld;
    if (!qkv_kern_get()->attention(a)) return no_scratch(t);
    qkv_tensor *out = qkv_tape_record(t, &qkv_op_attention, in, 6, QKV_TENSORS(o), s);
    for (int i = Q; i <= V && records && rounded; i++) qkv_tensor_done(whole(in[i]));
    return out;
}

const qkv_attention *qkv_attention_of_node(const qkv_node *node) {
    return node->op == &qkv_op_attention ? &((const saved *)node->saved)->a : NULL;
}
