/* JSON reader: one pass, a flat array of nodes, no recursion.
 *
 * While a container is open its `end` holds the index of the container around it, so the stack of
 * open containers needs no memory of its own. Strings without escapes are left where they are in
 * the text; the others are copied once. Keys are compared pairwise in small objects and through a
 * hash table in large ones, with a seed of this process, so that nobody can prepare a file whose
 * keys all collide. */
#include "base/json_node.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NO_PARENT UINT32_MAX

typedef struct reader {
    qkv_json *doc;
    const char *p, *end; /* the unread text */
    qkv_json_limits limits;
    size_t cap;    /* nodes there is room for */
    uint32_t open; /* innermost open container, or NO_PARENT */
    size_t depth;
    char *chunk; /* room for unescaped strings */
    size_t chunk_left;
} reader;

/* ---- messages ---- */

static qkv_status fail_at(const reader *r, const char *p, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static qkv_status fail_at(const reader *r, const char *p, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t line = 1;
    const char *start = r->doc->text;
    for (const char *q = start; q < p; q++)
        if (*q == '\n') line++, start = q + 1;
    return qkv_fail(QKV_BAD_FILE, "%s:%zu:%zu: JSON: %s", r->doc->name, line,
                    qkv_utf8_count(start, (size_t)(p - start)) + 1, text);
}

/* "wanted …, found …" where the reader stands. */
static qkv_status unexpected(const reader *r, const char *wanted) {
    if (r->p >= r->end) return fail_at(r, r->p, "the text ends where %s should stand", wanted);
    unsigned char c = (unsigned char)*r->p;
    if (c > 0x20 && c < 0x7f)
        return fail_at(r, r->p, "found '%c' where %s should stand", c, wanted);
    return fail_at(r, r->p, "found byte 0x%02x where %s should stand", c, wanted);
}

/* ---- nodes ---- */

static qkv_status grow(reader *r) {
    size_t n = r->doc->n_nodes;
    if (n >= r->limits.nodes)
        return fail_at(r, r->p, "more than %zu values (the limit here)", r->limits.nodes);
    size_t cap = r->cap ? r->cap + r->cap / 2 : 64;
    if (cap > r->limits.nodes) cap = r->limits.nodes;
    qkv_json_node *nodes;
    QKV_TRY_ALLOC(nodes = qkv_realloc(r->doc->nodes, cap * sizeof *nodes));
    r->doc->nodes = nodes;
    r->cap = cap;
    return QKV_OK;
}

/* Appends a node; *out is good until the next one is added. */
static inline qkv_status add_node(reader *r, qkv_json_kind kind, const char *at,
                                  qkv_json_node **out) {
    if (r->doc->n_nodes == r->cap) QKV_TRY(grow(r));
    *out = &r->doc->nodes[r->doc->n_nodes++];
    **out = (qkv_json_node){.kind = (uint16_t)kind, .where = (uint32_t)(at - r->doc->text)};
    return QKV_OK;
}

static inline void skip_space(reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
        r->p++;
}

/* ---- strings ---- */

/* True for words without a byte that ends a plain run: '"', '\\', a control character or one of
 * 0x80 … 0xFF. */
static inline bool plain_word(const char *p) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t w;
    memcpy(&w, p, 8);
    uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');
    return ((w | (w - ones * 0x20) | (quote - ones) | (slash - ones)) & tops) == 0;
}

