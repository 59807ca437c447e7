/* qkv: Transformers in C.  The one public header; valid C11 and C++.
 *
 *     qkv_text_model *m;
 *     if (qkv_text_model_open("my-model", &m) != QKV_OK) {
 *         fprintf(stderr, "%s\n", qkv_error());
 *         return 1;
 *     }
 *     qkv_text line = {"what a lovely film", 18};
 *     float p[2];                                   // one probability a class
 *     if (qkv_classify(m, &line, 1, p) == QKV_OK)
 *         printf("%s %.3f\n", qkv_text_model_label(m, 0), p[0]);
 *     qkv_text_model_close(m);
 *
 * Every function that can fail returns a qkv_status; the sentence that says what, where, why and
 * how to mend it is qkv_error(), kept per thread until that thread's next failing call. */
#ifndef QKV_H
#define QKV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QKV_API __attribute__((visibility("default")))
#else
#define QKV_API
#endif

/* One row per outcome: name, exit code of the command, what it means. */
#define QKV_STATUS_TABLE(X)                                                                        \
    X(OK, 0, "ok")                                                                                 \
    X(FAILED, 1, "the system refused: memory, disk, a file that is not there")                     \
    X(USAGE, 2, "the caller asked for something that makes no sense")                              \
    X(BAD_FILE, 3, "a file's content is not what it should be")                                    \
    X(NUMERIC, 4, "numbers went out of range: NaN, infinity, divergence")                          \
    X(INTERRUPTED, 130, "stopped on request, after saving")

typedef enum qkv_status {
#define QKV_STATUS_ENUM(name, exit_code, text) QKV_##name,
    QKV_STATUS_TABLE(QKV_STATUS_ENUM)
#undef QKV_STATUS_ENUM
} qkv_status;

/* The message of this thread's last failure; never NULL. */
QKV_API const char *qkv_error(void);

/* "0.1.0" */
QKV_API const char *qkv_version(void);

/* Threads that calls from this thread use; 0 asks for every core this process may run on. They are
 * OpenMP's. Where other programs are busy too, start yours with GOMP_SPINCOUNT=3000 in its
 * environment (as the command does): else those that wait spin, on cores that others need. */
QKV_API void qkv_threads_set(int n);
QKV_API int qkv_threads(void);

/* ---- text that the library hands out ----
 * Functions with a `char **text` argument give back one NUL-terminated text, freed by
 * qkv_text_free; NULL after a failure. */
QKV_API void qkv_text_free(char *text);

/* ---- tokenizers: text to ids and back ---- */

typedef struct qkv_tokenizer qkv_tokenizer;

/* A tokenizer.json, a SentencePiece .model, vocab.txt, a folder with any of these (or vocab.json +
 * merges.txt), a tiktoken rank file, a GGUF file, llama2.c's tokenizer.bin: recognised from the
 * content. Wrong files are named as what they are. */
QKV_API qkv_status qkv_tokenizer_open(const char *path, qkv_tokenizer **out);
QKV_API void qkv_tokenizer_free(qkv_tokenizer *tok);
/* Writes a tokenizer.json that Hugging Face `tokenizers` loads and runs with the same ids. */
QKV_API qkv_status qkv_tokenizer_save(const qkv_tokenizer *tok, const char *path);
QKV_API size_t qkv_tokenizer_size(const qkv_tokenizer *tok); /* ids are 0 … size − 1 */

typedef struct qkv_encode_options {
    bool no_special;       /* do not add the post-processor's tokens */
    bool offsets;          /* fill begin, end: bytes, */
    bool characters;       /* or characters (code points; a malformed byte is one) */
    double dropout;        /* BPE: skip a merge with this probability; Unigram: sample, at this
                              inverse temperature */
    uint64_t seed, stream; /* of those choices */
    size_t max_tokens;     /* the text is cut there; 0: where the tokenizer's file says,
                              if it does */
    bool pad;              /* fill up to one length: the file's,
                              or else the longest text's of the batch */
    size_t pad_to;         /* fill up to this length; 0: as `pad` says */
} qkv_encode_options;

