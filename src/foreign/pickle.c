/* The machine of pickle.h: a stack of values, marks, and a memo. Values are made once and never
 * change but for lists and dictionaries, which grow; a value that would hold itself is refused where
 * it would be read. */
#include "foreign/pickle.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { VALUES_MAX = 1 << 22, NAME_BYTES = 512 };

typedef enum kind {
    K_NONE,
    K_BOOL,
    K_INT,
    K_LONG, /* more than 8 bytes */
    K_TEXT,
    K_TUPLE,
    K_LIST,
    K_DICT, /* items: key, value, key, value … */
    K_GLOBAL,
    K_STORAGE,
    K_TENSOR,
    K_MARK
} kind;

typedef struct value value;
typedef struct items {
    value **at;
    size_t n, cap;
} items;
struct value {
    kind kind;
    int64_t number; /* INT, BOOL; GLOBAL: its row; STORAGE: elements */
    qkv_text text;  /* TEXT, LONG; STORAGE: its key */
    items items;
    qkv_dtype dtype; /* STORAGE */
    value *storage;  /* TENSOR */
    int64_t offset;
    int rank;
    int64_t shape[8];
};

typedef struct machine {
    const char *data;
    size_t n, at;
    qkv_arena memory; /* of values */
    QKV_VEC(value *) stack;
    QKV_VEC(value *) memo;
    QKV_VEC(value *) made; /* whose items are freed at the end */
    bool stopped;
} machine;

/* ---- names that a pickle may use ---- */

typedef enum role { R_DICT, R_TENSOR, R_PARAMETER, R_STORAGE } role;
static const struct {
    const char *name;
    role role;
    qkv_dtype dtype;
} globals[] = {
    {"collections OrderedDict", R_DICT, 0},
    {"torch._utils _rebuild_tensor_v2", R_TENSOR, 0},
    {"torch._utils _rebuild_parameter", R_PARAMETER, 0},
    {"torch FloatStorage", R_STORAGE, QKV_DTYPE_F32},
    {"torch HalfStorage", R_STORAGE, QKV_DTYPE_F16},
    {"torch BFloat16Storage", R_STORAGE, QKV_DTYPE_BF16},
    {"torch DoubleStorage", R_STORAGE, QKV_DTYPE_F64},
    {"torch LongStorage", R_STORAGE, QKV_DTYPE_I64},
    {"torch IntStorage", R_STORAGE, QKV_DTYPE_I32},
    {"torch ByteStorage", R_STORAGE, QKV_DTYPE_U8},
    {"torch CharStorage", R_STORAGE, QKV_DTYPE_I8},
    {"torch BoolStorage", R_STORAGE, QKV_DTYPE_BOOL},
};
enum { N_GLOBALS = sizeof globals / sizeof *globals };

static qkv_status bad(const machine *m, const char *what) {
    return qkv_fail(QKV_BAD_FILE, "byte %zu of the pickle: %s", m->at, what);
}

/* ---- bytes ---- */

static qkv_status take(machine *m, size_t n, const char **out) {
    if (n > m->n - m->at) return bad(m, "it ends within a value");
    *out = m->data + m->at;
    m->at += n;
    return QKV_OK;
}

/* A little-endian number of 1 to 8 bytes. */
static qkv_status take_number(machine *m, size_t bytes, uint64_t *out) {
    const char *at = NULL;
    QKV_TRY(take(m, bytes, &at));
    *out = 0;
    memcpy(out, at, bytes);
    return QKV_OK;
}

static qkv_status take_line(machine *m, qkv_text *out) {
    const char *end = memchr(m->data + m->at, '\n', m->n - m->at);
    if (!end) return bad(m, "a line without an end");
    out->data = m->data + m->at;
    out->len = (size_t)(end - out->data);
    m->at += out->len + 1;
    return QKV_OK;
}

/* ---- values ---- */

static qkv_status push(machine *m, value *v) {
    if (m->stack.n >= VALUES_MAX) return bad(m, "too many values");
    return QKV_PUSH(m->stack, v) ? QKV_OK : QKV_FAILED;
}

