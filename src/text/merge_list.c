/* Merges as files state them, two parts of text each, into ids.
 *
 * A vocabulary of 50,000 is larger than the nearest cache, and every merge asks for three tokens:
 * both parts and the result. So merges are looked up a block at a time (qkv_vocab_find_many). */
#include "text/merge_list.h"
#include "base/mem.h"

static qkv_status resolve(qkv_merge_list *l) {
    enum { EACH = 3 };
    qkv_text texts[EACH * QKV_MERGE_BLOCK];
    int32_t ids[EACH * QKV_MERGE_BLOCK];
    size_t at[QKV_MERGE_BLOCK + 1] = {0};
    qkv_buf_clear(&l->joined);
    for (size_t i = 0; i < l->pending; i++) {
        const qkv_text *part = l->part[i];
        const size_t skip = part[1].len >= l->prefix_len ? l->prefix_len : 0;
        qkv_buf_add(&l->joined, part[0].data, part[0].len);
        qkv_buf_add(&l->joined, part[1].data + skip, part[1].len - skip);
        at[i + 1] = l->joined.len;
    }
    if (l->joined.status != QKV_OK) return l->joined.status;
    const char *joined = l->joined.data ? l->joined.data : "";
    for (size_t i = 0; i < l->pending; i++) {
        texts[EACH * i] = l->part[i][0];
        texts[EACH * i + 1] = l->part[i][1];
        texts[EACH * i + 2] = (qkv_text){joined + at[i], at[i + 1] - at[i]};
    }
    qkv_vocab_find_many(&l->tok->vocab, texts, EACH * l->pending, ids);
    for (size_t i = 0; i < l->pending; i++) {
        const qkv_merge merge = {ids[EACH * i], ids[EACH * i + 1], ids[EACH * i + 2]};
        const qkv_text *part = l->part[i];
        if (merge.left < 0 || merge.right < 0 || merge.result < 0)
            return qkv_fail(QKV_BAD_FILE,
                            "merge %zu, \"%.*s\" + \"%.*s\": %s is not in the vocabulary",
                            l->merges.n, (int)(part[0].len > 60 ? 60 : part[0].len), part[0].data,
                            (int)(part[1].len > 60 ? 60 : part[1].len), part[1].data,
                            merge.left < 0    ? "the first part"
                            : merge.right < 0 ? "the second part"
                                              : "the result");
        if (!QKV_PUSH(l->merges, merge)) return QKV_FAILED;
    }
    l->pending = 0;
    return QKV_OK;
}

qkv_status qkv_merge_list_add(qkv_merge_list *l, qkv_text left, qkv_text right) {
    if (l->merges.n + l->pending >= QKV_MERGES_MAX)
        return qkv_fail(QKV_BAD_FILE, "more than %u merges", QKV_MERGES_MAX);
    l->part[l->pending][0] = left;
    l->part[l->pending][1] = right;
    return ++l->pending == QKV_MERGE_BLOCK ? resolve(l) : QKV_OK;
}

qkv_status qkv_merge_list_end(qkv_merge_list *l) {
    return l->pending ? resolve(l) : QKV_OK;
}

void qkv_merge_list_free(qkv_merge_list *l) {
    qkv_free(l->merges.at);
    qkv_buf_free(&l->joined);
}
