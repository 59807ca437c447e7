/* The byte alphabet of GPT-2: every byte as one printable character. */
#ifndef QKV_TEXT_BYTELEVEL_H
#define QKV_TEXT_BYTELEVEL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct qkv_byte_level_args {
    bool prefix_space, use_regex;
    bool map; /* write the alphabet's characters: only when something other than a byte-level BPE
                 reads them */
} qkv_byte_level_args;

int qkv_byte_level_char(uint8_t byte, char out[4]); /* UTF-8 of its character; returns the length */
int qkv_byte_level_byte(int32_t cp); /* the byte of a character, −1: not in the alphabet */

#endif
