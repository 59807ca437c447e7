/* Models of other programs: every case of tests/golden/foreign (which transformers made, see
 * golden/make_foreign_golden.py) is opened as it is and gives what it gives there; every family has a
 * case; what is not known is refused by its name. */
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "folder/folder.h"
#include "task/task.h"
#include "foreign/family.h"
#include "foreign/foreign_model.h"
#include "foreign/pickle.h"
#include "tiny.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CASES SOURCE_DIR "/tests/golden/foreign"
#define BOUND 1e-5 /* of the largest output */

enum { NAME = 300 };

static qkv_tape tape;

static int set_up(void **state) {
    (void)state;
    return qkv_tape_init(&tape) != QKV_OK;
}

static int tear_down(void **state) {
    (void)state;
    qkv_tape_free(&tape);
    return 0;
}

/* ---- a case ---- */

typedef struct one_case {
    char folder[NAME];
    qkv_safetensors golden;
    qkv_config config;
    qkv_labels labels;
    qkv_model *m;
    int32_t ids[64], target[64], segment[64], start[3], target_start[3];
    qkv_cells segments[2];
    qkv_tokens src, tgt;
} one_case;

/* Whole numbers of a reference; how many. */
static int32_t whole_numbers(const one_case *c, const char *name, int32_t *out) {
    const qkv_stored *t = qkv_safetensors_find(&c->golden, name);
    if (!t) return 0;
    assert_int_equal(t->dtype, QKV_DTYPE_I64);
    assert_true(t->elements <= 64);
    for (int64_t i = 0; i < t->elements; i++) {
        int64_t x;
        memcpy(&x, (const char *)t->data + 8 * i, 8);
        out[i] = (int32_t)x;
    }
    return (int32_t)t->elements;
}

static void read_reference(one_case *c) {
    char path[NAME + 40];
    int32_t lengths[64];
    snprintf(path, sizeof path, "%s/reference.safetensors", c->folder);
    assert_ok(qkv_safetensors_open(path, &c->golden));
    const int32_t rows = whole_numbers(c, "ids", c->ids);
    assert_int_equal(whole_numbers(c, "lengths", lengths), 2);
    c->start[1] = lengths[0];
    c->start[2] = lengths[0] + lengths[1];
    assert_int_equal(rows, c->start[2]);
    c->src = (qkv_tokens){.layout = {.n = 2, .start = c->start}, .ids = c->ids, .rows = rows};
    const int32_t written = whole_numbers(c, "target", c->target);
    c->target_start[1] = written / 2;
    c->target_start[2] = written;
    c->tgt = (qkv_tokens){
        .layout = {.n = 2, .start = c->target_start}, .ids = c->target, .rows = written};
    whole_numbers(c, "segments", c->segment);
    for (int s = 0; s < 2; s++)
        c->segments[s] = (qkv_cells){.at = c->segment + c->start[s], .n = lengths[s]};
}

static void open_case(one_case *c, const char *folder) {
    *c = (one_case){0};
    snprintf(c->folder, sizeof c->folder, "%s", folder);
    read_reference(c);
    assert_true(qkv_is_foreign(folder));
    assert_ok(qkv_folder_read_config(folder, &c->config, &c->labels));
    assert_ok(qkv_model_build(&c->config, &c->m));
    assert_ok(qkv_folder_open_weights(folder, c->m));
}

static void close_case(one_case *c) {
    qkv_model_free(c->m);
    qkv_labels_free(&c->labels);
    qkv_safetensors_close(&c->golden);
}

/* ---- what comes out ---- */

/* Is the stored reference, if there is one, what was computed? */
static bool compare(const one_case *c, const char *name, const qkv_tensor *y) {
    const qkv_stored *t = qkv_safetensors_find(&c->golden, name);
    if (!t) return false;
    if (qkv_tape_status(&tape) != QKV_OK) fail_msg("%s: %s", c->folder, qkv_error());
    assert_int_equal(t->elements, y->rows * y->cols);
    float *wanted = qkv_alloc((size_t)t->elements * sizeof *wanted);
    real *a = qkv_alloc((size_t)t->elements * sizeof *a),
         *b = qkv_alloc((size_t)t->elements * sizeof *b);
    assert_ok(qkv_stored_to_float(t, wanted));
    for (int64_t i = 0; i < t->elements; i++) {
        a[i] = y->data[i / y->cols * y->ld + i % y->cols];
        b[i] = (real)wanted[i];
    }
    char what[NAME + 40];
    snprintf(what, sizeof what, "%s: %s", c->folder, name);
    assert_close(what, a, b, t->elements, BOUND);
    qkv_free(wanted);
    qkv_free(a);
    qkv_free(b);
    return true;
}

