/* Trees of a batch: the distances and depths that structural positions ask for, from heads and
 * the tokens' nodes. */
#include "task/task.h"

void qkv_task_measure(qkv_tape *t, const qkv_task_tree *trees, qkv_tokens *out) {
    const int32_t n = out->layout.n;
    int64_t total = 0, nodes = 0;
    int64_t *start = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *start);
    for (int32_t s = 0; s < n && start; s++) {
        const int64_t len = qkv_layout_len(&out->layout, s);
        start[s] = total;
        total += len * len;
        if (trees[s].n_heads > nodes) nodes = trees[s].n_heads;
    }
    uint8_t *distance = qkv_tape_alloc(t, NULL, (size_t)total);
    int32_t *depth = qkv_tape_alloc(t, NULL, (size_t)out->rows * sizeof *depth);
    uint8_t *between = qkv_tape_alloc(t, NULL, (size_t)(nodes * nodes)); /* nodes of one tree */
    int32_t *level = qkv_tape_alloc(t, NULL, (size_t)nodes * sizeof *level);
    if (!start || !distance || !depth || !between || !level) return;
    for (int32_t s = 0; s < n; s++) {
        const qkv_task_tree *tree = &trees[s];
        const int64_t len = qkv_layout_len(&out->layout, s), side = tree->n_heads;
        qkv_tree_measure(tree->head, (int32_t)side - 1, level, between);
        for (int64_t i = 0; i < len; i++) {
            depth[out->layout.start[s] + i] = level[tree->node[i]];
            for (int64_t j = 0; j < len; j++)
                distance[start[s] + i * len + j] = between[tree->node[i] * side + tree->node[j]];
        }
    }
    out->tree_distance = distance;
    out->tree_start = start;
    out->tree_depth = depth;
}

void qkv_task_trees(qkv_tape *t, const qkv_batcher *b, const int64_t *examples, int64_t n,
                    qkv_tokens *out) {
    const qkv_encoded *e = b->data;
    if (e->head_start.n == 0) return;
    qkv_task_tree *trees = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *trees);
    int32_t *nodes = qkv_tape_alloc(t, NULL, (size_t)out->rows * sizeof *nodes);
    if (!trees || !nodes) return;
    for (int64_t i = 0; i < n; i++) {
        const int64_t *from = &e->head_start.at[examples[i]];
        const int64_t *at = &e->start[examples[i] * e->sides];
        int32_t *own = nodes + out->layout.start[i];
        for (int64_t k = 0; k < qkv_layout_len(&out->layout, (int32_t)i); k++)
            own[k] = at[0] + k < at[1] ? e->node.at[at[0] + k] : 0; /* an end mark: the root */
        trees[i] = (qkv_task_tree){
            .node = own, .head = e->head.at + from[0], .n_heads = (int32_t)(from[1] - from[0])};
    }
    qkv_task_measure(t, trees, out);
}
