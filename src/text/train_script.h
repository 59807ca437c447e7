/* Scripts, as far as a vocabulary needs them: pieces should not join letters of two scripts, nor
 * letters and punctuation. */
#ifndef QKV_TEXT_TRAIN_SCRIPT_H
#define QKV_TEXT_TRAIN_SCRIPT_H

#include <stdint.h>

#define QKV_SCRIPT_ANY    0   /* the word marker: goes with everything */
#define QKV_SCRIPT_COMMON 1   /* digits, punctuation, symbols */
#define QKV_SCRIPT_MARK   255 /* combining: belongs to the character before */

uint8_t qkv_script_kind(int32_t cp);

#endif
