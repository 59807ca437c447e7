/* What each word adds to the encoder's part of the lead F, by integrated gradients (Sundararajan et
 * al. 2017). The embeddings x of the text's tokens are reached on a straight line from others, x⁰,
 * that say nothing:
 *
 *     a_i = Σ_d (x_id − x⁰_id) ∫₀¹ ∂F/∂x_id (x⁰ + α(x − x⁰)) dα,     Σ_i a_i = F(x) − F(x⁰)
 *
 * The sum (completeness) holds exactly for the integral, and tells how good a quadrature is without
 * knowing the truth: on any stretch [α, β] the parts must sum to F(β) − F(α). So a stretch is
 * integrated with eight points (Gauss-Legendre: exact up to degree 15), and while the sum of all is
 * off by more than the tolerance the stretch whose sum is worst is halved: networks bend most near
 * one end, and points go where they are needed.
 *
 * Where the path begins. Tokens that stand for some of the text begin at zeros: an embedding
 * without any content, at its place (positions and segments are added to it, and stay). Marks that
 * the tokenizer or the task puts around a text are in every text and stay as they are. The unknown
 * token's embedding would be a word's like others, and is never trained where all bytes are known.
 *
 * Occlusion, to check it by: F(x) − F(x without the word), whose tokens are at x⁰ then. It needs no
 * derivative, but two words that say the same hide each other, and nothing sums to F(x).
 *
 * The model is read only: its parameters want no gradient, the embeddings that are handed in do. */
#include "use/explain.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum {
    POINTS = 8, /* of a stretch */
    /* tokens run at once, which bound the memory: of large models, of small ones; and their numbers
     * (a layer's activations are some twenty times as many) */
    FEW_ROWS = 512,
    MANY_ROWS = 8192,
    NUMBERS = 1 << 21,
    /* gradients, which bound the time: of long texts, of short ones; and tokens of all passes */
    FEW_PASSES = 1024,
    MANY_PASSES = 8192,
    PASSED_TOKENS = 1 << 19
};

/* Gauss-Legendre on [−1, 1]: the points above 0, which is their middle, and their weights. */
static const double points[POINTS / 2] = {0.1834346424956498, 0.5255324099163290,
                                          0.7966664774136267, 0.9602898564975363};
static const double weights[POINTS / 2] = {0.3626837833783620, 0.3137066458778873,
                                           0.2223810344533745, 0.1012285362903763};

typedef struct path {
    qkv_explaining *x;
    const qkv_explained *what;
    qkv_explain_path *spec;
    int64_t len, width; /* tokens; numbers of an embedding */
    real *from, *by;    /* (len, width): where it begins, and the way to the text's */
    real *at;           /* (copies, len, width): where copies of the text are */
    int32_t copies;     /* that are run at once */
} path;

/* ---- a batch of copies of the text, each with embeddings of its own ---- */

static void place(path *p, int32_t copy, double alpha) {
    real *at = p->at + copy * p->len * p->width;
    for (int64_t i = 0; i < p->len * p->width; i++) at[i] = p->from[i] + (real)alpha * p->by[i];
}

/* All copies have the columns of the one text. */
static void repeat_columns(qkv_tape *t, int32_t n, qkv_tokens *batch) {
    for (int c = 0; c < QKV_COLUMNS; c++) {
        if (!batch->column[c]) continue;
        qkv_cells *cells = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *cells);
        for (int32_t k = 0; k < n && cells; k++) cells[k] = batch->column[c][0];
        batch->column[c] = cells;
    }
}

static qkv_tokens lay_out(path *p, int32_t n) {
    qkv_tape *t = p->x->tape;
    const int64_t rows = n * p->len;
    int32_t *start = qkv_tape_alloc(t, NULL, ((size_t)n + 1) * sizeof *start);
    int32_t *ids = qkv_tape_alloc(t, NULL, (size_t)rows * sizeof *ids);
    if (!start || !ids) return (qkv_tokens){0};
    for (int32_t k = 0; k <= n; k++) start[k] = k * (int32_t)p->len;
    for (int64_t i = 0; i < rows; i++) ids[i] = (int32_t)i;
    qkv_tokens batch = {.layout = {.n = 1, .start = start},
                        .ids = ids,
                        .table = qkv_tensor_wrap(t, p->at, rows, p->width),
                        .rows = p->len};
    const qkv_use_texts text = {&p->x->text, p->x->given.at ? &p->x->given : NULL};
    if (qkv_texts_columns(t, p->x->m, text, &p->x->e, &batch) != QKV_OK)
        qkv_tape_fail_below(t, NULL);
    repeat_columns(t, n, &batch);
    batch.layout.n = n;
    batch.rows = rows;
    return batch;
}

