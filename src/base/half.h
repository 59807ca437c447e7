/* Half-width floats: bf16 is the upper half of a float; f16 is IEEE binary16. Rounding is to
 * nearest, ties to even; NaN stays NaN; what is too large becomes infinity. Pointers to 16-bit
 * values need no alignment. */
#ifndef QKV_BASE_HALF_H
#define QKV_BASE_HALF_H

#include <stddef.h>
#include <stdint.h>

uint16_t qkv_bf16_of(float x);
float qkv_bf16_value(uint16_t bits);
uint16_t qkv_f16_of(float x);
float qkv_f16_value(uint16_t bits);

#endif
