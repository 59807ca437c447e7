/* Truncation and padding: see limits.c. */
#ifndef QKV_TEXT_LIMITS_H
#define QKV_TEXT_LIMITS_H

#include "text/pipeline.h"

qkv_status qkv_truncation_parse(qkv_limits *l, qkv_json_at json);
qkv_status qkv_padding_parse(qkv_limits *l, qkv_json_at json);

/* Cuts one text, or two, so that together they have at most `room` tokens;
 * *cut says whether it had to. */
qkv_status qkv_limits_cut(const qkv_limits *l, size_t room, bool pair, qkv_encoding *a,
                          qkv_encoding *b, bool *cut);
/* Fills n encodings up to one length and sets their masks, if the options ask for it. */
qkv_status qkv_limits_pad(const qkv_tokenizer *tok, const qkv_encode_options *o, qkv_encoding *e,
                          size_t n);

#endif
