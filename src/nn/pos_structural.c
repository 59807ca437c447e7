/* Structural positions (Wang et al. 2019), from a dependency tree given beside the text, beside the
 * sequential ones: the depth of a token's node is its absolute position, a learned vector added to
 * the embedding together with the sinusoidal one; the length of the path between two nodes is their
 * relative position, learned vectors added to keys and values as in pos_relative.c. Sub-words share
 * their word's node. Depths and distances are clipped. */
#include "nn/position.h"
#include "base/tree_measure.h"

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

/* Depth of each row, and per sequence the matrix of path lengths between its tokens, all
 * clipped. */
typedef struct measured {
    int32_t *depth;    /* R */
    uint8_t *distance; /* that of sequence s from start[s] on */
    int64_t *start;
} measured;

static int32_t at_most(int32_t x, int32_t most) {
    return x < most ? x : most;
}

/* A token without a node, such as a mark at the end, belongs to the root. */
static int32_t node_of(const qkv_cells *nodes, int64_t i) {
    return i < nodes->n ? nodes->at[i] : 0;
}

/* False when the tape failed. */
static bool measure(qkv_tape *t, const qkv_place *place, int32_t most, measured *out) {
    const qkv_cells *nodes = place->column[QKV_COLUMN_NODES],
                    *heads = place->column[QKV_COLUMN_HEADS];
    const int32_t n = place->layout.n;
    int64_t total = 0, largest = 0;
    out->start = qkv_tape_alloc(t, &qkv_position_op, (size_t)n * sizeof *out->start);
    for (int32_t s = 0; s < n && out->start; s++) {
        const int64_t len = qkv_layout_len(&place->layout, s);
        out->start[s] = total;
        total += len * len;
        if (heads[s].n > largest) largest = heads[s].n;
    }
    const size_t side = (size_t)largest; /* nodes of one tree */
    out->distance = qkv_tape_alloc(t, &qkv_position_op, (size_t)total);
    out->depth = qkv_tape_alloc(t, &qkv_position_op, (size_t)place->rows * sizeof *out->depth);
    uint8_t *between = qkv_tape_alloc(t, &qkv_position_op, side * side);
    int32_t *level = qkv_tape_alloc(t, &qkv_position_op, side * sizeof *level);
    if (!out->start || !out->distance || !out->depth || !between || !level) return false;
    for (int32_t s = 0; s < n; s++) {
        const int64_t len = qkv_layout_len(&place->layout, s), own = heads[s].n;
        int32_t *depth = out->depth + place->layout.start[s];
        uint8_t *distance = out->distance + out->start[s];
        qkv_tree_measure(heads[s].at, (int32_t)own - 1, level, between);
        for (int64_t i = 0; i < len; i++) {
            const int64_t a = node_of(&nodes[s], i);
            depth[i] = at_most(level[a], most);
            for (int64_t j = 0; j < len; j++)
                *distance++ = (uint8_t)at_most(between[a * own + node_of(&nodes[s], j)], most);
        }
    }
    return true;
}

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place,
                  qkv_position_terms *out) {
    if (!place->column || !place->column[QKV_COLUMN_NODES] || !place->column[QKV_COLUMN_HEADS]) {
        qkv_tape_fail(t, &qkv_position_op, QKV_USAGE,
                      "position=structural needs a dependency tree for each sequence; give CoNLL-U "
                      "trees with the text (--trees FILE), or use position=relative");
        return;
    }
    qkv_position_sinusoidal.begin(t, p, place, out);
    measured tree;
    if (!measure(t, place, p->spec.distance, &tree)) return;
    qkv_embedding_spec lookup = {.ids = tree.depth, .rows = place->rows};
    out->added = qkv_embedding(t, qkv_of(p->table), &lookup);
    out->relation = (qkv_relation){.kind = QKV_REL_MATRIX,
                                   .n = p->spec.distance + 1,
                                   .matrix = tree.distance,
                                   .matrix_start = tree.start};
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
