/* The inside of a tokenizer: a pipeline of steps held as data.
 *
 *     text ─ added tokens cut out ─► normalizer steps ─► added tokens again ─► pre-tokenizer steps
 *          ─► model ─► template ─► ids
 *     ids ─ token strings ─► decoder steps ─► text
 *
 * Each stage is a flat array of steps (a "Sequence" of the file is just several steps); a step is a
 * row of its stage's .def table and the arguments that its parse function made. A stage's own JSON
 * is kept as it was given: it is what the writer writes, and the way to build a tokenizer by hand
 * or by training:
 *
 *     QKV_TRY(qkv_tokenizer_new(&tok));
 *     QKV_TRY(qkv_tokenizer_set_stage(tok, QKV_STAGE_PRETOKENIZER,
 *                                     "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"));
 *     QKV_TRY(qkv_tokenizer_set_bpe(tok, tokens, n, merges, n_merges, &(qkv_bpe_options){0}));
 *     QKV_TRY(qkv_tokenizer_add_token(
 *         tok, &(qkv_added){.text = "<pad>", .len = 5, .id = 0, .special = true}));
 *     QKV_TRY(qkv_tokenizer_finish(tok));
 *
 * A tokenizer is constant after qkv_tokenizer_finish; what encoding needs to write lies in a
 * qkv_scratch, of which the tokenizer keeps a pool, so that threads do not share any. */
#ifndef QKV_TEXT_PIPELINE_H
#define QKV_TEXT_PIPELINE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/json.h"
#include "text/tokenizer.h"
#include "text/trie.h"
#include "text/unicode.h"
#include "text/vocab.h"

#define QKV_TEXT_MAX   (1u << 30) /* bytes of one text, also after normalisation */
#define QKV_ADDED_MAX  65536u     /* added tokens */
#define QKV_MERGES_MAX (8u << 20)
#define QKV_STEPS_MAX  64 /* steps of a stage */

typedef struct qkv_scratch qkv_scratch;
typedef struct qkv_text_step qkv_text_step;
typedef struct qkv_text_steps qkv_text_steps;

/* ---- text under work ---- */

/* A stretch of text that a splitter found, or one between two of those. */
typedef struct qkv_stretch {
    uint32_t begin, end;
    bool hit;
} qkv_stretch;

typedef struct qkv_piece {
    uint32_t begin, end; /* in the work's text */
} qkv_piece;

/* Text on its way through normalizer and pre-tokenizer. Offsets into the original are kept per
 * byte, only when asked for. */
typedef struct qkv_draft {
    const char *text; /* a view: of the caller's text until a step rewrites it */
    size_t len;
    bool track;                /* keep from, to */
    const uint32_t *from, *to; /* per byte: begin and end of the original bytes it stands for; NULL
                                  when not tracked */
    bool at_start;             /* this text begins where the whole text began */
    QKV_VEC(qkv_piece)
    pieces, old;            /* the pre-tokenizer's result; `old` is its input while a step runs */
    struct qkv_draft_side { /* two buffers: one holds the text, the other takes a step's output */
        qkv_buf text;
        QKV_VEC(uint32_t) from, to;
    } side[2];
    int out;                        /* the side that is written to */
    size_t most;                    /* bytes that steps may make of the text */
    QKV_VEC(qkv_stretch) stretches; /* of one piece, while it is split */
    qkv_uchars chars;               /* characters of a stretch, for the normal forms */
} qkv_draft;

/* Begins with this text, which stood at `base` of the whole one. */
qkv_status qkv_draft_start(qkv_draft *w, const char *text, size_t len, size_t base, bool track);
/* A step that rewrites: begin, then put output in order, then end (which makes the output the
 * text). */
void qkv_draft_begin(qkv_draft *w);
/* Appends n bytes that stand for bytes begin … end − 1 of the current text (begin == end: inserted
 * there). */
void qkv_draft_put(qkv_draft *w, const char *bytes, size_t n, size_t begin, size_t end);
/* Appends bytes begin … end − 1 of the current text unchanged. */
void qkv_draft_keep(qkv_draft *w, size_t begin, size_t end);
void qkv_draft_put_char(qkv_draft *w, int32_t cp, size_t begin, size_t end);
size_t qkv_draft_size(const qkv_draft *w); /* bytes put so far */
qkv_status qkv_draft_end(qkv_draft *w);
/* Adds begin … end as a piece, if it is not empty. */
qkv_status qkv_draft_cut(qkv_draft *w, size_t begin, size_t end);
void qkv_draft_free(qkv_draft *w);

