/* The nearest of many texts, by the cosine of their vectors:
 *     cos(a, b) = a·b / (|a| |b|)
 * Vectors are kept at length 1, so that it is a product of matrices, a block of texts at a time; the
 * best of each block go through a heap of `top`. All texts are compared: nothing is approximated,
 * and memory is what the vectors take.
 *
 * An index is a header and the vectors as they lie in memory, mapped when it is opened. The header
 * has hashes of what they were made from: weights, tokenizer and configuration of the model, and the
 * texts. An index of anything else is made anew. */
#include "use/textmodel.h"
#include "base/mem.h"
#include "base/thread.h"
#include "data/lines.h"
#include "kern/kern.h"
#include "model/weights.h"

#include <math.h>
#include <string.h>

enum { ROWS = 4096, QUERIES = 64, TEXTS = 1024 }; /* compared at once; embedded at once */

typedef struct item {
    qkv_text text;
    int64_t line;
} item;

/* What an index begins with. */
typedef struct header {
    char magic[8];
    uint64_t model, texts; /* hashes */
    uint64_t width, n;
    uint64_t reserved[3]; /* vectors begin at a multiple of 64 bytes */
} header;

static const char magic[8] = "qkvnear1";

struct qkv_neighbours {
    const qkv_text_model *m;
    qkv_file file;
    QKV_VEC(item) items;
    size_t width;
    const float *vectors; /* (items, width), each of length 1 */
    qkv_file index;
    float *own;
    bool kept;
};

/* ---- what vectors are made from ---- */

static uint64_t hash_param(const qkv_param *p, uint64_t hash) {
    const qkv_weight *w = p->tensor.weight;
    hash = qkv_hash64(p->name, strlen(p->name), hash);
    if (!w) {
        for (int64_t r = 0; r < p->spec.rows; r++)
            hash = qkv_hash64(p->tensor.data + r * p->tensor.ld,
                              (size_t)p->spec.cols * sizeof(real), hash);
        return hash;
    }
    hash = qkv_hash64(w->data, (size_t)(w->rows * qkv_weight_row_bytes(w->format, w->cols)), hash);
    const size_t scales = (size_t)(w->rows * qkv_weight_groups(w->format, w->cols));
    return w->scale ? qkv_hash64(w->scale, scales * sizeof(float), hash) : hash;
}

static qkv_status hash_model(const qkv_text_model *m, uint64_t *out) {
    const qkv_params *params = qkv_model_params(m->model);
    qkv_buf config = {0};
    qkv_json_out j = qkv_json_begin(&config, 0);
    qkv_json_open(&j, '{');
    qkv_config_write(qkv_model_config(m->model), &j);
    qkv_json_close(&j, '}');
    uint64_t hash = config.len ? qkv_hash64(config.data, config.len, m->pairs) : 0;
    const qkv_status status = config.status;
    qkv_buf_free(&config);
    for (size_t i = 0; i < params->n; i++) hash = hash_param(params->list[i], hash);
    for (size_t id = 0; id < qkv_tokenizer_size(m->tokenizer); id++) {
        size_t len = 0;
        const char *text = qkv_tokenizer_token(m->tokenizer, (int32_t)id, &len);
        hash = qkv_hash64(text ? text : "", text ? len : 0, hash);
    }
    *out = hash;
    return status;
}

static uint64_t hash_texts(const qkv_neighbours *s) {
    uint64_t hash = s->items.n;
    for (size_t i = 0; i < s->items.n; i++)
        hash = qkv_hash64(s->items.at[i].text.data, s->items.at[i].text.len, hash);
    return hash;
}

/* ---- texts ---- */

static bool is_blank(qkv_text t) {
    for (size_t i = 0; i < t.len; i++)
        if (!strchr(" \t\r", t.data[i])) return false;
    return true;
}

/* The words seen so far, by hash: their place and 1, or 0. */
typedef struct seen {
    uint32_t *slots;
    size_t mask;
} seen;

static size_t slot_of(const qkv_neighbours *s, const seen *t, qkv_text w) {
    size_t at = (size_t)qkv_hash64(w.data, w.len, 0) & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        const qkv_text there = s->items.at[t->slots[at] - 1].text;
        if (there.len == w.len && memcmp(there.data, w.data, w.len) == 0) break;
    }
    return at;
}

