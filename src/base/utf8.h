/* UTF-8: strict decoding, validation, encoding. */
#ifndef QKV_BASE_UTF8_H
#define QKV_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes one code point at s (n > 0 bytes there). Returns its length 1…4; on a malformed sequence
 * (overlong forms, surrogates and values over 10FFFF too) returns 1 and sets *cp to −1. */
int qkv_utf8_decode(const char *s, size_t n, int32_t *cp);
int qkv_utf8_encode(int32_t cp, char out[4]);      /* length written; cp must be a scalar value */
size_t qkv_utf8_valid(const char *s, size_t n);    /* bytes before the first malformed one, or n */
size_t qkv_utf8_count(const char *s, size_t n);    /* code points; a malformed byte counts one */
size_t qkv_utf8_complete(const char *s, size_t n); /* bytes before an unfinished one at the end */
/* Where the character that byte `at` belongs to begins: there, or up to three bytes before. Of a
 * text cut at `at` it is the end that splits no character. */
size_t qkv_utf8_start(const char *s, size_t at);

#endif
