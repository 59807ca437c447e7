/* Weights of another program by a family's rows: each row says which tensor is which rows of which
 * parameter. First all rows are laid out as pieces and every shape is compared; then the pieces are
 * bound or copied. A tensor that no row knows, or a parameter that no tensor fills, is refused by
 * name. */
#include "foreign/foreign_model.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Rows of a parameter that a tensor fills. */
typedef struct piece {
    qkv_param *to;
    const qkv_stored *from;
    int64_t first, rows, cols; /* of the parameter; a vector's elements are its rows */
    int64_t skip;              /* rows of the tensor before those */
    int64_t d_head;            /* of rows that lie head by head; else 0 */
    unsigned how;
} piece;

typedef struct plan {
    const qkv_foreign *f;
    qkv_container *c;
    qkv_params *params;
    qkv_config sizes;       /* of the file */
    bool whole, prefixed;   /* everything must be there and fit; names have the family's prefix */
    const qkv_stored *head; /* a map to the vocabulary that our model has not */
    QKV_VEC(piece) pieces;
} plan;

static int64_t rows_of(const qkv_param *p) {
    return p->spec.vector ? p->spec.rows * p->spec.cols : p->spec.rows;
}

/* Where a slice lies in its parameter. */
static void place(const qkv_config *c, qkv_slice slice, piece *p) {
    const int64_t q = c->heads * c->d_head, kv = c->kv_heads * c->d_head, all = rows_of(p->to);
    const struct {
        int64_t first, rows;
    } at[] = {[QKV_SLICE_ALL] = {0, all},       [QKV_SLICE_Q] = {0, q},
              [QKV_SLICE_K] = {q, kv},          [QKV_SLICE_V] = {q + kv, kv},
              [QKV_SLICE_FIRST] = {0, all / 2}, [QKV_SLICE_LAST] = {all / 2, all - all / 2}};
    p->first = at[slice].first;
    p->rows = at[slice].rows;
    p->cols = p->to->spec.vector ? 1 : p->to->spec.cols;
    p->d_head = p->how & QKV_TENSOR_BY_HEAD ? c->d_head : 0;
}

/* ---- names ---- */

/* A row's name for a layer, with or without the prefix, and a suffix. */
static void spell(const plan *p, const char *name, int layer, const char *suffix,
                  char out[QKV_NAME_BYTES]) {
    const char *prefix = "";
    if (*name == '~') {
        name++;
        if (p->prefixed) prefix = p->f->family->prefix;
    }
    const char *by_layer = strstr(name, "%d");
    if (by_layer)
        snprintf(out, QKV_NAME_BYTES, "%s%.*s%d%s%s", prefix, (int)(by_layer - name), name, layer,
                 by_layer + 2, suffix);
    else
        snprintf(out, QKV_NAME_BYTES, "%s%s%s", prefix, name, suffix);
}

/* The tensor of a name, or of the one that norms had before 2019. */
static qkv_foreign_tensor *look(const plan *p, const char *theirs, int layer, const char *suffix) {
    char name[QKV_NAME_BYTES];
    spell(p, theirs, layer, suffix, name);
    qkv_foreign_tensor *found = qkv_container_find(p->c, name);
    if (found || !*suffix) return found;
    spell(p, theirs, layer, !strcmp(suffix, ".weight") ? ".gamma" : ".beta", name);
    return qkv_container_find(p->c, name);
}

static bool is_prefixed(const plan *p) {
    const char *prefix = p->f->family->prefix;
    for (size_t i = 0; prefix && i < p->c->tensors.n; i++)
        if (!strncmp(p->c->tensors.at[i].stored.name, prefix, strlen(prefix))) return true;
    return false;
}

/* ---- laying out ---- */

