#include "tape/gradcheck.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

typedef struct input {
    qkv_tensor *tensor; /* of the last build */
    real *data;         /* what is varied */
    bool owned;
    int64_t n;
} input;

struct qkv_check {
    const qkv_case *test;
    input inputs[QKV_CHECK_INPUTS];
    int n_inputs; /* known since the first build */
    int next;     /* in this build */
};

static const qkv_rng input_rng = {.seed = 20, .stream = 1}, weight_rng = {.seed = 20, .stream = 2};

int qkv_check_variant(const qkv_check *c) {
    return c->test->variant;
}

/* Room for one more input, or NULL with the tape stopped. */
static input *next_input(qkv_tape *t, qkv_check *c) {
    if (qkv_tape_stopped(t)) return NULL;
    if (c->next < QKV_CHECK_INPUTS) return &c->inputs[c->next];
    qkv_tape_fail(t, NULL, QKV_USAGE, "the case %s has more than %d inputs", c->test->name,
                  QKV_CHECK_INPUTS);
    return NULL;
}

qkv_tensor *qkv_check_input(qkv_tape *t, qkv_check *c, int64_t rows, int64_t cols, double centre,
                            double spread) {
    input *in = next_input(t, c);
    if (!in) return &t->nothing;
    if (c->next == c->n_inputs) {
        *in = (input){.data = qkv_alloc((size_t)(rows * cols) * sizeof(real)),
                      .owned = true,
                      .n = rows * cols};
        if (!in->data) return qkv_tape_fail_below(t, NULL);
        c->n_inputs++;
        for (int64_t i = 0; i < in->n; i++) {
            double u = qkv_rng_uniform(input_rng, (uint64_t)(c->next * 100000 + i));
            in->data[i] = (real)(centre + spread * (2 * u - 1));
        }
    }
    c->next++;
    in->tensor = qkv_tensor_wrap(t, in->data, rows, cols);
    if (!qkv_tape_stopped(t)) in->tensor->wants_grad = true;
    return in->tensor;
}

void qkv_check_param(qkv_tape *t, qkv_check *c, qkv_tensor *param) {
    input *in = next_input(t, c);
    if (!in) return;
    *in = (input){.tensor = param, .data = param->data, .n = param->rows * param->cols};
    memset(param->grad, 0, (size_t)in->n * sizeof(real));
    if (c->next++ == c->n_inputs) c->n_inputs++;
}

/* ---- Σ c·y, so that every output matters ---- */

static real weight(int64_t i) {
    return (real)(2 * qkv_rng_uniform(weight_rng, (uint64_t)i) - 1);
}

static void probe_backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *y = node->in[0];
    const real *up = qkv_grad_of(t, node->out[0]);
    real *dy = qkv_grad_add(t, y, NULL, 0);
    if (!up || !dy) return;
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++) dy[i * y->ld + j] += *up * weight(i * y->cols + j);
}

static const qkv_op op_probe = {.name = "probe", .backward = probe_backward};

static qkv_tensor *probe(qkv_tape *t, qkv_tensor *y) {
    if (qkv_tape_stopped(t) || (y->rows == 1 && y->cols == 1)) return y;
    qkv_tensor *sum = qkv_tensor_new(t, 1, 1);
    if (qkv_tape_stopped(t)) return sum;
    double total = 0;
    for (int64_t i = 0; i < y->rows; i++)
        for (int64_t j = 0; j < y->cols; j++)
            total += (double)(y->data[i * y->ld + j] * weight(i * y->cols + j));
    sum->data[0] = (real)total;
    return qkv_tape_record(t, &op_probe, QKV_TENSORS(y), QKV_TENSORS(sum), NULL);
}

/* ---- the check ---- */

/* Builds the case; *y and *loss are its output and the scalar. */
static qkv_status build(qkv_tape *t, qkv_check *c, qkv_tensor **y, qkv_tensor **loss) {
    c->next = 0;
    qkv_tape_begin(t, QKV_TRAIN, 7, 1);
    *y = c->test->build(t, c);
    *loss = probe(t, *y);
    return qkv_tape_status(t);
}

static real gradient_at(const input *in, int64_t i) {
    return in->tensor->grad ? in->tensor->grad[i] : 0;
}

static qkv_status value_at(qkv_tape *t, qkv_check *c, real *x, real shifted, double *value) {
    real kept = *x;
    qkv_tensor *y, *loss;
    *x = shifted;
    qkv_status status = build(t, c, &y, &loss);
    *x = kept;
    if (status == QKV_OK) *value = (double)loss->data[0];
    return status;
}

