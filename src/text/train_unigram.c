/* Unigram language model (Kudo 2018): a piece has a probability, a segmentation the product of its
 * pieces', a word the sum over all its segmentations. From many seed pieces:
 *
 *   E: the expected count of each piece, by forward-backward over each distinct word's lattice,
 *          α(j) = Σ α(i) p(i…j),   β(i) = Σ p(i…j) β(j),   E[piece] += count · α(i) p β(j) / α(n);
 *   M: log p = ψ(E) − ψ(ΣE). The digamma function ψ in place of the logarithm is the mean-field
 *      step of a Bayesian model with a sparse prior: it lowers rare pieces; those under half a
 *      count are dropped;
 *   prune: a piece's loss is what the likelihood of the best segmentations falls when it is
 *      replaced by the best segmentation of itself in other pieces; the quarter of the pieces with
 *      the smallest loss goes.
 *
 * Two rounds of E and M between prunings, as SentencePiece does; at the end one pruning by loss to
 * the exact size and two more rounds. Characters are never dropped, so every word of the alphabet
 * can be written.
 *
 * α and β are kept as plain numbers, not logarithms: one multiplication per edge. Before a long
 * word underflows, all values in reach are scaled up by 2^512 and the exponent is remembered. Sums
 * over words are made in N_BLOCKS blocks that the text decides, and the blocks added in order: the
 * same bits for any number of threads. */
#include "text/train_lattice.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "text/script.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_BLOCKS   16
#define SHRINK     0.75 /* share of the pieces kept by a pruning */
#define ROUNDS     2    /* of E and M between prunings */
#define LEAST      0.5  /* expected count under which a piece is dropped */
#define SCALE_BITS 512
#define TINY       0x1p-400

typedef struct block {
    size_t first_word, end_word;
    double *sum;     /* by piece: expected counts, or counts of the best path */
    double *forward; /* by place of a word, as are the rest */
    int32_t *exponent;
    double *backward;
    uint32_t *from; /* best path: the edge that leads here */
} block;

typedef struct unigram {
    qkv_lattice *l;
    double *p, *log_p; /* by piece */
    double *total;     /* by piece: the blocks' sums added */
    block blocks[N_BLOCKS];
} unigram;

static double digamma(double x) {
    double shift = 0;
    for (; x < 7; x++) shift -= 1 / x; /* ψ(x) = ψ(x + 1) − 1/x */
    x -= 0.5;
    const double r = 1 / (x * x); /* the asymptotic series in x − 1/2 */
    return shift + log(x) +
           r * (1.0 / 24 - r * (7.0 / 960 - r * (31.0 / 8064 - r * (127.0 / 30720))));
}

/* ---- passes over all words ---- */

/* When everything within reach of place i is tiny, scales it up; returns how often (0 or 1). */
static int rescale(double *value, uint32_t begin, uint32_t end) {
    double most = 0;
    for (uint32_t i = begin; i < end; i++) most = value[i] > most ? value[i] : most;
    if (most >= TINY || most == 0) return 0;
    for (uint32_t i = begin; i < end; i++) value[i] = ldexp(value[i], SCALE_BITS);
    return 1;
}

/* Adds one word's expected counts to the block's sums. */
static void expect_word(const unigram *u, block *b, size_t word) {
    const qkv_lattice *l = u->l;
    const uint32_t *first = l->first + l->word[word];
    const uint32_t n = l->word[word + 1] - l->word[word] - 1;
    double *forward = b->forward, *backward = b->backward;
    int32_t exponent = 0;
    memset(forward, 0, (n + 1) * sizeof *forward);
    forward[0] = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (forward[i] < TINY) {
            uint32_t reach = i + QKV_PIECE_CHARS < n ? i + QKV_PIECE_CHARS : n;
            exponent += rescale(forward, i, reach + 1);
        }
        b->exponent[i] = exponent;
        const double f = forward[i];
        for (uint32_t e = first[i]; e < first[i + 1]; e++)
            forward[i + (l->edge[e] & QKV_PIECE_CHARS)] += f * u->p[l->edge[e] >> QKV_EDGE_BITS];
    }
    const double share = (double)l->count[word] / forward[n];
    const int32_t whole = exponent;
    exponent = 0;
    backward[n] = 1;
    for (uint32_t i = n; i-- > 0;) {
        double part = share * forward[i], sum = 0;
        int32_t off = whole - b->exponent[i] - exponent;
        if (off) part = ldexp(part, off * SCALE_BITS);
        for (uint32_t e = first[i]; e < first[i + 1]; e++) {
            const uint32_t piece = l->edge[e] >> QKV_EDGE_BITS;
            const double through = u->p[piece] * backward[i + (l->edge[e] & QKV_PIECE_CHARS)];
            sum += through;
            b->sum[piece] += part * through;
        }
        backward[i] = sum;
        if (sum < TINY) {
            uint32_t reach = i + QKV_PIECE_CHARS < n ? i + QKV_PIECE_CHARS : n;
            exponent += rescale(backward, i, reach + 1);
        }
    }
}

