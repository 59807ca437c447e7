/* CTranslate2's Transformers of binary version 2 (float32, int16 or int8 weights; what is quantized
 * becomes float).
 *
 * The model: encoder and decoder, norm before, ReLU, embeddings times √D, biases everywhere. Three
 * things differ from ours and are written down as weights, exactly:
 *
 * - positions count from 1, and their wavelengths are 10000^(j/(D/2 − 1)), j < D/2, sines before
 *   cosines: a table of POSITIONS rows, position=learned;
 * - source and target have vocabularies of their own: one joint vocabulary. A word that only the
 *   target has looks like an unknown one in the source; a word that only the source has gets a bias
 *   so low that no softmax sees it;
 * - the source has no end mark: source_eos=false. */
#include "model/import_weights.h"
#include "model/import_vocab.h"
#include "base/mem.h"
#include "store/ct2.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define POSITIONS  1024
#define NEVER      (-1e9f)
#define VOCAB_FILE ((size_t)256 << 20)

/* The specifications: their names fix the number of heads, which the file does not say. */
static const struct {
    const char *name;
    int heads;
} specs[] = {{"TransformerBase", 8}, {"TransformerBig", 16}};

typedef struct reading {
    qkv_ct2 file;
    qkv_params *params;
    qkv_joint_vocab words;
    int64_t d, source_rows, target_rows; /* the two tables of words */
    float *row;                          /* as wide as the widest array */
} reading;

/* An array of the file, which must be there. */
static qkv_status find(reading *r, const char *name, qkv_ct2_array **out) {
    *out = qkv_ct2_find(&r->file, name);
    if (!*out) return qkv_fail(QKV_BAD_FILE, "there is no array %s", name);
    (*out)->used = true;
    return QKV_OK;
}

/* A matrix with its scales, if it is quantized. */
static qkv_status find_weight(reading *r, const char *name, qkv_ct2_array **out,
                              qkv_ct2_array **scale) {
    char with[3 * QKV_NAME_BYTES];
    *scale = NULL;
    QKV_TRY(find(r, name, out));
    if ((*out)->rank < 1 || (*out)->rank > 2)
        return qkv_fail(QKV_BAD_FILE, "%s has rank %d", name, (*out)->rank);
    if ((*out)->item == 4) return QKV_OK;
    snprintf(with, sizeof with, "%s_scale", name);
    QKV_TRY(find(r, with, scale));
    const int64_t rows = (*out)->rank == 2 ? (*out)->shape[0] : 1;
    if (((*out)->item == 2 || (*out)->item == 1) && (*scale)->item == 4 &&
        ((*scale)->elements == 1 || (*scale)->elements == rows))
        return QKV_OK;
    return qkv_fail(QKV_BAD_FILE, "%s: elements of %d bytes with %lld scales", name, (*out)->item,
                    (long long)(*scale)->elements);
}

/* Copies an array into rows from … of a parameter, row by row. */
static qkv_status copy(reading *r, const char *from, const char *to, int64_t first) {
    qkv_ct2_array *a, *scale;
    QKV_TRY(find_weight(r, from, &a, &scale));
    const int64_t rows = a->rank == 2 ? a->shape[0] : 1, cols = a->shape[a->rank - 1];
    QKV_TRY(qkv_import_put(r->params, &(qkv_import_rows){NULL, first, rows, cols}, "%s", to));
    for (int64_t i = 0; r->params->values && i < rows; i++) {
        qkv_ct2_row(a, scale, i, r->row);
        QKV_TRY(
            qkv_import_put(r->params, &(qkv_import_rows){r->row, first + i, 1, cols}, "%s", to));
    }
    return QKV_OK;
}

/* Copies the rows of a vocabulary's table to where the joint vocabulary has them; words that are
 * not in it get `instead`, a row of the same table. */
static qkv_status copy_words(reading *r, const char *from, const char *to, const int32_t *row_of,
                             int64_t instead) {
    qkv_ct2_array *a, *scale;
    QKV_TRY(find_weight(r, from, &a, &scale));
    if (a->rank != 2) return qkv_fail(QKV_BAD_FILE, "%s should be a matrix", from);
    const int64_t cols = a->shape[1];
    QKV_TRY(qkv_import_put(r->params, &(qkv_import_rows){NULL, 0, r->words.n, cols}, "%s", to));
    for (int64_t i = 0; i < r->words.n; i++)
        if (row_of[i] >= a->shape[0]) return qkv_fail(QKV_BAD_FILE, "%s has too few rows", from);
    for (int64_t i = 0; r->params->values && i < r->words.n; i++) {
        qkv_ct2_row(a, scale, row_of[i] >= 0 ? row_of[i] : instead, r->row);
        QKV_TRY(qkv_import_put(r->params, &(qkv_import_rows){r->row, i, 1, cols}, "%s", to));
    }
    return QKV_OK;
}

/* ---- the parts of a layer ---- */

