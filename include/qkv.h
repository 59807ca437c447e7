/* qkv: Transformers in C.  The one public header; valid C11 and C++.
 *
 *     qkv_text_model *m;
 *     if (qkv_text_model_open("my-model", &m) != QKV_OK) {
 *         fprintf(stderr, "%s\n", qkv_error());
 *         return 1;
 *     }
 *     qkv_text line = {"what a lovely film", 18};
 *     float p[2];                                   // one probability per class
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

/* Threads that calls from this thread use; 0 asks for every core this process may run on. Threads
 * come from OpenMP; on a shared machine set GOMP_SPINCOUNT=3000 in the environment (as the command
 * does), so that idle ones sleep. A child made by fork() has one thread, once its parent has used
 * several; no other thread of the parent may be within this library at that moment. */
QKV_API void qkv_threads_set(int n);
/* Whether large files of weights and data are mapped (true at first) or read into memory. A program
 * that reads a mapped file which another one cuts short is ended by SIGBUS, unless it handles that. */
QKV_API void qkv_mapping_set(bool on);
QKV_API int qkv_threads(void);

/* ---- text that the library hands out ----
 * Functions with a `char **text` argument give back one NUL-terminated text, freed by
 * qkv_text_free; NULL after a failure. */
QKV_API void qkv_text_free(char *text);

/* ---- results ----
 * A function that finds something out fills a struct; its `_show` makes words of it, where a
 * program wants words. What has a `_free` is zeros after it and after a failure, so that freeing
 * it then is right and needless. */
typedef enum qkv_show {
    QKV_SHOW_TABLE, /* for people */
    QKV_SHOW_JSON,
    QKV_SHOW_SVG, /* a picture, and */
    QKV_SHOW_HTML /* a page: of the results that say so; others refuse */
} qkv_show;

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
    size_t pair_at;        /* added to offsets in the second text of a pair: where it begins in a
                              text that holds both */
    size_t max_tokens;     /* the text is cut there, of a pair the longer one first; 0: where the
                              tokenizer's file says, if it does */
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
    QKV_TOK_CHAR, /* one token per character, blanks and line ends included; `split` is not asked */
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
    size_t sample_lines; /* lines to train on, drawn by `seed`; 0: all */
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

/* A token of the vocabulary. */
typedef struct qkv_token {
    int32_t id;
    qkv_text text;    /* as the vocabulary spells it; data NULL: it has no such id */
    const char *role; /* "pad", "unk", "bos", "eos", "mask", "cls", "sep"; NULL: none */
} qkv_token;

/* What a tokenizer is. Names and texts are the tokenizer's, which must live as long. */
typedef struct qkv_tokenizer_facts {
    const char *model;  /* "BPE", "Unigram", "WordPiece", "WordLevel" */
    size_t size, added; /* ids; added tokens among them */
    /* the types of the steps of each stage, in order; NULL at the end */
    const char *const *normalizer, *const *pretokenizer, *const *decoder;
    const qkv_token *special; /* those with a role */
    size_t n_special;
    const qkv_token *around; /* what encoding makes of a text, in order; the text itself: id −1 */
    size_t n_around;         /* 0: nothing is put around a text */
    const qkv_token *longest; /* those of most bytes, longest first */
    size_t n_longest;
    uint64_t lines, bytes, words, tokens, unknown; /* of the texts; unknown tokens among them */
    double tokens_per_word, bytes_per_token;       /* 0: no such texts */
    void *memory;
} qkv_tokenizer_facts;

/* What the tokenizer is, and how it does on the texts that `next` gives (NULL: none). */
QKV_API qkv_status qkv_tokenizer_info(const qkv_tokenizer *tok, qkv_text_source next, void *user,
                                      qkv_tokenizer_facts *out);
QKV_API void qkv_tokenizer_facts_free(qkv_tokenizer_facts *f);
QKV_API qkv_status qkv_tokenizer_facts_show(const qkv_tokenizer_facts *f, qkv_show how,
                                            char **text);
/* How one text becomes tokens, step by step, in words:
 * the merges, the lattice, the longest matches. */
QKV_API qkv_status qkv_tokenizer_explain(const qkv_tokenizer *tok, const char *text, size_t len,
                                         char **out);

