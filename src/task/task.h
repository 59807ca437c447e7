/* Tasks: examples → batch → loss. The lowest layer that knows both text and tensors; one file and
 * one row each.
 *
 * Losses are sums over targets, never means: the optimiser divides by the number of targets of the
 * whole step, so that gradient accumulation gives what one large batch would give. */
#ifndef QKV_TASK_TASK_H
#define QKV_TASK_TASK_H

#include "data/batcher.h"
#include "model/model.h"
#include "data/tokenise.h"
#include "policy/recipe.h"

/* A batch as the model sees it. Lives in the tape's arena: until the next step begins. */
typedef struct qkv_batch {
    qkv_tokens src, tgt;    /* rows 0 where the task has no such side */
    const int32_t *targets; /* classify: of each sequence; translate, lm: of each row of tgt */
    const real *numbers; /* rate: of each sequence, in deviations from their mean; several labels:
                            (n, classes), 1 where it has the label */
    const int32_t *target_rows; /* mlm: the rows of src that the targets belong to */
    int64_t n_targets;
    int64_t n_sequences;
    int64_t tokens; /* real tokens, source and target counted both */
} qkv_batch;

/* What n-grams are trusted by beforehand: ngram_fit.c. */
typedef enum qkv_ngram_trust { QKV_TRUST_BOTH, QKV_TRUST_RARITY, QKV_TRUST_CLASS } qkv_ngram_trust;

/* What a task needs to know beside the data. */
typedef struct qkv_task_spec {
    int32_t bos, eos, mask; /* ids; −1: the tokenizer has none */
    int32_t classes;
    bool several;     /* labels a text */
    bool bare_source; /* translate: the source has no end mark */
    int32_t vocab_size;
    int32_t n_special; /* ids below this are never masked nor drawn */
    double mask_rate;  /* mlm: share of tokens to predict; 0 means QKV_MASK_RATE */
    /* mlm: tokens that go on with the word of the token before, hidden with it; or NULL */
    const bool *continues;
    double smoothing; /* label smoothing while training */
    /* > 0: examples are trained on twice at once, under other dropout, and this weighs the distance
     * of the two predictions */
    double r_drop;
    const real *class_weights;      /* classify: per class, or NULL */
    double ngram_cost, ngram_prior; /* of the fit of n-grams: ngram_fit.c */
    int64_t ngram_passes;
    int ngram_trust;                  /* a qkv_ngram_trust */
    double rate_mean, rate_deviation; /* rate: of the numbers */
} qkv_task_spec;

/* What a batch gave: how much was in it, and how good the model was at it. */
typedef struct qkv_loss_out {
    qkv_batch batch;
    qkv_tensor *root; /* of backward */
    double loss;      /* Σ over targets, smoothing included */
    int64_t n_right;  /* targets that had the largest logit */
} qkv_loss_out;

/* The marks that a task itself puts around a side; the tokenizer's own are left out then. */
typedef enum qkv_mark { QKV_MARK_NONE, QKV_MARK_BEGIN, QKV_MARK_END } qkv_mark;
typedef struct qkv_framing {
    bool own;        /* the task frames its texts; false: the tokenizer does */
    qkv_mark source; /* END: the mark that ends an encoder's text */
    qkv_mark target; /* BEGIN: what a decoder reads begins with a mark, what it writes ends
                             with one */
} qkv_framing;

/* The ids that the framing puts before and behind what a side's reader sees; −1: nothing. */
typedef struct qkv_frame {
    int32_t before, after;
} qkv_frame;

/* What was answered to one target, for those who look at answers singly. */
typedef struct qkv_answer {
    int64_t example;
    int32_t place;         /* which of the example's targets, from 0 */
    int32_t truth, answer; /* classes; truth −1: a label that the model does not know */
    float p_truth, p_answer;
} qkv_answer;

/* Answers counted over batches, when a model is evaluated. */
typedef struct qkv_tally {
    double loss; /* Σ over targets whose label is known */
    int64_t n_right, n_targets;
    int64_t n_unknown;  /* targets whose label is not: never right, and no part of the loss */
    int64_t *confusion; /* of a head of classes: [truth][answer], else NULL */
    int32_t classes;
    bool keep;                   /* keep the answers too, */
    QKV_VEC(qkv_answer) answers; /* in the order of the batches */
    const int64_t *examples;     /* of the batch at hand */
    int64_t (*labels)[3]; /* where a text may have several, by class: true, answered, both; those
                             of all classes behind them. Else NULL */
    QKV_VEC(double) truth, answer; /* of a head of one number, as in the data */
} qkv_tally;