static qkv_status grow(const qkv_neighbours *s, seen *t) {
    const seen old = *t;
    t->mask = old.slots ? 2 * old.mask + 1 : 1023;
    t->slots = qkv_zalloc(t->mask + 1, sizeof *t->slots);
    for (size_t i = 0; i < s->items.n && t->slots; i++)
        t->slots[slot_of(s, t, s->items.at[i].text)] = (uint32_t)i + 1;
    qkv_free(old.slots);
    return t->slots ? QKV_OK : QKV_FAILED;
}

static qkv_status add_words(qkv_neighbours *s, seen *t, qkv_text line, int64_t number) {
    qkv_word_list words = {0};
    qkv_status status = qkv_words_split(line, false, &words);
    for (size_t i = 0; i < words.n && status == QKV_OK; i++) {
        const qkv_text w = {line.data + words.at[i].begin, words.at[i].end - words.at[i].begin};
        if (2 * (s->items.n + 1) > t->mask || !t->slots) status = grow(s, t);
        if (status != QKV_OK) break;
        const size_t at = slot_of(s, t, w);
        if (t->slots[at]) continue;
        if (!QKV_PUSH(s->items, ((item){w, number}))) status = QKV_FAILED;
        t->slots[at] = (uint32_t)s->items.n;
    }
    qkv_free(words.at);
    return status;
}

static qkv_status read_items(qkv_neighbours *s, const qkv_neighbours_request *r) {
    qkv_text rest, line;
    seen words = {0};
    qkv_status status = qkv_text_open(r->in, &s->file, &rest);
    for (int64_t number = 1; status == QKV_OK && qkv_text_line(&rest, &line); number++) {
        if (is_blank(line)) continue;
        if (s->items.n >= UINT32_MAX / 2)
            status = qkv_fail(QKV_BAD_FILE, "%s: over 2^31 texts", r->in);
        else if (r->words)
            status = add_words(s, &words, line, number);
        else if (!QKV_PUSH(s->items, ((item){line, number})))
            status = QKV_FAILED;
    }
    qkv_free(words.slots);
    if (status == QKV_OK && s->items.n == 0)
        return qkv_fail(QKV_BAD_FILE, "%s: there is no text in it", r->in);
    return status;
}

/* ---- vectors ---- */

static void normalise(float *v, size_t width) {
    double sum = 0;
    for (size_t k = 0; k < width; k++) sum += (double)v[k] * (double)v[k];
    const double by = sum > 0 ? 1 / sqrt(sum) : 0;
    for (size_t k = 0; k < width; k++) v[k] = (float)((double)v[k] * by);
}

static qkv_status embed(const qkv_text_model *m, const qkv_text *texts, size_t n, float *out) {
    const size_t width = qkv_embed_width(m);
    QKV_TRY(qkv_embed(m, texts, n, out));
    for (size_t i = 0; i < n; i++) normalise(out + i * width, width);
    return QKV_OK;
}

/* The vectors of all texts, block by block: into `to`, or where it is NULL into the file. */
static qkv_status make_vectors(qkv_neighbours *s, const qkv_neighbours_request *r, float *to,
                               qkv_writer *file) {
    const size_t n = s->items.n;
    float *block = to ? NULL : qkv_alloc(TEXTS * s->width * sizeof *block);
    if (!to && !block) return QKV_FAILED;
    qkv_status status = QKV_OK;
    for (size_t from = 0; from < n && status == QKV_OK; from += TEXTS) {
        const size_t count = n - from < TEXTS ? n - from : TEXTS;
        qkv_text texts[TEXTS];
        float *out = to ? to + from * s->width : block;
        for (size_t i = 0; i < count; i++) texts[i] = s->items.at[from + i].text;
        status = embed(s->m, texts, count, out);
        if (status == QKV_OK && file) qkv_writer_add(file, out, count * s->width * sizeof *out);
        if (status == QKV_OK && r->progress && !r->progress(r->user, from + count, n))
            status = qkv_fail(QKV_INTERRUPTED, "stopped before all texts had their vectors");
    }
    qkv_free(block);
    return status;
}

static qkv_status size_of(const qkv_neighbours *s, size_t *out) {
    if (qkv_mul_over(s->items.n, s->width * sizeof(float), out) ||
        qkv_add_over(*out, sizeof(header), out))
        return qkv_fail(QKV_USAGE, "%zu texts of %zu numbers each are too many", s->items.n,
                        s->width);
    return QKV_OK;
}

