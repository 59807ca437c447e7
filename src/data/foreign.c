/* What the content says, in this order: a form that is no text at all (by its first bytes), UTF-16
 * and UTF-32 (by their mark, or by where zeros stand), bytes that are not UTF-8, lines of old. */
#include "data/foreign.h"
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* ---- no text at all ---- */

static const struct {
    const char *magic;
    size_t n;
    const char *what;
} kinds[] = {
    {"PK\x03\x04", 4,
     "a ZIP archive (an .xlsx workbook is one): unpack it, or save the sheet as CSV (UTF-8)"},
    {"\xD0\xCF\x11\xE0", 4, "an old Office file (.xls): save the sheet as CSV (UTF-8)"},
    {"BZh", 3, "packed with bzip2: unpack it with \"bunzip2 -k\""},
    {"7z\xBC\xAF", 4, "a 7z archive: unpack it first"},
    {"PAR1", 4, "a Parquet file: write it as CSV or JSON lines (pandas: to_json with lines=True)"},
    {"ARROW1", 6, "an Arrow file: write it as CSV or JSON lines (pandas: to_json with lines=True)"},
    {"SQLite format 3", 15,
     "an SQLite database: export the table, for example with \"sqlite3 -csv\""},
    {"%PDF-", 5, "a PDF: make text of it, for example with \"pdftotext\""},
    {"\x80\x04\x95", 3, "a Python pickle: write its rows as CSV or JSON lines"},
    {"\x93NUMPY", 6, "a NumPy array: write its rows as CSV or JSON lines"},
    {"\x7F"
     "ELF",
     4, "a program, no text"},
    {"version https://git-lfs.github.com/spec/", 40,
     "a Git LFS pointer, not the file itself: fetch it with \"git lfs pull\""},
};

static const char *kind_of(const char *data, size_t n) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n >= kinds[i].n && memcmp(data, kinds[i].magic, kinds[i].n) == 0) return kinds[i].what;
    return NULL;
}

/* ---- wide characters ---- */

/* A tar archive has its word far from the front. */
static bool is_tar(const char *data, size_t n) {
    return n >= 262 && memcmp(data + 257, "ustar", 5) == 0;
}

/* The name that iconv knows the encoding by; NULL: its units are bytes. Without a mark, text of
 * mostly Latin letters has a zero in every second byte, or in three of four. */
static const char *wide_encoding(const char *data, size_t n) {
    static const struct {
        const char *mark;
        size_t n;
        const char *name;
    } marks[] = {{"\xFF\xFE\0\0", 4, "UTF-32"},
                 {"\0\0\xFE\xFF", 4, "UTF-32"},
                 {"\xFF\xFE", 2, "UTF-16"},
                 {"\xFE\xFF", 2, "UTF-16"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (n >= marks[i].n && memcmp(data, marks[i].mark, marks[i].n) == 0) return marks[i].name;
    const size_t looked = (n < 4096 ? n : 4096) & ~(size_t)3;
    size_t zeros[4] = {0};
    for (size_t i = 0; i < looked; i++) zeros[i & 3] += data[i] == 0;
    const size_t most = looked / 4;
    if (most < 2) return NULL;
    const bool often[4] = {10 * zeros[0] > 7 * most, 10 * zeros[1] > 7 * most,
                           10 * zeros[2] > 7 * most, 10 * zeros[3] > 7 * most};
    if (often[1] && often[2] && often[3] && !zeros[0]) return "UTF-32LE";
    if (often[0] && often[1] && often[2] && !zeros[3]) return "UTF-32BE";
    if (often[1] && often[3] && !often[0] && !often[2]) return "UTF-16LE";
    if (often[0] && often[2] && !often[1] && !often[3]) return "UTF-16BE";
    return NULL;
}

/* ---- bytes that are not UTF-8 ---- */

typedef struct high_bytes {
    size_t characters; /* whole UTF-8 characters of more than one byte */
    size_t others;     /* bytes over 0x7F that are none */
    size_t runs;       /* of such bytes, one behind another */
    size_t controls;   /* of them those that ISO 8859-1 has no letters for, but Windows-1252 */
} high_bytes;

static high_bytes count_high(const char *data, size_t n) {
    enum { LOOKED = 1 << 20 };
    high_bytes h = {0};
    bool in_run = false;
    for (size_t i = 0; i < n && i < LOOKED;) {
        int32_t cp;
        const int len = qkv_utf8_decode(data + i, n - i, &cp);
        const bool other = cp < 0;
        h.characters += cp >= 0x80;
        h.others += other;
        h.runs += other && !in_run;
        h.controls += other && (unsigned char)data[i] < 0xA0;
        in_run = other;
        i += (size_t)len;
    }
    return h;
}

static long long line_of(const char *data, size_t at) {
    long long line = 1;
    for (size_t i = 0; i < at; i++) line += data[i] == '\n';
    return line;
}

/* Looks around the first bad byte, which a large file may have late. */
static qkv_status not_utf8(const char *path, const char *data, size_t n, size_t bad) {
    const size_t from = bad > 4096 ? bad - 4096 : 0;
    const high_bytes h = count_high(data + from, n - from);
    const long long line = line_of(data, bad);
    const unsigned byte = (unsigned char)data[bad];
    if (h.characters > h.others)
        return qkv_fail(QKV_BAD_FILE,
                        "%s, line %lld: byte 0x%02X is not UTF-8, though most of the file is; to "
                        "drop such bytes: \"iconv -c -f UTF-8 -t UTF-8 <old >new\"",
                        path, line, byte);
    if (h.others >= 6 && h.others >= 2 * h.runs) /* letters of Latin-1 stand among plain ones */
        return qkv_fail(QKV_BAD_FILE,
                        "%s, line %lld: byte 0x%02X is not UTF-8; it is an older encoding, such as "
                        "GB18030, Shift_JIS, EUC-KR, KOI8-R or Windows-1251: convert it with "
                        "\"iconv -f THAT -t UTF-8 <old >new\"",
                        path, line, byte);
    return qkv_fail(QKV_BAD_FILE,
                    "%s, line %lld: byte 0x%02X is not UTF-8; it looks like %s: convert it with "
                    "\"iconv -f %s -t UTF-8 <old >new\"",
                    path, line, byte, h.controls ? "Windows-1252" : "Latin-1 (ISO 8859-1)",
                    h.controls ? "WINDOWS-1252" : "ISO-8859-1");
}

/* ---- the whole ---- */

qkv_status qkv_text_check(const char *path, const char *data, size_t n) {
    const char *what = kind_of(data, n), *wide = wide_encoding(data, n);
    if (!what && is_tar(data, n)) what = "a tar archive: unpack it with \"tar xf\"";
    if (what) return qkv_fail(QKV_BAD_FILE, "%s: %s", path, what);
    if (wide)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: this is %s text, not UTF-8: convert it with \"iconv -f %s -t UTF-8 "
                        "<old >new\"",
                        path, wide, wide);
    const size_t valid = qkv_utf8_valid(data, n);
    if (valid < n) return not_utf8(path, data, n, valid);
    const char *zero = n ? memchr(data, 0, n) : NULL;
    if (zero)
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: a zero byte, which no text has; is it text?",
                        path, line_of(data, (size_t)(zero - data)));
    const char *cr = n > 1 ? memchr(data, '\r', n - 1) : NULL;
    if (cr && !memchr(data, '\n', n))
        return qkv_fail(QKV_BAD_FILE,
                        "%s: its lines end in CR alone, as on old Macs: convert it with \"tr "
                        "'\\r' '\\n' <old >new\"",
                        path);
    return QKV_OK;
}
