/* Depths and distances of a tree's nodes: for structural positions, and for what checks trees. */
#ifndef QKV_BASE_TREE_MEASURE_H
#define QKV_BASE_TREE_MEASURE_H

#include <stdint.h>

/* For nodes 0 … n of a tree given by heads: depth[i], and distance[i·(n + 1) + j], the edges
 * between i and j (255 for more). */
void qkv_tree_measure(const int32_t *head, int32_t n, int32_t *depth, uint8_t *distance);

#endif