typedef struct qkv_encoding {
    int32_t *ids;
    uint32_t *begin, *end; /* in the original text; NULL unless asked for */
    uint8_t *type;         /* segment: 0 or 1; NULL without a pair */
    uint8_t *mask;         /* 1: a token, 0: padding; NULL unless padding was asked for */
    size_t n, cap;
    bool cut; /* the limit applied */
} qkv_encoding;

QKV_API void qkv_encoding_free(qkv_encoding *e);
/* Replaces what is in *out (zeros at first; its memory is reused). pair and options may be NULL.
 * Any bytes are text. */
QKV_API qkv_status qkv_tokenizer_encode(const qkv_tokenizer *tok, const char *text, size_t len,
                                        const char *pair, size_t pair_len,
                                        const qkv_encode_options *options, qkv_encoding *out);
typedef struct qkv_text {
    const char *data;
    size_t len;
} qkv_text;
/* Many texts over all threads; out[i] for texts[i]. */
QKV_API qkv_status qkv_tokenizer_encode_batch(const qkv_tokenizer *tok, const qkv_text *texts,
                                              size_t n, const qkv_encode_options *options,
                                              qkv_encoding *out);
/* The text of ids, special tokens left out unless kept;
 * its length (it may hold NUL bytes) in *len unless NULL. */
QKV_API qkv_status qkv_tokenizer_text(const qkv_tokenizer *tok, const int32_t *ids, size_t n,
                                      bool keep_special, char **text, size_t *len);

typedef enum qkv_tok_kind {
    QKV_TOK_BPE,
    QKV_TOK_UNIGRAM,
    QKV_TOK_WORDPIECE,
    QKV_TOK_CHAR, /* one token a character, blanks and line ends included; `split` is not asked */
    QKV_TOK_WORD,
    QKV_TOK_KINDS
} qkv_tok_kind;

/* How a text is cut into words, which no piece crosses. */
typedef enum qkv_tok_split {
    QKV_SPLIT_BYTE_LEVEL,  /* GPT-2's words of bytes: nothing is unknown, decoding is exact */
    QKV_SPLIT_METASPACE,   /* at blanks, which become ▁ before the word; suits all scripts */
    QKV_SPLIT_END_OF_WORD, /* at white space; a word's last piece ends in </w> (BPE) */
    QKV_SPLIT_BERT,        /* at white space and punctuation; pieces inside a word begin with ## */
    QKV_SPLITS
} qkv_tok_split;

/* What to train. Zeros are sensible defaults but for vocab_size. */
typedef struct qkv_tok_train {
    qkv_tok_kind kind;
    size_t vocab_size; /* larger than the text supports: *capped is set, no error */
    qkv_tok_split split;
    const char *const *specials; /* e.g. "<pad>", "<unk>", "<s>", "</s>"; get the first ids */
    size_t n_specials;           /* an unknown token is added where the kind needs one
                                    and none is here */
    bool lowercase;
    bool by_count;       /* WordPiece: join the most frequent pair, as BPE does,
                            not the likeliest */
    size_t min_count;    /* a pair or word seen less often is not joined or kept; 0: 2 (words: 1) */
    double coverage;     /* share of all characters that get a token; 0: 0.9995 (Unigram), else 1 */
    size_t max_alphabet; /* most characters that get a token; 0: as many as fit */
    size_t max_piece;    /* characters in a piece; 0: 16 (Unigram), else no limit */
    size_t sample_lines; /* train on so many lines, drawn by `seed`; 0: on all */
    uint64_t seed;
    void (*progress)(void *user, const char *stage, double share); /* may be NULL */
    void *user;
    bool *capped; /* out, may be NULL */
} qkv_tok_train;

/* Gives the next line of the text (valid until the next call), or false at the end. Line ends are
 * the source's to keep (they are characters like others) or to leave out.
 * Called from one thread. */
