/* Beam search; see beam.h. The rows of a step are the open hypotheses of all texts, text after
 * text; a text that is finished leaves the batch.
 *
 * What was written is kept as a tree: entry (step, row) holds the token, its log-probability and
 * the row of the step before. A text is read off it, from its end, once it is finished. */
#include "decode/beam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "kern/kern.h"

typedef struct finished {
    int32_t step, row; /* its last entry but one; step −1: there is none */
    int32_t last; /* its last token: the end, or one more of the text; −1: nothing could follow */
    real last_log_prob;
    int32_t n; /* tokens, the end counted */
    double log_prob, score;
} finished;

typedef struct text {
    const qkv_search_item *item;
    int32_t row0, open; /* its rows of the present step */
    int32_t places;     /* left for open hypotheses */
    finished *done;     /* best first */
    int32_t n_done;
    const int32_t *place; /* of each allowed token among those that are scored; NULL: all are */
} text;

typedef struct candidate {
    double total; /* log-probability of the whole hypothesis */
    real log_prob;
    int32_t id;
} candidate;

typedef struct beam {
    qkv_session *session;
    const qkv_search_spec *spec;
    text *texts;
    int32_t n_texts, width, steps; /* width: most rows of a step */
    /* the tree, (steps, width) */
    int32_t *token, *parent;
    real *log_prob;
    real *attention; /* (steps, width, longest): what each row saw when it chose; NULL: not asked */
    int32_t longest; /* source */
    /* by row of the present step */
    int32_t *owner, *from, *ids;
    double *total, *next_total;
    real *lse;
    real *narrowed; /* (width, most_allowed): the logits of what each row's text allows; or NULL */
    int32_t most_allowed;
    candidate *found; /* (width, beam), best first */
    int32_t *n_found;
} beam;

/* ---- scores ---- */

static double score_of(const qkv_search_spec *spec, double log_prob, int32_t n) {
    switch (spec->penalty) {
    case QKV_LENGTH_GNMT:
        return log_prob / pow((5.0 + n) / 6, spec->alpha);
    case QKV_LENGTH_AVERAGE:
        return log_prob / pow(n, spec->alpha);
    case QKV_LENGTH_NONE:
        break;
    }
    return log_prob;
}

/* The best score that an open hypothesis of n tokens can still get: penalties rise or fall with the
 * length, so one of the two ends of what is possible is the best. */
static double best_possible(const qkv_search_spec *spec, double log_prob, int32_t n, int32_t most) {
    return fmax(score_of(spec, log_prob, n + 1), score_of(spec, log_prob, most));
}

static const real *attention_at(const beam *b, int32_t step, int32_t row) {
    return b->attention + ((int64_t)step * b->width + row) * b->longest;
}

/* GNMT's coverage: what no token attends to costs. */
static double coverage_of(const beam *b, const text *x, const finished *f) {
    double sum = 0;
    for (int32_t j = 0; j < x->item->n_src; j++) {
        double seen = f->last >= 0 ? (double)attention_at(b, f->step + 1, f->row)[j] : 0;
        for (int32_t step = f->step, row = f->row; step >= 0; step--) {
            row = b->parent[(int64_t)step * b->width + row];
            seen += (double)attention_at(b, step, row)[j];
        }
        sum += log(fmax(fmin(seen, 1), 1e-10));
    }
    return b->spec->coverage * sum;
}

static void finish(beam *b, text *x, finished f) {
    f.score = score_of(b->spec, f.log_prob, f.n);
    if (b->spec->coverage > 0 && b->attention) f.score += coverage_of(b, x, &f);
    int32_t at = x->n_done++;
    for (; at > 0 && x->done[at - 1].score < f.score; at--) x->done[at] = x->done[at - 1];
    x->done[at] = f;
    x->places--;
}

/* Can no open hypothesis (the best has `log_prob`, all have n tokens) enter the n best any more? */
static bool decided(const beam *b, const text *x, double log_prob, int32_t n) {
    const int32_t wanted = b->spec->nbest;
    return x->n_done >= wanted &&
           best_possible(b->spec, log_prob, n, x->item->max_length) <= x->done[wanted - 1].score;
}

/* ---- one row: which tokens may follow, and the best of them ---- */