/* The derivative by element i of an input: central differences at two distances, combined so that
 * the error is of fourth order. The step may then be large, and rounding is small. */
static qkv_status differentiate(qkv_tape *t, qkv_check *c, input *in, int64_t i, double *slope) {
    static const double weights[] = {8, -1};
    const double x = (double)in->data[i], step = 3e-4 * fmax(1, fabs(x));
    *slope = 0;
    for (int k = 1; k <= 2; k++) {
        double above, below;
        QKV_TRY(value_at(t, c, &in->data[i], (real)(x + k * step), &above));
        QKV_TRY(value_at(t, c, &in->data[i], (real)(x - k * step), &below));
        *slope += weights[k - 1] * (above - below) / (12 * step);
    }
    return QKV_OK;
}

/* Compares one input; `slope` holds what backward gave. */
static qkv_status compare(qkv_tape *t, qkv_check *c, int k, const real *slope, double floor,
                          double bound, double *worst) {
    for (int64_t i = 0; i < c->inputs[k].n; i++) {
        double a = (double)slope[i], n;
        QKV_TRY(differentiate(t, c, &c->inputs[k], i, &n));
        double error = fabs(a - n) / fmax(floor, fmax(fabs(a), fabs(n)));
        if (!(error <= *worst)) *worst = error;
        if (!(error <= bound))
            return qkv_fail(
                QKV_NUMERIC,
                "%s: input %d, element %lld: backward gives %.12g, differences give %.12g",
                c->test->name, k, (long long)i, a, n);
    }
    return QKV_OK;
}

/* Forward and backward once; all of it in one new array: the output, then the gradients of all
 * inputs. */
static qkv_status collect(qkv_tape *t, qkv_check *c, real **values, int64_t *n_values,
                          int64_t *n_output) {
    qkv_tensor *y, *loss;
    QKV_TRY(build(t, c, &y, &loss));
    int64_t n_y = y->rows * y->cols, n = n_y;
    for (int k = 0; k < c->n_inputs; k++) n += c->inputs[k].n;
    real *all;
    QKV_TRY_ALLOC(all = qkv_alloc((size_t)n * sizeof *all));
    for (int64_t i = 0; i < n_y; i++) all[i] = y->data[i / y->cols * y->ld + i % y->cols];
    qkv_status status = qkv_tape_backward(t, &loss, 1);
    if (status != QKV_OK) {
        qkv_free(all);
        return status;
    }
    int64_t at = n_y;
    for (int k = 0; k < c->n_inputs; k++)
        for (int64_t i = 0; i < c->inputs[k].n; i++) all[at++] = gradient_at(&c->inputs[k], i);
    *values = all;
    *n_values = n;
    *n_output = n_y;
    return QKV_OK;
}

static void check_free(qkv_tape *t, qkv_check *c) {
    for (int k = 0; k < c->n_inputs; k++)
        if (c->inputs[k].owned) qkv_free(c->inputs[k].data);
    qkv_tape_free(t);
}

qkv_status qkv_check_collect(const qkv_case *test, int precision, real **values, int64_t *n) {
    qkv_check c = {.test = test};
    qkv_tape t;
    int64_t n_output;
    QKV_TRY(qkv_tape_init(&t));
    t.precision = precision;
    qkv_status status = collect(&t, &c, values, n, &n_output);
    check_free(&t, &c);
    return status;
}

qkv_status qkv_check_run(const qkv_case *test, double bound, double *worst) {
    qkv_check c = {.test = test};
    qkv_tape t;
    real *values = NULL;
    int64_t n, at;
    *worst = 0;
    QKV_TRY(qkv_tape_init(&t));
    qkv_status status = collect(&t, &c, &values, &n, &at);
    if (status == QKV_OK) {
        double largest = 1e-9;
        for (int64_t i = at; i < n; i++) { /* not fmax: gcc 12 fails to vectorise it on aarch64 */
            const double size = fabs((double)values[i]);
            if (size > largest) largest = size;
        }
        for (int k = 0; k < c.n_inputs && status == QKV_OK; at += c.inputs[k++].n)
            status = compare(&t, &c, k, values + at, 1e-3 * largest, bound, worst);
    }
    qkv_free(values);
    check_free(&t, &c);
    return status;
}
