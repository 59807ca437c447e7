/* qkv: Transformers in C.  The one public header; valid C11 and C++.
 *
 *     qkv_model *m;
 *     if (qkv_model_open("my-model", &m) != QKV_OK) { fprintf(stderr, "%s\n", qkv_error()); return 1; }
 *     ...
 *     qkv_model_close(m);
 *
 * Every function that can fail returns a qkv_status; the sentence that says what, where, why and how
 * to mend it is qkv_error(), kept per thread until that thread's next failing call. */
#ifndef QKV_H
#define QKV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QKV_API __attribute__((visibility("default")))
#else
#define QKV_API
#endif

/* One row per outcome: name, exit code of the command, what it means. */
#define QKV_STATUS_TABLE(X)                                                                        \
    X(OK, 0, "ok")                                                                                 \
    X(FAILED, 1, "the system refused: memory, disk, a file that is not there")                     \
    X(USAGE, 2, "the caller asked for something that makes no sense")                              \
    X(BAD_FILE, 3, "a file's content is not what it should be")                                    \
    X(NUMERIC, 4, "numbers went out of range: NaN, infinity, divergence")                          \
    X(INTERRUPTED, 130, "stopped on request, after saving")

typedef enum qkv_status {
#define QKV_STATUS_ENUM(name, exit_code, text) QKV_##name,
    QKV_STATUS_TABLE(QKV_STATUS_ENUM)
#undef QKV_STATUS_ENUM
} qkv_status;

/* The message of this thread's last failure; never NULL. */
QKV_API const char *qkv_error(void);

/* "0.1.0" */
QKV_API const char *qkv_version(void);

/* Threads that calls from this thread use; 0 asks for every core this process may run on. */
QKV_API void qkv_threads_set(int n);
QKV_API int qkv_threads(void);

/* ---- text that the library hands out ----
 * Functions with a `char **text` argument give back one NUL-terminated text, freed by qkv_text_free; NULL
 * after a failure. */
QKV_API void qkv_text_free(char *text);

/* ---- this machine ---- */

/* What this build and machine have, measured peak included (about a second), as a table or a JSON object. */
QKV_API qkv_status qkv_doctor(bool json, char **text);

/* Runs the benchmark `name`; pairs are "key=value", NULL at the end (or NULL for none). */
QKV_API qkv_status qkv_bench(const char *name, const char *const *pairs, bool json, char **text);
/* Row i of the table of benchmarks; false past its end. */
QKV_API bool qkv_bench_row(size_t i, const char **name, const char **summary);

/* ---- for programs with a command line ---- */

/* The exit code that fits a status. */
QKV_API int qkv_status_exit_code(qkv_status status);
/* The candidate nearest to `word` (edit distance at most a third of its length), or NULL: "did you mean". */
QKV_API const char *qkv_nearest(const char *word, const char *const *candidates, size_t n);

#ifdef __cplusplus
}
#endif
#endif
