#include "ops/product.h"

#include <assert.h>

qkv_gemm qkv_product_of(qkv_block x, const qkv_tensor *w, const qkv_tensor *b, real *z) {
    return (qkv_gemm){.m = x.rows,
                      .n = w->rows,
                      .k = w->cols,
                      .a = x.data,
                      .lda = x.ld,
                      .b = w->data,
                      .ldb = w->ld,
                      .b_trans = true,
                      .b_packed = w->packed,
                      .weight = w->weight,
                      .bias = b ? b->data : NULL,
                      .c = z,
                      .ldc = w->rows};
}

qkv_gemm qkv_product_back(const real *dz, int64_t rows, const qkv_tensor *w, real *dx) {
    return (qkv_gemm){.m = rows,
                      .n = w->cols,
                      .k = w->rows,
                      .a = dz,
                      .lda = w->rows,
                      .b = w->data,
                      .ldb = w->ld,
                      .c = dx,
                      .ldc = w->cols};
}

bool qkv_product(qkv_tape *t, const qkv_op *op, qkv_gemm g) {
    if (qkv_tape_stopped(t)) return false;
    assert(g.a && g.c && (g.b || g.b_packed || g.weight));
    g.precision = (qkv_precision)t->precision;
    if (qkv_kern_get()->gemm(&g)) return true;
    qkv_tape_fail_below(t, op);
    return false;
}

bool qkv_product_forward(qkv_tape *t, const qkv_op *op, qkv_block x, const qkv_tensor *w,
                         const qkv_tensor *b, real *z) {
    qkv_rows_read(w, NULL, 0);
    return qkv_product(t, op, qkv_product_of(x, w, b, z));
}

void qkv_product_refuse_gradient(qkv_tape *t, const qkv_op *op) {
    qkv_tape_fail(t, op, QKV_USAGE, "quantized weights are for use, not for gradients");
}

bool qkv_product_grad_input(qkv_tape *t, const qkv_op *op, const real *dz, int64_t rows,
                            const qkv_tensor *w, qkv_target dx) {
    if (w->weight) {
        qkv_product_refuse_gradient(t, op);
        return false;
    }
    qkv_gemm g = qkv_product_back(dz, rows, w, dx.data);
    g.ldc = dx.ld;
    g.accumulate = dx.add;
    return qkv_product(t, op, g);
}

void qkv_product_grad_weights(qkv_tape *t, const qkv_op *op, const real *dz, qkv_block x,
                              qkv_tensor *w, qkv_tensor *b) {
    bool add;
    real *db = qkv_grad_add(t, b, NULL, 0), *dw = qkv_grad_write(t, w, &add);
    if (db && !dw) qkv_kern_get()->column_sums(dz, x.rows, w->rows, w->rows, db);
    if (!dw) return;
    assert(x.ld >= w->cols);
    qkv_gemm g = {.m = w->rows, .n = w->cols, .k = x.rows, .b = x.data, .ldb = x.ld};
    g.c = dw, g.ldc = w->ld;
    g.a = dz, g.lda = w->rows, g.a_trans = true, g.a_sums = db; /* which are read once for both */
    g.accumulate = add;
    qkv_product(t, op, g);
}

const real *qkv_product_pack(qkv_tape *t, const qkv_op *op, qkv_gemm g) {
    const qkv_kern *kern = qkv_kern_get();
    g.precision = (qkv_precision)t->precision;
    real *packed = qkv_tape_alloc(t, op, kern->gemm_pack_size(&g) * sizeof *packed);
    if (packed) kern->gemm_pack(&g, packed);
    return packed;
}
