/* The script that a character is written in. Chinese characters and kana count as one script,
 * as Japanese words mix them. */
#ifndef QKV_TEXT_SCRIPT_H
#define QKV_TEXT_SCRIPT_H

#include <stdint.h>

enum {
    QKV_SCRIPT_NONE,      /* the blank, code points that are not assigned, malformed bytes (−1) */
    QKV_SCRIPT_COMMON,    /* digits, punctuation, symbols */
    QKV_SCRIPT_INHERITED, /* marks, which take the script of the character before */
    QKV_SCRIPT_HAN,
    QKV_SCRIPT_OTHERS /* one number each from here on */
};

uint8_t qkv_script_of(int32_t cp);

#endif
