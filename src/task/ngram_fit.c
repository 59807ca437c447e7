/* The weights of n-grams, found before the steps.
 *
 * They are a convex problem with a few non-zero features a text, so there is no need of gradient
 * steps beside the encoder's: each class against the rest is a support vector machine
 * with squared slack,
 *     minimise ½ |u|² + C Σ_i max(0, 1 − y_i u·x̃_i)²,
 * solved in its dual by one coordinate α_i ≥ 0 at a time (Hsieh et al. 2008): a few passes over the
 * texts, each as cheap as counting them. The features x̃ are those of ngram_head.c, each times the
 * logarithm of how much more often it stands in texts of the class than in others
 * (Wang and Manning 2012):
 *     r_gk = log( ((n_gk + a π_k) / N_k) / ((n_g − n_gk + a (1 − π_k)) / (N − N_k)) )
 * with n_gk texts of class k that have n-gram g, N_k all of k's n-grams, π_k = N_k / N, and a
 * pseudo-texts in proportion to the classes, so that an n-gram seen once says little and one never
 * seen nothing. What is kept is w = r u, so that w·x is the decision and an update of
 * α by d adds d r² x to w.
 *
 * A text of several labels counts in each of their classes.
 *
 * A number t is told by ridge regression (squared error in the place of the slack, α of any sign):
 *     minimise ½ |u|² + C Σ_i (t_i − u·x̃_i)²
 * with r_g = 1 + log(N / n_g), as words are weighed where texts are searched.
 * IMDb's stars, 5,000 reviews: mean squared error 4.58; 4.99 without r, 5.34 by ridge regression on
 * tf-idf of words and pairs of words.
 *
 * Texts are taken in an order that depends on the seed alone, and one after another: the same bits
 * on any number of threads and on every rank. Only hashing, which is most of the work, is spread
 * over threads, a block of texts at a time; nothing is kept of a text but one number per class, so
 * the data may be larger than memory. */
#include "base/mem.h"
#include "base/thread.h"
#include "task/companion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    AHEAD = 12,  /* rows of the table asked for before they are read: it is larger than the cache */
    BLOCK = 512, /* texts that are hashed at a time */
    ALPHAS = 1 << 27, /* most coordinates: of more texts × classes only some texts are used */
};
static const double ENOUGH = 0.001; /* of a coordinate's gradient, 1 where nothing is learned yet */

typedef struct fit {
    const qkv_fit *in;
    const qkv_config *config;
    bool ridge;                  /* a number is told, no classes */
    int64_t all, texts, classes; /* texts there are; those used */
    real *table;                 /* by row: w of each class, then n_gk and later r² of each */
    real *alpha;                 /* (texts, classes) */
    real *seen;                  /* by row: n_g */
    real *score, *size, *move;   /* by class, of the text at hand */
    double *total;               /* by class: N_k; N behind them */
    int64_t pass;
    double worst; /* largest gradient of a coordinate that moved in this pass */
    /* the block at hand */
    int64_t number[BLOCK], example[BLOCK]; /* of the texts, among those used and among all */
    int64_t from[BLOCK], n[BLOCK];         /* where each one's rows begin, and how many */
    qkv_cells truth[BLOCK];                /* the classes it is of, or its number */
    int32_t *rows;
    real *counts; /* what each row counts in its text */
    int64_t cap;
} fit;

/* ---- texts ---- */

/* Text i and what is true of it: those that are trained on come first, then those held out. */
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

/* Hashes the `n` texts that the pass takes from its i-th on. */
static qkv_status hash_block(fit *f, int64_t i, int64_t n) {
    const qkv_rng all = {.seed = f->in->seed, .stream = 0x6e6772616d},
                  order = qkv_rng_derive(all, 1, (uint64_t)f->pass);
    int64_t room = 0;
    for (int64_t k = 0; k < n; k++) {
        f->number[k] = (int64_t)qkv_rng_permute(order, (uint64_t)f->texts, (uint64_t)(i + k));
        f->example[k] = (int64_t)qkv_rng_permute(all, (uint64_t)f->all, (uint64_t)f->number[k]);
        f->from[k] = room;
        const qkv_ngram_text text = text_of(f, f->example[k], &f->truth[k]);
        room += qkv_ngram_room(f->config, &text);
    }
    if (room > f->cap) {
        qkv_free(f->rows);
        qkv_free(f->counts);
        f->cap = 0;
        f->counts = NULL;
        QKV_TRY_ALLOC(f->rows = qkv_alloc((size_t)room * sizeof *f->rows));
        QKV_TRY_ALLOC(f->counts = qkv_alloc((size_t)room * sizeof *f->counts));
        f->cap = room;
    }
    QKV_PARALLEL_FOR_UNEVEN
    for (int64_t k = 0; k < n; k++) {
        qkv_cells truth;
        const qkv_ngram_text text = text_of(f, f->example[k], &truth);
        f->n[k] = qkv_ngram_rows(f->config, &text, f->rows + f->from[k], f->counts + f->from[k]);
    }
    return QKV_OK;
}

