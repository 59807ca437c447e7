/* Tokenizers: text to ids and back. Knows no tensors; useful alone.
 *
 * A tokenizer is a pipeline of table rows (normaliser → pre-tokenizer → model → post-processor, and
 * a decoder), read from or trained into data; the file's pipeline is run as the file says, never
 * guessed. Thread-safe once made: encoding and decoding do not change it.
 * Any bytes are accepted. */
#ifndef QKV_TEXT_TOKENIZER_H
#define QKV_TEXT_TOKENIZER_H

#include "base/buf.h"
#include "base/rng.h"

/* ---- reading and writing ---- */

/* Opening, saving, encoding, training: see qkv.h. */
/* From memory. */
qkv_status qkv_tokenizer_parse(const char *name, const char *data, size_t n, qkv_tokenizer **out);
/* Whole words with blanks between them: a word a line, by id. <blank>, <unk>, <s>, </s> and <pad>
 * among them are special. */
qkv_status qkv_tokenizer_of_words(const char *list, size_t len, qkv_tokenizer **out);
/* tokenizer.json that Hugging Face `tokenizers` loads and runs with the same ids. */
qkv_status qkv_tokenizer_json(const qkv_tokenizer *tok, qkv_buf *out);

/* ---- asking ---- */
bool qkv_tokenizer_id(const qkv_tokenizer *tok, const char *token, size_t len, int32_t *id);
/* NULL: no such id. */
const char *qkv_tokenizer_token(const qkv_tokenizer *tok, int32_t id, size_t *len);
/* Special roles, −1 when the tokenizer has none: pad, unk, bos, eos, mask, cls, sep. */
typedef enum qkv_special {
    QKV_TOK_PAD,
    QKV_TOK_UNK,
    QKV_TOK_BOS,
    QKV_TOK_EOS,
    QKV_TOK_MASK,
    QKV_TOK_CLS,
    QKV_TOK_SEP,
    QKV_TOK_SPECIALS
} qkv_special;
int32_t qkv_tokenizer_special(const qkv_tokenizer *tok, qkv_special role);

/* ---- pairs of texts ---- */
/* The post-processor joins them. Where a tokenizer has none for that, this gives it one, which its
 * file then has too: the mark of a separator, else that of an end, between the two, the second of
 * type 1. To be called before the tokenizer is used. */
qkv_status qkv_tokenizer_separate(qkv_tokenizer *tok);
/* Types (qkv_encoding.type) that the tokens of a pair may have: 1 + the largest. */
int32_t qkv_tokenizer_types(const qkv_tokenizer *tok);

/* ---- decoding ---- */
qkv_status qkv_tokenizer_decode(const qkv_tokenizer *tok, const int32_t *ids, size_t n,
                                bool keep_special, qkv_buf *out);
/* Streaming: feed one id at a time; appends only whole UTF-8 characters,
 * and the same bytes in all as one decode. */
typedef struct qkv_decode_stream qkv_decode_stream;
qkv_status qkv_decode_stream_new(const qkv_tokenizer *tok, bool keep_special,
                                 qkv_decode_stream **out);
qkv_status qkv_decode_stream_push(qkv_decode_stream *s, int32_t id, qkv_buf *out);
qkv_status qkv_decode_stream_end(qkv_decode_stream *s, qkv_buf *out); /* flushes */
void qkv_decode_stream_free(qkv_decode_stream *s);

/* Training and explaining are public as they are: see qkv.h. */

#endif
