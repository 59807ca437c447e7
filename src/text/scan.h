/* Hand-written scanners for the regular expressions that most byte-level vocabularies split text
 * with. */
#ifndef QKV_TEXT_SCAN_H
#define QKV_TEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* What differs between GPT-2's expression and its descendants. */
typedef struct qkv_scan_rules {
    const char *regex;  /* as files spell it */
    int digits;         /* longest run of digits; 0: no limit, and a blank may stand before it */
    bool any_case;      /* 'S as well as 's */
    bool letter_prefix; /* any one character but letter, number, line end may lead a word, not only
                           a blank */
    bool line_ends;   /* line ends stick to punctuation before them, and end a run of white space */
    bool final_space; /* white space at the end of the text is one piece whatever is in it */
} qkv_scan_rules;

/* The rules of a regular expression spelt exactly so, or NULL. */
const qkv_scan_rules *qkv_scan_find(const char *regex, size_t len);
extern const qkv_scan_rules qkv_scan_gpt2, qkv_scan_cl100k, qkv_scan_llama3, qkv_scan_qwen2;

/* End of the piece that begins at `at` < len: these expressions match everywhere. */
size_t qkv_scan_next(const qkv_scan_rules *r, const char *text, size_t len, size_t at);

#endif
