/* GGUF models; see gguf_model.h.
 *
 * Reading goes in two steps, as everywhere: the entries make a configuration, from which the model
 * is declared; then every tensor finds its rows of a parameter, shapes are compared, and the
 * parameter is bound to where they lie. */
#include "foreign/gguf_model.h"
#include "base/mem.h"
#include "foreign/gguf_families.h"
#include "nn/dense.h"
#include "store/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool qkv_is_gguf_file(const char *path) {
    struct stat info;
    char magic[4] = "";
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(magic, 1, sizeof magic, f) : 0;
    if (f) fclose(f);
    return qkv_is_gguf(magic, n);
}

/* An open file and its header. */
typedef struct gguf_file {
    qkv_file file;
    qkv_gguf header;
    const qkv_gguf_family *family;
    qkv_weight *parts; /* of parameters that several tensors make up */
    size_t n_parts;
} gguf_file;

static void close_gguf(void *what) {
    gguf_file *g = what;
    qkv_gguf_free(&g->header);
    qkv_file_close(&g->file);
    qkv_free(g->parts);
    qkv_free(g);
}

static qkv_status find_family(gguf_file *g) {
    int64_t split = 1;
    qkv_text name = {"", 0};
    QKV_TRY(qkv_gguf_int(&g->header, "split.count", false, &split));
    if (split > 1)
        return qkv_fail(QKV_BAD_FILE,
                        "one of %lld files of a model: join them (llama-gguf-split --merge)",
                        (long long)split);
    QKV_TRY(qkv_gguf_string(&g->header, "general.architecture", true, &name));
    QKV_TRY_ALLOC((g->family = qkv_gguf_family_of(name.data, name.len)) != NULL);
    return QKV_OK;
}

static qkv_status open_gguf(const char *path, gguf_file **out) {
    gguf_file *g = qkv_zalloc(1, sizeof *g);
    if (!g) return QKV_FAILED;
    qkv_status status = qkv_file_open(path, SIZE_MAX, &g->file);
    if (status != QKV_OK) {
        qkv_free(g);
        return status;
    }
    status = qkv_gguf_read(g->file.data, g->file.size, true, &g->header);
    if (status == QKV_OK) status = find_family(g);
    if (status != QKV_OK) {
        close_gguf(g);
        return qkv_fail_in(status, "%s", path);
    }
    *out = g;
    return QKV_OK;
}

/* ---- entries ---- */

enum { VALUE_BYTES = 64 };

/* A value as text; false: no scalar, or too long for one that has a meaning here. */
static bool entry_text(const qkv_gguf_entry *e, char out[VALUE_BYTES]) {
    const uint8_t *at = NULL;
    if (e->array) return false;
    if (e->type == QKV_GGUF_STRING) {
        const qkv_text text = qkv_gguf_string_at(e, &at);
        if (text.len >= VALUE_BYTES || memchr(text.data, 0, text.len)) return false;
        memcpy(out, text.data, text.len);
        out[text.len] = 0;
    } else if (e->type == QKV_GGUF_BOOL) {
        snprintf(out, VALUE_BYTES, "%s", *e->at ? "true" : "false");
    } else if (e->type == QKV_GGUF_F32 || e->type == QKV_GGUF_F64) {
        snprintf(out, VALUE_BYTES, "%.17g", qkv_gguf_real_at(e, 0));
    } else {
        snprintf(out, VALUE_BYTES, "%lld", (long long)qkv_gguf_int_at(e, 0));
    }
    return true;
}

static qkv_status apply_settings(const char *settings, qkv_config *config) {
    while (*settings) {
        const size_t n = strcspn(settings, " "), name = strcspn(settings, "=");
        char key[VALUE_BYTES], value[VALUE_BYTES];
        snprintf(key, sizeof key, "%.*s", (int)name, settings);
        snprintf(value, sizeof value, "%.*s", (int)(n - name - 1), settings + name + 1);
        QKV_TRY(qkv_config_set(config, key, value));
        settings += n + strspn(settings + n, " ");
    }
    return QKV_OK;
}

