/* A search for better settings, within minutes: the recipe first, then, a run at a time, the best so
 * far with one or two of its knobs (policy/tuning.def) turned at random, judged by a fifth of the
 * rows, which no run sees. What time the last training takes is kept for it: that one has all rows,
 * and leaves the model. A trial that would take that time is stopped.
 *
 * Which settings a trial has follows from the seed and the trials before it, so that the same
 * command goes on where it was stopped. The best of many figures over the same rows flatters: what
 * the model is worth, rows say that were never looked at. */
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "run/trials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 5, DRAWS = 60, WORD = 48 };
static const double LAST = 1.1; /* the last training takes so much more than its rows say */

typedef enum way { VALUE, FACTOR, PRESET } way;
static const struct knob {
    const char *key;
    unsigned kinds;
    way way;
    const char *values;
} knobs[] = {
#define KNOB(key, kinds, way, values) {#key, kinds, way, values},
#include "policy/tuning.def"
#undef KNOB
};
enum { KNOBS = sizeof knobs / sizeof *knobs };

/* A setting of the knobs: the number of a value; 0: as the recipe has it. */
typedef struct position {
    int at[KNOBS];
} position;

typedef struct search {
    qkv_series_of_runs t;
    bool free_to[KNOBS]; /* which may be turned */
    double end;          /* of the budget, by the clock */
    size_t n, best;      /* trials looked at so far; the best of them */
    size_t known;        /* those that earlier processes made */
    position best_at;
    char text[KNOBS][WORD]; /* "lr=0.014" of the position at hand; of the preset its name */
    const char *set[KNOBS + 1];
    char what[QKV_SETTING_TEXT_MAX];
} search;

/* ---- knobs ---- */

/* Value i (from 1) of a list of words; false past its end. */
static bool value_of(const char *values, int i, char word[WORD]) {
    const char *at = values;
    while (--i > 0 && at) at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    if (!at) return false;
    snprintf(word, WORD, "%.*s", (int)strcspn(at, " "), at);
    return true;
}

static int values_in(const char *values) {
    int n = 1;
    while ((values = strchr(values, ' '))) n++, values++;
    return n;
}

/* Does the request say what this key is? Dashes and underscores are the same. */
static bool is_given(const qkv_train_request *q, const char *key) {
    const size_t n = strlen(key);
    if (strcmp(key, "preset") == 0 && (q->preset || q->init)) return true;
    for (const char *const *pair = q->set; pair && *pair; pair++) {
        size_t i = 0;
        while (i < n && ((*pair)[i] == key[i] || ((*pair)[i] == '-' && key[i] == '_'))) i++;
        if (i == n && (*pair)[n] == '=') return true;
    }
    return false;
}

static void find_free(search *s) {
    const qkv_train_request *q = s->t.request;
    const unsigned kind = 1u << s->t.task->recipe->presets;
    const bool budget = is_given(q, "steps") || is_given(q, "minutes");
    for (int k = 0; k < KNOBS; k++)
        s->free_to[k] = (knobs[k].kinds & kind) && !is_given(q, knobs[k].key) &&
                        !(budget && strcmp(knobs[k].key, "epochs") == 0);
}

/* Words and pairs of a position; the first trial says what the factors are of. */
static void put_position(search *s, const position *p) {
    const qkv_trial_entry *first = s->t.done.n ? &s->t.done.at[0] : NULL;
    size_t n = 0, len = 0;
    s->what[0] = 0;
    for (int k = 0; k < KNOBS; k++) {
        char word[WORD];
        if (p->at[k] == 0 || !value_of(knobs[k].values, p->at[k], word)) continue;
        if (knobs[k].way == FACTOR && first) {
            const bool passes = strcmp(knobs[k].key, "epochs") == 0;
            const double x = strtod(word, NULL) * (passes ? (double)first->passes : first->lr);
            snprintf(word, sizeof word, passes ? "%.0f" : "%.3g", passes && x < 1 ? 1 : x);
        }
        snprintf(s->text[k], WORD, "%.20s=%.26s", knobs[k].key, word);
        len += (size_t)snprintf(s->what + len, sizeof s->what - len, "%s%s", len ? " " : "",
                                s->text[k]);
        if (knobs[k].way == PRESET)
            snprintf(s->text[k], WORD, "%s", word);
        else
            s->set[n++] = s->text[k];
    }
    s->set[n] = NULL;
}

