#include "nn/attention_record.h"
#include "base/mem.h"

/* softmax(…)·I for one sequence and head, in the columns of that head. */
static bool weigh(const qkv_attention *all, int32_t s, int32_t h, const real *identity, real *out) {
    const int32_t group = all->heads / all->kv_heads, n_q = qkv_layout_len(&all->q_layout, s),
                  n_k = qkv_layout_len(&all->k_layout, s);
    const int32_t q_start[2] = {0, n_q}, k_start[2] = {0, n_k};
    qkv_attention one = *all;
    one.heads = one.kv_heads = 1;
    one.d_value = n_k;
    one.q_layout = (qkv_layout){.n = 1, .start = q_start};
    one.k_layout = (qkv_layout){.n = 1, .start = k_start};
    if (all->q_pos) one.q_pos = all->q_pos + s;
    one.q = all->q + all->q_layout.start[s] * all->ldq + (int64_t)h * all->d_head;
    one.k = all->k + all->k_layout.start[s] * all->ldk + (int64_t)(h / group) * all->d_head;
    one.v = identity;
    one.ldv = n_k;
    if (all->relation.matrix_start) one.relation.matrix_start = all->relation.matrix_start + s;
    if (all->bias) one.bias = all->bias + (int64_t)h * all->relation.n;
    one.rel_v = NULL;
    one.dropout = 0;
    one.out = out + (int64_t)h * n_k;
    one.ldo = (int64_t)all->heads * n_k;
    one.lse = NULL;
    return qkv_kern_get()->attention(&one);
}

static qkv_status record_sequence(qkv_attention_record *r, const qkv_attention *a, int32_t s) {
    qkv_recorded got = {.sequence = s,
                        .heads = a->heads,
                        .n_q = qkv_layout_len(&a->q_layout, s),
                        .n_k = qkv_layout_len(&a->k_layout, s)};
    const size_t keys = (size_t)got.n_k;
    real *identity = qkv_zalloc(keys * keys, sizeof *identity);
    got.weights = qkv_zalloc((size_t)got.n_q * (size_t)got.heads * keys, sizeof *got.weights);
    qkv_status status = identity && got.weights ? QKV_OK : QKV_FAILED;
    for (size_t i = 0; status == QKV_OK && i < keys; i++) identity[i * keys + i] = 1;
    for (int32_t h = 0; status == QKV_OK && h < a->heads; h++)
        if (!weigh(a, s, h, identity, got.weights))
            status = qkv_fail(QKV_FAILED, "out of memory: the kernel's scratch");
    if (status == QKV_OK && !QKV_PUSH(r->list, got)) status = QKV_FAILED;
    if (status != QKV_OK) qkv_free(got.weights);
    qkv_free(identity);
    return status;
}

static void record(void *user, const qkv_node *node) {
    qkv_attention_record *r = user;
    const qkv_attention *a = qkv_attention_of_node(node);
    if (!a) return;
    if (a->k_layout.rows)
        r->status = qkv_fail(QKV_USAGE, "attention over a cache cannot be looked at");
    for (int32_t s = 0; s < a->q_layout.n && r->status == QKV_OK; s++)
        r->status = record_sequence(r, a, s);
}

void qkv_attention_record_start(qkv_attention_record *r, qkv_tape *t) {
    *r = (qkv_attention_record){.observer = {.after = record, .user = r}};
    t->observer = &r->observer;
}

void qkv_attention_record_free(qkv_attention_record *r) {
    for (size_t i = 0; i < r->list.n; i++) qkv_free(r->list.at[i].weights);
    qkv_free(r->list.at);
    *r = (qkv_attention_record){0};
}
