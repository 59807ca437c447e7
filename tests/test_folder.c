/* Damaged model folders: every file truncated, changed, swapped with another or missing. Opening
 * must say that the file is bad, or give a model that answers; it must never crash, hang or take
 * much memory. QKV_MUTATIONS sets how many changes are tried (tests/long_folder.sh: 100,000). */
#include "folders.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "store/safetensors.h"

#include <stdlib.h>
#include <unistd.h>

static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors"};
enum { FILES = 3 };

static char folder[64], model[128];
static qkv_buf whole[FILES];

/* Written in place: qkv_file_write's fsync would take most of the time. */
static void put_file(int i, const char *data, size_t n) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", model, names[i]);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static int make(void **state) {
    (void)state;
    make_temporary(folder);
    qkv_threads_set(1);
    make_model_folder(folder, "classify", NULL);
    snprintf(model, sizeof model, "%s/classify", folder);
    for (int i = 0; i < FILES; i++) {
        char path[200];
        qkv_file file;
        snprintf(path, sizeof path, "%s/%s", model, names[i]);
        assert_ok(qkv_file_open(path, SIZE_MAX, &file));
        qkv_buf_add(&whole[i], file.data, file.size);
        qkv_file_close(&file);
    }
    return 0;
}

static int clear(void **state) {
    (void)state;
    for (int i = 0; i < FILES; i++) qkv_buf_free(&whole[i]);
    remove_temporary(folder);
    return 0;
}

/* Opens, and asks when it opens. Returns the status of opening. */
static qkv_status try_model(void) {
    qkv_text_model *m;
    const qkv_status status = qkv_text_model_open(model, &m);
    if (status != QKV_OK) {
        assert_null(m);
        if (status != QKV_BAD_FILE) fail_msg("status %d: %s", status, qkv_error());
        assert_true(*qkv_error() && !strchr(qkv_error(), '\n'));
        return status;
    }
    float *p = calloc(65536, sizeof *p);
    size_t classes = 0;
    while (qkv_text_model_label(m, classes)) classes++;
    if (classes <= 65536) {
        const qkv_text text = {"three four and five", 19};
        const qkv_status asked = qkv_classify(m, &text, 1, p);
        if (asked != QKV_OK) assert_true(*qkv_error() != 0);
    }
    free(p);
    qkv_text_model_close(m);
    return QKV_OK;
}

static void the_whole_folder_opens(void **state) {
    (void)state;
    assert_ok(try_model());
}

static void cut_files_are_bad(void **state) {
    (void)state;
    for (int i = 0; i < FILES; i++) {
        const size_t step = whole[i].len / 40 + 1;
        for (size_t n = 0; n + 2 < whole[i].len; n += step) {
            put_file(i, whole[i].data, n);
            assert_int_equal(try_model(), QKV_BAD_FILE);
        }
        put_file(i, whole[i].data, whole[i].len);
    }
}

static void missing_and_swapped_files_are_bad(void **state) {
    (void)state;
    for (int i = 0; i < FILES; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s/%s", model, names[i]);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(try_model(), QKV_BAD_FILE);
        for (int k = 0; k < FILES; k++) {
            if (k == i) continue;
            put_file(i, whole[k].data, whole[k].len);
            assert_int_equal(try_model(), QKV_BAD_FILE);
        }
        put_file(i, whole[i].data, whole[i].len);
    }
    assert_ok(try_model());
}

/* A configuration that asks for a large model beside small weights is refused before
 * there is memory for it. */
static void sizes_are_checked_before_memory_is_taken(void **state) {
    (void)state;
    static const char *const lies[][2] = {{"\"d_model\": 16", "\"d_model\": 1048576"},
                                          {"\"layers\": 2", "\"layers\": 10000"},
                                          {"\"classes\": 2", "\"classes\": 1000000"},
                                          {"\"d_ff\": 24", "\"d_ff\": 4194304"}};
    /* A longest length alone may be true; then it costs no memory. */
    static const char *const length[] = {"\"max_len\": 40", "\"max_len\": 1048576"};
    const size_t n = sizeof lies / sizeof *lies;
    for (size_t i = 0; i <= n; i++) {
        const char *const *lie = i < n ? lies[i] : length;
        qkv_buf text = {0};
        const char *at = strstr(whole[0].data, lie[0]);
        assert_non_null(at);
        qkv_buf_add(&text, whole[0].data, (size_t)(at - whole[0].data));
        qkv_buf_puts(&text, lie[1]);
        qkv_buf_puts(&text, at + strlen(lie[0]));
        put_file(0, text.data, text.len);
        const qkv_status status = try_model();
        if (i < n) assert_int_equal(status, QKV_BAD_FILE);
        qkv_buf_free(&text);
    }
    put_file(0, whole[0].data, whole[0].len);
}

