/* Weights read where they lie in a mapped file: opening a model costs what its names cost, and
 * processes that use the same file share its memory. */
#include "base/half.h"
#include "base/mem.h"
#include "base/thread.h"
#include "kern/kern.h"
#include "model/weights.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

static qkv_status refuse(const qkv_param *p, const char *why) {
    return qkv_fail(QKV_BAD_FILE, "%s (%lld×%lld): %s", p->name, (long long)p->spec.rows,
                    (long long)p->spec.cols, why);
}

static bool has_shape(const qkv_stored *t, int64_t rows, int64_t cols) {
    return t->elements == rows * cols && t->shape[0] == rows;
}

/* Floats that no format of ours reads in place: a copy that the parameter owns. */
static qkv_status convert(qkv_param *p, const qkv_stored *from) {
    const size_t n = (size_t)from->elements;
    float *values = qkv_alloc(n * sizeof *values);
    p->own = qkv_alloc_aligned(n * sizeof *p->own);
    qkv_status status = values && p->own ? qkv_stored_to_float(from, values) : QKV_FAILED;
    for (size_t i = 0; status == QKV_OK && i < n; i++) p->own[i] = (real)values[i];
    qkv_free(values);
    qkv_param_bind(p, p->own);
    return status;
}

/* The scales beside an integer matrix. */
static qkv_status find_scale(const qkv_safetensors *file, const qkv_param *p, qkv_weight *w) {
    char name[512];
    snprintf(name, sizeof name, "%s.scale", p->name);
    const qkv_stored *scale = qkv_safetensors_find(file, name);
    if (!scale)
        return refuse(p,
                      "integers without their scales (a tensor of the same name and \".scale\")");
    const int64_t groups = qkv_weight_groups(w->format, w->cols);
    if (scale->dtype != QKV_DTYPE_F32 || !has_shape(scale, w->rows, groups) ||
        (uintptr_t)scale->data % sizeof(float))
        return refuse(p, "its scales have another type or shape than the matrix asks for");
    w->scale = scale->data;
    return QKV_OK;
}

/* A table of n-grams in 8 bits: floats again, in memory of its own. */
static qkv_status expand_table(const qkv_safetensors *file, qkv_param *p, const qkv_stored *from) {
    enum { BLOCK = QKV_TABLE_BLOCK };
    const int64_t n = p->spec.rows * p->spec.cols, blocks = (n + BLOCK - 1) / BLOCK;
    qkv_weight w = {.format = QKV_WEIGHT_INT8, .rows = blocks, .cols = BLOCK, .data = from->data};
    if (!has_shape(from, blocks, BLOCK)) return refuse(p, "another shape than the model wants");
    QKV_TRY(find_scale(file, p, &w));
    QKV_TRY_ALLOC(p->own = qkv_alloc_aligned((size_t)n * sizeof *p->own));
    const int8_t *q = w.data;
    QKV_PARALLEL_FOR
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t i = b * BLOCK; i < n && i < (b + 1) * BLOCK; i++)
            p->own[i] = (real)(w.scale[b] * (float)q[i]);
    qkv_param_bind(p, p->own);
    return QKV_OK;
}

static qkv_status bind_integers(const qkv_safetensors *file, qkv_param *p, const qkv_stored *from) {
    qkv_weight w = {.format = from->dtype == QKV_DTYPE_I8 ? QKV_WEIGHT_INT8 : QKV_WEIGHT_INT4,
                    .rows = p->spec.rows,
                    .cols = p->spec.cols,
                    .data = from->data};
    if (!has_shape(from, w.rows, qkv_weight_row_bytes(w.format, w.cols)))
        return refuse(p, "another shape than the model wants");
    if (w.cols > QKV_WEIGHT_COLS_MAX) return refuse(p, "rows too long for sums of integers");
    QKV_TRY(find_scale(file, p, &w));
    qkv_param_bind_weight(p, &w);
    return QKV_OK;
}

static qkv_status bind(const qkv_safetensors *file, qkv_param *p) {
    const qkv_stored *from = qkv_safetensors_find(file, p->name);
    if (!from) return qkv_fail(QKV_BAD_FILE, "there is no tensor %s", p->name);
    const bool integers = from->dtype == QKV_DTYPE_I8 || from->dtype == QKV_DTYPE_U8;
    if (p->spec.narrow && integers) return bind_integers(file, p, from);
    if (p->spec.fixed && from->dtype == QKV_DTYPE_I8) return expand_table(file, p, from);
    if (!has_shape(from, p->spec.vector ? p->spec.rows * p->spec.cols : p->spec.rows,
                   p->spec.vector ? 1 : p->spec.cols))
        return refuse(p, "another shape than the model wants");
    return qkv_weights_bind(p, from);
}

