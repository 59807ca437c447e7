/* A description as text: what `qkv describe` prints. */
#ifndef QKV_REPORT_DESCRIBE_PRINT_H
#define QKV_REPORT_DESCRIBE_PRINT_H

#include "model/description.h"

void qkv_describe_json(const qkv_description *d, qkv_buf *out);
qkv_status qkv_describe_text(const qkv_description *d, qkv_buf *out);

#endif