/* Moves to the byte after the closing quote of the string whose opening quote is at r->p. */
static qkv_status scan_string(reader *r, bool *escapes) {
    const char *p = r->p + 1, *end = r->end;
    *escapes = false;
    while (p < end) {
        while (end - p >= 8 && plain_word(p)) p += 8;
        if (p >= end) break;
        unsigned char c = (unsigned char)*p;
        if (c == '"') {
            r->p = p + 1;
            return QKV_OK;
        }
        if (c == '\\') {
            *escapes = true;
            /* What follows is looked at when the string is copied; here only an escaped quote
             * matters. */
            p += end - p > 1 && (p[1] == '"' || p[1] == '\\') ? 2 : 1;
        } else if (c < 0x20) {
            return fail_at(r, p, "control character 0x%02x inside a string; write it as \\u%04x", c,
                           c);
        } else if (c < 0x80) {
            p++;
        } else {
            int32_t cp;
            p += qkv_utf8_decode(p, (size_t)(end - p), &cp);
            if (cp < 0) return fail_at(r, p - 1, "byte 0x%02x is not UTF-8", c);
        }
    }
    return fail_at(r, r->p, "a string that never ends");
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The value of "\uXXXX" at p, or −1. `end` is the closing quote, so that looking ahead stops there.
 */
static int32_t unicode_escape(const char *p, const char *end) {
    int32_t value = 0;
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Decodes the escape at *p into out; moves *p behind it and returns the bytes written, 0 on
 * failure. */
static int decode_escape(const reader *r, const char **p, const char *end, char out[4]) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = (*p)[1];
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        out[0] = to[simple - from];
        *p += 2;
        return 1;
    }
    int32_t cp = unicode_escape(*p, end);
    if (cp < 0) {
        fail_at(r, *p, "an escape that is none of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
        return 0;
    }
    const char *start = *p;
    *p += 6;
    if (cp >= 0xD800 && cp < 0xE000) {
        int32_t low = cp < 0xDC00 ? unicode_escape(*p, end) : -1;
        if (low < 0xDC00 || low > 0xDFFF) {
            fail_at(r, start, "half of a surrogate pair: \\u%04x", (unsigned)cp);
            return 0;
        }
        cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
        *p += 6;
    }
    return qkv_utf8_encode(cp, out);
}

/* Room for n bytes that live as long as the document; small strings share a block. */
static char *string_room(reader *r, size_t n) {
    enum { BLOCK = 1 << 14 };
    if (n > r->chunk_left) {
        size_t bytes = n > BLOCK ? n : BLOCK;
        char *block = qkv_arena_alloc(&r->doc->strings, bytes);
        if (!block) return NULL;
        if (n > BLOCK) return block;
        r->chunk = block;
        r->chunk_left = bytes;
    }
    char *place = r->chunk;
    r->chunk += n;
    r->chunk_left -= n;
    return place;
}

static qkv_status unescape(reader *r, const char *raw, size_t len, qkv_json_node *node) {
    uint32_t offset = (uint32_t)(raw - 1 - r->doc->text);
    char *room;
    QKV_TRY_ALLOC(room = string_room(r, len + sizeof offset));
    memcpy(room, &offset, sizeof offset);
    char *out = room + sizeof offset, *to = out;
    for (const char *p = raw, *end = raw + len; p < end;) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        char bytes[4];
        int n = decode_escape(r, &p, end, bytes);
        if (n == 0) return QKV_BAD_FILE;
        memcpy(to, bytes, (size_t)n); /* never longer than the escape itself */
        to += n;
    }
    node->text = out;
    node->where = (uint32_t)(to - out);
    node->escaped = true;
    return QKV_OK;
}

static qkv_status read_string(reader *r) {
    const char *start = r->p + 1;
    bool escapes;
    qkv_json_node *node;
    QKV_TRY(scan_string(r, &escapes));
    size_t len = (size_t)(r->p - 1 - start);
    QKV_TRY(add_node(r, QKV_JSON_STRING, start, &node));
    if (escapes) return unescape(r, start, len, node);
    node->text = start;
    node->where = (uint32_t)len;
    return QKV_OK;
}

/* ---- numbers and words ---- */

static const char *skip_digits(const char *p, const char *end) {
    while (p < end && *p >= '0' && *p <= '9') p++;
    return p;
}

/* The end of the number at p by JSON's grammar, NULL when it is none: no leading zero, no bare
 * point. */
static const char *number_end(const char *p, const char *end) {
    p += *p == '-';
    const char *whole = p;
    p = skip_digits(p, end);
    if (p == whole || (*whole == '0' && p - whole > 1)) return NULL;
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        p = skip_digits(p, end);
        if (p == fraction) return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        const char *exponent = p;
        p = skip_digits(p, end);
        if (p == exponent) return NULL;
    }
    return p;
}