typedef struct qkv_task {
    const char *name;
    const char *help; /* what it learns, in a few words; NULL: it cannot be trained */
    const char *use;  /* the command that uses a model, its folder at %s */
    qkv_shape shape;
    qkv_corpus_shape corpus; /* what its files look like */
    qkv_framing framing;
    const qkv_recipe *recipe;
    /* Finds what of the configuration the training rows decide; NULL: nothing. */
    void (*settle)(const qkv_encoded *train, qkv_config *c);
    int sides;         /* of an example */
    unsigned columns;  /* beside the ids, whatever the configuration: bits of qkv_column */
    bool stream;       /* trains on windows of joined text */
    bool whole_words;  /* may want to know which tokens continue a word (qkv_task_words) */
    bool one_view;     /* two passes over an example see different texts: no r_drop */
    const char *unit;  /* what is counted as right: "examples", "tokens"; NULL: nothing is */
    bool counts_right; /* the share of right answers is what a person asks for; else the loss */
    const struct qkv_companion *const *companions; /* those it may have (companion.h), NULL at the
                                                      end; NULL: none */
    /* How good a validation is, the higher the better; NULL: the lower loss is. */
    double (*score)(const qkv_config *c, double loss, double right);
    /* Puts the examples into a batch in t's arena. Errors go to the tape. */
    void (*assemble)(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out);
    /* The loss of a batch (1×1, a root of backward): the sum over its targets. */
    qkv_tensor *(*loss)(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec, const qkv_batch *b,
                        int64_t *n_right);
    /* Counts the answers to an assembled batch; NULL: by the loss alone. */
    qkv_status (*count)(qkv_tape *t, qkv_model *m, const qkv_batch *b, qkv_tally *sum);
} qkv_task;

typedef enum qkv_task_kind {
#define TASK(id, name) QKV_TASK_##id,
#include "task/tasks.def"
#undef TASK
    QKV_TASK_COUNT
} qkv_task_kind;

/* The row of a configuration's task. */
const qkv_task *qkv_task_of(const qkv_config *c);
/* Row i of the table; NULL past its end (qkv_task_row, for programs, leaves out those that cannot
 * be trained). */
const qkv_task *qkv_task_at(int i);
static inline bool qkv_task_trains(const qkv_task *task) {
    return task->loss != NULL;
}

/* What a task needs to know of a tokenizer and a configuration. */
qkv_task_spec qkv_task_spec_of(const qkv_tokenizer *tok, const qkv_config *config);
/* Refuses a tokenizer that tells more segments apart in a pair than the configuration has. */
qkv_status qkv_task_check_pairs(const qkv_tokenizer *tok, const qkv_config *config);
/* How a task's texts become ids. */
qkv_tokenise_spec qkv_tokenise_spec_of(const qkv_config *config);

/* What stands around a side of this task: 0 the encoder's (or a decoder's alone), 1 a decoder's
 * that has an encoder. Training and use ask here, so that they agree. */
qkv_frame qkv_task_frame(const qkv_task *task, const qkv_task_spec *spec, int side);

/* Which tokens continue the word of the token before (one per token; qkv_free): "##" says so, "▁"
 * and "Ġ" (a blank) say the opposite; with other tokenizers each token is a word. */
qkv_status qkv_task_words(const qkv_tokenizer *tok, const qkv_task_spec *spec, bool **out);

/* Assembles and runs one batch forward. */
qkv_status qkv_task_forward(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec,
                            const qkv_batcher *b, const int64_t *examples, int64_t n,
                            qkv_loss_out *out);

/* Runs one batch in EVAL mode and counts its answers. */
qkv_status qkv_task_count(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec,
                          const qkv_batcher *b, const int64_t *examples, int64_t n, qkv_tally *sum);

/* ---- for the tasks ---- */

/* Counts the answers that logits (n rows of sum->classes) give to the batch's n targets: one for
 * each sequence, or for each of its target_rows. A target of −1 is a label that the model does not
 * know: no answer is right. Logits become probabilities. */
qkv_status qkv_task_count_classes(qkv_tensor *logits, const qkv_batch *b, qkv_tally *sum);

/* Lays sequences out one after another: `extra` rows more for each than side `side` has. Returns
 * the ids to be filled (out->ids) and sets layout and rows; NULL after an error on the tape. */
int32_t *qkv_task_layout(qkv_tape *t, const qkv_batcher *b, const int64_t *examples, int64_t n,
                         int side, int64_t extra, qkv_tokens *out);

/* The texts of the examples as an encoder reads them, with their columns; false after an error on
 * the tape. */
bool qkv_task_read(qkv_tape *t, const qkv_batcher *b, const int64_t *examples, int64_t n,
                   qkv_batch *out);

/* Fills in the columns of `out` that the examples have, for the tokens of their first side. */
void qkv_task_columns(qkv_tape *t, const qkv_batcher *b, const int64_t *examples, int64_t n,
                      qkv_tokens *out);

/* The vocabulary's cross-entropy of hidden rows x against the batch's targets,
 * smoothed in training. */
qkv_tensor *qkv_task_vocab_loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec,
                                const qkv_batch *b, qkv_tensor *x, int64_t *n_right);

#endif