static qkv_status write_index(qkv_neighbours *s, const qkv_neighbours_request *r, const header *h) {
    size_t bytes;
    qkv_writer file;
    QKV_TRY(size_of(s, &bytes));
    QKV_TRY(qkv_writer_open(&file, r->index, bytes));
    qkv_writer_add(&file, h, sizeof *h);
    const qkv_status status = make_vectors(s, r, NULL, &file);
    if (status == QKV_OK) return qkv_writer_commit(&file);
    qkv_writer_abandon(&file);
    return status;
}

/* Opens an index; *fits when it is of this model and these texts. What is no index is not written
 * over. */
static qkv_status open_index(qkv_neighbours *s, const char *path, const header *wanted,
                             bool *fits) {
    size_t bytes;
    header found = {0};
    *fits = false;
    if (!qkv_file_exists(path)) return QKV_OK;
    QKV_TRY(size_of(s, &bytes));
    QKV_TRY(qkv_file_open(path, SIZE_MAX, &s->index));
    if (s->index.size >= sizeof found) memcpy(&found, s->index.data, sizeof found);
    if (s->index.size && memcmp(found.magic, magic, sizeof magic) != 0)
        return qkv_fail(QKV_BAD_FILE,
                        "%s is there and is no index of texts; give --index another name", path);
    *fits = memcmp(&found, wanted, sizeof found) == 0 && s->index.size == bytes &&
            (uintptr_t)s->index.data % sizeof(float) == 0;
    s->vectors = (const float *)(const void *)(s->index.data + sizeof(header));
    if (!*fits) qkv_file_close(&s->index);
    return QKV_OK;
}

static qkv_status find_vectors(qkv_neighbours *s, const qkv_neighbours_request *r) {
    size_t bytes;
    if (!r->index) {
        QKV_TRY(size_of(s, &bytes));
        QKV_TRY_ALLOC(s->own = qkv_alloc_aligned(bytes));
        s->vectors = s->own;
        return make_vectors(s, r, s->own, NULL);
    }
    header wanted = {.texts = hash_texts(s), .width = s->width, .n = s->items.n};
    memcpy(wanted.magic, magic, sizeof magic);
    QKV_TRY(hash_model(s->m, &wanted.model));
    QKV_TRY(open_index(s, r->index, &wanted, &s->kept));
    if (s->kept) return QKV_OK;
    bool fits;
    QKV_TRY(write_index(s, r, &wanted));
    QKV_TRY(open_index(s, r->index, &wanted, &fits));
    return fits ? QKV_OK : qkv_fail(QKV_FAILED, "%s was changed while it was read", r->index);
}

qkv_status qkv_neighbours_open(const qkv_text_model *m, const qkv_neighbours_request *request,
                               qkv_neighbours **out) {
    *out = NULL;
    if (!request->in) return qkv_fail(QKV_USAGE, "similar needs texts to look among: --in FILE");
    qkv_neighbours *s = qkv_zalloc(1, sizeof *s);
    if (!s) return QKV_FAILED;
    s->m = m;
    s->width = qkv_embed_width(m);
    qkv_status status = read_items(s, request);
    if (status == QKV_OK) status = find_vectors(s, request);
    if (status == QKV_OK)
        *out = s;
    else
        qkv_neighbours_close(s);
    return status;
}

void qkv_neighbours_close(qkv_neighbours *s) {
    if (!s) return;
    qkv_file_close(&s->file);
    qkv_file_close(&s->index);
    qkv_free(s->items.at);
    qkv_free(s->own);
    qkv_free(s);
}

size_t qkv_neighbours_count(const qkv_neighbours *s) {
    return s->items.n;
}

bool qkv_neighbours_kept(const qkv_neighbours *s) {
    return s->kept;
}

/* ---- the nearest: a heap with the worst of the best on top ---- */

typedef struct hit {
    float cosine;
    uint32_t row;
} hit;

static bool is_worse(hit a, hit b) {
    return a.cosine != b.cosine ? a.cosine < b.cosine : a.row > b.row;
}

static void sink(hit *heap, size_t n, size_t at) {
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_worse(heap[child + 1], heap[child])) child++;
        if (!is_worse(heap[child], heap[at])) return;
        const hit swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

