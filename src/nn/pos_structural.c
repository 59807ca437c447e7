/* Structural positions (Wang et al. 2019), from a dependency tree given beside the text, beside the
 * sequential ones: the depth of a token's node is its absolute position, a learned vector added to
 * the embedding together with the sinusoidal one; the length of the path between two nodes is their
 * relative position, learned vectors added to keys and values as in pos_relative.c. Sub-words share
 * their word's node. Depths and distances are clipped. */
#include "nn/position.h"

static qkv_status check(const qkv_position_spec *spec) {
    if (!spec->causal) return QKV_OK;
    return qkv_fail(
        QKV_USAGE,
        "position=structural needs the tree of the whole sentence, which a decoder does not "
        "have while it writes; use it in an encoder (with decoder_position=relative in an "
        "encoder-decoder), or position=relative");
}

static void declare(qkv_position *p, qkv_params *params, const char *stack) {
    qkv_param_spec depth = {.rows = p->spec.distance + 1,
                            .cols = p->spec.d_model,
                            .init = QKV_INIT_NORMAL,
                            .gain = 0.02,
                            .no_decay = true};
    p->table = qkv_param_declare(params, &depth, "%s.depth.weight", stack);
    qkv_position_declare_relative(p, params, stack, p->spec.distance + 1);
}

/* The matrices of path lengths with every entry clipped; NULL when the tape failed. */
static const uint8_t *clipped(qkv_tape *t, const qkv_place *place, int32_t most) {
    int64_t end = 0;
    for (int32_t s = 0; s < place->layout.n; s++) {
        int64_t len = qkv_layout_len(&place->layout, s);
        if (place->tree_start[s] + len * len > end) end = place->tree_start[s] + len * len;
    }
    uint8_t *out = qkv_tape_alloc(t, &qkv_position_op, (size_t)end);
    for (int64_t i = 0; out && i < end; i++) {
        int32_t d = place->tree_distance[i];
        out[i] = (uint8_t)(d < most ? d : most);
    }
    return out;
}

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place, qkv_moments *out) {
    if (!place->tree_depth || !place->tree_distance || !place->tree_start) {
        qkv_tape_fail(t, &qkv_position_op, QKV_USAGE,
                      "position=structural needs a dependency tree for each sequence; give CoNLL-U "
                      "trees with the "
                      "text (--trees FILE), or use position=relative");
        return;
    }
    qkv_position_sinusoidal.begin(t, p, place, out);
    int32_t *depth = qkv_tape_alloc(t, &qkv_position_op, (size_t)place->rows * sizeof *depth);
    const uint8_t *distance = clipped(t, place, p->spec.distance);
    if (!depth || !distance) return;
    for (int64_t r = 0; r < place->rows; r++) {
        int32_t d = place->tree_depth[r];
        depth[r] = d < 0 ? 0 : d > p->spec.distance ? p->spec.distance : d;
    }
    qkv_embedding_spec lookup = {.ids = depth, .rows = place->rows};
    out->added = qkv_embedding(t, qkv_of(p->table), &lookup);
    out->relation = (qkv_relation){.kind = QKV_REL_MATRIX,
                                   .n = p->spec.distance + 1,
                                   .matrix = distance,
                                   .matrix_start = place->tree_start};
    out->rel_k = p->rel_k;
    out->rel_v = p->rel_v;
}

static int64_t constant_size(const qkv_position_spec *spec, int64_t n) {
    return qkv_position_sinusoidal.constant_size(spec, n);
}

static void constant_fill(const qkv_position_spec *spec, int64_t n, real *out) {
    qkv_position_sinusoidal.constant_fill(spec, n, out);
}

const qkv_position_scheme qkv_position_structural = {
    .name = "structural",
    .check = check,
    .declare = declare,
    .constant_size = constant_size,
    .constant_fill = constant_fill,
    .begin = begin,
};
