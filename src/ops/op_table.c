/* The table of ops, from ops.def. */
#include "ops/ops.h"

#define OP(name, declaration) extern const qkv_case qkv_cases_##name[];
#include "ops/ops.def"
#undef OP

size_t qkv_op_table(const qkv_op_row **rows) {
    static const qkv_op_row table[] = {
#define OP(name, declaration) {&qkv_op_##name, qkv_cases_##name},
#include "ops/ops.def"
#undef OP
    };
    *rows = table;
    return sizeof table / sizeof *table;
}
