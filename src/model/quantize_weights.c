/* Writing a model's weights quantized. Matrices that are only multiplied by or looked up in are
 * rounded, row by row; what is small (vectors, positions, the map to a few classes) stays as it is,
 * since there is nothing to gain. */
#include "base/mem.h"
#include "base/thread.h"
#include "model/weights.h"

#include <stdio.h>
#include <string.h>

enum { FEWEST_ROWS = 16 };

/* The tensors to write, two for a matrix of integers, and the memory they point to. */
typedef struct writing {
    qkv_to_store *list;
    size_t n;
    void **blocks; /* two per parameter */
    char **names;  /* of scales, one per parameter */
} writing;

static bool is_rounded(const qkv_param *p) {
    return p->spec.narrow && p->spec.rows >= FEWEST_ROWS && p->spec.cols <= QKV_WEIGHT_COLS_MAX;
}

static void add(writing *w, const char *name, qkv_dtype dtype, int rank, int64_t rows, int64_t cols,
                const void *data) {
    qkv_to_store *t = &w->list[w->n++];
    *t = (qkv_to_store){.name = name, .dtype = dtype, .rank = rank, .data = data};
    t->shape[0] = rows;
    t->shape[1] = rank > 1 ? cols : 0;
}

static void add_whole(writing *w, const qkv_param *p) {
    const bool vector = p->spec.vector;
    add(w, p->name, sizeof(real) == 8 ? QKV_DTYPE_F64 : QKV_DTYPE_F32, vector ? 1 : 2,
        vector ? p->spec.rows * p->spec.cols : p->spec.rows, p->spec.cols, p->tensor.data);
}

static qkv_status add_rounded(writing *w, const qkv_param *p, qkv_weight_format to, size_t i) {
    static const qkv_dtype dtypes[] = {QKV_DTYPE_F32, QKV_DTYPE_BF16, QKV_DTYPE_I8, QKV_DTYPE_U8};
    const int64_t rows = p->spec.rows, cols = p->spec.cols;
    const int64_t bytes = qkv_weight_row_bytes(to, cols), groups = qkv_weight_groups(to, cols);
    char *const data = w->blocks[2 * i] = qkv_alloc((size_t)(rows * bytes));
    float *const scale = w->blocks[2 * i + 1] =
        qkv_zalloc((size_t)(rows * groups) + 1, sizeof *scale);
    const size_t room = strlen(p->name) + sizeof ".scale";
    char *const name = w->names[i] = qkv_alloc(room);
    if (!data || !scale || !name) return QKV_FAILED;
    QKV_PARALLEL_FOR
    for (int64_t r = 0; r < rows; r++)
        qkv_weight_row_make(to, p->tensor.data + r * p->tensor.ld, cols, data + r * bytes,
                            scale + r * groups);
    add(w, p->name, dtypes[to], 2, rows, to == QKV_WEIGHT_INT4 ? bytes : cols, data);
    if (!groups) return QKV_OK;
    snprintf(name, room, "%s.scale", p->name);
    add(w, name, QKV_DTYPE_F32, groups > 1 ? 2 : 1, rows, groups, scale);
    return QKV_OK;
}

/* A table of n-grams in 8 bits, block by block. */
static qkv_status add_table(writing *w, const qkv_param *p, size_t i) {
    enum { BLOCK = QKV_TABLE_BLOCK };
    const int64_t n = p->spec.rows * p->spec.cols, blocks = (n + BLOCK - 1) / BLOCK;
    int8_t *const data = w->blocks[2 * i] = qkv_alloc((size_t)(blocks * BLOCK));
    float *const scale = w->blocks[2 * i + 1] = qkv_alloc((size_t)blocks * sizeof *scale);
    const size_t room = strlen(p->name) + sizeof ".scale";
    char *const name = w->names[i] = qkv_alloc(room);
    if (!data || !scale || !name) return QKV_FAILED;
    QKV_PARALLEL_FOR
    for (int64_t b = 0; b < blocks; b++) {
        real values[BLOCK] = {0};
        const int64_t left = n - b * BLOCK;
        memcpy(values, p->tensor.data + b * BLOCK,
               (size_t)(left < BLOCK ? left : BLOCK) * sizeof *values);
        qkv_weight_row_make(QKV_WEIGHT_INT8, values, BLOCK, data + b * BLOCK, scale + b);
    }
    snprintf(name, room, "%s.scale", p->name);
    add(w, p->name, QKV_DTYPE_I8, 2, blocks, BLOCK, data);
    add(w, name, QKV_DTYPE_F32, 1, blocks, 1, scale);
    return QKV_OK;
}

qkv_status qkv_weights_quantize(const qkv_params *params, qkv_weight_format to, const char *path) {
    writing w = {.list = qkv_zalloc(2 * params->n, sizeof *w.list),
                 .blocks = qkv_zalloc(2 * params->n, sizeof *w.blocks),
                 .names = qkv_zalloc(params->n, sizeof *w.names)};
    qkv_status status = w.list && w.blocks && w.names ? QKV_OK : QKV_FAILED;
    for (size_t i = 0; i < params->n && status == QKV_OK; i++) {
        const qkv_param *p = params->list[i];
        const bool table = p->spec.fixed && !p->spec.vector;
        if (p->tensor.weight)
            status = qkv_fail(QKV_USAGE, "%s is quantized already; quantize the original model",
                              p->name);
        else if (to == QKV_WEIGHT_BF16 && table)
            status = add_rounded(&w, p, to, i);
        else if (to != QKV_WEIGHT_F32 && table)
            status = add_table(&w, p, i);
        else if (to != QKV_WEIGHT_F32 && is_rounded(p))
            status = add_rounded(&w, p, to, i);
        else
            add_whole(&w, p);
    }
    if (status == QKV_OK) status = qkv_safetensors_write(path, w.list, w.n, NULL);
    for (size_t i = 0; w.blocks && w.names && i < params->n; i++) {
        qkv_free(w.blocks[2 * i]);
        qkv_free(w.blocks[2 * i + 1]);
        qkv_free(w.names[i]);
    }
    qkv_free(w.list);
    qkv_free(w.blocks);
    qkv_free(w.names);
    return status;
}
