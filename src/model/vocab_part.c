/* A few rows of the map to the vocabulary, for searches that know which tokens may come.
 *
 * One block of memory, kept from one filling to the next: the rows as they are (of any format),
 * their scales, the bias, and the rows packed for products. */
#include "base/mem.h"
#include "kern/kern.h"
#include "model/parts.h"

#include <string.h>

enum { ALIGN = 64 };

static size_t aligned(size_t bytes) {
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Where the parts of the block begin. */
typedef struct plan {
    size_t row, scales; /* bytes of one row */
    size_t scale_at, bias_at, packed_at, bytes;
} plan;

static plan plan_of(const qkv_param *w, int64_t n, bool integers) {
    const qkv_weight *narrow = w->tensor.weight;
    const int64_t cols = w->spec.cols;
    plan p = {.row = narrow ? (size_t)qkv_weight_row_bytes(narrow->format, cols)
                            : (size_t)cols * sizeof(real)};
    if (integers) p.scales = (size_t)qkv_weight_groups(narrow->format, cols) * sizeof(float);
    const qkv_gemm g = {.n = n, .k = cols, .b_trans = true, .weight = narrow};
    p.scale_at = aligned((size_t)n * p.row);
    p.bias_at = p.scale_at + aligned((size_t)n * p.scales);
    p.packed_at = p.bias_at + aligned((size_t)n * sizeof(real));
    p.bytes =
        p.packed_at + (integers ? 0 : qkv_kern_get()->gemm_pack_size(&g) * sizeof(real)) + ALIGN;
    return p;
}

static void copy_rows(qkv_vocab_part *part, const qkv_head *h, const plan *p, const int32_t *ids,
                      int64_t n) {
    const qkv_weight *narrow = h->weight->tensor.weight;
    const char *rows = narrow ? narrow->data : (const void *)h->weight->tensor.data;
    char *const block = part->memory;
    real *const bias = (real *)(block + p->bias_at);
    for (int64_t i = 0; i < n; i++) {
        const size_t id = (size_t)ids[i];
        memcpy(block + (size_t)i * p->row, rows + id * p->row, p->row);
        if (p->scales)
            memcpy(block + p->scale_at + (size_t)i * p->scales,
                   (const char *)narrow->scale + id * p->scales, p->scales);
        if (h->bias) bias[i] = h->bias->tensor.data[id];
    }
}

qkv_status qkv_vocab_part_fill(qkv_vocab_part *part, const qkv_model *m, const int32_t *ids,
                               int64_t n) {
    const qkv_head *h = &m->head;
    const qkv_weight *narrow = h->weight->tensor.weight;
    const bool integers = narrow && narrow->format != QKV_WEIGHT_BF16;
    const int64_t cols = h->weight->spec.cols;
    const plan p = plan_of(h->weight, n, integers);
    if (p.bytes > part->room) {
        qkv_vocab_part_free(part);
        QKV_TRY_ALLOC(part->memory = qkv_alloc_aligned(p.bytes + p.bytes / 2));
        part->room = p.bytes + p.bytes / 2;
    }
    copy_rows(part, h, &p, ids, n);
    char *const block = part->memory;
    part->weight = (qkv_tensor){.rows = n, .cols = cols, .ld = cols};
    part->bias = (qkv_tensor){.rows = 1, .cols = n, .ld = n, .data = (real *)(block + p.bias_at)};
    if (narrow) {
        part->narrow =
            (qkv_weight){.format = narrow->format, .rows = n, .cols = cols, .data = block};
        if (integers) part->narrow.scale = (const float *)(block + p.scale_at);
        part->weight.weight = &part->narrow;
    } else {
        part->weight.data = (real *)block;
    }
    if (integers) return QKV_OK;
    real *const packed = (real *)(block + p.packed_at);
    const qkv_gemm g = {.n = n,
                        .k = cols,
                        .b = part->weight.data,
                        .ldb = cols,
                        .b_trans = true,
                        .weight = part->weight.weight};
    qkv_kern_get()->gemm_pack(&g, packed);
    part->weight.packed = packed;
    return QKV_OK;
}

void qkv_vocab_part_free(qkv_vocab_part *part) {
    qkv_free(part->memory);
    *part = (qkv_vocab_part){0};
}
