/* The tree of a template, and what its runner shares; for the files of src/chat only. */
#ifndef QKV_CHAT_JINJA_TREE_H
#define QKV_CHAT_JINJA_TREE_H

#include "chat/jinja.h"

#define JINJA_BYTES     (1u << 20)  /* of a template */
#define JINJA_NODES     (1u << 17)  /* of its tree */
#define JINJA_DEPTH     100         /* of its nesting */
#define JINJA_HEIGHT    400         /* of the tree of an expression */
#define JINJA_STEPS     (1u << 22)  /* nodes that a run may visit */
#define JINJA_RUN_BYTES (64u << 20) /* that it may make: texts, lists, and what it writes */

typedef enum jinja_kind {
    /* expressions: a, b, c are operands, name a name, list the arguments */
    JINJA_LITERAL,
    JINJA_NAME,
    JINJA_FIELD,  /* a.name */
    JINJA_INDEX,  /* a[b] */
    JINJA_SLICE,  /* a[b:c:d] */
    JINJA_CALL,   /* name(list) where a is NULL, a.name(list) */
    JINJA_FILTER, /* a | name(list) */
    JINJA_TEST,   /* a is name(list); negated */
    JINJA_NOT,
    JINJA_MINUS,
    JINJA_AND,
    JINJA_OR,
    JINJA_ADD,
    JINJA_SUB,
    JINJA_MUL,
    JINJA_DIV,
    JINJA_FLOOR,
    JINJA_MOD,
    JINJA_JOIN, /* a ~ b */
    JINJA_EQ,
    JINJA_NE,
    JINJA_LT,
    JINJA_LE,
    JINJA_GT,
    JINJA_GE,
    JINJA_IN,
    JINJA_NOT_IN,
    JINJA_CHOOSE, /* b if a else c */
    JINJA_LIST_OF,
    JINJA_DICT_OF, /* list: key, value, key, value … */
    /* statements: list is a body, next the statement behind */
    JINJA_TEXT,
    JINJA_WRITE, /* {{ a }} */
    JINJA_IF,    /* a, list, otherwise: statements, or an elif (negated) */
    JINJA_FOR,   /* targets in a if b: list; otherwise where there was nothing */
    JINJA_SET,   /* targets = a; or targets = what list writes, where a is NULL */
    JINJA_BREAK,
    JINJA_CONTINUE,
    JINJA_BLOCK /* list */
} jinja_kind;

typedef struct jinja_node {
    jinja_kind kind;
    bool negated;
    int line, height;
    qkv_text name; /* of arguments: that before "=", else empty */
    qkv_jinja_value literal;
    struct jinja_node *a, *b, *c, *d;
    struct jinja_node *list, *otherwise, *targets; /* first of a chain */
    struct jinja_node *next;
} jinja_node;

struct qkv_jinja {
    qkv_arena arena;
    char *text; /* a copy, line ends as \n */
    jinja_node *body;
};

/* ---- running ---- */

typedef struct jinja_run {
    qkv_arena arena;
    size_t bytes; /* made so far */
    size_t steps;
    const qkv_jinja_dict *context;
    struct jinja_frame *frame; /* the innermost */
    qkv_buf *out;
} jinja_run;

qkv_status jinja_fail(const jinja_node *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Memory of a run, within its bounds. */
qkv_status jinja_take(jinja_run *r, size_t bytes, void *out);
qkv_status jinja_evaluate(jinja_run *r, const jinja_node *n, qkv_jinja_value *out);

/* jinja_operators.c */
qkv_status jinja_binary(jinja_run *r, const jinja_node *n, qkv_jinja_value *out);

/* jinja_value.c */
bool jinja_is_true(const qkv_jinja_value *v);
bool jinja_same(const qkv_jinja_value *a, const qkv_jinja_value *b);
const char *jinja_type_name(const qkv_jinja_value *v);
const qkv_jinja_value *jinja_member(const qkv_jinja_dict *d, qkv_text key);
bool jinja_text_is(qkv_text t, const char *word);
/* As Python's str() has it. */
qkv_status jinja_to_text(jinja_run *r, const jinja_node *at, const qkv_jinja_value *v,
                         qkv_text *out);
qkv_status jinja_copy(jinja_run *r, const char *data, size_t n, qkv_text *out);
qkv_status jinja_new_list(jinja_run *r, size_t n, qkv_jinja_value *out);
qkv_status jinja_new_dict(jinja_run *r, size_t n, qkv_jinja_value *out);

/* jinja_calls.c: the arguments are evaluated by the callee */
qkv_status jinja_filter(jinja_run *r, const jinja_node *n, qkv_jinja_value *v);
qkv_status jinja_test(jinja_run *r, const jinja_node *n, const qkv_jinja_value *v, bool *out);
qkv_status jinja_call(jinja_run *r, const jinja_node *n, qkv_jinja_value *out);
qkv_status jinja_method(jinja_run *r, const jinja_node *n, const qkv_jinja_value *v,
                        qkv_jinja_value *out);
/* Of parsing: is there a filter, a test, a function, a method of this name? */
bool jinja_knows_filter(qkv_text name);
bool jinja_knows_test(qkv_text name);
bool jinja_knows_function(qkv_text name);
bool jinja_knows_method(qkv_text name);

#endif