/* A vector may be stored as one row; nothing else differs. */
static bool fits(const piece *p) {
    const qkv_stored *s = p->from;
    const int64_t rows = p->rows + p->skip;
    if (s->dtype > QKV_DTYPE_F64 || p->first + p->rows > rows_of(p->to)) return false;
    if (p->cols == 1 && p->to->spec.vector)
        return s->elements == rows && s->rank >= 1 && s->shape[s->rank - 1] == rows;
    const bool turned = p->how & QKV_TENSOR_TRANSPOSED;
    return s->rank == 2 && s->shape[turned] == rows && s->shape[!turned] == p->cols;
}

static qkv_status add_piece(plan *p, const qkv_tensor_rule *row, qkv_param *to, int layer,
                            const char *suffix) {
    qkv_foreign_tensor *t = look(p, row->theirs, layer, suffix);
    if (!t) {
        char name[QKV_NAME_BYTES];
        if (!p->whole || (row->how & (QKV_TENSOR_HEAD | QKV_TENSOR_EITHER))) return QKV_OK;
        spell(p, row->theirs, layer, suffix, name);
        return qkv_fail(QKV_BAD_FILE, "there is no tensor %s", name);
    }
    t->used = true;
    piece next = {.to = to, .from = &t->stored, .how = row->how};
    place(&p->sizes, row->slice, &next);
    if (row->how & QKV_TENSOR_SKIPS) next.skip = p->f->facts.skip;
    if (!fits(&next)) {
        if (!p->whole) return QKV_OK;
        return qkv_fail(QKV_BAD_FILE,
                        "the tensor %s has another shape or type than the configuration asks for: "
                        "%lld×%lld",
                        t->stored.name, (long long)(next.rows + next.skip), (long long)next.cols);
    }
    return QKV_PUSH(p->pieces, next) ? QKV_OK : QKV_FAILED;
}

/* A row's tensors that our model has no place for are of a head that the task does without, or mean
 * nothing. */
static void pass_over(plan *p, const qkv_tensor_rule *row, int layer, const char *suffix) {
    qkv_foreign_tensor *t = look(p, row->theirs, layer, suffix);
    if (!t || (row->ours && !(row->how & QKV_TENSOR_HEAD))) return;
    t->used = true;
    if (!row->ours || strcmp(suffix, ".bias") == 0) return;
    if (!strcmp(row->ours, "head") || !strcmp(row->ours, "head.weight")) p->head = &t->stored;
}

/* A map to the vocabulary that is there although it is tied must be the table that it is tied to. */
static qkv_status check_tied(const plan *p) {
    const qkv_config *c = &p->sizes;
    if (!p->whole || !p->head || !c->tie || qkv_shape_of(c->task).head != QKV_HEAD_VOCAB)
        return QKV_OK;
    for (size_t i = 0; i < p->pieces.n; i++) {
        const qkv_stored *s = p->pieces.at[i].from;
        if (s->dtype == p->head->dtype && s->bytes == p->head->bytes &&
            !memcmp(s->data, p->head->data, s->bytes))
            return QKV_OK;
    }
    return qkv_fail(QKV_BAD_FILE,
                    "the tensor %s is not the table of words, although config.json ties the two",
                    p->head->name);
}

/* One row with one suffix, for every layer. */
static qkv_status add_row(plan *p, const qkv_tensor_rule *row, const char *suffix) {
    const bool by_layer = strstr(row->theirs, "%d");
    const qkv_config *c = &p->sizes;
    const int64_t most =
        c->encoder_layers > c->decoder_layers ? c->encoder_layers : c->decoder_layers;
    for (int layer = 0; layer < (by_layer ? (int)most : 1); layer++) {
        char ours[QKV_NAME_BYTES];
        qkv_param *to = NULL;
        if (row->ours) {
            spell(p, row->ours, layer, suffix, ours);
            to = qkv_param_find(p->params, ours);
        }
        if (to)
            QKV_TRY(add_piece(p, row, to, layer, suffix));
        else
            pass_over(p, row, layer, suffix);
    }
    return QKV_OK;
}

