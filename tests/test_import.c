/* Other programs' weights: the outputs of two public models equal their recorded references, small
 * models built in equal the same weights given directly, and damaged files are refused. */
#include "use/textmodel.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/import_weights.h"
#include "tiny.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

static char folder[] = "/tmp/qkv_test_import_XXXXXX";

static const char *in_folder(const char *name) {
    static char path[4][256];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* Unpacks one file of the public data; false: it is not here. */
static bool unpack(const char *name, const char *to) {
    const char *root = getenv("QKV_DATA");
    char packed[600], command[1500];
    snprintf(packed, sizeof packed, "%s/weights/%s.xz", root ? root : "none", name);
    if (access(packed, R_OK)) return false;
    snprintf(command, sizeof command, "xz -dc '%s' > '%s'", packed, to);
    return system(command) == 0;
}

static qkv_json read_json(const char *path, qkv_file *file) {
    qkv_json doc;
    assert_ok(qkv_file_open(path, 1 << 24, file));
    assert_ok(qkv_json_parse(&doc, path, file->data, file->size,
                             (qkv_json_limits){1 << 24, 1 << 20, 16}));
    return doc;
}

static qkv_status import(const char *source, const char *out) {
    return qkv_import(&(qkv_import_request){.source = source, .out = out, .overwrite = true}, NULL);
}

/* ---- llama2.c ---- */

/* Logits (R, V) of a decoder over one sequence; on the tape. */
static qkv_tensor *decoder_logits(qkv_tape *t, qkv_model *m, const int32_t *ids, int32_t n) {
    const int32_t start[2] = {0, n};
    const qkv_tokens tokens = {.layout = {.n = 1, .start = start}, .ids = ids, .rows = n};
    qkv_tape_begin(t, QKV_EVAL, 0, 0);
    qkv_tensor *y = qkv_model_vocab_logits(t, m, qkv_model_decode(t, m, &tokens, NULL, NULL, NULL));
    assert_ok(qkv_tape_status(t));
    return y;
}

static int32_t largest(const real *row, int64_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

static void stories_equal_their_reference(void **state) {
    (void)state;
    if (!unpack("stories260K/stories260K.bin", in_folder("stories260K.bin"))) {
        print_message("left out: the public weights are not here\n");
        skip();
    }
    assert_true(unpack("stories260K/tok512.bin", in_folder("tok512.bin")));
    assert_true(unpack("stories260K/greedy_reference.json", in_folder("stories.json")));
    assert_ok(import(in_folder("stories260K.bin"), in_folder("stories")));
    qkv_text_model *m;
    assert_ok(qkv_text_model_open(in_folder("stories"), &m));

    qkv_file file;
    qkv_json doc = read_json(in_folder("stories.json"), &file);
    qkv_json_at ids, logits, at, text;
    assert_true(qkv_json_member(qkv_json_root(&doc), "greedy_ids", &ids));
    assert_true(qkv_json_member(qkv_json_root(&doc), "logits_after_bos", &logits));
    int32_t fed[512] = {1};
    int32_t n = 1;
    for (bool more = qkv_json_first(ids, &at); more; more = qkv_json_next(ids, &at))
        fed[n++] = (int32_t)qkv_json_number(at);

    /* Each reference token has the largest logit after those before it:
     * that is the greedy decoding. */
    qkv_tape tape;
    assert_ok(qkv_tape_init(&tape));
    qkv_tensor *y = decoder_logits(&tape, m->model, fed, n - 1);
    int64_t i = 0;
    for (bool more = qkv_json_first(logits, &at); more; more = qkv_json_next(logits, &at), i++)
        assert_true(fabs((double)y->data[i] - qkv_json_number(at)) < 1e-4);
    assert_int_equal(i, 512);
    for (int32_t r = 0; r < n - 1; r++)
        assert_int_equal(largest(y->data + r * y->ld, y->cols), fed[r + 1]);
    qkv_tape_free(&tape);

    /* The tokenizer gives the same text; the reference spells line ends as the piece. */
    qkv_buf said = {0}, wanted = {0};
    const char *spelled;
    size_t len;
    assert_ok(qkv_tokenizer_decode(m->tokenizer, fed + 1, (size_t)n - 1, false, &said));
    assert_true(qkv_json_member(qkv_json_root(&doc), "greedy_text", &text));
    qkv_json_string(text, &spelled, &len);
    for (size_t k = 0; k < len;) {
        const bool end = len - k >= 6 && !memcmp(spelled + k, "<0x0A>", 6);
        qkv_buf_putc(&wanted, end ? '\n' : spelled[k]);
        k += end ? 6 : 1;
    }
    assert_string_equal(said.data, wanted.data);
    qkv_buf_free(&said);
    qkv_buf_free(&wanted);
    qkv_json_free(&doc);
    qkv_file_close(&file);
    qkv_text_model_close(m);
}

/* ---- CTranslate2 ---- */

static int32_t token_id(const qkv_text_model *m, qkv_json_at at) {
    const char *text;
    size_t len;
    int32_t id = -1;
    qkv_json_string(at, &text, &len);
    assert_true(qkv_tokenizer_id(m->tokenizer, text, len, &id));
    return id;
}

static int32_t token_ids(const qkv_text_model *m, qkv_json_at list, int32_t *out) {
    qkv_json_at at;
    int32_t n = 0;
    for (bool more = qkv_json_first(list, &at); more; more = qkv_json_next(list, &at))
        out[n++] = token_id(m, at);
    return n;
}

/* One reference translation: greedy where every target has the largest logit,
 * with its log-probability. */
static void check_case(qkv_tape *t, const qkv_text_model *m, qkv_json_at one, double bound,
                       bool greedy) {
    int32_t source[64], target[64], s_start[2] = {0}, t_start[2] = {0};
    qkv_json_at list, at;
    assert_true(qkv_json_member(one, "source", &list));
    const int32_t s = s_start[1] = token_ids(m, list, source);
    target[0] = m->spec.bos;
    assert_true(qkv_json_member(one, "greedy", &list));
    const int32_t n = t_start[1] = token_ids(m, list, target + 1) + 1;
    target[n] = m->spec.eos;
    const qkv_tokens src = {.layout = {.n = 1, .start = s_start}, .ids = source, .rows = s};
    const qkv_tokens tgt = {.layout = {.n = 1, .start = t_start}, .ids = target, .rows = n};
    qkv_tape_begin(t, QKV_EVAL, 0, 0);
    qkv_tensor *memory = qkv_model_encode(t, m->model, &src);
    qkv_tensor *y = qkv_model_vocab_logits(t, m->model,
                                           qkv_model_decode(t, m->model, &tgt, memory, &src, NULL));
    assert_ok(qkv_tape_status(t));
    assert_true(qkv_json_member(one, "token_log_probs_incl_eos", &list));
    bool more = qkv_json_first(list, &at);
    for (int32_t r = 0; r < n; r++, more = qkv_json_next(list, &at)) {
        const real *row = y->data + r * y->ld;
        if (greedy) assert_int_equal(largest(row, y->cols), target[r + 1]);
        double sum = 0;
        for (int64_t i = 0; i < y->cols; i++) sum += exp((double)row[i]);
        assert_true(more);
        const double got = (double)row[target[r + 1]] - log(sum), wanted = qkv_json_number(at);
        if (fabs(got - wanted) > bound) fail_msg("row %d: %.6f, wanted %.6f", r, got, wanted);
    }
}

static void check_transliteration(const char *form, double bound, bool greedy) {
    static const char *const files[] = {"model.bin", "source_vocabulary.txt",
                                        "target_vocabulary.txt"};
    char name[200], to[64];
    snprintf(to, sizeof to, "mkdir -p %s/%s", folder, form);
    assert_int_equal(system(to), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "ct2-aren-transliteration/%s/%s", form, files[i]);
        snprintf(to, sizeof to, "%s/%s", form, files[i]);
        if (unpack(name, in_folder(to))) continue;
        print_message("left out: the public weights are not here\n");
        skip();
    }
    assert_true(unpack("ct2-aren-transliteration/greedy_reference.json", in_folder("ct2.json")));
    assert_ok(import(in_folder(form), in_folder("translator")));
    qkv_text_model *m;
    assert_ok(qkv_text_model_open(in_folder("translator"), &m));
    qkv_file file;
    qkv_json doc = read_json(in_folder("ct2.json"), &file);
    qkv_json_at cases, one;
    assert_true(qkv_json_member(qkv_json_root(&doc), "cases", &cases));
    qkv_tape tape;
    assert_ok(qkv_tape_init(&tape));
    for (bool more = qkv_json_first(cases, &one); more; more = qkv_json_next(cases, &one))
        check_case(&tape, m, one, bound, greedy);
    qkv_tape_free(&tape);
    qkv_json_free(&doc);
    qkv_file_close(&file);
    qkv_text_model_close(m);
}

static void transliteration_equals_its_reference(void **state) {
    (void)state;
    check_transliteration("aren-transliteration", 1e-4, true);
}

/* Quantized weights are near the float ones; what they decode to is theirs. */
static void transliteration_in_integers_is_near(void **state) {
    (void)state;
    check_transliteration("aren-transliteration-i16", 0.02, true);
    check_transliteration("aren-transliteration-i8", 0.2, false);
}

/* ---- small files, made here ---- */

static void put_u32(qkv_buf *b, uint32_t v) {
    qkv_buf_add(b, &v, 4);
}

static void put_floats(qkv_buf *b, int64_t n, uint64_t seed) {
    real *values = qkv_alloc((size_t)n * sizeof *values);
    fill(values, n, seed);
    for (int64_t i = 0; i < n; i++) {
        const float f = (float)values[i];
        qkv_buf_add(b, &f, 4);
    }
    qkv_free(values);
}

/* A checkpoint with width 8, two heads over one pair of keys and values, two layers,
 * seven words. */
enum { D = 8, F = 6, L = 2, V = 7, LEN = 5, KV = 4 };

static void make_llama(qkv_buf *b, bool untied) {
    const int32_t header[] = {D, F, L, 2, 1, untied ? -V : V, LEN};
    qkv_buf_add(b, header, sizeof header);
    put_floats(b, V * D + L * (D + D * D + 2 * KV * D + D * D + D + 3 * F * D) + D, 1);
    put_floats(b, LEN * 4, 2);
    if (untied) put_floats(b, V * D, 3);
}

static float float_at(const qkv_buf *b, int64_t i) {
    float f;
    memcpy(&f, b->data + 28 + 4 * i, 4);
    return f;
}

static qkv_status read_weights(const qkv_buf *bytes, const char *name, qkv_imported *out) {
    const char *kind;
    FILE *file =
        fopen(in_folder(name), "w"); /* not qkv_file_write: hundreds of fsyncs take minutes */
    assert_non_null(file);
    assert_int_equal(fwrite(bytes->data, 1, bytes->len, file), bytes->len);
    assert_int_equal(fclose(file), 0);
    return qkv_import_weights(in_folder(name), out, &kind);
}

static real value_of(const qkv_imported *i, const char *name, int64_t index) {
    const qkv_params *p = qkv_model_params(i->model);
    const qkv_param *found = qkv_param_find(p, name);
    assert_non_null(found);
    return p->values[found->offset + index];
}

static void a_small_checkpoint_lands_where_it_belongs(void **state) {
    (void)state;
    qkv_buf b = {0};
    qkv_imported got;
    make_llama(&b, true);
    assert_ok(read_weights(&b, "tiny.bin", &got));
    const int64_t norms = V * D, wq = norms + L * D, wk = wq + L * D * D, wv = wk + L * KV * D,
                  wo = wv + L * KV * D, ffn = wo + L * D * D + L * D, w2 = ffn + L * F * D,
                  w3 = w2 + L * F * D, last = w3 + L * F * D, head = last + D + LEN * 4;
    const struct {
        const char *name;
        int64_t index, from;
    } at[] = {
        {"decoder.embedding.weight", 3, 3},
        {"decoder.layers.1.attention_norm.weight", 2, norms + D + 2},
        {"decoder.layers.1.attention.qkv.weight", 5, wq + D * D + 5},
        {"decoder.layers.1.attention.qkv.weight", D * D + 1, wk + KV * D + 1},
        {"decoder.layers.0.attention.qkv.weight", D * D + KV * D + 9, wv + 9},
        {"decoder.layers.1.attention.out.weight", 0, wo + D * D},
        {"decoder.layers.1.ffn.in.weight", 4, ffn + F * D + 4},
        {"decoder.layers.1.ffn.in.weight", F * D + 4, w3 + F * D + 4},
        {"decoder.layers.0.ffn.out.weight", 7, w2 + 7},
        {"decoder.norm.weight", 7, last + 7},
        {"head.weight", V * D - 1, head + V * D - 1},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        assert_true(value_of(&got, at[i].name, at[i].index) == (real)float_at(&b, at[i].from));
    qkv_imported_free(&got);
    qkv_buf_free(&b);
}

static void put_array(qkv_buf *b, const char *name, int rank, uint32_t rows, uint32_t cols) {
    const uint16_t len = (uint16_t)(strlen(name) + 1);
    const char small[] = {(char)rank, 4};
    const uint32_t elements = rank == 2 ? rows * cols : cols;
    qkv_buf_add(b, &len, 2);
    qkv_buf_add(b, name, len);
    qkv_buf_add(b, small, 1);
    if (rank == 2) put_u32(b, rows);
    put_u32(b, cols);
    qkv_buf_add(b, small + 1, 1);
    put_u32(b, elements);
    put_floats(b, elements, qkv_hash64(name, strlen(name), 0));
}

/* One layer on each side, width 8, source words "a b <s> </s>", target words "</s> <s> c a". */
static void make_ct2(qkv_buf *b) {
    static const struct {
        const char *name;
        int rank;
        uint32_t rows, cols;
    } arrays[] = {
        {"encoder/embeddings/weight", 2, 5, 8},
        {"decoder/embeddings/weight", 2, 5, 8},
        {"decoder/projection/weight", 2, 5, 8},
        {"decoder/projection/bias", 1, 0, 5},
#define NORM(name) {name "/gamma", 1, 0, 8}, {name "/beta", 1, 0, 8}
#define LINEAR(name, out, in)                                                                      \
    {name "/weight", 2, out, in}, {                                                                \
        name "/bias", 1, 0, out                                                                    \
    }
#define LAYER(side)                                                                                \
    NORM(side "/layer_norm"), NORM(side "/layer_0/self_attention/layer_norm"),                     \
        LINEAR(side "/layer_0/self_attention/linear_0", 24, 8),                                    \
        LINEAR(side "/layer_0/self_attention/linear_1", 8, 8),                                     \
        NORM(side "/layer_0/ffn/layer_norm"), LINEAR(side "/layer_0/ffn/linear_0", 6, 8),          \
        LINEAR(side "/layer_0/ffn/linear_1", 8, 6)
        LAYER("encoder"),
        LAYER("decoder"),
        NORM("decoder/layer_0/attention/layer_norm"),
        LINEAR("decoder/layer_0/attention/linear_0", 8, 8),
        LINEAR("decoder/layer_0/attention/linear_1", 16, 8),
        LINEAR("decoder/layer_0/attention/linear_2", 8, 8),
    };
    const uint16_t len = 16;
    put_u32(b, 2);
    qkv_buf_add(b, &len, 2);
    qkv_buf_add(b, "TransformerBase", 16);
    put_u32(b, 2);
    put_u32(b, sizeof arrays / sizeof *arrays);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        put_array(b, arrays[i].name, arrays[i].rank, arrays[i].rows, arrays[i].cols);
    assert_ok(qkv_file_write(in_folder("source_vocabulary.txt"), "a\nb\n<s>\n</s>\n", 13));
    assert_ok(qkv_file_write(in_folder("target_vocabulary.txt"), "</s>\n<s>\nc\na\n", 13));
}

static void two_vocabularies_become_one(void **state) {
    (void)state;
    qkv_buf b = {0};
    qkv_imported got;
    make_ct2(&b);
    assert_ok(read_weights(&b, "model.bin", &got));
    assert_string_equal(got.words.data, "a\nb\n<s>\n</s>\n<unk>\nc\n");
    real source[5 * D], target[5 * D], bias[5];
#define FILL(to, n, name) fill(to, n, qkv_hash64(name, strlen(name), 0))
    FILL(source, 5 * D, "encoder/embeddings/weight");
    FILL(target, 5 * D, "decoder/embeddings/weight");
    FILL(bias, 5, "decoder/projection/bias");
    static const int source_row[] = {0, 1, 2, 3, 4, 4}, target_row[] = {3, 4, 1, 0, 4, 2};
    for (int i = 0; i < 6; i++) {
        assert_true(value_of(&got, "encoder.embedding.weight", i * D) ==
                    (real)(float)source[source_row[i] * D]);
        assert_true(value_of(&got, "decoder.embedding.weight", i * D + 7) ==
                    (real)(float)target[target_row[i] * D + 7]);
        const real has = value_of(&got, "head.bias", i);
        if (i == 1)
            assert_true(has < -1e8); /* "b" is no word of the target */
        else
            assert_true(has == (real)(float)bias[target_row[i]]);
    }
    /* Positions count from 1; the slowest wave has the length 10000. */
    assert_true(fabs((double)value_of(&got, "decoder.position.weight", 2 * D) - sin(3)) < 1e-6);
    assert_true(fabs((double)value_of(&got, "encoder.position.weight", 2 * D + 7) - cos(3e-4)) <
                1e-6);
    qkv_imported_free(&got);
    qkv_buf_free(&b);
}

/* The folder holds the joint words, and what was read is told in numbers. */
static void an_import_tells_what_it_read(void **state) {
    (void)state;
    qkv_buf b = {0};
    qkv_import_facts found;
    int32_t id;
    make_ct2(&b);
    assert_int_equal(mkdir(in_folder("ct2"), 0777), 0);
    assert_ok(qkv_file_write(in_folder("ct2/model.bin"), b.data, b.len));
    assert_ok(qkv_file_write(in_folder("ct2/source_vocabulary.txt"), "a\nb\n<s>\n</s>\n", 13));
    assert_ok(qkv_file_write(in_folder("ct2/target_vocabulary.txt"), "</s>\n<s>\nc\na\n", 13));
    const qkv_import_request request = {.source = in_folder("ct2"), .out = in_folder("joint")};
    assert_ok(qkv_import(&request, &found));
    assert_string_equal(found.format, "ctranslate2");
    assert_string_equal(found.task, "translate");
    assert_int_equal(found.tokens, 6);
    qkv_text_model *m;
    assert_ok(qkv_text_model_open(in_folder("joint"), &m));
    assert_int_equal(found.parameters, qkv_model_params(m->model)->count);
    assert_int_equal(qkv_tokenizer_size(m->tokenizer), found.tokens);
    assert_true(qkv_tokenizer_id(m->tokenizer, "c", 1, &id) && id == 5);
    assert_int_equal(qkv_tokenizer_special(m->tokenizer, QKV_TOK_EOS), 3);
    qkv_text_model_close(m);
    assert_fails(qkv_import(&request, &found), QKV_USAGE, "is there already");
    assert_null(found.format);
    qkv_buf_free(&b);
}

/* ---- damage ---- */

/* Every truncation must be refused as a bad file; every changed byte refused so, or read. */
static void damage(const qkv_buf *whole, const char *name, size_t mutate_to) {
    for (size_t n = 1; n < whole->len; n += n < 400 ? 1 : 97) {
        const qkv_buf cut = {.data = whole->data, .len = n};
        qkv_imported got;
        assert_int_equal(read_weights(&cut, name, &got), QKV_BAD_FILE);
        assert_null(got.model);
    }
    for (size_t i = 0; i < 2 * mutate_to; i++) {
        char *at = &whole->data[i / 2], old = *at;
        qkv_imported got;
        *at ^= (char)(i % 2 ? 0x80 : 0x11);
        const qkv_status status = read_weights(whole, name, &got);
        if (status != QKV_OK) assert_int_equal(status, QKV_BAD_FILE);
        qkv_imported_free(&got);
        *at = old;
    }
}

static void damaged_files_are_refused(void **state) {
    (void)state;
    qkv_buf llama = {0}, ct2 = {0};
    make_llama(&llama, false);
    damage(&llama, "tiny.bin", 28);
    make_ct2(&ct2);
    damage(&ct2, "model.bin", 300);
    qkv_imported got;
    assert_ok(qkv_file_write(in_folder("source_vocabulary.txt"), "a\nb\n</s>\n", 9));
    assert_fails(read_weights(&ct2, "model.bin", &got), QKV_BAD_FILE, "source vocabulary");
    assert_ok(qkv_file_write(in_folder("source_vocabulary.txt"), "a\nb\n</s>\na\n", 11));
    assert_fails(read_weights(&ct2, "model.bin", &got), QKV_BAD_FILE, "twice");
    ct2.data[0] = 6;
    assert_fails(read_weights(&ct2, "model.bin", &got), QKV_BAD_FILE, "only version 2");
    const qkv_buf text = {.data = "once upon a time there was a text", .len = 33};
    assert_fails(read_weights(&text, "text.bin", &got), QKV_BAD_FILE, "not weights");
    /* Without its tokenizer a checkpoint is no model. */
    assert_ok(qkv_file_write(in_folder("alone.bin"), llama.data, llama.len));
    assert_fails(import(in_folder("alone.bin"), in_folder("alone")), QKV_FAILED, "tok7.bin");
    qkv_buf_free(&llama);
    qkv_buf_free(&ct2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories_equal_their_reference),
        cmocka_unit_test(transliteration_equals_its_reference),
        cmocka_unit_test(transliteration_in_integers_is_near),
        cmocka_unit_test(a_small_checkpoint_lands_where_it_belongs),
        cmocka_unit_test(two_vocabularies_become_one),
        cmocka_unit_test(an_import_tells_what_it_read),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
