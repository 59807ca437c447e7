/* llama2.c's first checkpoints: seven int32 (width, hidden width, layers, heads, KV heads,
 * vocabulary, longest sequence), then float32 matrices, every kind of them for all layers together.
 * A negative vocabulary says that the output map is its own matrix, which then stands last, after
 * the tables of RoPE that nobody reads.
 *
 * The model is Llama's: RMSNorm before, SwiGLU, RoPE that turns neighbours, no biases. */
#include "model/import_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, LENGTH, FIELDS };

typedef struct header {
    int64_t at[FIELDS];
    bool untied;
} header;

/* Fields that are no sizes at all, or whose product would not be counted in 63 bits,
 * are refused here. */
static bool read_header(const qkv_file *file, header *h) {
    if (file->size < 4 * FIELDS) return false;
    for (int i = 0; i < FIELDS; i++) {
        int32_t field;
        memcpy(&field, file->data + 4 * i, 4);
        h->at[i] = field;
    }
    h->untied = h->at[VOCAB] < 0;
    h->at[VOCAB] = llabs(h->at[VOCAB]);
    for (int i = 0; i < FIELDS; i++)
        if (h->at[i] < 1 ||
            h->at[i] > (i == LAYERS || i == HEADS || i == KV_HEADS ? 4096 : 1 << 20))
            return false;
    return h->at[DIM] % h->at[HEADS] == 0 && h->at[HEADS] % h->at[KV_HEADS] == 0 &&
           h->at[DIM] / h->at[HEADS] % 2 == 0;
}

/* There is no magic number: seven plausible sizes are all that tells such a file. */
static bool is_llama2c(const qkv_file *file) {
    header h;
    return read_header(file, &h);
}

static qkv_status configure(const header *h, qkv_config *c) {
    qkv_config_default(c);
    QKV_TRY(qkv_config_set(c, "task", "lm"));
    c->vocab_size = h->at[VOCAB];
    c->max_len = h->at[LENGTH];
    c->d_model = h->at[DIM];
    c->layers = h->at[LAYERS];
    c->heads = h->at[HEADS];
    c->kv_heads = h->at[KV_HEADS];
    c->d_ff = h->at[HIDDEN];
    c->norm_kind = QKV_NORM_RMS;
    c->norm_eps = 1e-5;
    c->activation = QKV_FFN_SWIGLU;
    c->position = QKV_POSITION_ROPE;
    c->rope_pairing = QKV_PAIRING_ADJACENT;
    c->qkv_bias = c->out_bias = c->ffn_bias = false;
    c->tie = !h->untied;
    c->dropout = 0;
    return QKV_OK;
}

/* One kind of matrix: `rows`×`cols` for every layer, to rows `from` … of the parameter. */
typedef struct part {
    const char *name;
    int64_t from, rows, cols;
    bool once; /* not by layer */
} part;

/* What the file holds, in its order. */
static size_t list_parts(const header *h, part out[12]) {
    const int64_t d = h->at[DIM], f = h->at[HIDDEN], head = d / h->at[HEADS],
                  kv = h->at[KV_HEADS] * head;
    const part parts[] = {
        {"decoder.embedding.weight", 0, h->at[VOCAB], d, true},
        {"decoder.layers.%d.attention_norm.weight", 0, 1, d, false},
        {"decoder.layers.%d.attention.qkv.weight", 0, d, d, false},
        {"decoder.layers.%d.attention.qkv.weight", d, kv, d, false},
        {"decoder.layers.%d.attention.qkv.weight", d + kv, kv, d, false},
        {"decoder.layers.%d.attention.out.weight", 0, d, d, false},
        {"decoder.layers.%d.ffn_norm.weight", 0, 1, d, false},
        {"decoder.layers.%d.ffn.in.weight", 0, f, d, false},
        {"decoder.layers.%d.ffn.out.weight", 0, d, f, false},
        {"decoder.layers.%d.ffn.in.weight", f, f, d, false},
        {"decoder.norm.weight", 0, 1, d, true},
        {"head.weight", 0, h->at[VOCAB], d, true},
    };
    const size_t n = sizeof parts / sizeof *parts - (h->untied ? 0 : 1);
    memcpy(out, parts, n * sizeof *parts);
    return n;
}

static int64_t rope_tables(const header *h) {
    return h->at[LENGTH] * (h->at[DIM] / h->at[HEADS]);
}

static qkv_status check_size(const header *h, const part *parts, size_t n, size_t size) {
    double floats = (double)rope_tables(h); /* exact up to 2⁵³, and never over */
    for (size_t i = 0; i < n; i++)
        floats += (double)parts[i].rows * (double)parts[i].cols *
                  (double)(parts[i].once ? 1 : h->at[LAYERS]);
    if ((double)size == 4 * (FIELDS + floats)) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE,
                    "%zu bytes, but a llama2.c checkpoint with this header has %.0f: the file is "
                    "cut off, or something else",
                    size, 4 * (FIELDS + floats));
}

static qkv_status put_all(const qkv_file *file, const header *h, const part *parts, size_t n,
                          qkv_params *to) {
    const char *at = file->data + 4 * FIELDS;
    for (size_t i = 0; i < n; i++) {
        const part *p = &parts[i];
        if (!strcmp(p->name, "head.weight")) at += 4 * rope_tables(h);
        for (int layer = 0; layer < (p->once ? 1 : (int)h->at[LAYERS]); layer++) {
            char name[QKV_NAME_BYTES];
            const char *by_layer = strstr(p->name, "%d");
            if (by_layer)
                snprintf(name, sizeof name, "%.*s%d%s", (int)(by_layer - p->name), p->name, layer,
                         by_layer + 2);
            else
                snprintf(name, sizeof name, "%s", p->name);
            const qkv_import_rows rows = {at, p->from, p->rows, p->cols};
            QKV_TRY(qkv_import_put(to, &rows, "%s", name));
            at += 4 * p->rows * p->cols;
        }
    }
    return QKV_OK;
}

static qkv_status read_llama2c(const qkv_file *file, const char *folder, qkv_imported *out) {
    header h;
    part parts[12];
    qkv_config config;
    if (!read_header(file, &h)) return qkv_fail(QKV_BAD_FILE, "not a llama2.c checkpoint");
    const size_t n = list_parts(&h, parts);
    QKV_TRY(check_size(&h, parts, n, file->size));
    QKV_TRY(configure(&h, &config));
    QKV_TRY(qkv_model_build(&config, &out->model));
    qkv_params *params = qkv_model_params(out->model);
    QKV_TRY(put_all(file, &h, parts, n, params));
    QKV_TRY(qkv_model_allocate(out->model, false));
    QKV_TRY(put_all(file, &h, parts, n, params));
    /* Its trainer names a vocabulary of its own by its size; the original's is tokenizer.bin. */
    QKV_TRY(qkv_path_join(&out->tokenizer, folder, "tokenizer.bin"));
    if (qkv_file_exists(out->tokenizer.data)) return QKV_OK;
    char name[32];
    snprintf(name, sizeof name, "tok%lld.bin", (long long)h.at[VOCAB]);
    qkv_buf_clear(&out->tokenizer);
    return qkv_path_join(&out->tokenizer, folder, name);
}

const qkv_importer qkv_import_llama2c = {
    .name = "llama2.c",
    .summary = "a version-0 checkpoint (.bin), with tokenizer.bin or tok<size>.bin beside it",
    .is = is_llama2c,
    .read = read_llama2c,
};
