/* Policy: what is chosen for those who leave it to us, by the kind of work and the size of the
 * data. All of it stands in recipes.c, each number with its reason and, where there is one, the
 * figure that it rests on; a task's row names one of the recipes. What a setting is when nothing
 * depends on the data (clip = 1) is its row in train.def or config.def; what a preset's name stands
 * for is model/preset.def, and who gets it is said here. */
#ifndef QKV_POLICY_RECIPE_H
#define QKV_POLICY_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tokens of training data below which a corpus is little, or middling. */
enum { QKV_LITTLE_TOKENS = 200000, QKV_MIDDLING_TOKENS = 2000000 };

/* Kinds of texts, each of which has presets of its own to choose from. */
typedef enum qkv_preset_kind {
    QKV_PRESETS_TEXT,   /* running text, pairs of texts */
    QKV_PRESETS_LABELS, /* texts with labels */
    QKV_PRESETS_WORDS   /* words with labels */
} qkv_preset_kind;

/* Steps on one batch that is to be learned by heart (`overfit`). */
enum { QKV_OVERFIT_STEPS = 200 };

/* Share of the tokens that mlm hides. */
#define QKV_MASK_RATE 0.15

/* How a model of another program is fine-tuned for another task: such were trained on far more text
 * than ours, and there is more in them to be lost. */
typedef struct qkv_tuning {
    double rate;        /* of AdamW, at … */
    int64_t rate_width; /* … this d_model */
    double head_rate;   /* the head's, relative to that */
    int64_t batch_rows; /* examples in a batch, about */
    int64_t passes[3];  /* over little, middling and much text */
} qkv_tuning;

extern const qkv_tuning qkv_tuning_labels; /* texts with labels */

typedef struct qkv_recipe {
    /* the tokenizer, where none is named */
    const char *tokenizer; /* a kind: "word", "wordpiece", "bpe" */
    bool lowercase;        /* fold case, unless a tokenizer is named */
    bool byte_level;       /* split into GPT-2's words of bytes, so that any text can be written */
    int64_t bytes_per_entry; /* bytes of text per entry of the vocabulary */
    int64_t vocab_most;      /* entries at most; at least 500 */
    /* the model, where no preset is named */
    qkv_preset_kind presets;  /* which are chosen from */
    const char *regularizer;  /* started from a model of another task, take dropout and n-grams from
                                 this preset; NULL: keep the model's own */
    double regularizer_share; /* … and of its dropout this much */
    /* the training */
    int64_t passes[3];        /* over little, middling and much text */
    double ngram_cost;        /* of a text on the wrong side, in the fit of n-grams */
    int64_t patience;         /* validations that a network may need to help its companion … */
    double margin;            /* … by this share of the loss */
    double smoothing;         /* of labels */
    bool smooth_overfit;      /* also where one batch is to be learned by heart */
    int64_t average[2];       /* validations whose weights are averaged: little text, more text */
    bool adamw_from_scratch;  /* pre-norm Transformers take AdamW instead of Muon */
    const qkv_tuning *tuning; /* from another program's model; NULL: as from one of ours */
} qkv_recipe;

extern const qkv_recipe qkv_recipe_labels;  /* texts with labels */
extern const qkv_recipe qkv_recipe_numbers; /* texts with a number */
extern const qkv_recipe qkv_recipe_words;   /* a label for each word */
extern const qkv_recipe qkv_recipe_pairs;   /* a text becomes another */
extern const qkv_recipe qkv_recipe_writing; /* running text, to be continued */
extern const qkv_recipe qkv_recipe_reading; /* running text, to be understood */

/* What the tokens of its tokenizer are, for those for whom it was chosen: "words". */
const char *qkv_recipe_tokens_are(const qkv_recipe *r);
/* Entries of a vocabulary trained on `bytes` of text. */
int64_t qkv_recipe_vocab(const qkv_recipe *r, int64_t bytes);
/* Passes over `tokens` of training data; half as many, rounded up, from weights that were trained
 * before: mlm, then 3 passes of fine-tuning, has 91.85 % on IMDb (docs/RESULTS.md). */
int64_t qkv_recipe_passes(const qkv_recipe *r, int64_t tokens, bool goes_on);
/* Validations to average over. */
int64_t qkv_recipe_average(const qkv_recipe *r, int64_t tokens);
/* Label smoothing; `overfit`: where one batch is to be learned by heart. */
double qkv_recipe_smoothing(const qkv_recipe *r, bool overfit);
/* Whether AdamW does (else Muon); `pre_norm`: the model is a Transformer of pre-norm layers. */
bool qkv_recipe_adamw(const qkv_recipe *r, bool pre_norm, bool goes_on);
/* Tokens of a batch: some sixty updates per pass, between 512 and 4,096 tokens. */
int64_t qkv_recipe_batch(int64_t tokens);
/* Steps of warm-up in a run of `steps`. */
int64_t qkv_recipe_warmup(int64_t steps);
/* The learning rate. Post-norm stacks diverge at rates that pre-norm tolerates, and fine-tuning at
 * the full rate forgets: both get 0.3 of it. */
double qkv_recipe_rate(bool muon, int64_t d_model, bool gentle);

/* The same three for a model of another program. A batch has between 512 and 4,096 tokens. */
int64_t qkv_tuning_passes(const qkv_tuning *t, int64_t tokens);
int64_t qkv_tuning_batch(const qkv_tuning *t, int64_t tokens, int64_t rows);
double qkv_tuning_rate(const qkv_tuning *t, int64_t d_model);

/* What of a classifier's n-grams depends on the size of the data, where it was left to us (*chars
 * −1, *buckets 0): n-grams of characters where there is little text, and rows enough for most of
 * the n-grams and no more. */
void qkv_recipe_ngrams(int64_t bytes, int64_t classes, int64_t *chars, int64_t *buckets);

/* Validation data where none was given: rows that are held out of the training data, in blocks of
 * rows that stand together. */
typedef struct qkv_held_out {
    int64_t rows, block; /* 0 rows: there are too few to spare any */
} qkv_held_out;
/* Of n rows about `share`. */
qkv_held_out qkv_recipe_held_out(int64_t n, double share);
/* Of `bytes` of running text, the end: so many of them; 0: it is too short. */
int64_t qkv_recipe_held_out_end(int64_t bytes, double share);

/* A preset for those who name none. */
typedef struct qkv_choice {
    const char *preset;
    int64_t below;        /* chosen for fewer tokens of training data than this */
    qkv_preset_kind kind; /* of texts that it is chosen for */
    bool no_attention;    /* not chosen for those who ask for a kind of attention or positions */
    const char *is;       /* what it builds, for those for whom it was chosen */
    const char *instead;  /* what else they might take */
} qkv_choice;
/* The first that suits texts of this kind and size; `attention`: one that has it. */
const qkv_choice *qkv_choice_for(qkv_preset_kind kind, int64_t tokens, bool attention);
/* Tokens of a text before there is a tokenizer to count them. */
int64_t qkv_recipe_tokens(int64_t bytes);

#endif
