/* Training a tokenizer, inside: text → counted words → symbols → pieces.
 *
 * Every trainer works on distinct words with counts, never on the text itself, so its cost follows
 * the vocabulary of the text and not its length. A word is UTF-8 in the model's own alphabet (for
 * byte-level models each byte already stands as its printable character), and no piece ever crosses
 * a word's border. Results are functions of the counts alone: the same for any order of lines and
 * any number of threads. */
#ifndef QKV_TEXT_TRAIN_H
#define QKV_TEXT_TRAIN_H

#include "base/arena.h"
#include "text/pipeline.h"

/* ---- distinct strings with counts (train_words.c) ---- */

typedef struct qkv_word {
    const char *text;
    uint32_t len, hash;
    uint64_t count;
} qkv_word;

typedef struct qkv_words {
    qkv_word *at;
    size_t n, cap;
    uint32_t *slots; /* open addressing: index + 1 into `at`, 0 = free */
    size_t n_slots;  /* a power of two, more than 4/3 n */
    qkv_arena text;  /* blocks that hold the bytes of the words that were copied */
    char *room;      /* the free rest of the last block */
    size_t n_room;
} qkv_words;

void qkv_words_init(qkv_words *w);
void qkv_words_free(qkv_words *w);
void qkv_words_clear(qkv_words *w); /* keeps the memory */
uint32_t qkv_words_hash(const char *text, size_t len);
/* Adds `count` to a word, entering it if new (`copy`: its bytes are copied, else they must outlive
 * the table). *index may be NULL. */
qkv_status qkv_words_add(qkv_words *w, const char *text, size_t len, uint64_t count, bool copy,
                         uint32_t *index);
bool qkv_words_find(const qkv_words *w, const char *text, size_t len, uint32_t *index);
/* Orders by count (large first), then bytes: an order that the content alone decides. The slots are
 * given up: the table can be read but no longer searched or added to. */
void qkv_words_sort(qkv_words *w);

/* ---- counting the words of a text (train_count.c) ---- */

typedef void (*qkv_word_sink)(void *user, const char *word, size_t len);
/* Cuts a text into words; called from several threads at once. */
typedef struct qkv_splitter {
    qkv_status (*split)(const void *how, const char *text, size_t len, qkv_word_sink sink,
                        void *user);
    const void *how;
} qkv_splitter;

/* Longer words are counted in parts of at most this many bytes, cut between characters: scripts
 * without spaces give words as long as their sentences, and only the pairs across a cut are missed.
 */
#define QKV_TRAIN_WORD_BYTES 4096
/* Memory for distinct words. When there is more, the rarest are dropped. */
typedef struct qkv_words_limit {
    size_t words, bytes;
} qkv_words_limit;
#define QKV_TRAIN_LIMIT ((qkv_words_limit){(size_t)8 << 20, (size_t)512 << 20})

/* Counts the words of all texts of a source. *lines: how many were used. */
qkv_status qkv_words_count(qkv_words *words, const qkv_tok_train *spec, qkv_splitter splitter,
                           qkv_words_limit limit, qkv_text_source next, void *user,
                           uint64_t *lines);

/* ---- words as symbols (train_alphabet.c) ---- */

/* How a word's first, inner and last characters become tokens. */
typedef struct qkv_word_marks {
    const char *continuing; /* before every character but the first ("##"); NULL: none */
    const char *end;        /* after the last character ("</w>"); NULL: none */
} qkv_word_marks;

typedef struct qkv_alphabet_rule {
    qkv_word_marks marks;
    double coverage; /* share of all characters of the text that are kept, rarest dropped first */
    size_t max;      /* characters kept at most */
    size_t room;     /* entries in the vocabulary that they may take, marked forms included */
    const char *required; /* UTF-8: in whether seen or not; NULL: none */
} qkv_alphabet_rule;

#define QKV_NO_SYMBOL (-1) /* a character outside the alphabet: no piece contains it */

/* The words as runs of symbols; symbols are indices into a vocabulary. */
typedef struct qkv_symbols {
    int32_t *at;
    size_t n;
    size_t *start; /* (n_words + 1) */
    uint64_t *count;
    size_t n_words;
} qkv_symbols;

/* What a trainer makes. Token i is tokens.at[i]; the first ids are the special tokens, then
 * characters. */
typedef struct qkv_trained {
    qkv_words tokens; /* counts: how often the token stands in the text when training ended (0:
                         special) */
    QKV_VEC(double) scores;    /* Unigram: log-probabilities, one per token */
    QKV_VEC(qkv_merge) merges; /* BPE, by rank */
    bool capped;               /* the text did not support the size asked for */
} qkv_trained;

void qkv_trained_free(qkv_trained *t);

/* Enters the characters of the words into `vocab` (after what is there; in order of code points,
 * marked forms after all plain ones) and writes the words as symbols. */
qkv_status qkv_symbols_make(const qkv_words *words, const qkv_alphabet_rule *rule, qkv_words *vocab,
                            qkv_symbols *out);
void qkv_symbols_free(qkv_symbols *s);

/* ---- trainers ---- */

/* Merges pairs of neighbours until `vocab` has `size` entries or no pair is seen `min_count` times:
 * always the most frequent pair, or, by likelihood, the one that makes the text likeliest. */
typedef struct qkv_merge_rule {
    size_t size;
    uint64_t min_count;
    size_t max_piece;       /* characters of a token; 0: no limit */
    const char *continuing; /* left out of the right half when two tokens join; NULL: none */
    bool likelihood;
    void (*progress)(void *user, const char *stage, double share);
    void *user;
} qkv_merge_rule;
qkv_status qkv_train_merges(qkv_symbols *symbols, const qkv_merge_rule *rule, qkv_trained *out);

/* Learns pieces and their log-probabilities; symbols index `alphabet`, whose characters all stay.
 * What is in out->tokens already (special tokens) keeps its ids and gets the score 0. */
typedef struct qkv_unigram_rule {
    size_t size;      /* of out->tokens in the end */
    size_t max_chars; /* of a piece; 0: 16 */
    bool by_script;   /* no piece mixes letters of two scripts, or letters and other characters */
    void (*progress)(void *user, const char *stage, double share);
    void *user;
} qkv_unigram_rule;
qkv_status qkv_train_unigram(const qkv_words *alphabet, const qkv_symbols *symbols,
                             const qkv_unigram_rule *rule, qkv_trained *out);

#endif
