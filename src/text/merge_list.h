/* Merges as files state them, two parts of text each, into ids. */
#ifndef QKV_TEXT_MERGE_LIST_H
#define QKV_TEXT_MERGE_LIST_H

#include "text/pipeline.h"

#define QKV_MERGE_BLOCK 32

/* Zeros but for tok and prefix_len. The texts of the parts must stay until they are resolved. */
typedef struct qkv_merge_list {
    const qkv_tokenizer *tok; /* its vocabulary is in place */
    size_t prefix_len;        /* bytes of the second part that the result does not repeat */
    QKV_VEC(qkv_merge) merges;
    qkv_text part[QKV_MERGE_BLOCK][2]; /* not yet resolved */
    size_t pending;
    qkv_buf joined;
} qkv_merge_list;

qkv_status qkv_merge_list_add(qkv_merge_list *l, qkv_text left, qkv_text right);
qkv_status qkv_merge_list_end(qkv_merge_list *l); /* resolves what is left */
void qkv_merge_list_free(qkv_merge_list *l);

#endif