/* One pass: `visit` for each text k of each block, in the pass's order. */
static qkv_status each_text(fit *f, void (*visit)(fit *f, int64_t k)) {
    for (int64_t i = 0; i < f->texts; i += BLOCK) {
        const int64_t n = f->texts - i < BLOCK ? f->texts - i : BLOCK;
        QKV_TRY(hash_block(f, i, n));
        for (int64_t k = 0; k < n; k++) visit(f, k);
        if (f->in->tell) QKV_TRY(f->in->tell(f->in->user));
    }
    return QKV_OK;
}

/* The number of text k of the block, as the model is to give it. */
static real number_of(const fit *f, int64_t k) {
    float value;
    memcpy(&value, f->truth[k].at, sizeof value);
    return (real)(((double)value - f->config->rate_mean) / f->config->rate_deviation);
}

static bool is_among(qkv_cells list, int64_t c) {
    bool is = false;
    for (int64_t i = 0; i < list.n; i++) is |= list.at[i] == c;
    return is;
}

/* ---- how much more often ---- */

static real *weight_of(const fit *f, int64_t row) {
    return f->table + 2 * row * f->classes;
}
static real *square_of(const fit *f, int64_t row) {
    return weight_of(f, row) + f->classes;
}

static void count_text(fit *f, int64_t k) {
    const int32_t *rows = f->rows + f->from[k];
    const qkv_cells of = f->truth[k];
    for (int64_t j = 0; j < f->n[k]; j++) {
        f->seen[rows[j]] += 1;
        for (int64_t c = 0; c < of.n && !f->ridge; c++) square_of(f, rows[j])[of.at[c]] += 1;
    }
    for (int64_t c = 0; c < of.n && !f->ridge; c++) f->total[of.at[c]] += (double)f->n[k];
    f->total[f->classes] += (double)f->n[k];
}

/* Counts to r², row by row. */
static void weigh_rows(fit *f) {
    const double prior = f->in->spec->ngram_prior, all = f->total[f->classes];
    QKV_PARALLEL_FOR
    for (int64_t row = 0; row < f->config->ngram_buckets; row++) {
        real *const x = square_of(f, row);
        const double here = (double)f->seen[row];
        if (f->ridge) x[0] = (real)pow(log((double)f->texts / fmax(here, 1)) + 1, 2);
        for (int64_t c = 0; c < f->classes && here > 0 && !f->ridge; c++) {
            const double in = f->total[c], share = in / all;
            if (in == 0 || in == all) { /* no text of this class, or of no other */
                x[c] = 0;
                continue;
            }
            const double r = log(((double)x[c] + prior * share) / in * (all - in) /
                                 (here - (double)x[c] + prior * (1 - share)));
            x[c] = (real)(r * r);
        }
    }
    /* what every text has tells nothing apart, but lets the decision lie off the middle */
    real *const mark = square_of(f, qkv_ngram_mark(f->config));
    for (int64_t c = 0; c < f->classes; c++) mark[c] = 1;
}

/* ---- the dual ---- */

