/* Synthetic data into files. */
#include "base/file.h"
#include "data/synthetic.h"

qkv_status qkv_demo_write(const char *name, uint64_t seed, size_t rows, bool held_out,
                          const char *path) {
    const qkv_synthetic *m = qkv_synthetic_find(name);
    if (!m)
        return qkv_fail(
            QKV_USAGE, "there is no synthetic data \"%.40s\"; there are reviews and numbers", name);
    qkv_buf text = {0};
    qkv_synthetic_rows(m, seed, rows, held_out, &text);
    qkv_status status = text.status;
    if (status == QKV_OK) status = qkv_file_write(path, text.data, text.len);
    qkv_buf_free(&text);
    return status;
}
