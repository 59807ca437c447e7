/* Numbers as text, the same in every locale: what a file says must not depend on where it is read.
 */
#ifndef QKV_BASE_NUMBER_H
#define QKV_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

/* Reads a decimal number, [-]digits[.digits][e[±]digits], from exactly n bytes, correctly rounded.
 * False: not of that form, out of a double's range, or longer than 1024 bytes. */
bool qkv_number_parse(const char *text, size_t n, double *out);

/* Writes a finite value with `digits` significant digits (1 … 17); 0 means as few as read back the
 * same. */
#define QKV_NUMBER_TEXT 32
void qkv_number_print(double value, int digits, char out[QKV_NUMBER_TEXT]);

#endif
