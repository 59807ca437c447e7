#include "tiny.h"

#include <math.h>
#include <stdlib.h>

/* A random tree over one sequence: the parent of node i is an earlier one. */
static void make_tree(tiny_batch *b, int32_t s, uint64_t seed) {
    const int32_t first = b->start[s], n = b->start[s + 1] - first;
    for (int32_t i = 0; i < n; i++) {
        b->node[first + i] = i;
        b->head[first + i] =
            i ? (int32_t)qkv_rng_below((qkv_rng){seed, 7}, (uint64_t)(first + i), (uint64_t)i) : -1;
    }
    b->nodes[s] = (qkv_cells){b->node + first, n};
    b->heads[s] = (qkv_cells){b->head + first, n};
}

void tiny_batch_make(tiny_batch *b, const int32_t *lengths, int32_t n, int32_t vocab,
                     int32_t classes, uint64_t seed) {
    memset(b, 0, sizeof *b);
    b->n = n;
    for (int32_t s = 0; s < n; s++) {
        b->start[s + 1] = b->start[s] + lengths[s];
        b->label[s] = s % classes;
    }
    b->rows = b->start[n];
    assert_true(n <= TINY_SEQUENCES && b->rows <= TINY_ROWS);
    for (int32_t r = 0; r < b->rows; r++)
        b->ids[r] = (int32_t)qkv_rng_below((qkv_rng){seed, 3}, (uint64_t)r, (uint64_t)vocab);
    for (int32_t s = 0; s < n; s++) {
        make_tree(b, s, seed);
        for (int32_t r = b->start[s]; r < b->start[s + 1]; r++)
            b->next[r] = r + 1 < b->start[s + 1] ? b->ids[r + 1] : 0;
        const int32_t first = b->start[s], len = b->start[s + 1] - first;
        for (int32_t i = 0; i < len; i++) b->segment[first + i] = 2 * i >= len;
        b->segments[s] = (qkv_cells){b->segment + first, len};
    }
    b->tokens = (qkv_tokens){.layout = {.n = n, .start = b->start},
                             .ids = b->ids,
                             .rows = b->rows,
                             .column = {[QKV_COLUMN_NODES] = b->nodes,
                                        [QKV_COLUMN_HEADS] = b->heads,
                                        [QKV_COLUMN_SEGMENTS] = b->segments}};
}

qkv_status tiny_build(const char *assignments, qkv_model **out) {
    qkv_config config;
    *out = NULL;
    qkv_config_default(&config);
    qkv_settings s = qkv_config_settings(&config);
    QKV_TRY(qkv_settings_assign(
        &s, 1,
        "vocab_size=11 classes=3 max_len=64 d_model=16 layers=2 heads=2 d_ff=24 dropout=0 window=3 "
        "global_tokens=1 random_links=1 linformer_rank=4 rel_distance=3 t5_buckets=8 "
        "t5_distance=9"));
    QKV_TRY(qkv_settings_assign(&s, 1, assignments));
    return qkv_model_build(&config, out);
}

qkv_model *tiny_model(const char *assignments, bool for_training, uint64_t seed) {
    qkv_model *m;
    assert_ok(tiny_build(assignments, &m));
    assert_ok(qkv_model_allocate(m, for_training));
    qkv_model_initialise(m, seed);
    return m;
}

qkv_tensor *tiny_hidden(qkv_tape *t, qkv_model *m, const tiny_batch *src, const tiny_batch *tgt) {
    qkv_shape shape = qkv_shape_of(qkv_model_config(m)->task);
    qkv_tensor *memory = shape.encoder ? qkv_model_encode(t, m, &src->tokens) : NULL;
    return shape.decoder
               ? qkv_model_decode(t, m, &tgt->tokens, memory, src ? &src->tokens : NULL, NULL)
               : memory;
}

