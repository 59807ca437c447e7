/* TER (Snover et al. 2006) = edits / words of the reference: the fewest insertions, deletions and
 * substitutions of words, after moves of whole phrases, which count one edit each.
 *
 * The best set of moves is hard to find, so Tercom takes the best one again and again, by rules of
 * thumb, and looks only near the diagonal of the matrix of distances. Figures are comparable only
 * where those rules are the same, so they are kept here to the letter, as sacrebleu has them:
 *
 *   - a phrase of at most 10 words that hypothesis and reference share may move, at most 50 words
 *     away, if a word of it is wrong where it stands and where it would go;
 *   - of the moves that are tried the one that lowers the distance most is made, of equal ones the
 *     longest, then the earliest, then the one with the earliest place to go to; it ends when none
 *     lowers it, or after 1,000 that were tried;
 *   - row i of the matrix is computed for the 25 columns on either side of i · |ref| / |hyp|.
 *
 * A move leaves the words before it alone, so only the rows behind are computed again. */
#include "score/score.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>
#include <utf8proc.h>

enum { MOST_WORDS = 10, MOST_FAR = 50, MOST_TRIED = 1000, BEAM = 25, NEVER = 1 << 30 };

typedef enum edit { NOTHING, SUBSTITUTE, DELETE, INSERT } edit;

/* The sequences at hand, and the band of the matrix that is computed. */
typedef struct problem {
    qkv_ter *t;
    qkv_gram hyp, ref;
    int32_t *words; /* the hypothesis as moved so far */
    double ratio;   /* |ref| / |hyp| */
    int32_t beam, width;
} problem;

void qkv_ter_free(qkv_ter *t) {
    qkv_score_words_free(&t->words);
    qkv_free(t->scratch);
    t->scratch = NULL;
    t->room = 0;
}

/* ---- words: cases folded as Python's str.lower does ---- */

static bool is_cased(int32_t cp) {
    const utf8proc_category_t c = utf8proc_category(cp);
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}

/* A Σ at the end of a word is ς. */
static int32_t small_sigma(const int32_t *c, size_t n, size_t i) {
    const bool after = i > 0 && is_cased(c[i - 1]), before = i + 1 < n && is_cased(c[i + 1]);
    return after && !before ? 0x3C2 : 0x3C3;
}

static qkv_status add_lower(qkv_score_words *w, const int32_t *c, size_t n) {
    w->to.n = 0;
    for (size_t i = 0; i < n; i++) {
        const bool dotted = c[i] == 0x130; /* İ: i and a dot above */
        const int32_t low = dotted          ? 'i'
                            : c[i] == 0x3A3 ? small_sigma(c, n, i)
                                            : utf8proc_tolower(c[i]);
        if (!QKV_PUSH(w->to, low) || (dotted && !QKV_PUSH(w->to, 0x307))) return QKV_FAILED;
    }
    return qkv_score_words_add(w, w->to.at, w->to.n);
}

static qkv_status add_line(qkv_score_words *w, qkv_text line) {
    size_t n, begin = 0;
    w->from.n = 0;
    for (size_t i = 0; i <= line.len; i++)
        if (!QKV_PUSH(w->from, ' ')) return QKV_FAILED;
    QKV_TRY(qkv_score_decode(line, w->from.at, &n));
    for (size_t i = 0; i <= n; i++) {
        if (i < n && !qkv_score_is_space(w->from.at[i])) continue;
        if (i > begin) QKV_TRY(add_lower(w, w->from.at + begin, i - begin));
        begin = i + 1;
    }
    return qkv_score_words_end_line(w);
}

/* ---- the matrix: row i is columns from_column(i) … of the band ---- */

static int32_t from_column(const problem *p, int32_t i) {
    const int32_t from = (int32_t)floor(i * p->ratio) - p->beam;
    return from > 0 ? from : 0;
}

static int32_t to_column(const problem *p, int32_t i) {
    const int32_t to = (int32_t)floor(i * p->ratio) + p->beam;
    return to > p->ref.n + 1 || i == p->hyp.n ? p->ref.n + 1 : to;
}

/* Row 0 is all insertions. */
static int32_t distance(const problem *p, const int32_t *cost, int32_t i, int32_t j) {
    const int32_t from = from_column(p, i);
    if (i == 0) return j;
    return j >= from && j < to_column(p, i)
               ? cost[(size_t)i * (size_t)p->width + (size_t)(j - from)]
               : NEVER;
}

static void take(int32_t cost, edit how, int32_t *best, edit *best_how) {
    if (cost < *best) *best = cost, *best_how = how;
}