/* The leads of n copies (1, n). */
static qkv_tensor *leads(path *p, int32_t n, const qkv_tokens *batch) {
    qkv_tape *t = p->x->tape;
    const qkv_explained *what = p->what;
    if (qkv_tape_stopped(t)) return &t->nothing;
    qkv_tensor *y;
    if (what->token < 0) {
        y = qkv_model_encoder_logits(t, p->x->plain, batch);
    } else {
        int32_t *rows = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *rows);
        for (int32_t k = 0; k < n && rows; k++)
            rows[k] = batch->layout.start[k] + (int32_t)what->token;
        y = qkv_model_tag(t, p->x->plain, batch, rows, n);
    }
    real *sign = qkv_tape_alloc(t, NULL, (size_t)y->cols * sizeof *sign);
    if (!sign || qkv_tape_stopped(t)) return &t->nothing;
    memset(sign, 0, (size_t)y->cols * sizeof *sign);
    sign[what->plus] = (real)(p->spec->factor * what->scale);
    if (what->minus >= 0) sign[what->minus] = -sign[what->plus];
    y = qkv_linear(t, y, qkv_tensor_wrap(t, sign, 1, y->cols), NULL, QKV_ACT_NONE);
    return qkv_tensor_reshape(t, y, 1, n);
}

static qkv_status values(path *p, int32_t n, double *out) {
    qkv_tape_begin(p->x->tape, QKV_EVAL, 0, 0);
    const qkv_tokens batch = lay_out(p, n);
    const qkv_tensor *y = leads(p, n, &batch);
    QKV_TRY(qkv_tape_status(p->x->tape));
    for (int32_t k = 0; k < n; k++) out[k] = (double)y->data[k];
    return QKV_OK;
}

/* Adds to `part`, by token, what the n copies' gradients say, each with its weight. */
static qkv_status add_gradients(path *p, int32_t n, real *weight, double *part) {
    qkv_tape *t = p->x->tape;
    qkv_tape_begin(t, QKV_TRACE, 0, 0);
    const qkv_tokens batch = lay_out(p, n);
    QKV_TRY(qkv_tape_status(t));
    batch.table->wants_grad = true;
    qkv_tensor *y = leads(p, n, &batch);
    QKV_TRY(qkv_tape_status(t));
    qkv_tensor *sum = qkv_linear(t, y, qkv_tensor_wrap(t, weight, 1, n), NULL, QKV_ACT_NONE);
    QKV_TRY(qkv_tape_backward(t, &sum, 1));
    const real *g = batch.table->grad;
    for (int64_t i = 0; i < n * p->len; i++) {
        const real *by = p->by + i % p->len * p->width;
        double a = 0;
        for (int64_t d = 0; d < p->width; d++) a += (double)(*g++ * by[d]);
        part[i % p->len] += a;
    }
    p->spec->passes += n;
    return QKV_OK;
}

/* ---- stretches ---- */

typedef struct stretch {
    double from, to, f_from, f_to;
    double *part; /* len: the integral, by token */
    double error; /* what its sum lacks of f_to − f_from */
} stretch;

typedef QKV_VEC(stretch) stretches;

static qkv_status integrate(path *p, stretch *s) {
    const double middle = (s->from + s->to) / 2, half = (s->to - s->from) / 2;
    memset(s->part, 0, (size_t)p->len * sizeof *s->part);
    for (int first = 0; first < POINTS; first += p->copies) {
        real weight[POINTS];
        int32_t n = 0;
        for (int i = first; i < POINTS && n < p->copies; i++, n++) {
            const int side = i < POINTS / 2 ? -1 : 1, k = i % (POINTS / 2);
            weight[n] = (real)(half * weights[k]);
            place(p, n, middle + side * half * points[k]);
        }
        QKV_TRY(add_gradients(p, n, weight, s->part));
    }
    s->error = s->f_to - s->f_from;
    for (int64_t i = 0; i < p->len; i++) s->error -= s->part[i];
    return QKV_OK;
}

static qkv_status add_stretch(path *p, stretches *all, stretch s) {
    s.part = qkv_arena_alloc(&p->x->memory, (size_t)p->len * sizeof *s.part);
    if (!s.part) return QKV_FAILED;
    QKV_TRY(integrate(p, &s));
    return QKV_PUSH(*all, s) ? QKV_OK : QKV_FAILED;
}

static qkv_status halve(path *p, stretches *all, size_t i) {
    stretch *lower = &all->at[i], upper = *lower;
    lower->to = upper.from = (upper.from + upper.to) / 2;
    place(p, 0, upper.from);
    QKV_TRY(values(p, 1, &upper.f_from));
    lower->f_to = upper.f_from;
    QKV_TRY(integrate(p, lower));
    return add_stretch(p, all, upper);
}

/* Is what all stretches lack little enough, and not only since large errors cancel? *worst is the
 * one to halve. */
static bool good(const stretches *all, double tolerance, size_t *worst) {
    double sum = 0, size = 0;
    *worst = 0;
    for (size_t i = 0; i < all->n; i++) {
        sum += all->at[i].error;
        size += fabs(all->at[i].error);
        if (fabs(all->at[i].error) > fabs(all->at[*worst].error)) *worst = i;
    }
    return fabs(sum) <= tolerance && size <= 4 * tolerance;
}

