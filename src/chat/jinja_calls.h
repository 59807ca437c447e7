/* What the files of filters, tests, methods and functions share. */
#ifndef QKV_CHAT_JINJA_CALLS_H
#define QKV_CHAT_JINJA_CALLS_H

#include "chat/jinja_tree.h"

enum { JINJA_ARGS = 3 };

/* What a callee gets: the value that it acts on and its arguments, by place or by name. */
typedef struct jinja_call_args {
    jinja_run *r;
    const jinja_node *n;
    const qkv_jinja_value *of;
    qkv_jinja_value arg[JINJA_ARGS];
    int n_args; /* by place */
} jinja_call_args;

qkv_status jinja_mismatch(const jinja_call_args *c, const qkv_jinja_value *v);
/* v's text, or an error. */
qkv_status jinja_text_of(const jinja_call_args *c, const qkv_jinja_value *v, qkv_text *out);
static inline bool jinja_has(const jinja_call_args *c, int i) {
    return c->arg[i].type != QKV_JINJA_UNDEFINED;
}

/* jinja_texts.c */
qkv_status jinja_call_strip(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_lstrip(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_rstrip(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_upper(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_lower(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_title(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_capitalize(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_startswith(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_endswith(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_replace(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_split(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_string(jinja_call_args *c, qkv_jinja_value *out);
qkv_status jinja_call_int(jinja_call_args *c, qkv_jinja_value *out);

#endif
