/* Beam search: the N best continuations found by keeping, at each length, the N likeliest.
 *
 * A beam has N places. At each step every open hypothesis is extended by every token, and the best
 * extensions by log-probability fill the free places; one that ends keeps its place for good. So a
 * beam of 1 is greedy search, and a beam as wide as there are texts is exhaustive search. Finished
 * hypotheses are ranked by
 *
 *     score = L / penalty(n) + coverage,    L = Σ log p(token),  n tokens, the end counted
 *     gnmt: ((5 + n) / 6)^α    average: n^α    none: 1
 *     coverage = β·Σ_j log min(1, Σ_i a_ij),   a_ij: how much token i attends to source token j
 *
 * The search of a text ends early only when that changes nothing: L can only fall and coverage is
 * at most 0, so an open hypothesis can reach at best L / penalty(longest). When that is no better
 * than the worst wanted finished score, no open hypothesis can still enter the n best. */
#ifndef QKV_DECODE_BEAM_H
#define QKV_DECODE_BEAM_H

#include "decode/session.h"

#define QKV_BEAM_MAX      4096
#define QKV_NO_REPEAT_MAX 64 /* tokens */

/* Sequences of ids: those of i are ids[start[i] … start[i + 1] − 1]. */
typedef struct qkv_phrases {
    int32_t n;
    const int32_t *start, *ids;
} qkv_phrases;

typedef struct qkv_search_spec {
    int32_t beam, nbest; /* nbest ≤ beam */
    qkv_length_penalty penalty;
    double alpha, coverage; /* α, β */
    int32_t eos;            /* −1: nothing ends a text but its longest length */
    int32_t min_length;     /* tokens before the end */
    const bool *never;      /* by id: not to be written; NULL: all may be */
    qkv_phrases forbidden;  /* token sequences that must not occur */
    int32_t no_repeat;      /* n > 0: no n tokens that stand together occur twice; the prefix may */
    bool align;             /* fill the hypotheses' attention */
} qkv_search_spec;

/* One text to write. */
typedef struct qkv_search_item {
    const int32_t *src, *begin, *prefix; /* the source (encoder-decoders), what the text goes on
                                            from, how it must begin */
    int32_t n_src, n_begin, n_prefix;
    int32_t max_length;            /* tokens to write at most */
    qkv_cells column[QKV_COLUMNS]; /* of the source, as in qkv_tokens; of all items or of none */
    const int32_t
        *allowed; /* the tokens that may be written, ascending, the prefix and the end among
                               them; probabilities are over these alone. NULL: all may be */
    int32_t n_allowed;
} qkv_search_item;

typedef struct qkv_hypothesis {
    int32_t *ids; /* what was written, without the end */
    int32_t n;
    real *log_probs; /* of each, and of the end where there is one */
    double log_prob, score;
    bool ended;      /* false: stopped at the longest length */
    real *attention; /* (n, n_src): row i is how token i attended to the source; NULL: not asked */
} qkv_hypothesis;

/* Writes n texts side by side. out: nbest per text, best first; those that there are not have ids
 * NULL. All in the arena. */
qkv_status qkv_beam_search(qkv_session *s, const qkv_search_spec *spec,
                           const qkv_search_item *items, int32_t n, qkv_arena *arena,
                           qkv_hypothesis *out);

#endif