/* ---- steps ---- */

typedef enum qkv_stage {
    QKV_STAGE_NORMALIZER,
    QKV_STAGE_PRETOKENIZER,
    QKV_STAGE_POSTPROCESSOR,
    QKV_STAGE_DECODER,
    QKV_STAGES
} qkv_stage;

/* A list of strings being decoded: string i is text[start[i] … start[i + 1]). */
typedef struct qkv_strings {
    qkv_buf text;
    QKV_VEC(uint32_t) start; /* n + 1 entries */
    bool within;             /* strings that have text before them, decoded earlier */
} qkv_strings;

typedef struct qkv_text_step_kind {
    const char *name; /* the file's "type" */
    /* Reads the arguments into step->args (allocated from tok's arena); NULL: none. */
    qkv_status (*parse)(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step);
    qkv_status (*normalize)(const qkv_text_step *step, qkv_draft *w); /* rewrites w->text */
    qkv_status (*split)(const qkv_text_step *step, qkv_draft *w);     /* w->old → w->pieces */
    qkv_status (*decode)(const qkv_text_step *step, const qkv_strings *in,
                         qkv_strings *out); /* strings → strings */
    /* Writes the stage that begins with this step in types that Hugging Face has; NULL:
     * it has this one. */
    qkv_status (*translate)(const qkv_text_steps *stage, qkv_buf *out);
    void (*drop)(qkv_text_step *step); /* frees what the arena does not own; may be NULL */
} qkv_text_step_kind;

struct qkv_text_step {
    const qkv_text_step_kind *kind;
    void *args;
};

struct qkv_text_steps {
    qkv_text_step step[QKV_STEPS_MAX];
    size_t n;
    char *json; /* as given; NULL: null */
};

/* ---- template: what the post-processor adds ---- */

typedef struct qkv_template_part {
    int32_t id;   /* ≥ 0: a special token; −1: the text; −2: the second text */
    uint8_t type; /* segment */
} qkv_template_part;

typedef QKV_VEC(qkv_template_part) qkv_template_parts;

typedef struct qkv_template {
    qkv_template_parts single, pair;
    bool trim_offsets; /* offsets leave out the blanks around a token */
    bool set;
} qkv_template;

/* ---- added tokens ---- */

typedef struct qkv_added {
    const char *text;
    size_t len;
    int32_t id;
    bool special;    /* left out by decode unless asked for */
    bool normalized; /* matched after normalisation */
    bool single_word, lstrip, rstrip;
} qkv_added;

typedef struct qkv_matcher { /* leftmost-longest matching of many strings */
    qkv_trie trie;           /* values index tok->added */
    bool first[256];         /* bytes that begin one of them */
    bool any;
} qkv_matcher;

/* ---- models ---- */

typedef struct qkv_merge {
    int32_t left, right, result;
} qkv_merge;

typedef struct qkv_tokenizer_model {
    const char *name;
    qkv_status (*parse)(qkv_tokenizer *tok, qkv_json_at json);
    /* Called by finish, when all stages are known. */
    qkv_status (*prepare)(qkv_tokenizer *tok);
    /* Appends the tokens of one word; ranges, when out->begin is there, in bytes of the word plus
     * `at`. */
    qkv_status (*encode)(const qkv_tokenizer *tok, qkv_scratch *s, const char *word, size_t n,
                         uint32_t at, qkv_encoding *out);
    void (*write)(const qkv_tokenizer *tok,
                  qkv_json_out *json); /* members of the "model" object after its type */
    void (*drop)(qkv_tokenizer *tok);
} qkv_tokenizer_model;

/* Truncation and padding as the file states them. */
typedef struct qkv_limits {
    char *truncation, *padding; /* their JSON, NULL: null */
    bool truncate;
    size_t max_length;
    int strategy, truncate_left; /* places among the names in limits.c */
    size_t pad_to, pad_multiple; /* 0: to the longest of a batch; to any length */
    int32_t pad_id;
    uint8_t pad_type;
    int pad_left;
} qkv_limits;

