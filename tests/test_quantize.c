/* Quantized weights on disk: written, mapped, used;
 * and files that are not what they should be. */
#include "tiny.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/weights.h"
#include "store/safetensors.h"

static const int32_t lengths[] = {7, 1, 12};
static const char *const task[] = {
    "task=classify vocab_size=40 d_model=32 d_ff=48 position=learned",
    "task=lm vocab_size=40 d_model=32 d_ff=48 position=rope activation=swiglu tie=true",
    "task=translate vocab_size=40 d_model=32 d_ff=48 position=sinusoidal norm=post",
};
enum { N_TASKS = sizeof task / sizeof *task };

static char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "test_quantize.%d.%s", (int)getpid(), name);
    return path;
}

/* The task's loss, without gradients. */
static double loss_of(qkv_model *m) {
    tiny_batch src, tgt;
    qkv_tape t;
    tiny_batch_make(&src, lengths, 3, 40, 3, 5);
    tiny_batch_make(&tgt, lengths, 3, 40, 3, 6);
    assert_ok(qkv_tape_init(&t));
    qkv_tape_begin(&t, QKV_EVAL, 0, 0);
    const qkv_tensor *loss = tiny_loss(&t, m, &src, &tgt);
    assert_ok(qkv_tape_status(&t));
    const double value = (double)loss->data[0];
    qkv_tape_free(&t);
    return value;
}

static double loss_in_file(const char *settings, const char *path) {
    qkv_model *m;
    assert_ok(tiny_build(settings, &m));
    assert_ok(qkv_model_open(m, path));
    const double loss = loss_of(m);
    qkv_model_free(m);
    return loss;
}

/* f32 through a file has the same bits; quantized ones come close, the closer the more bits they
 * have. */
static void formats(void **state) {
    (void)state;
    static const double bound[QKV_WEIGHT_OURS] = {0, 0.002, 0.01, 0.1};
    for (int i = 0; i < N_TASKS; i++) {
        qkv_model *m = tiny_model(task[i], false, 3);
        const double whole = loss_of(m);
        for (int f = 0; f < QKV_WEIGHT_OURS; f++) {
            char *path = path_of("safetensors");
            assert_ok(qkv_weights_quantize(qkv_model_params(m), (qkv_weight_format)f, path));
            const double loss = loss_in_file(task[i], path);
            if (!(fabs(loss - whole) <= bound[f] * fabs(whole)))
                fail_msg("%s as %s: loss %.6f, whole %.6f", task[i], qkv_weight_names[f], loss,
                         whole);
            assert_true(f == 0 || loss != whole);
            unlink(path);
        }
        qkv_model_free(m);
    }
}

/* A classifier whose table of n-grams is larger than all else: a quarter of the bytes, the same
 * answers but for rounding, and half of them as bf16. */
static void tables_of_ngrams(void **state) {
    (void)state;
    static const char settings[] =
        "task=classify vocab_size=40 d_model=32 d_ff=48 classes=3 ngrams=2 ngram_buckets=20001";
    static const double share[QKV_WEIGHT_OURS] = {1, 0.54, 0.31, 0.31};
    qkv_model *m = tiny_model(settings, false, 3);
    const qkv_param *table = qkv_param_find(qkv_model_params(m), "head.ngrams.weight");
    for (int64_t i = 0; i < 20001 * 3; i++)
        table->tensor.data[i] = (real)(sin((double)i) * (i % 1000 == 0 ? 3 : 0.5));
    const double whole = loss_of(m);
    size_t bytes = 0;
    for (int f = 0; f < QKV_WEIGHT_OURS; f++) {
        char *path = path_of("safetensors");
        assert_ok(qkv_weights_quantize(qkv_model_params(m), (qkv_weight_format)f, path));
        qkv_safetensors file;
        assert_ok(qkv_safetensors_open(path, &file));
        if (f == 0) bytes = file.file.size;
        if ((double)file.file.size > share[f] * (double)bytes)
            fail_msg("%s: %zu of %zu bytes", qkv_weight_names[f], file.file.size, bytes);
        qkv_safetensors_close(&file);
        const double loss = loss_in_file(settings, path);
        assert_true(fabs(loss - whole) <= (f == 3 ? 0.1 : 0.01) * fabs(whole));
        unlink(path);
    }
    qkv_model_free(m);
}

