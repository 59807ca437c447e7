/* Packed files (gzip, xz, zstd) into memory, within bounds: a small file that unpacks to something
 * enormous ends in a message, not in swap. */
#ifndef QKV_BASE_UNPACK_H
#define QKV_BASE_UNPACK_H

#include "base/file.h"

/* What the first bytes say a file is packed with: "gzip", "xz", "zstd"; NULL: none of these. */
const char *qkv_packing_of(const char *data, size_t n);

/* Length of a file's name without ".gz", ".xz", ".zst", whichever it ends in. */
size_t qkv_unpacked_name(const char *path);

/* Replaces the content of a packed file by what is in it, and says so in file->packed; any other
 * file stays as it is. On failure the file is closed. */
qkv_status qkv_file_unpack(const char *path, qkv_file *file);

#endif
