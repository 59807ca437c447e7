#include "base/error.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[1024] = "no error";

const char *qkv_error(void) {
    return message;
}

const char *qkv_version(void) {
    return QKV_VERSION;
}

qkv_status qkv_fail(qkv_status code, const char *format, ...) {
    char text[sizeof message]; /* apart: an argument may be qkv_error() itself */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* One line, whatever a stranger's file has for a name:
     * no control character reaches a terminal or a log. */
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    memcpy(message, text, sizeof message);
    return code;
}

qkv_status qkv_fail_in(qkv_status code, const char *format, ...) {
    char context[256];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context, format, args);
    va_end(args);
    return qkv_fail(code, "%s: %s", context, message);
}

int qkv_status_exit_code(qkv_status status) {
    switch (status) {
#define QKV_EXIT_CASE(name, exit_code, text)                                                       \
    case QKV_##name:                                                                               \
        return exit_code;
        QKV_STATUS_TABLE(QKV_EXIT_CASE)
#undef QKV_EXIT_CASE
    }
    return 1;
}

#define NEAREST_MAX 63

/* Levenshtein distance of two short words. */
static size_t edit_distance(const char *a, size_t n, const char *b, size_t m) {
    size_t row[NEAREST_MAX + 1];
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t skip = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < skip ? change : skip;
        }
    }
    return row[m];
}

const char *qkv_nearest(const char *word, const char *const *candidates, size_t n) {
    size_t len = strlen(word), best = len / 3 + 1;
    const char *found = NULL;
    if (len > NEAREST_MAX) return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t m = strlen(candidates[i]);
        if (m > NEAREST_MAX) continue;
        size_t distance = edit_distance(word, len, candidates[i], m);
        if (distance < best || (distance == best && !found)) {
            best = distance;
            found = candidates[i];
        }
    }
    return found;
}
