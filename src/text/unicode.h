/* What the steps ask about characters. Data from utf8proc; where Hugging Face's own tables differ,
 * small tables here.
 *
 * Classes are one byte per code point, filled a page of 256 at a time on first use. */
#ifndef QKV_TEXT_UNICODE_H
#define QKV_TEXT_UNICODE_H

#include "base/buf.h"
#include "base/utf8.h"

enum {
    QKV_U_LETTER = 1,  /* L* */
    QKV_U_NUMBER = 2,  /* N* */
    QKV_U_SPACE = 4,   /* White_Space */
    QKV_U_PUNCT = 8,   /* P*, and the ASCII symbols */
    QKV_U_ACCENT = 16, /* Mn */
    QKV_U_WORD = 32,   /* \w */
    QKV_U_OTHER = 64,  /* Cc, Cf, Co but TAB, LF, CR */
    QKV_U_HAN = 128    /* what BERT sets apart as Chinese characters */
};

extern uint8_t qkv_unicode_table[0x110000];
void qkv_unicode_fill(uint32_t page);
extern _Atomic unsigned char qkv_unicode_ready[0x1100];

/* Classes of a code point; 0 for −1 (a malformed byte). */
static inline uint8_t qkv_unicode_class(int32_t cp) {
    if (cp < 0) return 0;
    if (__builtin_expect(!qkv_unicode_ready[cp >> 8], 0)) qkv_unicode_fill((uint32_t)cp >> 8);
    return qkv_unicode_table[cp];
}

/* Classes of the character at text[i], its length in *n. */
static inline uint8_t qkv_unicode_class_at(const char *text, size_t len, size_t i, size_t *n) {
    int32_t cp = (uint8_t)text[i];
    *n = cp < 0x80 ? 1 : (size_t)qkv_utf8_decode(text + i, len - i, &cp);
    return qkv_unicode_class(cp);
}

/* Takes white space off the left and the right end of text[*begin … *end). */
void qkv_unicode_trim(const char *text, size_t *begin, size_t *end, bool left, bool right);

/* M*, as StripAccents knows them. */
bool qkv_unicode_is_mark(int32_t cp);

/* Lower case of one character: 1 or 2 code points (U+0130 alone has two). */
int qkv_unicode_lower(int32_t cp, int32_t out[2]);

typedef enum qkv_normal_form { QKV_NFD, QKV_NFC, QKV_NFKD, QKV_NFKC } qkv_normal_form;

/* A character and the place it came from. */
typedef struct qkv_uchar {
    int32_t cp;
    uint8_t ccc;
    uint32_t begin, end;
} qkv_uchar;
typedef QKV_VEC(qkv_uchar) qkv_uchars;

/* Decomposes (and composes) text[begin … end) into *out, in canonical order. Malformed bytes are
 * kept as cp = −1 − byte. */
qkv_status qkv_unicode_normalize(const char *text, size_t begin, size_t end, qkv_normal_form form,
                                 qkv_uchars *out);

/* End of the grapheme cluster that begins at `begin`. */
size_t qkv_unicode_grapheme(const char *text, size_t begin, size_t end);

#endif