static const char *preset_of(const search *s, const position *p) {
    for (int k = 0; k < KNOBS; k++)
        if (knobs[k].way == PRESET && p->at[k]) return s->text[k];
    return NULL;
}

/* ---- what comes next ---- */

static bool was_tried(const search *s) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->t.done.at[i].what, s->what) == 0) return true;
    return false;
}

/* The best with one or two knobs turned, which was not tried yet; false: nothing was found. */
static bool next_position(search *s, uint64_t seed, position *out) {
    const qkv_rng all = {.seed = seed, .stream = 0x74756e65},
                  rng = qkv_rng_derive(all, 1, (uint64_t)s->n);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        *out = s->best_at;
        const int turns = 1 + (int)qkv_rng_below(rng, 8 * draw, 2);
        for (int i = 0; i < turns; i++) {
            const uint64_t at = 8 * draw + 1 + 2 * (uint64_t)i;
            const int k = (int)qkv_rng_below(rng, at, KNOBS);
            const uint64_t values = 1 + (uint64_t)values_in(knobs[k].values);
            if (s->free_to[k]) out->at[k] = (int)qkv_rng_below(rng, at + 1, values);
        }
        put_position(s, out);
        if (*s->what && !was_tried(s)) return true;
    }
    return false;
}

static double mean_seconds(const search *s) {
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) sum += s->t.done.at[i].seconds;
    return sum / (double)s->n;
}

/* Seconds of the last training, if it were that of the best. */
static double last_seconds(const search *s) {
    return LAST * s->t.done.at[s->best].seconds * PARTS / (PARTS - 1);
}

/* ---- the search ---- */

static qkv_status say_trial(search *s) {
    const qkv_trial_entry *e = &s->t.done.at[s->n];
    const char *what = *e->what ? e->what : "as chosen";
    const int i = (int)s->n + 1;
    if (!e->over) return qkv_trials_note(&s->t, "trial %-3d given up: %s", i, what);
    if (s->t.task->counts_right)
        return qkv_trials_note(&s->t, "trial %-3d %6.2f %% right, loss %.4f, %4.0f s: %s", i,
                               100 * e->right, e->loss, e->seconds, what);
    return qkv_trials_note(&s->t, "trial %-3d loss %.4f, %4.0f s: %s", i, e->loss, e->seconds,
                           what);
}

static qkv_status try_position(search *s, const position *p) {
    const double now = qkv_now();
    snprintf(s->t.label, sizeof s->t.label, "trial %zu", s->n + 1);
    s->t.until = s->end;
    s->t.deadline = s->n ? s->end - last_seconds(s) : now + 0.6 * (s->end - now);
    s->t.quiet = s->n > 0;
    const qkv_variation v = {
        .what = s->what, .preset = preset_of(s, p), .set = s->set, .part = 0, .parts = PARTS};
    QKV_TRY(qkv_trials_run(&s->t, &v, s->n > 0));
    return say_trial(s);
}

/* Makes one trial more, or looks at one that was made; *go_on false: there is no time, or nothing
 * left to try. */
static qkv_status advance(search *s, uint64_t seed, bool *go_on) {
    position p = {{0}};
    *go_on = s->n == 0 || next_position(s, seed, &p);
    if (!*go_on) return QKV_OK;
    put_position(s, &p);
    if (s->n == s->t.done.n) {
        *go_on = s->n == 0 || qkv_now() + mean_seconds(s) + last_seconds(s) < s->end;
        if (*go_on) QKV_TRY(try_position(s, &p));
        if (!*go_on) return QKV_OK;
    } else if (strcmp(s->t.done.at[s->n].what, s->what) != 0) {
        return qkv_fail(QKV_USAGE, "%s holds trials of another version; --overwrite them",
                        s->t.request->out);
    }
    if (!s->t.done.at[0].over) { /* too slow: see too_short */
        *go_on = false;
        return QKV_OK;
    }
    if (qkv_trials_better(&s->t, &s->t.done.at[s->n], &s->t.done.at[s->best]))
        s->best = s->n, s->best_at = p;
    s->n++;
    return QKV_OK;
}

