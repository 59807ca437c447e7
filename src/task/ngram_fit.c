/* The weights of n-grams, found before the steps.
 *
 * They are a convex problem with a few non-zero features a text, so there is no need of gradient
 * steps beside the encoder's: each class against the rest is a support vector machine
 * with squared slack,
 *     minimise ½ |u|² + C Σ_i max(0, 1 − y_i u·x̃_i)²,
 * solved in its dual by one coordinate α_i ≥ 0 at a time (Hsieh et al. 2008): a few passes over the
 * texts, each as cheap as reading a number for each n-gram. The features are x̃ = x r: x is how much
 * an n-gram counts in its text (ngram_head.c), r_g how much it is trusted beforehand. There are
 * two opinions of that:
 *     rarity   r_g  = idf_g = 1 + log((1 + N) / (1 + n_g)), of N texts n_g having n-gram g;
 *     class    r_gk = idf_g log( ((n_gk + a π_k) / N_k) / ((n_g − n_gk + a (1 − π_k)) / (N′ − N_k)) ),
 * how much more often it stands in texts of class k than in others (Wang and Manning 2012): n_gk
 * texts of the class have it, N_k is how many n-grams all of them have, N′ those of all texts,
 * π_k = N_k / N′, and a the pseudo-texts in proportion to the classes, so that an n-gram seen once
 * says little. The first is better of many classes with few texts each, the second of
 * few classes with many, the mean of the two solutions mostly better than either
 * (docs/RESULTS.md), and no dearer in use: one table.
 *
 * A text of several labels counts in each of their classes.
 *
 * A number t is told by ridge regression (squared error in the place of the slack, α of any sign)
 * on what is rare:
 *     minimise ½ |u|² + C Σ_i (t_i − u·x̃_i)²
 * IMDb's stars, 5,000 reviews: mean squared error 4.58; 4.99 without r, 5.34 by ridge regression on
 * tf-idf of words and pairs of words.
 *
 * What is kept is w = r u, so that w·x is the decision and an update of α by d adds d r² x to w.
 * Within a kind all n-grams of a text count the same, s; so a text's score is s times a sum of
 * rows, and how long its x̃ is does not change from pass to pass. An n-gram that stands in one text
 * only touches no other: it is a part of that length, and gets its weight, y α r² s, at the end.
 * These are half of all or more.
 *
 * Texts are taken in an order that depends on the seed alone, and one after another: the same bits
 * on any number of threads and on every rank. Only hashing, which is most of the work, is spread
 * over threads. Where texts and classes are too many only some texts are used. */
#include "base/mem.h"
#include "base/thread.h"
#include "task/companion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    AHEAD = 12,  /* rows of the table asked for before they are read: it is larger than the cache */
    BLOCK = 512, /* texts that are hashed at a time */
    LANES = 4,   /* classes stand in fours */
    ALPHAS = 1 << 27, /* most coordinates: of more texts × classes only some texts are used */
    KEPT = 1 << 28    /* most n-grams in all texts, likewise */
};
static const double ENOUGH = 0.001; /* of a coordinate's gradient, 1 where nothing is learned yet */

/* kinds of n-grams in a text's list */
enum { TOKENS, CHARS, KINDS };

/* A text: what it is of, and its n-grams: those that other texts have too, then its own, of
 * each kind. */
typedef struct fitted_text {
    qkv_cells truth; /* the classes it is of, or its number */
    int64_t from;    /* in the list of all */
    int32_t shared[KINDS], own[KINDS];
    real each[KINDS]; /* what one of them counts */
} fitted_text;

typedef struct fit {
    const qkv_fit *in;
    const qkv_config *config;
    bool ridge;              /* a number is told, no classes */
    int64_t all, n, classes; /* texts there are; those used */
    int64_t solved, pitch;   /* classes solved for; reals in a row */
    fitted_text *texts;
    int32_t *rows; /* of all texts: of the model's table, then of ours where it is shared */
    int64_t n_rows, cap;
    int32_t *seen;    /* n_g by row of the model's table */
    int32_t *row_of;  /* by row of our table, that of the model's */
    int64_t n_shared; /* rows of our table */
    /* by row of our table */
    real *w, *square, *result;
    real *bias, *result_bias;
    double *own_in, *own_out; /* r² of an n-gram of one text, where that is of the class, or not */
    real *size, *alpha;       /* (texts, pitch) */
    real *score, *move;
    double *total; /* by class: N_k; N′ behind them */
    double worst;  /* largest gradient of a coordinate that moved in this pass */
} fit;