/* Best path through the places begin … begin + n − 1, leaving out one edge kind (piece `without`;
 * 0: none). b->from[j] is the edge that ends at j. Returns its log-probability. */
static double best_path(const unigram *u, block *b, uint32_t begin, uint32_t n, uint32_t without) {
    const qkv_lattice *l = u->l;
    const uint32_t *first = l->first + begin;
    double *best = b->forward;
    for (uint32_t i = 1; i <= n; i++) best[i] = -INFINITY;
    best[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t e = first[i]; e < first[i + 1]; e++) {
            const uint32_t edge = l->edge[e], piece = edge >> QKV_EDGE_BITS;
            const uint32_t j = i + (edge & QKV_PIECE_CHARS);
            if (j > n || (without && piece == without)) continue;
            const double score = best[i] + u->log_p[piece];
            if (score > best[j]) {
                best[j] = score;
                b->from[j] = edge;
            }
        }
    }
    return best[n];
}

static void best_word(const unigram *u, block *b, size_t word) {
    uint32_t n = u->l->word[word + 1] - u->l->word[word] - 1;
    best_path(u, b, u->l->word[word], n, 0);
    for (uint32_t j = n; j > 0; j -= b->from[j] & QKV_PIECE_CHARS)
        b->sum[b->from[j] >> QKV_EDGE_BITS] += (double)u->l->count[word];
}

/* Runs a pass over all words and leaves its sums in u->total. */
static void run(unigram *u, void (*pass)(const unigram *u, block *b, size_t word)) {
    const size_t n = u->l->n_pieces;
    QKV_PARALLEL_FOR_UNEVEN
    for (int k = 0; k < N_BLOCKS; k++) {
        block *b = &u->blocks[k];
        memset(b->sum, 0, n * sizeof *b->sum);
        for (size_t w = b->first_word; w < b->end_word; w++) pass(u, b, w);
    }
    QKV_PARALLEL_FOR
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < N_BLOCKS; k++) sum += u->blocks[k].sum[i];
        u->total[i] = sum;
    }
    u->total[QKV_PIECE_UNKNOWN] = 0;
}

/* ---- EM and pruning ---- */

/* Probabilities from the expected counts in u->total. */
static void maximise(unigram *u) {
    double sum = 0;
    for (size_t i = 1; i < u->l->n_pieces; i++) {
        if (u->total[i] < LEAST) u->total[i] = i <= u->l->n_chars ? LEAST : 0;
        sum += u->total[i];
    }
    const double whole = digamma(sum);
    for (size_t i = 1; i < u->l->n_pieces; i++) {
        u->log_p[i] = u->total[i] > 0 ? digamma(u->total[i]) - whole : -INFINITY;
        u->p[i] = exp(u->log_p[i]);
    }
    u->log_p[QKV_PIECE_UNKNOWN] = 0;
    u->p[QKV_PIECE_UNKNOWN] = 1;
}

typedef struct ranked {
    double value;
    uint32_t piece;
    bool last; /* after all those that are not */
} ranked;

/* Largest value first, then smallest piece. */
static int by_value(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->last != y->last) return x->last ? 1 : -1;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

/* How much likelihood goes with a piece: its places in the best paths (u->total) would take its
 * best segmentation in other pieces, whose counts rise by that much. Pieces that no best path uses,
 * or that are worse than their parts, come last, by probability. */
static ranked loss_of(const unigram *u, block *b, uint32_t piece, double sum) {
    const qkv_lattice_piece *x = &u->l->piece[piece];
    const double count = u->total[piece];
    if (count == 0 || best_path(u, b, x->at, x->len, piece) > u->log_p[piece])
        return (ranked){u->log_p[piece], piece, true};
    double instead = 0;
    int parts = 0;
    for (uint32_t j = x->len; j > 0; j -= b->from[j] & QKV_PIECE_CHARS, parts++)
        instead += log(u->total[b->from[j] >> QKV_EDGE_BITS] + count);
    const double with = log(count) - log(sum),
                 without = instead - parts * log(sum + (parts - 1) * count);
    return (ranked){count * (with - without), piece, false};
}

/* Leaves at most `size` pieces, those of the largest loss (and unknown and the characters, which
 * always stay); useless ones only to make up `least`. */
