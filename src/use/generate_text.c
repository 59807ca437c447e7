/* Generation of text: encode the prompt, draw tokens, decode them as they come.
 *
 * Text that may be the beginning of a stop string is held back until it is clear that it is not. */
#include "use/constraints.h"
#include "base/clock.h"
#include "base/mem.h"
#include "decode/generate.h"

#include <string.h>

typedef struct outlet {
    const qkv_generate_options *options;
    qkv_decode_stream *stream;
    qkv_buf held;   /* decoded, not yet given out */
    qkv_buf *whole; /* all that was given out; NULL: not wanted */
    qkv_generated about;
    double started;
    qkv_status status;
} outlet;

/* ---- stop strings ---- */

/* The first place where a stop string begins; len: there is none. */
static size_t find_stop(const qkv_generate_options *o, const char *text, size_t len) {
    for (size_t at = 0; at < len; at++)
        for (size_t i = 0; i < o->n_stop; i++)
            if (o->stop[i].len && o->stop[i].len <= len - at &&
                memcmp(text + at, o->stop[i].data, o->stop[i].len) == 0)
                return at;
    return len;
}

/* Bytes at the end that may be the beginning of a stop string. */
static size_t doubtful(const qkv_generate_options *o, const char *text, size_t len) {
    size_t most = 0;
    for (size_t i = 0; i < o->n_stop; i++) {
        size_t n = o->stop[i].len ? o->stop[i].len - 1 : 0;
        for (n = n < len ? n : len; n > most; n--)
            if (memcmp(text + len - n, o->stop[i].data, n) == 0) most = n;
    }
    return most;
}

/* ---- giving out ---- */

/* Gives the first n held bytes out; false when the caller wants no more. */
static bool give(outlet *out, size_t n) {
    if (n == 0) return true;
    if (out->whole) qkv_buf_add(out->whole, out->held.data, n);
    const bool more =
        !out->options->write || out->options->write(out->options->user, out->held.data, n);
    memmove(out->held.data, out->held.data + n, out->held.len - n);
    out->held.len -= n;
    if (!more) out->about.end = QKV_END_CALLBACK;
    return more;
}

/* Gives out what is certain, all of it at the end of the text; false: stop. */
static bool pass_on(outlet *out, bool last) {
    if (out->status == QKV_OK) out->status = out->held.status;
    if (out->status != QKV_OK) return false;
    if (out->held.len == 0) return true;
    const size_t stop = find_stop(out->options, out->held.data, out->held.len);
    if (stop < out->held.len) {
        give(out, stop);
        out->held.len = 0;
        if (out->about.end != QKV_END_CALLBACK) out->about.end = QKV_END_STOP;
        return false;
    }
    return give(out,
                out->held.len - (last ? 0 : doubtful(out->options, out->held.data, out->held.len)));
}

static bool take_token(void *user, int32_t id, double log_prob) {
    outlet *out = user;
    if (out->about.tokens++ == 0) out->about.prompt_seconds = qkv_now() - out->started;
    out->about.log_prob += log_prob;
    out->status = qkv_decode_stream_push(out->stream, id, &out->held);
    return pass_on(out, false);
}

/* ---- the prompt ---- */

/* A prompt as the tokenizer frames a text, but open at its end. One without tokens becomes a line
 * end (what comes before any text), or, where that is no token either,
 * the beginning-of-text token. */
static qkv_status encode_prompt(const qkv_text_model *m, const char *prompt, size_t len,
                                bool framed, qkv_encoding *e) {
    const qkv_encode_options whole = {.max_tokens = SIZE_MAX, .no_special = framed};
    QKV_TRY(qkv_tokenizer_encode(m->tokenizer, prompt, len, NULL, 0, &whole, e));
    if (framed && e->n) return QKV_OK;
    if (e->n && e->ids[e->n - 1] == m->spec.eos) e->n--;
    if (e->n == 0) QKV_TRY(qkv_tokenizer_encode(m->tokenizer, "\n", 1, NULL, 0, &whole, e));
    if (e->n && e->ids[e->n - 1] == m->spec.eos) e->n--;
    if (e->n) return QKV_OK;
    if (!e->ids) QKV_TRY_ALLOC(e->ids = qkv_zalloc(1, sizeof *e->ids));
    e->ids[e->n++] = m->spec.bos >= 0 ? m->spec.bos : m->spec.eos >= 0 ? m->spec.eos : 0;
    return QKV_OK;
}

