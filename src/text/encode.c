/* Encoding: a text's way through the pipeline, many texts over threads. */
#include "text/limits.h"
#include "text/models.h"
#include "text/scratch.h"
#include "text/template.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/utf8.h"

#include <string.h>

/* ---- the result's memory ---- */

void qkv_encoding_free(qkv_encoding *e) {
    qkv_free(e->ids);
    qkv_free(e->begin);
    qkv_free(e->end);
    qkv_free(e->type);
    qkv_free(e->mask);
    *e = (qkv_encoding){0};
}

static bool resize(void *at, size_t n, size_t size) {
    void *grown = qkv_realloc(*(void **)at, n * size);
    if (grown) *(void **)at = grown;
    return grown != NULL;
}

bool qkv_encoding_room(qkv_encoding *e, size_t n, bool ranges) {
    size_t cap = e->cap;
    if (e->n + n > cap) {
        cap = e->n + n + (e->n + n) / 2 + 16;
        if (!resize(&e->ids, cap, sizeof *e->ids)) return false;
        if (e->begin && !resize(&e->begin, cap, sizeof *e->begin)) return false;
        if (e->end && !resize(&e->end, cap, sizeof *e->end)) return false;
        if (e->type && !resize(&e->type, cap, sizeof *e->type)) return false;
        if (e->mask && !resize(&e->mask, cap, sizeof *e->mask)) return false;
        e->cap = cap;
    }
    if (ranges && !e->begin && !(e->begin = qkv_alloc(cap * sizeof *e->begin))) return false;
    if (ranges && !e->end && !(e->end = qkv_alloc(cap * sizeof *e->end))) return false;
    return true;
}

/* ---- words ---- */

#define CACHE_FIRST (1u << 9)
#define CACHE_LAST  (1u << 16)

/* A table four times as large with what the old one holds; without memory the old one stays. */
static bool grow_cache(struct qkv_word_cache *c) {
    const uint32_t old = c->slots ? c->mask + 1 : 0, n = old ? 4 * old : CACHE_FIRST;
    qkv_word_slot *slots = n <= CACHE_LAST ? qkv_zalloc(n, sizeof *slots) : NULL;
    if (!slots) return c->slots != NULL;
    for (uint32_t i = 0; i < old; i++)
        if (c->slots[i].len) slots[c->slots[i].hash & (n - 1)] = c->slots[i];
    qkv_free(c->slots);
    c->slots = slots;
    c->mask = n - 1;
    return true;
}

/* One word through the cache. */
static inline qkv_status encode_word(const qkv_tokenizer *tok, qkv_scratch *s, const char *word,
                                     size_t n, uint32_t at, qkv_encoding *out) {
    if (!s->use_cache || n > QKV_CACHE_KEY)
        return tok->model_kind->encode(tok, s, word, n, at, out);
    const uint32_t hash = qkv_text_hash(word, n);
    qkv_word_slot *slot = &s->cache.slots[hash & s->cache.mask];
    if (out->n + QKV_CACHE_IDS > out->cap && !qkv_encoding_room(out, QKV_CACHE_IDS, false))
        return QKV_FAILED;
    if (slot->hash == hash && slot->len == n && !memcmp(slot->key, word, n)) {
        memcpy(out->ids + out->n, slot->ids,
               sizeof slot->ids); /* all of them: one copy of a fixed size */
        out->n += slot->n;
        return QKV_OK;
    }
    const size_t before = out->n;
    QKV_TRY(tok->model_kind->encode(tok, s, word, n, at, out));
    if (out->n - before > QKV_CACHE_IDS) return QKV_OK;
    s->cache.used += !slot->len;
    slot->hash = hash;
    slot->len = (uint8_t)n;
    slot->n = (uint8_t)(out->n - before);
    memcpy(slot->key, word, n);
    memcpy(slot->ids, out->ids + before, slot->n * sizeof *slot->ids);
    if (2 * s->cache.used > s->cache.mask && s->cache.mask + 1 < CACHE_LAST) grow_cache(&s->cache);
    return QKV_OK;
}

/* A text without pre-tokenizer is one long word; where no token has ▁ inside, each ▁ after
 * something else begins a new one. */
static qkv_status encode_marked(const qkv_tokenizer *tok, qkv_scratch *s, const char *text,
                                size_t n, uint32_t at, qkv_encoding *out) {
    static const char mark[] = "\xE2\x96\x81";
    size_t begin = 0;
    for (size_t i = 1; i + 3 <= n; i++) {
        if (text[i] != mark[0] || memcmp(text + i, mark, 3)) continue;
        if (i >= 3 && !memcmp(text + i - 3, mark, 3)) continue;
        QKV_TRY(encode_word(tok, s, text + begin, i - begin, at + (uint32_t)begin, out));
        begin = i;
    }
    return encode_word(tok, s, text + begin, n - begin, at + (uint32_t)begin, out);
}

