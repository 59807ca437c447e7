#include "text/unicode.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/unicode_versions.h"

#include <stdatomic.h>
#include <string.h>
#include <utf8proc.h>

uint8_t qkv_unicode_table[0x110000];
_Atomic unsigned char qkv_unicode_ready[0x1100];

static bool in(int32_t cp, int32_t first, int32_t last) {
    return cp >= first && cp <= last;
}

static bool is_space(int32_t cp) {
    return in(cp, 9, 13) || cp == 0x20 || cp == 0x85 || cp == 0xA0 || cp == 0x1680 ||
           in(cp, 0x2000, 0x200A) || cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F ||
           cp == 0x3000;
}

static bool is_han(int32_t cp) {
    return in(cp, 0x4E00, 0x9FFF) || in(cp, 0x3400, 0x4DBF) || in(cp, 0x20000, 0x2A6DF) ||
           in(cp, 0x2A700, 0x2B73F) || in(cp, 0x2B740, 0x2B81F) || in(cp, 0x2B920, 0x2CEAF) ||
           in(cp, 0xF900, 0xFAFF) || in(cp, 0x2F800, 0x2FA1F);
}

/* Other_Alphabetic symbols and joiners: in \w though neither letter, mark nor number. */
static bool is_word_extra(int32_t cp) {
    return cp == 0x200C || cp == 0x200D || in(cp, 0x24B6, 0x24E9) || in(cp, 0x1F130, 0x1F149) ||
           in(cp, 0x1F150, 0x1F169) || in(cp, 0x1F170, 0x1F189);
}

static bool in_ranges(int32_t cp, const qkv_range *r, size_t n) {
    for (size_t i = 0; i < n && r[i].first <= cp; i++)
        if (cp <= r[i].last) return true;
    return false;
}

#define IN(cp, ranges) in_ranges(cp, ranges, sizeof(ranges) / sizeof *(ranges))

static uint8_t classify(int32_t cp) {
    uint8_t c = 0;
    switch (utf8proc_category(cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        c = QKV_U_LETTER | QKV_U_WORD;
        break;
    case UTF8PROC_CATEGORY_MN:
        c = QKV_U_ACCENT | QKV_U_WORD;
        break;
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        c = QKV_U_WORD;
        break;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
        c = QKV_U_NUMBER | QKV_U_WORD;
        break;
    case UTF8PROC_CATEGORY_NO:
        c = QKV_U_NUMBER;
        break;
    case UTF8PROC_CATEGORY_PC:
        c = QKV_U_PUNCT | QKV_U_WORD;
        break;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        c = QKV_U_PUNCT;
        break;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
        c = cp == 9 || cp == 10 || cp == 13 || IN(cp, new_formats) ? 0 : QKV_U_OTHER;
        break;
    default:
        break;
    }
    if (IN(cp, newer_letters)) c = QKV_U_LETTER | QKV_U_WORD;
    if (IN(cp, newer_numbers)) c = QKV_U_NUMBER | QKV_U_WORD;
    if (in(cp, 33, 47) || in(cp, 58, 64) || in(cp, 91, 96) || in(cp, 123, 126)) c |= QKV_U_PUNCT;
    if (cp == 0x166D) c |= QKV_U_PUNCT;  /* punctuation until Unicode 12 */
    if (cp == 0x1734) c |= QKV_U_ACCENT; /* until Unicode 14 */
    if (c & QKV_U_PUNCT && IN(cp, new_punctuation)) c &= (uint8_t)~QKV_U_PUNCT;
    if (cp == 0x111C9) c |= QKV_U_PUNCT;
    if (c & QKV_U_ACCENT && IN(cp, new_accents)) c &= (uint8_t)~QKV_U_ACCENT;
    if (is_space(cp)) c |= QKV_U_SPACE;
    if (is_han(cp)) c |= QKV_U_HAN;
    if (is_word_extra(cp)) c |= QKV_U_WORD;
    return c;
}

/* Threads that come here at once compute the same bytes; the lock only keeps the writes from being
 * concurrent. */
void qkv_unicode_fill(uint32_t page) {
    static atomic_flag busy = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&busy)) {}
    if (!qkv_unicode_ready[page]) {
        for (int32_t i = 0; i < 256; i++)
            qkv_unicode_table[page << 8 | (uint32_t)i] = classify((int32_t)(page << 8) | i);
        qkv_unicode_ready[page] = 1;
    }
    atomic_flag_clear(&busy);
}

void qkv_unicode_trim(const char *text, size_t *begin, size_t *end, bool left, bool right) {
    size_t n;
    while (left && *begin < *end && qkv_unicode_class_at(text, *end, *begin, &n) & QKV_U_SPACE)
        *begin += n;
    while (right && *begin < *end) {
        const size_t last = *begin + qkv_utf8_start(text + *begin, *end - 1 - *begin);
        if (!(qkv_unicode_class_at(text, *end, last, &n) & QKV_U_SPACE) || last + n != *end) break;
        *end = last;
    }
}

