/* GGUF models: every architecture that is read has a case in tests/golden/gguf, which gives the
 * logits of transformers; damaged files, and what is not known, are refused with a reason. */
#include "base/file.h"
#include "base/mem.h"
#include "folder/folder.h"
#include "foreign/gguf_families.h"
#include "store/gguf.h"
#include "tiny.h"

#include <stdlib.h>
#include <unistd.h>

#define CASES SOURCE_DIR "/tests/golden/gguf"
/* of the largest logit: of floats, and of activations in 16 bits */
#define BOUND_EXACT 1e-5
#define BOUND       1e-3

enum { TOKENS = 12, VOCAB = 96 };
static const int32_t ids[TOKENS] = {1, 5, 9, 33, 2, 77, 5, 9, 34, 60, 61, 11};

static void path_of(const char *name, const char *end, char out[300]) {
    snprintf(out, 300, "%s/%s.%s", CASES, name, end);
}

static qkv_model *open_model(const char *path) {
    qkv_config config;
    qkv_model *m;
    assert_ok(qkv_folder_read_config(path, &config, NULL));
    assert_ok(qkv_model_build(&config, &m));
    assert_ok(qkv_folder_open_weights(path, m));
    return m;
}

static void check_model(const char *name, double bound) {
    char path[300];
    qkv_file golden;
    qkv_tape tape;
    real wanted[TOKENS * VOCAB];
    path_of(name, "f32", path);
    assert_ok(qkv_file_open(path, SIZE_MAX, &golden));
    assert_int_equal(golden.size, 4 * TOKENS * VOCAB);
    for (int i = 0; i < TOKENS * VOCAB; i++) {
        float x;
        memcpy(&x, golden.data + 4 * i, 4);
        wanted[i] = (real)x;
    }
    qkv_file_close(&golden);
    path_of(name, "gguf", path);
    qkv_model *m = open_model(path);
    const int32_t start[] = {0, TOKENS};
    const qkv_tokens tokens = {.layout = {.n = 1, .start = start}, .ids = ids, .rows = TOKENS};
    assert_ok(qkv_tape_init(&tape));
    qkv_tape_begin(&tape, QKV_EVAL, 0, 0);
    qkv_tensor *x = qkv_model_decode(&tape, m, &tokens, NULL, NULL, NULL);
    x = qkv_model_vocab_logits(&tape, m, x);
    assert_ok(qkv_tape_status(&tape));
    assert_close(name, x->data, wanted, TOKENS * VOCAB, bound);
    qkv_tape_free(&tape);
    qkv_model_free(m);
}

static void check_models(double bound) {
    const qkv_gguf_family *f;
    check_model("llama_tied", bound);
    for (size_t i = 0; (f = qkv_gguf_family_at(i)); i++) check_model(f->name, bound);
}

static void models(void **state) {
    (void)state;
    unsetenv("QKV_EXACT");
    check_models(BOUND);
    setenv("QKV_EXACT", "1", 1);
    check_models(BOUND_EXACT);
    unsetenv("QKV_EXACT");
}

/* ---- files that are none ---- */

static qkv_file whole;

static int set_up(void **state) {
    (void)state;
    char path[300];
    path_of("llama", "gguf", path);
    return qkv_file_open(path, SIZE_MAX, &whole) != QKV_OK;
}

static int tear_down(void **state) {
    (void)state;
    qkv_file_close(&whole);
    return 0;
}

/* The length of the header: where the first tensor begins. */
static size_t header_size(void) {
    qkv_gguf g;
    size_t least = whole.size;
    assert_ok(qkv_gguf_read(whole.data, whole.size, true, &g));
    assert_true(g.n_tensors > 10);
    for (size_t i = 0; i < g.n_tensors; i++) {
        const size_t at = (size_t)((const char *)g.tensors[i].data - whole.data);
        if (at < least) least = at;
    }
    qkv_gguf_free(&g);
    return least;
}

static void cut_anywhere(void **state) {
    (void)state;
    const size_t header = header_size();
    qkv_gguf g;
    for (size_t n = 0; n < whole.size; n += n < header ? 1 : 997)
        assert_int_equal(qkv_gguf_read(whole.data, n, true, &g), QKV_BAD_FILE);
}

/* Any byte of the header changed is refused, or read as something that lies within the file. */
static void changed_anywhere(void **state) {
    (void)state;
    const size_t header = header_size();
    char *copy = malloc(whole.size);
    memcpy(copy, whole.data, whole.size);
    static const uint8_t flips[] = {0x01, 0x80, 0xff};
    for (size_t i = 4; i < header; i++)
        for (size_t f = 0; f < sizeof flips; f++) {
            qkv_gguf g;
            copy[i] = (char)(whole.data[i] ^ flips[f]);
            if (qkv_gguf_read(copy, whole.size, true, &g) == QKV_OK) {
                for (size_t t = 0; t < g.n_tensors; t++)
                    assert_true((const char *)g.tensors[t].data + g.tensors[t].bytes <=
                                copy + whole.size);
                qkv_gguf_free(&g);
            }
            copy[i] = whole.data[i];
        }
    free(copy);
}

/* A file with `old` replaced by `new`, of the same length, is refused when it is opened. */
static void expect_refusal(const char *old, const char *new, const char *words) {
    char path[64] = "/tmp/test_gguf_XXXXXX";
    qkv_config config;
    qkv_model *m = NULL;
    char *copy = malloc(whole.size), *at;
    memcpy(copy, whole.data, whole.size);
    at = memmem(copy, whole.size, old, strlen(old));
    assert_non_null(at);
    memcpy(at, new, strlen(new));
    close(mkstemp(path));
    assert_ok(qkv_file_write(path, copy, whole.size));
    qkv_status status = qkv_folder_read_config(path, &config, NULL);
    if (status == QKV_OK) status = qkv_model_build(&config, &m);
    if (status == QKV_OK) status = qkv_folder_open_weights(path, m);
    assert_fails(status, QKV_BAD_FILE, words);
    if (m) qkv_model_free(m);
    unlink(path);
    free(copy);
}

static void refused_by_name(void **state) {
    (void)state;
    expect_refusal("blk.1.ffn_up.weight", "blk.1.ffn_xx.weight",
                   "blk.1.ffn_xx.weight is not known");
    expect_refusal("blk.1.attn_k.weight", "blk.9.attn_k.weight",
                   "blk.9.attn_k.weight is not known");
    expect_refusal("llama.rope.freq_base", "llama.rope.freq_what", "llama.rope.freq_what");
    expect_refusal("llama.block_count", "llama.block_xxunt", "llama.block_xxunt");
    expect_refusal("output_norm.weight", "blk.0.ffn_norm.bia", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(changed_anywhere),
        cmocka_unit_test(refused_by_name),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