/* Pre-tokenizer and model on the work's text. */
static qkv_status encode_words(const qkv_tokenizer *tok, qkv_scratch *s, qkv_encoding *out) {
    qkv_draft *w = &s->work;
    const size_t before = out->n;
    const bool marked =
        tok->model_kind == &qkv_model_bpe && ((const qkv_bpe *)tok->model)->word_start;
    QKV_TRY(qkv_text_steps_split(tok, w));
    for (size_t p = 0; p < w->pieces.n; p++) {
        const qkv_piece piece = w->pieces.at[p];
        const char *word = w->text + piece.begin;
        const size_t n = piece.end - piece.begin;
        QKV_TRY(marked ? encode_marked(tok, s, word, n, piece.begin, out)
                       : encode_word(tok, s, word, n, piece.begin, out));
    }
    for (size_t i = before; s->ranges && i < out->n; i++) {
        const uint32_t begin = out->begin[i], end = out->end[i];
        out->begin[i] = w->from[begin];
        out->end[i] = w->to[end > begin ? end - 1 : begin];
    }
    return QKV_OK;
}

/* ---- added tokens in normalised text ---- */

/* Copies the text aside, since the parts' steps write to the work's own buffers. */
static qkv_status hold(qkv_scratch *s) {
    qkv_draft *w = &s->work;
    qkv_buf_clear(&s->held);
    qkv_buf_add(&s->held, w->text, w->len);
    if (s->held.status != QKV_OK) return s->held.status;
    s->held_from.n = s->held_to.n = 0;
    for (size_t i = 0; w->track && i < w->len; i++)
        if (!QKV_PUSH(s->held_from, w->from[i]) || !QKV_PUSH(s->held_to, w->to[i]))
            return QKV_FAILED;
    return QKV_OK;
}

static qkv_status encode_part(const qkv_tokenizer *tok, qkv_scratch *s, size_t begin, size_t end,
                              bool at_start, qkv_encoding *out) {
    qkv_draft *w = &s->work;
    if (begin >= end) return QKV_OK;
    w->text = s->held.data + begin;
    w->len = end - begin;
    w->at_start = at_start && begin == 0;
    if (w->track) {
        w->from = s->held_from.at + begin;
        w->to = s->held_to.at + begin;
    }
    return encode_words(tok, s, out);
}

/* A stretch of the text between added tokens. */
static qkv_status encode_stretch(const qkv_tokenizer *tok, qkv_scratch *s, const char *text,
                                 size_t len, size_t base, qkv_encoding *out) {
    qkv_draft *w = &s->work;
    QKV_TRY(qkv_draft_start(w, text, len, base, s->ranges || tok->track_always));
    QKV_TRY(qkv_text_steps_normalize(tok, w));
    if (!w->len) return QKV_OK;
    qkv_added_search f = {0};
    if (!tok->normalized.any || !qkv_matcher_next(tok, &tok->normalized, w->text, w->len, &f))
        return encode_words(tok, s, out);
    QKV_TRY(hold(s));
    const bool at_start = w->at_start;
    const size_t total = s->held.len;
    do {
        QKV_TRY(encode_part(tok, s, f.taken, f.begin, at_start, out));
        f.taken = f.end;
        if (tok->template.trim_offsets)
            qkv_unicode_trim(s->held.data, &f.begin, &f.end, true, true);
        const uint32_t from = w->track ? s->held_from.at[f.begin] : 0,
                       to = w->track ? s->held_to.at[f.end - 1] : 0;
        if (!qkv_emit(s, out, tok->added.at[f.which].id, from, to)) return QKV_FAILED;
    } while (qkv_matcher_next(tok, &tok->normalized, s->held.data, total, &f));
    return encode_part(tok, s, f.taken, total, at_start, out);
}

/* Offsets without the blanks around a token, as byte-level post-processors state them. (Of added
 * tokens any white space is left out.) */
static void trim_ranges(const char *text, qkv_encoding *e, size_t first) {
    for (size_t i = first; i < e->n; i++) {
        while (e->begin[i] < e->end[i] && text[e->begin[i]] == ' ') e->begin[i]++;
        while (e->begin[i] < e->end[i] && text[e->end[i] - 1] == ' ') e->end[i]--;
    }
}