/* ---- texts ---- */

/* Text i: those that are trained on come first, then those held out. */
static qkv_ngram_text text_of(const fit *f, int64_t i, qkv_cells *truth) {
    const qkv_encoded *data = f->in->train;
    if (i >= data->n) i -= data->n, data = f->in->held_out;
    qkv_ngram_text text = {0};
    *truth = f->ridge             ? qkv_encoded_cells(data, QKV_COLUMN_VALUE, i)
             : f->config->several ? qkv_encoded_cells(data, QKV_COLUMN_LABELS, i)
                                  : (qkv_cells){&data->label[i], 1};
    text.ids = qkv_encoded_ids(data, i, 0, &text.n);
    text.chars = qkv_encoded_cells(data, QKV_COLUMN_CHARS, i);
    return text;
}

static bool is_among(qkv_cells list, int64_t c) {
    bool is = false;
    for (int64_t i = 0; i < list.n; i++) is |= list.at[i] == c;
    return is;
}

/* Is the text of class c? A number has the sign of its α. */
static bool is_of(const fit *f, const fitted_text *text, int64_t c) {
    return f->ridge || is_among(text->truth, c);
}

/* The number of a text, as the model is to give it. */
static real number_of(const fit *f, const fitted_text *text) {
    float value;
    memcpy(&value, text->truth.at, sizeof value);
    return (real)(((double)value - f->config->rate_mean) / f->config->rate_deviation);
}

/* The lists of a block of texts before they are put behind those of the others. */
typedef struct found {
    qkv_ngram_text text[BLOCK];
    int64_t from[BLOCK], n[BLOCK], tokens[BLOCK];
    int32_t *rows;
    int64_t cap;
} found;

static qkv_status find_block(const fit *f, int64_t i, int64_t n, found *b) {
    int64_t room = 0;
    for (int64_t k = 0; k < n; k++) {
        const qkv_rng all = {.seed = f->in->seed, .stream = 0x6e6772616d};
        const uint64_t example = qkv_rng_permute(all, (uint64_t)f->all, (uint64_t)(i + k));
        b->from[k] = room;
        b->text[k] = text_of(f, (int64_t)example, &f->texts[i + k].truth);
        room += qkv_ngram_room(f->config, &b->text[k]);
    }
    if (room > b->cap) {
        qkv_free(b->rows);
        b->cap = 0;
        QKV_TRY_ALLOC(b->rows = qkv_alloc((size_t)room * sizeof *b->rows));
        b->cap = room;
    }
    QKV_PARALLEL_FOR_UNEVEN
    for (int64_t k = 0; k < n; k++)
        b->n[k] = qkv_ngram_find(f->config, &b->text[k], b->rows + b->from[k], &b->tokens[k]);
    return QKV_OK;
}

/* Puts a block's lists behind the others, without the mark, which is in every text. */
static qkv_status keep_block(fit *f, int64_t i, int64_t n, const found *b) {
    int64_t more = 0;
    for (int64_t k = 0; k < n; k++) more += b->n[k] - 1;
    if (f->n_rows + more > f->cap) {
        const int64_t cap = 2 * (f->n_rows + more);
        int32_t *rows = qkv_realloc(f->rows, (size_t)cap * sizeof *rows);
        QKV_TRY_ALLOC(rows);
        f->rows = rows;
        f->cap = cap;
    }
    for (int64_t k = 0; k < n; k++) {
        fitted_text *text = &f->texts[i + k];
        const int32_t *rows = b->rows + b->from[k] + 1;
        text->from = f->n_rows;
        text->shared[TOKENS] = (int32_t)b->tokens[k];
        text->shared[CHARS] = (int32_t)(b->n[k] - 1 - b->tokens[k]);
        memcpy(f->rows + f->n_rows, rows, (size_t)(b->n[k] - 1) * sizeof *rows);
        for (int64_t j = 0; j < b->n[k] - 1; j++) f->seen[rows[j]]++;
        f->n_rows += b->n[k] - 1;
    }
    return QKV_OK;
}

static qkv_status alive(const fit *f) {
    return f->in->tell ? f->in->tell(f->in->user) : QKV_OK;
}

