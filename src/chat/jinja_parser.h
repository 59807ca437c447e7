/* What the parser's files share: a template being read, its tokens and nodes. */
#ifndef QKV_CHAT_JINJA_PARSER_H
#define QKV_CHAT_JINJA_PARSER_H

#include "chat/jinja_tree.h"

typedef enum jinja_token_kind {
    T_END,
    T_NAME,
    T_INT,
    T_REAL,
    T_TEXT,
    T_MARK,
    T_CLOSE
} jinja_token_kind;

typedef struct jinja_token {
    jinja_token_kind kind;
    qkv_text text;
    const char *from; /* where it begins */
    int64_t whole;
    double real;
} jinja_token;

typedef struct jinja_parser {
    qkv_arena *arena;
    const char *start, *at, *end;
    jinja_token next; /* of a tag */
    int line, depth, loops;
    size_t nodes;
} jinja_parser;

/* jinja_tokens.c */
qkv_status jinja_refuse(const jinja_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
qkv_status jinja_new_node(jinja_parser *p, jinja_kind kind, jinja_node **out);
/* A node with all its operands: what is run by recursion must not be too high. */
qkv_status jinja_complete(const jinja_parser *p, jinja_node *n);
qkv_status jinja_deeper(jinja_parser *p); /* p->depth goes up */
qkv_status jinja_advance(jinja_parser *p);
bool jinja_sees(const jinja_parser *p, const char *word);
qkv_status jinja_skip(jinja_parser *p, const char *word, bool *found);
qkv_status jinja_expect(jinja_parser *p, const char *word);
qkv_status jinja_read_name(jinja_parser *p, qkv_text *out);

/* jinja_expressions.c */
qkv_status jinja_expression(jinja_parser *p, jinja_node **out);
/* The same without an inline if. */
qkv_status jinja_condition(jinja_parser *p, jinja_node **out);

#endif