/* Two entries that are one setting of ours must agree. */
static qkv_status check_same(const gguf_file *g, const qkv_gguf_key_row *row, const char *value) {
    for (const qkv_gguf_key_row *other = g->family->keys; other != row; other++) {
        char name[128], before[VALUE_BYTES];
        if (!other->ours || strcmp(other->ours, row->ours)) continue;
        snprintf(name, sizeof name, "%s.%s", g->family->name, other->theirs);
        const qkv_gguf_entry *e = qkv_gguf_find(&g->header, name);
        if (e && entry_text(e, before) && strcmp(before, value))
            return qkv_fail(QKV_BAD_FILE,
                            "%s is %s and %s is %s: models where they differ are not read", name,
                            before, row->theirs, value);
    }
    return QKV_OK;
}

static qkv_status read_key(const gguf_file *g, const qkv_gguf_key_row *row, qkv_config *config) {
    char name[128], value[VALUE_BYTES];
    snprintf(name, sizeof name, "%s.%s", g->family->name, row->theirs);
    const qkv_gguf_entry *e = qkv_gguf_find(&g->header, name);
    if (!e) return row->required ? qkv_fail(QKV_BAD_FILE, "there is no entry %s", name) : QKV_OK;
    if (!row->ours && !row->only) return QKV_OK;
    if (!entry_text(e, value))
        return qkv_fail(QKV_BAD_FILE, "entry %s has a value of a form that is not read", name);
    if (row->only && strcmp(row->only, value))
        return qkv_fail(QKV_BAD_FILE, "%s is \"%s\", which is not implemented", name, value);
    if (!row->ours) return QKV_OK;
    QKV_TRY(check_same(g, row, value));
    const qkv_status status = qkv_config_set(config, row->ours, value);
    return status == QKV_OK ? status : qkv_fail_in(QKV_BAD_FILE, "%s", name);
}

/* What an entry under the architecture's name says changes the model, so each must be known. */
static qkv_status check_keys(const gguf_file *g) {
    const size_t skip = strlen(g->family->name);
    for (size_t i = 0; i < g->header.n_entries; i++) {
        const qkv_text key = g->header.entries[i].key;
        if (key.len <= skip + 1 || memcmp(key.data, g->family->name, skip) || key.data[skip] != '.')
            continue;
        const qkv_gguf_key_row *row = g->family->keys;
        while (row->theirs && (strlen(row->theirs) != key.len - skip - 1 ||
                               memcmp(row->theirs, key.data + skip + 1, key.len - skip - 1)))
            row++;
        if (!row->theirs)
            return qkv_fail(QKV_BAD_FILE, "the entry %.*s is not implemented",
                            (int)(key.len < 80 ? key.len : 80), key.data);
    }
    return QKV_OK;
}

/* A window counts the query itself; ours does not. */
static qkv_status read_window(const gguf_file *g, qkv_config *config) {
    char name[128], value[VALUE_BYTES];
    int64_t window = 0;
    snprintf(name, sizeof name, "%s.attention.sliding_window", g->family->name);
    QKV_TRY(qkv_gguf_int(&g->header, name, false, &window));
    if (window < 1) return QKV_OK;
    snprintf(value, sizeof value, "%lld", (long long)window - 1);
    QKV_TRY(qkv_config_set(config, "attention", "local"));
    const qkv_status status = qkv_config_set(config, "window", value);
    return status == QKV_OK ? status : qkv_fail_in(QKV_BAD_FILE, "%s", name);
}

static qkv_status configure(const gguf_file *g, qkv_config *config) {
    const qkv_gguf_tensor *table = qkv_gguf_tensor_find(&g->header, "token_embd.weight");
    if (!table || table->rank != 2) return qkv_fail(QKV_BAD_FILE, "there is no token_embd.weight");
    qkv_config_default(config);
    QKV_TRY(apply_settings(g->family->settings, config));
    QKV_TRY(check_keys(g));
    for (const qkv_gguf_key_row *row = g->family->keys; row->theirs; row++)
        QKV_TRY(read_key(g, row, config));
    QKV_TRY(read_window(g, config));
    config->vocab_size = table->shape[0];
    config->tie = !qkv_gguf_tensor_find(&g->header, "output.weight");
    config->dropout = 0;
    return QKV_OK;
}

qkv_status qkv_gguf_configure(const char *path, qkv_config *config) {
    gguf_file *g;
    QKV_TRY(open_gguf(path, &g));
    const qkv_status status = configure(g, config);
    close_gguf(g);
    return status == QKV_OK ? status : qkv_fail_in(QKV_BAD_FILE, "%s", path);
}