struct qkv_tokenizer {
    qkv_arena arena;        /* everything below that has no owner of its own */
    qkv_vocab vocab;        /* the model's tokens and the added ones */
    size_t n_model_entries; /* of vocab.entries: the model's own */
    QKV_VEC(qkv_added) added;
    qkv_matcher raw, normalized; /* added tokens by where they are matched */
    uint8_t *is_special;         /* by id, 0 or 1 */
    qkv_text_steps stage[QKV_STAGES];
    qkv_template template;
    const qkv_tokenizer_model *model_kind;
    void *model;     /* qkv_bpe, qkv_unigram, …: see models.h */
    bool byte_level; /* the last pre-tokenizer step is ByteLevel: words stay bytes, the model knows
                        them as bytes */
    int32_t special[QKV_TOK_SPECIALS];
    qkv_limits limits;
    qkv_text unk_surface; /* what the unknown token is in a decoded text; data NULL: its own name */
    void *pool;           /* free scratches */
    atomic_flag pool_lock;
    bool track_always; /* a step asks where its text began */
};

/* ---- making a tokenizer ---- */

qkv_status qkv_tokenizer_new(qkv_tokenizer **out); /* no steps, no model yet */
/* Replaces a stage by the one this JSON text states; NULL or "null": none. Unknown types are
 * refused by name. */
qkv_status qkv_tokenizer_set_stage(qkv_tokenizer *tok, qkv_stage stage, const char *json);
/* text is copied; an id that the model already has must be the same token's. */
qkv_status qkv_tokenizer_add_token(qkv_tokenizer *tok, const qkv_added *added);
/* Checks the whole, builds the matchers, finds the special roles. After this the tokenizer is
 * constant. */
qkv_status qkv_tokenizer_finish(qkv_tokenizer *tok);

typedef struct qkv_bpe_options {
    const char *unk, *prefix,
        *suffix; /* NULL: none; prefix of a continuing part, suffix of a word's last part */
    bool fuse_unk, byte_fallback, ignore_merges;
    double dropout;
} qkv_bpe_options;

/* Tokens' ids are their places; tokens[i].data NULL leaves id i free; tokens NULL: the vocabulary
 * is in place already. Merges in order of rank, results in the vocabulary. For a byte-level
 * pre-tokenizer the tokens are written in its alphabet (qkv_byte_level_name), as in the file. */
qkv_status qkv_tokenizer_set_bpe(qkv_tokenizer *tok, const qkv_text *tokens, size_t n,
                                 const qkv_merge *merges, size_t n_merges,
                                 const qkv_bpe_options *options);
/* unk −1: no unknown token. */
qkv_status qkv_tokenizer_set_unigram(qkv_tokenizer *tok, const qkv_text *tokens,
                                     const double *scores, size_t n, int32_t unk,
                                     bool byte_fallback);
qkv_status qkv_tokenizer_set_wordpiece(qkv_tokenizer *tok, const qkv_text *tokens, size_t n,
                                       const char *unk, const char *prefix, size_t max_chars);
qkv_status qkv_tokenizer_set_wordlevel(qkv_tokenizer *tok, const qkv_text *tokens, size_t n,
                                       const char *unk);

/* Bytes in the alphabet of byte-level vocabularies, and back (false: not all characters are of the
 * alphabet). */
void qkv_byte_level_name(const char *bytes, size_t n, qkv_buf *out);
bool qkv_byte_level_bytes(const char *name, size_t n, qkv_buf *out);

/* ---- running parts of it: training and explanations ---- */

qkv_scratch *
qkv_scratch_take(const qkv_tokenizer *tok); /* NULL (message set) when there is no memory */
void qkv_scratch_give(const qkv_tokenizer *tok, qkv_scratch *s);
qkv_draft *qkv_scratch_draft(qkv_scratch *s);

/* Normalizer and pre-tokenizer on one text without added tokens: leaves text and pieces in the
 * scratch's work. Needs no model and no finish, only stages. A byte-level step leaves bytes as they
 * are. */
qkv_status qkv_tokenizer_words(const qkv_tokenizer *tok, qkv_scratch *s, const char *text,
                               size_t len);

#endif
