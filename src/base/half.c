#include "base/half.h"

#include <string.h>

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint16_t qkv_bf16_of(float x) {
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* NaN: keep it one */
    /* Half of the last kept place, less one when that place is even: ties go to even. */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float qkv_bf16_value(uint16_t bits) {
    return float_of((uint32_t)bits << 16);
}

uint16_t qkv_f16_of(float x) {
    uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* rounds to 65536 or more */
    if (magnitude < 0x38800000) {
        /* Below 2⁻¹⁴ the step is 2⁻²⁴: adding 0.5, whose last place is 2⁻²⁴, lets the FPU round. */
        uint32_t rounded = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
        return (uint16_t)(sign | rounded);
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded - 0x38000000) >> 13)); /* exponent bias 127 → 15 */
}

float qkv_f16_value(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
    if (magnitude >= 0x7c00)
        return float_of(sign | 0x7f800000 | magnitude << 13); /* infinity, NaN */
    if (magnitude >= 0x0400) return float_of(sign | ((magnitude << 13) + 0x38000000));
    float tiny = (float)magnitude * 0x1p-24f; /* exact */
    return sign ? -tiny : tiny;
}
