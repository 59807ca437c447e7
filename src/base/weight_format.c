/* What the formats of weights are, in numbers; how they are read is kern's. */
#include "base/weight_format.h"

#include <stddef.h>

#define NAME(id, name, bits, group) #name,
const char *const qkv_weight_names[] = {QKV_WEIGHT_TABLE(NAME) NULL};
#undef NAME

static const struct {
    const char *name;
    int bits, group;
    int number;
} formats[] = {
#define ROW(id, name, bits, group) [QKV_WEIGHT_##id] = {#name, bits, group, -1},
    QKV_WEIGHT_TABLE(ROW)
#undef ROW
        [QKV_WEIGHT_F16] = {"f16", 16, 0, 1},
};

static const struct {
    const char *name;
    int number, elements, bytes;
} blocks[] = {
#define ROW(id, name, number, elements, bytes, group, zero, offset)                                \
    {#name, number, elements, bytes},
    QKV_BLOCK_TABLE(ROW)
#undef ROW
};
#define FIRST_BLOCK (QKV_WEIGHT_F16 + 1)

const char *qkv_weight_format_name(qkv_weight_format format) {
    return format < FIRST_BLOCK ? formats[format].name : blocks[format - FIRST_BLOCK].name;
}

int qkv_weight_gguf_number(qkv_weight_format format) {
    if (format == QKV_WEIGHT_F32) return 0;
    if (format == QKV_WEIGHT_BF16) return 30;
    return format < FIRST_BLOCK ? formats[format].number : blocks[format - FIRST_BLOCK].number;
}

bool qkv_weight_of_gguf(uint32_t number, qkv_weight_format *out) {
    for (int i = 0; i < QKV_WEIGHT_FORMATS; i++)
        if (qkv_weight_gguf_number((qkv_weight_format)i) == (int64_t)number)
            return *out = (qkv_weight_format)i, true;
    return false;
}

int qkv_weight_block(qkv_weight_format format) {
    return format < FIRST_BLOCK ? 1 : blocks[format - FIRST_BLOCK].elements;
}

int64_t qkv_weight_row_bytes(qkv_weight_format format, int64_t cols) {
    if (format >= FIRST_BLOCK) {
        const int n = format - FIRST_BLOCK;
        return cols / blocks[n].elements * blocks[n].bytes;
    }
    const int group = formats[format].group;
    const int64_t whole = group > 0 ? (cols + group - 1) / group * group : cols;
    return whole * formats[format].bits / 8;
}

int64_t qkv_weight_groups(qkv_weight_format format, int64_t cols) {
    if (format >= FIRST_BLOCK) return 0;
    const int group = formats[format].group;
    return group > 0 ? (cols + group - 1) / group : -group;
}
