/* What a text being written must not hold, as ids. */
#ifndef QKV_USE_CONSTRAINTS_H
#define QKV_USE_CONSTRAINTS_H

#include "use/textmodel.h"
#include "decode/beam.h"

typedef struct qkv_constraints {
    bool *never; /* by id: tokens that are no text */
    QKV_VEC(int32_t) ids;
    QKV_VEC(int32_t) start;
} qkv_constraints;

/* Forbids the words (as they are written where a text begins, and after a blank) and tokens that
 * are no text: padding, the beginning, masks; with no_unknown also the unknown token.
 * Free in any case. */
qkv_status qkv_constraints_make(const qkv_text_model *m, const qkv_text *words, size_t n,
                                bool no_unknown, qkv_constraints *out);
void qkv_constraints_free(qkv_constraints *c);
/* The words, for a search. */
qkv_phrases qkv_constraints_phrases(const qkv_constraints *c);

#endif
