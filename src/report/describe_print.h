/* A description as text: what `qkv describe` prints; and its layers, for those who draw it. */
#ifndef QKV_REPORT_DESCRIBE_PRINT_H
#define QKV_REPORT_DESCRIBE_PRINT_H

#include "model/description.h"

void qkv_describe_json(const qkv_description *d, qkv_buf *out);
qkv_status qkv_describe_text(const qkv_description *d, qkv_buf *out);
/* How many layers from part `at` on are equal to the first, which has *parts of them. Layers of
 * random patterns differ in their work alone; `by_work` tells them apart. */
int qkv_describe_layers(const qkv_description *d, size_t at, bool by_work, size_t *parts);

#endif
