/* safetensors: what is accepted lies inside the file, covers it, and can be read to its last byte.
 *
 * A fuzzer hardly ever makes the length word fit. So an input that begins with 'h' is a header: its
 * second byte says how many zero bytes of data follow, and the length word is put before it. Any
 * other input is a file as it is. */
#include "fuzz.h"
#include "store/safetensors.h"

#include <string.h>

static void look(const char *path, size_t size) {
    qkv_safetensors s;
    if (qkv_safetensors_open(path, &s) != QKV_OK) {
        assert(!strchr(qkv_error(), '\n'));
        return;
    }
    size_t total = 0;
    for (size_t i = 0; i < s.n; i++) {
        const qkv_stored *t = &s.tensors[i];
        const char *data = t->data;
        assert(data >= s.file.data && t->bytes <= size && data + t->bytes <= s.file.data + size);
        assert(qkv_safetensors_find(&s, t->name) == t);
        total += t->bytes;
        float values[256];
        if (t->dtype <= QKV_DTYPE_F64 && t->elements <= 256) {
            qkv_status status = qkv_stored_to_float(t, values);
            assert(status == QKV_OK);
        }
    }
    assert(total <= size);
    qkv_safetensors_close(&s);
}

void fuzz_safetensors(const uint8_t *data, size_t n) {
    if (n < 2 || data[0] != 'h') {
        look(fuzz_as_file(data, n), n);
        return;
    }
    static const char zeros[256];
    qkv_buf file = {0};
    uint64_t length = n - 2;
    qkv_buf_add(&file, &length, sizeof length);
    qkv_buf_add(&file, data + 2, n - 2);
    qkv_buf_add(&file, zeros, data[1]);
    look(fuzz_as_file(file.data, file.len), file.len);
    qkv_buf_free(&file);
}
