/* A node of a parsed JSON text: private to the files json_*.c.
 *
 * Nodes stand in the order of the text. An object's member is two nodes, key and value; a
 * container's `end` is the index of the first node behind everything in it, so skipping a value is
 * one step. */
#ifndef QKV_BASE_JSON_NODE_H
#define QKV_BASE_JSON_NODE_H

#include "base/json.h"

struct qkv_json_node {
    union {
        double number;
        const char *text; /* of a string: into the document's text, or unescaped into its arena */
        struct {
            uint32_t count, end;
        };
    };
    uint32_t where; /* strings: length; others: offset in the document's text */
    uint16_t kind;  /* qkv_json_kind */
    bool escaped;   /* `text` is a copy; the four bytes before it hold its offset in the document's
                       text */
};

_Static_assert(sizeof(struct qkv_json_node) == 16, "a node is two words");

/* Where in the document's text a node stands. */
size_t qkv_json_offset(const qkv_json *doc, uint32_t index);

#endif
