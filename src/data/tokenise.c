/* Rows are encoded in blocks, each over all threads, and appended in order. */
#include "data/tokenise.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/utf8.h"

enum { BLOCK = 1024 };

typedef struct block {
    const qkv_row *rows[BLOCK];
    qkv_text texts[BLOCK];
    qkv_encoding sides[2][BLOCK];
    size_t n;
} block;

static qkv_status encode_pair(const qkv_tokenizer *tok, const qkv_encode_options *options, block *b,
                              size_t i) {
    const qkv_row *row = b->rows[i];
    return qkv_tokenizer_encode(tok, row->text.data, row->text.len, row->second.data,
                                row->second.len, options, &b->sides[0][i]);
}

static qkv_status encode_pairs(const qkv_tokenizer *tok, const qkv_encode_options *options,
                               block *b) {
    _Atomic bool failed = false;
    QKV_PARALLEL_FOR_UNEVEN
    for (size_t i = 0; i < b->n; i++)
        if (encode_pair(tok, options, b, i) != QKV_OK) failed = true;
    /* Messages are kept per thread: once more here, for the message of the first that fails. */
    for (size_t i = 0; i < b->n && failed; i++) QKV_TRY(encode_pair(tok, options, b, i));
    return QKV_OK;
}

/* Encodes one side of the block. */
static qkv_status encode_side(const qkv_tokenizer *tok, const qkv_tokenise_spec *spec, block *b,
                              int side) {
    const bool split = spec->too_long == QKV_TOO_LONG_SPLIT && spec->max_tokens > 0;
    const qkv_encode_options options = {.no_special = spec->no_special,
                                        .offsets = spec->trees || (spec->chars && split),
                                        .max_tokens =
                                            split ? (size_t)INT32_MAX : (size_t)spec->max_tokens};
    if (spec->sides == 1 && b->n > 0 && b->rows[0]->second.data)
        return encode_pairs(tok, &options, b);
    for (size_t i = 0; i < b->n; i++) b->texts[i] = side ? b->rows[i]->second : b->rows[i]->text;
    return qkv_tokenizer_encode_batch(tok, b->texts, b->n, &options, b->sides[side]);
}

static uint32_t leading_space(qkv_text t) {
    uint32_t n = 0;
    while (n < t.len && (unsigned char)t.data[n] <= ' ') n++;
    return n;
}

void qkv_tokenise_nodes(const qkv_tree *tree, qkv_text text, const qkv_encoding *e,
                        int32_t *nodes) {
    /* The tree's text is the row's but for white space at the ends. */
    const uint32_t lead = leading_space(text), own = leading_space(tree->text);
    for (size_t i = 0; i < e->n; i++)
        nodes[i] = e->end[i] <= lead
                       ? 0
                       : qkv_tree_node(tree, (e->begin[i] > lead ? e->begin[i] - lead : 0) + own,
                                       e->end[i] - lead + own);
}

/* Gives the example just added, whose first side is tokens `at` … of the row's text, its tree. */
static qkv_status add_tree(const qkv_tokenise_spec *spec, const qkv_row *row, const qkv_encoding *e,
                           int64_t at, qkv_encoded *out) {
    const bool pair = row->second.data && spec->sides == 1; /* two texts in one sequence */
    const qkv_tree *tree = pair ? NULL : qkv_trees_find(spec->trees, row->text);
    if (!tree)
        return qkv_fail(QKV_BAD_FILE, "row of line %lld: %s \"%.*s\"", (long long)row->line,
                        pair ? "a pair of texts has no tree:"
                             : "no tree of the CoNLL-U file has the text",
                        (int)(row->text.len < 60 ? row->text.len : 60), row->text.data);
    int32_t *nodes = qkv_alloc(e->n * sizeof *nodes);
    if (!nodes) return QKV_FAILED;
    qkv_tokenise_nodes(tree, row->text, e, nodes);
    const qkv_status status = qkv_encoded_tree(out, nodes + at, tree->head, tree->n + 1);
    qkv_free(nodes);
    return status;
}

int64_t qkv_tokenise_chars(qkv_text text, int32_t *out) {
    int64_t n = 0;
    bool gap = false;
    for (size_t at = 0; at < text.len;) {
        int32_t c;
        at += (size_t)qkv_utf8_decode(text.data + at, text.len - at, &c);
        const bool space = (c >= '\t' && c <= '\r') || c == ' ' || c == 0xa0 || c == 0x3000;
        if (!space && gap && n) out[n++] = ' ';
        if (!space) out[n++] = c;
        gap = space;
    }
    return n;
}