/* ---- this machine ---- */

/* What this build and machine have, and what the machine was measured to do. */
typedef struct qkv_diagnosis {
    const char *version, *compiler, *utf8proc, *pcre2, *mpi;
    int openmp;              /* the date of its specification: 201511 */
    const char *real;        /* what numbers are: "float" or "double" */
    const char *cpu;         /* "unknown" where the system does not say */
    const char *const *isas; /* instruction sets that this CPU runs; NULL at the end */
    const char *isa;         /* the one in use */
    const char *isa_ignored; /* QKV_ISA of the environment, where it is none of them; or NULL */
    int cores, cores_allowed, threads;           /* online; of this process (0: unknown); in use */
    double memory_bytes, memory_available_bytes; /* 0: unknown */
    double peak_gflops_f32, peak_gflops_bf16;    /* of matrix products; 0: no bf16 here */
    double memory_bytes_per_s;                   /* that all threads together read */
    void *memory;
} qkv_diagnosis;

/* Takes about a second, for the measurements. */
QKV_API qkv_status qkv_doctor(qkv_diagnosis *out);
QKV_API void qkv_diagnosis_free(qkv_diagnosis *d);
QKV_API qkv_status qkv_diagnosis_show(const qkv_diagnosis *d, qkv_show how, char **text);

/* ---- models, described ---- */

typedef struct qkv_describe_request {
    const char *model;      /* a model folder or a config.json; NULL: none */
    const char *preset;     /* NULL: none */
    const char *const *set; /* "key=value" …, NULL at the end; or NULL */
    int64_t batch, length;  /* of the activations shown; 0: 32, and the longest sequence */
} qkv_describe_request;

/* A part of a model: what it holds, what it makes, what it costs. */
typedef struct qkv_describe_part {
    char side[12];    /* "encoder", "decoder"; "": shared by both, or an encoder's head */
    int32_t layer;    /* −1: not in a layer */
    const char *name; /* "embedding", "attention", "ffn", … */
    const char *note; /* "tied to the embedding"; or NULL */
    char weights[96]; /* "2304×1024 + 2304" */
    int64_t parameters;
    bool by_sequence;      /* makes batch × width numbers instead of batch × length × width */
    int64_t width, inside; /* of what it makes; the widest thing on the way (0: nothing wider) */
    double macs;           /* multiply-adds of one forward pass */
} qkv_describe_part;

typedef struct qkv_describe_side {
    int64_t parameters, in_layers; /* all; in its layers */
    int64_t layers, layer;         /* how many; parameters of the first */
} qkv_describe_side;

typedef struct qkv_description {
    int64_t batch, length; /* of the activations */
    const qkv_describe_part *parts;
    size_t n;
    qkv_describe_side encoder, decoder;
    int64_t other;     /* parameters of heads of encoders */
    int64_t attention; /* parameters of one self-attention */
    int64_t total, total_in_layers;
    double macs;            /* multiply-adds of one forward pass */
    double attention_dense; /* weights of the same attention as one dense layer over the flattened
                               input: (N·D)² */
    /* bytes; training: values, gradients, two moments and what is kept for backward; decoding:
     * values and cache */
    double weight_bytes, training_state_bytes, activation_bytes, cache_bytes;
    void *memory;
} qkv_description;

/* Shapes, parameters, work and memory of a configuration, layer by layer; makes no weights. */
QKV_API qkv_status qkv_describe(const qkv_describe_request *request, qkv_description *out);
QKV_API void qkv_description_free(qkv_description *d);
/* TABLE, JSON, or SVG: a diagram of the blocks. */
QKV_API qkv_status qkv_description_show(const qkv_description *d, qkv_show how, char **text);

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
/* The value of row i of QKV_KEYS_MODEL in the model described; false past the end. *number as in
 * qkv_key.standard; *text is the name of a CHOICE, or a TEXT, else NULL. */
