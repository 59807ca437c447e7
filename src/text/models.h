/* The four models' data, for the files that build, write or explain them. */
#ifndef QKV_TEXT_MODELS_H
#define QKV_TEXT_MODELS_H

#include "text/pipeline.h"

/* A merge in the hash table: pair of ids → rank and result. left −1: free slot. */
typedef struct qkv_merge_slot {
    int32_t left, right, result;
    uint32_t rank;
} qkv_merge_slot;

typedef struct qkv_bpe {
    qkv_merge_slot *slots;
    size_t mask;
    qkv_merge *merges; /* in order of rank, for writing */
    uint32_t *ranks;   /* NULL: a merge's rank is its place */
    size_t n_merges;
    int32_t byte_id[256];  /* byte-level: the token of one byte, −1: none. Else: the token of one
                              ASCII character */
    int32_t fallback[256]; /* "<0xNN>", −1: none */
    qkv_vocab whole;       /* byte-level with ignore_merges: tokens as bytes */
    qkv_bpe_options options;
    int32_t unk;
    bool word_start; /* ▁ never follows another character inside a token: a word may be cut before
                        it */
    qkv_trie frozen; /* user-defined symbols, never merged; empty trie: none */
    uint8_t *unused; /* by id, 1: a token that is only a step to others, taken apart again at the
                        end; NULL: none */
} qkv_bpe;

typedef struct qkv_unigram {
    qkv_trie trie;
    double *scores; /* by id */
    size_t n;
    int32_t unk;
    double unk_score;
    bool byte_fallback;
    bool single; /* sums in single precision, as SentencePiece does */
    int32_t fallback[256];
} qkv_unigram;

typedef struct qkv_wordpiece {
    qkv_trie first, rest; /* word beginnings; continuations without their prefix */
    int32_t unk;
    char *unk_text, *prefix;
    size_t max_chars;
} qkv_wordpiece;

typedef struct qkv_wordlevel {
    int32_t unk;
    char *unk_text;
} qkv_wordlevel;

static inline size_t qkv_bpe_slot(const qkv_bpe *m, int32_t left, int32_t right) {
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (size_t)((key * 0x9E3779B97F4A7C15u) >> 32) & m->mask;
}

/* The merge of a pair, or NULL. */
static inline const qkv_merge_slot *qkv_bpe_find(const qkv_bpe *m, int32_t left, int32_t right) {
    for (size_t s = qkv_bpe_slot(m, left, right);; s = (s + 1) & m->mask) {
        const qkv_merge_slot *slot = &m->slots[s];
        if (slot->left == left && slot->right == right) return slot;
        if (slot->left < 0) return NULL;
    }
}

/* ---- shared by the models and the readers ---- */

/* Puts the tokens of a "vocab" object; ids as given there. */
qkv_status qkv_vocab_parse(qkv_tokenizer *tok, qkv_json_at json);
/* The same from the object itself. */
qkv_status qkv_vocab_put_object(qkv_tokenizer *tok, qkv_json_at vocab);
void qkv_vocab_write(const qkv_tokenizer *tok, qkv_json_out *json);
/* The ids of "<0x00>" … "<0xFF>", −1 where there is none. */
void qkv_byte_fallback(const qkv_vocab *v, int32_t out[256]);

/* As qkv_tokenizer_set_bpe with a rank for each merge; equal ranks are merged from left to right.
 */
qkv_status qkv_tokenizer_set_ranked_bpe(qkv_tokenizer *tok, const qkv_text *tokens, size_t n,
                                        const qkv_merge *merges, const uint32_t *ranks,
                                        size_t n_merges, const qkv_bpe_options *options);
qkv_status qkv_bpe_encode(const qkv_tokenizer *tok, qkv_scratch *s, const char *word, size_t n,
                          uint32_t at, qkv_encoding *out);
/* What a piece of a SentencePiece model is for; the numbers are the file's. */
typedef enum qkv_piece_type {
    QKV_PIECE_NORMAL = 1,
    QKV_PIECE_UNKNOWN,
    QKV_PIECE_CONTROL,
    QKV_PIECE_USER,
    QKV_PIECE_UNUSED,
    QKV_PIECE_BYTE
} qkv_piece_type;
/* As qkv_tokenizer_set_unigram with SentencePiece's sums; a qkv_piece_type each says which tokens
 * are matched in texts: the normal and the user's. */
qkv_status qkv_tokenizer_set_sentencepiece_unigram(qkv_tokenizer *tok, const qkv_text *tokens,
                                                   const double *scores, const uint8_t *types,
                                                   size_t n, int32_t unk, bool byte_fallback);

extern const qkv_tokenizer_model qkv_model_bpe, qkv_model_unigram, qkv_model_wordpiece,
    qkv_model_wordlevel;

#endif