/* The answers of a model: whatever its head gives, for every row where it gives one for each. */
static qkv_tensor *answers(one_case *c) {
    const qkv_shape shape = qkv_shape_of(c->config.task);
    int32_t every[64];
    for (int32_t i = 0; i < 64; i++) every[i] = i;
    switch (shape.head) {
    case QKV_HEAD_CLASSES:
        return qkv_model_classify(&tape, c->m, &c->src);
    case QKV_HEAD_TAGS:
        return qkv_model_tag(&tape, c->m, &c->src, every, c->src.rows);
    case QKV_HEAD_VOCAB: {
        qkv_tensor *x = shape.encoder ? qkv_model_encode(&tape, c->m, &c->src) : NULL;
        if (shape.decoder)
            x = qkv_model_decode(&tape, c->m, shape.encoder ? &c->tgt : &c->src, x,
                                 shape.encoder ? &c->src : NULL, NULL);
        return qkv_model_vocab_logits(&tape, c->m, x);
    }
    default:
        return NULL;
    }
}

static int check_outputs(one_case *c, const char *rows, const char *logits) {
    int compared = 0;
    qkv_tape_begin(&tape, QKV_EVAL, 0, 0);
    if (qkv_shape_of(c->config.task).encoder)
        compared += compare(c, rows, qkv_model_encode(&tape, c->m, &c->src));
    qkv_tape_begin(&tape, QKV_EVAL, 0, 0);
    const qkv_tensor *y = answers(c);
    if (y) compared += compare(c, logits, y);
    return compared;
}

static void check_case(const char *folder) {
    one_case c;
    open_case(&c, folder);
    const qkv_describe_request describe = {.model = folder};
    qkv_description d;
    assert_ok(qkv_describe(&describe, &d));
    assert_int_equal(d.total, qkv_model_params(c.m)->count);
    qkv_description_free(&d);
    const int compared = check_outputs(&c, "rows", "logits");
    if (!compared) fail_msg("%s: nothing was compared", folder);
    c.src.column[QKV_COLUMN_SEGMENTS] = c.segments;
    if (qkv_safetensors_find(&c.golden, "segments"))
        assert_true(check_outputs(&c, "rows_segments", "logits_segments"));
    close_case(&c);
}

/* Calls `each` with every case; how many there are. */
static int for_each_case(const char *root, void (*each)(const char *folder)) {
    DIR *d = opendir(root);
    struct dirent *entry;
    int n = 0;
    assert_non_null(d);
    while ((entry = readdir(d))) {
        char folder[NAME];
        if (entry->d_name[0] == '.') continue;
        snprintf(folder, sizeof folder, "%s/%s", root, entry->d_name);
        each(folder);
        n++;
    }
    closedir(d);
    return n;
}

static void every_case_gives_what_it_gives_there(void **state) {
    (void)state;
    assert_true(for_each_case(CASES, check_case) > 0);
}

/* ---- the table ---- */

static bool has_case[64];

static void note_family(const char *folder) {
    qkv_foreign f;
    assert_ok(qkv_foreign_read(folder, &f));
    for (size_t i = 0; qkv_family_at(i); i++)
        if (qkv_family_at(i) == f.family) has_case[i] = true;
    qkv_foreign_free(&f);
}

static void every_family_has_a_case(void **state) {
    (void)state;
    for_each_case(CASES, note_family);
    for (size_t i = 0; qkv_family_at(i); i++)
        if (!has_case[i])
            fail_msg("%s: no case; add one to golden/make_foreign_golden.py and run it",
                     qkv_family_at(i)->name);
}

static void labels_are_read(void **state) {
    (void)state;
    qkv_config c;
    qkv_labels labels = {0};
    assert_ok(qkv_folder_read_config(CASES "/bert-classes", &c, &labels));
    assert_int_equal(c.classes, 3);
    assert_int_equal(labels.n, 3);
    assert_string_equal(labels.names[1], "perhaps");
    qkv_labels_free(&labels);
}

/* Marks come from ids, not from how tokens are spelled. */
static void marks_are_read_by_id(void **state) {
    (void)state;
    qkv_config c;
    assert_ok(qkv_folder_read_config(CASES "/t5", &c, NULL));
    assert_int_equal(c.begin_token, 0);
    assert_int_equal(c.end_token, 1);
    assert_ok(qkv_folder_read_config(CASES "/gpt2", &c, NULL)); /* 50256 of 23 tokens */
    assert_int_equal(c.begin_token, -1);
}

/* pytorch_model.bin of both forms, and a pickle that asks for more. */
static void pickles_are_read_as_tables(void **state) {
    static const char *const forms[] = {"zip", "legacy"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        qkv_container c = {0};
        char path[NAME];
        float values[6];
        qkv_arena_init(&c.names);
        snprintf(path, sizeof path, SOURCE_DIR "/tests/corpus/torch/%s", forms[i]);
        assert_ok(qkv_container_torch.open(path, &c));
        assert_int_equal(c.tensors.n, 2);
        const qkv_stored *t = &c.tensors.at[0].stored;
        assert_string_equal(t->name, "a.weight");
        assert_int_equal(t->shape[1], 3);
        assert_ok(qkv_stored_to_float(t, values));
        for (int k = 0; k < 6; k++) assert_true(values[k] == (float)k);
        qkv_container_close(&c);
    }
    static const char calls[] = "\x80\x02"
                                "cos\nsystem\nX\x04\x00\x00\x00true\x85R.";
    qkv_arena memory;
    qkv_pickle p;
    qkv_arena_init(&memory);
    assert_fails(qkv_pickle_read(calls, sizeof calls - 1, &memory, &p), QKV_BAD_FILE, "os.system");
    qkv_arena_free(&memory);
}

