#include "text/script.h"

#include <stddef.h>

static const uint32_t changes[] = {
#include "text/script.def"
};

uint8_t qkv_script_of(int32_t cp) {
    if (cp < 0) return QKV_SCRIPT_NONE;
    size_t low = 0, high = sizeof changes / sizeof *changes;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (changes[middle] >> 8 <= (uint32_t)cp)
            low = middle;
        else
            high = middle;
    }
    return (uint8_t)changes[low];
}