/* Gives the example just added the characters of its text; a pair's stand on two lines. */
static qkv_status add_chars(qkv_text text, qkv_text second, qkv_encoded *out) {
    int32_t *chars = qkv_alloc((text.len + 1 + second.len) * sizeof *chars);
    if (!chars) return QKV_FAILED;
    int64_t n = qkv_tokenise_chars(text, chars);
    if (second.len) {
        chars[n++] = '\n';
        n += qkv_tokenise_chars(second, chars + n);
    }
    const qkv_status status = qkv_encoded_add_chars(out, chars, n);
    qkv_free(chars);
    return status;
}

const char *const qkv_too_long_names[] = {"cut", "split", "skip", NULL};

/* The part of its text that tokens from … to − 1 of an encoding with offsets stand for. */
static qkv_text part_of(qkv_text text, const qkv_encoding *e, int64_t from, int64_t to) {
    size_t begin = text.len, end = 0;
    for (int64_t i = from; i < to; i++) {
        if (e->begin[i] >= e->end[i]) continue; /* what the tokenizer adds */
        if (e->begin[i] < begin) begin = e->begin[i];
        if (e->end[i] > end) end = e->end[i];
    }
    return (qkv_text){text.data + begin, end > begin ? end - begin : 0};
}

/* One text as several examples of at most max_tokens. Each has its own characters; those of a pair
 * have all of the pair's, as an offset does not say in which of the two texts it lies. */
static qkv_status add_pieces(const qkv_tokenise_spec *spec, const qkv_row *row,
                             const qkv_encoding *e, qkv_encoded *out) {
    for (int64_t at = 0, n = (int64_t)e->n, end; at < n; at = end) {
        end = n - at < spec->max_tokens ? n : at + spec->max_tokens;
        QKV_TRY(qkv_encoded_add(out, e->ids + at, end - at));
        if (spec->trees) QKV_TRY(add_tree(spec, row, e, at, out));
        if (spec->chars) {
            const qkv_text own = row->second.data ? row->text : part_of(row->text, e, at, end);
            QKV_TRY(add_chars(own, row->second, out));
        }
        if (row->label >= 0) QKV_TRY(qkv_encoded_label(out, row->label));
    }
    return QKV_OK;
}

static qkv_status finish(const qkv_tokenise_spec *spec, block *b, qkv_encoded *out,
                         qkv_tokenise_counts *counts) {
    for (size_t i = 0; i < b->n; i++) {
        bool empty = false, cut = false;
        for (int side = 0; side < spec->sides; side++) {
            empty |= b->sides[side][i].n == 0;
            cut |= b->sides[side][i].cut ||
                   (spec->max_tokens > 0 && (int64_t)b->sides[side][i].n > spec->max_tokens);
        }
        counts->n_cut += cut;
        counts->n_empty += empty;
        if (empty || (cut && spec->too_long == QKV_TOO_LONG_SKIP)) continue;
        if (cut && spec->too_long == QKV_TOO_LONG_SPLIT) {
            QKV_TRY(add_pieces(spec, b->rows[i], &b->sides[0][i], out));
            continue;
        }
        for (int side = 0; side < spec->sides; side++)
            QKV_TRY((spec->join ? qkv_encoded_extend : qkv_encoded_add)(
                out, b->sides[side][i].ids, (int64_t)b->sides[side][i].n));
        if (spec->trees) QKV_TRY(add_tree(spec, b->rows[i], &b->sides[0][i], 0, out));
        if (spec->chars) QKV_TRY(add_chars(b->rows[i]->text, b->rows[i]->second, out));
        if (b->rows[i]->label >= 0) QKV_TRY(qkv_encoded_label(out, b->rows[i]->label));
    }
    return QKV_OK;
}

static qkv_status flush(const qkv_tokenizer *tok, const qkv_tokenise_spec *spec, block *b,
                        qkv_encoded *out, qkv_tokenise_counts *counts) {
    for (int side = 0; side < spec->sides; side++) QKV_TRY(encode_side(tok, spec, b, side));
    QKV_TRY(finish(spec, b, out, counts));
    b->n = 0;
    return QKV_OK;
}

qkv_status qkv_tokenise(const qkv_tokenizer *tok, const qkv_corpus *corpus, const bool *take,
                        const qkv_tokenise_spec *spec, qkv_encoded *out,
                        qkv_tokenise_counts *counts) {
    block *b = qkv_zalloc(1, sizeof *b);
    if (!b) return QKV_FAILED;
    *counts = (qkv_tokenise_counts){0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < corpus->n && status == QKV_OK; i++) {
        if (!take || take[i]) b->rows[b->n++] = &corpus->rows[i];
        if (b->n == BLOCK) status = flush(tok, spec, b, out, counts);
    }
    if (status == QKV_OK && b->n) status = flush(tok, spec, b, out, counts);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < BLOCK; i++) qkv_encoding_free(&b->sides[side][i]);
    qkv_free(b);
    return status;
}
