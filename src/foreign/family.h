/* Families of models that other programs train: what they call their tensors and keys, and what we
 * call them. A family is one file, family_<name>.c, and one row of families.def; the tables are read
 * both ways, so that what can be read can be written by the same rows. Whatever no row knows is
 * refused by its name: a model that is read in part would answer, and answer wrong. */
#ifndef QKV_FOREIGN_FAMILY_H
#define QKV_FOREIGN_FAMILY_H

#include "base/json.h"
#include "model/config.h"

/* ---- tensors ---- */

/* Which rows of our parameter a tensor is. Q, K, V: of those of self-attention, which lie one above
 * the other; FIRST and LAST: halves, of the keys and values of cross-attention and of gated layers.
 * Of a vector the elements are what rows are of a matrix. */
typedef enum qkv_slice {
    QKV_SLICE_ALL,
    QKV_SLICE_Q,
    QKV_SLICE_K,
    QKV_SLICE_V,
    QKV_SLICE_FIRST,
    QKV_SLICE_LAST
} qkv_slice;

typedef enum qkv_tensor_how {
    QKV_TENSOR_BARE = 1, /* one tensor of just these names; else the names get .weight and .bias,
                            as far as our model has them */
    QKV_TENSOR_TRANSPOSED = 2,
    QKV_TENSOR_HEAD = 4,      /* of a head, which the task may do without */
    QKV_TENSOR_SKIPS = 8,     /* begins with rows that no token uses (qkv_family_facts.skip) */
    QKV_TENSOR_PLUS_ONE = 16, /* ours is theirs + 1 */
    QKV_TENSOR_EITHER = 32,   /* another row gives the same where this one has no tensor */
    QKV_TENSOR_BY_HEAD = 64   /* queries, keys and values of each head lie together */
} qkv_tensor_how;

/* In names %d is the number of the layer; "~" at the beginning stands for the family's prefix, which
 * files of a bare model leave out. Without a name of ours the tensor means nothing to the result. */
typedef struct qkv_tensor_rule {
    const char *theirs, *ours;
    qkv_slice slice;
    unsigned how;
} qkv_tensor_rule;
#define TENSOR(its_name, our_name, ...)                                                            \
    { .theirs = its_name, .ours = our_name, __VA_ARGS__ }

/* ---- keys ---- */

/* A key of config.json. With `ours` its value becomes that of a setting, as it is or by `means`,
 * "theirs=ours theirs=ours …". With `means` alone it must be one of those words: any other value is a
 * model that we do not compute. With neither it is passed over. `absent` is what the program takes
 * where the key is not there or null; NULL: it must be there. */
typedef struct qkv_key_rule {
    const char *theirs, *ours, *absent, *means;
} qkv_key_rule;
#define KEY(its_name, our_name, ...)                                                               \
    { .theirs = its_name, .ours = our_name, __VA_ARGS__ }

/* The classes of models that a family comes in, by how their names end: which task that is. */
typedef struct qkv_class_row {
    const char *ends, *settings;
} qkv_class_row;

/* What a family finds out beside the configuration. */
typedef struct qkv_family_facts {
    int64_t skip; /* leading rows of a table of positions that no token uses */
} qkv_family_facts;

enum { QKV_FAMILY_TABLES = 4 };
typedef struct qkv_family {
    const char *name;     /* for people */
    const char *types;    /* of config.json's model_type, separated by blanks */
    const char *settings; /* assignments that hold for all of the family */
    const char *prefix;
    const qkv_tensor_rule *tensors[QKV_FAMILY_TABLES]; /* tables that end with a row of zeros */
    const qkv_key_rule *keys[QKV_FAMILY_TABLES];
    const qkv_class_row *classes; /* the first is what a folder is that does not say */
    /* Why its texts cannot be read or written, though its tensors can; NULL: they can. */
    const char *no_texts;
    /* What rows cannot say; NULL: nothing. */
    qkv_status (*settle)(qkv_json_at keys, qkv_config *config, qkv_family_facts *facts);
} qkv_family;

#define FAMILY(name) extern const qkv_family qkv_family_##name;
#include "foreign/families.def"
#undef FAMILY

/* Row i of the table; NULL past its end. */
const qkv_family *qkv_family_at(size_t i);
/* The row of a model_type; NULL (message set): it is not known. */
const qkv_family *qkv_family_of(const char *type, size_t len);

/* The configuration that keys stand for; `sentence`: the folder is a sentence encoder's, whatever
 * class its weights were saved from. */
qkv_status qkv_family_configure(const qkv_family *family, qkv_json_at keys, bool sentence,
                                qkv_config *config, qkv_family_facts *facts);

/* Where texts begin and end, by the ids of config.json; generation_config.json, read after it, wins. */
void qkv_family_ids(qkv_json_at keys, qkv_config *config);

/* ---- for families ---- */

/* Keys that change nothing in what a model computes. */
extern const qkv_key_rule qkv_keys_common[];
/* Names of activations, for `means`. */
#define QKV_ACTIVATIONS                                                                            \
    "gelu=gelu gelu_new=gelu_tanh gelu_pytorch_tanh=gelu_tanh gelu_fast=gelu_tanh relu=relu "      \
    "silu=silu swish=silu gelu_python=gelu"
/* Keys and tensors of all that are built like BERT. */
extern const qkv_key_rule qkv_keys_bert[];
extern const qkv_tensor_rule qkv_tensors_bert[];

/* Keys of RoPE and of windows, and what they say (family_positions.c). */
extern const qkv_key_rule qkv_keys_rope[];
qkv_status qkv_family_rope(qkv_json_at keys, qkv_config *config);
qkv_status qkv_family_window(qkv_json_at keys, qkv_config *config);
qkv_status qkv_family_layer_types(qkv_json_at keys, qkv_config *config);

#endif
