/* Dependency trees of sentences, read from CoNLL-U files, found again by the sentence's text.
 *
 * Node 0 is the root that CoNLL-U calls 0, nodes 1 … n are the words. A token of a tokenizer
 * belongs to the word whose letters it begins with, so that the pieces of a word share its node;
 * what belongs to no word (marks that begin and end a text) belongs to the root. A surface token
 * that stands for several words (a range, "1-2 don't") belongs to that of its words that hangs
 * outside of the range. Empty nodes (8.1) are left out. */
#ifndef QKV_DATA_TREES_H
#define QKV_DATA_TREES_H

#include "base/arena.h"
#include "base/buf.h"
#include "qkv.h"

enum { QKV_TREE_WORDS = 4096 }; /* most words of a sentence */

/* The word that bytes begin … end − 1 of the text belong to. */
typedef struct qkv_tree_span {
    uint32_t begin, end;
    int32_t node;
} qkv_tree_span;

typedef struct qkv_tree {
    qkv_text text, label; /* label.data NULL: the sentence has no "# label = …" */
    int32_t n;            /* words */
    const int32_t *head;  /* of nodes 0 … n; head[0] is −1. No cycles */
    const qkv_tree_span *spans;
    size_t n_spans; /* in the order of the text */
    int64_t line;   /* where the sentence begins in its file */
} qkv_tree;

typedef struct qkv_trees {
    QKV_VEC(qkv_tree) list;
    uint32_t *slots; /* open addressing by the text: number + 1, or 0 */
    size_t n_slots;
    qkv_arena memory;
} qkv_trees;

/* Adds the sentences of a CoNLL-U file. Of sentences with the same text the first is found. */
qkv_status qkv_trees_read(qkv_trees *t, const char *path);
/* The same from a text that is UTF-8. */
qkv_status qkv_trees_parse(qkv_trees *t, const char *path, qkv_text content);
/* Makes all trees of the list findable. */
qkv_status qkv_trees_index(qkv_trees *t);
void qkv_trees_free(qkv_trees *t);

/* The tree of a sentence, white space at its ends aside; NULL: there is none. */
const qkv_tree *qkv_trees_find(const qkv_trees *t, qkv_text text);

/* The node of the token that is bytes begin … end − 1 of the text. */
int32_t qkv_tree_node(const qkv_tree *tree, uint32_t begin, uint32_t end);

#endif
