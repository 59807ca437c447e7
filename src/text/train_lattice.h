/* The lattice of Unigram training: at every place of every distinct word, the pieces that begin
 * there.
 *
 * The suffix array that finds the seed pieces also knows every place where they stand, so the edges
 * are written once from it and then only thinned out as pieces are dropped. No later pass looks a
 * string up. */
#ifndef QKV_TEXT_TRAIN_LATTICE_H
#define QKV_TEXT_TRAIN_LATTICE_H

#include "text/train.h"

#define QKV_EDGE_BITS   5 /* of an edge: the piece's length in characters; the rest is the piece */
#define QKV_PIECE_CHARS ((1 << QKV_EDGE_BITS) - 1)
#define QKV_SEEDS_MAX   1000000
#define QKV_PIECE_UNKNOWN                                                                          \
    0 /* stands for characters outside the alphabet: probability 1, never counted */

typedef struct qkv_lattice_piece {
    uint32_t at;   /* one place where it stands */
    uint32_t len;  /* characters */
    double weight; /* characters of the text that it covers */
} qkv_lattice_piece;

typedef struct qkv_lattice {
    uint32_t *text; /* (n) character + 1 of each place; 0: outside the alphabet, or a word's end */
    uint32_t n;
    uint32_t *word;  /* (n_words + 1) first place of each; a word ends one place before the next */
    uint64_t *count; /* (n_words) */
    size_t n_words;
    uint32_t *first;          /* (n + 1) first edge of each place */
    uint32_t *edge;           /* piece << QKV_EDGE_BITS | length */
    qkv_lattice_piece *piece; /* unknown, the characters, then the others */
    size_t n_pieces, n_chars; /* characters are pieces 1 … n_chars */
} qkv_lattice;

/* Builds the lattice of all characters and of the most frequent substrings: those that stand in two
 * or more places with different continuations, and whole words seen twice; at most max_chars long.
 * `kind` (by character, may be NULL) keeps apart what should not be one piece: characters of
 * different kinds, except kind 0 and, not at the beginning, kind 255 which take any neighbour. */
qkv_status qkv_lattice_make(const qkv_symbols *symbols, int32_t first_char, size_t n_chars,
                            size_t max_chars, const uint8_t *kind, qkv_lattice *out);
void qkv_lattice_free(qkv_lattice *l);
/* Keeps the pieces with keep[i] (0 and the characters must be kept) and renumbers them in order. */
qkv_status qkv_lattice_thin(qkv_lattice *l, const bool *keep);

#endif