typedef bool (*qkv_text_source)(void *user, const char **text, size_t *len);
/* Trains on all threads; the result is the same for any number of them. */
QKV_API qkv_status qkv_tokenizer_train(const qkv_tok_train *spec, qkv_text_source next, void *user,
                                       qkv_tokenizer **out);
/* What the tokenizer is, and how it does on the texts that `next` gives (NULL: none): tokens a
 * word, bytes a token, unknowns. */
QKV_API qkv_status qkv_tokenizer_info(const qkv_tokenizer *tok, qkv_text_source next, void *user,
                                      bool json, char **text);
/* How one text becomes tokens, step by step, in words:
 * the merges, the lattice, the longest matches. */
QKV_API qkv_status qkv_tokenizer_explain(const qkv_tokenizer *tok, const char *text, size_t len,
                                         char **out);

/* ---- this machine ---- */

/* What this build and machine have, measured peak included (about a second),
 * as a table or a JSON object. */
QKV_API qkv_status qkv_doctor(bool json, char **text);

/* ---- models, described ---- */

/* How a result is written. */
typedef enum qkv_show { QKV_SHOW_TABLE, QKV_SHOW_JSON, QKV_SHOW_SVG, QKV_SHOW_HTML } qkv_show;

typedef struct qkv_describe_request {
    const char *model;      /* a model folder or a config.json; NULL: none */
    const char *preset;     /* NULL: none */
    const char *const *set; /* "key=value" …, NULL at the end; or NULL */
    int64_t batch, length;  /* of the activations shown; 0: 32, and the longest sequence */
} qkv_describe_request;

/* Shapes, parameters, work and memory of a configuration, layer by layer; makes no weights. */
QKV_API qkv_status qkv_describe(const qkv_describe_request *request, qkv_show how, char **text);
/* Every key of a model's configuration: default, what is allowed, what it means. */
QKV_API qkv_status qkv_config_keys(bool json, char **text);

/* The tables of keys ("key=value"), for programs that offer them as options. */
typedef enum qkv_key_table { QKV_KEYS_MODEL, QKV_KEYS_TRAINING } qkv_key_table;
typedef enum qkv_key_kind {
    QKV_KEY_INT,
    QKV_KEY_REAL,
    QKV_KEY_BOOL,
    QKV_KEY_CHOICE,
    QKV_KEY_TEXT
} qkv_key_kind;
typedef struct qkv_key {
    const char *name, *help;
    qkv_key_kind kind;
    double standard;            /* the default; of a bool 0 or 1, of a choice its place */
    double min, max;            /* INT, REAL */
    const char *const *choices; /* CHOICE: NULL at the end */
    const char *text;           /* TEXT: the default */
} qkv_key;
/* Row i of a table; false past its end. */
QKV_API bool qkv_key_row(qkv_key_table table, size_t i, qkv_key *out);
/* Row i of the table of presets; false past its end. */
QKV_API bool qkv_preset_row(size_t i, const char **name, const char **summary,
                            const char **assignments);

/* ---- training ---- */

typedef enum qkv_progress_kind {
    QKV_PROGRESS_NOTE,  /* `text` says something */
    QKV_PROGRESS_STEP,  /* after each step: means since the last validation */
    QKV_PROGRESS_VALID, /* after each validation */
    QKV_PROGRESS_ALIVE, /* nothing new; a chance to stop */
    QKV_PROGRESS_PHASE  /* `text` names what begins or goes on ("reading", "tokenizer: merging",
                           "n-grams", "steps", "validation", "last fit"), `share` how much of it
                           is done */
} qkv_progress_kind;

typedef struct qkv_progress {
    qkv_progress_kind kind;
    int64_t step, steps, epoch;
    double loss, accuracy; /* a mean over targets; a share of them */
    double lr, norm;       /* of the step; the gradient's norm before clipping */
    double tokens_per_s, gflops, seconds_left;
    double step_loss;  /* STEP: the mean over the targets of this step alone */
    double share;      /* STEP: of this machine's peak, measured at the start; PHASE: of the
                              phase; 0: unknown */
    double train_loss; /* VALID: the mean over the steps since the last one;
                              NaN: there were none */
    double seconds;    /* VALID: since the run began or was resumed */
    bool best;         /* VALID: the best so far */
    const char *text;  /* NOTE, PHASE: valid during the call */
} qkv_progress;

