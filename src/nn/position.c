/* What every position scheme shares: the table of schemes, their constants and their relative
 * vectors. */
#include "nn/position.h"

#include "base/mem.h"

#define POSITION(id, name, traits, help) #name,
const char *const qkv_position_names[] = {
#include "nn/position.def"
    NULL};
#undef POSITION

#define POSITION(id, name, traits, help) help,
const char *const qkv_position_helps[] = {
#include "nn/position.def"
    NULL};
#undef POSITION

const qkv_op qkv_position_op = {.name = "positions"};

const char *const qkv_pairing_names[] = {"adjacent", "halves", NULL};
const char *const qkv_wave_rates_names[] = {"paper", "spread", NULL};

#define POSITION(id, name, traits, help) [QKV_POSITION_##id] = &qkv_position_##name,
static const qkv_position_scheme *const schemes[] = {
#include "nn/position.def"
};
#undef POSITION

bool qkv_position_has(qkv_position_kind kind, qkv_position_trait trait) {
#define POSITION(id, name, traits, help) [QKV_POSITION_##id] = (traits),
    static const int table[] = {
#include "nn/position.def"
    };
#undef POSITION
    return table[kind] & (int)trait;
}

qkv_status qkv_position_check(const qkv_position_spec *spec) {
    const qkv_position_scheme *scheme = schemes[spec->kind];
    return scheme->check ? scheme->check(spec) : QKV_OK;
}

qkv_status qkv_position_declare(qkv_position *p, const qkv_position_spec *spec, qkv_params *params,
                                const char *stack) {
    *p = (qkv_position){.spec = *spec};
    QKV_TRY(qkv_position_check(spec));
    QKV_TRY_ALLOC(p->rel_k = qkv_zalloc((size_t)spec->layers, sizeof(qkv_param *)));
    QKV_TRY_ALLOC(p->rel_v = qkv_zalloc((size_t)spec->layers, sizeof(qkv_param *)));
    if (schemes[spec->kind]->declare) schemes[spec->kind]->declare(p, params, stack);
    return params->status;
}

void qkv_position_declare_relative(qkv_position *p, qkv_params *params, const char *stack,
                                   int64_t n) {
    qkv_param_spec spec = {
        .rows = n, .cols = p->spec.d_head, .init = QKV_INIT_XAVIER, .no_decay = true};
    for (int32_t i = 0; i < p->spec.layers; i++) {
        p->rel_k[i] = qkv_param_declare(params, &spec, "%s.layers.%d.attention.rel_k", stack, i);
        p->rel_v[i] = qkv_param_declare(params, &spec, "%s.layers.%d.attention.rel_v", stack, i);
    }
}

/* What is kept: a few thousand positions, more while they are small. Whoever goes further pays for
 * it, and a longest length alone costs no memory. */
enum { POSITIONS_KEPT = 8192, REALS_KEPT = 1 << 22 };

qkv_status qkv_position_allocate(qkv_position *p) {
    const qkv_position_scheme *scheme = schemes[p->spec.kind];
    if (!scheme->constant_fill) return QKV_OK;
    int64_t kept = REALS_KEPT / scheme->constant_size(&p->spec, 1);
    if (kept < POSITIONS_KEPT) kept = POSITIONS_KEPT;
    p->n_constants = p->spec.max_len < kept ? p->spec.max_len : kept;
    size_t n = (size_t)scheme->constant_size(&p->spec, p->n_constants);
    QKV_TRY_ALLOC(p->constants = qkv_alloc_aligned(n * sizeof *p->constants));
    scheme->constant_fill(&p->spec, p->n_constants, p->constants);
    return QKV_OK;
}

void qkv_position_free(qkv_position *p) {
    qkv_free(p->rel_k);
    qkv_free(p->rel_v);
    qkv_free(p->constants);
    *p = (qkv_position){0};
}

real *qkv_position_constants(qkv_tape *t, const qkv_position *p, int64_t n, int64_t *count) {
    *count = p->n_constants;
    if (n <= p->n_constants) return p->constants;
    /* Beyond what is kept: on this pass's own tape, so that passes can share one model. */
    const qkv_position_scheme *scheme = schemes[p->spec.kind];
    size_t size = (size_t)scheme->constant_size(&p->spec, n);
    real *made = qkv_tape_alloc(t, &qkv_position_op, size * sizeof *made);
    if (!made) return NULL;
    scheme->constant_fill(&p->spec, n, made);
    *count = n;
    return made;
}

qkv_position_terms qkv_position_begin(qkv_tape *t, const qkv_position *p, const qkv_place *place) {
    qkv_position_terms terms = {0};
    const qkv_position_scheme *scheme = schemes[p->spec.kind];
    if (scheme->begin && !qkv_tape_stopped(t)) scheme->begin(t, p, place, &terms);
    return terms;
}