QKV_API bool qkv_description_value(const qkv_description *d, size_t i, double *number,
                                   const char **text);
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
    double loss,
        accuracy;    /* a mean over targets; a share of them, NaN where none are right or wrong */
    double lr, norm; /* of the step; the gradient's norm before clipping */
    double tokens_per_s, gflops, seconds_left;
    double step_loss;  /* STEP: the mean over the targets of this step alone */
    double share;      /* STEP: of this machine's peak, measured at the start; PHASE: of the
                              phase; 0: unknown */
    double train_loss; /* VALID: the same of some rows that are trained on */
    double seconds;    /* VALID: since the run began or was resumed */
    bool best;         /* VALID: the best so far */
    const char *text;  /* NOTE, PHASE: valid during the call */
    const char *part;  /* STEP, PHASE: of several trainings which ("fold 2 of 5"); or NULL */
} qkv_progress;

/* A row of training data given in memory; what a task does not use stays zero. */
typedef struct qkv_train_row {
    qkv_text label;  /* classify; rate: the number, as text */
    qkv_text text;   /* valid UTF-8; translate: the source */
    qkv_text second; /* translate: the target; classify, rate: the second text of a pair */
} qkv_train_row;

/* Row i of the table of tasks that can be trained; false past its end. */
QKV_API bool qkv_task_row(size_t i, const char **name, const char **summary);
/* Name i of the forms of data files, values of the key "format"; false past the last. */
QKV_API bool qkv_format_row(size_t i, const char **name);

