/* The optimisers and what they share: moments, the global norm, clipping, rows that are behind.
 *
 * Parameters are cut into chunks of whole rows, by their shapes alone; a chunk is the item of
 * parallel work and of the norm's partial sums. Both run row by row in a table, so that a sparse
 * table, of which only the touched rows are visited, gives the sums and the bits of a dense one: an
 * untouched row adds +0 to the norm, and its update with a zero gradient is made later, in order,
 * by the same kernel. */
#include "train/optim.h"
#include "base/mem.h"
#include "base/thread.h"
#include "kern/kern.h"
#include "train/muon.h"
#include "base/parallel.h"

#include <math.h>
#include <string.h>

enum {
    CHUNK = 16384,  /* elements, about: 256 KiB of w, g, m, v stay in the cache of a core */
    HISTORY = 4096, /* steps that a row may be behind before all are brought up to date */
};

typedef struct qkv_chunk {
    size_t param;
    int64_t row, rows;
} chunk;

/* One elementwise update of n values at `at` of the flat arrays, all of one parameter. */
typedef struct update {
    int64_t at, n;
    const real *g;
    double lr, decay, g_scale;
    int64_t step;
} update;

static void adam_step(const qkv_optim *o, const update *u, double decay_w, double decay_g) {
    qkv_kern_get()->adam(&(qkv_adam){.n = u->n,
                                     .w = o->params->values + u->at,
                                     .g = u->g,
                                     .m = o->m + u->at,
                                     .v = o->v + u->at,
                                     .g_scale = u->g_scale,
                                     .lr = u->lr,
                                     .beta1 = o->spec.beta1,
                                     .beta2 = o->spec.beta2,
                                     .eps = o->spec.eps,
                                     .decay_w = decay_w,
                                     .decay_g = decay_g,
                                     .step = u->step});
}

static void adamw(const qkv_optim *o, const update *u) {
    adam_step(o, u, u->decay, 0);
}

static void adam(const qkv_optim *o, const update *u) {
    adam_step(o, u, 0, u->decay);
}

static void sgd(const qkv_optim *o, const update *u) {
    qkv_kern_get()->sgd(&(qkv_sgd){.n = u->n,
                                   .w = o->params->values + u->at,
                                   .g = u->g,
                                   .m = o->m + u->at,
                                   .g_scale = u->g_scale,
                                   .lr = u->lr,
                                   .momentum = o->spec.momentum,
                                   .decay = u->decay,
                                   .nesterov = o->spec.nesterov});
}