static void offer(hit *heap, size_t *n, size_t top, hit h) {
    if (*n < top) {
        size_t at = (*n)++;
        for (; at && is_worse(h, heap[(at - 1) / 2]); at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
        heap[at] = h;
    } else if (is_worse(heap[0], h)) {
        heap[0] = h;
        sink(heap, top, 0);
    }
}

/* Some queries at once. */
typedef struct search {
    const qkv_neighbours *s;
    size_t n, top; /* queries; how many of the nearest each gets, which there are */
    float *queries;
    real *a, *b, *scores;  /* of the queries and, where reals are no floats, a block of texts; their
                             products (n, ROWS) */
    hit *heap;             /* `top` for each query, */
    size_t found[QUERIES]; /* of which so many are filled */
} search;

static void widen(const float *from, size_t n, real *to) {
    for (size_t i = 0; i < n; i++) to[i] = (real)from[i];
}

static qkv_status compare_block(search *q, size_t from, size_t rows) {
    const qkv_neighbours *s = q->s;
    const float *texts = s->vectors + from * s->width;
    if (sizeof(real) != sizeof(float)) widen(texts, rows * s->width, q->b);
    const qkv_gemm product = {.m = (int64_t)q->n,
                              .n = (int64_t)rows,
                              .k = (int64_t)s->width,
                              .a = q->a,
                              .b = sizeof(real) == sizeof(float) ? (const void *)texts : q->b,
                              .c = q->scores,
                              .lda = (int64_t)s->width,
                              .ldb = (int64_t)s->width,
                              .ldc = ROWS,
                              .b_trans = true};
    if (!qkv_kern_get()->gemm(&product)) return QKV_FAILED;
    QKV_PARALLEL_FOR_IF(q->n > 1)
    for (size_t i = 0; i < q->n; i++)
        for (size_t r = 0; r < rows; r++)
            offer(q->heap + i * q->top, &q->found[i], q->top,
                  (hit){(float)q->scores[i * ROWS + r], (uint32_t)(from + r)});
    return QKV_OK;
}

/* Empties a heap from the worst on. */
static void write_hits(search *q, size_t i, qkv_neighbour *out) {
    hit *heap = q->heap + i * q->top;
    for (size_t n = q->found[i]; n > 0; n--) {
        const item *found = &q->s->items.at[heap[0].row];
        out[n - 1] = (qkv_neighbour){heap[0].cosine, found->line, found->text};
        heap[0] = heap[n - 1];
        sink(heap, n - 1, 0);
    }
}

static qkv_status search_all(search *q, const qkv_text *texts, size_t stride, qkv_neighbour *out) {
    const qkv_neighbours *s = q->s;
    memset(q->found, 0, sizeof q->found);
    QKV_TRY(embed(s->m, texts, q->n, q->queries));
    widen(q->queries, q->n * s->width, q->a);
    for (size_t from = 0; from < s->items.n; from += ROWS)
        QKV_TRY(compare_block(q, from, s->items.n - from < ROWS ? s->items.n - from : ROWS));
    for (size_t i = 0; i < q->n; i++) write_hits(q, i, out + i * stride);
    return QKV_OK;
}

qkv_status qkv_neighbours_find(const qkv_neighbours *s, const qkv_text *texts, size_t n, size_t top,
                               qkv_neighbour *out) {
    const size_t kept = top < s->items.n ? top : s->items.n,
                 block = sizeof(real) == sizeof(float) ? 0 : ROWS * s->width;
    search q = {.s = s,
                .top = kept,
                .queries = qkv_alloc(QUERIES * s->width * sizeof(float)),
                .a = qkv_alloc((QUERIES * s->width + block) * sizeof(real)),
                .scores = qkv_alloc(QUERIES * ROWS * sizeof(real)),
                .heap = qkv_zalloc(QUERIES * (kept + 1), sizeof(hit))};
    qkv_status status = q.queries && q.a && q.scores && q.heap ? QKV_OK : QKV_FAILED;
    q.b = q.a ? q.a + QUERIES * s->width : NULL;
    for (size_t i = 0; i < n * top; i++) out[i] = (qkv_neighbour){0};
    for (size_t from = 0; from < n && top && status == QKV_OK; from += QUERIES) {
        q.n = n - from < QUERIES ? n - from : QUERIES;
        status = search_all(&q, texts + from, top, out + from * top);
    }
    qkv_free(q.queries);
    qkv_free(q.a);
    qkv_free(q.scores);
    qkv_free(q.heap);
    return status;
}