/* A row of training data given in memory; what a task does not use stays zero. */
typedef struct qkv_train_row {
    qkv_text label;  /* classify */
    qkv_text text;   /* valid UTF-8; translate: the source */
    qkv_text second; /* translate: the target; classify: the second text of a pair */
} qkv_train_row;

/* Row i of the table of tasks that can be trained; false past its end. */
QKV_API bool qkv_task_row(size_t i, const char **name, const char **summary);
/* Name i of the forms of data files, values of the key "format"; false past the last. */
QKV_API bool qkv_format_row(size_t i, const char **name);

typedef struct qkv_train_request {
    const char *task;          /* the name of a row: "classify", "translate", "lm", "mlm" */
    const char *const *train;  /* files, NULL at the end */
    const qkv_train_row *rows; /* instead of files: read during the call, and the caller's */
    size_t n_rows;
    const char *const *valid; /* files to validate on; NULL: some of the training
                                  data is held out */
    const char *out;          /* folder of the run and of the model;
                                  a run that is there is resumed */
    const char *preset;       /* NULL: chosen from the size of the data */
    const char *config;       /* a JSON file of keys (config.json, run.json) that `set` comes on
                                  top of; or NULL */
    const char *init;         /* a model folder to start from: its sizes, tokenizer and fitting
                                  weights; or NULL */
    const char *const *set;   /* "key=value" of the model's and the training's settings; NULL at
                                  the end; or NULL */
    bool overwrite;           /* begin anew where there is a run */
    int columns;              /* of the terminal that shows the notes; 0: 80 */
    bool (*progress)(void *user, const qkv_progress *p); /* may be NULL; false asks to stop */
    void *user;
} qkv_train_request;

/* Trains a model and leaves its folder (config.json, model.safetensors, tokenizer.json).
 * QKV_INTERRUPTED when progress asked to stop: everything is saved,
 * and the same request goes on from there. */
QKV_API qkv_status qkv_train(const qkv_train_request *request);
/* Which of the processes that a launcher of MPI started this is, once it has trained: 0 is the one
 * that wrote. Without a launcher, or in a build without MPI: 0. */
QKV_API int qkv_train_rank(void);
/* Instead of training: tries rates from small to large on this data and model, and says which to
 * use, as a table and a chart. Writes nothing. */
QKV_API qkv_status qkv_find_lr(const qkv_train_request *request, char **text);

/* Writes made-up data to a file, the same rows for the same seed: "reviews" (label<TAB>text),
 * "numbers" (words<TAB>digits). Rows that are held out are never among those to train on,
 * whatever the seeds. */
QKV_API qkv_status qkv_demo_write(const char *name, uint64_t seed, size_t rows, bool held_out,
                                  const char *path);

/* ---- other programs' weights ---- */

typedef struct qkv_import_request {
    const char *source;    /* a llama2.c checkpoint, a CTranslate2 folder;
                              recognised from the content */
    const char *tokenizer; /* NULL: the vocabulary that comes with the weights */
    const char *out;       /* the model folder to make */
    bool overwrite;        /* replace a model that is there */
} qkv_import_request;

/* Makes a model folder; *text says in a line what was read. */
QKV_API qkv_status qkv_import(const qkv_import_request *request, char **text);
/* Row i of the table of formats; false past its end. */
QKV_API bool qkv_import_row(size_t i, const char **name, const char **summary);

/* ---- models, used ---- */

/* A model folder, opened: configuration, weights, tokenizer, labels. */
typedef struct qkv_text_model qkv_text_model;