int qkv_unicode_lower(int32_t cp, int32_t out[2]) {
    if (cp ==
        0x130) { /* the one character whose lower case is two, and the one that utf8proc shortens */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = utf8proc_tolower(cp);
    for (size_t i = 0; out[0] == cp && i < sizeof new_lower / sizeof *new_lower; i++)
        if (in(cp, new_lower[i].first, new_lower[i].last)) out[0] = cp + new_lower[i].delta;
    return 1;
}

bool qkv_unicode_is_mark(int32_t cp) {
    if (cp < 0x300) return false;
    const utf8proc_category_t c = utf8proc_category(cp);
    const bool mark =
        c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
    return (mark && !IN(cp, new_marks)) || cp == 0x1CF2 || cp == 0x1CF3;
}

/* The places stay where they are, so that they ascend with the text, as in Hugging Face's. */
static inline void put_mark(qkv_uchar *at, const qkv_uchar *mark) {
    at->cp = mark->cp;
    at->ccc = mark->ccc;
}

/* Stable order by combining class of a run of marks: insertion for short runs, counting for long
 * ones (a text may be one run, and must not cost its square). */
static qkv_status order_run(qkv_uchar *run, size_t n) {
    if (n <= 32) {
        for (size_t i = 1; i < n; i++) {
            const qkv_uchar c = run[i];
            size_t k = i;
            for (; k > 0 && run[k - 1].ccc > c.ccc; k--) put_mark(&run[k], &run[k - 1]);
            put_mark(&run[k], &c);
        }
        return QKV_OK;
    }
    size_t place[257] = {0};
    qkv_uchar *copy;
    QKV_TRY_ALLOC(copy = qkv_alloc(n * sizeof *copy));
    memcpy(copy, run, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) place[copy[i].ccc + 1]++;
    for (int c = 0; c < 256; c++) place[c + 1] += place[c];
    for (size_t i = 0; i < n; i++) put_mark(&run[place[copy[i].ccc]++], &copy[i]);
    qkv_free(copy);
    return QKV_OK;
}

/* Marks that are new to the original have no class there: they stay where they stand. */
static uint8_t combining_class(int32_t cp) {
    if (cp < 0x300) return 0;
    const uint8_t ccc = (uint8_t)utf8proc_get_property(cp)->combining_class;
    return ccc && IN(cp, new_marks) ? 0 : ccc;
}

static qkv_status decompose(const char *text, size_t begin, size_t end, bool compat,
                            qkv_uchars *out) {
    const int options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0);
    size_t run = 0; /* marks at the end of *out */
    for (size_t i = begin; i < end;) {
        int32_t cp, parts[32];
        const size_t n = (size_t)qkv_utf8_decode(text + i, end - i, &cp);
        int boundary = 0;
        utf8proc_ssize_t count = 1;
        if (cp < 0)
            parts[0] = -1 - (uint8_t)text[i];
        else if (cp < 0x80 || IN(cp, new_forms))
            parts[0] = cp;
        else
            count = utf8proc_decompose_char(cp, parts, 32, (utf8proc_option_t)options, &boundary);
        for (utf8proc_ssize_t k = 0; k < count && k < 32; k++) {
            const uint8_t ccc = combining_class(parts[k]);
            if (ccc == 0 && run > 1) QKV_TRY(order_run(out->at + out->n - run, run));
            run = ccc ? run + 1 : 0;
            if (!QKV_PUSH(*out, ((qkv_uchar){parts[k], ccc, (uint32_t)i, (uint32_t)(i + n)})))
                return QKV_FAILED;
        }
        i += n;
    }
    return run > 1 ? order_run(out->at + out->n - run, run) : QKV_OK;
}

/* The character that a and b compose to, or −1. */
static int32_t compose_pair(int32_t a, int32_t b) {
    if (a < '<' || b < 0x300) return -1;
    int32_t pair[2] = {a, b};
    const int options = UTF8PROC_COMPOSE | UTF8PROC_STABLE;
    return utf8proc_normalize_utf32(pair, 2, (utf8proc_option_t)options) == 1 ? pair[0] : -1;
}

/* Canonical composition, in place (Unicode, 3.11: a mark joins the last starter unless one of its
 * class or higher stands between). */
static void compose(qkv_uchars *v) {
    size_t n = 0, starter = SIZE_MAX;
    int last = -1; /* class of the character before, since the starter; −1: the starter itself */
    for (size_t i = 0; i < v->n; i++) {
        const qkv_uchar c = v->at[i];
        const bool free_way = starter != SIZE_MAX && (last < (int)c.ccc);
        const int32_t joined = free_way ? compose_pair(v->at[starter].cp, c.cp) : -1;
        if (joined >= 0) {
            v->at[starter].cp = joined;
            if (c.end > v->at[starter].end) v->at[starter].end = c.end;
            continue;
        }
        if (c.ccc == 0) {
            starter = n;
            last = -1;
        } else
            last = c.ccc;
        v->at[n++] = c;
    }
    v->n = n;
}

qkv_status qkv_unicode_normalize(const char *text, size_t begin, size_t end, qkv_normal_form form,
                                 qkv_uchars *out) {
    out->n = 0;
    QKV_TRY(decompose(text, begin, end, form == QKV_NFKD || form == QKV_NFKC, out));
    if (form == QKV_NFC || form == QKV_NFKC) compose(out);
    return QKV_OK;
}

size_t qkv_unicode_grapheme(const char *text, size_t begin, size_t end) {
    int32_t before, cp, state = 0;
    size_t i = begin + (size_t)qkv_utf8_decode(text + begin, end - begin, &before);
    while (i < end) {
        const size_t n = (size_t)qkv_utf8_decode(text + i, end - i, &cp);
        if (cp < 0 || before < 0 || utf8proc_grapheme_break_stateful(before, cp, &state)) break;
        before = cp;
        i += n;
    }
    return i;
}