/* A linear map or a norm: what the file calls its two arrays, what we do. */
static qkv_status copy_pair(reading *r, const char *from, const char *weight, const char *bias,
                            const char *to) {
    char source[2 * QKV_NAME_BYTES], target[2 * QKV_NAME_BYTES];
    snprintf(source, sizeof source, "%s/%s", from, weight);
    snprintf(target, sizeof target, "%s.weight", to);
    QKV_TRY(copy(r, source, target, 0));
    snprintf(source, sizeof source, "%s/%s", from, bias);
    snprintf(target, sizeof target, "%s.bias", to);
    return copy(r, source, target, 0);
}

typedef struct named_part {
    const char *from, *to;
    bool norm, cross;
} named_part;

static const named_part layer_parts[] = {
    {"self_attention/layer_norm", "attention_norm", true, false},
    {"self_attention/linear_0", "attention.qkv", false, false},
    {"self_attention/linear_1", "attention.out", false, false},
    {"attention/layer_norm", "cross_norm", true, true},
    {"attention/linear_0", "cross.q", false, true},
    {"attention/linear_1", "cross.kv", false, true},
    {"attention/linear_2", "cross.out", false, true},
    {"ffn/layer_norm", "ffn_norm", true, false},
    {"ffn/linear_0", "ffn.in", false, false},
    {"ffn/linear_1", "ffn.out", false, false},
};

static qkv_status copy_side(reading *r, const char *side, int64_t layers, bool cross) {
    char from[QKV_NAME_BYTES], to[QKV_NAME_BYTES];
    for (int64_t layer = 0; layer < layers; layer++)
        for (size_t i = 0; i < sizeof layer_parts / sizeof *layer_parts; i++) {
            const named_part *p = &layer_parts[i];
            if (p->cross && !cross) continue;
            snprintf(from, sizeof from, "%s/layer_%d/%s", side, (int)layer, p->from);
            snprintf(to, sizeof to, "%s.layers.%d.%s", side, (int)layer, p->to);
            QKV_TRY(
                copy_pair(r, from, p->norm ? "gamma" : "weight", p->norm ? "beta" : "bias", to));
        }
    snprintf(from, sizeof from, "%s/layer_norm", side);
    snprintf(to, sizeof to, "%s.norm", side);
    return copy_pair(r, from, "gamma", "beta", to);
}

/* ---- what is written down as weights ---- */

static qkv_status put_positions(reading *r, const char *side) {
    const int64_t half = r->d / 2;
    for (int64_t p = 0; r->params->values && p < POSITIONS; p++) {
        for (int64_t j = 0; j < half; j++) {
            const double rate = exp(-(double)j * log(10000.0) / (double)(half - 1));
            r->row[j] = (float)sin((double)(p + 1) * rate);
            r->row[half + j] = (float)cos((double)(p + 1) * rate);
        }
        QKV_TRY(qkv_import_put(r->params, &(qkv_import_rows){r->row, p, 1, r->d},
                               "%s.position.weight", side));
    }
    return QKV_OK;
}

static qkv_status put_head(reading *r) {
    qkv_ct2_array *bias;
    QKV_TRY(copy_words(r, "decoder/projection/weight", "head.weight", r->words.target_row, 0));
    QKV_TRY(find(r, "decoder/projection/bias", &bias));
    const qkv_param *to = qkv_param_find(r->params, "head.bias");
    if (bias->rank != 1 || bias->item != 4 || !to)
        return qkv_fail(QKV_BAD_FILE, "decoder/projection/bias should be a vector of floats");
    for (int64_t i = 0; i < r->words.n; i++) {
        const int32_t row = r->words.target_row[i];
        if (row >= bias->elements)
            return qkv_fail(QKV_BAD_FILE, "decoder/projection/bias has too few elements");
        float value = NEVER;
        if (row >= 0) memcpy(&value, (const char *)bias->data + 4 * (size_t)row, 4);
        if (!isfinite(value))
            return qkv_fail(QKV_BAD_FILE, "decoder/projection/bias is not finite");
        if (r->params->values) r->params->values[to->offset + i] = (real)value;
    }
    return QKV_OK;
}

/* All weights, or (before there is memory for them) all checks. */
static qkv_status put_all(reading *r, const qkv_config *c) {
    QKV_TRY(copy_words(r, "encoder/embeddings/weight", "encoder.embedding.weight",
                       r->words.source_row, r->source_rows - 1));
    QKV_TRY(copy_words(r, "decoder/embeddings/weight", "decoder.embedding.weight",
                       r->words.target_row, r->target_rows - 1));
    QKV_TRY(copy_side(r, "encoder", c->encoder_layers, false));
    QKV_TRY(copy_side(r, "decoder", c->decoder_layers, true));
    QKV_TRY(put_positions(r, "encoder"));
    QKV_TRY(put_positions(r, "decoder"));
    return put_head(r);
}

/* What no part of the model asked for would be a model that we do not know. */
static qkv_status check_used(const qkv_ct2 *file) {
    for (size_t i = 0; i < file->n; i++)
        if (!file->arrays[i].used)
            return qkv_fail(QKV_BAD_FILE,
                            "the array %.*s belongs to a kind of model that is not known",
                            (int)file->arrays[i].name.len, file->arrays[i].name.data);
    return QKV_OK;
}