typedef struct qkv_train_request {
    const char *task;          /* the name of a row: "classify", "translate", "lm", "mlm" */
    const char *const *train;  /* files, NULL at the end; "-": standard input; classify: also a
                                  folder with one folder per class */
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
    bool overwrite;           /* replace the run that is there, from step 0 */
    bool keep_checkpoints;    /* those of a run that ends well go otherwise */
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

/* One step of a search for a learning rate. */
typedef struct qkv_lr_trial {
    double lr, loss; /* the step's rate; the mean loss of its targets */
    double smooth;   /* the running mean of the losses so far */
} qkv_lr_trial;

typedef struct qkv_lr_search {
    const qkv_lr_trial *trials; /* from the smallest rate on, until the loss ran away */
    size_t n;
    double best; /* the rate to use: a tenth of the one at which the running mean is lowest */
    void *memory;
} qkv_lr_search;

/* Instead of training: tries rates from small to large on this data and model. Writes nothing. */
QKV_API qkv_status qkv_find_lr(const qkv_train_request *request, qkv_lr_search *out);
QKV_API void qkv_lr_search_free(qkv_lr_search *s);
/* TABLE: with a chart for the terminal. */
QKV_API qkv_status qkv_lr_search_show(const qkv_lr_search *s, qkv_show how, char **text);

/* A training among several that are compared, measured on rows that it has not seen. */
typedef struct qkv_trial {
    const char *what;   /* "fold 1"; of a search the settings, "lr=0.005 dropout=0.3" ("": none) */
    bool over;          /* false: it was given up, and has no figures */
    int64_t targets;    /* of the rows */
    double loss, right; /* their mean loss; the share of right answers */
    double seconds;
} qkv_trial;

typedef struct qkv_trials {
    const qkv_trial *trials;
    size_t n, best;
    bool by_right; /* compared by right answers; else by the loss */
    bool folds;    /* of a cross-validation; else of a search */
    /* of a cross-validation: the mean of that figure, and its interval: mean ± half_width (95 %) */
    double mean, half_width;
    void *memory;
} qkv_trials;

/* What the request's training is worth on rows to come: the rows in `folds` parts, as many trainings
 * that each leave one of them out. Leaves no model, but the figures (folds.jsonl in `out`): the same
 * request goes on where it was stopped. */
QKV_API qkv_status qkv_cross_validate(const qkv_train_request *request, int folds, qkv_trials *out);
/* Searches for better settings, for about so many minutes in all, and then trains with the best of
 * them and all rows: the folder's model. Every trial is in trials.jsonl there. */
QKV_API qkv_status qkv_tune(const qkv_train_request *request, double minutes, qkv_trials *out);
QKV_API void qkv_trials_free(qkv_trials *t);
QKV_API qkv_status qkv_trials_show(const qkv_trials *t, qkv_show how, char **text);

/* Writes synthetic data to a file, the same rows for the same seed: "reviews" (label<TAB>text),
 * "numbers" (words<TAB>digits). Rows that are held out are never among those to train on,
 * whatever the seeds. */
QKV_API qkv_status qkv_demo_write(const char *name, uint64_t seed, size_t rows, bool held_out,
                                  const char *path);

/* ---- other programs' weights ---- */

typedef struct qkv_import_request {
    const char *source;    /* a Hugging Face folder, a llama2.c checkpoint, a CTranslate2 folder;
                              recognised from the content */
    const char *tokenizer; /* NULL: the vocabulary that comes with the weights */
    const char *out;       /* the model folder to make */
    bool overwrite;        /* replace a model that is there */
} qkv_import_request;

/* What was read. */
typedef struct qkv_import_facts {
    const char *format; /* the name of a row of the table of formats */
    const char *task;
    int64_t parameters, tokens; /* numbers; of the vocabulary */
} qkv_import_facts;

/* Makes a model folder; *out may be NULL. */
QKV_API qkv_status qkv_import(const qkv_import_request *request, qkv_import_facts *out);
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
/* The longest text that the model reads, in tokens: as it was trained, or as set. Beyond that length
 * no model was trained; positions that are a table of max_len rows (learned) refuse it, as does
 * Linformer's attention. Set it before the model is used. */
QKV_API int64_t qkv_text_model_max_len(const qkv_text_model *m);
QKV_API qkv_status qkv_text_model_set_max_len(qkv_text_model *m, int64_t tokens);
/* For a model with structural positions: the dependency trees of texts to come, from a CoNLL-U
 * file. A text is found by what it says. May be called for several files. */
QKV_API qkv_status qkv_text_model_read_trees(qkv_text_model *m, const char *path);
/* Was the model trained on pairs of texts? Then each text that it is given holds both, a TAB between
 * them, {"first\tsecond", 12}: in qkv_classify, qkv_embed, qkv_attention_of. What has no TAB is
 * refused (QKV_USAGE). */
QKV_API bool qkv_text_model_pairs(const qkv_text_model *m);
/* From now on texts are pairs, for a model of another program that reads pairs and does not say so. */
QKV_API qkv_status qkv_text_model_read_pairs(qkv_text_model *m);
/* May a text have several labels, as some rows of the training data had? Then the probabilities below
 * are of each label by itself, and those that have at least the threshold are the answer. */
QKV_API bool qkv_text_model_several(const qkv_text_model *m);
QKV_API double qkv_text_model_threshold(const qkv_text_model *m);
/* probabilities (n rows of as many as there are labels) of each class for each text. May be called
 * from several threads with one model. */
QKV_API qkv_status qkv_classify(const qkv_text_model *m, const qkv_text *texts, size_t n,
                                float *probabilities);

/* The number of each of n texts, by a model of the task "rate". May be called from several threads
 * with one model. */
QKV_API qkv_status qkv_rate(const qkv_text_model *m, const qkv_text *texts, size_t n,
                            float *numbers);

/* ---- labels of words ---- */

/* A word of a text and its label (qkv_text_model_label). */
typedef struct qkv_tag_word {
    uint32_t begin, end; /* bytes of the text */
    int32_t label;
    float probability;
} qkv_tag_word;

typedef struct qkv_tags {
    qkv_tag_word *words;
    size_t *first; /* words first[i] … first[i + 1] − 1 are those of text i */
    size_t n;      /* texts */
} qkv_tags;

/* Labels the words of n texts, which are cut at blanks and punctuation as treebanks are; with
 * `blanks` at blanks alone. Labels B-x and I-x come as well-formed spans. May be called from
 * several threads with one model. Free with qkv_tags_free. */
QKV_API qkv_status qkv_tag(const qkv_text_model *m, const qkv_text *texts, size_t n, bool blanks,
                           qkv_tags *out);
QKV_API void qkv_tags_free(qkv_tags *t);

/* Words that belong together: B-x I-x … is a span of type x. */
typedef struct qkv_tag_span {
    uint32_t begin, end;
    const char *type;
    float probability; /* of its least sure word */
} qkv_tag_span;
/* Do this model's labels say spans? */
QKV_API bool qkv_tags_are_spans(const qkv_text_model *m);
/* The spans of a text's n words, in order; `out` has room for n. Returns how many. */
QKV_API size_t qkv_tag_spans(const qkv_text_model *m, const qkv_tag_word *words, size_t n,
                             qkv_tag_span *out);

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
    const char *text; /* NUL-terminated; NULL: the beam found fewer hypotheses */
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
    bool framed; /* the prompt has the marks in it that begin a text: none is put before it */
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

/* ---- conversations ---- */

typedef struct qkv_chat_message {
    const char *role; /* "system", "user", "assistant" */
    qkv_text content;
} qkv_chat_message;

/* Reads a chat template (Jinja) instead of the model's own. */
QKV_API qkv_status qkv_text_model_read_template(qkv_text_model *m, const char *path);
/* Makes the model ready to converse, by its own template unless one was read; once, before the
 * model is shared by threads. */
QKV_API qkv_status qkv_text_model_prepare_chat(qkv_text_model *m);
/* The prompt that the template makes of a conversation; free with qkv_text_free. len may be
 * NULL. */
QKV_API qkv_status qkv_chat_prompt(const qkv_text_model *m, const qkv_chat_message *messages,
                                   size_t n, char **text, size_t *len);
/* The model's answer to a conversation of n messages, as qkv_generate gives it. */
QKV_API qkv_status qkv_chat(const qkv_text_model *m, const qkv_chat_message *messages, size_t n,
                            const qkv_generate_options *options, char **text, qkv_generated *about);

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
    /* 0 … 1, how much the head says: how far its queries' weights are from what all of them look at
     * on average (bits of the largest possible), less the share that looks at one fixed distance */
    double says;
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

/* ---- why this answer ---- */

/* How it is found out what a word added. */
typedef enum qkv_explain_by {
    QKV_EXPLAIN_GRADIENTS, /* integrated gradients, and the n-grams' own weights: parts that sum to
                              the lead */
    QKV_EXPLAIN_OCCLUSION  /* what is lost when a word alone is hidden: to check the other by */
} qkv_explain_by;

/* A word of the text, and what it added to the lead: against it where that is below 0. */
typedef struct qkv_explain_word {
    uint32_t begin, end; /* bytes of the text */
    double weight;
    double ngrams; /* of it, by the n-grams that the word is part of */
} qkv_explain_word;

/* An n-gram of the text that has a weight of its own; words have it as their share already. */
typedef struct qkv_explain_ngram {
    uint32_t begin, end; /* where it stands first */
    double weight;
    int32_t places;    /* where it stands in all */
    bool characters;   /* of characters; else of tokens */
    bool begins, ends; /* that the text begins before it, or ends behind it, is part of it */
} qkv_explain_ngram;

/* Why one answer was given. lead = Σ weights of words + rest. */
typedef struct qkv_explanation {
    qkv_text text;
    uint32_t begin, end; /* of a tagger: the word that was labelled; else the whole text */
    const char *label;   /* the answer; NULL: a number, which is the lead, */
    const char *against; /* and the runner-up (NULL: there is none), over which it has this */
    double lead;         /* lead, a difference of logits */
    double probability;  /* NaN: of a number */
    const qkv_explain_word *words;
    size_t n;
    const qkv_explain_ngram *ngrams; /* those of several tokens, or of characters, with the largest
                                        weights, largest first */
    size_t n_ngrams;
    bool votes;   /* the model has n-grams */
    double rest;  /* what no word has: */
    double start; /* the lead of a text that says nothing (words without a meaning of their own), */
    int64_t passes; /* and rest − start, the error, made small by so many gradients */
} qkv_explanation;

typedef struct qkv_explanations {
    const qkv_explanation *at; /* one of a text; of a tagger one of each word */
    size_t n;
    void *memory;
} qkv_explanations;

/* Why the model answers as it does to a text: of classifiers, taggers, and models that rate. Free
 * with qkv_explanations_free. May be called from several threads with one model. */
QKV_API qkv_status qkv_explain(const qkv_text_model *m, const qkv_text *text, qkv_explain_by how,
                               qkv_explanations *out);
QKV_API void qkv_explanations_free(qkv_explanations *e);

typedef struct qkv_explain_style {
    qkv_show how; /* TABLE: for a terminal; JSON: an object a line; HTML: one page that needs
                     nothing else */
    bool colour;  /* terminal: words on coloured grounds */
    int columns;  /* terminal: its width; 0: 80 */
} qkv_explain_style;
/* n explanations, of one text or of many. */
QKV_API qkv_status qkv_explanations_show(const qkv_explanation *at, size_t n,
                                         const qkv_explain_style *style, char **text);

/* ---- vectors ---- */

/* Numbers in the vector of a text: the model's width. */
QKV_API size_t qkv_embed_width(const qkv_text_model *m);
/* One vector per text (n rows of qkv_embed_width floats): the encoder's pooled output as the
 * classifier sees it, the mean of the encoder's (translate, mlm) or of the decoder's (lm) rows
 * otherwise. Results do not depend on what else is embedded.
 * May be called from several threads with one model. */
QKV_API qkv_status qkv_embed(const qkv_text_model *m, const qkv_text *texts, size_t n,
                             float *vectors);

/* A word of a text that has a vector. */
typedef struct qkv_word_place {
    uint32_t begin, end; /* bytes of the text */
} qkv_word_place;

typedef struct qkv_word_vectors {
    qkv_word_place *words;
    float *vectors; /* one per word, qkv_embed_width floats each */
    size_t *first;  /* words first[i] … first[i + 1] − 1 are those of text i */
    size_t n;       /* texts */
} qkv_word_vectors;

/* One vector per word of n texts: the mean of the last layer's rows of its tokens. Words are cut at
 * blanks and punctuation as treebanks are; with `blanks` at blanks alone. What lies behind the
 * longest text that the model reads has none. Free with qkv_word_vectors_free. */
QKV_API qkv_status qkv_embed_words(const qkv_text_model *m, const qkv_text *texts, size_t n,
                                   bool blanks, qkv_word_vectors *out);
QKV_API void qkv_word_vectors_free(qkv_word_vectors *v);

/* ---- the nearest of many texts ---- */

/* The lines of a file and their vectors. */
typedef struct qkv_neighbours qkv_neighbours;

typedef struct qkv_neighbours_request {
    const char *in;    /* a file of texts, one per line */
    const char *index; /* a file that keeps the vectors: used where it was made by this model of
                          this file, else written; NULL: they are kept in memory */
    bool words;        /* the different words of the file instead of its lines */
    /* Hears how many texts have their vectors; false stops. May be NULL. */
    bool (*progress)(void *user, size_t done, size_t all);
    void *user;
} qkv_neighbours_request;

/* A text near to one that was asked for. */
typedef struct qkv_neighbour {
    float cosine;
    int64_t line; /* of the file; of a word where it is first met */
    qkv_text text;
} qkv_neighbour;

/* Reads the file and makes or opens its vectors; the model must live as long. */
QKV_API qkv_status qkv_neighbours_open(const qkv_text_model *m,
                                       const qkv_neighbours_request *request, qkv_neighbours **out);
QKV_API void qkv_neighbours_close(qkv_neighbours *s);
QKV_API size_t qkv_neighbours_count(const qkv_neighbours *s);
/* Were the vectors there already? */
QKV_API bool qkv_neighbours_kept(const qkv_neighbours *s);
/* The `top` nearest to each of n texts by the cosine of their vectors, nearest first, of equal ones
 * the earlier line; exact: all are compared. `out` has room for n × top; where there are fewer,
 * text.data is NULL. */
QKV_API qkv_status qkv_neighbours_find(const qkv_neighbours *s, const qkv_text *texts, size_t n,
                                       size_t top, qkv_neighbour *out);

/* ---- scores ---- */

typedef struct qkv_evaluate_options {
    const qkv_translate_options *search; /* translators: how they write; NULL: the defaults */
    const char *tokenize;                /* translators: see qkv_score_request */
    const char *format;                  /* form of the files; NULL: recognised */
    const char *text, *label, *pair;     /* columns, by name or number from 1; NULL: recognised */
    int64_t errors;                      /* how many of the worst answers to give; 0: none */
    int64_t samples;                     /* for intervals (bootstrap over rows); 0: none */
    uint64_t seed;                       /* of those; 0: 12345 */
    bool calibration;                    /* give the bins of the reliability diagram */
    bool lengths;                        /* language models: the loss in windows of 1, 2 and 4 times
                                            the trained length */
    const char *labels_separator;        /* stands between the labels of a row; NULL: one label */
} qkv_evaluate_options;

/* What a figure is on samples of as many rows drawn from the same rows with replacement (bootstrap):
 * their mean, and the bounds of the middle 95 %. NaN where it was not asked for. */
typedef struct qkv_interval {
    double mean, low, high;
} qkv_interval;

/* How like its references a translation is: sacrebleu's figures, of detokenised text. */
typedef struct qkv_translation_score {
    int64_t lines;
    double bleu, chrf2, chrf2_plus; /* 0 … 100; of chrF2 and chrF2++ */
    double ter;                     /* edits for 100 words of the reference: the lower the
                                             better */
    qkv_interval bleu_interval, chrf2_interval, chrf2_plus_interval, ter_interval;
    int64_t samples;                      /* of those; 0: none were asked for */
    double precisions[4];                 /* BLEU's, of 1- … 4-grams, in percent */
    double brevity_penalty, length_ratio; /* BLEU's; words written / words of the references */
    int64_t hyp_len, ref_len;             /* those words */
    /* how each was counted, in sacrebleu's form */
    char bleu_signature[112], chrf2_signature[112], chrf2_plus_signature[112], ter_signature[112];
} qkv_translation_score;

/* Of one class: precision, recall, their harmonic mean, and the rows that have it. */
typedef struct qkv_class_score {
    const char *label;
    double precision, recall, f1;
    int64_t support;
} qkv_class_score;

/* An answer that was wrong. */
typedef struct qkv_wrong_answer {
    const char *file;
    int64_t line;      /* of the file */
    qkv_text text;     /* of a pair both texts, a TAB between; of a translator the source */
    size_t begin, end; /* bytes of the text that the answer is to: of a tagger a word */
    const char *truth, *answer; /* labels; of a translator the reference and what it wrote */
    double p_truth, p_answer;   /* their probabilities; NaN: translators */
    double score;               /* chrF2 of the line; NaN: others */
} qkv_wrong_answer;

/* How often one class was taken for another. */
typedef struct qkv_mistaken_pair {
    const char *truth, *answer;
    int64_t n;
} qkv_mistaken_pair;

/* Answers whose probability lies in one of equal parts of 0 … 1: how many, its mean, and the share
 * that was right, which should be the same. NaN: there were none. */
typedef struct qkv_calibration_bin {
    int64_t n;
    double confidence, accuracy;
} qkv_calibration_bin;

/* The loss with windows of so many tokens, none of which sees the one before. */
typedef struct qkv_length_score {
    int64_t length, targets;
    double loss, perplexity, bits_per_byte;
} qkv_length_score;

/* What a model scores on some files. What a task has no use for is NaN or NULL. */
typedef struct qkv_evaluation {
    const char *task;
    size_t n_files;                  /* that were read */
    int64_t examples, left_out, cut; /* rows; without text; too long for the model */
    int64_t unknown; /* targets whose label the model does not know: they count as wrong, and have
                        no part in the loss */
    size_t n_unknown_labels;
    const char *const *unknown_labels; /* which labels those are */
    int64_t targets, right;            /* answers asked for (tokens, or rows), and right ones */
    int64_t bytes;                     /* of the texts that were to be predicted */
    double loss, accuracy;             /* mean of nats per target (of models that rate: of squared
                                        errors, that of the mean of the training rows being 1);
                                        right / targets */
    double perplexity, bits_per_byte;
    size_t n_classes;
    const qkv_class_score *classes;
    double macro_f1;
    /* taggers whose labels say spans: those that are exactly right, as conlleval counts them; of
     * each type, and of all */
    size_t n_types;
    const qkv_class_score *types;
    double span_precision, span_recall, span_f1;
    /* models that rate: means of the squared and of the absolute error, correlations of the
     * numbers and of their ranks with the true ones */
    double mse, mae, pearson, spearman;
    const int64_t *confusion; /* n_classes × n_classes: rows are true, columns answers */
    size_t n_mistaken;
    const qkv_mistaken_pair *mistaken; /* the most frequent first, 20 at most */
    /* expected calibration error over 15 bins: the mean distance of what the model says of its
     * answers and how often they are right */
    double ece;
    size_t n_bins;
    const qkv_calibration_bin *bins;
    qkv_interval accuracy_interval, macro_f1_interval, span_f1_interval;
    qkv_interval mse_interval, pearson_interval, spearman_interval;
    int64_t samples; /* of those, and of the translation's; fewer than asked for where the rows are
                        so many that it would take long */
    size_t n_errors;
    const qkv_wrong_answer *errors; /* the worst first: the least probability of the truth, or the
                                       lowest chrF2 */
    size_t n_lengths;
    const qkv_length_score *lengths;
    /* classifiers of several labels a text: of all labels given; `right` are the rows all of whose
     * labels are */
    bool several;
    double micro_precision, micro_recall, micro_f1;
    double bleu, chrf2, chrf2_plus, ter;      /* translators */
    const qkv_translation_score *translation; /* the same with all that belongs to it */
    void *memory;
} qkv_evaluation;

/* Scores the model on files, or a folder, like those of training (NULL at the end); options may be
 * NULL. The model may be closed before the result is freed. */
QKV_API qkv_status qkv_evaluate(const qkv_text_model *m, const char *const *files,
                                const qkv_evaluate_options *options, qkv_evaluation *out);
QKV_API void qkv_evaluation_free(qkv_evaluation *e);
/* TABLE, JSON, or SVG: the reliability diagram, where there are bins. */
QKV_API qkv_status qkv_evaluation_show(const qkv_evaluation *e, qkv_show how, char **text);

typedef struct qkv_score_request {
    const char *hypotheses;        /* a file of translations, one per line; "-": standard input */
    const char *const *references; /* files that answer it line by line; NULL at the end */
    const char *tokenize;          /* BLEU's words: "13a", "intl", "char", "zh", "none";
                                      NULL: 13a */
    const char *baseline;          /* qkv_score_compare: translations of the same lines by another
                                      system */
    int64_t samples;               /* for intervals and comparisons; 0: none, or 1,000 to compare */
    uint64_t seed;                 /* of those; 0: 12345, as sacrebleu's */
} qkv_score_request;

/* Counts a file against its references. */
QKV_API qkv_status qkv_score(const qkv_score_request *request, qkv_translation_score *out);
QKV_API qkv_status qkv_translation_score_show(const qkv_translation_score *s, qkv_show how,
                                              char **text);

/* Two systems on the same lines, and for each figure how likely a difference like theirs would be
 * by chance (paired bootstrap; sacrebleu's for the same seed). */
typedef struct qkv_score_comparison {
    qkv_translation_score baseline, system;
    double bleu_p, chrf2_p, chrf2_plus_p, ter_p;
    int64_t samples;
    uint64_t seed;
} qkv_score_comparison;
QKV_API qkv_status qkv_score_compare(const qkv_score_request *request, qkv_score_comparison *out);
QKV_API qkv_status qkv_score_comparison_show(const qkv_score_comparison *c, qkv_show how,
                                             char **text);

typedef struct qkv_quantize_request {
    const char *model, *out; /* folders, different ones */
    const char *to;          /* "int8", "int4", "bf16" */
    const char *const *data; /* files to score both on, NULL at the end; NULL: none */
    bool overwrite;          /* replace a model that is in `out` */
} qkv_quantize_request;

/* What quantizing did to a model. */
typedef struct qkv_quantization {
    const char *weights;               /* "int8", "int4", "bf16" */
    int64_t bytes_before, bytes_after; /* of the file of weights */
    qkv_evaluation before, after;      /* on the data; without any their `task` is NULL */
} qkv_quantization;

/* Writes the model with quantized matrices to another folder, which opens like any. */
QKV_API qkv_status qkv_quantize(const qkv_quantize_request *request, qkv_quantization *out);
QKV_API void qkv_quantization_free(qkv_quantization *q);
QKV_API qkv_status qkv_quantization_show(const qkv_quantization *q, qkv_show how, char **text);

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
