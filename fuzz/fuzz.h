/* Fuzz targets: one file fuzz_<name>.c with one function, one row in fuzz.def. The same functions
 * run under libFuzzer (fuzz/run.sh) and over the files of tests/corpus/<name>/ in `make test`, so
 * that what was found once stays found. A target takes any bytes and must return; it checks with
 * assert what must hold for what was accepted. */
#ifndef QKV_FUZZ_FUZZ_H
#define QKV_FUZZ_FUZZ_H

#undef NDEBUG
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ(name) void fuzz_##name(const uint8_t *data, size_t n);
#include "fuzz.def"
#undef FUZZ

/* A path under which `n` bytes can be opened as a file; good until the next call. */
const char *fuzz_as_file(const void *data, size_t n);

#endif