/* ---- tensors ---- */

/* Rows of a parameter that a tensor fills. */
typedef struct piece {
    qkv_param *to;
    const qkv_gguf_tensor *from;
    int64_t first, rows, cols; /* of a vector the elements are rows */
} piece;

typedef struct plan {
    gguf_file *g;
    qkv_params *params;
    const qkv_config *sizes;
    bool *used; /* by tensor */
    QKV_VEC(piece) pieces;
} plan;

static int64_t rows_of(const qkv_param *p) {
    return p->spec.vector ? p->spec.rows * p->spec.cols : p->spec.rows;
}

static void place(const qkv_config *c, qkv_gguf_slice slice, piece *p) {
    const int64_t q = c->heads * c->d_head, kv = c->kv_heads * c->d_head, all = rows_of(p->to);
    const struct {
        int64_t first, rows;
    } at[] = {[QKV_GGUF_ALL] = {0, all},       [QKV_GGUF_Q] = {0, q},
              [QKV_GGUF_K] = {q, kv},          [QKV_GGUF_V] = {q + kv, kv},
              [QKV_GGUF_FIRST] = {0, all / 2}, [QKV_GGUF_LAST] = {all / 2, all - all / 2}};
    p->first = at[slice].first;
    p->rows = at[slice].rows;
    p->cols = p->to->spec.vector ? 1 : p->to->spec.cols;
}

/* A row's name with the layer's number and a suffix. */
static void spell(const char *name, int layer, const char *suffix, char out[QKV_NAME_BYTES]) {
    const char *digits = strstr(name, "%d");
    if (digits)
        snprintf(out, QKV_NAME_BYTES, "%.*s%d%s%s", (int)(digits - name), name, layer, digits + 2,
                 suffix);
    else
        snprintf(out, QKV_NAME_BYTES, "%s%s", name, suffix);
}

static bool fits(const piece *p) {
    const qkv_gguf_tensor *t = p->from;
    if (p->first + p->rows > rows_of(p->to)) return false;
    if (p->to->spec.vector) return t->rank == 1 && t->shape[0] == p->rows;
    return t->rank == 2 && t->shape[0] == p->rows && t->shape[1] == p->cols &&
           (t->shape[1] <= QKV_WEIGHT_COLS_MAX || t->format <= QKV_WEIGHT_F16);
}

/* The tensor of a row, a layer and a suffix, where the file has one. */
static qkv_status add_tensor(plan *p, const qkv_gguf_tensor_row *row, int layer,
                             const char *suffix) {
    char name[QKV_NAME_BYTES];
    spell(row->theirs, layer, suffix, name);
    piece next = {.from = qkv_gguf_tensor_find(&p->g->header, name)};
    if (!next.from) return QKV_OK;
    spell(row->ours, layer, suffix, name);
    next.to = qkv_param_find(p->params, name);
    if (!next.to) return QKV_OK; /* which the count below will miss */
    place(p->sizes, row->slice, &next);
    if (!fits(&next))
        return qkv_fail(QKV_BAD_FILE,
                        "the tensor %.*s has another shape than the entries ask for: %lld×%lld",
                        (int)next.from->name.len, next.from->name.data, (long long)next.rows,
                        (long long)next.cols);
    p->used[next.from - p->g->header.tensors] = true;
    return QKV_PUSH(p->pieces, next) ? QKV_OK : QKV_FAILED;
}

static qkv_status add_tensors(plan *p) {
    const qkv_gguf *h = &p->g->header;
    for (const qkv_gguf_tensor_row *row = p->g->family->tensors; row->theirs; row++)
        for (int layer = 0; layer < (strstr(row->theirs, "%d") ? (int)p->sizes->decoder_layers : 1);
             layer++) {
            QKV_TRY(add_tensor(p, row, layer, ".weight"));
            QKV_TRY(add_tensor(p, row, layer, ".bias"));
        }
    for (size_t i = 0; i < h->n_tensors; i++)
        if (!p->used[i])
            return qkv_fail(QKV_BAD_FILE,
                            "the tensor %.*s is not known for %s: a kind of model that is not read",
                            (int)h->tensors[i].name.len, h->tensors[i].name.data,
                            p->g->family->name);
    return QKV_OK;
}