/* Rewrites the file with tensor `name` changed by `change`,
 * and expects the words when it is opened. */
static void expect_refusal(const char *name, void (*change)(qkv_to_store *t), const char *words) {
    char path[128];
    qkv_model *m = tiny_model(task[0], false, 3);
    snprintf(path, sizeof path, "%s", path_of("broken"));
    assert_ok(qkv_weights_quantize(qkv_model_params(m), QKV_WEIGHT_INT8, path));
    qkv_model_free(m);
    qkv_safetensors file;
    assert_ok(qkv_safetensors_open(path, &file));
    qkv_to_store *list = calloc(file.n, sizeof *list);
    char *other = strdup(path_of("other"));
    for (size_t i = 0; i < file.n; i++) {
        const qkv_stored *t = &file.tensors[i];
        list[i] = (qkv_to_store){t->name, t->dtype, t->rank, {0}, t->data};
        memcpy(list[i].shape, t->shape, sizeof t->shape);
        if (strcmp(t->name, name) == 0) change(&list[i]);
    }
    assert_ok(qkv_safetensors_write(other, list, file.n, NULL));
    qkv_safetensors_close(&file);
    assert_ok(tiny_build(task[0], &m));
    assert_fails(qkv_model_open(m, other), QKV_BAD_FILE, words);
    qkv_model_free(m);
    unlink(path);
    unlink(other);
    free(list);
    free(other);
}

static void rename_it(qkv_to_store *t) {
    t->name = "something.else";
}
static void halve(qkv_to_store *t) {
    t->shape[0] /= 2;
}
static void as_nibbles(qkv_to_store *t) {
    t->dtype = QKV_DTYPE_U8;
}
static void as_i32(qkv_to_store *t) {
    t->dtype = QKV_DTYPE_I32;
    t->shape[1] /= 4;
}

#define MATRIX "encoder.layers.0.ffn.in.weight"
static void refusals(void **state) {
    (void)state;
    expect_refusal(MATRIX, rename_it, "there is no tensor");
    expect_refusal(MATRIX ".scale", rename_it, "without their scales");
    expect_refusal(MATRIX ".scale", halve, "its scales");
    expect_refusal(MATRIX, halve, "shape");
    expect_refusal(MATRIX, as_nibbles, "shape");
    expect_refusal(MATRIX, as_i32, MATRIX);
    expect_refusal("encoder.norm.weight", halve, "shape");
}

/* Not rounded twice, not trained, and no gradient through it. */
static void not_for_training(void **state) {
    (void)state;
    char *path = path_of("safetensors");
    qkv_model *m = tiny_model(task[0], false, 3);
    assert_ok(qkv_weights_quantize(qkv_model_params(m), QKV_WEIGHT_INT4, path));
    qkv_model_free(m);
    assert_ok(tiny_build(task[0], &m));
    assert_ok(qkv_model_open(m, path));
    assert_fails(qkv_weights_quantize(qkv_model_params(m), QKV_WEIGHT_INT8, path_of("other")),
                 QKV_USAGE, "already");
    qkv_model_free(m);
    assert_ok(tiny_build("task=classify weights=int8", &m));
    assert_fails(qkv_model_allocate(m, true), QKV_USAGE, "qkv quantize");
    qkv_model_free(m);
    unlink(path_of("safetensors"));
}

static qkv_status quantize_once(const void *params) {
    return qkv_weights_quantize(params, QKV_WEIGHT_INT8, path_of("safetensors"));
}

static void out_of_memory(void **state) {
    (void)state;
    qkv_model *m = tiny_model(task[0], false, 3);
    assert_fails_cleanly(quantize_once, qkv_model_params(m), 0);
    qkv_model_free(m);
    unlink(path_of("safetensors"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),       cmocka_unit_test(tables_of_ngrams),
        cmocka_unit_test(refusals),      cmocka_unit_test(not_for_training),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
