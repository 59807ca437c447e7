/* A model folder, opened: what the public functions share. */
#ifndef QKV_USE_TEXTMODEL_H
#define QKV_USE_TEXTMODEL_H

#include "data/tokenise.h"
#include "data/spans.h"
#include "decode/session.h"
#include "folder/talk.h"
#include "task/shortlist.h"
#include "task/task.h"

struct qkv_text_model {
    qkv_model *model;
    qkv_tokenizer *tokenizer;
    qkv_labels labels;
    qkv_span_scheme spans; /* of a tagger: what its labels say */
    qkv_task_spec spec;
    bool pairs;              /* texts are pairs, a TAB between the two */
    struct qkv_idle *idle;   /* what calls that are over left for the next ones: all that changes */
    qkv_shortlist shortlist; /* of translators that have one; else zeros */
    qkv_talk talk;           /* of language models: how they converse, what ends their texts */
    int32_t ends[QKV_TALK_ENDS]; /* those that the vocabulary has */
    int32_t n_ends;
    struct qkv_jinja *chat; /* the template, once prepared; or NULL */
    qkv_trees trees;        /* of texts to come; see qkv_text_model_read_trees */
};

struct qkv_idle *qkv_idle_new(void);
void qkv_idle_free(struct qkv_idle *p);

/* A tape for one call: a model is read only, so any number of threads may use one,
 * each with a tape of its own. */
qkv_status qkv_text_model_take_tape(const qkv_text_model *m, qkv_tape **out);
void qkv_text_model_give_tape(const qkv_text_model *m, qkv_tape *t);

/* The model whose derivatives can be taken: its own, or where that is quantized another with the
 * same weights as reals, which is made when it is first asked for. */
qkv_status qkv_text_model_plain(const qkv_text_model *m, qkv_model **out);

/* Refuses to do with the model what it was not made for ("classify"), and says what uses it. */
qkv_status qkv_other_use(const qkv_text_model *m, const char *wanted);

/* Counts texts that were cut; see qkv_text_model_cut. */
void qkv_text_model_count_cut(const qkv_text_model *m, size_t n);

/* A session, warm from an earlier call where there is one; and back. The model stays open to other
 * threads: of two that ask at once one gets a new session. */
qkv_status qkv_text_model_take_session(const qkv_text_model *m, qkv_session **out);
void qkv_text_model_give_session(const qkv_text_model *m, qkv_session *s);

/* How texts become ids (qkv_tokenise_spec_of), the trees too, for a model that has structural
 * positions: there must be some then. */
qkv_status qkv_tokenise_spec_trees(qkv_tokenise_spec *spec, const qkv_trees *trees);

/* Who hears how far the training of a tokenizer is: a qkv_tok_train's progress. */
typedef struct qkv_tokenizer_telling {
    void (*progress)(void *user, const char *stage, double share);
    void *user;
} qkv_tokenizer_telling;

/* A tokenizer file or folder to open, or the name of a kind to train on the corpus,
 * with config's vocab_size. */
qkv_status qkv_tokenizer_for(const char *wanted, const qkv_corpus *corpus, const qkv_config *config,
                             bool lowercase, const qkv_tokenizer_telling *telling,
                             qkv_tokenizer **out);

/* Beside the files that every folder has: what a translator may write, by source token. */

#endif