static qkv_status run(const qkv_text_model *m, const qkv_encoding *prompt,
                      const qkv_constraints *limits, outlet *out) {
    const qkv_generate_options *o = out->options;
    if (prompt->n > INT32_MAX / 2)
        return qkv_fail(QKV_USAGE, "generate: the prompt has over 2^30 tokens");
    qkv_generate_spec spec = {.tokens = o->tokens ? o->tokens : 256,
                              .min_tokens = o->min_tokens,
                              .ends = m->ends,
                              .n_ends = m->n_ends,
                              .window = o->window,
                              .never = limits->never,
                              .forbidden = qkv_constraints_phrases(limits)};
    spec.sampling = (qkv_sampling){.value = {[QKV_SAMPLER_repetition] = o->repetition,
                                             [QKV_SAMPLER_temperature] = o->temperature,
                                             [QKV_SAMPLER_top_k] = o->top_k,
                                             [QKV_SAMPLER_typical] = o->typical,
                                             [QKV_SAMPLER_top_p] = o->top_p,
                                             [QKV_SAMPLER_min_p] = o->min_p},
                                   .seed = o->seed};
    qkv_session *s;
    QKV_TRY(qkv_text_model_take_session(m, &s));
    bool ended;
    out->started = qkv_now();
    qkv_status status =
        qkv_generate_tokens(s, &spec, prompt->ids, (int32_t)prompt->n, take_token, out, &ended);
    qkv_text_model_give_session(m, s);
    if (status == QKV_OK) status = out->status;
    out->about.seconds = qkv_now() - out->started;
    if (status != QKV_OK || out->about.end != QKV_END_TOKENS) return status;
    if (ended) out->about.end = QKV_END_TEXT;
    QKV_TRY(qkv_decode_stream_end(out->stream, &out->held));
    pass_on(out, true);
    return out->status;
}

static qkv_status generate(const qkv_text_model *m, const char *prompt, size_t len, outlet *out) {
    const qkv_generate_options *o = out->options;
    qkv_encoding e = {0};
    qkv_constraints limits;
    qkv_status status = qkv_constraints_make(m, o->forbidden, o->n_forbidden, true, &limits);
    if (status == QKV_OK) status = qkv_decode_stream_new(m->tokenizer, false, &out->stream);
    if (status == QKV_OK) status = encode_prompt(m, prompt, len, o->framed, &e);
    out->about.prompt_tokens = e.n;
    if (status == QKV_OK) status = run(m, &e, &limits, out);
    qkv_constraints_free(&limits);
    qkv_encoding_free(&e);
    qkv_decode_stream_free(out->stream);
    qkv_buf_free(&out->held);
    return status;
}

qkv_status qkv_generate(const qkv_text_model *m, const char *prompt, size_t len,
                        const qkv_generate_options *options, char **text, qkv_generated *about) {
    static const qkv_generate_options standard;
    if (text) *text = NULL;
    if (about) *about = (qkv_generated){0};
    const qkv_shape shape = qkv_task_of(qkv_model_config(m->model))->shape;
    if (shape.encoder || !shape.decoder) return qkv_other_use(m, "generate text");
    qkv_buf whole = {0};
    outlet out = {.options = options ? options : &standard, .whole = text ? &whole : NULL};
    if (out.options->tokens < 0 || out.options->min_tokens < 0 || out.options->window < 0)
        return qkv_fail(QKV_USAGE, "generate: numbers of tokens must not be negative");
    qkv_status status = generate(m, prompt, len, &out);
    if (text) qkv_buf_puts(&whole, "");
    if (status == QKV_OK) status = whole.status;
    if (about) *about = out.about;
    if (text && status == QKV_OK)
        *text = whole.data;
    else
        qkv_buf_free(&whole);
    return status;
}