/* Byte offsets as numbers of characters. */
static qkv_status count_characters(qkv_scratch *s, const char *text, size_t len, qkv_encoding *e,
                                   size_t first) {
    uint32_t count = 0;
    s->before.n = 0;
    for (size_t i = 0, n; i < len; i += n, count++) {
        int32_t cp;
        n = (size_t)qkv_utf8_decode(text + i, len - i, &cp);
        for (size_t k = 0; k < n; k++)
            if (!QKV_PUSH(s->before, count)) return QKV_FAILED;
    }
    if (!QKV_PUSH(s->before, count)) return QKV_FAILED;
    for (size_t i = first; i < e->n; i++) {
        e->begin[i] = s->before.at[e->begin[i]];
        e->end[i] = s->before.at[e->end[i]];
    }
    return QKV_OK;
}

/* One text, without the template's tokens. */
static qkv_status encode_text(const qkv_tokenizer *tok, qkv_scratch *s, const char *text,
                              size_t len, qkv_encoding *out) {
    qkv_added_search f = {0};
    const size_t first = out->n;
    if (len > QKV_TEXT_MAX)
        return qkv_fail(QKV_USAGE, "a text of %zu bytes: at most %u; cut it into parts", len,
                        QKV_TEXT_MAX);
    while (tok->raw.any && qkv_matcher_next(tok, &tok->raw, text, len, &f)) {
        if (f.begin > f.taken)
            QKV_TRY(encode_stretch(tok, s, text + f.taken, f.begin - f.taken, f.taken, out));
        f.taken = f.end;
        if (tok->template.trim_offsets) qkv_unicode_trim(text, &f.begin, &f.end, true, true);
        if (!qkv_emit(s, out, tok->added.at[f.which].id, f.begin, f.end)) return QKV_FAILED;
    }
    if (len > f.taken) QKV_TRY(encode_stretch(tok, s, text + f.taken, len - f.taken, f.taken, out));
    if (s->ranges && tok->template.trim_offsets) trim_ranges(text, out, first);
    return s->ranges && s->characters ? count_characters(s, text, len, out, first) : QKV_OK;
}

/* ---- template and limit ---- */

static void move_ranges(qkv_encoding *e, uint32_t by) {
    for (size_t i = 0; i < e->n; i++) {
        e->begin[i] += by;
        e->end[i] += by;
    }
}

static qkv_status append(const qkv_scratch *s, qkv_encoding *out, const qkv_encoding *part) {
    if (!qkv_encoding_room(out, part->n, s->ranges)) return QKV_FAILED;
    if (!part->n) return QKV_OK;
    memcpy(out->ids + out->n, part->ids, part->n * sizeof *part->ids);
    if (s->ranges) {
        memcpy(out->begin + out->n, part->begin, part->n * sizeof *part->begin);
        memcpy(out->end + out->n, part->end, part->n * sizeof *part->end);
    }
    out->n += part->n;
    return QKV_OK;
}

static void begin_text(qkv_scratch *s, const qkv_tokenizer *tok, const qkv_encode_options *o) {
    const bool bpe = tok->model_kind == &qkv_model_bpe;
    s->characters = o && o->characters;
    s->ranges = o && (o->offsets || o->characters);
    s->dropout = o && o->dropout > 0 ? o->dropout
                 : bpe               ? ((const qkv_bpe *)tok->model)->options.dropout
                                     : 0;
    s->rng = o ? (qkv_rng){o->seed, o->stream} : (qkv_rng){0};
    s->draws = 0;
    s->use_cache = !s->ranges && !(s->dropout > 0) && (s->cache.slots || grow_cache(&s->cache));
}

/* Makes *out an encoding without tokens that has just the arrays that are asked for; a mask comes
 * with padding. */
static qkv_status empty(qkv_encoding *out, bool ranges, bool pair) {
    out->n = 0;
    out->cut = false;
    if (!ranges) {
        qkv_free(out->begin);
        qkv_free(out->end);
        out->begin = out->end = NULL;
    }
    if (!pair) {
        qkv_free(out->type);
        out->type = NULL;
    }
    qkv_free(out->mask);
    out->mask = NULL;
    if (!pair) return QKV_OK;
    if (!qkv_encoding_room(out, 1, ranges)) return QKV_FAILED;
    if (!out->type) QKV_TRY_ALLOC(out->type = qkv_alloc(out->cap));
    return QKV_OK;
}

static const qkv_template_part text_only[] = {{-1, 0}}, pair_only[] = {{-1, 0}, {-2, 1}};