/* How many rows of each parameter are filled must be all of them. */
static qkv_status check_filled(const plan *p) {
    for (size_t i = 0; i < p->params->n; i++) {
        const qkv_param *param = p->params->list[i];
        int64_t filled = 0;
        for (size_t k = 0; k < p->pieces.n; k++)
            if (p->pieces.at[k].to == param) filled += p->pieces.at[k].rows;
        if (filled == rows_of(param)) continue;
        return qkv_fail(QKV_BAD_FILE, "%s tensor gives %s (%lld×%lld)",
                        filled ? "more or less than one" : "no", param->name,
                        (long long)param->spec.rows, (long long)param->spec.cols);
    }
    return QKV_OK;
}

static qkv_status check_used(const plan *p) {
    for (size_t i = 0; i < p->c->tensors.n; i++)
        if (!p->c->tensors.at[i].used)
            return qkv_fail(
                QKV_BAD_FILE,
                "the tensor %.200s is not known for %s: a kind of model that is not read",
                p->c->tensors.at[i].stored.name, p->f->family->name);
    return QKV_OK;
}

static qkv_status lay_out(plan *p) {
    QKV_TRY(qkv_config_resolve(&p->f->config, &p->sizes));
    p->prefixed = is_prefixed(p);
    for (int t = 0; t < QKV_FAMILY_TABLES; t++)
        for (const qkv_tensor_rule *row = p->f->family->tensors[t]; row && row->theirs; row++) {
            if (row->how & QKV_TENSOR_BARE) {
                QKV_TRY(add_row(p, row, ""));
            } else {
                QKV_TRY(add_row(p, row, ".weight"));
                QKV_TRY(add_row(p, row, ".bias"));
            }
        }
    if (p->whole) QKV_TRY(check_filled(p));
    QKV_TRY(check_tied(p));
    return check_used(p);
}

/* ---- values ---- */

/* Where element `at` of a tensor goes among those of the piece's rows; −1: nowhere. */
static int64_t target(const piece *p, int64_t at) {
    const int64_t width = p->rows + p->skip;
    const bool turned = p->how & QKV_TENSOR_TRANSPOSED;
    int64_t row = (turned ? at % width : at / p->cols) - p->skip;
    const int64_t col = turned ? at / width : at % p->cols;
    if (p->d_head && row >= 0) { /* row (head, part, i) becomes (part, head, i) */
        const int64_t d = p->d_head, part = row / d % 3, head = row / (3 * d);
        row = part * (p->rows / 3) + head * d + row % d;
    }
    return row < 0 ? -1 : row * p->cols + col;
}

/* A piece's values to its rows of `to`, a whole parameter; its shape was compared before. */
static void copy(const piece *p, real *to) {
    enum { CHUNK = 4096 };
    const qkv_stored *s = p->from;
    const real plus = p->how & QKV_TENSOR_PLUS_ONE ? 1 : 0;
    const int64_t skip = p->skip * p->cols;
    const bool straight = !(p->how & QKV_TENSOR_TRANSPOSED) && !p->d_head;
    float values[CHUNK];
    to += p->first * p->cols;
    for (int64_t at = straight ? skip : 0; at < s->elements; at += CHUNK) {
        const int64_t some = s->elements - at < CHUNK ? s->elements - at : CHUNK;
        qkv_stored_range(s, at, some, values);
        for (int64_t i = 0; i < some; i++) {
            const int64_t k = straight ? at + i - skip : target(p, at + i);
            if (k >= 0) to[k] = (real)values[i] + plus;
        }
    }
}

static bool as_it_is(const piece *p) {
    return p->rows == rows_of(p->to) && !p->skip &&
           !(p->how & (QKV_TENSOR_TRANSPOSED | QKV_TENSOR_PLUS_ONE | QKV_TENSOR_BY_HEAD));
}