static qkv_status make(machine *m, kind k, value **out) {
    if (m->made.n >= VALUES_MAX) return bad(m, "too many values");
    QKV_TRY_ALLOC(*out = qkv_arena_zalloc(&m->memory, sizeof **out));
    (*out)->kind = k;
    return QKV_PUSH(m->made, *out) ? QKV_OK : QKV_FAILED;
}

static qkv_status push_new(machine *m, kind k, int64_t number, qkv_text text) {
    value *v = NULL;
    QKV_TRY(make(m, k, &v));
    v->number = number;
    v->text = text;
    return push(m, v);
}

static qkv_status pop(machine *m, value **out) {
    if (!m->stack.n || m->stack.at[m->stack.n - 1]->kind == K_MARK)
        return bad(m, "a value is missing");
    *out = m->stack.at[--m->stack.n];
    return QKV_OK;
}

static qkv_status add_item(value *v, value *item) {
    if (!qkv_vec_grow((void **)&v->items.at, v->items.n, &v->items.cap, sizeof *v->items.at))
        return QKV_FAILED;
    v->items.at[v->items.n++] = item;
    return QKV_OK;
}

/* Where the values above the last mark begin. */
static qkv_status find_mark(machine *m, size_t *first) {
    for (size_t i = m->stack.n; i > 0; i--)
        if (m->stack.at[i - 1]->kind == K_MARK) {
            *first = i;
            return QKV_OK;
        }
    return bad(m, "a mark is missing");
}

/* A tuple of the values from `first` on, in whose place (and the mark's) it comes. */
static qkv_status make_tuple(machine *m, size_t first, bool marked) {
    value *v = NULL;
    QKV_TRY(make(m, K_TUPLE, &v));
    for (size_t i = first; i < m->stack.n; i++) {
        if (m->stack.at[i]->kind == K_MARK) return bad(m, "a value is missing");
        QKV_TRY(add_item(v, m->stack.at[i]));
    }
    m->stack.n = first - marked;
    return push(m, v);
}

static qkv_status tuple_of(machine *m, size_t n) {
    if (m->stack.n < n) return bad(m, "a value is missing");
    return make_tuple(m, m->stack.n - n, false);
}

/* Puts the values from `first` on into the list or dictionary below. */
static qkv_status put_items(machine *m, size_t first, kind wanted, size_t below) {
    if (below == 0 || m->stack.at[below - 1]->kind != wanted)
        return bad(m, "items for something that holds none");
    value *v = m->stack.at[below - 1];
    if (wanted == K_DICT && (m->stack.n - first) % 2) return bad(m, "a key without a value");
    for (size_t i = first; i < m->stack.n; i++) QKV_TRY(add_item(v, m->stack.at[i]));
    m->stack.n = below;
    return QKV_OK;
}

static qkv_status put_marked(machine *m, kind wanted) {
    size_t first = 0;
    QKV_TRY(find_mark(m, &first));
    return put_items(m, first, wanted, first - 1);
}

static qkv_status put_last(machine *m, kind wanted, size_t n) {
    if (m->stack.n < n) return bad(m, "a value is missing");
    for (size_t i = m->stack.n - n; i < m->stack.n; i++)
        if (m->stack.at[i]->kind == K_MARK) return bad(m, "a value is missing");
    return put_items(m, m->stack.n - n, wanted, m->stack.n - n);
}

/* ---- names and what they make ---- */

static qkv_status push_global(machine *m) {
    qkv_text module = {0}, name = {0};
    char full[NAME_BYTES];
    QKV_TRY(take_line(m, &module));
    QKV_TRY(take_line(m, &name));
    snprintf(full, sizeof full, "%.*s %.*s", (int)(module.len < 200 ? module.len : 200),
             module.data, (int)(name.len < 200 ? name.len : 200), name.data);
    for (int i = 0; i < N_GLOBALS; i++)
        if (!strcmp(globals[i].name, full)) return push_new(m, K_GLOBAL, i, (qkv_text){0});
    return qkv_fail(
        QKV_BAD_FILE,
        "byte %zu of the pickle: it asks for %.*s.%.*s, which no table of weights needs", m->at,
        (int)(module.len < 80 ? module.len : 80), module.data, (int)(name.len < 80 ? name.len : 80),
        name.data);
}

