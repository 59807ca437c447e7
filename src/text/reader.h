/* The readers of tokenizer files. Each fills a new tokenizer from memory, finished and ready; the
 * caller frees it on failure. */
#ifndef QKV_TEXT_READER_H
#define QKV_TEXT_READER_H

#include "text/models.h"

#include <string.h>

qkv_status qkv_read_tokenizer_json(qkv_tokenizer *tok, const char *name, const char *data,
                                   size_t n);
qkv_status qkv_read_sentencepiece(qkv_tokenizer *tok, const char *name, const char *data, size_t n);
qkv_status qkv_read_gguf(qkv_tokenizer *tok, const char *name, const char *data, size_t n);
qkv_status qkv_read_tiktoken(qkv_tokenizer *tok, const char *name, const char *data, size_t n);
/* llama2.c's tokenizer.bin, and whether a file is one. */
bool qkv_is_llama2c_tokenizer(const char *data, size_t n);
qkv_status qkv_read_llama2c(qkv_tokenizer *tok, const char *name, const char *data, size_t n);
qkv_status qkv_read_vocab_txt(qkv_tokenizer *tok, const char *name, const char *data, size_t n);
/* GPT-2's pair of files. */
qkv_status qkv_read_vocab_json(qkv_tokenizer *tok, const char *name, const char *vocab, size_t n,
                               const char *merges, size_t n_merges);

/* ---- what several of them need ---- */

static inline bool qkv_text_is(qkv_text t, const char *word) {
    return t.len == strlen(word) && !memcmp(t.data, word, t.len);
}

/* Pieces as SentencePiece's and GGUF's files give them. */
typedef struct qkv_pieces {
    qkv_text *text;
    float *score;
    uint8_t *type; /* a qkv_piece_type each */
    size_t n;
    bool unigram, byte_fallback;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, whitespace_as_suffix;
    const char *charsmap; /* NULL: none */
    size_t charsmap_len;
    int32_t unk, bos, eos, pad; /* −1: none */
    qkv_text unk_surface;       /* see qkv_tokenizer */
    bool add_bos, add_eos;
} qkv_pieces;

/* A tokenizer with SentencePiece's behaviour from its pieces. */
qkv_status qkv_pieces_build(qkv_tokenizer *tok, const qkv_pieces *p);

/* Every way to put a token together from two others, ranked by rank[result]: what a list of merges
 * states for vocabularies that have none. Ranks must be distinct per token or equal on purpose.
 * Frees nothing; *merges and *ranks are the caller's. */
qkv_status qkv_merges_from_tokens(const qkv_text *tokens, const uint32_t *rank, size_t n,
                                  qkv_merge **merges, uint32_t **ranks, size_t *n_merges);

/* WordPiece with BERT's pipeline. */
qkv_status qkv_build_bert(qkv_tokenizer *tok, const qkv_text *tokens, size_t n, bool lower);
/* Byte-level BPE on a vocabulary that is in place; merges as lines "a b"; regexes, which cut one
 * after another, end with NULL; NULL: GPT-2's. ignore_merges: a word that is a token is that token.
 * The caller finishes it. */
qkv_status qkv_build_gpt2(qkv_tokenizer *tok, const char *merges, size_t n,
                          const char *const *regexes, bool ignore_merges);
qkv_status qkv_set_byte_level(qkv_tokenizer *tok, const char *const *regexes);

/* What a name that GGUF files have for a way to split texts stands for. */
typedef struct qkv_pre_facts {
    const char *const *steps; /* the expressions */
    bool whole;               /* a word that is a token is that token, whatever merges would say */
    bool bos;                 /* texts begin with the mark, where the file does not say */
} qkv_pre_facts;
qkv_status qkv_pre_named(qkv_text name, qkv_pre_facts *out);

/* Adds a special token. */
qkv_status qkv_add_special(qkv_tokenizer *tok, const char *text, size_t len, int32_t id);
/* "bos A eos": the post-processor that adds these ids, −1: none. */
qkv_status qkv_set_template(qkv_tokenizer *tok, int32_t bos, int32_t eos);

#endif
