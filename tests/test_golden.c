/* Whole models against PyTorch: hidden rows, loss, every gradient, ten AdamW steps and the weights
 * after them, as golden/make_model_golden.py wrote them.
 * Weights and tokens are the same formulas as there. */
#include "folder/folder.h"
#include "task/task.h"
#include "tiny.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/safetensors.h"
#include "train/optim.h"

#define BOUND 1e-5 /* relative to the largest value of a tensor */

static qkv_tape tape;
static qkv_safetensors golden;
static tiny_batch source, target;

static int set_up(void **state) {
    (void)state;
    return qkv_tape_init(&tape) != QKV_OK ||
           qkv_safetensors_open(SOURCE_DIR "/tests/golden/model_golden.safetensors", &golden) !=
               QKV_OK;
}

static int tear_down(void **state) {
    (void)state;
    qkv_safetensors_close(&golden);
    qkv_tape_free(&tape);
    return 0;
}

static uint32_t fnv(const char *name) {
    uint32_t h = 0x811c9dc5u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x01000193u;
    return h;
}

static void set_weights(qkv_params *p) {
    for (size_t i = 0; i < p->n; i++) {
        const char *name = p->list[i]->name;
        size_t len = strlen(name);
        bool gain = len > 11 && strcmp(name + len - 11, "norm.weight") == 0;
        for (int64_t k = 0; k < p->list[i]->spec.rows * p->list[i]->spec.cols; k++) {
            double step = (double)((k * 37 + fnv(name) % 1009) % 211);
            p->list[i]->tensor.data[k] = (real)((step - 105) / 105 * 0.4 + (gain ? 1 : 0));
        }
    }
}

/* Tokens by formula; the parent of node i is node i / 2. */
static void make_batch(tiny_batch *b, const int32_t *lengths, int32_t step, int32_t offset) {
    tiny_batch_make(b, lengths, 3, 11, 3, 1);
    for (int32_t r = 0; r < b->rows; r++) b->ids[r] = (r * step + offset) % 11;
    for (int32_t s = 0; s < b->n; s++) {
        int32_t first = b->start[s], n = b->start[s + 1] - first;
        for (int32_t i = 0; i < n; i++) {
            b->next[first + i] = i + 1 < n ? b->ids[first + i + 1] : 0;
            b->head[first + i] = i ? i / 2 : -1;
        }
    }
}

/* The stored tensor "NN/what", which must have n elements, as real numbers; freed by the caller.
 * NULL: there is none. */