static qkv_status read_number(reader *r) {
    const char *start = r->p, *end = number_end(start, r->end);
    if (!end) return fail_at(r, start, "a malformed number");
    double value;
    if (!qkv_number_parse(start, (size_t)(end - start), &value))
        return fail_at(r, start, "a number too large for a double, or longer than 1024 digits");
    qkv_json_node *node;
    QKV_TRY(add_node(r, QKV_JSON_NUMBER, start, &node));
    node->number = value;
    r->p = end;
    return QKV_OK;
}

static qkv_status read_word(reader *r) {
    static const struct {
        const char *word;
        qkv_json_kind kind;
    } words[] = {{"null", QKV_JSON_NULL}, {"false", QKV_JSON_FALSE}, {"true", QKV_JSON_TRUE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(r->end - r->p) < n || memcmp(r->p, words[i].word, n) != 0) continue;
        qkv_json_node *node;
        QKV_TRY(add_node(r, words[i].kind, r->p, &node));
        r->p += n;
        return QKV_OK;
    }
    return unexpected(r, "a value");
}

/* ---- keys said twice ---- */

static bool same_key(const qkv_json_node *a, const qkv_json_node *b) {
    return a->where == b->where && memcmp(a->text, b->text, a->where) == 0;
}

static inline uint32_t after(const qkv_json *doc, uint32_t value) {
    const qkv_json_node *n = &doc->nodes[value];
    return n->kind >= QKV_JSON_ARRAY ? n->end : value + 1;
}

static qkv_status fail_twice(const reader *r, uint32_t key) {
    const qkv_json_node *n = &r->doc->nodes[key];
    return fail_at(r, r->doc->text + qkv_json_offset(r->doc, key),
                   "the key \"%.*s\" is there twice", n->where < 80 ? (int)n->where : 80, n->text);
}

static qkv_status check_few(const reader *r, uint32_t first, uint32_t end) {
    const qkv_json *doc = r->doc;
    for (uint32_t a = first; a < end; a = after(doc, a + 1))
        for (uint32_t b = first; b < a; b = after(doc, b + 1))
            if (same_key(&doc->nodes[a], &doc->nodes[b])) return fail_twice(r, a);
    return QKV_OK;
}

static uint64_t process_seed(void) {
    static _Atomic uint64_t shared; /* two threads that race here each get a good one */
    uint64_t seed = shared;
    if (seed) return seed;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t parts[3] = {(uint64_t)now.tv_nsec, (uint64_t)now.tv_sec, (uint64_t)(uintptr_t)&now};
    seed = qkv_hash64(parts, sizeof parts, 1) | 1;
    shared = seed;
    return seed;
}

static qkv_status check_many(const reader *r, uint32_t first, uint32_t end, uint32_t count) {
    const qkv_json *doc = r->doc;
    struct slot {
        uint32_t hash, key; /* key 0: empty (node 0 is never a key) */
    } * slots;
    size_t size = 64;
    while (size < 2 * (size_t)count) size *= 2;
    QKV_TRY_ALLOC(slots = qkv_zalloc(size, sizeof *slots));
    uint64_t seed = process_seed(),
             hash = qkv_hash64(doc->nodes[first].text, doc->nodes[first].where, seed);
    qkv_status status = QKV_OK;
    for (uint32_t k = first, next; k < end && status == QKV_OK; k = next) {
        size_t i = (size_t)(hash >> 32) & (size - 1);
        const uint32_t low = (uint32_t)hash;
        next = after(doc, k + 1);
        if (next < end) { /* its place is asked for ahead: the table may be large */
            hash = qkv_hash64(doc->nodes[next].text, doc->nodes[next].where, seed);
            __builtin_prefetch(&slots[(size_t)(hash >> 32) & (size - 1)], 1);
        }
        for (; slots[i].key; i = (i + 1) & (size - 1))
            if (slots[i].hash == low && same_key(&doc->nodes[slots[i].key], &doc->nodes[k])) {
                status = fail_twice(r, k);
                break;
            }
        slots[i] = (struct slot){low, k};
    }
    qkv_free(slots);
    return status;
}

/* ---- containers ---- */

static qkv_status open_container(reader *r, qkv_json_kind kind) {
    qkv_json_node *node;
    if (r->depth >= r->limits.depth)
        return fail_at(r, r->p, "nested deeper than %zu (the limit here)", r->limits.depth);
    QKV_TRY(add_node(r, kind, r->p, &node));
    node->count = 0;
    node->end = r->open;
    r->open = (uint32_t)(node - r->doc->nodes);
    r->depth++;
    r->p++;
    return QKV_OK;
}