/* The best α of each class for this text, all others as they are. */
static void solve_text(fit *f, int64_t k) {
    const qkv_task_spec *spec = f->in->spec;
    const int64_t classes = f->classes, n = f->n[k];
    const int32_t *rows = f->rows + f->from[k];
    const qkv_cells of = f->truth[k];
    real *restrict score = f->score, *restrict size = f->size, *restrict move = f->move;
    const real *const counts = f->counts + f->from[k];
    memset(score, 0, (size_t)classes * sizeof *score);
    memset(size, 0, (size_t)classes * sizeof *size);
    for (int64_t j = 0; j < n; j++) {
        if (j + AHEAD < n) __builtin_prefetch(weight_of(f, rows[j + AHEAD]));
        const real x = counts[j], *w = weight_of(f, rows[j]), *square = w + classes;
        for (int64_t c = 0; c < classes; c++) {
            score[c] += x * w[c];
            size[c] += x * x * square[c];
        }
    }
    const real cost =
        (real)spec->ngram_cost * (spec->class_weights ? spec->class_weights[of.at[0]] : 1);
    const real slack = 1 / (2 * cost), margin = f->ridge ? number_of(f, k) : 1;
    real *const alpha = f->alpha + f->number[k] * classes;
    double most = 0;
    for (int64_t c = 0; c < classes; c++) {
        const real y = f->ridge || is_among(of, c) ? 1 : -1;
        const real g = y * score[c] - margin + slack * alpha[c];
        const real to = alpha[c] - g / (size[c] + slack), next = to > 0 || f->ridge ? to : 0;
        if (next != alpha[c]) most = fmax(most, fabs((double)g));
        move[c] = y * (next - alpha[c]);
        alpha[c] = next;
    }
    f->worst = fmax(f->worst, most);
    for (int64_t j = 0; j < n && most > 0; j++) {
        const real x = counts[j];
        real *w = weight_of(f, rows[j]);
        for (int64_t c = 0; c < classes; c++) w[c] += move[c] * x * w[classes + c];
    }
}

static qkv_status solve(fit *f) {
    QKV_TRY(each_text(f, count_text));
    weigh_rows(f);
    for (f->pass = 0, f->worst = INFINITY; f->pass < f->in->spec->ngram_passes && f->worst > ENOUGH;
         f->pass++) {
        f->worst = 0;
        QKV_TRY(each_text(f, solve_text));
    }
    return QKV_OK;
}

static qkv_status fit_ngrams(const qkv_fit *in) {
    const qkv_config *config = qkv_model_config(in->model);
    fit f = {.in = in,
             .config = config,
             .classes = config->classes,
             .ridge = qkv_shape_of(config->task).head == QKV_HEAD_NUMBER};
    const size_t classes = (size_t)f.classes, cells = (size_t)config->ngram_buckets * classes;
    f.all = in->train->n + (in->whole && in->held_out ? in->held_out->n : 0);
    f.texts = f.all < ALPHAS / f.classes ? f.all : ALPHAS / f.classes;
    f.table = qkv_alloc_aligned(2 * cells * sizeof *f.table); /* in large pages */
    if (f.table) memset(f.table, 0, 2 * cells * sizeof *f.table);
    f.alpha = qkv_zalloc((size_t)f.texts * classes, sizeof *f.alpha);
    f.score = qkv_zalloc(3 * classes, sizeof *f.score);
    f.total = qkv_zalloc(classes + 1, sizeof *f.total);
    f.seen = qkv_zalloc((size_t)config->ngram_buckets, sizeof *f.seen);
    qkv_status status = QKV_FAILED;
    if (f.table && f.alpha && f.score && f.total && f.seen) {
        f.size = f.score + classes;
        f.move = f.size + classes;
        status = solve(&f);
    }
    real *const w = qkv_param_find(qkv_model_params(in->model), "head.ngrams.weight")->tensor.data;
    for (int64_t row = 0; row < config->ngram_buckets && status == QKV_OK; row++)
        memcpy(w + row * f.classes, weight_of(&f, row), classes * sizeof *w);
    qkv_free(f.table);
    qkv_free(f.alpha);
    qkv_free(f.score);
    qkv_free(f.total);
    qkv_free(f.seen);
    qkv_free(f.rows);
    qkv_free(f.counts);
    return status;
}

/* ---- the row ---- */

static bool wanted(const qkv_config *c) {
    return qkv_is_pooled(qkv_shape_of(c->task)) && c->ngrams > 0;
}

static void size(qkv_config *c, int64_t bytes) {
    qkv_recipe_ngrams(bytes, c->classes, &c->ngram_chars, &c->ngram_buckets);
}

/* The table has weights and squares; beside it stands a coordinate per text and class. */
static double bytes(const qkv_config *c, int64_t texts) {
    const double most = (double)ALPHAS / (double)c->classes, used = fmin((double)texts, most);
    return sizeof(real) * (double)c->classes * (2 * (double)c->ngram_buckets + used);
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