/* The pieces of a parameter in the order of its rows, which they must fill without a gap. */
static qkv_status pieces_of(const plan *p, const qkv_param *param, const piece *out[3], int *n) {
    int64_t filled = 0;
    *n = 0;
    for (bool more = true; more && *n < 3;) {
        more = false;
        for (size_t i = 0; i < p->pieces.n && !more; i++) {
            const piece *one = &p->pieces.at[i];
            if (one->to != param || one->first != filled) continue;
            out[(*n)++] = one;
            filled += one->rows;
            more = true;
        }
    }
    if (filled != rows_of(param))
        return qkv_fail(QKV_BAD_FILE, "no tensor gives all of %s (%lld×%lld)", param->name,
                        (long long)param->spec.rows, (long long)param->spec.cols);
    return QKV_OK;
}

/* ---- binding ---- */

static qkv_weight weight_of(const piece *p) {
    const qkv_weight_format format = p->from->format;
    return (qkv_weight){.format = format,
                        .rows = p->rows,
                        .cols = p->cols,
                        .data = p->from->data,
                        /* else x would be rounded to bf16 too */
                        .exact = format == QKV_WEIGHT_BF16 || getenv("QKV_EXACT") != NULL};
}

static bool floats_in_place(const qkv_weight *w) {
    return w->format == QKV_WEIGHT_F32 && sizeof(real) == sizeof(float) &&
           (uintptr_t)w->data % sizeof(float) == 0;
}

/* As reals that the parameter owns. */
static qkv_status bind_copy(qkv_param *param, const piece *const *list, int n) {
    const int64_t cols = param->spec.vector ? 1 : param->spec.cols;
    QKV_TRY_ALLOC(param->own =
                      qkv_alloc_aligned((size_t)(rows_of(param) * cols) * sizeof *param->own));
    real *to = param->own;
    for (int i = 0; i < n; i++) {
        qkv_weight w = weight_of(list[i]);
        if (param->spec.vector) w.cols = w.rows, w.rows = 1;
        for (int64_t r = 0; r < w.rows; r++, to += w.cols) qkv_weight_row_value(&w, r, 1, to);
    }
    qkv_param_bind(param, param->own);
    return QKV_OK;
}

static qkv_status bind_one(plan *p, qkv_param *param) {
    const piece *list[3];
    int n;
    QKV_TRY(pieces_of(p, param, list, &n));
    qkv_weight w = weight_of(list[0]);
    if (n == 1 && floats_in_place(&w)) {
        qkv_param_bind(param, w.data);
        return QKV_OK;
    }
    bool copied = !param->spec.narrow;
    for (int i = 0; i < n; i++) {
        const qkv_weight one = weight_of(list[i]);
        copied |= one.format == QKV_WEIGHT_F32 && !floats_in_place(&one);
    }
    if (copied) return bind_copy(param, list, n);
    if (n > 1) {
        w = (qkv_weight){.rows = rows_of(param),
                         .cols = param->spec.cols,
                         .parts = p->g->parts + p->g->n_parts,
                         .n_parts = n};
        for (int i = 0; i < n; i++) p->g->parts[p->g->n_parts++] = weight_of(list[i]);
    }
    qkv_param_bind_weight(param, &w);
    return QKV_OK;
}

static qkv_status bind_all(plan *p) {
    QKV_TRY_ALLOC(p->used = qkv_zalloc(p->g->header.n_tensors + 1, sizeof *p->used));
    QKV_TRY(add_tensors(p));
    QKV_TRY_ALLOC(p->g->parts = qkv_zalloc(p->pieces.n + 1, sizeof *p->g->parts));
    for (size_t i = 0; i < p->params->n; i++) QKV_TRY(bind_one(p, p->params->list[i]));
    return QKV_OK;
}

qkv_status qkv_gguf_bind(const char *path, qkv_model *m) {
    gguf_file *g;
    QKV_TRY(open_gguf(path, &g));
    qkv_model_keep(m, g, close_gguf);
    plan p = {.g = g, .params = qkv_model_params(m), .sizes = qkv_model_config(m)};
    const qkv_status status = bind_all(&p);
    qkv_free(p.pieces.at);
    qkv_free(p.used);
    return status == QKV_OK ? qkv_model_opened(m) : qkv_fail_in(status, "%s", path);
}