static real *stored(const char *number, const char *what, int64_t n) {
    char name[200];
    snprintf(name, sizeof name, "%s/%s", number, what);
    const qkv_stored *t = qkv_safetensors_find(&golden, name);
    if (!t) return NULL;
    if (t->elements != n)
        fail_msg("%s has %lld elements, not %lld", name, (long long)t->elements, (long long)n);
    float *x = qkv_alloc((size_t)n * sizeof *x);
    assert_ok(qkv_stored_to_float(t, x));
    real *out = qkv_alloc((size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = (real)x[i];
    qkv_free(x);
    return out;
}

/* Relative to the largest value of the tensor, however small that is. */
static void compare(const char *settings, const char *number, const char *what, const real *x,
                    int64_t n, double bound) {
    real *wanted = stored(number, what, n);
    if (!wanted) fail_msg("%s: %s/%s is not stored", settings, number, what);
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double size = wanted[i] < 0 ? -(double)wanted[i] : (double)wanted[i];
        double error = (double)x[i] - (double)wanted[i];
        if (error < 0) error = -error;
        if (size > largest) largest = size;
        if (!(error <= worst)) worst = error;
    }
    if (!(worst <= bound * largest))
        fail_msg("%s: %s is off by %.3g of %.3g", settings, what, worst, largest);
    qkv_free(wanted);
}

static void compare_params(const char *settings, const char *number, const char *kind,
                           qkv_params *p, bool gradients, double bound) {
    for (size_t i = 0; i < p->n; i++) {
        char what[160];
        const qkv_tensor *x = &p->list[i]->tensor;
        snprintf(what, sizeof what, "%s/%s", kind, p->list[i]->name);
        compare(settings, number, what, gradients ? x->grad : x->data, x->rows * x->cols, bound);
    }
}

static qkv_tensor *forward(qkv_model *m) {
    qkv_tape_begin(&tape, QKV_TRAIN, 1, 1);
    qkv_tensor *loss = tiny_loss(&tape, m, &source, &target);
    assert_ok(qkv_tape_status(&tape));
    return loss;
}

static void differentiate(const char *settings, const char *number, qkv_model *m) {
    qkv_tensor *loss = forward(m);
    assert_ok(qkv_tape_backward(&tape, &loss, 1));
    compare_params(settings, number, "grad", qkv_model_params(m), true, BOUND);
    qkv_params_zero_grads(qkv_model_params(m));
}

static void train(const char *settings, const char *number, qkv_model *m) {
    qkv_params *p = qkv_model_params(m);
    qkv_optim o;
    qkv_optim_spec spec = qkv_optim_defaults(QKV_OPTIM_ADAMW);
    spec.beta2 = 0.98, spec.decay = 0.1, spec.eps = 1e-3;
    assert_ok(qkv_optim_init(&o, p, &spec));
    real losses[10];
    for (int step = 0; step < 10; step++) {
        qkv_tensor *loss = forward(m);
        losses[step] = loss->data[0];
        assert_ok(qkv_tape_backward(&tape, &loss, 1));
        qkv_update u = {.lr = 0.01};
        assert_ok(qkv_optim_step(&o, &u));
    }
    qkv_optim_settle(&o);
    compare(settings, number, "losses", losses, 10, BOUND);
    compare_params(settings, number, "final", p, false, BOUND);
    qkv_optim_free(&o);
}

/* Hidden rows and loss; gradients and ten steps where they are stored. */
static void check(const char *number, const char *settings, bool differentiated) {
    qkv_model *m = tiny_model(settings, true, 1);
    const bool embed = qkv_model_config(m)->task == QKV_TASK_EMBED;
    set_weights(qkv_model_params(m));
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    qkv_tensor *hidden = embed ? qkv_model_pooled(&tape, m, &source.tokens)
                               : tiny_hidden(&tape, m, &source, &target);
    assert_ok(qkv_tape_status(&tape));
    compare(settings, number, "hidden", hidden->data, hidden->rows * hidden->cols, BOUND);
    if (!embed) {
        qkv_tensor *loss = tiny_loss(&tape, m, &source, &target);
        assert_ok(qkv_tape_status(&tape));
        compare(settings, number, "loss", loss->data, 1, BOUND);
    }
    char trained[40];
    snprintf(trained, sizeof trained, "%s/losses", number);
    const bool steps = qkv_safetensors_find(&golden, trained) != NULL;
    if (steps || differentiated) differentiate(settings, number, m);
    if (steps) train(settings, number, m);
    qkv_model_free(m);
}

/* All cases whose key begins with `kind`; returns how many. */
static size_t check_all(const char *kind, bool differentiated) {
    const size_t n = strlen(kind);
    size_t cases = 0;
    for (size_t i = 0; i < golden.n_meta; i++) {
        if (strncmp(golden.meta_key[i], kind, n) != 0) continue;
        check(golden.meta_key[i] + n, golden.meta_value[i], differentiated);
        cases++;
    }
    return cases;
}

static void test_models(void **state) {
    static const int32_t src_len[] = {5, 1, 7}, tgt_len[] = {4, 3, 6};
    (void)state;
    make_batch(&source, src_len, 7, 3);
    make_batch(&target, tgt_len, 5, 1);
    assert_true(check_all("case.", false) >= 50);
}

/* Patterns over several blocks of queries, with gradients. */
static void test_long_sequences(void **state) {
    static const int32_t src_len[] = {130, 1, 79}, tgt_len[] = {150, 66, 1};
    (void)state;
    make_batch(&source, src_len, 7, 3);
    make_batch(&target, tgt_len, 5, 1);
    assert_true(check_all("long.", true) >= 8);
}

static bool has_case(const char *key, const char *value) {
    char wanted[80];
    const int n = snprintf(wanted, sizeof wanted, " %s=%s", key, value);
    for (size_t i = 0; i < golden.n_meta; i++) {
        const char *at = strstr(golden.meta_value[i], wanted);
        if (at && (at[n] == ' ' || !at[n])) return true;
    }
    return false;
}

/* Has one of the models that transformers made (test_foreign.c compares them) this choice? */
static bool has_foreign_case(const qkv_setting *row, int value) {
    DIR *d = opendir(SOURCE_DIR "/tests/golden/foreign");
    struct dirent *entry;
    bool found = false;
    assert_non_null(d);
    while (!found && (entry = readdir(d))) {
        char folder[400];
        qkv_config config;
        if (entry->d_name[0] == '.') continue;
        snprintf(folder, sizeof folder, SOURCE_DIR "/tests/golden/foreign/%s", entry->d_name);
        assert_ok(qkv_folder_read_config(folder, &config, NULL));
        found = *(const int *)((const char *)&config + row->offset) == value;
    }
    closedir(d);
    return found;
}

/* Every choice of the configuration table (positions, patterns, norms, activations, pools, cells,
 * tasks …) has a golden case, but for the default, which all others have. */
static void test_all_rows_have_cases(void **state) {
    /* how weights begin and are kept; for a decoder, which takes its rows from tables
     * that are here */
    static const char *const others[] = {"init", "weights", "decoder_position",
                                         "decoder_attention"};
    qkv_config config;
    (void)state;
    qkv_config_default(&config);
    const qkv_settings s = qkv_config_settings(&config);
    for (size_t k = 0; k < s.n; k++) {
        const qkv_setting *row = &s.rows[k];
        bool asked = row->type == QKV_SETTING_CHOICE;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            asked = asked && strcmp(row->name, others[i]) != 0;
        for (int v = 0; asked && row->choices[v]; v++)
            if (v != (int)row->standard && !has_case(row->name, row->choices[v]) &&
                !has_foreign_case(row, v))
                fail_msg("no golden case has %s=%s", row->name, row->choices[v]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_long_sequences),
        cmocka_unit_test(test_all_rows_have_cases),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