static int by_id(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* Does the hypothesis end in the first n ids of `phrase`? */
static bool ends_in(const beam *b, int32_t step, int32_t row, const int32_t *phrase, int32_t n) {
    for (; n > 0; n--, step--) {
        if (step < 0) return false;
        const int64_t entry = (int64_t)step * b->width + row;
        if (b->token[entry] != phrase[n - 1]) return false;
        row = b->parent[entry];
    }
    return true;
}

/* The scores of what may follow a row: all, or those of its text's allowed tokens, picked out. */
static real *scores_of(const beam *b, int32_t row, int64_t *n) {
    const qkv_session *s = b->session;
    const text *x = &b->texts[b->owner[row]];
    real *all = s->logits + row * s->scored;
    *n = x->item->allowed ? x->item->n_allowed : s->vocab;
    if (!x->place) return all;
    real *own = b->narrowed + (int64_t)row * b->most_allowed;
    for (int64_t k = 0; k < *n; k++) own[k] = all[x->place[k]];
    return own;
}

/* Where a token stands among the scores of its text; −1: it is not allowed. */
static int64_t place_of(const qkv_search_item *item, int32_t id) {
    if (!item->allowed) return id;
    const int32_t *at = bsearch(&id, item->allowed, (size_t)item->n_allowed, sizeof id, by_id);
    return at ? at - item->allowed : -1;
}

static void forbid_one(const qkv_search_item *item, int32_t id, real *scores) {
    const int64_t at = place_of(item, id);
    if (at >= 0) scores[at] = -INFINITY;
}

/* What would repeat n tokens: each token that came after the last n − 1 before. */
static void forbid_repeats(const beam *b, const qkv_search_item *item, int32_t step, int32_t row,
                           real *scores) {
    const int32_t n = b->spec->no_repeat;
    int32_t last[QKV_NO_REPEAT_MAX];
    if (step < n) return;
    for (int32_t k = n - 1, at = step - 1, here = row; k > 0; k--, at--) {
        const int64_t entry = (int64_t)at * b->width + here;
        last[k - 1] = b->token[entry];
        here = b->parent[entry];
    }
    for (int32_t at = step - 1, here = row; at >= n - 1; at--) {
        const int64_t entry = (int64_t)at * b->width + here;
        here = b->parent[entry];
        if (ends_in(b, at - 1, here, last, n - 1)) forbid_one(item, b->token[entry], scores);
    }
}

static void forbid(const beam *b, const qkv_search_item *item, int32_t step, int32_t row,
                   real *scores) {
    const qkv_search_spec *spec = b->spec;
    if (spec->eos >= 0 && step < spec->min_length) forbid_one(item, spec->eos, scores);
    const qkv_phrases *p = &spec->forbidden;
    for (int32_t i = 0; i < p->n; i++) {
        const int32_t *ids = p->ids + p->start[i], len = p->start[i + 1] - p->start[i];
        if (len > 0 && ends_in(b, step - 1, row, ids, len - 1))
            forbid_one(item, ids[len - 1], scores);
    }
    if (spec->no_repeat > 0) forbid_repeats(b, item, step, row, scores);
}

/* The `wanted` likeliest tokens, best first; of equals the one with the lower id (`ids` of the
 * scores ascend; NULL: 0, 1, 2 …). After the first few hardly any score is still of interest. */
static int32_t take_best(const real *logits, int64_t n_scores, const int32_t *ids,
                         const bool *never, int32_t wanted, candidate *out) {
    const qkv_kern *kern = qkv_kern_get();
    int32_t n = 0;
    real least = -INFINITY;
    for (int64_t k = 0;; k++) {
        k += kern->find_above(logits + k, n_scores - k, least);
        if (k >= n_scores) return n;
        const int32_t id = ids ? ids[k] : (int32_t)k;
        if (never && never[id]) continue;
        int32_t at = n < wanted ? n++ : n - 1;
        for (; at > 0 && out[at - 1].log_prob < logits[k]; at--) out[at] = out[at - 1];
        out[at] = (candidate){.log_prob = logits[k], .id = id};
        if (n == wanted) least = out[n - 1].log_prob;
    }
}

/* All that is done with a row's scores, while they are in the cache. */
static void extend_row(beam *b, int32_t step, int32_t row) {
    const text *x = &b->texts[b->owner[row]];
    int64_t n_scores;
    real *scores = scores_of(b, row, &n_scores);
    b->lse[row] = qkv_kern_get()->log_sum_exp(scores, n_scores);
    candidate *found = b->found + (int64_t)row * b->spec->beam;
    int32_t n = 1;
    if (step < x->item->n_prefix) {
        const int32_t id = x->item->prefix[step];
        found[0] = (candidate){.log_prob = scores[place_of(x->item, id)], .id = id};
    } else {
        forbid(b, x->item, step, row, scores);
        n = take_best(scores, n_scores, x->item->allowed, b->spec->never, x->places, found);
    }
    for (int32_t i = 0; i < n; i++) {
        found[i].log_prob -= b->lse[row];
        found[i].total = b->total[row] + (double)found[i].log_prob;
    }
    b->n_found[row] = n;
}

/* ---- one text: the best extensions of its rows take the free places ---- */

/* The row whose next candidate is the best; −1: there is none. `used` candidates of each are
 * gone. */
static int32_t best_row(const beam *b, const text *x, const int32_t *used) {
    int32_t best = -1;
    double top = -INFINITY;
    for (int32_t row = x->row0; row < x->row0 + x->open; row++) {
        const candidate *c = b->found + (int64_t)row * b->spec->beam + used[row];
        if (used[row] < b->n_found[row] && c->total > top) {
            best = row;
            top = c->total;
        }
    }
    return best;
}

/* A new row of the next step. */
static void open_row(beam *b, int32_t step, int32_t to, int32_t from, const candidate *c) {
    const int64_t entry = (int64_t)step * b->width + to;
    b->token[entry] = b->ids[to] = c->id;
    b->parent[entry] = b->from[to] = from;
    b->log_prob[entry] = c->log_prob;
    b->next_total[to] = c->total;
}

/* Moves a text on by one token; its new rows begin at `row0`. Returns how many there are: 0 when
 * the text is finished. */
static int32_t advance(beam *b, text *x, int32_t step, int32_t row0, int32_t *used) {
    const int32_t places = x->places;
    int32_t open = 0;
    for (int32_t row = x->row0; row < x->row0 + x->open; row++) used[row] = 0;
    for (int32_t taken = 0; taken < places; taken++) {
        const int32_t row = best_row(b, x, used);
        if (row < 0) break;
        const candidate *c = b->found + (int64_t)row * b->spec->beam + used[row]++;
        /* The last entry is not in the tree: other texts' rows take its place there. */
        if (c->id == b->spec->eos || step + 1 == x->item->max_length)
            finish(b, x,
                   (finished){.step = step - 1,
                              .row = row,
                              .last = c->id,
                              .last_log_prob = c->log_prob,
                              .n = step + 1,
                              .log_prob = c->total});
        else
            open_row(b, step, row0 + open++, row, c);
    }
    /* Nothing may follow (all is forbidden): what was written so far is the text. */
    if (open == 0 && x->n_done == 0)
        finish(b, x,
               (finished){.step = step - 1,
                          .row = x->row0,
                          .last = -1,
                          .n = step,
                          .log_prob = b->total[x->row0]});
    if (open == 0 || x->places == 0 || decided(b, x, b->next_total[row0], step + 1)) return 0;
    return open;
}

/* ---- the search ---- */

/* Keeps what the rows attend to while they choose this step's tokens. */
static void keep_attention(beam *b, int32_t step) {
    for (int32_t row = 0; row < b->session->n; row++) {
        int32_t n;
        const real *seen = qkv_cache_watched(b->session->cache, row, &n);
        real *to = b->attention + ((int64_t)step * b->width + row) * b->longest;
        for (int32_t j = 0; j < b->longest; j++) to[j] = j < n ? seen[j] : 0;
    }
}

static qkv_status extend(beam *b, int32_t step) {
    const qkv_session *s = b->session;
    if (b->attention) keep_attention(b, step);
    QKV_PARALLEL_FOR_IF(s->n * s->scored >= QKV_PARALLEL_FROM)
    for (int32_t row = 0; row < s->n; row++) extend_row(b, step, row);
    for (int32_t row = 0; row < s->n; row++)
        if (!isfinite((double)b->lse[row]))
            return qkv_fail(QKV_NUMERIC,
                            "decoding: the scores of token %d are not finite; the "
                            "model's weights are damaged or its training diverged",
                            (int)step + 1);
    return QKV_OK;
}

/* One token more for every text; *rows says how many rows go on. */
static void advance_all(beam *b, int32_t step, int32_t *rows) {
    *rows = 0;
    int32_t *used = b->owner; /* its rows are read for the last time in extend_row */
    for (int32_t i = 0; i < b->n_texts; i++) {
        text *x = &b->texts[i];
        if (x->open == 0) continue;
        const int32_t open = advance(b, x, step, *rows, used);
        x->row0 = *rows;
        x->open = open;
        *rows += open;
    }
    for (int32_t i = 0; i < b->n_texts; i++)
        for (int32_t k = 0; k < b->texts[i].open; k++) b->owner[b->texts[i].row0 + k] = i;
    double *swap = b->total;
    b->total = b->next_total;
    b->next_total = swap;
}

static qkv_status search(beam *b) {
    for (int32_t step = 0;; step++) {
        int32_t rows;
        QKV_TRY(extend(b, step));
        advance_all(b, step, &rows);
        if (rows == 0) return QKV_OK;
        QKV_TRY(qkv_session_select(b->session, b->from, rows));
        QKV_TRY(qkv_session_step(b->session, b->ids));
    }
}

/* ---- beginning and end ---- */

static qkv_status check(const qkv_search_spec *spec, const qkv_search_item *items, int32_t n,
                        int64_t vocab) {
    if (n < 1 || spec->beam < 1 || spec->nbest < 1 || spec->nbest > spec->beam)
        return qkv_fail(QKV_USAGE,
                        "beam search: %d texts, a beam of %d, the %d best; the beam must "
                        "hold at least one and as many as are wanted",
                        (int)n, (int)spec->beam, (int)spec->nbest);
    if (spec->beam > QKV_BEAM_MAX || n > INT32_MAX / spec->beam)
        return qkv_fail(QKV_USAGE, "beam search: a beam of %d for %d texts; the widest is %d",
                        (int)spec->beam, (int)n, QKV_BEAM_MAX);
    if (spec->no_repeat < 0 || spec->no_repeat > QKV_NO_REPEAT_MAX)
        return qkv_fail(QKV_USAGE,
                        "beam search: no %d tokens twice; 0 (off) to %d can be asked for",
                        (int)spec->no_repeat, QKV_NO_REPEAT_MAX);
    for (int32_t i = 0; i < n; i++) {
        if (items[i].n_begin < 1 || items[i].max_length < 1)
            return qkv_fail(QKV_USAGE,
                            "beam search: text %d begins with no token, or may have none", (int)i);
        for (int32_t k = 0; k < items[i].n_allowed; k++)
            if (items[i].allowed[k] < 0 || items[i].allowed[k] >= vocab ||
                (k > 0 && items[i].allowed[k] <= items[i].allowed[k - 1]))
                return qkv_fail(QKV_USAGE, "beam search: allowed tokens must ascend, below %lld",
                                (long long)vocab);
        for (int32_t k = 0; k < items[i].n_prefix; k++)
            if (items[i].prefix[k] < 0 || items[i].prefix[k] >= vocab ||
                place_of(&items[i], items[i].prefix[k]) < 0)
                return qkv_fail(QKV_USAGE,
                                "beam search: there is no token %d, or it is not allowed",
                                (int)items[i].prefix[k]);
    }
    for (int32_t k = 0; spec->forbidden.n > 0 && k < spec->forbidden.start[spec->forbidden.n]; k++)
        if (spec->forbidden.ids[k] < 0 || spec->forbidden.ids[k] >= vocab)
            return qkv_fail(QKV_USAGE, "beam search: there is no token %d to forbid",
                            (int)spec->forbidden.ids[k]);
    return QKV_OK;
}

/* The tokens that any text allows are scored, each text's are found among them: what a text gets
 * does not depend on the others. */
static qkv_status narrow(beam *b, const qkv_search_item *items, qkv_arena *arena) {
    const int64_t vocab = b->session->vocab;
    bool any = false, all = false;
    for (int32_t i = 0; i < b->n_texts; i++) {
        const int32_t n = items[i].allowed ? items[i].n_allowed : (int32_t)vocab;
        if (n > b->most_allowed) b->most_allowed = n;
        if (items[i].allowed)
            any = true;
        else
            all = true;
    }
    if (!any) return qkv_session_limit(b->session, NULL, 0);
    int32_t *at, *ids, n = 0;
    QKV_TRY_ALLOC(at = qkv_arena_zalloc(arena, (size_t)vocab * sizeof *at));
    QKV_TRY_ALLOC(ids = qkv_arena_alloc(arena, (size_t)vocab * sizeof *ids));
    for (int32_t i = 0; i < b->n_texts; i++)
        for (int32_t k = 0; k < items[i].n_allowed; k++) at[items[i].allowed[k]] = 1;
    for (int32_t id = 0; id < vocab; id++)
        if (all || at[id]) at[id] = n, ids[n++] = id;
    QKV_TRY(qkv_session_limit(b->session, ids, n));
    for (int32_t i = 0; i < b->n_texts; i++) {
        int32_t *place;
        if (!items[i].allowed) continue;
        QKV_TRY_ALLOC(place =
                          qkv_arena_alloc(arena, ((size_t)items[i].n_allowed + 1) * sizeof *place));
        for (int32_t k = 0; k < items[i].n_allowed; k++) place[k] = at[items[i].allowed[k]];
        b->texts[i].place = place;
    }
    const size_t scores = (size_t)b->width * (size_t)b->most_allowed;
    QKV_TRY_ALLOC(b->narrowed = qkv_arena_alloc(arena, scores * sizeof *b->narrowed));
    return QKV_OK;
}

static qkv_status allocate(beam *b, const qkv_search_item *items, qkv_arena *arena) {
    const size_t width = (size_t)b->width, beams = (size_t)b->spec->beam;
    const size_t entries = width * (size_t)b->steps;
#define MAKE(field, count)                                                                         \
    QKV_TRY_ALLOC(b->field = qkv_arena_zalloc(arena, (count) * sizeof *b->field))
    MAKE(texts, (size_t)b->n_texts);
    MAKE(token, entries);
    MAKE(parent, entries);
    MAKE(log_prob, entries);
    MAKE(owner, width);
    MAKE(from, width);
    MAKE(ids, width);
    MAKE(total, width);
    MAKE(next_total, width);
    MAKE(lse, width);
    MAKE(found, width * beams);
    MAKE(n_found, width);
    if (b->session->watch) MAKE(attention, entries * (size_t)b->longest);
#undef MAKE
    for (int32_t i = 0; i < b->n_texts; i++) {
        text *x = &b->texts[i];
        *x = (text){.item = &items[i], .row0 = i, .open = 1, .places = b->spec->beam};
        QKV_TRY_ALLOC(x->done = qkv_arena_alloc(arena, (beams + 1) * sizeof *x->done));
        b->owner[i] = i;
    }
    return QKV_OK;
}

/* The sources, or the beginnings, of all items one after another. */
static qkv_status join(const qkv_search_item *items, int32_t n, bool sources, qkv_arena *arena,
                       qkv_tokens *out) {
    int64_t rows = 0;
    for (int32_t i = 0; i < n; i++) rows += sources ? items[i].n_src : items[i].n_begin;
    if (rows > INT32_MAX) return qkv_fail(QKV_USAGE, "beam search: over 2^31 tokens in a batch");
    int32_t *start, *ids;
    QKV_TRY_ALLOC(start = qkv_arena_alloc(arena, ((size_t)n + 1) * sizeof *start));
    QKV_TRY_ALLOC(ids = qkv_arena_alloc(arena, ((size_t)rows + 1) * sizeof *ids));
    start[0] = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t len = sources ? items[i].n_src : items[i].n_begin;
        if (len)
            memcpy(ids + start[i], sources ? items[i].src : items[i].begin,
                   (size_t)len * sizeof *ids);
        start[i + 1] = start[i] + len;
    }
    *out = (qkv_tokens){.layout = {.n = n, .start = start}, .ids = ids, .rows = rows};
    return QKV_OK;
}