QKV_API qkv_status qkv_text_model_open(const char *folder, qkv_text_model **out);
QKV_API void qkv_text_model_close(qkv_text_model *m);
/* Its task: "classify", … */
QKV_API const char *qkv_text_model_task(const qkv_text_model *m);
/* A classifier's classes, in the order of the probabilities below; NULL past the end. */
QKV_API const char *qkv_text_model_label(const qkv_text_model *m, size_t i);
/* How many of the texts given to qkv_classify, qkv_embed and the like so far were longer than the
 * model reads, and were cut. */
QKV_API size_t qkv_text_model_cut(const qkv_text_model *m);
/* For a model with structural positions: the dependency trees of texts to come, from a CoNLL-U
 * file. A text is found by what it says. May be called for several files. */
QKV_API qkv_status qkv_text_model_read_trees(qkv_text_model *m, const char *path);
/* probabilities (n rows of as many as there are labels) of each class for each text. May be called
 * from several threads with one model. */
QKV_API qkv_status qkv_classify(const qkv_text_model *m, const qkv_text *texts, size_t n,
                                float *probabilities);

/* ---- translation ---- */

/* How hypotheses of different lengths compare: the log-probability of n tokens (the end counted)
 * is divided by this. */
typedef enum qkv_length_penalty {
    QKV_LENGTH_GNMT,    /* ((5 + n) / 6)^alpha */
    QKV_LENGTH_AVERAGE, /* n^alpha */
    QKV_LENGTH_NONE     /* 1 */
} qkv_length_penalty;

/* Zeros are the defaults. */
typedef struct qkv_translate_options {
    int32_t beam;  /* hypotheses kept; 0: 5; 1 is greedy search */
    int32_t nbest; /* translations of each text, best first; 0: 1; at most `beam` */
    qkv_length_penalty penalty;
    double alpha;              /* 0: 1 */
    double coverage;           /* weight of GNMT's coverage penalty: source tokens that nothing
                                  attends to cost score */
    int32_t min_tokens;        /* of a translation */
    int32_t max_tokens;        /* 0: twice the source's and 10 */
    const qkv_text *prefixes;  /* how each text's translation must begin (len 0: freely), one a
                                  text; or NULL */
    const qkv_text *forbidden; /* words that must not occur, as the tokenizer writes them at a
                                  text's and at a word's begin */
    size_t n_forbidden;
    int32_t no_repeat_ngram; /* n: no n tokens that stand together are written twice; 0: may be */
    bool no_unknown;         /* never write the unknown token */
    bool align;              /* fill `links` */
    bool shortlist;          /* write only tokens that the training pairs make likely for this
                                  text: faster; log-probabilities are among those. The model must
                                  have a shortlist, as those trained here do */
} qkv_translate_options;

typedef struct qkv_link {
    uint32_t source, target; /* words, counted from 0; a word is what blanks separate */
} qkv_link;

typedef struct qkv_translation {
    const char *text; /* NUL-terminated; NULL: the beam did not find so many */
    size_t len;
    double score, log_prob; /* what it was ranked by; of the whole text, natural logarithm */
    const int32_t *ids;     /* its tokens, and the log-probability of each */
    const float *log_probs;
    size_t n;
    const qkv_link *links; /* which source word each target word came from, by attention */
    size_t n_links;
    bool source_cut; /* the source was longer than the model reads, and was cut */
    bool cut;        /* the translation stopped at the most tokens */
} qkv_translation;

typedef struct qkv_translations {
    qkv_translation *at; /* nbest for text 0, nbest for text 1, … */
    size_t n, nbest;     /* texts; for each */
    void *memory;
} qkv_translations;

/* Translates n texts, in batches of similar length; results do not depend on what else is
 * translated. options may be NULL. May be called from several threads with one model. Free the
 * result with qkv_translations_free. */
QKV_API qkv_status qkv_translate(const qkv_text_model *m, const qkv_text *texts, size_t n,
                                 const qkv_translate_options *options, qkv_translations *out);
QKV_API void qkv_translations_free(qkv_translations *t);