/* One change of a file: a few bytes anywhere, a run doubled or left out. */
static void mutate(qkv_rng rng, uint64_t at, const qkv_buf *from, qkv_buf *to) {
    qkv_buf_clear(to);
    qkv_buf_add(to, from->data, from->len);
    const uint32_t kind = qkv_rng_u32(rng, at) % 4;
    for (uint32_t k = 0; k < (kind == 0 ? 1u : kind == 1 ? 8u : 0u); k++) {
        const uint32_t place = qkv_rng_u32(rng, at + 1 + k), value = qkv_rng_u32(rng, at + 20 + k);
        to->data[place % to->len] = (char)value;
    }
    if (kind < 2) return;
    const size_t a = qkv_rng_u32(rng, at + 40) % from->len,
                 n = qkv_rng_u32(rng, at + 41) % 64 % (from->len - a);
    if (kind == 2) { /* left out */
        memmove(to->data + a, to->data + a + n, to->len - a - n);
        to->len -= n;
    } else {
        qkv_buf_clear(to);
        qkv_buf_add(to, from->data, a + n);
        qkv_buf_add(to, from->data + a, from->len - a);
    }
}

static void changed_files_are_bad_or_open(void **state) {
    (void)state;
    const char *set = getenv("QKV_MUTATIONS");
    const uint64_t n = set ? strtoull(set, NULL, 10) : 600;
    const qkv_rng rng = {.seed = 7, .stream = 1};
    qkv_buf changed = {0};
    uint64_t bad = 0;
    for (uint64_t i = 0; i < n; i++) {
        const int file = (int)(i % FILES);
        mutate(rng, i * 64, &whole[file], &changed);
        put_file(file, changed.data, changed.len);
        bad += try_model() == QKV_BAD_FILE;
        put_file(file, whole[file].data, whole[file].len);
    }
    print_message("%llu changes, %llu refused; highest memory %zu MiB\n", (unsigned long long)n,
                  (unsigned long long)bad, qkv_peak_rss() >> 20);
    assert_true(bad > n / 4);
#ifndef __SANITIZE_ADDRESS__
    assert_true(qkv_peak_rss() < (size_t)512 << 20);
#endif
    qkv_buf_free(&changed);
}

/* Writes a number that is none into the middle of a tensor of DIR/model.safetensors. */
static void spoil(const char *path, const char *tensor, const void *bits, size_t width) {
    qkv_safetensors file;
    assert_ok(qkv_safetensors_open(path, &file));
    const qkv_stored *t = qkv_safetensors_find(&file, tensor);
    assert_non_null(t);
    const long at =
        (long)((const char *)t->data - file.file.data + (long)(t->bytes / width / 2 * width));
    qkv_safetensors_close(&file);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bits, 1, width, f), width);
    assert_int_equal(fclose(f), 0);
}

/* In every format: the tensor is named, and the place. */
static void weights_that_are_no_numbers_are_refused(void **state) {
    (void)state;
    static const uint32_t nan = 0x7fc00000, infinity = 0xff800000;
    static const uint16_t narrow_nan = 0x7fc0;
    const struct {
        const char *to, *tensor;
        const void *bits;
        size_t width;
    } cases[] = {{"f32", "encoder.embedding.weight", &nan, 4},
                 {"f32", "encoder.layers.1.ffn_norm.weight", &infinity, 4},
                 {"bf16", "encoder.layers.0.attention.qkv.weight", &narrow_nan, 2},
                 {"int8", "encoder.layers.0.attention.qkv.weight.scale", &nan, 4},
                 {"int4", "encoder.layers.0.attention.qkv.weight.scale", &infinity, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char other[128], path[200];
        qkv_text_model *m;
        qkv_quantization made;
        snprintf(other, sizeof other, "%s/%s-%zu", folder, cases[i].to, i);
        if (strcmp(cases[i].to, "f32") == 0)
            make_model_folder(folder, "classify", NULL);
        else
            assert_ok(qkv_quantize(
                &(qkv_quantize_request){.model = model, .out = other, .to = cases[i].to}, &made));
        const char *at = strcmp(cases[i].to, "f32") == 0 ? model : other;
        snprintf(path, sizeof path, "%s/model.safetensors", at);
        spoil(path, cases[i].tensor, cases[i].bits, cases[i].width);
        assert_int_equal(qkv_text_model_open(at, &m), QKV_BAD_FILE);
        assert_non_null(strstr(qkv_error(), cases[i].tensor));
        assert_non_null(strstr(qkv_error(), "element ["));
        put_file(2, whole[2].data, whole[2].len);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_folder_opens),
        cmocka_unit_test(cut_files_are_bad),
        cmocka_unit_test(missing_and_swapped_files_are_bad),
        cmocka_unit_test(sizes_are_checked_before_memory_is_taken),
        cmocka_unit_test(changed_files_are_bad_or_open),
        cmocka_unit_test(weights_that_are_no_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, make, clear);
}