/* ---- configuration ---- */

static int64_t count_layers(const qkv_ct2 *file, const char *side) {
    char name[QKV_NAME_BYTES];
    for (int64_t n = 0;; n++) {
        snprintf(name, sizeof name, "%s/layer_%d/ffn/linear_0/weight", side, (int)n);
        if (!qkv_ct2_find(file, name)) return n;
    }
}

static qkv_status configure(reading *r, qkv_config *c) {
    qkv_ct2_array *source, *target, *ffn;
    QKV_TRY(find(r, "encoder/embeddings/weight", &source));
    QKV_TRY(find(r, "decoder/embeddings/weight", &target));
    QKV_TRY(find(r, "encoder/layer_0/ffn/linear_0/weight", &ffn));
    qkv_config_default(c);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        if (r->file.spec.len == strlen(specs[i].name) &&
            !memcmp(r->file.spec.data, specs[i].name, r->file.spec.len)) {
            c->heads = specs[i].heads;
            r->d = source->rank == 2 && target->rank == 2 && ffn->rank == 2 ? source->shape[1] : 0;
        }
    if (!r->d || r->d % c->heads || r->d < 4 || r->d > 1 << 16 || source->shape[0] > 1 << 24 ||
        target->shape[0] > 1 << 24)
        return qkv_fail(QKV_BAD_FILE,
                        "the specification %.*s is not read (TransformerBase and TransformerBig "
                        "are), or its tables have impossible sizes",
                        (int)r->file.spec.len, r->file.spec.data);
    r->source_rows = source->shape[0];
    r->target_rows = target->shape[0];
    QKV_TRY(qkv_config_set(c, "task", "translate"));
    c->max_len = POSITIONS;
    c->d_model = r->d;
    c->d_ff = ffn->shape[0];
    c->encoder_layers = count_layers(&r->file, "encoder");
    c->decoder_layers = count_layers(&r->file, "decoder");
    if (!c->decoder_layers) return qkv_fail(QKV_BAD_FILE, "the decoder has no layers");
    c->norm_eps = 1e-6;
    c->position = QKV_POSITION_LEARNED;
    c->embedding_scale = c->head_bias = true;
    c->tie = c->share_embeddings = c->source_eos = false;
    c->dropout = 0;
    return QKV_OK;
}

static qkv_status open_words(const char *folder, const char *name, qkv_buf *path, qkv_file *out) {
    qkv_buf_clear(path);
    QKV_TRY(qkv_path_join(path, folder, name));
    return qkv_file_open(path->data, VOCAB_FILE, out);
}

static qkv_status join_words(reading *r, const char *folder, qkv_buf *words) {
    qkv_buf path = {0};
    qkv_file source = {0}, target = {0};
    qkv_status status = qkv_path_join(&path, folder, "shared_vocabulary.txt");
    const bool shared = status == QKV_OK && qkv_file_exists(path.data);
    if (status == QKV_OK)
        status = open_words(folder, shared ? "shared_vocabulary.txt" : "source_vocabulary.txt",
                            &path, &source);
    if (status == QKV_OK && !shared)
        status = open_words(folder, "target_vocabulary.txt", &path, &target);
    if (status == QKV_OK) {
        const qkv_text s = {source.data, source.size}, t = {target.data, target.size};
        status = qkv_joint_vocab_make(&r->words, s, r->source_rows, shared ? NULL : &t,
                                      r->target_rows, words);
    }
    qkv_file_close(&source);
    qkv_file_close(&target);
    qkv_buf_free(&path);
    return status;
}

static qkv_status make_model(reading *r, const char *folder, qkv_imported *out) {
    qkv_config config;
    int64_t widest = 0;
    QKV_TRY(configure(r, &config));
    QKV_TRY(join_words(r, folder, &out->words));
    config.vocab_size = config.target_vocab_size = r->words.n;
    for (size_t i = 0; i < r->file.n; i++) {
        const qkv_ct2_array *a = &r->file.arrays[i];
        if (a->rank && a->shape[a->rank - 1] > widest) widest = a->shape[a->rank - 1];
    }
    QKV_TRY_ALLOC(r->row = qkv_alloc((size_t)(widest + 1) * sizeof *r->row));
    QKV_TRY(qkv_model_build(&config, &out->model));
    r->params = qkv_model_params(out->model);
    QKV_TRY(put_all(r, &config));
    QKV_TRY(check_used(&r->file));
    QKV_TRY(qkv_model_allocate(out->model, false));
    return put_all(r, &config);
}

static qkv_status read_ct2(const qkv_file *file, const char *folder, qkv_imported *out) {
    reading r = {0};
    qkv_status status = qkv_ct2_read(file, &r.file);
    if (status == QKV_OK) status = make_model(&r, folder, out);
    qkv_ct2_free(&r.file);
    qkv_joint_vocab_free(&r.words);
    qkv_free(r.row);
    return status;
}

const qkv_importer qkv_import_ct2 = {
    .name = "ctranslate2",
    .summary = "a folder with model.bin of binary version 2 and its vocabularies",
    .is = qkv_is_ct2,
    .read = read_ct2,
};