static qkv_status prune(unigram *u, size_t size, size_t least) {
    qkv_lattice *l = u->l;
    const size_t first = 1 + l->n_chars, n = l->n_pieces - first;
    ranked *candidates = qkv_zalloc(n, sizeof *candidates);
    bool *keep = qkv_zalloc(l->n_pieces, sizeof *keep);
    if (!candidates || !keep) {
        qkv_free(candidates);
        qkv_free(keep);
        return QKV_FAILED;
    }
    run(u, best_word);
    double sum = 0;
    for (size_t i = 1; i < l->n_pieces; i++) sum += u->total[i];
    QKV_PARALLEL_FOR_UNEVEN
    for (size_t k = 0; k < N_BLOCKS; k++) {
        for (size_t i = n * k / N_BLOCKS; i < n * (k + 1) / N_BLOCKS; i++) {
            uint32_t piece = (uint32_t)(first + i);
            candidates[i] = loss_of(u, &u->blocks[k], piece, sum);
        }
    }
    qsort(candidates, n, sizeof *candidates, by_value);
    for (size_t i = 0; i < first; i++) keep[i] = true;
    for (size_t i = 0; i < n && first + i < size; i++) {
        if (candidates[i].value == -INFINITY || (candidates[i].last && first + i >= least)) break;
        keep[candidates[i].piece] = true;
    }
    size_t to = 0;
    for (size_t i = 0; i < l->n_pieces; i++) {
        if (!keep[i]) continue;
        u->p[to] = u->p[i];
        u->log_p[to++] = u->log_p[i];
    }
    qkv_status status = qkv_lattice_thin(l, keep);
    qkv_free(candidates);
    qkv_free(keep);
    return status;
}

/* ---- the whole ---- */

static qkv_status set_up(unigram *u) {
    const qkv_lattice *l = u->l;
    const size_t n = l->n_pieces;
    uint32_t longest = 0;
    for (size_t w = 0; w < l->n_words; w++) {
        uint32_t places = l->word[w + 1] - l->word[w];
        longest = places > longest ? places : longest;
    }
    if (longest <= QKV_PIECE_CHARS)
        longest = QKV_PIECE_CHARS + 1; /* a piece is segmented there too */
    QKV_TRY_ALLOC(u->p = qkv_zalloc(n, sizeof *u->p));
    QKV_TRY_ALLOC(u->log_p = qkv_zalloc(n, sizeof *u->log_p));
    QKV_TRY_ALLOC(u->total = qkv_zalloc(n, sizeof *u->total));
    size_t word = 0;
    const uint32_t edges = l->first[l->n];
    for (int k = 0; k < N_BLOCKS; k++) { /* blocks of about as many edges */
        block *b = &u->blocks[k];
        b->first_word = word;
        uint64_t until = (uint64_t)edges * (uint64_t)(k + 1) / N_BLOCKS;
        while (word < l->n_words && (k + 1 == N_BLOCKS || l->first[l->word[word + 1]] <= until))
            word++;
        b->end_word = word;
        QKV_TRY_ALLOC(b->sum = qkv_zalloc(n, sizeof *b->sum));
        QKV_TRY_ALLOC(b->forward = qkv_zalloc(longest + 1, sizeof *b->forward));
        QKV_TRY_ALLOC(b->backward = qkv_zalloc(longest + 1, sizeof *b->backward));
        QKV_TRY_ALLOC(b->exponent = qkv_zalloc(longest + 1, sizeof *b->exponent));
        QKV_TRY_ALLOC(b->from = qkv_zalloc(longest + 1, sizeof *b->from));
    }
    double sum = 0;
    for (size_t i = 1; i < n; i++) sum += l->piece[i].weight;
    for (size_t i = 1; i < n; i++) {
        u->p[i] = l->piece[i].weight / sum;
        u->log_p[i] = log(u->p[i]);
    }
    u->p[QKV_PIECE_UNKNOWN] = 1;
    return QKV_OK;
}

static void tear_down(unigram *u) {
    for (int k = 0; k < N_BLOCKS; k++) {
        block *b = &u->blocks[k];
        qkv_free(b->sum);
        qkv_free(b->forward);
        qkv_free(b->backward);
        qkv_free(b->exponent);
        qkv_free(b->from);
    }
    qkv_free(u->p);
    qkv_free(u->log_p);
    qkv_free(u->total);
}

/* EM and pruning until `size` pieces (the unknown one not counted) are left. */
static qkv_status train(unigram *u, size_t size, const qkv_unigram_rule *rule) {
    const double many = (double)u->l->n_pieces;
    for (;;) {
        for (int round = 0; round < ROUNDS; round++) {
            run(u, expect_word);
            maximise(u);
        }
        const size_t n = u->l->n_pieces - 1;
        if (rule->progress && many > (double)size)
            rule->progress(rule->user, "pruning", log(many / (double)n) / log(many / (double)size));
        if (n <= size) return QKV_OK;
        const double near = 1.1 * (double)size; /* the last step is a small one */
        double target = SHRINK * (double)n;
        if ((double)n <= near)
            target = (double)size;
        else if (target < near)
            target = near;
        QKV_TRY(prune(u, 1 + (size_t)target, 1 + (size_t)(target < near ? target : near)));
    }
}

