/* Truncation and padding: the lengths that a tokenizer's file or the caller asks for.
 *
 * A text that is too long loses the tokens at its end (or its beginning); of a pair the longer text
 * gives way first, unless the file names one of the two. What was cut off is not given out in
 * further parts, so a file's `stride` has no effect. */
#include "text/limits.h"
#include "text/scratch.h"
#include "base/mem.h"

#include <string.h>

static const char *const strategies[] = {"LongestFirst", "OnlyFirst", "OnlySecond"};
enum { LONGEST_FIRST, ONLY_FIRST, ONLY_SECOND };
static const char *const directions[] = {"Right", "Left"};

/* ---- reading ---- */

qkv_status qkv_truncation_parse(qkv_limits *l, qkv_json_at json) {
    int64_t max = 0;
    QKV_TRY(qkv_json_get_int(json, "max_length", true, 0, QKV_TEXT_MAX, &max));
    l->truncate = true;
    l->max_length = (size_t)max;
    QKV_TRY(qkv_json_get_choice(json, "strategy", false, strategies, 3, &l->strategy));
    return qkv_json_get_choice(json, "direction", false, directions, 2, &l->truncate_left);
}

qkv_status qkv_padding_parse(qkv_limits *l, qkv_json_at json) {
    qkv_json_at at;
    int64_t multiple = 0, id = 0, type = 0, fixed = 0;
    QKV_TRY(qkv_json_get_int(json, "pad_to_multiple_of", false, 0, QKV_TEXT_MAX, &multiple));
    QKV_TRY(qkv_json_get_int(json, "pad_id", true, 0, QKV_VOCAB_MAX - 1, &id));
    QKV_TRY(qkv_json_get_int(json, "pad_type_id", false, 0, 255, &type));
    if (qkv_json_member(json, "strategy", &at) && qkv_json_kind_of(at) == QKV_JSON_OBJECT)
        QKV_TRY(qkv_json_get_int(at, "Fixed", true, 0, QKV_TEXT_MAX, &fixed));
    l->pad_id = (int32_t)id;
    l->pad_type = (uint8_t)type;
    l->pad_multiple = (size_t)multiple;
    l->pad_to = (size_t)fixed;
    return qkv_json_get_choice(json, "direction", false, directions, 2, &l->pad_left);
}

/* ---- truncation ---- */

static void keep_tokens(qkv_encoding *e, size_t n, bool left) {
    if (n >= e->n) return;
    const size_t from = left ? e->n - n : 0;
    if (from) {
        memmove(e->ids, e->ids + from, n * sizeof *e->ids);
        if (e->begin) memmove(e->begin, e->begin + from, n * sizeof *e->begin);
        if (e->end) memmove(e->end, e->end + from, n * sizeof *e->end);
    }
    e->n = n;
}

/* The lengths of two texts that together have at most `room` tokens: the longer gives way first. */
static void share_room(size_t *a, size_t *b, size_t room) {
    size_t *const small = *a > *b ? b : a, *const large = small == a ? b : a;
    if (2 * *small < room) {
        *large = room - *small;
        return;
    }
    *small = room / 2;
    *large = room - *small;
}

qkv_status qkv_limits_cut(const qkv_limits *l, size_t room, bool pair, qkv_encoding *a,
                          qkv_encoding *b, bool *cut) {
    size_t first = a->n, second = b->n;
    *cut = first + second > room;
    if (!*cut) return QKV_OK;
    const size_t excess = first + second - room;
    if (room == 0)
        first = second = 0;
    else if (l->strategy == LONGEST_FIRST)
        share_room(&first, &second, room);
    else {
        size_t *const shorter = l->strategy == ONLY_SECOND ? &second : &first;
        if (*shorter <= excess || (l->strategy == ONLY_SECOND && !pair))
            return qkv_fail(QKV_USAGE,
                            "%zu tokens, at most %zu: the tokenizer's file says to cut only the "
                            "%s text, which has %zu",
                            a->n + b->n, room, l->strategy == ONLY_SECOND ? "second" : "first",
                            *shorter);
        *shorter -= excess;
    }
    keep_tokens(a, first, l->truncate_left == 1);
    keep_tokens(b, second, l->truncate_left == 1);
    return QKV_OK;
}

/* ---- padding ---- */

/* Fills *e up to n tokens, and its mask. */
static qkv_status pad_one(qkv_encoding *e, size_t n, int32_t id, uint8_t type, bool left) {
    const size_t real = e->n;
    if (n < real) n = real;
    if (!qkv_encoding_room(e, n - real + 1, e->begin != NULL)) return QKV_FAILED;
    if (!e->mask) QKV_TRY_ALLOC(e->mask = qkv_alloc(e->cap));
    const size_t at = left ? n - real : 0, pad = left ? 0 : real;
    if (at) {
        memmove(e->ids + at, e->ids, real * sizeof *e->ids);
        if (e->begin) memmove(e->begin + at, e->begin, real * sizeof *e->begin);
        if (e->end) memmove(e->end + at, e->end, real * sizeof *e->end);
        if (e->type) memmove(e->type + at, e->type, real);
    }
    for (size_t i = pad; i < pad + n - real; i++) {
        e->ids[i] = id;
        if (e->begin) e->begin[i] = e->end[i] = 0;
        if (e->type) e->type[i] = type;
    }
    memset(e->mask + pad, 0, n - real);
    memset(e->mask + at, 1, real);
    e->n = n;
    return QKV_OK;
}

qkv_status qkv_limits_pad(const qkv_tokenizer *tok, const qkv_encode_options *o, qkv_encoding *e,
                          size_t n) {
    const qkv_limits *l = &tok->limits;
    if (!o || (!o->pad && !o->pad_to)) return QKV_OK;
    const int32_t id = l->padding ? l->pad_id : tok->special[QKV_TOK_PAD];
    if (id < 0)
        return qkv_fail(QKV_USAGE, "padding was asked for, but the tokenizer has no padding token "
                                   "(such as <pad> or [PAD])");
    size_t length = o->pad_to ? o->pad_to : l->pad_to;
    for (size_t i = 0; i < n && !o->pad_to && !l->pad_to; i++)
        if (e[i].n > length) length = e[i].n;
    if (!o->pad_to && l->pad_multiple && length % l->pad_multiple)
        length += l->pad_multiple - length % l->pad_multiple;
    for (size_t i = 0; i < n; i++)
        QKV_TRY(pad_one(&e[i], length, id, l->pad_type, l->pad_left == 1));
    return QKV_OK;
}