static qkv_status find_all(fit *f) {
    found b = {0};
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < f->n && status == QKV_OK; i += BLOCK) {
        const int64_t n = f->n - i < BLOCK ? f->n - i : BLOCK;
        status = find_block(f, i, n, &b);
        if (status == QKV_OK) status = keep_block(f, i, n, &b);
        if (status == QKV_OK) status = alive(f);
        if (f->n_rows > KEPT) f->n = i + n;
    }
    qkv_free(b.rows);
    return status;
}

/* ---- what is shared, and what each counts ---- */

static real rarity_of(const fit *f, int32_t seen) {
    return (real)(1 + log((1 + (double)f->n) / (1 + (double)seen)));
}

/* Where a row of the model's table has its place in ours: a new one if it has none. */
static int32_t place_of(fit *f, int32_t row, int32_t *place) {
    if (place[row] < 0) {
        f->row_of[f->n_shared] = row;
        place[row] = (int32_t)f->n_shared++;
    }
    return place[row];
}

/* Moves a text's own n-grams behind those that it shares, and finds what each counts. */
static void part_text(fit *f, fitted_text *text, int32_t *own, int32_t *place) {
    int32_t *rows = f->rows + text->from, at = 0, kept = 0, n_own = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        const int32_t end = at + text->shared[kind], first = kept;
        double sum = 0;
        for (; at < end; at++) {
            const int32_t seen = f->seen[rows[at]];
            const double x = f->config->ngram_idf ? (double)rarity_of(f, seen) : 1;
            sum += x * x;
            if (seen == 1)
                own[n_own++] = rows[at], text->own[kind]++;
            else
                rows[kept++] = place_of(f, rows[at], place);
        }
        text->shared[kind] = kept - first;
        text->each[kind] =
            sum > 0 ? qkv_ngram_share(f->config, kind == CHARS) / (real)sqrt(sum) : 0;
    }
    memcpy(rows + kept, own, (size_t)n_own * sizeof *rows);
}

static qkv_status part_all(fit *f) {
    const size_t buckets = (size_t)f->config->ngram_buckets;
    int64_t most = 1, shared = 1;
    for (int64_t i = 0; i < f->n; i++) {
        const int64_t n = f->texts[i].shared[TOKENS] + f->texts[i].shared[CHARS];
        if (n > most) most = n;
    }
    for (size_t row = 0; row < buckets; row++) shared += f->seen[row] > 1;
    int32_t *place = qkv_alloc(buckets * sizeof *place),
            *own = qkv_alloc((size_t)most * sizeof *own);
    f->row_of = qkv_alloc((size_t)shared * sizeof *f->row_of);
    const bool room = place && own && f->row_of;
    if (room) memset(place, 0xff, buckets * sizeof *place);
    for (int64_t i = 0; i < f->n && room; i++) part_text(f, &f->texts[i], own, place);
    qkv_free(place);
    qkv_free(own);
    return room ? QKV_OK : QKV_FAILED;
}

/* ---- trust ---- */

/* r² of an n-gram that `here` texts have, `x` of them of class c. */
static double square_of(const fit *f, qkv_ngram_trust trust, int64_t c, double x, double here) {
    const double idf = (double)rarity_of(f, (int32_t)here);
    if (trust == QKV_TRUST_RARITY) return idf * idf;
    const double prior = f->in->spec->ngram_prior, in = f->total[c], all = f->total[f->classes],
                 share = in / all;
    if (in == 0 || in == all) return 0; /* no text of this class, or of no other */
    const double r = log((x + prior * share) / in * (all - in) / (here - x + prior * (1 - share)));
    return idf * idf * r * r;
}

static void count_all(fit *f) {
    memset(f->total, 0, (size_t)(f->classes + 1) * sizeof *f->total);
    memset(f->square, 0, (size_t)(f->n_shared * f->pitch) * sizeof *f->square);
    for (int64_t i = 0; i < f->n; i++) {
        const fitted_text *text = &f->texts[i];
        const int32_t *rows = f->rows + text->from, shared = text->shared[0] + text->shared[1];
        const double n = 1 + shared + text->own[0] + text->own[1]; /* and the mark */
        f->total[f->classes] += n;
        for (int64_t k = 0; k < text->truth.n && !f->ridge; k++) {
            const int64_t c = text->truth.at[k];
            f->total[c] += n;
            for (int32_t j = 0; j < shared && c < f->solved; j++)
                f->square[rows[j] * f->pitch + c] += 1;
        }
    }
}

