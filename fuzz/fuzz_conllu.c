/* CoNLL-U: what is accepted is a tree over its own text, and can be measured. */
#include "fuzz.h"
#include "base/mem.h"
#include "base/tree_measure.h"
#include "data/trees.h"

#include <string.h>

static void look(const qkv_tree *tree) {
    const size_t side = (size_t)tree->n + 1;
    uint32_t before = 0;
    assert(tree->n >= 1 && tree->head[0] == -1);
    for (size_t i = 0; i < tree->n_spans; i++) {
        const qkv_tree_span *s = &tree->spans[i];
        assert(s->begin >= before && s->end > s->begin && s->end <= tree->text.len);
        assert(s->node >= 1 && s->node <= tree->n);
        assert(qkv_tree_node(tree, s->begin, s->end) == s->node);
        before = s->end;
    }
    assert(qkv_tree_node(tree, before, before) == 0);
    if (side > 256) return;
    int32_t *depth = qkv_alloc(side * sizeof *depth);
    uint8_t *distance = qkv_alloc(side * side);
    assert(depth && distance);
    qkv_tree_measure(tree->head, tree->n, depth, distance);
    for (size_t i = 1; i < side; i++) {
        assert(depth[i] == depth[tree->head[i]] + 1);
        assert(distance[i * side + (size_t)tree->head[i]] == 1);
        assert(distance[i * side] == (depth[i] < 255 ? depth[i] : 255));
        for (size_t j = 0; j < side; j++) assert(distance[i * side + j] == distance[j * side + i]);
    }
    qkv_free(depth);
    qkv_free(distance);
}

void fuzz_conllu(const uint8_t *data, size_t n) {
    qkv_trees t = {0};
    if (qkv_trees_parse(&t, "input", (qkv_text){(const char *)data, n}) == QKV_OK)
        for (size_t i = 0; i < t.list.n; i++) {
            look(&t.list.at[i]);
            assert(qkv_trees_find(&t, t.list.at[i].text) != NULL);
        }
    qkv_trees_free(&t);
}
