/* The table of generators, and which rows are held out. */
#include "data/synthetic.h"
#include "base/file.h"

#include <string.h>

static const qkv_synthetic table[] = {
    {"reviews", "synthetic reviews with a verdict: good or bad", "classify", qkv_synthetic_review},
    {"numbers", "numbers and dates in English, German and French words, and their digits",
     "translate", qkv_synthetic_number},
};

const qkv_synthetic *qkv_synthetic_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

void qkv_synthetic_rows(const qkv_synthetic *m, uint64_t seed, size_t rows, bool held_out,
                        qkv_buf *out) {
    enum { SHARE = 8 }; /* one in SHARE of all possible rows is held out, whatever the seed */
    for (uint64_t i = 0; rows > 0 && out->status == QKV_OK; i++) {
        const size_t begin = out->len;
        m->row(seed, i, out);
        const bool out_of_sight = qkv_hash64(out->data + begin, out->len - begin, 0) % SHARE == 0;
        if (out_of_sight == held_out)
            rows--;
        else
            out->len = begin;
    }
}