/* Counts to r², row by row. */
static void trust_rows(fit *f, qkv_ngram_trust trust) {
    count_all(f);
    QKV_PARALLEL_FOR
    for (int64_t row = 0; row < f->n_shared; row++)
        for (int64_t c = 0; c < f->solved; c++) {
            real *x = &f->square[row * f->pitch + c];
            *x = (real)square_of(f, trust, c, (double)*x, (double)f->seen[f->row_of[row]]);
        }
    for (int64_t c = 0; c < f->solved; c++) {
        f->own_in[c] = square_of(f, trust, c, 1, 1);
        f->own_out[c] = square_of(f, trust, c, 0, 1);
    }
}

/* ---- the dual ---- */

static void add_rows(const real *table, int64_t pitch, const int32_t *rows, int32_t n, real by,
                     real *restrict sum) {
    if (pitch == 1) {
        real s = 0;
        for (int32_t j = 0; j < n; j++) s += table[rows[j]];
        *sum += by * s;
        return;
    }
    for (int32_t j = 0; j < n; j++) {
        if (j + AHEAD < n) __builtin_prefetch(table + rows[j + AHEAD] * pitch);
        const real *row = table + rows[j] * pitch;
        for (int64_t c = 0; c < pitch; c += LANES)
            for (int64_t k = c; k < c + LANES; k++) sum[k] += by * row[k];
    }
}

/* What x̃ of the text's n-grams amounts to, squared, for each class; with that of the mark. */
static void measure_text(const fit *f, int64_t i) {
    const fitted_text *text = &f->texts[i];
    const int32_t *rows = f->rows + text->from;
    real *size = f->size + i * f->pitch;
    for (int64_t c = 0; c < f->solved; c++) {
        const double r2 = is_of(f, text, c) ? f->own_in[c] : f->own_out[c];
        double sum = 1;
        for (int kind = 0; kind < KINDS; kind++)
            sum += (double)(text->each[kind] * text->each[kind]) * text->own[kind] * r2;
        size[c] = (real)sum;
    }
    for (int kind = 0; kind < KINDS; rows += text->shared[kind++])
        add_rows(f->square, f->pitch, rows, text->shared[kind], text->each[kind] * text->each[kind],
                 size);
}

/* r² of the text's own n-grams by how much they count, for class c: what α y adds to its score. */
static real own_of(const fit *f, const fitted_text *text, int64_t c) {
    const double r2 = is_of(f, text, c) ? f->own_in[c] : f->own_out[c];
    return (real)(r2 * ((double)(text->each[0] * text->each[0]) * text->own[0] +
                        (double)(text->each[1] * text->each[1]) * text->own[1]));
}

/* The best α of each class for this text, all others as they are. */
static void solve_text(fit *f, int64_t i) {
    const qkv_task_spec *spec = f->in->spec;
    const fitted_text *text = &f->texts[i];
    const int64_t pitch = f->pitch;
    const int32_t *rows = f->rows + text->from;
    real *restrict score = f->score, *restrict move = f->move;
    const real *size = f->size + i * pitch;
    real *alpha = f->alpha + i * pitch;
    memcpy(score, f->bias, (size_t)pitch * sizeof *score);
    for (int kind = 0; kind < KINDS; rows += text->shared[kind++])
        add_rows(f->w, pitch, rows, text->shared[kind], text->each[kind], score);
    const real cost =
        (real)spec->ngram_cost *
        (spec->class_weights && text->truth.n ? spec->class_weights[text->truth.at[0]] : 1);
    const real slack = 1 / (2 * cost), margin = f->ridge ? number_of(f, text) : 1;
    double most = 0;
    for (int64_t c = 0; c < f->solved; c++) {
        const real y = is_of(f, text, c) ? 1 : -1;
        const real g = y * score[c] + own_of(f, text, c) * alpha[c] - margin + slack * alpha[c];
        const real to = alpha[c] - g / (size[c] + slack), next = to > 0 || f->ridge ? to : 0;
        if (next != alpha[c]) most = fmax(most, fabs((double)g));
        move[c] = y * (next - alpha[c]);
        alpha[c] = next;
        f->bias[c] += move[c];
    }
    f->worst = fmax(f->worst, most);
    rows = f->rows + text->from;
    for (int kind = 0; kind < KINDS && most > 0; rows += text->shared[kind++])
        for (int32_t j = 0; j < text->shared[kind]; j++) {
            real *w = f->w + rows[j] * pitch;
            const real *square = f->square + rows[j] * pitch, each = text->each[kind];
            for (int64_t c = 0; c < pitch; c++) w[c] += move[c] * each * square[c];
        }
}