/* The columns of the sources, those that they have. */
static qkv_status join_columns(const qkv_search_item *items, int32_t n, qkv_arena *arena,
                               qkv_tokens *src) {
    for (qkv_column c = 0; c < QKV_COLUMNS; c++) {
        if (!items[0].column[c].at) continue;
        qkv_cells *cells;
        QKV_TRY_ALLOC(cells = qkv_arena_alloc(arena, (size_t)n * sizeof *cells));
        for (int32_t i = 0; i < n; i++) cells[i] = items[i].column[c];
        src->column[c] = cells;
    }
    return QKV_OK;
}

static qkv_status begin(beam *b, const qkv_search_item *items, qkv_arena *arena) {
    const bool two_sided = qkv_shape_of(qkv_model_config(b->session->model)->task).encoder;
    int32_t capacity = 1;
    for (int32_t i = 0; i < b->n_texts; i++) {
        const int64_t all = (int64_t)items[i].n_begin + items[i].max_length;
        if (all > INT32_MAX) return qkv_fail(QKV_USAGE, "beam search: texts of over 2^31 tokens");
        if (all > capacity) capacity = (int32_t)all;
    }
    qkv_tokens src, first;
    if (two_sided) QKV_TRY(join(items, b->n_texts, true, arena, &src));
    if (two_sided) QKV_TRY(join_columns(items, b->n_texts, arena, &src));
    QKV_TRY(join(items, b->n_texts, false, arena, &first));
    return qkv_session_begin(b->session, two_sided ? &src : NULL, &first, b->width, capacity);
}