qkv_status qkv_weights_bind(qkv_param *p, const qkv_stored *from) {
    const uintptr_t place = (uintptr_t)from->data;
    if (p->spec.narrow && from->dtype == QKV_DTYPE_BF16 && place % sizeof(uint16_t) == 0) {
        qkv_param_bind_weight(p, &(qkv_weight){.format = QKV_WEIGHT_BF16,
                                               .rows = p->spec.rows,
                                               .cols = p->spec.cols,
                                               .data = from->data});
        return QKV_OK;
    }
    if (from->dtype != QKV_DTYPE_F32 || sizeof(real) != sizeof(float) || place % sizeof(float))
        return convert(p, from);
    qkv_param_bind(p, from->data);
    return QKV_OK;
}

/* ---- numbers ---- */

static int64_t first_bad_bf16(const uint16_t *x, int64_t n) {
    enum { BLOCK = 4096 }; /* a count over a block is a loop of whole vectors */
    for (int64_t b = 0; b < n; b += BLOCK) {
        const int64_t end = b + BLOCK < n ? b + BLOCK : n;
        int bad = 0;
        for (int64_t i = b; i < end; i++) bad += (x[i] & 0x7f80) == 0x7f80;
        if (!bad) continue;
        for (int64_t i = b; i < end; i++)
            if (!isfinite(qkv_bf16_value(x[i]))) return i;
    }
    return -1;
}

/* Where the first of n values (of a row of integers: of its scales) is not finite; −1: nowhere. */
static int64_t first_bad(const qkv_param *p, int64_t from, int64_t n) {
    const qkv_weight *w = p->tensor.weight;
    if (!w) return qkv_kern_get()->first_not_finite(p->tensor.data + from, n);
    if (w->format == QKV_WEIGHT_BF16) return first_bad_bf16((const uint16_t *)w->data + from, n);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(w->scale[from + i])) return i;
    return -1;
}

static qkv_status check_numbers(const qkv_param *p) {
    enum { PIECE = 1 << 16 };
    const qkv_weight *w = p->tensor.weight;
    /* Scales inside blocks are seen when they are used: whoever reads scores asks if they are
     * finite. */
    if (w && !qkv_weight_can_pack(w)) return QKV_OK;
    const bool scaled = w && qkv_weight_is_integer(w);
    const int64_t cols = scaled ? qkv_weight_groups(w->format, w->cols) : p->spec.cols,
                  all = p->spec.rows * cols, pieces = (all + PIECE - 1) / PIECE;
    int64_t bad = all;
    QKV_PRAGMA(omp parallel for schedule(static) num_threads(qkv_threads()) reduction(min : bad) \
                   if (all >= QKV_PARALLEL_FROM * 8))
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t from = i * PIECE, n = all - from < PIECE ? all - from : PIECE,
                      at = first_bad(p, from, n);
        if (at >= 0 && from + at < bad) bad = from + at;
    }
    if (bad == all) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE,
                    "%s%s: element [%lld, %lld] is NaN or infinite; the training that wrote it "
                    "diverged, or the file is damaged",
                    p->name, scaled ? ".scale" : "", (long long)(bad / cols),
                    (long long)(bad % cols));
}

/* A weight that is no number makes silent nonsense of answers: a maximum, as in ReLU, may swallow
 * it. One pass over what is mapped, at the speed of the memory. */
qkv_status qkv_weights_check(const qkv_params *params) {
    for (size_t i = 0; i < params->n; i++) QKV_TRY(check_numbers(params->list[i]));
    return QKV_OK;
}

qkv_status qkv_weights_map(qkv_params *params, const char *path, qkv_safetensors *file) {
    if (params->status != QKV_OK) return params->status;
    QKV_TRY(qkv_safetensors_open(path, file));
    for (size_t i = 0; i < params->n; i++) {
        const qkv_status status = bind(file, params->list[i]);
        if (status != QKV_OK) return qkv_fail_in(status, "%s", path);
    }
    return QKV_OK;
}

/* Reals of a quantized matrix, which the parameter owns. */
static qkv_status dequantize(qkv_param *p, const qkv_weight *w) {
    QKV_TRY_ALLOC(p->own = qkv_alloc_aligned((size_t)(w->rows * w->cols) * sizeof *p->own));
    for (int64_t i = 0; i < w->rows; i++) qkv_weight_row_value(w, i, 1, p->own + i * w->cols);
    qkv_param_bind(p, p->own);
    return QKV_OK;
}

qkv_status qkv_weights_plain(const qkv_params *from, qkv_params *to) {
    assert(from->n == to->n);
    for (size_t i = 0; i < to->n; i++) {
        const qkv_tensor *x = &from->list[i]->tensor;
        if (!x->weight)
            qkv_param_bind(to->list[i], x->data);
        else
            QKV_TRY(dequantize(to->list[i], x->weight));
    }
    return QKV_OK;
}