static bool is_global(const value *v, role r) {
    return v->kind == K_GLOBAL && globals[v->number].role == r;
}

/* ("storage", its class, key, place, elements, …) */
static qkv_status push_storage(machine *m) {
    value *id = NULL, *v = NULL;
    QKV_TRY(pop(m, &id));
    value *const *at = id->items.at;
    if (id->kind != K_TUPLE || id->items.n < 5 || at[0]->kind != K_TEXT || at[0]->text.len != 7 ||
        memcmp(at[0]->text.data, "storage", 7) != 0 || !is_global(at[1], R_STORAGE) ||
        at[2]->kind != K_TEXT || at[4]->kind != K_INT || at[4]->number < 0 ||
        (id->items.n > 5 && at[5]->kind != K_NONE))
        return bad(m, "a persistent id that is no storage");
    QKV_TRY(make(m, K_STORAGE, &v));
    v->dtype = globals[at[1]->number].dtype;
    v->text = at[2]->text;
    v->number = at[4]->number;
    return push(m, v);
}

/* Sizes and strides of a tensor whose elements lie one after another. */
static qkv_status read_shape(machine *m, const value *sizes, const value *strides, value *out) {
    int64_t step = 1;
    if (sizes->kind != K_TUPLE || strides->kind != K_TUPLE || sizes->items.n > 8 ||
        sizes->items.n != strides->items.n)
        return bad(m, "a tensor without sizes");
    out->rank = (int)sizes->items.n;
    for (int i = 0; i < out->rank; i++) {
        if (sizes->items.at[i]->kind != K_INT || sizes->items.at[i]->number < 0)
            return bad(m, "a tensor without sizes");
        out->shape[i] = sizes->items.at[i]->number;
    }
    for (int i = out->rank - 1; i >= 0; i--) {
        const value *stride = strides->items.at[i];
        if (stride->kind != K_INT || (stride->number != step && out->shape[i] > 1))
            return bad(m, "a tensor whose elements do not lie one after another");
        if (__builtin_mul_overflow(step, out->shape[i] > 0 ? out->shape[i] : 1, &step))
            return bad(m, "a tensor of more elements than can be counted");
    }
    return QKV_OK;
}

/* (storage, offset, sizes, strides, …) */
static qkv_status push_tensor(machine *m, const value *args) {
    value *v = NULL;
    value *const *at = args->items.at;
    if (args->items.n < 4 || at[0]->kind != K_STORAGE || at[1]->kind != K_INT || at[1]->number < 0)
        return bad(m, "a tensor of no storage");
    QKV_TRY(make(m, K_TENSOR, &v));
    v->storage = at[0];
    v->offset = at[1]->number;
    QKV_TRY(read_shape(m, at[2], at[3], v));
    return push(m, v);
}

static qkv_status reduce(machine *m) {
    value *args = NULL, *callee = NULL;
    QKV_TRY(pop(m, &args));
    QKV_TRY(pop(m, &callee));
    if (args->kind != K_TUPLE || callee->kind != K_GLOBAL) return bad(m, "a call of what is none");
    switch (globals[callee->number].role) {
    case R_DICT:
        if (args->items.n) return bad(m, "an OrderedDict of something");
        return push_new(m, K_DICT, 0, (qkv_text){0});
    case R_TENSOR:
        return push_tensor(m, args);
    case R_PARAMETER:
        if (args->items.n < 1 || args->items.at[0]->kind != K_TENSOR)
            return bad(m, "a parameter of no tensor");
        return push(m, args->items.at[0]);
    default:
        return bad(m, "a storage is called");
    }
}

/* An OrderedDict may have attributes (_metadata), which mean nothing here. */
static qkv_status build(machine *m) {
    value *state = NULL;
    QKV_TRY(pop(m, &state));
    if (!m->stack.n || m->stack.at[m->stack.n - 1]->kind != K_DICT || state->kind != K_DICT)
        return bad(m, "attributes of what has none");
    return QKV_OK;
}

/* ---- memo ---- */