/* Reads a finished text off the tree. */
static qkv_status read_off(const beam *b, const text *x, const finished *f, qkv_arena *arena,
                           qkv_hypothesis *out) {
    const bool ended = f->last == b->spec->eos && f->last >= 0;
    const int32_t n = f->step + 1 + (f->last >= 0 && !ended);
    *out = (qkv_hypothesis){.n = n, .log_prob = f->log_prob, .score = f->score, .ended = ended};
    QKV_TRY_ALLOC(out->ids = qkv_arena_alloc(arena, ((size_t)n + 1) * sizeof *out->ids));
    QKV_TRY_ALLOC(out->log_probs = qkv_arena_alloc(arena, ((size_t)n + 1) * sizeof(real)));
    if (f->last >= 0) {
        out->ids[f->step + 1] = f->last;
        out->log_probs[f->step + 1] = f->last_log_prob;
    }
    const int32_t n_src = b->spec->align && b->attention ? x->item->n_src : 0;
    const size_t line = (size_t)n_src * sizeof(real);
    if (n_src) QKV_TRY_ALLOC(out->attention = qkv_arena_alloc(arena, ((size_t)n + 1) * line));
    if (n_src && f->last >= 0)
        memcpy(out->attention + (f->step + 1) * n_src, attention_at(b, f->step + 1, f->row), line);
    for (int32_t step = f->step, row = f->row; step >= 0; step--) {
        const int64_t entry = (int64_t)step * b->width + row;
        if (n_src)
            memcpy(out->attention + (int64_t)step * n_src, attention_at(b, step, b->parent[entry]),
                   line);
        out->ids[step] = b->token[entry];
        out->log_probs[step] = b->log_prob[entry];
        row = b->parent[entry];
    }
    return QKV_OK;
}

qkv_status qkv_beam_search(qkv_session *s, const qkv_search_spec *spec,
                           const qkv_search_item *items, int32_t n, qkv_arena *arena,
                           qkv_hypothesis *out) {
    QKV_TRY(check(spec, items, n, s->vocab));
    beam b = {.session = s, .spec = spec, .n_texts = n, .width = n * spec->beam};
    for (int32_t i = 0; i < n; i++)
        if (items[i].max_length > b.steps) b.steps = items[i].max_length;
    for (int32_t i = 0; i < n; i++)
        if (items[i].n_src > b.longest) b.longest = items[i].n_src;
    s->watch = b.longest > 0 && (spec->align || spec->coverage > 0);
    QKV_TRY(allocate(&b, items, arena));
    QKV_TRY(narrow(&b, items, arena));
    QKV_TRY(begin(&b, items, arena));
    QKV_TRY(search(&b));
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < spec->nbest; k++) {
            qkv_hypothesis *h = &out[(int64_t)i * spec->nbest + k];
            *h = (qkv_hypothesis){0};
            if (k < b.texts[i].n_done)
                QKV_TRY(read_off(&b, &b.texts[i], &b.texts[i].done[k], arena, h));
        }
    return QKV_OK;
}