static qkv_status solve(fit *f) {
    const qkv_rng all = {.seed = f->in->seed, .stream = 0x6e6772616d};
    const size_t cells = (size_t)(f->n_shared * f->pitch);
    memset(f->w, 0, cells * sizeof *f->w);
    memset(f->bias, 0, (size_t)f->pitch * sizeof *f->bias);
    memset(f->alpha, 0, (size_t)(f->n * f->pitch) * sizeof *f->alpha);
    memset(f->move, 0, (size_t)f->pitch * sizeof *f->move);
    QKV_PARALLEL_FOR
    for (int64_t i = 0; i < f->n; i++) measure_text(f, i);
    f->worst = INFINITY;
    for (int64_t pass = 0; pass < f->in->spec->ngram_passes && f->worst > ENOUGH; pass++) {
        const qkv_rng order = qkv_rng_derive(all, 1, (uint64_t)pass);
        f->worst = 0;
        for (int64_t i = 0; i < f->n; i++) {
            solve_text(f, (int64_t)qkv_rng_permute(order, (uint64_t)f->n, (uint64_t)i));
            if (i % BLOCK == 0) QKV_TRY(alive(f));
        }
    }
    return QKV_OK;
}

/* ---- the table ---- */

/* Adds `share` of what class c has in a row to the model's; of two classes the second is the
 * first's opposite. */
static void put(const fit *f, real *table, int64_t row, int64_t c, real x) {
    table[row * f->classes + c] += x;
    if (f->solved < f->classes) table[row * f->classes + 1] -= x;
}

static void add_solution(const fit *f, real *table, real share) {
    const int64_t mark = qkv_ngram_mark(f->config);
    for (int64_t c = 0; c < f->solved; c++) {
        put(f, table, mark, c, share * f->bias[c]);
        for (int64_t row = 0; row < f->n_shared; row++)
            put(f, table, f->row_of[row], c, share * f->w[row * f->pitch + c]);
    }
    for (int64_t i = 0; i < f->n; i++) {
        const fitted_text *text = &f->texts[i];
        const int32_t *rows = f->rows + text->from + text->shared[0] + text->shared[1];
        for (int kind = 0; kind < KINDS; rows += text->own[kind++])
            for (int64_t c = 0; c < f->solved; c++) {
                const bool is = is_of(f, text, c);
                const real x = (is ? share : -share) * f->alpha[i * f->pitch + c] *
                               text->each[kind] * (real)(is ? f->own_in[c] : f->own_out[c]);
                for (int32_t j = 0; j < text->own[kind] && x != 0; j++)
                    put(f, table, rows[j], c, x);
            }
    }
}

static qkv_status solve_all(fit *f, real *table) {
    const qkv_ngram_trust trust =
        f->ridge ? QKV_TRUST_RARITY : (qkv_ngram_trust)f->in->spec->ngram_trust;
    const real share = trust == QKV_TRUST_BOTH ? (real)0.5 : 1;
    for (int one = QKV_TRUST_RARITY; one <= QKV_TRUST_CLASS; one++) {
        if (trust != QKV_TRUST_BOTH && (int)trust != one) continue;
        trust_rows(f, (qkv_ngram_trust)one);
        QKV_TRY(solve(f));
        add_solution(f, table, share);
    }
    return QKV_OK;
}

static qkv_status allocate(fit *f) {
    const size_t pitch = (size_t)f->pitch, texts = (size_t)f->n,
                 cells = (size_t)f->n_shared * pitch + 1;
    QKV_TRY_ALLOC(f->w = qkv_alloc_aligned(cells * sizeof *f->w));
    QKV_TRY_ALLOC(f->square = qkv_alloc_aligned(cells * sizeof *f->square));
    QKV_TRY_ALLOC(f->size = qkv_zalloc(texts * pitch, sizeof *f->size));
    QKV_TRY_ALLOC(f->alpha = qkv_zalloc(texts * pitch, sizeof *f->alpha));
    QKV_TRY_ALLOC(f->bias = qkv_zalloc(3 * pitch, sizeof *f->bias));
    f->score = f->bias + pitch;
    f->move = f->score + pitch;
    QKV_TRY_ALLOC(f->own_in = qkv_zalloc(2 * pitch, sizeof *f->own_in));
    f->own_out = f->own_in + pitch;
    QKV_TRY_ALLOC(f->total = qkv_zalloc((size_t)f->classes + 1, sizeof *f->total));
    return QKV_OK;
}

