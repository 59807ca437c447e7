/* Generation; see generate.h. */
#include "decode/generate.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kern/kern.h"

typedef struct writer {
    qkv_session *session;
    const qkv_generate_spec *spec;
    qkv_sampler sampler;
    int32_t *ids; /* the prompt and what was written */
    int32_t n_prompt, n;
    int32_t first; /* the window begins here */
    int32_t seen;  /* tokens in it */
    int32_t window;
} writer;

/* How many tokens the model may see at once. */
static qkv_status choose_window(const qkv_model *m, const qkv_generate_spec *spec, int64_t all,
                                int32_t *out) {
    const qkv_config *c = qkv_model_config(m);
    const bool endless = c->arch != QKV_ARCH_TRANSFORMER;
    const int64_t window = endless ? all : spec->window ? spec->window : c->max_len;
    const bool ends = qkv_position_has(qkv_config_position(c, true), QKV_POSITION_HAS_END);
    if (!endless && ends && window > c->max_len)
        return qkv_fail(
            QKV_USAGE,
            "generate: a window of %lld tokens, but the model has %lld learned positions "
            "and no others; use a window of at most that",
            (long long)window, (long long)c->max_len);
    if (!endless && window < 2)
        return qkv_fail(QKV_USAGE, "generate: a window must have room for two tokens");
    *out = (int32_t)(window < all ? window : all);
    return QKV_OK;
}

/* Reads the newest tokens from the beginning of a window. There is room left for half a window of
 * new ones, or for as many as are still to come. */
static qkv_status read_window(writer *w) {
    const int32_t to_come = w->spec->tokens - (w->n - w->n_prompt);
    const int32_t room = to_come < w->window / 2 ? to_come : w->window / 2;
    const int32_t kept = w->n < w->window - room ? w->n : w->window - room;
    w->first = w->n - kept;
    w->seen = kept;
    const int32_t start[] = {0, kept};
    const qkv_tokens tokens = {
        .layout = {.n = 1, .start = start}, .ids = w->ids + w->first, .rows = kept};
    return qkv_session_begin(w->session, NULL, &tokens, 1, w->window);
}

/* The scores of the token after the newest. */
static qkv_status read_on(writer *w) {
    if (w->seen == w->window) return read_window(w);
    w->seen++;
    return qkv_session_step(w->session, &w->ids[w->n - 1]);
}

static void forbid(const writer *w, real *logits) {
    const qkv_generate_spec *spec = w->spec;
    const int32_t written = w->n - w->n_prompt;
    for (int64_t id = 0; spec->never && id < w->session->vocab; id++)
        if (spec->never[id]) logits[id] = -INFINITY;
    for (int32_t i = 0; i < spec->n_ends && written < spec->min_tokens; i++)
        logits[spec->ends[i]] = -INFINITY;
    const qkv_phrases *p = &spec->forbidden;
    for (int32_t i = 0; i < p->n; i++) {
        const int32_t *ids = p->ids + p->start[i], len = p->start[i + 1] - p->start[i];
        if (len > 0 && len - 1 <= w->n &&
            memcmp(w->ids + w->n - (len - 1), ids, (size_t)(len - 1) * sizeof *ids) == 0)
            logits[ids[len - 1]] = -INFINITY;
    }
}

static bool is_end(const qkv_generate_spec *spec, int32_t id) {
    for (int32_t i = 0; i < spec->n_ends; i++)
        if (spec->ends[i] == id) return true;
    return id < 0;
}

static qkv_status write_all(writer *w, qkv_token_fn token, void *user, bool *ended) {
    QKV_TRY(read_window(w));
    for (int32_t i = 0; i < w->spec->tokens; i++) {
        real *logits = w->session->logits;
        const real lse = qkv_kern_get()->log_sum_exp(logits, w->session->vocab);
        if (!isfinite((double)lse))
            return qkv_fail(QKV_NUMERIC,
                            "generate: the scores of token %d are not finite; the model's weights "
                            "are damaged or its training diverged",
                            (int)i + 1);
        forbid(w, logits);
        const int32_t id = qkv_sampler_draw(&w->sampler, &w->spec->sampling, logits,
                                            w->ids + w->first, w->n - w->first, (uint64_t)i);
        *ended = is_end(w->spec, id);
        if (*ended) return QKV_OK;
        w->ids[w->n++] = id;
        if (!token(user, id, (double)(logits[id] - lse)) || i + 1 == w->spec->tokens) return QKV_OK;
        QKV_TRY(read_on(w));
    }
    return QKV_OK;
}

qkv_status qkv_generate_tokens(qkv_session *s, const qkv_generate_spec *spec, const int32_t *prompt,
                               int32_t n, qkv_token_fn token, void *user, bool *ended) {
    const int64_t all = (int64_t)n + spec->tokens;
    *ended = false;
    if (n < 1 || spec->tokens < 0 || all > INT32_MAX)
        return qkv_fail(QKV_USAGE, "generate: a prompt of %d tokens and %d more", (int)n,
                        (int)spec->tokens);
    QKV_TRY(qkv_sampling_check(&spec->sampling));
    if (spec->tokens == 0) return QKV_OK;
    writer w = {.session = s, .spec = spec, .n_prompt = n, .n = n};
    QKV_TRY(choose_window(s->model, spec, all, &w.window));
    qkv_status status = qkv_sampler_init(&w.sampler, s->vocab);
    w.ids = qkv_alloc((size_t)all * sizeof *w.ids);
    if (!w.ids) status = QKV_FAILED;
    if (status == QKV_OK) {
        memcpy(w.ids, prompt, (size_t)n * sizeof *w.ids);
        status = write_all(&w, token, user, ended);
    }
    qkv_sampler_free(&w.sampler);
    qkv_free(w.ids);
    return status;
}