/* Row i, from the row before, which is that of `before`. */
static void fill_row(const problem *p, const int32_t *words, const int32_t *before, int32_t *cost,
                     uint8_t *edits, int32_t i) {
    const int32_t from = from_column(p, i), to = to_column(p, i);
    const size_t row = (size_t)i * (size_t)p->width;
    for (int32_t j = from, left = NEVER; j < to; j++) {
        int32_t best = NEVER;
        edit how = DELETE;
        if (j > 0) {
            const bool same = words[i - 1] == p->ref.at[j - 1];
            take(distance(p, before, i - 1, j - 1) + !same, same ? NOTHING : SUBSTITUTE, &best,
                 &how);
        }
        take(distance(p, before, i - 1, j) + 1, DELETE, &best, &how);
        take(left + 1, INSERT, &best, &how);
        cost[row + (size_t)(j - from)] = left = best;
        if (edits) edits[row + (size_t)(j - from)] = (uint8_t)how;
    }
}

/* ---- which words are wrong, and where a word of the reference stands ---- */

typedef struct aligned {
    int32_t *cost;                  /* of the words as they are, and */
    uint8_t *edits;                 /* what each cell came from */
    int32_t *place;                 /* of a word of the reference: the word of the hypothesis */
    int32_t *hyp_wrong, *ref_wrong; /* how many of the words before */
} aligned;

static edit came_by(const problem *p, const aligned *a, int32_t i, int32_t j) {
    const int32_t from = from_column(p, i);
    if (i == 0) return INSERT;
    if (j < from || j >= to_column(p, i)) return DELETE;
    return (edit)a->edits[(size_t)i * (size_t)p->width + (size_t)(j - from)];
}

static void trace(const problem *p, aligned *a) {
    int32_t i = p->hyp.n, j = p->ref.n;
    memset(a->hyp_wrong, 0, ((size_t)i + 1) * sizeof *a->hyp_wrong);
    memset(a->ref_wrong, 0, ((size_t)j + 1) * sizeof *a->ref_wrong);
    while (i > 0 || j > 0) {
        const edit how = came_by(p, a, i, j);
        if (how == INSERT) {
            a->place[--j] = i - 1;
            a->ref_wrong[j + 1] = 1;
        } else if (how == DELETE || j == 0) {
            a->hyp_wrong[i--] = 1;
        } else {
            a->place[--j] = --i;
            a->hyp_wrong[i + 1] = a->ref_wrong[j + 1] = how == SUBSTITUTE;
        }
    }
    for (i = 0; i < p->hyp.n; i++) a->hyp_wrong[i + 1] += a->hyp_wrong[i];
    for (j = 0; j < p->ref.n; j++) a->ref_wrong[j + 1] += a->ref_wrong[j];
}

/* ---- moves ---- */

typedef struct move {
    int32_t gain, length, start, target;
} move;

static bool beats(const move *a, const move *b) {
    if (a->gain != b->gain) return a->gain > b->gain;
    if (a->length != b->length) return a->length > b->length;
    if (a->start != b->start) return a->start < b->start;
    return a->target < b->target;
}

/* words[start … start + length) go before word `target`, or, where that lies among them, so many
 * words further. */
static void make_move(const int32_t *words, int32_t n, const move *m, int32_t *out) {
    const int32_t start = m->start, end = start + m->length;
    int32_t before = m->target, k = 0; /* words that stand before the phrase in the end */
    if (m->target > end)
        before = m->target - m->length;
    else if (m->target >= start)
        before = m->target < n - m->length ? m->target : n - m->length;
    for (int32_t i = 0; k < before; i++)
        if (i < start || i >= end) out[k++] = words[i];
    const int32_t rest = k;
    memcpy(out + k, words + start, (size_t)m->length * sizeof *out);
    k += m->length;
    for (int32_t i = 0, others = 0; i < n; i++)
        if ((i < start || i >= end) && others++ >= rest) out[k++] = words[i];
}

/* The search for the best move: the words and the matrix of the one that is tried. */
typedef struct search {
    const problem *p;
    const aligned *a;
    int32_t *words, *cost;
    int tried;
    move best; /* its length is 0 when there is none */
} search;

/* What the edits would be after the move. */
static int32_t cost_after(search *s) {
    const problem *p = s->p;
    int32_t same = 0;
    while (same < p->hyp.n && s->words[same] == p->words[same]) same++;
    for (int32_t i = same + 1; i <= p->hyp.n; i++)
        fill_row(p, s->words, i == same + 1 ? s->a->cost : s->cost, s->cost, NULL, i);
    return distance(p, same == p->hyp.n ? s->a->cost : s->cost, p->hyp.n, p->ref.n);
}

/* The places where a phrase may go to; false when enough were tried. */
static bool try_places(search *s, move m, int32_t in_ref) {
    const problem *p = s->p;
    const int32_t now = distance(p, s->a->cost, p->hyp.n, p->ref.n);
    int32_t last = -1;
    for (int32_t k = in_ref - 1; k < in_ref + m.length; k++) {
        m.target = k < 0 ? 0 : s->a->place[k] + 1;
        if (m.target == last) continue;
        last = m.target;
        make_move(p->words, p->hyp.n, &m, s->words);
        m.gain = now - cost_after(s);
        s->tried++;
        if (s->best.length == 0 || beats(&m, &s->best)) s->best = m;
    }
    return s->tried < MOST_TRIED;
}