/* Appends the pieces to the vocabulary, the most probable first. Scores have nine decimals: with no
 * more than 15 digits every reader of the file gets the same double, even those that do not round
 * correctly, and so the same path where two are all but equal. */
static qkv_status write_out(const unigram *u, const qkv_words *alphabet, qkv_trained *out) {
    const qkv_lattice *l = u->l;
    const size_t n = l->n_pieces - 1;
    qkv_buf text = {0};
    ranked *order;
    QKV_TRY_ALLOC(order = qkv_zalloc(n, sizeof *order));
    for (size_t i = 0; i < n; i++) order[i] = (ranked){u->log_p[i + 1], (uint32_t)i + 1, false};
    qsort(order, n, sizeof *order, by_value);
    qkv_status status = QKV_OK;
    while (out->scores.n < out->tokens.n && status == QKV_OK) /* special tokens */
        if (!QKV_PUSH(out->scores, 0)) status = QKV_FAILED;
    /* the last rounds may have found a piece to be worth nothing */
    for (size_t k = 0; k < n && order[k].value > -INFINITY && status == QKV_OK; k++) {
        const uint32_t piece = order[k].piece;
        const qkv_lattice_piece *x = &l->piece[piece];
        qkv_buf_clear(&text);
        for (uint32_t i = 0; i < x->len; i++) {
            const uint32_t c = piece <= l->n_chars ? piece : l->text[x->at + i];
            qkv_buf_add(&text, alphabet->at[c - 1].text, alphabet->at[c - 1].len);
        }
        status = text.status;
        size_t before = out->tokens.n; /* a special token may have this name: it stays one */
        uint64_t count = (uint64_t)(u->total[piece] + 0.5);
        if (status == QKV_OK)
            status = qkv_words_add(&out->tokens, text.data, text.len, count, true, NULL);
        const double score = round(order[k].value * 1e9) / 1e9;
        if (status == QKV_OK && out->tokens.n > before && !QKV_PUSH(out->scores, score))
            status = QKV_FAILED;
    }
    qkv_buf_free(&text);
    qkv_free(order);
    return status;
}

/* What a character may stand beside in a piece: see qkv_lattice_make. ▁ goes with everything. */
static uint8_t kind_of(int32_t cp) {
    if (cp == 0x2581) return 0;
    const uint8_t script = qkv_script_of(cp);
    return script == QKV_SCRIPT_INHERITED ? 255
           : script == QKV_SCRIPT_NONE    ? QKV_SCRIPT_COMMON
                                          : script;
}

static qkv_status script_kinds(const qkv_words *alphabet, uint8_t **out) {
    QKV_TRY_ALLOC(*out = qkv_zalloc(alphabet->n, 1));
    for (size_t i = 0; i < alphabet->n; i++) {
        int32_t cp;
        qkv_utf8_decode(alphabet->at[i].text, alphabet->at[i].len, &cp);
        (*out)[i] = kind_of(cp);
    }
    return QKV_OK;
}

qkv_status qkv_train_unigram(const qkv_words *alphabet, const qkv_symbols *symbols,
                             const qkv_unigram_rule *rule, qkv_trained *out) {
    qkv_lattice lattice = {0};
    unigram u = {.l = &lattice};
    uint8_t *kinds = NULL;
    const size_t max_chars = rule->max_chars ? rule->max_chars : 16;
    if (max_chars > QKV_PIECE_CHARS)
        return qkv_fail(QKV_USAGE, "a piece of %zu characters was asked for: at most %d", max_chars,
                        QKV_PIECE_CHARS);
    qkv_status status = rule->by_script ? script_kinds(alphabet, &kinds) : QKV_OK;
    if (rule->progress) rule->progress(rule->user, "finding seed pieces", 0);
    if (status == QKV_OK)
        status = qkv_lattice_make(symbols, 0, alphabet->n, max_chars, kinds, &lattice);
    if (status == QKV_OK) status = set_up(&u);
    const size_t size = rule->size > out->tokens.n ? rule->size - out->tokens.n : 0;
    if (status == QKV_OK) status = train(&u, size > alphabet->n ? size : alphabet->n, rule);
    if (status == QKV_OK) status = write_out(&u, alphabet, out);
    if (status == QKV_OK) out->capped = out->tokens.n < rule->size;
    tear_down(&u);
    qkv_lattice_free(&lattice);
    qkv_free(kinds);
    return status;
}