/* Every second row has a label: its number modulo the classes. */
static qkv_tensor *tag_loss(qkv_tape *t, qkv_model *m, const tiny_batch *b) {
    const int32_t classes = (int32_t)qkv_model_config(m)->classes, n = (b->rows + 1) / 2;
    int32_t *rows = qkv_tape_alloc(t, NULL, 2 * (size_t)n * sizeof *rows);
    if (!rows) return &t->nothing;
    for (int32_t i = 0; i < n; i++) {
        rows[i] = 2 * i;
        rows[n + i] = 2 * i % classes;
    }
    return qkv_xent(t, qkv_model_tag(t, m, &b->tokens, rows, n), NULL, NULL,
                    &(qkv_xent_spec){.targets = rows + n});
}

qkv_tensor *tiny_loss(qkv_tape *t, qkv_model *m, const tiny_batch *src, const tiny_batch *tgt) {
    qkv_shape shape = qkv_shape_of(qkv_model_config(m)->task);
    if (shape.head == QKV_HEAD_NUMBER) { /* the labels are the numbers */
        real *numbers = qkv_tape_alloc(t, NULL, (size_t)src->n * sizeof *numbers);
        for (int32_t i = 0; i < src->n && numbers; i++) numbers[i] = (real)src->label[i];
        return qkv_pointwise(t, qkv_model_classify(t, m, &src->tokens),
                             &(qkv_pointwise_spec){.targets = numbers, .scale = 1});
    }
    if (qkv_model_config(m)->several) { /* its label, and the first one */
        const int32_t classes = (int32_t)qkv_model_config(m)->classes;
        real *yes = qkv_tape_alloc(t, NULL, (size_t)(src->n * classes) * sizeof *yes);
        for (int32_t i = 0; i < src->n * classes && yes; i++)
            yes[i] = i % classes == 0 || i % classes == src->label[i / classes];
        return qkv_pointwise(
            t, qkv_model_classify(t, m, &src->tokens),
            &(qkv_pointwise_spec){.kind = QKV_POINT_SIGMOID, .targets = yes, .scale = 1});
    }
    if (shape.head == QKV_HEAD_CLASSES) {
        qkv_xent_spec labels = {.targets = src->label};
        return qkv_xent(t, qkv_model_classify(t, m, &src->tokens), NULL, NULL, &labels);
    }
    if (shape.head == QKV_HEAD_TAGS) return tag_loss(t, m, src);
    qkv_xent_spec words = {.targets = shape.decoder ? tgt->next : src->ids};
    return qkv_model_vocab_loss(t, m, tiny_hidden(t, m, src, tgt), &words);
}

qkv_model *tiny_sharp_model(const char *assignments, uint64_t seed) {
    qkv_model *m = tiny_model(assignments, false, seed);
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < p->length; i++) p->values[i] *= (real)2.5;
    return m;
}

void tiny_next(qkv_tape *t, qkv_model *m, const int32_t *src, int32_t n_src, const int32_t *ids,
               int32_t n, int32_t vocab, double *out) {
    const int32_t start[] = {0, n}, src_start[] = {0, n_src};
    const qkv_tokens tgt = {.layout = {.n = 1, .start = start}, .ids = ids, .rows = n};
    const qkv_tokens source = {.layout = {.n = 1, .start = src_start}, .ids = src, .rows = n_src};
    qkv_tape_begin(t, QKV_EVAL, 0, 0);
    qkv_tensor *memory = n_src ? qkv_model_encode(t, m, &source) : NULL;
    qkv_tensor *y = qkv_model_decode(t, m, &tgt, memory, memory ? &source : NULL, NULL);
    y = qkv_model_vocab_logits(t, m, qkv_tensor_rows(t, y, n - 1, 1));
    assert_ok(qkv_tape_status(t));
    double sum = 0;
    for (int32_t i = 0; i < vocab; i++) sum += exp((double)y->data[i]);
    for (int32_t i = 0; i < vocab; i++) out[i] = (double)y->data[i] - log(sum);
}