static bool may_move(const aligned *a, int32_t start, int32_t in_ref, int32_t length) {
    const int32_t place = a->place[in_ref];
    return a->hyp_wrong[start + length] > a->hyp_wrong[start] &&
           a->ref_wrong[in_ref + length] > a->ref_wrong[in_ref] &&
           (place < start || place >= start + length);
}

static void find_best(search *s) {
    const problem *p = s->p;
    s->best = (move){0};
    for (int32_t h = 0; h < p->hyp.n; h++) {
        const int32_t first = h > MOST_FAR ? h - MOST_FAR : 0;
        for (int32_t r = first; r < p->ref.n && r <= h + MOST_FAR; r++)
            for (int32_t n = 1; n <= MOST_WORDS && h + n <= p->hyp.n && r + n <= p->ref.n; n++) {
                if (p->words[h + n - 1] != p->ref.at[r + n - 1]) break;
                if (may_move(s->a, h, r, n) && !try_places(s, (move){.length = n, .start = h}, r))
                    return;
            }
    }
}

/* ---- one hypothesis, one reference ---- */

/* Memory for the sequences and two matrices, in one block that only grows. */
static qkv_status lay_out(problem *p, aligned *a, search *s) {
    const size_t h = (size_t)p->hyp.n + 1, r = (size_t)p->ref.n + 1, cells = h * (size_t)p->width;
    const size_t numbers = 2 * cells + 3 * h + 2 * r, bytes = numbers * sizeof(int32_t) + cells;
    if (bytes > p->t->room) {
        qkv_free(p->t->scratch);
        p->t->room = 0;
        QKV_TRY_ALLOC(p->t->scratch = qkv_alloc(bytes));
        p->t->room = bytes;
    }
    int32_t *at = p->t->scratch;
    *a = (aligned){.cost = at,
                   .edits = (uint8_t *)(at + numbers),
                   .place = at + 2 * cells,
                   .ref_wrong = at + 2 * cells + r,
                   .hyp_wrong = at + 2 * cells + 2 * r};
    p->words = a->hyp_wrong + h;
    *s = (search){.p = p, .a = a, .words = p->words + h, .cost = at + cells};
    return QKV_OK;
}

static qkv_status count_edits(qkv_ter *t, qkv_gram hyp, qkv_gram ref, int64_t *out) {
    problem p = {.t = t, .hyp = hyp, .ref = ref, .beam = BEAM};
    aligned a;
    search s;
    *out = hyp.n;
    if (ref.n == 0) return QKV_OK;
    p.ratio = hyp.n ? (double)ref.n / (double)hyp.n : 1;
    if (BEAM < p.ratio / 2) p.beam = (int32_t)ceil(p.ratio / 2 + BEAM);
    p.width = 2 * p.beam + 2;
    QKV_TRY(lay_out(&p, &a, &s));
    if (hyp.n) memcpy(p.words, hyp.at, (size_t)hyp.n * sizeof *p.words);
    for (int64_t moves = 0;; moves++) {
        for (int32_t i = 1; i <= hyp.n; i++) fill_row(&p, p.words, a.cost, a.cost, a.edits, i);
        *out = moves + distance(&p, a.cost, hyp.n, ref.n);
        trace(&p, &a);
        find_best(&s);
        if (s.tried >= MOST_TRIED || s.best.gain <= 0) return QKV_OK;
        make_move(p.words, hyp.n, &s.best, s.words);
        memcpy(p.words, s.words, (size_t)hyp.n * sizeof *p.words);
    }
}

/* ---- lines ---- */

qkv_status qkv_ter_add(qkv_ter *t, qkv_text hyp, const qkv_text *refs, size_t n_refs) {
    if (n_refs < 1) return qkv_fail(QKV_USAGE, "a score needs a reference");
    t->n_refs = n_refs;
    qkv_score_words_clear(&t->words);
    for (size_t i = 0; i <= n_refs; i++) QKV_TRY(add_line(&t->words, i ? refs[i - 1] : hyp));
    QKV_TRY(qkv_score_words_number(&t->words));
    int64_t fewest = INT64_MAX, edits;
    double length = 0;
    for (size_t i = 1; i <= n_refs; i++) {
        const qkv_gram ref = qkv_score_words_line(&t->words, i);
        QKV_TRY(count_edits(t, qkv_score_words_line(&t->words, 0), ref, &edits));
        if (edits < fewest) fewest = edits;
        length += (double)ref.n;
    }
    t->line[0] = (double)fewest;
    t->line[1] = length / (double)n_refs;
    for (int k = 0; k < QKV_TER_SUMS; k++) t->sum[k] += t->line[k];
    return QKV_OK;
}

double qkv_ter_of(const double *sums) {
    return sums[1] > 0 ? 100 * sums[0] / sums[1] : sums[0] > 0 ? 100 : 0;
}

void qkv_ter_signature(const qkv_ter *t, qkv_buf *out) {
    qkv_buf_printf(out, "nrefs:%zu|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:qkv-%s",
                   t->n_refs, qkv_version());
}
