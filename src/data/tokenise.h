/* From rows of text to ids, over all threads. */
#ifndef QKV_DATA_TOKENISE_H
#define QKV_DATA_TOKENISE_H

#include "data/corpus.h"
#include "data/columns.h"
#include "data/encoded.h"

/* What becomes of a side over max_tokens. */
typedef enum qkv_too_long {
    QKV_TOO_LONG_CUT,
    QKV_TOO_LONG_SPLIT, /* into several examples of the same label; one side only */
    QKV_TOO_LONG_SKIP
} qkv_too_long;
extern const char *const qkv_too_long_names[]; /* by qkv_too_long, NULL at the end */

typedef struct qkv_tokenise_spec {
    int sides;          /* 1: the text (with a second one: as a pair); 2: source and target */
    bool no_special;    /* leave out what the tokenizer adds around a text */
    bool join;          /* all rows become one stream */
    int64_t max_tokens; /* a longer side is cut here; 0: no limit */
    qkv_too_long too_long;
    unsigned columns;       /* that every example keeps beside its ids: bits of qkv_column */
    const qkv_trees *trees; /* of the texts, for columns that are made of them; or NULL */
    bool *left_out;         /* by row of the corpus, set where it gave no example; or NULL */
} qkv_tokenise_spec;

typedef struct qkv_tokenise_counts {
    int64_t n_cut;   /* examples with a side that was too long, whatever became of them */
    int64_t n_empty; /* examples left out because a side has no tokens */
    bool kept;       /* nothing was tokenised: the ids lay in a file already */
} qkv_tokenise_counts;

/* Texts, or where `second` is not NULL pairs of texts: the one way from either to ids, in training
 * and in use, over all threads. Offsets are of a text in which a character stands between the two. */
qkv_status qkv_encode_rows(const qkv_tokenizer *tok, const qkv_text *texts, const qkv_text *second,
                           size_t n, const qkv_encode_options *options, qkv_encoding *out);

/* Appends the rows with `take[i]` (NULL: all) to *out, which was initialised with as many sides. */
qkv_status qkv_tokenise(const qkv_tokenizer *tok, const qkv_corpus *corpus, const bool *take,
                        const qkv_tokenise_spec *spec, qkv_encoded *out,
                        qkv_tokenise_counts *counts);

#endif