static qkv_status encode_with(const qkv_tokenizer *tok, qkv_scratch *s, const qkv_text *text,
                              const qkv_text *pair, const qkv_encode_options *o,
                              qkv_encoding *out) {
    begin_text(s, tok, o);
    QKV_TRY(empty(out, s->ranges, pair != NULL));
    const qkv_template *t = &tok->template;
    const bool plain = (o && o->no_special) || !t->set;
    const qkv_template_part *parts =
        pair ? (plain ? pair_only : t->pair.at) : (plain ? text_only : t->single.at);
    const size_t n_parts = pair ? (plain ? 2 : t->pair.n) : (plain ? 1 : t->single.n);
    const bool limited = (o && o->max_tokens) || tok->limits.truncate;
    const size_t limit = o && o->max_tokens ? o->max_tokens : tok->limits.max_length;
    size_t added = 0;
    for (size_t i = 0; i < n_parts; i++) added += parts[i].id >= 0;
    const bool apart = pair || limited; /* parts are made first and joined after cutting */
    s->part[0].n = s->part[1].n = 0;
    if (apart) {
        QKV_TRY(encode_text(tok, s, text->data, text->len, &s->part[0]));
        if (pair) QKV_TRY(encode_text(tok, s, pair->data, pair->len, &s->part[1]));
        if (pair && s->ranges && o->pair_at) move_ranges(&s->part[1], (uint32_t)o->pair_at);
        if (limited)
            QKV_TRY(qkv_limits_cut(&tok->limits, limit > added ? limit - added : 0, pair != NULL,
                                   &s->part[0], &s->part[1], &out->cut));
    }
    for (size_t i = 0; i < n_parts; i++) {
        const size_t first = out->n;
        if (parts[i].id >= 0) {
            if (!qkv_emit(s, out, parts[i].id, 0, 0)) return QKV_FAILED;
        } else if (apart)
            QKV_TRY(append(s, out, &s->part[parts[i].id == -2]));
        else
            QKV_TRY(encode_text(tok, s, text->data, text->len, out));
        if (pair) memset(out->type + first, parts[i].type, out->n - first);
    }
    return QKV_OK;
}

qkv_status qkv_tokenizer_encode(const qkv_tokenizer *tok, const char *text, size_t len,
                                const char *pair, size_t pair_len,
                                const qkv_encode_options *options, qkv_encoding *out) {
    qkv_scratch *s;
    QKV_TRY_ALLOC(s = qkv_scratch_take(tok));
    const qkv_status status = encode_with(tok, s, &(qkv_text){text, len},
                                          pair ? &(qkv_text){pair, pair_len} : NULL, options, out);
    qkv_scratch_give(tok, s);
    return status == QKV_OK ? qkv_limits_pad(tok, options, out, 1) : status;
}

/* Random numbers belong to the text's place in the batch, so they do not depend on which thread
 * takes it. */
static qkv_status encode_item(const qkv_tokenizer *tok, qkv_scratch *s, const qkv_text *text,
                              size_t place, const qkv_encode_options *options, qkv_encoding *out) {
    qkv_encode_options o = options ? *options : (qkv_encode_options){0};
    const qkv_rng rng = qkv_rng_derive((qkv_rng){o.seed, o.stream}, place, 0);
    o.seed = rng.seed;
    o.stream = rng.stream;
    return encode_with(tok, s, text, NULL, &o, out);
}

qkv_status qkv_tokenizer_encode_batch(const qkv_tokenizer *tok, const qkv_text *texts, size_t n,
                                      const qkv_encode_options *options, qkv_encoding *out) {
    _Atomic int64_t failed = INT64_MAX;
#pragma omp parallel num_threads(qkv_threads())
    {
        qkv_scratch *s = qkv_scratch_take(tok);
#pragma omp for schedule(dynamic, 16)
        for (int64_t i = 0; i < (int64_t)n; i++) {
            if (s && encode_item(tok, s, &texts[i], (size_t)i, options, &out[i]) == QKV_OK)
                continue;
            int64_t before = failed;
            while (i < before && !atomic_compare_exchange_weak(&failed, &before, i)) {}
        }
        qkv_scratch_give(tok, s);
    }
    if (failed == INT64_MAX) return qkv_limits_pad(tok, options, out, n);
    /* Messages are kept per thread: the first failing text is encoded again here, for its own. */
    qkv_scratch *s;
    QKV_TRY_ALLOC(s = qkv_scratch_take(tok));
    const qkv_status status =
        encode_item(tok, s, &texts[failed], (size_t)failed, options, &out[failed]);
    qkv_scratch_give(tok, s);
    if (status == QKV_OK) return qkv_fail(QKV_FAILED, "out of memory while encoding %zu texts", n);
    return qkv_fail_in(status, "text %lld of the batch", (long long)failed + 1);
}
