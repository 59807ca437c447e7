/* Why an answer was given, as pictures: the words of the text on coloured grounds, and what they
 * add. */
#ifndef QKV_DRAW_EXPLAIN_H
#define QKV_DRAW_EXPLAIN_H

#include "draw/ink.h"
#include "qkv.h"

qkv_status qkv_explain_terminal(const qkv_explanation *e, qkv_ink ink, qkv_buf *out);
/* One page with everything in it: point at a word, or at an n-gram. */
qkv_status qkv_explain_html(const qkv_explanation *at, size_t n, qkv_buf *out);

/* The largest |weight| of its words; 0: none weighs anything. */
double qkv_explain_largest(const qkv_explanation *e);
/* The numbers of its words, by |weight|, largest first (qkv_free); NULL without memory. */
size_t *qkv_explain_order(const qkv_explanation *e);

#endif
