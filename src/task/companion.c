#include "task/companion.h"

const qkv_companion *qkv_companion_at(const qkv_config *c, int i) {
    const qkv_companion *const *row = qkv_task_of(c)->companions;
    for (; row && *row; row++)
        if ((*row)->wanted(c) && i-- == 0) return *row;
    return NULL;
}

bool qkv_companion_has(const qkv_config *c, const qkv_companion *companion) {
    const qkv_companion *has;
    for (int i = 0; (has = qkv_companion_at(c, i)); i++)
        if (has == companion) return true;
    return false;
}