static qkv_status put_memo(machine *m, uint64_t place) {
    if (!m->stack.n || m->stack.at[m->stack.n - 1]->kind == K_MARK)
        return bad(m, "a value is missing");
    if (place > m->memo.n) return bad(m, "the memo is not filled in order");
    if (place == m->memo.n)
        return QKV_PUSH(m->memo, m->stack.at[m->stack.n - 1]) ? QKV_OK : QKV_FAILED;
    m->memo.at[place] = m->stack.at[m->stack.n - 1];
    return QKV_OK;
}

static qkv_status get_memo(machine *m, uint64_t place) {
    return place < m->memo.n ? push(m, m->memo.at[place]) : bad(m, "the memo has no such value");
}

/* ---- opcodes ---- */

static qkv_status push_text(machine *m, size_t bytes) {
    uint64_t len = 0;
    qkv_text text = {0};
    QKV_TRY(take_number(m, bytes, &len));
    if (len > m->n) return bad(m, "a text longer than the file");
    text.len = (size_t)len;
    QKV_TRY(take(m, text.len, &text.data));
    return push_new(m, K_TEXT, 0, text);
}

static qkv_status push_int(machine *m, size_t bytes, bool with_sign) {
    uint64_t n = 0;
    QKV_TRY(take_number(m, bytes, &n));
    return push_new(m, K_INT, with_sign ? (int32_t)n : (int64_t)n, (qkv_text){0});
}

static qkv_status push_long(machine *m) {
    uint64_t len = 0;
    qkv_text bytes = {0};
    QKV_TRY(take_number(m, 1, &len));
    bytes.len = (size_t)len;
    QKV_TRY(take(m, bytes.len, &bytes.data));
    if (len > 8) return push_new(m, K_LONG, 0, bytes);
    int64_t number = len && (bytes.data[len - 1] & 0x80) ? -1 : 0;
    memcpy(&number, bytes.data, bytes.len);
    return push_new(m, K_INT, number, (qkv_text){0});
}

/* No tensor is made of one. */
static qkv_status push_real(machine *m) {
    const char *bytes = NULL;
    QKV_TRY(take(m, 8, &bytes));
    return push_new(m, K_NONE, 0, (qkv_text){0});
}

static qkv_status with_number(machine *m, size_t bytes, qkv_status (*use)(machine *, uint64_t)) {
    uint64_t n = 0;
    QKV_TRY(take_number(m, bytes, &n));
    return use(m, n);
}

static qkv_status protocol(machine *m, uint64_t version) {
    return version == 2 ? QKV_OK : bad(m, "a protocol other than 2");
}

static qkv_status tuple_marked(machine *m) {
    size_t first = 0;
    QKV_TRY(find_mark(m, &first));
    return make_tuple(m, first, true);
}

static qkv_status step(machine *m, unsigned char op) {
    const qkv_text none = {0};
    switch (op) {
    case 0x80:
        return with_number(m, 1, protocol);
    case 'c':
        return push_global(m);
    case 'R':
        return reduce(m);
    case 'b':
        return build(m);
    case 'Q':
        return push_storage(m);
    case '(':
        return push_new(m, K_MARK, 0, none);
    case 't':
        return tuple_marked(m);
    case 0x85:
        return tuple_of(m, 1);
    case 0x86:
        return tuple_of(m, 2);
    case 0x87:
        return tuple_of(m, 3);
    case ')':
        return push_new(m, K_TUPLE, 0, none);
    case '}':
        return push_new(m, K_DICT, 0, none);
    case ']':
        return push_new(m, K_LIST, 0, none);
    case 'e':
        return put_marked(m, K_LIST);
    case 'a':
        return put_last(m, K_LIST, 1);
    case 'u':
        return put_marked(m, K_DICT);
    case 's':
        return put_last(m, K_DICT, 2);
    case 'X':
        return push_text(m, 4);
    case 'J':
        return push_int(m, 4, true);
    case 'K':
        return push_int(m, 1, false);
    case 'M':
        return push_int(m, 2, false);
    case 0x8a:
        return push_long(m);
    case 'G':
        return push_real(m);
    case 0x88:
        return push_new(m, K_BOOL, 1, none);
    case 0x89:
        return push_new(m, K_BOOL, 0, none);
    case 'N':
        return push_new(m, K_NONE, 0, none);
    case 'q':
        return with_number(m, 1, put_memo);
    case 'r':
        return with_number(m, 4, put_memo);
    case 'h':
        return with_number(m, 1, get_memo);
    case 'j':
        return with_number(m, 4, get_memo);
    case '.':
        m->stopped = true;
        return QKV_OK;
    default:
        return qkv_fail(
            QKV_BAD_FILE,
            "byte %zu of the pickle: the opcode 0x%02x, which no table of weights needs", m->at - 1,
            op);
    }
}