static const struct optim_row {
    void (*run)(const qkv_optim *o, const update *u);
    bool has_v, muon;
    qkv_optim_spec defaults;
} table[QKV_OPTIM_COUNT] = {
    [QKV_OPTIM_ADAMW] = {adamw,
                         true,
                         false,
                         {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01}},
    [QKV_OPTIM_ADAM] = {adam, true, false, {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    [QKV_OPTIM_SGD] = {sgd, false, false, {.momentum = 0.9}},
    [QKV_OPTIM_MUON] = {adamw,
                        true,
                        true,
                        {.beta1 = 0.9,
                         .beta2 = 0.999,
                         .eps = 1e-8,
                         .momentum = 0.95,
                         .nesterov = true,
                         .decay = 0.01,
                         .muon_lr_scale = 1}},
};

const char *qkv_optim_name(qkv_optim_kind kind) {
    static const char *const names[] = {
#define OPTIM(id, name) #name,
#include "train/optim.def"
#undef OPTIM
    };
    return names[kind];
}

qkv_optim_spec qkv_optim_defaults(qkv_optim_kind kind) {
    qkv_optim_spec spec = table[kind].defaults;
    spec.kind = kind;
    return spec;
}

/* ---- rows that are behind ---- */

static double lr_factor(const qkv_optim *o, size_t param) {
    return o->lr_scale ? o->lr_scale[param] : 1;
}

static double decay_of(const qkv_optim *o, const qkv_param *p) {
    return p->spec.no_decay ? 0 : o->spec.decay;
}

/* Would updates without gradient leave this row as it is? (So of rows that no batch has touched
 * yet.) */
static bool at_rest(const qkv_optim *o, const qkv_param *p, int64_t at) {
    const size_t bytes = (size_t)p->spec.cols * sizeof(real);
    return decay_of(o, p) == 0 && memcmp(o->m + at, o->zeros, bytes) == 0 &&
           (!o->v || memcmp(o->v + at, o->zeros, bytes) == 0);
}

/* The average of weights [at, at + n) after update `step`: e ← e + (1 − d)(w − e). The decay d
 * rises to its value, so that the first steps, which nobody wants to keep, are soon forgotten. */
static void average(const qkv_optim *o, int64_t at, int64_t n, int64_t step) {
    if (!o->ema) return;
    const double early = (1 + (double)step) / (10 + (double)step);
    const real share = (real)(1 - (early < o->spec.ema ? early : o->spec.ema));
    const real *restrict w = o->params->values + at;
    real *restrict e = o->ema + at;
    for (int64_t i = 0; i < n; i++) e[i] += share * (w[i] - e[i]);
}

static bool average_at_rest(const qkv_optim *o, int64_t at, int64_t n) {
    return !o->ema || memcmp(o->ema + at, o->params->values + at, (size_t)n * sizeof(real)) == 0;
}

/* Replays the steps that a row missed. */
static void catch_up(const qkv_optim *o, size_t param, int64_t row, int64_t to) {
    int64_t *const current = &o->row_step[param][row];
    if (*current >= to) return;
    const qkv_param *p = o->params->list[param];
    const int64_t at = p->offset + row * p->spec.cols;
    const double factor = lr_factor(o, param);
    const bool still = factor == 0 || at_rest(o, p, at);
    if (!still || !average_at_rest(o, at, p->spec.cols))
        for (int64_t s = *current + 1; s <= to; s++) {
            const double lr = factor * o->lr_history[s - o->history_base - 1];
            if (!still)
                table[o->spec.kind].run(o, &(update){.at = at,
                                                     .n = p->spec.cols,
                                                     .g = o->zeros,
                                                     .lr = lr,
                                                     .decay = decay_of(o, p),
                                                     .g_scale = 1,
                                                     .step = s});
            average(o, at, p->spec.cols, s);
        }
    *current = to;
}

typedef struct qkv_keeper {
    qkv_optim *optim;
    size_t param;
} keeper;

static void before_read(void *owner, const int32_t *ids, int64_t n) {
    const keeper *k = owner;
    qkv_optim *o = k->optim;
    if (o->history_base == o->step) return;
    /* A row belongs to the part that its number names, so repeated ids are no race. */
    enum { PARTS = 64 };
    QKV_PARALLEL_FOR_UNEVEN_IF(n >= 256)
    for (int part = 0; part < PARTS; part++)
        for (int64_t i = 0; i < n; i++)
            if (ids[i] % PARTS == part) catch_up(o, k->param, ids[i], o->step);
}

void qkv_optim_settle(qkv_optim *o) {
    if (o->ema) qkv_parallel_gather(o->ema, sizeof *o->ema, o->cut);
    if (o->history_base == o->step) return;
    QKV_PARALLEL_FOR_UNEVEN_IF(o->params->length >= QKV_PARALLEL_FROM)
    for (int64_t c = 0; c < o->n_chunks; c++) {
        const chunk *k = &o->chunks[c];
        if (!o->row_step[k->param]) continue;
        for (int64_t row = k->row; row < k->row + k->rows; row++)
            catch_up(o, k->param, row, o->step);
    }
    o->history_base = o->step;
}

void qkv_optim_restored(qkv_optim *o, int64_t step) {
    o->step = o->history_base = step;
    for (size_t i = 0; i < o->params->n; i++)
        for (int64_t row = 0; o->row_step[i] && row < o->params->list[i]->spec.rows; row++)
            o->row_step[i][row] = step;
}

void qkv_optim_collect(qkv_optim *o) {
    qkv_parallel_collect(o->m, sizeof *o->m, o->cut);
    if (o->v) qkv_parallel_collect(o->v, sizeof *o->v, o->cut);
}

void qkv_optim_release(qkv_optim *o) {
    qkv_parallel_release(o->m, o->cut);
    qkv_parallel_release(o->v, o->cut);
}

/* ---- making one ---- */

static int64_t chunk_rows(const qkv_param_spec *p) {
    return p->cols >= CHUNK ? 1 : CHUNK / p->cols;
}

/* Cuts the parameters; with chunks NULL only counts. */
static int64_t cut(const qkv_params *params, chunk *chunks) {
    int64_t n = 0;
    for (size_t i = 0; i < params->n; i++) {
        const qkv_param_spec *p = &params->list[i]->spec;
        const int64_t step = chunk_rows(p);
        if (p->fixed) continue;
        for (int64_t row = 0; row < p->rows; row += step, n++)
            if (chunks) chunks[n] = (chunk){i, row, p->rows - row < step ? p->rows - row : step};
    }
    return n;
}

static bool is_muon(const qkv_optim *o, size_t param) {
    return o->muon && qkv_muon_takes(&o->params->list[param]->spec);
}

static int64_t chunk_offset(const qkv_optim *o, int64_t c) {
    if (c == o->n_chunks) return o->params->length;
    const qkv_param *p = o->params->list[o->chunks[c].param];
    return p->offset + o->chunks[c].row * p->spec.cols;
}

/* Deals the chunks out to the ranks: about as many elements to each, and Muon's matrices whole. */
static qkv_status share_out(qkv_optim *o) {
    const int size = qkv_parallel_size();
    QKV_TRY_ALLOC(o->chunk_cut = qkv_zalloc((size_t)size + 1, sizeof *o->chunk_cut));
    QKV_TRY_ALLOC(o->cut = qkv_zalloc((size_t)size + 1, sizeof *o->cut));
    int64_t c = 0;
    for (int r = 1; r <= size; r++) {
        const int64_t wanted = o->params->length / size * r;
        while (c < o->n_chunks && (r == size || chunk_offset(o, c) < wanted ||
                                   (o->chunks[c].row > 0 && is_muon(o, o->chunks[c].param))))
            c++;
        o->chunk_cut[r] = c;
        o->cut[r] = chunk_offset(o, c);
    }
    return QKV_OK;
}

/* This rank's chunks. */
static int64_t first_chunk(const qkv_optim *o) {
    return o->chunk_cut[qkv_parallel_rank()];
}
static int64_t end_chunk(const qkv_optim *o) {
    return o->chunk_cut[qkv_parallel_rank() + 1];
}

static qkv_status allocate(qkv_optim *o) {
    const qkv_params *params = o->params;
    const size_t bytes = (size_t)params->length * sizeof(real);
    int64_t widest = 1;
    o->n_chunks = cut(params, NULL);
    QKV_TRY_ALLOC(o->m = qkv_alloc_aligned(bytes));
    memset(o->m, 0, bytes);
    if (table[o->spec.kind].has_v) {
        QKV_TRY_ALLOC(o->v = qkv_alloc_aligned(bytes));
        memset(o->v, 0, bytes);
    }
    if (o->spec.ema > 0) {
        QKV_TRY_ALLOC(o->ema = qkv_alloc_aligned(bytes));
        memcpy(o->ema, params->values, bytes);
    }
    QKV_TRY_ALLOC(o->lr_history = qkv_zalloc(HISTORY, sizeof *o->lr_history));
    QKV_TRY_ALLOC(o->row_step = qkv_zalloc(params->n, sizeof *o->row_step));
    QKV_TRY_ALLOC(o->keepers = qkv_zalloc(params->n, sizeof *o->keepers));
    QKV_TRY_ALLOC(o->chunks = qkv_zalloc((size_t)o->n_chunks, sizeof *o->chunks));
    QKV_TRY_ALLOC(o->partial = qkv_zalloc((size_t)o->n_chunks, sizeof *o->partial));
    for (size_t i = 0; i < params->n; i++) {
        const qkv_param_spec *p = &params->list[i]->spec;
        if (!p->sparse) continue;
        if (p->cols > widest) widest = p->cols;
        QKV_TRY_ALLOC(o->row_step[i] = qkv_zalloc((size_t)p->rows, sizeof **o->row_step));
        o->keepers[i] = (keeper){o, i};
        params->list[i]->touched.before_read = before_read;
        params->list[i]->touched.keeper = &o->keepers[i];
    }
    QKV_TRY_ALLOC(o->zeros = qkv_zalloc((size_t)widest, sizeof *o->zeros));
    cut(params, o->chunks);
    if (table[o->spec.kind].muon) QKV_TRY(qkv_muon_new(params, &o->muon));
    QKV_TRY(share_out(o));
    qkv_optim_release(o);
    return QKV_OK;
}

qkv_status qkv_optim_init(qkv_optim *o, qkv_params *params, const qkv_optim_spec *spec) {
    *o = (qkv_optim){.spec = *spec, .params = params};
    if (!params->values || !params->grads)
        return qkv_fail(QKV_USAGE, "optimiser: the parameters have no values or no gradients yet; "
                                   "allocate them for training first");
    qkv_status status = allocate(o);
    if (status != QKV_OK) qkv_optim_free(o);
    return status;
}

void qkv_optim_free(qkv_optim *o) {
    for (size_t i = 0; o->row_step && i < o->params->n; i++) {
        qkv_free(o->row_step[i]);
        o->params->list[i]->touched.before_read = NULL;
    }
    qkv_free(o->row_step);
    qkv_free(o->keepers);
    qkv_free(o->m);
    qkv_free(o->v);
    qkv_free(o->ema);
    qkv_free(o->lr_history);
    qkv_free(o->chunks);
    qkv_free(o->partial);
    qkv_free(o->chunk_cut);
    qkv_free(o->cut);
    qkv_free(o->zeros);
    qkv_muon_free(o->muon);
    *o = (qkv_optim){0};
}

/* ---- the norm ---- */

static bool untouched(const qkv_param *p, int64_t row) {
    return p->spec.sparse && !p->touched.seen[row];
}

double qkv_optim_grad_norm(const qkv_optim *o) {
    QKV_PARALLEL_FOR_UNEVEN_IF(o->params->length >= QKV_PARALLEL_FROM)
    for (int64_t c = first_chunk(o); c < end_chunk(o); c++) {
        const chunk *k = &o->chunks[c];
        const qkv_param *p = o->params->list[k->param];
        const real *g = o->params->grads + p->offset;
        double sum = 0;
        for (int64_t row = k->row; row < k->row + k->rows; row++)
            if (!untouched(p, row))
                sum += qkv_kern_get()->sum_squares(g + row * p->spec.cols, p->spec.cols);
        o->partial[c] = lr_factor(o, k->param) == 0 ? 0 : sum;
    }
    qkv_parallel_gather(o->partial, sizeof *o->partial, o->chunk_cut);
    double total = 0;
    for (int64_t c = 0; c < o->n_chunks; c++) total += o->partial[c];
    return sqrt(total);
}

/* Names the first element that is not finite. */
static qkv_status refuse(const qkv_optim *o) {
    for (int64_t c = 0; c < o->n_chunks; c++) {
        const chunk *k = &o->chunks[c];
        const qkv_param *p = o->params->list[k->param];
        for (int64_t row = k->row; row < k->row + k->rows; row++) {
            const real *g = o->params->grads + p->offset + row * p->spec.cols;
            int64_t col =
                untouched(p, row) ? -1 : qkv_kern_get()->first_not_finite(g, p->spec.cols);
            if (col >= 0)
                return qkv_fail(QKV_NUMERIC, "the gradient of %s is %g at [%lld, %lld]", p->name,
                                (double)g[col], (long long)row, (long long)col);
        }
    }
    return qkv_fail(QKV_NUMERIC, "the norm of the gradient is not finite");
}

/* ---- a step ---- */

/* Updates one chunk and zeroes its gradient while it is in the cache. */
static void update_chunk(const qkv_optim *o, const chunk *k, double lr, double g_scale) {
    const qkv_param *p = o->params->list[k->param];
    const int64_t cols = p->spec.cols;
    const bool by_row = p->spec.sparse;
    const double factor = lr_factor(o, k->param);
    for (int64_t row = k->row; row < k->row + k->rows; row += by_row ? 1 : k->rows) {
        if (untouched(p, row)) continue;
        const int64_t at = p->offset + row * cols, n = by_row ? cols : k->rows * cols;
        real *g = o->params->grads + at;
        if (by_row) {
            catch_up(o, k->param, row, o->step - 1);
            o->row_step[k->param][row] = o->step;
            p->touched.seen[row] = 0;
        }
        if (factor != 0)
            table[o->spec.kind].run(o, &(update){.at = at,
                                                 .n = n,
                                                 .g = g,
                                                 .lr = lr * factor,
                                                 .decay = decay_of(o, p),
                                                 .g_scale = g_scale,
                                                 .step = o->step});
        average(o, at, n, o->step);
        memset(g, 0, (size_t)n * sizeof *g);
    }
}

/* The matrices, one after another: their products use all threads themselves. */
static qkv_status update_matrices(qkv_optim *o, double lr, double g_scale) {
    const qkv_optim_spec *s = &o->spec;
    for (size_t i = 0; i < o->params->n; i++) {
        const qkv_param *p = o->params->list[i];
        const int rank = qkv_parallel_rank();
        if (!is_muon(o, i) || p->offset < o->cut[rank] || p->offset >= o->cut[rank + 1]) continue;
        const qkv_muon_step step = {.lr = lr * lr_factor(o, i),
                                    .lr_scale = s->muon_lr_scale ? s->muon_lr_scale : 1,
                                    .momentum = s->momentum,
                                    .decay = decay_of(o, p),
                                    .g_scale = g_scale,
                                    .nesterov = s->nesterov,
                                    .precision = s->precision};
        real *g = o->params->grads + p->offset;
        if (lr_factor(o, i) != 0 &&
            !qkv_muon_update(o->muon, &p->spec, o->params->values + p->offset, g, o->m + p->offset,
                             &step))
            return qkv_fail_in(QKV_FAILED, "muon: %s", p->name);
        average(o, p->offset, p->spec.rows * p->spec.cols, o->step);
        memset(g, 0, (size_t)(p->spec.rows * p->spec.cols) * sizeof *g);
    }
    return QKV_OK;
}

qkv_status qkv_optim_step(qkv_optim *o, qkv_update *u) {
    const double scale = u->grad_scale ? u->grad_scale : 1;
    if (!qkv_parallel_reduce(o->params->grads, o->cut)) return QKV_FAILED;
    u->norm = scale * qkv_optim_grad_norm(o);
    if (!isfinite(u->norm)) return refuse(o);
    if (u->limit > 0 && u->norm > u->limit)
        return qkv_fail(QKV_NUMERIC, "the norm of the gradient is %.3g, over the limit of %.3g",
                        u->norm, u->limit);
    if (o->step - o->history_base == HISTORY) qkv_optim_settle(o);
    const double g_scale = u->clip > 0 && u->norm > u->clip ? scale * (u->clip / u->norm) : scale;
    o->lr_history[o->step - o->history_base] = u->lr;
    o->step++;
    QKV_PARALLEL_FOR_UNEVEN_IF(o->params->length >= QKV_PARALLEL_FROM)
    for (int64_t c = first_chunk(o); c < end_chunk(o); c++)
        if (!is_muon(o, o->chunks[c].param)) update_chunk(o, &o->chunks[c], u->lr, g_scale);
    for (size_t i = 0; i < o->params->n; i++) o->params->list[i]->touched.n = 0;
    const qkv_status status = o->muon ? update_matrices(o, u->lr, g_scale) : QKV_OK;
    qkv_parallel_gather(o->params->values, sizeof *o->params->values, o->cut);
    return status;
}
