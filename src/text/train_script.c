/* The script of a letter by its block. Chinese characters and kana count as one script, as Japanese
 * words mix them. Blocks without a row belong to the row before: no letters of two scripts meet
 * there. */
#include "text/train_script.h"

#include <stddef.h>
#include <utf8proc.h>

enum {
    LATIN = 2,
    GREEK,
    CYRILLIC,
    ARMENIAN,
    HEBREW,
    ARABIC,
    SYRIAC,
    THAANA,
    NKO,
    DEVANAGARI,
    BENGALI,
    GURMUKHI,
    GUJARATI,
    ORIYA,
    TAMIL,
    TELUGU,
    KANNADA,
    MALAYALAM,
    SINHALA,
    THAI,
    LAO,
    TIBETAN,
    MYANMAR,
    GEORGIAN,
    HANGUL,
    ETHIOPIC,
    CHEROKEE,
    CANADIAN,
    RUNIC,
    KHMER,
    MONGOLIAN,
    OTHER,
    HAN,
    YI
};

static const struct range {
    int32_t first;
    uint8_t script;
} ranges[] = {
    {0, LATIN},          {0x370, GREEK},     {0x400, CYRILLIC},   {0x530, ARMENIAN},
    {0x590, HEBREW},     {0x600, ARABIC},    {0x700, SYRIAC},     {0x750, ARABIC},
    {0x780, THAANA},     {0x7c0, NKO},       {0x860, SYRIAC},     {0x870, ARABIC},
    {0x900, DEVANAGARI}, {0x980, BENGALI},   {0xa00, GURMUKHI},   {0xa80, GUJARATI},
    {0xb00, ORIYA},      {0xb80, TAMIL},     {0xc00, TELUGU},     {0xc80, KANNADA},
    {0xd00, MALAYALAM},  {0xd80, SINHALA},   {0xe00, THAI},       {0xe80, LAO},
    {0xf00, TIBETAN},    {0x1000, MYANMAR},  {0x10a0, GEORGIAN},  {0x1100, HANGUL},
    {0x1200, ETHIOPIC},  {0x13a0, CHEROKEE}, {0x1400, CANADIAN},  {0x16a0, RUNIC},
    {0x1700, OTHER},     {0x1780, KHMER},    {0x1800, MONGOLIAN}, {0x18b0, CANADIAN},
    {0x1900, OTHER},     {0x1c80, CYRILLIC}, {0x1c90, GEORGIAN},  {0x1cc0, OTHER},
    {0x1d00, LATIN},     {0x1f00, GREEK},    {0x2000, LATIN},     {0x2c00, OTHER},
    {0x2c60, LATIN},     {0x2c80, OTHER},    {0x2d00, GEORGIAN},  {0x2d30, OTHER},
    {0x2d80, ETHIOPIC},  {0x2de0, CYRILLIC}, {0x2e80, HAN},       {0x3130, HANGUL},
    {0x3190, HAN},       {0xa000, YI},       {0xa4d0, OTHER},     {0xa640, CYRILLIC},
    {0xa6a0, OTHER},     {0xa720, LATIN},    {0xa800, OTHER},     {0xa960, HANGUL},
    {0xa980, OTHER},     {0xab00, ETHIOPIC}, {0xab30, LATIN},     {0xab70, CHEROKEE},
    {0xabc0, OTHER},     {0xac00, HANGUL},   {0xf900, HAN},       {0xfb00, LATIN},
    {0xfb13, ARMENIAN},  {0xfb1d, HEBREW},   {0xfb50, ARABIC},    {0xff00, LATIN},
    {0xff66, HAN},       {0xffa0, HANGUL},   {0x10000, OTHER},    {0x1b000, HAN},
    {0x1b170, OTHER},    {0x20000, HAN},
};

static uint8_t script_of(int32_t cp) {
    size_t low = 0, high = sizeof ranges / sizeof *ranges;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].first <= cp)
            low = middle;
        else
            high = middle;
    }
    return ranges[low].script;
}

uint8_t qkv_script_kind(int32_t cp) {
    if (cp == 0x2581) return QKV_SCRIPT_ANY; /* ▁ */
    if (cp == 0x30fc) return HAN;            /* the long-vowel mark of kana is no letter */
    switch (utf8proc_category(cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return script_of(cp);
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return QKV_SCRIPT_MARK;
    default:
        return QKV_SCRIPT_COMMON;
    }
}
