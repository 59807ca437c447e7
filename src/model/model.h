/* The models: one Transformer (encoder, decoder, both) and the recurrent ones, all described by a
 * configuration.
 *
 * Building declares parameters only; qkv_model_allocate makes them. The functions below put a
 * forward pass on a tape; the same ones serve training, evaluation and decoding. */
#ifndef QKV_MODEL_MODEL_H
#define QKV_MODEL_MODEL_H

#include "base/utf8.h"
#include "model/config.h"
#include "nn/params.h"
#include "ops/ops.h"

/* Tokens of a batch: sequence after sequence, no padding. */
typedef struct qkv_tokens {
    qkv_layout layout;
    const int32_t *ids; /* R */
    qkv_tensor *table;  /* an encoder's: ids are rows of this one, instead of the embedding table;
                           NULL: of that */
    int64_t rows;       /* R */
    const int32_t *pos; /* R: position of each token in its sequence (first 0); NULL: counted from
                           the layout */
    const qkv_cells *column[QKV_COLUMNS]; /* per sequence; NULL: the batch has no such column */
} qkv_tokens;

typedef struct qkv_model qkv_model;
typedef struct qkv_cache
    qkv_cache; /* keys and values (or recurrent states) of what was decoded so far */

qkv_status qkv_model_build(const qkv_config *config,
                           qkv_model **out); /* declares; milliseconds for any size */
qkv_status qkv_model_allocate(qkv_model *m, bool for_training);
/* For inference, instead of allocating: maps a file of weights, in any format that qkv_weights_map
 * knows, and reads them where they lie. */
qkv_status qkv_model_open(qkv_model *m, const char *path);
/* The same for whoever binds the parameters to values of his own: they are bound. */
qkv_status qkv_model_opened(qkv_model *m);
/* Keeps what the parameters point into as long as the model, which frees it by `free`. */
void qkv_model_keep(qkv_model *m, void *what, void (*free)(void *what));
void qkv_model_initialise(qkv_model *m, uint64_t seed);
void qkv_model_free(qkv_model *m);

const qkv_config *qkv_model_config(const qkv_model *m);
/* Refuses a length beyond max_len where positions or attention end there. */
qkv_status qkv_model_may_read(const qkv_model *m, int64_t n);
/* Makes it the configuration's max_len from now on. */
qkv_status qkv_model_read_up_to(qkv_model *m, int64_t n);
qkv_params *qkv_model_params(qkv_model *m);
/* Packs the weights for use (qkv_params_pack); integers for translators only, which write many
 * texts side by side. */
qkv_status qkv_model_pack(qkv_model *m);

/* For derivatives of a model in use: the same where all that is quantized is reals again; what is
 * not it shares with m, which must live as long. */
qkv_status qkv_model_plain(const qkv_model *m, qkv_model **out);
bool qkv_model_is_quantized(const qkv_model *m);
/* The encoder's embedding table, (V, D). */
const qkv_tensor *qkv_model_embeddings(const qkv_model *m);

/* Encoder: (R, D). */
qkv_tensor *qkv_model_encode(qkv_tape *t, qkv_model *m, const qkv_tokens *src);
/* Decoder over target rows: (R, D). encoder_out/src: the encoder's output for encoder-decoders,
 * else NULL. cache: NULL when the whole sequence is given; else the new rows continue what the
 * cache holds. */
qkv_tensor *qkv_model_decode(qkv_tape *t, qkv_model *m, const qkv_tokens *tgt,
                             qkv_tensor *encoder_out, const qkv_tokens *src, qkv_cache *cache);
/* One vector per sequence (n, qkv_model_width): the encoder's rows (of a model without one: the
 * decoder's) pooled as the configuration says; sentence embeddings. */
int64_t qkv_model_width(const qkv_model *m);
/* The rows that are pooled: one per token (R, D). */
qkv_tensor *qkv_model_rows(qkv_tape *t, qkv_model *m, const qkv_tokens *src);
qkv_tensor *qkv_model_pooled(qkv_tape *t, qkv_model *m, const qkv_tokens *src);
/* Classifier: logits (n sequences, classes), the mean over those that vote,
 * each with its factor. Of a model that rates: (n, 1), numbers in deviations from their mean. */