static qkv_status run(machine *m) {
    while (!m->stopped) {
        const char *op = NULL;
        QKV_TRY(take(m, 1, &op));
        QKV_TRY(step(m, (unsigned char)*op));
    }
    return m->stack.n == 1 ? QKV_OK : bad(m, "it ends with more or less than one value");
}

/* ---- the result ---- */

static qkv_status copy_text(qkv_arena *memory, qkv_text t, const char **out) {
    if (t.len > 4096 || (t.len && memchr(t.data, 0, t.len)))
        return qkv_fail(QKV_BAD_FILE, "a name of %zu bytes, or with a NUL in it", t.len);
    QKV_TRY_ALLOC(*out = qkv_arena_strndup(memory, t.data, t.len));
    return QKV_OK;
}

static qkv_status add_tensor(qkv_pickle *out, qkv_text name, const value *v) {
    qkv_pickled t = {.dtype = v->storage->dtype,
                     .offset = v->offset,
                     .storage_elements = v->storage->number,
                     .rank = v->rank};
    memcpy(t.shape, v->shape, sizeof t.shape);
    QKV_TRY(copy_text(out->memory, name, &t.name));
    QKV_TRY(copy_text(out->memory, v->storage->text, &t.storage));
    return QKV_PUSH(out->tensors, t) ? QKV_OK : QKV_FAILED;
}

/* A dictionary's tensors. One in it, called "model" or "state_dict", is what is meant where the top
 * holds no tensor itself. */
static qkv_status add_tensors(qkv_pickle *out, const value *dict) {
    for (size_t i = 0; i + 1 < dict->items.n; i += 2) {
        const value *key = dict->items.at[i], *v = dict->items.at[i + 1];
        if (v->kind != K_TENSOR) continue;
        if (key->kind != K_TEXT) return qkv_fail(QKV_BAD_FILE, "a tensor without a name");
        QKV_TRY(add_tensor(out, key->text, v));
    }
    return QKV_OK;
}

static qkv_status give(qkv_pickle *out, const value *top) {
    out->number = top->kind == K_INT ? top->number : -1;
    if (top->kind == K_LONG) out->magic = top->text;
    if (top->kind == K_DICT) return add_tensors(out, top);
    for (size_t i = 0; top->kind == K_LIST && i < top->items.n; i++) {
        const char *key = NULL;
        if (top->items.at[i]->kind != K_TEXT) return QKV_OK;
        QKV_TRY(copy_text(out->memory, top->items.at[i]->text, &key));
        if (!QKV_PUSH(out->keys, key)) return QKV_FAILED;
    }
    return QKV_OK;
}

qkv_status qkv_pickle_read(const char *data, size_t n, qkv_arena *memory, qkv_pickle *out) {
    machine m = {.data = data, .n = n};
    *out = (qkv_pickle){.memory = memory, .number = -1};
    qkv_arena_init(&m.memory);
    qkv_status status = run(&m);
    if (status == QKV_OK) status = give(out, m.stack.at[0]);
    out->used = m.at;
    for (size_t i = 0; i < m.made.n; i++) qkv_free(m.made.at[i]->items.at);
    qkv_free(m.made.at);
    qkv_free(m.stack.at);
    qkv_free(m.memo.at);
    qkv_arena_free(&m.memory);
    if (status != QKV_OK) qkv_pickle_free(out);
    return status;
}

void qkv_pickle_free(qkv_pickle *p) {
    qkv_free(p->tensors.at);
    qkv_free(p->keys.at);
    *p = (qkv_pickle){0};
}