static qkv_status fit_texts(fit *f) {
    const int64_t buckets = f->config->ngram_buckets;
    const qkv_params *params = qkv_model_params(f->in->model);
    QKV_TRY_ALLOC(f->texts = qkv_zalloc((size_t)f->n, sizeof *f->texts));
    QKV_TRY_ALLOC(f->seen = qkv_zalloc((size_t)buckets, sizeof *f->seen));
    QKV_TRY(find_all(f));
    QKV_TRY(part_all(f));
    QKV_TRY(allocate(f));
    real *const table = qkv_param_find(params, "head.ngrams.weight")->tensor.data;
    memset(table, 0, (size_t)(buckets * f->classes) * sizeof *table);
    const qkv_param *idf = qkv_param_find(params, "head.ngrams.idf");
    for (int64_t row = 0; row < buckets && idf; row++)
        idf->tensor.data[row] = rarity_of(f, f->seen[row]);
    return solve_all(f, table);
}

static qkv_status fit_ngrams(const qkv_fit *in) {
    const qkv_config *config = qkv_model_config(in->model);
    fit f = {.in = in,
             .config = config,
             .classes = config->classes,
             .ridge = qkv_shape_of(config->task).head == QKV_HEAD_NUMBER};
    f.all = in->train->n + (in->whole && in->held_out ? in->held_out->n : 0);
    f.n = f.all < ALPHAS / f.classes ? f.all : ALPHAS / f.classes;
    f.solved = f.classes == 2 && !config->several ? 1 : f.classes;
    f.pitch = f.solved == 1 ? 1 : (f.solved + LANES - 1) / LANES * LANES;
    const qkv_status status = fit_texts(&f);
    qkv_free(f.texts);
    qkv_free(f.rows);
    qkv_free(f.seen);
    qkv_free(f.row_of);
    qkv_free(f.w);
    qkv_free(f.square);
    qkv_free(f.size);
    qkv_free(f.alpha);
    qkv_free(f.bias);
    qkv_free(f.own_in);
    qkv_free(f.total);
    return status;
}

/* ---- the row ---- */

static bool wanted(const qkv_config *c) {
    return qkv_is_pooled(qkv_shape_of(c->task)) && c->ngrams > 0;
}

static void size(qkv_config *c, int64_t bytes) {
    /* chosen for answers that are classes; numbers were tried with plain lengths: docs/TASKS.md */
    if (qkv_shape_of(c->task).head == QKV_HEAD_NUMBER) c->ngram_idf = false;
    qkv_recipe_ngrams(bytes, c->classes, &c->ngram_chars, &c->ngram_buckets);
}

/* Two tables of the rows that texts share, two coordinates per text and class, places by row, and
 * the lists. */
static double bytes(const qkv_config *c, int64_t texts) {
    enum { LISTED = 200 }; /* n-grams in a text of middling length */
    const double most = (double)ALPHAS / (double)c->classes, used = fmin((double)texts, most),
                 listed = fmin(LISTED * used, KEPT),
                 shared = fmin((double)c->ngram_buckets, listed / 4);
    return sizeof(real) * (double)c->classes * 2 * (shared + used) +
           sizeof(int32_t) * (2 * (double)c->ngram_buckets + listed);
}

static bool say(const qkv_settings *s, char *text, size_t room) {
    const qkv_config *c = s->values;
    if (qkv_settings_given(s, "ngrams") && qkv_settings_given(s, "ngram_chars")) return false;
    const int n = snprintf(text, room, "n-grams of up to %lld tokens", (long long)c->ngrams);
    if (c->ngram_chars > 0 && n > 0 && (size_t)n < room)
        snprintf(text + n, room - (size_t)n, " or %lld characters", (long long)c->ngram_chars);
    return true;
}

static unsigned columns(const qkv_config *c) {
    return c->ngram_chars > 0 ? qkv_column_bit(QKV_COLUMN_CHARS) : 0;
}

static void keep(qkv_config *kept, const qkv_config *trained) {
    kept->encoder_vote = trained->encoder_vote;
    kept->ngram_vote = trained->ngram_vote;
}

const qkv_companion qkv_companion_ngrams = {
    .name = "n-grams",
    .wanted = wanted,
    .size = size,
    .say = say,
    .columns = columns,
    .fit = fit_ngrams,
    .bytes = bytes,
    .weigh = qkv_votes_weigh,
    .keep = keep,
};