qkv_tensor *qkv_model_classify(qkv_tape *t, qkv_model *m, const qkv_tokens *src);
/* Tagger: logits (n, classes) of n rows of the tokens. */
qkv_tensor *qkv_model_tag(qkv_tape *t, qkv_model *m, const qkv_tokens *src, const int32_t *rows,
                          int64_t n);
/* What either voter says by itself: the encoder, and (only where the configuration has them)
 * the n-grams. */
qkv_tensor *qkv_model_encoder_logits(qkv_tape *t, qkv_model *m, const qkv_tokens *src);
qkv_tensor *qkv_model_ngram_logits(qkv_tape *t, qkv_model *m, const qkv_tokens *src);
/* From which probability on a label is given, where a text may have several. */
void qkv_model_set_threshold(qkv_model *m, double threshold);
void qkv_model_set_votes(qkv_model *m, double encoder, double ngrams);

/* A text as the n-grams see it: its tokens, and the code points of which it is written, or none. */
typedef struct qkv_ngram_text {
    const int32_t *ids;
    int64_t n;
    qkv_cells chars;
} qkv_ngram_text;
/* The rows of the table in which a text's n-grams have their weights, each once: that of the mark,
 * then those of tokens (*tokens of them), then those of characters; returns how many. There is room
 * for qkv_ngram_room, some of which is only used on the way. */
int64_t qkv_ngram_room(const qkv_config *c, const qkv_ngram_text *text);
int64_t qkv_ngram_find(const qkv_config *c, const qkv_ngram_text *text, int32_t *rows,
                       int64_t *tokens);
/* How rare each row is; NULL where the model does not know that. */
const real *qkv_model_ngram_idf(const qkv_model *m);
/* The same, and how much each counts, which has as much room. */
int64_t qkv_ngram_rows(const qkv_config *c, const qkv_ngram_text *text, const real *idf,
                       int32_t *rows, real *counts);
real qkv_ngram_share(const qkv_config *c, bool chars); /* how much all of a kind count */
int64_t qkv_ngram_mark(const qkv_config *c); /* the row of the mark, which every text has */
/* Where an n-gram stands: tokens (or characters) [from, to) of the text, marks left out, and its
 * place in the list of rows. */
typedef struct qkv_ngram_place {
    int64_t row, from, to;
    bool chars;
    bool begins, ends; /* with the mark before the text, or behind it */
} qkv_ngram_place;
/* Visits every n-gram, as often as it stands in the text; rows as qkv_ngram_rows left them, with
 * all the room behind. */
void qkv_ngram_places(const qkv_config *c, const qkv_ngram_text *text, const int32_t *rows,
                      void (*visit)(void *user, const qkv_ngram_place *place), void *user);
/* The weights of a row of the table, one per class. */
void qkv_model_ngram_weights(const qkv_model *m, int64_t row, real *out);

/* Cross-entropy of the vocabulary head (lm, mlm, translate) on hidden states x. */
qkv_tensor *qkv_model_vocab_loss(qkv_tape *t, qkv_model *m, qkv_tensor *x,
                                 const qkv_xent_spec *spec);
/* Logits (R, V) for decoding: x holds just the rows wanted. */
qkv_tensor *qkv_model_vocab_logits(qkv_tape *t, qkv_model *m, qkv_tensor *x);

/* The head's rows of a few tokens, copied together: a product with them costs their share of one
 * with all, and a token's logit has the same bits. */
typedef struct qkv_vocab_part {
    qkv_tensor weight, bias;
    qkv_weight narrow; /* what weight.weight points to, where the head is quantized */
    void *memory;
    size_t room; /* bytes of it */
} qkv_vocab_part;

/* Refills `part` (zeros at first) with the rows of n tokens; it must not move afterwards. */
qkv_status qkv_vocab_part_fill(qkv_vocab_part *part, const qkv_model *m, const int32_t *ids,
                               int64_t n);
void qkv_vocab_part_free(qkv_vocab_part *part);
/* (R, n) */
qkv_tensor *qkv_model_part_logits(qkv_tape *t, qkv_model *m, qkv_tensor *x, qkv_vocab_part *part);

/* Multiply-adds of one forward pass over these lengths (causal attention counted half), of which
 * `guessed` rows are multiplied by the vocabulary's (0: all): the useful work of a batch. */
double qkv_model_macs(const qkv_model *m, const qkv_layout *src, const qkv_layout *tgt,
                      int64_t guessed);

#endif