/* ---- generation ---- */

typedef enum qkv_generate_end {
    QKV_END_TOKENS,  /* as many as were asked for */
    QKV_END_TEXT,    /* the model ended the text */
    QKV_END_STOP,    /* a stop string came */
    QKV_END_CALLBACK /* the callback returned false */
} qkv_generate_end;

/* Zeros are the defaults: greedy, 256 tokens. Samplers act in this order; 0 turns one off. */
typedef struct qkv_generate_options {
    double repetition;  /* scores of tokens that occurred are divided (negative ones
                                  multiplied) by it */
    double temperature; /* 0: always the likeliest token */
    int32_t top_k;      /* only the k likeliest tokens */
    double typical;     /* only the tokens nearest to the expected surprise,
                                  together so probable */
    double top_p;       /* only the likeliest tokens that together are so probable */
    double min_p;       /* only tokens so probable, as a share of the likeliest */
    uint64_t seed;
    int32_t tokens, min_tokens;
    int32_t window;       /* tokens the model sees; 0: as many as it was trained on. It slides
                                  when it is full */
    const qkv_text *stop; /* the text ends before any of these */
    size_t n_stop;
    const qkv_text *forbidden; /* words that must not occur */
    size_t n_forbidden;
    /* Gets the text as it comes, in whole UTF-8 characters; false stops. May be NULL. */
    bool (*write)(void *user, const char *text, size_t len);
    void *user;
} qkv_generate_options;

typedef struct qkv_generated {
    size_t prompt_tokens, tokens;
    double log_prob; /* of what was written, by the model alone */
    double prompt_seconds, seconds;
    qkv_generate_end end;
} qkv_generated;

/* Goes on from the prompt. *text (may be NULL) gets all that was written;
 * *about (may be NULL) how it went. */
QKV_API qkv_status qkv_generate(const qkv_text_model *m, const char *prompt, size_t len,
                                const qkv_generate_options *options, char **text,
                                qkv_generated *about);

/* ---- what the model looks at ---- */

/* One kind of attention of a pass: "encoder" and "decoder" (self-attention),
 * "cross" (the decoder asks the encoder). */
typedef struct qkv_attention_part {
    const char *name, *title;
    bool self; /* queries and keys are the same tokens */
    int32_t layers, heads;
    int32_t queries, keys;
    const char *const *query_names, *const *key_names; /* the tokens as text; of cross-attention:
                                                          the token being written */
    const float *weights;                              /* (layers, heads, queries, keys); a query's
                                                          sum to 1 */
} qkv_attention_part;

typedef struct qkv_attention_parts {
    qkv_attention_part *at;
    size_t n;
    const char *title, *subtitle; /* of pictures: the text; the model and its answer */
    void *memory;
} qkv_attention_parts;

/* The attention weights of one pass over a text, and for a translator over its target (NULL: what
 * it translates the text to). Free with qkv_attention_free.
 * May be called from several threads with one model. */
QKV_API qkv_status qkv_attention_of(const qkv_text_model *m, const qkv_text *text,
                                    const qkv_text *target, qkv_attention_parts *out);
QKV_API void qkv_attention_free(qkv_attention_parts *a);

typedef struct qkv_head_statistics {
    double entropy;  /* of a query's weights, in bits; the mean over queries, as the others */
    double distance; /* |query − key| in tokens, weighted; NaN unless `self` */
    double peak;     /* largest weight */
} qkv_head_statistics;
QKV_API qkv_head_statistics qkv_attention_head(const qkv_attention_part *part, int32_t layer,
                                               int32_t head);

typedef struct qkv_attention_style {
    qkv_show how; /* TABLE: for a terminal; JSON: weights and statistics; SVG; HTML: one page that
                     needs nothing else */
    bool colour;  /* terminal: with colours */
    int columns;  /* terminal: its width; 0: 80 */
} qkv_attention_style;
QKV_API qkv_status qkv_attention_show(const qkv_attention_parts *a,
                                      const qkv_attention_style *style, char **text);