/* Half of a hundredth of what the parts are compared with, but not less than floats can tell. */
static double tolerance_of(const qkv_explain_path *s, double scale) {
    const double added = s->end - s->start + s->others;
    return fmax(0.005 * fmin(fabs(s->lead), fabs(added)), 1e-5 * fmax(scale, fabs(s->end)));
}

static int64_t most_passes(const path *p) {
    const int64_t n = PASSED_TOKENS / p->len;
    return n < FEW_PASSES ? FEW_PASSES : n > MANY_PASSES ? MANY_PASSES : n;
}

static qkv_status integrate_all(path *p, stretches *all) {
    const double tolerance = tolerance_of(p->spec, p->what->scale);
    const int64_t most = most_passes(p);
    size_t worst;
    QKV_TRY(add_stretch(p, all, (stretch){0, 1, p->spec->start, p->spec->end, NULL, 0}));
    while (!good(all, tolerance, &worst) && p->spec->passes < most) QKV_TRY(halve(p, all, worst));
    return QKV_OK;
}

static qkv_status by_gradients(path *p) {
    const qkv_explaining *x = p->x;
    stretches all = {0};
    const qkv_status status = integrate_all(p, &all);
    for (int64_t i = 0; i < p->len && status == QKV_OK; i++) {
        double total = 0;
        for (size_t k = 0; k < all.n; k++) total += all.at[k].part[i];
        qkv_explain_share(x, x->encoder, x->e.begin[i], x->e.end[i], total);
    }
    qkv_free(all.at);
    return status;
}

/* ---- occlusion ---- */

/* Copy k is the text without word w; false: the word has no token that the model reads. */
static bool hide(path *p, int32_t k, const qkv_text_word *w) {
    const qkv_encoding *e = &p->x->e;
    bool any = false;
    place(p, k, 1);
    for (int64_t i = 0; i < p->len; i++) {
        if (e->begin[i] >= w->end || e->end[i] <= w->begin) continue;
        const size_t row = (size_t)(i * p->width);
        memcpy(p->at + (size_t)k * (size_t)(p->len * p->width) + row, p->from + row,
               (size_t)p->width * sizeof *p->at);
        any = true;
    }
    return any;
}

static qkv_status by_occlusion(path *p) {
    qkv_explaining *x = p->x;
    size_t *word = qkv_arena_alloc(&x->memory, (size_t)p->copies * sizeof *word);
    double *left = qkv_arena_alloc(&x->memory, (size_t)p->copies * sizeof *left);
    if (!word || !left) return QKV_FAILED;
    int32_t n = 0;
    for (size_t w = 0; w <= x->words.n; w++) {
        if (w < x->words.n && hide(p, n, &x->words.at[w])) word[n++] = w;
        if (n == 0 || (n < p->copies && w < x->words.n)) continue;
        QKV_TRY(values(p, n, left));
        for (int32_t k = 0; k < n; k++) x->encoder[word[k]] += p->spec->end - left[k];
        n = 0;
    }
    return QKV_OK;
}

/* ---- all of it ---- */

static int32_t most_copies(const qkv_explaining *x, int64_t len, int64_t width) {
    const int64_t layers = qkv_model_config(x->plain)->encoder_layers;
    int64_t rows = NUMBERS / (width * (layers < 1 ? 1 : layers));
    if (rows < FEW_ROWS) rows = FEW_ROWS;
    if (rows > MANY_ROWS) rows = MANY_ROWS;
    return rows < 2 * len ? 1 : (int32_t)(rows / len);
}

/* Both ends of the way of each token. */
static qkv_status prepare(path *p) {
    qkv_explaining *x = p->x;
    const qkv_tensor *table = qkv_model_embeddings(x->plain);
    p->len = (int64_t)x->e.n;
    p->width = table->cols;
    p->copies = most_copies(x, p->len, p->width);
    const size_t row = (size_t)p->width * sizeof(real), all = (size_t)p->len * row;
    p->from = qkv_arena_zalloc(&x->memory, all);
    p->by = qkv_arena_zalloc(&x->memory, all);
    p->at = qkv_arena_alloc(&x->memory, (size_t)p->copies * all);
    if (!p->from || !p->by || !p->at) return QKV_FAILED;
    for (int64_t i = 0; i < p->len; i++) {
        const bool mark = x->e.begin[i] >= x->e.end[i];
        memcpy((mark ? p->from : p->by) + i * p->width, table->data + x->e.ids[i] * table->ld, row);
    }
    return QKV_OK;
}

qkv_status qkv_explain_path_run(qkv_explaining *x, const qkv_explained *what, qkv_explain_by how,
                                qkv_explain_path *spec) {
    path p = {.x = x, .what = what, .spec = spec};
    const qkv_arena_mark mark = qkv_arena_here(&x->memory);
    QKV_TRY(prepare(&p));
    place(&p, 0, 0);
    QKV_TRY(values(&p, 1, &spec->start));
    place(&p, 0, 1);
    QKV_TRY(values(&p, 1, &spec->end));
    QKV_TRY(how == QKV_EXPLAIN_OCCLUSION ? by_occlusion(&p) : by_gradients(&p));
    qkv_arena_rewind(&x->memory, mark);
    return QKV_OK;
}
