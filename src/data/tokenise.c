/* Rows are encoded in blocks, each over all threads, and appended in order. */
#include "data/tokenise.h"
#include "base/mem.h"
#include "base/thread.h"

enum { BLOCK = 1024 };

typedef struct block {
    const qkv_row *rows[BLOCK];
    qkv_text texts[BLOCK], second[BLOCK];
    qkv_encoding sides[2][BLOCK];
    size_t n;
    const qkv_corpus *corpus;
    bool labelled;
} block;

static qkv_status encode_pair(const qkv_tokenizer *tok, const qkv_encode_options *options,
                              qkv_text text, qkv_text second, qkv_encoding *out) {
    qkv_encode_options o = *options;
    o.pair_at = text.len + 1;
    return qkv_tokenizer_encode(tok, text.data, text.len, second.data, second.len, &o, out);
}

qkv_status qkv_encode_rows(const qkv_tokenizer *tok, const qkv_text *texts, const qkv_text *second,
                           size_t n, const qkv_encode_options *options, qkv_encoding *out) {
    _Atomic bool failed = false;
    if (!second) return qkv_tokenizer_encode_batch(tok, texts, n, options, out);
    QKV_PARALLEL_FOR_UNEVEN
    for (size_t i = 0; i < n; i++)
        if (encode_pair(tok, options, texts[i], second[i], &out[i]) != QKV_OK) failed = true;
    /* Messages are kept per thread: once more here, for the message of the first that fails. */
    for (size_t i = 0; i < n && failed; i++)
        QKV_TRY(encode_pair(tok, options, texts[i], second[i], &out[i]));
    return QKV_OK;
}

/* Encodes one side of the block. */
static qkv_status encode_side(const qkv_tokenizer *tok, const qkv_tokenise_spec *spec, block *b,
                              int side) {
    const bool split = spec->too_long == QKV_TOO_LONG_SPLIT && spec->max_tokens > 0;
    const qkv_encode_options options = {
        .no_special = spec->no_special,
        .offsets = (spec->columns & QKV_COLUMNS_BY_PLACE) || (spec->columns && split),
        .max_tokens = split ? (size_t)INT32_MAX : (size_t)spec->max_tokens};
    const bool pairs = spec->sides == 1 && b->n > 0 && b->rows[0]->second.data;
    for (size_t i = 0; i < b->n; i++) {
        b->texts[i] = side ? b->rows[i]->second : b->rows[i]->text;
        b->second[i] = b->rows[i]->second;
    }
    return qkv_encode_rows(tok, b->texts, pairs ? b->second : NULL, b->n, &options, b->sides[side]);
}

/* Gives the example just added, tokens from … to − 1 of the row's text, its columns. */
static qkv_status add_columns(const qkv_tokenise_spec *spec, const qkv_row *row,
                              const qkv_encoding *e, int64_t from, int64_t to, qkv_encoded *out) {
    qkv_column_source s = {.text = row->text,
                           .words = row->words,
                           .e = e,
                           .from = from,
                           .to = to,
                           .trees = spec->trees,
                           .value = row->value,
                           .labels = {row->labels, (int64_t)row->n_labels},
                           .line = row->line};
    if (spec->sides == 1) s.second = row->second; /* two texts in one sequence */
    for (qkv_column c = 0; c < QKV_COLUMNS; c++) {
        if (!(spec->columns & qkv_column_bit(c))) continue;
        int64_t n;
        int32_t *cells = qkv_alloc((size_t)qkv_column_room(c, &s) * sizeof *cells);
        if (!cells) return QKV_FAILED;
        qkv_status status = qkv_column_make(c, &s, cells, &n);
        if (status == QKV_OK) status = qkv_encoded_put(out, c, cells, n);
        qkv_free(cells);
        QKV_TRY(status);
    }
    return QKV_OK;
}

const char *const qkv_too_long_names[] = {"cut", "split", "skip", NULL};

/* One text as several examples of at most max_tokens. */
static qkv_status add_pieces(const qkv_tokenise_spec *spec, const qkv_row *row,
                             const qkv_encoding *e, qkv_encoded *out) {
    for (int64_t at = 0, n = (int64_t)e->n, end; at < n; at = end) {
        end = n - at < spec->max_tokens ? n : at + spec->max_tokens;
        QKV_TRY(qkv_encoded_add(out, e->ids + at, end - at));
        QKV_TRY(add_columns(spec, row, e, at, end, out));
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
        if (empty || (cut && spec->too_long == QKV_TOO_LONG_SKIP)) {
            if (spec->left_out) spec->left_out[b->rows[i] - b->corpus->rows] = true;
            continue;
        }
        if (cut && spec->too_long == QKV_TOO_LONG_SPLIT) {
            QKV_TRY(add_pieces(spec, b->rows[i], &b->sides[0][i], out));
            continue;
        }
        for (int side = 0; side < spec->sides; side++)
            QKV_TRY((spec->join ? qkv_encoded_extend : qkv_encoded_add)(
                out, b->sides[side][i].ids, (int64_t)b->sides[side][i].n));
        const qkv_encoding *first = &b->sides[0][i];
        QKV_TRY(add_columns(spec, b->rows[i], first, 0, (int64_t)first->n, out));
        if (b->labelled) QKV_TRY(qkv_encoded_label(out, b->rows[i]->label));
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
    b->corpus = corpus;
    b->labelled = corpus->shape == QKV_CORPUS_LABELLED;
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
