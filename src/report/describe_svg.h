/* The picture of `qkv describe -o model.svg`. */
#ifndef QKV_REPORT_DESCRIBE_SVG_H
#define QKV_REPORT_DESCRIBE_SVG_H

#include "model/description.h"

qkv_status qkv_describe_svg(const qkv_description *d, qkv_buf *out);

#endif
