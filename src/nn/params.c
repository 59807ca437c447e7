/* The parameter store.
 *
 * Names are found through an open-addressing table of pointers, at most half full. Each parameter
 * starts at a multiple of 16 elements (a cache line of floats), so that rows of narrow tables stay
 * aligned and the optimiser can run over the whole array; the gaps between parameters are zero and
 * stay so.
 *
 * Initial values are a function of (seed, name, index): the name's hash is the stream of random
 * numbers and the element's index the counter. Declaring in another order, adding a layer or using
 * more threads changes nothing. */
#include "nn/params.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/thread.h"
#include "kern/kern.h"

#define PARAM_ALIGN 16 /* elements */
#define PARAMS_MAX                                                                                 \
    ((int64_t)1 << 46) /* elements in all: far over any machine, far under overflow */
#define NAME_MAX_BYTES 255

struct qkv_name_map {
    qkv_param **slot;
    size_t mask; /* slots − 1, a power of two less one */
};

/* What a failed declaration returns; nobody writes to it. */
static qkv_param void_param;

/* FNV-1a, 64 bits: part of the meaning of a seed, so it must never change. */
static uint64_t name_hash(const char *name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return h;
}

/* The slot that holds `name`, or the free one where it would go. */
static qkv_param **find_slot(const struct qkv_name_map *map, const char *name) {
    assert((map->mask & (map->mask + 1)) == 0); /* else the search may never end */
    size_t i = (size_t)name_hash(name) & map->mask;
    while (map->slot[i] && strcmp(map->slot[i]->name, name) != 0) i = (i + 1) & map->mask;
    return &map->slot[i];
}

/* Doubles the table when one more name would fill half of it. */
static bool make_room(qkv_params *p) {
    if (p->names && 2 * (p->n + 1) <= p->names->mask + 1) return true;
    struct qkv_name_map *map = qkv_alloc(sizeof *map);
    if (!map) return false;
    size_t slots = p->names ? 2 * (p->names->mask + 1) : 64;
    *map = (struct qkv_name_map){qkv_zalloc(slots, sizeof *map->slot), slots - 1};
    if (!map->slot) {
        qkv_free(map);
        return false;
    }
    for (size_t i = 0; i < p->n; i++) *find_slot(map, p->list[i]->name) = p->list[i];
    if (p->names) qkv_free(p->names->slot);
    qkv_free(p->names);
    p->names = map;
    return true;
}

void qkv_params_init(qkv_params *p) {
    *p = (qkv_params){0};
}

void qkv_params_free(qkv_params *p) {
    for (size_t i = 0; i < p->n; i++) {
        qkv_free(p->list[i]->name);
        qkv_free(p->list[i]->touched.list);
        qkv_free(p->list[i]->touched.seen);
        qkv_free(p->list[i]->own);
        qkv_free(p->list[i]);
    }
    qkv_free(p->list);
    if (p->names) qkv_free(p->names->slot);
    qkv_free(p->names);
    qkv_free(p->values);
    qkv_free(p->grads);
    qkv_free(p->packed);
    *p = (qkv_params){0};
}

static qkv_param *refuse(qkv_params *p, qkv_status status) {
    p->status = status;
    return &void_param;
}

