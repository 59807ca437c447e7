/* The residual stream; see residual.h. */
#include "nn/residual.h"

#include <assert.h>
#include <string.h>

qkv_residual qkv_residual_begin(qkv_tape *t, bool pre_norm, qkv_tensor *x) {
    qkv_residual r = {.t = t, .pre_norm = pre_norm, .x = x};
    for (int i = 0; i < 2 && t->mode == QKV_EVAL && !qkv_tape_stopped(t); i++)
        r.turns[i] = qkv_tensor_new(t, x->rows, x->cols);
    return r;
}

qkv_tensor *qkv_residual_read(qkv_residual *r, const qkv_norm_layer *norm) {
    assert(!r->norm); /* every read is followed by an add */
    r->norm = norm;
    r->part = qkv_tape_here(r->t);
    if (!r->pre_norm) return r->x;
    if (!norm->gain) { /* of the first part alone */
        assert(!r->pending);
        return r->x;
    }
    qkv_tensor *const added = r->pending;
    qkv_tensor *y = qkv_norm_brief(r->t, norm, r->x, added, added ? &r->x : NULL);
    if (added && r->t->mode == QKV_EVAL && !qkv_tape_stopped(r->t)) {
        assert(r->x->data == added->data);
        r->x = added; /* the sum lies there, and outlives the part */
    }
    r->pending = NULL;
    return y;
}

/* EVAL: moves what the part has left to where it outlives the part, and gives back the rest. */
static void give_back_part(qkv_residual *r, qkv_tensor **left) {
    qkv_tensor *const to = r->turns[r->turn];
    assert((*left)->rows == to->rows && (*left)->cols == to->cols && qkv_is_packed(*left));
    memcpy(to->data, (*left)->data, (size_t)(to->rows * to->cols) * sizeof(real));
    *left = to;
    r->turn = !r->turn;
    qkv_tape_rewind(r->t, r->part);
}

void qkv_residual_add(qkv_residual *r, qkv_tensor *made) {
    assert(r->norm);
    qkv_tensor **const left = r->pre_norm ? &r->pending : &r->x;
    *left = r->pre_norm ? made : qkv_norm_apply(r->t, r->norm, r->x, made, NULL);
    r->norm = NULL;
    if (r->t->mode == QKV_EVAL && !qkv_tape_stopped(r->t)) give_back_part(r, left);
}

qkv_tensor *qkv_residual_end(qkv_residual *r, const qkv_norm_layer *last, bool read_once) {
    if (!r->pre_norm) return r->x;
    return (read_once ? qkv_norm_brief : qkv_norm_apply)(r->t, last, r->x, r->pending, NULL);
}