/* ---- what is refused ---- */

static char temporary[] = "/tmp/qkv_test_foreign_XXXXXX";

/* A copy of a case in which one piece of config.json reads otherwise. */
static const char *changed(const char *name, const char *from, const char *to) {
    static char folder[NAME];
    char path[NAME + 40], command[4 * NAME];
    qkv_file file;
    snprintf(folder, sizeof folder, "%s/changed", temporary);
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s' && cp '%s/%s/'*.* '%s'", folder,
             folder, CASES, name, folder);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_ok(qkv_file_open(path, 1 << 20, &file));
    char *text = qkv_strndup(file.data, file.size), *at = strstr(text, from);
    assert_non_null(at);
    qkv_buf out = {0};
    qkv_buf_add(&out, text, (size_t)(at - text));
    qkv_buf_puts(&out, to);
    qkv_buf_puts(&out, at + strlen(from));
    qkv_file_close(&file);
    assert_ok(qkv_file_write(path, out.data, out.len));
    qkv_buf_free(&out);
    qkv_free(text);
    return folder;
}

static void check_refused(const char *name, const char *from, const char *to, const char *words) {
    qkv_config c;
    assert_fails(qkv_folder_read_config(changed(name, from, to), &c, NULL), QKV_BAD_FILE, words);
}

static void what_is_not_known_is_refused(void **state) {
    (void)state;
    check_refused("bert", "\"bert\"", "\"bart_simpson\"", "bart_simpson");
    check_refused("bert", "\"BertModel\"", "\"BertForQuestions\"", "BertForQuestions");
    check_refused("bert", "\"use_cache\"", "\"brand_new\"", "brand_new");
    check_refused("bert", "\"gelu\"", "\"mish\"", "hidden_act is \"mish\"");
    check_refused("bert", "\"use_cache\": true", "\"position_embedding_type\": \"relative_key\"",
                  "position_embedding_type");
    check_refused("bert", "\"hidden_size\": 16", "\"hidden_size\": \"wide\"", "hidden_size");
    check_refused("bert", "\"hidden_size\": 16,", "", "hidden_size");
}

/* Opens a changed case; the sizes of config.json are not those of the weights. */
static qkv_status open_changed(const char *name, const char *from, const char *to) {
    qkv_config c;
    qkv_model *m;
    const char *folder = changed(name, from, to);
    assert_ok(qkv_folder_read_config(folder, &c, NULL));
    assert_ok(qkv_model_build(&c, &m));
    const qkv_status status = qkv_folder_open_weights(folder, m);
    qkv_model_free(m);
    return status;
}

static void tensors_must_be_those_of_the_keys(void **state) {
    (void)state;
    assert_fails(open_changed("bert", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
                 QKV_BAD_FILE, "there is no tensor encoder.layer.2.attention.self.query.weight");
    assert_fails(open_changed("bert", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1"),
                 QKV_BAD_FILE, "encoder.layer.1.attention.output.LayerNorm.bias is not known");
    assert_fails(open_changed("bert", "\"hidden_size\": 16", "\"hidden_size\": 20"), QKV_BAD_FILE,
                 "another shape");
    assert_fails(open_changed("bert", "\"vocab_size\": 23", "\"vocab_size\": 24"), QKV_BAD_FILE,
                 "24×16");
}

/* What a head of classes is for: one label is a number, labels may exclude each other or not. */
static void heads_are_what_they_were_trained_for(void **state) {
    (void)state;
    qkv_config c;
    const char *const use = "\"use_cache\": true";
    assert_ok(qkv_folder_read_config(changed("bert-classes", use, "\"num_labels\": 1"), &c, NULL));
    assert_string_equal(qkv_task_of(&c)->name, "rate");
    assert_ok(qkv_folder_read_config(
        changed("bert-classes", use, "\"problem_type\": \"multi_label_classification\""), &c,
        NULL));
    assert_string_equal(qkv_task_of(&c)->name, "classify");
    assert_true(c.several);
    assert_ok(qkv_folder_read_config(CASES "/bert-classes", &c, NULL));
    assert_false(c.several);
    check_refused("bert-classes", use, "\"problem_type\": \"guessing\"", "problem_type");
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(temporary) ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[NAME];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", temporary);
    return system(command);
}

int main(int argc, char **argv) {
    if (argc > 1) { /* another folder of cases */
        if (set_up(NULL) != 0) return 1;
        const int n = for_each_case(argv[1], check_case);
        printf("%d cases\n", n);
        return tear_down(NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_case_gives_what_it_gives_there, set_up, tear_down),
        cmocka_unit_test(every_family_has_a_case),
        cmocka_unit_test(labels_are_read),
        cmocka_unit_test(marks_are_read_by_id),
        cmocka_unit_test(pickles_are_read_as_tables),
        cmocka_unit_test(what_is_not_known_is_refused),
        cmocka_unit_test(tensors_must_be_those_of_the_keys),
        cmocka_unit_test(heads_are_what_they_were_trained_for),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