/* The pieces of a parameter that are not as we want them, copied together. */
static qkv_status bind_copy(const plan *p, qkv_param *param) {
    const int64_t n = param->spec.rows * param->spec.cols;
    if (!param->own) {
        QKV_TRY_ALLOC(param->own = qkv_alloc_aligned((size_t)n * sizeof *param->own));
        qkv_param_bind(param, param->own);
    }
    for (size_t i = 0; i < p->pieces.n; i++)
        if (p->pieces.at[i].to == param) copy(&p->pieces.at[i], param->own);
    return QKV_OK;
}

static void close_container(void *c) {
    qkv_container_close(c);
    qkv_free(c);
}

static qkv_status bind_all(const qkv_foreign *f, qkv_model *m, qkv_container *c) {
    plan p = {.f = f, .c = c, .params = qkv_model_params(m), .whole = true};
    qkv_status status = lay_out(&p);
    for (size_t i = 0; status == QKV_OK && i < p.pieces.n; i++) {
        const piece *one = &p.pieces.at[i];
        if (as_it_is(one)) /* a parameter of one piece */
            status = qkv_weights_bind(one->to, one->from);
        else if (!one->to->own)
            status = bind_copy(&p, one->to);
    }
    qkv_free(p.pieces.at);
    return status;
}

qkv_status qkv_foreign_bind(const qkv_foreign *f, qkv_model *m) {
    qkv_container *c = qkv_zalloc(1, sizeof *c);
    if (!c) return QKV_FAILED;
    qkv_status status = qkv_container_open(f->folder, c);
    if (status != QKV_OK) {
        qkv_free(c);
        return status;
    }
    qkv_model_keep(m, c, close_container);
    status = bind_all(f, m, c);
    return status == QKV_OK ? qkv_model_opened(m) : qkv_fail_in(status, "%s", f->folder);
}

/* ---- copies ---- */

static qkv_status fill_all(const qkv_foreign *f, qkv_params *params, qkv_container *c, bool *bf16) {
    plan p = {.f = f, .c = c, .params = params, .whole = true};
    qkv_status status = lay_out(&p);
    *bf16 = true;
    for (size_t i = 0; status == QKV_OK && i < p.pieces.n; i++) {
        const piece *one = &p.pieces.at[i];
        *bf16 &= one->from->dtype == QKV_DTYPE_BF16 || !one->to->spec.narrow;
        copy(one, one->to->tensor.data);
    }
    qkv_free(p.pieces.at);
    return status;
}

qkv_status qkv_foreign_fill(const qkv_foreign *f, qkv_params *params, bool *bf16) {
    qkv_container c;
    QKV_TRY(qkv_container_open(f->folder, &c));
    const qkv_status status = fill_all(f, params, &c, bf16);
    qkv_container_close(&c);
    return status == QKV_OK ? status : qkv_fail_in(status, "%s", f->folder);
}

static qkv_status take_all(const qkv_foreign *f, qkv_params *params, qkv_container *c,
                           qkv_weights_taken *out) {
    plan p = {.f = f, .c = c, .params = params};
    qkv_status status = lay_out(&p);
    for (size_t i = 0; status == QKV_OK && i < params->n; i++) {
        const qkv_param *param = params->list[i];
        int64_t filled = 0;
        for (size_t k = 0; k < p.pieces.n; k++)
            if (p.pieces.at[k].to == param) filled += p.pieces.at[k].rows;
        const bool whole = filled == rows_of(param);
        qkv_weights_note(out, param->name, whole);
        for (size_t k = 0; whole && k < p.pieces.n; k++)
            if (p.pieces.at[k].to == param) copy(&p.pieces.at[k], param->tensor.data);
    }
    qkv_free(p.pieces.at);
    return status;
}

qkv_status qkv_foreign_take(const qkv_foreign *f, qkv_params *params, qkv_weights_taken *out) {
    qkv_container c;
    *out = (qkv_weights_taken){0};
    QKV_TRY(qkv_container_open(f->folder, &c));
    const qkv_status status = take_all(f, params, &c, out);
    qkv_container_close(&c);
    return status == QKV_OK ? out->fresh_names.status : qkv_fail_in(status, "%s", f->folder);
}
