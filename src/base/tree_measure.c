#include "base/tree_measure.h"

#include <stddef.h>

/* Nodes in an order in which heads come first, so that each row of distances follows from its
 * head's: d(v, u) = d(head of v, u) + 1 for all u that were placed before. */
void qkv_tree_measure(const int32_t *head, int32_t n, int32_t *depth, uint8_t *distance) {
    const size_t side = (size_t)n + 1;
    int32_t placed = 1;
    for (int32_t i = 1; i <= n; i++) depth[i] = -1;
    depth[0] = 0;
    distance[0] = 0;
    for (int32_t level = 1; placed <= n; level++)
        for (int32_t v = 1; v <= n; v++) {
            if (depth[v] >= 0 || depth[head[v]] != level - 1) continue;
            depth[v] = level;
            placed++;
            for (int32_t u = 0; u <= n; u++) {
                if (depth[u] < 0 || u == v) continue;
                const uint8_t d = distance[(size_t)head[v] * side + (size_t)u];
                distance[(size_t)v * side + (size_t)u] = distance[(size_t)u * side + (size_t)v] =
                    d < 255 ? (uint8_t)(d + 1) : 255;
            }
            distance[(size_t)v * side + (size_t)v] = 0;
        }
}
