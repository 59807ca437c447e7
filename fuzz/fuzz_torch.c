/* pytorch_model.bin: a file as it is; or, beginning with 'p', a pickle by itself. What is accepted lies
 * inside the file. */
#include "fuzz.h"
#include "foreign/container.h"
#include "foreign/pickle.h"

static void look_at_pickle(const char *data, size_t n) {
    qkv_arena memory;
    qkv_pickle p;
    qkv_arena_init(&memory);
    if (qkv_pickle_read(data, n, &memory, &p) == QKV_OK) {
        assert(p.used <= n);
        qkv_pickle_free(&p);
    }
    qkv_arena_free(&memory);
}

void fuzz_torch(const uint8_t *data, size_t n) {
    if (n && data[0] == 'p') {
        look_at_pickle((const char *)data + 1, n - 1);
        return;
    }
    qkv_container c = {0};
    qkv_arena_init(&c.names);
    if (qkv_container_torch.open(fuzz_as_file(data, n), &c) == QKV_OK) {
        for (size_t i = 0; i < c.tensors.n; i++) {
            const qkv_stored *t = &c.tensors.at[i].stored;
            const char *at = t->data, *file = c.files.at[0].data;
            assert(at >= file && t->bytes <= n && at + t->bytes <= file + n);
        }
    }
    qkv_container_close(&c);
}