/* Appends a parameter that is known to be new and to fit. */
static qkv_param *append(qkv_params *p, const qkv_param_spec *spec, const char *name) {
    if (!make_room(p) || !qkv_vec_grow((void **)&p->list, p->n, &p->cap, sizeof *p->list))
        return refuse(p, QKV_FAILED);
    qkv_param *param = qkv_zalloc(1, sizeof *param);
    if (!param) return refuse(p, QKV_FAILED);
    param->name = qkv_strndup(name, strlen(name));
    if (!param->name) {
        qkv_free(param);
        return refuse(p, QKV_FAILED);
    }
    int64_t elements = spec->rows * spec->cols;
    param->spec = *spec;
    param->offset = p->length;
    param->tensor = (qkv_tensor){.rows = spec->rows,
                                 .cols = spec->cols,
                                 .ld = spec->cols,
                                 .life = QKV_LIFE_PARAM,
                                 .name = param->name};
    p->count += elements;
    if (!spec->fixed) p->length += (elements + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
    *find_slot(p->names, name) = param;
    return p->list[p->n++] = param;
}

qkv_param *qkv_param_declare(qkv_params *p, const qkv_param_spec *spec, const char *name, ...) {
    if (p->status != QKV_OK) return &void_param;
    char full[NAME_MAX_BYTES + 1];
    va_list args;
    va_start(args, name);
    int len = vsnprintf(full, sizeof full, name, args);
    va_end(args);
    if (len < 0 || len > NAME_MAX_BYTES)
        return refuse(p, qkv_fail(QKV_USAGE, "parameter name %.40s… is longer than %d bytes", full,
                                  NAME_MAX_BYTES));
    qkv_param *known = qkv_param_find(p, full);
    if (known) {
        if (known->spec.rows == spec->rows && known->spec.cols == spec->cols) return known;
        return refuse(p, qkv_fail(QKV_USAGE,
                                  "parameter %s is %lld×%lld and cannot be shared as %lld×%lld",
                                  full, (long long)known->spec.rows, (long long)known->spec.cols,
                                  (long long)spec->rows, (long long)spec->cols));
    }
    if (p->values)
        return refuse(p, qkv_fail(QKV_USAGE, "parameter %s: declared after allocation", full));
    int64_t elements;
    if (spec->rows < 1 || spec->cols < 1 ||
        __builtin_mul_overflow(spec->rows, spec->cols, &elements) ||
        elements > PARAMS_MAX - p->length)
        return refuse(p, qkv_fail(QKV_USAGE, "parameter %s: %lld×%lld is not a size this can hold",
                                  full, (long long)spec->rows, (long long)spec->cols));
    return append(p, spec, full);
}

qkv_param *qkv_param_find(const qkv_params *p, const char *name) {
    return p->names ? *find_slot(p->names, name) : NULL;
}

static real *zeroed(int64_t n) {
    real *x = qkv_alloc_aligned((size_t)n * sizeof(real));
    if (x) memset(x, 0, (size_t)n * sizeof(real));
    return x;
}

/* The list of rows that a step touches, for a table whose gradient is sparse. */
static qkv_status allocate_touched(qkv_param *param) {
    int64_t rows = param->spec.rows;
    QKV_TRY_ALLOC(param->touched.list = qkv_alloc((size_t)rows * sizeof *param->touched.list));
    QKV_TRY_ALLOC(param->touched.seen = qkv_zalloc((size_t)rows, 1));
    param->tensor.touched = &param->touched;
    return QKV_OK;
}

void qkv_params_densify(qkv_params *p) {
    for (size_t i = 0; i < p->n; i++) p->list[i]->spec.sparse = false;
}

qkv_status qkv_params_allocate(qkv_params *p, bool with_grads) {
    if (p->status != QKV_OK) return p->status;
    if (p->values) return qkv_fail(QKV_USAGE, "parameters: already allocated");
    QKV_TRY_ALLOC(p->values = zeroed(p->length));
    if (with_grads) QKV_TRY_ALLOC(p->grads = zeroed(p->length));
    for (size_t i = 0; i < p->n; i++) {
        qkv_param *param = p->list[i];
        if (param->spec.fixed) {
            QKV_TRY_ALLOC(param->own = zeroed(param->spec.rows * param->spec.cols));
            param->tensor.data = param->own;
            continue;
        }
        assert(param->offset % PARAM_ALIGN == 0 &&
               param->offset + param->spec.rows * param->spec.cols <= p->length);
        param->tensor.data = p->values + param->offset;
        if (!with_grads) continue;
        param->tensor.grad = p->grads + param->offset;
        param->tensor.wants_grad = true;
        if (param->spec.sparse) QKV_TRY(allocate_touched(param));
    }
    return QKV_OK;
}

/* Packs one parameter to `to` (NULL: only counts); returns how many reals that is. */
static size_t pack_one(qkv_param *w, real *to) {
    const qkv_kern *kern = qkv_kern_get();
    const int64_t parts[] = {w->spec.split, w->spec.rows - w->spec.split};
    size_t size = 0;
    int64_t row = 0;
    for (int i = 0; i < 2; row += parts[i++]) {
        if (parts[i] == 0) continue;
        const qkv_gemm g = {.n = parts[i],
                            .k = w->spec.cols,
                            .b = w->tensor.data ? w->tensor.data + row * w->tensor.ld : NULL,
                            .ldb = w->tensor.ld,
                            .b_trans = true,
                            .weight = w->tensor.weight};
        if (to) kern->gemm_pack(&g, to + size);
        size += kern->gemm_pack_size(&g);
    }
    return (size + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
}

/* Integers are used where they lie by products with few rows, and need no packing for those. */
static bool is_packed(const qkv_param *w, bool integers) {
    const qkv_weight *narrow = w->tensor.weight;
    if (!w->spec.product || (narrow && narrow->exact)) return false;
    if (!narrow || !qkv_weight_is_integer(narrow)) return !narrow || qkv_weight_can_pack(narrow);
    return integers && w->spec.split == 0;
}

static qkv_status pack(qkv_params *p, bool integers) {
    size_t size = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) QKV_TRY_ALLOC(p->packed = qkv_alloc_aligned(size * sizeof(real) + 1));
        size = 0;
        for (size_t i = 0; i < p->n; i++) {
            qkv_param *w = p->list[i];
            if (!is_packed(w, integers)) continue;
            real *const to = pass == 1 ? p->packed + size : NULL;
            size += pack_one(w, to);
            assert(size % PARAM_ALIGN == 0);
            w->tensor.packed = to;
        }
    }
    return QKV_OK;
}

