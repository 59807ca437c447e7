/* Attention weights of one layer; see watch.h. */
#include "nn/watch.h"

#include <math.h>

#include "base/thread.h"

static const qkv_op watch_op = {.name = "alignment"};

/* A dot product in eight lanes, so that the additions do not wait for each other. */
static real dot(const real *x, const real *y, int64_t n) {
    real lane[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++) lane[l] += x[i + l] * y[i + l];
    for (; i < n; i++) lane[0] += x[i] * y[i];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* What one head looks at: its query, and the keys. */
typedef struct look {
    const real *q, *k;
    int64_t ldk, d;
    int32_t n; /* keys */
    double scale;
} look;

/* out[j] += softmax_j(scale·q·k_j) / heads; `scores` is scratch of n. */
static void add_head(const look *l, int32_t heads, double *scores, real *out) {
    const int32_t n = l->n;
    double top = -INFINITY, sum = 0;
    for (int32_t j = 0; j < n; j++) {
        scores[j] = l->scale * (double)dot(l->q, l->k + j * l->ldk, l->d);
        top = fmax(top, scores[j]);
    }
    for (int32_t j = 0; j < n; j++) sum += scores[j] = exp(scores[j] - top);
    for (int32_t j = 0; j < n; j++) out[j] += (real)(scores[j] / sum / heads);
}

void qkv_watch(qkv_tape *t, qkv_kv *kv, int32_t layer, const qkv_tensor *q, const qkv_tensor *k,
               const qkv_attention_spec *spec) {
    if (!kv || kv->watched_layer < 0 || kv->watched_layer != layer || qkv_tape_stopped(t)) return;
    const int32_t heads = spec->heads, groups = spec->kv_heads ? spec->kv_heads : heads;
    const int64_t d = q->cols / heads;
    const double scale = spec->scale != 0 ? (double)spec->scale : 1 / sqrt((double)d);
    int32_t longest = 1;
    for (int32_t s = 0; s < spec->k_layout.n; s++)
        if (qkv_layout_len(&spec->k_layout, s) > longest)
            longest = qkv_layout_len(&spec->k_layout, s);
    /* Only the last row of each sequence: the one that chooses the next token. */
    const size_t size = (size_t)spec->q_layout.n * (size_t)longest;
    real *out = qkv_tape_take(t, &watch_op, QKV_LIFE_KEPT, size * sizeof *out);
    double *scores = qkv_tape_alloc(t, &watch_op, size * sizeof *scores);
    if (!out || !scores) return;
    QKV_PARALLEL_FOR_IF(size * (size_t)q->cols >= QKV_PARALLEL_FROM)
    for (int32_t s = 0; s < spec->q_layout.n; s++) {
        const int64_t row = spec->q_layout.start[s] + qkv_layout_len(&spec->q_layout, s) - 1;
        const real *keys = k->data + spec->k_layout.start[s] * k->ld;
        look l = {.ldk = k->ld, .d = d, .n = qkv_layout_len(&spec->k_layout, s), .scale = scale};
        real *mine = out + (int64_t)s * longest;
        for (int32_t j = 0; j < longest; j++) mine[j] = 0;
        for (int32_t h = 0; h < heads; h++) {
            l.q = q->data + row * q->ld + h * d;
            l.k = keys + h / (heads / groups) * d;
            add_head(&l, heads, scores + (int64_t)s * longest, mine);
        }
    }
    kv->watched = out;
    kv->watched_width = longest;
}
