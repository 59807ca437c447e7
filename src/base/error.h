/* Errors: a code to return, a sentence to read.
 *
 * The sentence lives per thread (like errno, but with words), so no function needs an error
 * argument. It says what, where, why and how to mend it, in that order, without a final newline. */
#ifndef QKV_BASE_ERROR_H
#define QKV_BASE_ERROR_H

#include "qkv.h"

/* Stores the message and returns `code`, so that a failing function ends in
 * `return qkv_fail(…)`. */
qkv_status qkv_fail(qkv_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "text: " in front of the stored message: context that only the caller knows.
 * Returns `code`. */
qkv_status qkv_fail_in(qkv_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Forwards a failure to the caller. */
#define QKV_TRY(call)                                                                              \
    do {                                                                                           \
        qkv_status try_status_ = (call);                                                           \
        if (try_status_ != QKV_OK) return try_status_;                                             \
    } while (0)

/* For allocations: `QKV_TRY_ALLOC(p = qkv_alloc(n))`; the allocator has set the message. */
#define QKV_TRY_ALLOC(assignment)                                                                  \
    do {                                                                                           \
        if (!(assignment)) return QKV_FAILED;                                                      \
    } while (0)

#endif