static qkv_status close_container(reader *r) {
    enum { FEW = 12 };
    uint32_t index = r->open, end = (uint32_t)r->doc->n_nodes;
    qkv_json_node *node = &r->doc->nodes[index];
    r->open = node->end;
    node->end = end;
    r->depth--;
    r->p++;
    if (node->kind != QKV_JSON_OBJECT) return QKV_OK;
    return node->count <= FEW ? check_few(r, index + 1, end)
                              : check_many(r, index + 1, end, node->count);
}

/* Reads "key" and ':'. */
static qkv_status read_key(reader *r) {
    skip_space(r);
    if (r->p >= r->end || *r->p != '"') return unexpected(r, "a key in double quotes");
    QKV_TRY(read_string(r));
    skip_space(r);
    if (r->p >= r->end || *r->p != ':') return unexpected(r, "':'");
    r->p++;
    return QKV_OK;
}

/* Reads one scalar, or opens a container; *complete says whether the value ends here. */
static qkv_status read_value(reader *r, bool *complete) {
    skip_space(r);
    if (r->p >= r->end) return unexpected(r, "a value");
    if (r->open != NO_PARENT) r->doc->nodes[r->open].count++;
    char c = *r->p;
    *complete = true;
    if (c == '"') return read_string(r);
    if (c == '-' || (c >= '0' && c <= '9')) return read_number(r);
    if (c != '{' && c != '[') return read_word(r);
    QKV_TRY(open_container(r, c == '{' ? QKV_JSON_OBJECT : QKV_JSON_ARRAY));
    skip_space(r);
    if (r->p < r->end && *r->p == (c == '{' ? '}' : ']')) return close_container(r);
    *complete = false;
    return c == '{' ? read_key(r) : QKV_OK;
}

/* After a complete value: closes what ends here; *more says that another value follows. */
static qkv_status after_value(reader *r, bool *more) {
    *more = false;
    while (r->open != NO_PARENT) {
        bool object = r->doc->nodes[r->open].kind == QKV_JSON_OBJECT;
        skip_space(r);
        char c = r->p < r->end ? *r->p : 0;
        if (c == ',') {
            r->p++;
            *more = true;
            return object ? read_key(r) : QKV_OK;
        }
        if (c != (object ? '}' : ']')) return unexpected(r, object ? "',' or '}'" : "',' or ']'");
        QKV_TRY(close_container(r));
    }
    return QKV_OK;
}

static qkv_status read_all(reader *r) {
    bool more = true;
    if (r->end - r->p >= 3 && memcmp(r->p, "\xEF\xBB\xBF", 3) == 0)
        return fail_at(r, r->p, "it begins with a byte order mark; save it as UTF-8 without one");
    while (more) {
        bool complete = false;
        QKV_TRY(read_value(r, &complete));
        if (complete) QKV_TRY(after_value(r, &more));
    }
    skip_space(r);
    return r->p < r->end ? unexpected(r, "the end of the text") : QKV_OK;
}

qkv_status qkv_json_parse(qkv_json *doc, const char *name, const char *text, size_t len,
                          qkv_json_limits limits) {
    *doc = (qkv_json){.name = name, .text = text, .len = len};
    qkv_arena_init(&doc->strings);
    if (limits.nodes > UINT32_MAX) limits.nodes = UINT32_MAX;
    if (limits.bytes > UINT32_MAX) limits.bytes = UINT32_MAX;
    if (len > limits.bytes)
        return qkv_fail(QKV_BAD_FILE, "%s: %zu bytes of JSON, more than the limit of %zu", name,
                        len, limits.bytes);
    reader r = {.doc = doc, .p = text, .end = text + len, .limits = limits, .open = NO_PARENT};
    qkv_status status = read_all(&r);
    if (status != QKV_OK) qkv_json_free(doc);
    return status;
}

void qkv_json_free(qkv_json *doc) {
    qkv_free(doc->nodes);
    qkv_arena_free(&doc->strings);
    doc->nodes = NULL;
    doc->n_nodes = 0;
}
