/* The header of a GGUF file, tensors too: what is accepted lies inside the file, and every entry can
 * be asked for. The four letters are put before the bytes. */
#include "fuzz.h"
#include "base/buf.h"
#include "store/gguf.h"

#include <string.h>

static void ask(const qkv_gguf *g, const qkv_gguf_entry *e) {
    char key[256];
    int64_t whole;
    double real;
    bool truth;
    qkv_text text;
    const uint8_t *at = NULL;
    uint64_t bytes = 0;
    if (e->type == QKV_GGUF_STRING)
        for (uint64_t i = 0; i < e->n && i < 1000; i++) bytes += qkv_gguf_string_at(e, &at).len;
    else
        for (uint64_t i = 0; i < e->n && i < 1000; i++) qkv_gguf_real_at(e, i);
    assert(bytes <= g->size);
    if (e->key.len >= sizeof key || memchr(e->key.data, 0, e->key.len)) return;
    memcpy(key, e->key.data, e->key.len);
    key[e->key.len] = 0;
    assert(qkv_gguf_find(g, key) == e);
    (void)qkv_gguf_int(g, key, true, &whole);
    (void)qkv_gguf_real(g, key, true, &real);
    (void)qkv_gguf_bool(g, key, &truth);
    (void)qkv_gguf_string(g, key, true, &text);
}

void fuzz_gguf(const uint8_t *data, size_t n) {
    qkv_buf file = {0};
    qkv_gguf g;
    qkv_buf_add(&file, "GGUF", 4);
    qkv_buf_add(&file, data, n);
    if (qkv_gguf_read(file.data, file.len, true, &g) != QKV_OK) {
        assert(!strchr(qkv_error(), '\n') || memchr(data, '\n', n));
    } else {
        for (size_t i = 0; i < g.n_entries; i++) ask(&g, &g.entries[i]);
        for (size_t i = 0; i < g.n_tensors; i++) {
            const qkv_gguf_tensor *t = &g.tensors[i];
            const char *const at = t->data;
            assert(at >= file.data && at <= file.data + file.len);
            assert(t->bytes <= (uint64_t)(file.data + file.len - at));
            assert(t->shape[0] >= 1 && t->rank <= 4);
        }
        qkv_gguf_free(&g);
    }
    qkv_buf_free(&file);
}
