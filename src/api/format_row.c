/* The forms of data files, for programs that offer them. */
#include "data/corpus.h"
#include "qkv.h"

bool qkv_format_row(size_t i, const char **name) {
    size_t n = 0;
    while (qkv_corpus_formats[n]) n++;
    if (i >= n) return false;
    *name = qkv_corpus_formats[i];
    return true;
}
