/* Ids kept in a file: tokenised once, mapped afterwards.
 *
 * Ids go to the disk as they are made and come back as a map, so that a corpus need not fit into
 * memory. The file names what it was made from (a hash of the rows, of the tokenizer and of the
 * settings); one that was made from something else, or is damaged, is made again. */
#ifndef QKV_DATA_IDS_CACHE_H
#define QKV_DATA_IDS_CACHE_H

#include "data/tokenise.h"

/* As qkv_tokenise, by way of the file `path`. *out is initialised here and freed by the caller. */
qkv_status qkv_tokenise_cached(const qkv_tokenizer *tok, const qkv_corpus *corpus, const bool *take,
                               const qkv_tokenise_spec *spec, const char *path, qkv_encoded *out,
                               qkv_tokenise_counts *counts);

#endif