/* The best, with all rows. A model that an earlier search left gives way to that of a better one. */
static qkv_status train_best(search *s) {
    const qkv_train_request *base = s->t.request;
    size_t n = 0, more = 0;
    put_position(s, &s->best_at);
    while (base->set && base->set[n]) n++;
    while (s->set[more]) more++;
    const char **set = qkv_zalloc(n + more + 1, sizeof *set);
    if (!set) return QKV_FAILED;
    for (size_t i = 0; i < n + more; i++) set[i] = i < n ? base->set[i] : s->set[i - n];
    qkv_train_request q = *base;
    const char *preset = preset_of(s, &s->best_at);
    q.set = set;
    q.overwrite |= s->best >= s->known && s->known > 0;
    if (preset) q.preset = preset;
    qkv_status status = qkv_trials_note(&s->t, "best      trial %zu of %zu (%s); now with all rows",
                                        s->best + 1, s->n, *s->what ? s->what : "as chosen");
    if (status == QKV_OK)
        status = qkv_run_once(&(qkv_run_wish){.request = &q, .folder = true}, NULL);
    qkv_free(set);
    return status;
}

/* The first trial took too long: better said than searched without a model at the end. */
static qkv_status too_short(const search *s, double minutes) {
    const double all = s->t.run_takes / 60;
    return qkv_fail(QKV_USAGE,
                    "--tune %.3g: one training takes about %.1f minutes; give at least %.0f, or "
                    "make it shorter (--epochs, --preset)",
                    minutes, all, 4 * all + 1);
}

static bool holds_a_run(const char *folder) {
    qkv_buf path = {0};
    const bool there =
        qkv_folder_part(folder, QKV_PART_RUN, &path) == QKV_OK && qkv_file_exists(path.data);
    qkv_buf_free(&path);
    return there;
}

static qkv_status tune(search *s, double minutes) {
    const qkv_train_request *q = s->t.request;
    uint64_t seed = 1;
    bool go_on = true;
    for (const char *const *pair = q->set; pair && *pair; pair++)
        if (strncmp(*pair, "seed=", 5) == 0) seed = strtoull(*pair + 5, NULL, 10);
    if (!q->overwrite && s->t.done.n == 0 && holds_a_run(q->out))
        return qkv_fail(QKV_USAGE, "%s holds a run; give another --out, or --overwrite", q->out);
    if (!s->t.task) return qkv_run_once(&(qkv_run_wish){.request = q, .folder = true}, NULL);
    s->known = s->t.done.n;
    s->end = s->t.begun + 60 * minutes;
    for (size_t i = 0; i < s->known; i++) s->end -= s->t.done.at[i].seconds;
    find_free(s);
    while (go_on) QKV_TRY(advance(s, seed, &go_on));
    if (!s->t.done.at[s->best].over) return too_short(s, minutes);
    return train_best(s);
}

qkv_status qkv_tune(const qkv_train_request *request, double minutes, qkv_trials *out) {
    search s = {.n = 0};
    *out = (qkv_trials){0};
    if (!(minutes > 0))
        return qkv_fail(QKV_USAGE, "tune: %g minutes; it must be more than 0", minutes);
    qkv_status status = qkv_trials_open(&s.t, request, QKV_PART_TRIALS, 0);
    if (status == QKV_OK) status = tune(&s, minutes);
    if (status == QKV_OK) status = qkv_trials_give(&s.t, out);
    qkv_trials_close(&s.t);
    return status;
}