/* ---- vectors ---- */

/* Numbers in the vector of a text: the model's width. */
QKV_API size_t qkv_embed_width(const qkv_text_model *m);
/* One vector a text (n rows of qkv_embed_width floats): the encoder's pooled output as the
 * classifier sees it, the mean of the encoder's (translate, mlm) or of the decoder's (lm) rows
 * otherwise. Results do not depend on what else is embedded.
 * May be called from several threads with one model. */
QKV_API qkv_status qkv_embed(const qkv_text_model *m, const qkv_text *texts, size_t n,
                             float *vectors);

/* ---- scores ---- */

typedef struct qkv_evaluate_options {
    const qkv_translate_options *search; /* translators: how they write; NULL: the defaults */
    const char *tokenize;                /* translators: see qkv_score_request */
} qkv_evaluate_options;

/* Of one class: precision, recall, their harmonic mean, and the rows that have it. */
typedef struct qkv_class_score {
    const char *label;
    double precision, recall, f1;
    int64_t support;
} qkv_class_score;

/* What a model scores on some files. What a task has no use for is NaN or NULL. */
typedef struct qkv_evaluation {
    const char *task;
    int64_t examples, left_out, cut; /* rows; without text; too long for the model */
    int64_t targets, right;          /* answers asked for (tokens, or rows), and right ones */
    int64_t bytes;                   /* of the texts that were to be predicted */
    double loss, accuracy;           /* mean of nats per target; right / targets */
    double perplexity, bits_per_byte;
    size_t n_classes;
    const qkv_class_score *classes;
    double macro_f1;
    const int64_t *confusion;       /* n_classes × n_classes: rows are true, columns answers */
    double bleu, chrf2, chrf2_plus; /* translators */
    void *memory;
} qkv_evaluation;

/* Scores the model on files like those of training (NULL at the end); options may be NULL. To be
 * freed, also after a failure. The model must stay open until then. */
QKV_API qkv_status qkv_evaluate(const qkv_text_model *m, const char *const *files,
                                const qkv_evaluate_options *options, qkv_evaluation *out);
QKV_API void qkv_evaluation_free(qkv_evaluation *e);
/* The evaluation as a table, or a JSON object. */
QKV_API qkv_status qkv_evaluation_show(const qkv_evaluation *e, qkv_show how, char **text);

typedef struct qkv_score_request {
    const char *hypotheses;        /* a file of translations, one a line */
    const char *const *references; /* files that answer it line by line; NULL at the end */
    const char *tokenize;          /* BLEU's words: "13a", "intl", "char", "none"; NULL: 13a */
} qkv_score_request;

/* BLEU, chrF2 and chrF2++ of detokenised text, with the signatures of how they were
 * counted (sacrebleu's figures). */
QKV_API qkv_status qkv_score(const qkv_score_request *request, bool json, char **text);

typedef struct qkv_quantize_request {
    const char *model, *out; /* folders, different ones */
    const char *to;          /* "int8", "int4", "bf16" */
    const char *const *data; /* files to score both on, NULL at the end; NULL: none */
    bool overwrite;          /* replace a model that is in `out` */
} qkv_quantize_request;

/* Writes the model with its matrices in fewer bits to another folder, which opens like any; tells
 * sizes and scores before and after, as a table or a JSON object. */
QKV_API qkv_status qkv_quantize(const qkv_quantize_request *request, bool json, char **text);

/* ---- for programs with a command line ---- */

/* The exit code that fits a status. */
QKV_API int qkv_status_exit_code(qkv_status status);
/* The candidate nearest to `word` (edit distance at most a third of its length), or NULL:
 * "did you mean". */
QKV_API const char *qkv_nearest(const char *word, const char *const *candidates, size_t n);
/* Columns that a text takes on a terminal: wide characters take two, marks none. */
QKV_API int qkv_text_columns(const char *text, size_t len);

#ifdef __cplusplus
}
#endif
#endif