qkv_status qkv_params_pack(qkv_params *p, bool integers) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    qkv_status status = QKV_OK;
    pthread_mutex_lock(&lock);
    if (!p->packed && !p->grads) status = pack(p, integers);
    pthread_mutex_unlock(&lock);
    return status;
}

void qkv_param_bind(qkv_param *param, const real *values) {
    assert(!param->tensor.wants_grad);
    param->tensor.data = (real *)values; /* nothing writes to a parameter that wants no gradient */
}

void qkv_param_bind_weight(qkv_param *param, const qkv_weight *weight) {
    param->weight = *weight;
    param->tensor.weight = &param->weight;
}

static void initialise(qkv_param *param, uint64_t seed) {
    const qkv_param_spec *s = &param->spec;
    double fan_in = (double)(s->fan_in ? s->fan_in : s->cols);
    double fan_out = (double)(s->fan_out ? s->fan_out : s->rows);
    double gain = s->gain != 0 ? s->gain : s->init == QKV_INIT_NORMAL ? 0.02 : 1;
    double bound = gain * sqrt(6 / (fan_in + fan_out)), deviation = gain;
    if (s->init == QKV_INIT_KAIMING) deviation = gain * sqrt(2 / fan_in);
    qkv_rng key = {seed, name_hash(param->name)};
    real *x = param->tensor.data;
    int64_t n = s->rows * s->cols;
    switch (s->init) {
    case QKV_INIT_ZERO:
        memset(x, 0, (size_t)n * sizeof *x);
        break;
    case QKV_INIT_ONE:
        for (int64_t i = 0; i < n; i++) x[i] = 1;
        break;
    case QKV_INIT_XAVIER:
        QKV_PARALLEL_FOR
        for (int64_t i = 0; i < n; i++)
            x[i] = (real)(bound * (2 * qkv_rng_uniform(key, (uint64_t)i) - 1));
        break;
    case QKV_INIT_NORMAL:
    case QKV_INIT_KAIMING:
        QKV_PARALLEL_FOR
        for (int64_t i = 0; i < n; i++) x[i] = (real)(deviation * qkv_rng_normal(key, (uint64_t)i));
        break;
    }
}

void qkv_params_initialise(qkv_params *p, uint64_t seed) {
    assert(p->values); /* bound values are somebody else's */
    for (size_t i = 0; i < p->n; i++) initialise(p->list[i], seed);
}

void qkv_params_zero_grads(qkv_params *p) {
    if (!p->grads) return;
    for (size_t i = 0; i < p->n; i++) {
        qkv_param *param = p->list[i];
        if (param->spec.fixed) continue;
        size_t row = (size_t)param->spec.cols * sizeof(real);
        if (!param->spec.sparse) {
            memset(param->tensor.grad, 0, (size_t)param->spec.rows * row);
            continue;
        }
        qkv_rows *touched = &param->touched;
        assert(touched->n <= param->spec.rows); /* each row is listed once */
        for (int64_t k = 0; k < touched->n; k++) {
            memset(param->tensor.grad + touched->list[k] * param->spec.cols, 0, row);
            touched->seen[touched->list[k]] = 0;
        }
        touched->n = 0;
    }
}
