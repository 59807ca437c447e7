/* Files as people have them: for each how it is read, or the sentence that refuses it. And the same
 * rows in every form give the same model, to the bit. */
#include "harness.h"
#include "base/file.h"
#include "base/mem.h"
#include "data/survey.h"
#include "folders.h"
#include "train/loop.h"

#include <lzma.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { LABELLED = QKV_CORPUS_LABELLED, PARALLEL = QKV_CORPUS_PARALLEL };
enum { LINES = QKV_CORPUS_LINES, STREAM = QKV_CORPUS_STREAM, RATED = QKV_CORPUS_RATED };

/* ---- generators, for what is too long to write down or to be seen ---- */

static void gzip_bytes(const char *data, size_t n, qkv_buf *out) {
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)data, .avail_in = (unsigned)n};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t room = deflateBound(&z, n) + 64;
    z.next_out = qkv_buf_extend(out, room);
    z.avail_out = (unsigned)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->len -= z.avail_out;
    deflateEnd(&z);
}

static void xz_bytes(const char *data, size_t n, qkv_buf *out) {
    const size_t room = lzma_stream_buffer_bound(n);
    size_t at = 0;
    uint8_t *to = qkv_buf_extend(out, room);
    assert_int_equal(
        lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (const uint8_t *)data, n, to, &at, room),
        LZMA_OK);
    out->len -= room - at;
}

static void zstd_bytes(const char *data, size_t n, qkv_buf *out) {
    const size_t room = ZSTD_compressBound(n);
    const size_t made = ZSTD_compress(qkv_buf_extend(out, room), room, data, n, 3);
    assert_false(ZSTD_isError(made));
    out->len -= room - made;
}

static const char plain[] = "good\tfine film\nbad\tdull film\ngood\tfine plot\nbad\tdull plot\n";

static void gz(qkv_buf *b) {
    gzip_bytes(plain, sizeof plain - 1, b);
}
static void gz_members(qkv_buf *b) {
    gzip_bytes(plain, 15, b);
    gzip_bytes(plain + 15, sizeof plain - 16, b);
}
static void gz_cut(qkv_buf *b) {
    gz(b);
    b->len -= 9;
}
static void gz_damaged(qkv_buf *b) {
    gz(b);
    b->data[b->len - 6] ^= 1; /* of the check sum */
}
static void gz_garbage(qkv_buf *b) {
    gz(b);
    qkv_buf_puts(b, "and more");
}
static void xz(qkv_buf *b) {
    xz_bytes(plain, sizeof plain - 1, b);
}
static void xz_cut(qkv_buf *b) {
    xz(b);
    b->len -= 20;
}
static void xz_damaged(qkv_buf *b) {
    xz(b);
    b->data[40] ^= 4;
}
static void zst(qkv_buf *b) {
    zstd_bytes(plain, sizeof plain - 1, b);
}
static void zst_frames(qkv_buf *b) {
    zstd_bytes(plain, 15, b);
    zstd_bytes(plain + 15, sizeof plain - 16, b);
}
static void zst_cut(qkv_buf *b) {
    zst(b);
    b->len -= 5;
}
/* 100 MB of one line, in 100 kB. */
static void bomb(qkv_buf *b) {
    qkv_buf text = {0};
    memset(qkv_buf_extend(&text, 100000000), 'x', 100000000);
    gzip_bytes(text.data, text.len, b);
    qkv_buf_free(&text);
}

static void wide(qkv_buf *b, const char *text, bool big, bool mark) {
    if (mark) qkv_buf_add(b, big ? "\xFE\xFF" : "\xFF\xFE", 2);
    for (; *text; text++) {
        const char pair[] = {big ? 0 : *text, big ? *text : 0};
        qkv_buf_add(b, pair, 2);
    }
}
static void utf16_mark(qkv_buf *b) {
    wide(b, plain, false, true);
}
static void utf16_big_mark(qkv_buf *b) {
    wide(b, plain, true, true);
}
static void utf16_bare(qkv_buf *b) {
    wide(b, plain, false, false);
}
static void utf16_big_bare(qkv_buf *b) {
    wide(b, plain, true, false);
}
static void utf32_bare(qkv_buf *b) {
    for (const char *c = plain; *c; c++) qkv_buf_add(b, (char[4]){*c}, 4);
}

/* 40 rows of a sentence and its verdict, by the format of a row: %1$s the verdict, %2$s a word,
 * %3$d a number. */
static void forty(qkv_buf *b, const char *row) {
    static const char *const verdict[] = {"good", "bad"};
    static const char *const word[] = {"fine", "dull"};
    for (int i = 0; i < 40; i++) qkv_buf_printf(b, row, verdict[i % 2], word[i % 2], i);
}
static void label_second_csv(qkv_buf *b) {
    forty(b, "the film was %2$s number %3$d,%1$s\n");
}
static void label_second_tsv(qkv_buf *b) {
    forty(b, "the film was %2$s number %3$d\t%1$s\n");
}
static void label_second_semicolons(qkv_buf *b) {
    forty(b, "\"the film; it was %2$s, %3$d\";%1$s\n");
}
static void unknown_names_csv(qkv_buf *b) {
    qkv_buf_puts(b, "Remark,Verdict\n");
    label_second_csv(b);
}
static void unknown_names_tsv(qkv_buf *b) {
    qkv_buf_puts(b, "Remark\tVerdict\n");
    label_second_tsv(b);
}
static void unknown_names_three(qkv_buf *b) {
    qkv_buf_puts(b, "no,remark,verdict\n");
    forty(b, "%3$d,the film was %2$s,%1$s\n");
}
static void ids_first(qkv_buf *b) {
    forty(b, "id%3$d\t%1$s: the film was %2$s in part %3$d\n");
}
static void ids_named(qkv_buf *b) {
    qkv_buf_puts(b, "id,text,label\n");
    forty(b, "%3$d,the film was %2$s number %3$d,%1$s\n");
}
static void many_columns(qkv_buf *b) {
    for (int i = 0; i < 100; i++) qkv_buf_printf(b, "c%d,", i);
    qkv_buf_puts(b, "text,label\n");
    for (int row = 0; row < 4; row++) {
        for (int i = 0; i < 100; i++) qkv_buf_printf(b, "%d,", i * row);
        qkv_buf_printf(b, "a text %d,%s\n", row, row % 2 ? "good" : "bad");
    }
}
static void one_in_ten(qkv_buf *b) {
    for (int i = 0; i < 40; i++) qkv_buf_printf(b, "%s\tfilm %d\n", i % 10 ? "ham" : "spam", i);
}
static void crlf_stream(qkv_buf *b) {
    for (int i = 0; i < 9000; i++) qkv_buf_printf(b, "line %d of it\r\n", i);
}

/* ---- the table ---- */

typedef struct messy {
    const char *name, *ending;
    const char *bytes;
    size_t n; /* 0: of a string */
    void (*make)(qkv_buf *b);
    int shape;
    const char *format, *text, *label, *pair, *between;
    /* what is read, */
    const char *as;
    int rows, empty, doubled, classes;
    const char *first_label, *first_text, *first_pair;
    /* or why not */
    const char *refused;
} messy;

#define BYTES(text) .bytes = text, .n = sizeof(text) - 1
#define READ(form, n_rows, n_classes, label_, text_)                                               \
    .as = form, .rows = n_rows, .classes = n_classes, .first_label = label_, .first_text = text_

static const messy table[] = {
    /* lines and their ends */
    {"tsv", ".tsv", plain, READ("tsv", 4, 2, "good", "fine film")},
    {"tsv without an ending", "", plain, READ("tsv", 4, 2, "good", "fine film")},
    {"crlf", ".tsv", "a\tx y\r\nb\ty z\r\na\tz\r\n", READ("tsv", 3, 2, "a", "x y")},
    {"byte-order mark", ".tsv",
     "\xEF\xBB\xBF"
     "a\tx\nb\ty\na\tz\n",
     READ("tsv", 3, 2, "a", "x")},
    {"mark, crlf, no last line end", ".csv",
     "\xEF\xBB\xBF"
     "a,x\r\nb,y\r\na,z",
     READ("csv", 3, 2, "a", "x")},
    {"lines of old Macs", ".tsv", "a\tx\rb\ty\ra\tz\r", .refused = "tr '\\r' '\\n'"},
    {"blank lines", ".tsv", "\n\na\tx\n\nb\ty\n\n", READ("tsv", 2, 2, "a", "x"), .empty = 4},
    {"rows without text", ".tsv", "a\tx\nb\t\nb\t  \nb\ty\n", READ("tsv", 2, 2, "a", "x"),
     .empty = 2},
    {"double rows", ".tsv", "a\tx\nb\tx\na\tx\nb\ty\n", READ("tsv", 4, 2, "a", "x"), .doubled = 2},
    {"nothing", ".tsv", "", .refused = "the file is empty"},
    {"only a mark", ".tsv", "\xEF\xBB\xBF", .refused = "the file is empty"},
    {"only blank lines", ".tsv", "\n\n \n", .refused = "no TAB"},
    {"labels with blanks and emoji", ".tsv", "very good 😀\tx\nnot so good\ty\nvery good 😀\tz\n",
     READ("tsv", 3, 2, "very good 😀", "x")},
    {"TABs in the text", ".tsv", "a\tx\ty\nb\tz\na\tw\n", READ("tsv", 3, 2, "a", "x\ty")},
    {"quotes in TSV are letters", ".tsv", "a\t\"x\" y\nb\t\"z\na\tw\n",
     READ("tsv", 3, 2, "a", "\"x\" y")},
    {"no TAB", ".tsv", "a\tx\nb y\n", .refused = "line 2: no TAB; wanted label<TAB>text"},
    {"no label", ".tsv", "a\tx\n\ty\n", .refused = "line 2: the label is empty"},
    {"a zero", ".tsv", BYTES("a\tx\nb\ty\0z\n"), .refused = "line 2: a zero byte"},
    {"prose", ".txt", "It is a truth universally acknowledged\n",
     .refused = "not recognised; rows may be"},
    {"a web page", ".tsv.html", "<!DOCTYPE html>\n<html>\n", .refused = "web page"},

    /* what is not UTF-8 text */
    {"UTF-16 with its mark", ".csv", .make = utf16_mark,
     .refused = "UTF-16 text, not UTF-8: convert it with \"iconv -f UTF-16 -t UTF-8"},
    {"UTF-16, big end first", ".csv", .make = utf16_big_mark,
     .refused = "iconv -f UTF-16 -t UTF-8"},
    {"UTF-16 without a mark", ".csv", .make = utf16_bare, .refused = "iconv -f UTF-16LE -t UTF-8"},
    {"UTF-16BE without a mark", ".csv", .make = utf16_big_bare,
     .refused = "iconv -f UTF-16BE -t UTF-8"},
    {"UTF-32", ".csv", .make = utf32_bare, .refused = "iconv -f UTF-32LE -t UTF-8"},
    {"Latin-1", ".tsv", "a\tna\xEFve caf\xE9\nb\tgar\xE7on\n",
     .refused =
         "line 1: byte 0xEF is not UTF-8; it looks like Latin-1 (ISO 8859-1): convert it with "
         "\"iconv -f ISO-8859-1 -t UTF-8"},
    {"Windows-1252", ".tsv", "a\tit\x92s na\xEFve\n", .refused = "iconv -f WINDOWS-1252 -t UTF-8"},
    {"GB18030", ".tsv", "a\t\xB5\xE7\xD3\xB0\xBA\xDC\xBA\xC3\nb\t\xB2\xBB\xBA\xC3\n",
     .refused = "GB18030"},
    {"mostly UTF-8", ".tsv", "a\tnaïve café garçon œuvre \xE9\nb\ty\n",
     .refused = "iconv -c -f UTF-8"},
    {"a workbook", ".xlsx", BYTES("PK\x03\x04\x14\0\x06\0"), .refused = "an .xlsx workbook"},
    {"an old workbook", ".xls", BYTES("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\0\0"), .refused = "(.xls)"},
    {"Parquet", ".parquet", BYTES("PAR1\x15\x04\x15"), .refused = "a Parquet file"},
    {"bzip2", ".tsv.bz2", "BZh91AY&SY", .refused = "bunzip2"},
    {"a Git LFS pointer", ".tsv", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
     .refused = "git lfs pull"},

    /* packed */
    {"gzip", ".tsv.gz", .make = gz, READ("tsv", 4, 2, "good", "fine film")},
    {"gzip by another name", ".tsv", .make = gz, READ("tsv", 4, 2, "good", "fine film")},
    {"gzip in pieces", ".tsv.gz", .make = gz_members, READ("tsv", 4, 2, "good", "fine film")},
    {"gzip, cut", ".tsv.gz", .make = gz_cut, .refused = "gzip data ends in the middle"},
    {"gzip, damaged", ".tsv.gz", .make = gz_damaged, .refused = "gzip data is damaged"},
    {"gzip and more", ".tsv.gz", .make = gz_garbage, .refused = "gzip data is damaged"},
    {"a bomb", ".tsv.gz", .make = bomb, .refused = "unpack to more than"},
    {"xz", ".tsv.xz", .make = xz, READ("tsv", 4, 2, "good", "fine film")},
    {"xz, cut", ".tsv.xz", .make = xz_cut, .refused = "xz data ends in the middle"},
    {"xz, damaged", ".tsv.xz", .make = xz_damaged, .refused = "xz data is damaged"},
    {"zstd", ".tsv.zst", .make = zst, READ("tsv", 4, 2, "good", "fine film")},
    {"zstd in frames", ".tsv.zst", .make = zst_frames, READ("tsv", 4, 2, "good", "fine film")},
    {"zstd, cut", ".tsv.zst", .make = zst_cut, .refused = "zstd data ends in the middle"},

    /* separators and quotes */
    {"commas", ".csv", "a,\"x, y\"\nb,z\na,w\n", READ("csv", 3, 2, "a", "x, y")},
    {"semicolons", ".csv", "a;x, y\nb;z\na;w, v\n", READ("csv", 3, 2, "a", "x, y")},
    {"semicolons, no ending", "", "a;x y\nb;z\na;w v\n", READ("csv", 3, 2, "a", "x y")},
    {"bars", ".csv", "a|x, y; z\nb|z\na|w\n", READ("csv", 3, 2, "a", "x, y; z")},
    {"TABs and quotes", ".tsv", "a\t\"x \"\"y\"\"\tz\"\nb\tz\na\tw\n", .format = "csv",
     READ("csv", 3, 2, "a", "x \"y\"\tz")},
    {"sep= of spreadsheets", ".csv", "sep=;\r\nlabel;text\r\na;x, y\r\nb;z\r\na;w\r\n",
     READ("csv", 3, 2, "a", "x, y")},
    {"lines in quotes", ".csv", "label,text\na,\"x\r\ny\"\r\nb,z\r\na,w\r\n",
     READ("csv", 3, 2, "a", "x\ny")},
    {"unquoted commas", ".csv", "a,x, but long\nb,y\na,z\n", READ("csv", 3, 2, "a", "x  but long")},
    {"unquoted commas under names", ".csv", "label,text\na,x, but long\nb,y\n",
     .refused = "line 2: 3 columns, but the first row has 2"},
    {"a quote that never ends", ".csv", "label,text\na,\"x\nb,y\n",
     .refused = "line 2: a quoted field does not end"},
    {"text behind a quote", ".csv", "label,text\na,\"x\"y\nb,y\n",
     .refused = "line 2: text after a closing quote"},
    {"too few columns", ".csv", "label,n,text\na,1,x\nb,2\n",
     .refused = "line 3: 2 columns, wanted at least 3"},
    {"100 columns", ".csv", .make = many_columns, READ("csv", 4, 2, "bad", "a text 0")},

    /* columns */
    {"names", ".csv", "id,Text,LABEL\n1,x,a\n2,y,b\n3,z,a\n", READ("csv", 3, 2, "a", "x")},
    {"names in TSV", ".tsv", "sentence\tlabel\nx y\ta\ny\tb\nz\ta\n",
     READ("tsv", 3, 2, "a", "x y")},
    {"names of parts", ".csv", "Review ID,Review Text,Product Category\n1,x,a\n2,y,b\n3,z,a\n",
     READ("csv", 3, 2, "a", "x")},
    {"a name that is a label", ".tsv", "comment\ttext\nquestion\tx\ncomment\ty\nquestion\tz\n",
     READ("tsv", 4, 2, "comment", "text")},
    {"only names", ".csv", "label,text\n", .refused = "no row has text"},
    {"by name", ".csv", "body,kind,n\nx,a,1\ny,b,2\nz,a,3\n", .text = "body", .label = "kind",
     READ("csv", 3, 2, "a", "x")},
    {"by name, whatever its case", ".csv", "Body,Kind,n\nx,a,1\ny,b,2\nz,a,3\n", .text = "body",
     .label = "KIND", READ("csv", 3, 2, "a", "x")},
    {"by number", ".tsv", "u1\tb\t\tx y\nu2\ta\t*\ty\nu3\ta\t\tz\n", .text = "4", .label = "2",
     READ("tsv", 3, 2, "b", "x y")},
    {"by number, under names", ".csv", "n,text,label\n1,x,a\n2,y,b\n3,z,a\n", .text = "2",
     .label = "3", READ("csv", 3, 2, "a", "x")},
    {"one of two by name", ".csv", "body,kind\nx,a\ny,b\nz,a\n", .label = "kind",
     READ("csv", 3, 2, "a", "x")},
    {"no such name", ".csv", "body,kind\nx,a\ny,b\n", .label = "klass",
     .refused = "--label: no column is named \"klass\"; the first row is \"body\", \"kind\""},
    {"no such number", ".csv", "x,a\ny,b\n", .label = "3",
     .refused = "there is no column 3; the first row has 2"},
    {"twice the same", ".csv", "x,a\ny,b\n", .label = "1", .text = "1",
     .refused = "name the same column"},
    {"which is the text", ".csv", "n,kind,said\n1,a,x\n2,b,y\n", .label = "kind",
     .refused = "which column has the texts?; its first row is \"n\", \"kind\", \"said\""},
    {"a form without columns", ".txt", "__label__a x\n__label__b y\n", .text = "2",
     .refused = "names a column, but the form \"fasttext\" has none"},
    {"pairs", ".tsv", "premise\thypothesis\tlabel\nx\ty\ta\nz\tw\tb\nv\tu\ta\n",
     READ("tsv", 3, 2, "a", "x"), .first_pair = "y"},
    {"pairs by name", ".csv", "q1,q2,same\nx,y,1\nz,w,0\nv,u,1\n", .text = "q1", .pair = "q2",
     .label = "same", READ("csv", 3, 2, "1", "x"), .first_pair = "y"},

    /* which column is which, by counting */
    {"text,label", ".csv", .make = label_second_csv,
     READ("csv", 40, 2, "good", "the film was fine number 0")},
    {"text;label", ".csv", .make = label_second_semicolons,
     READ("csv", 40, 2, "good", "the film; it was fine, 0")},
    {"sentence<TAB>label", ".tsv", .make = label_second_tsv,
     .refused = "the texts look like labels. If label and text changed places: --text 1 --label 2"},
    {"sentence<TAB>label, told", ".tsv", .make = label_second_tsv, .text = "1", .label = "2",
     READ("tsv", 40, 2, "good", "the film was fine number 0")},
    {"other names", ".csv", .make = unknown_names_csv,
     READ("csv", 40, 2, "good", "the film was fine number 0")},
    {"other names in TSV", ".tsv", .make = unknown_names_tsv,
     READ("tsv", 40, 2, "good", "the film was fine number 0")},
    {"other names, three", ".csv", .make = unknown_names_three,
     .refused =
         "which columns have labels and texts?; its first row is \"no\", \"remark\", \"verdict\""},
    {"ids for labels", ".tsv", .make = ids_first, .refused = "40 different labels in 40 rows"},
    {"the id named as label", ".csv", .make = ids_named, .text = "text", .label = "id",
     .refused = "as many labels as rows. Say which columns: --text N --label N (names or numbers); "
                "not used so far: \"label\""},
    {"changed places, by name", ".csv", .make = ids_named, .text = "label", .label = "text",
     .refused = "--text text --label label"},
    {"one class", ".tsv", "a\tx\na\ty\na\tz\n",
     .refused = "all rows have the same label, \"a\"; a classifier needs two. Say which columns"},
    {"a rare class, mostly one", ".tsv", .make = one_in_ten, READ("tsv", 40, 2, "spam", "film 0")},

    /* JSON */
    {"JSON lines", ".jsonl",
     "{\"label\":\"a\",\"text\":\"x\"}\n{\"text\":\"y\",\"label\":\"b\"}\n{\"label\":\"a\","
     "\"text\":\"z\"}\n",
     READ("jsonl", 3, 2, "a", "x")},
    {"a JSON list", ".json",
     "[{\"label\": \"a\", \"text\": \"x, y\"},\n {\"label\": \"b\", \"text\": \"y\"}, {\"label\": "
     "\"a\", \"text\": \"z\"}]\n",
     READ("json", 3, 2, "a", "x, y")},
    {"a JSON list over lines", "",
     "[\n  {\n    \"label\": \"a\",\n    \"text\": \"x ] }\"\n  },\n  {\n    \"label\": \"b\",\n   "
     " \"text\": \"y\"\n  }\n]\n",
     READ("json", 2, 2, "a", "x ] }")},
    {"objects over lines", ".jsonl",
     "{\n \"label\": 1,\n \"text\": \"x\"\n}\n{\n \"label\": 2.50,\n \"text\": \"y\"\n}\n",
     READ("jsonl", 2, 2, "1", "x")},
    {"an empty JSON list", ".json", "[]\n", .refused = "no row has text"},
    {"a JSON list that is cut", ".json", "[{\"label\":\"a\",\"text\":\"x\"},\n",
     .refused = "the list [ … ] does not end"},
    {"a JSON list of lists", ".json", "[[\"a\",\"x\"],[\"b\",\"y\"]]\n",
     .refused = "line 1: not an object"},
    {"a JSON list and more", ".json", "[{\"label\":\"a\",\"text\":\"x\"}] {}\n",
     .refused = "behind the end of the list"},
    {"JSON keys by name", ".jsonl",
     "{\"kind\":\"a\",\"body\":\"x\"}\n{\"kind\":\"b\",\"body\":\"y\"}\n", .text = "body",
     .label = "kind", READ("jsonl", 2, 2, "a", "x")},
    {"JSON with other keys", ".jsonl", "{\"kind\":\"a\",\"words\":\"x\"}\n",
     .refused =
         "line 1: lacks \"label\" or \"text\"; it has \"kind\", \"words\" (say which is which"},
    {"JSON with a list for a text", ".jsonl", "{\"label\":\"a\",\"text\":[\"x\",\"y\"]}\n",
     .refused = "line 1: the text is a list"},
    {"JSON with an empty label", ".jsonl", "{\"label\":\"\",\"text\":\"x\"}\n",
     .refused = "line 1: the label is empty"},
    {"JSON with null", ".jsonl",
     "{\"label\":\"a\",\"text\":null}\n{\"label\":\"b\",\"text\":\"y\"}\n{\"label\":\"a\",\"text\":"
     "\"z\"}\n",
     READ("jsonl", 2, 2, "b", "y"), .empty = 1},
    {"JSON with a zero", ".jsonl", "{\"label\":\"a\\u0000b\",\"text\":\"x\"}\n",
     .refused = "a zero byte in the label"},
    {"JSON, damaged", ".jsonl",
     "{\"label\":\"a\",\"text\":\"x\"}\n{\"label\":\"b\" \"text\":\"y\"}\n", .refused = "line 2"},

    /* several labels a row */
    {"fastText, several labels", ".txt",
     "__label__b __label__a x y\n__label__c\tz\n__label__a __label__a w\nno label\n",
     READ("fasttext", 4, 3, "a|b", "x y")},
    {"fastText, none and one", ".txt", "__label__b x\n__label__a y\nz\n",
     .refused = "line 3: the row has no label; such rows may stand only beside rows of several"},
    {"JSON, lists of labels", ".jsonl",
     "{\"label\":[\"b\",\"a\",3],\"text\":\"x\"}\n{\"text\":\"y\",\"label\":[]}\n{\"label\":\"a\","
     "\"text\":\"z\"}\n",
     READ("jsonl", 3, 3, "3|a|b", "x")},
    {"JSON, lists of one label", ".jsonl",
     "{\"labels\":[\"b\"],\"text\":\"x\"}\n{\"labels\":[\"a\"],\"text\":\"y\"}\n",
     READ("jsonl", 2, 2, "b", "x")},
    {"JSON, a list in a list", ".jsonl", "{\"label\":[[\"a\"]],\"text\":\"x\"}\n",
     .refused = "the label in a list is a list"},
    {"JSON, an empty label in a list", ".jsonl", "{\"label\":[\"a\",\"\"],\"text\":\"x\"}\n",
     .refused = "line 1: a label of the list is empty"},
    {"JSON, a list with a zero", ".jsonl", "{\"label\":[\"a\\u0000b\"],\"text\":\"x\"}\n",
     .refused = "a zero byte in the label"},
    {"labels between semicolons", ".csv", "text,label\nx,b; a\ny,\nz,a;;c\n", .between = ";",
     READ("csv", 3, 3, "a|b", "x")},
    {"labels between words", ".tsv", "b and a\tx\na\ty\nc\tz\n", .between = " and ",
     READ("tsv", 3, 3, "a|b", "x")},
    {"a separator that is nowhere", ".tsv", "b\tx\na\ty\n", .between = ";",
     READ("tsv", 2, 2, "b", "x")},
    {"lists that nobody calls so", ".csv", "label,text\na;b,x\nb;c,y\na;c,z\nc;d,v\nd;a,w\n",
     .refused = "If a row has several labels: --labels-separator \";\""},

    /* fastText, CoNLL-U, forms insisted on */
    {"fastText", ".txt", "__label__a x y\r\n__label__b y\r\n__label__a z\r\n",
     READ("fasttext", 3, 2, "a", "x y")},
    {"CoNLL-U", ".conllu",
     "# label = a\n1\tx\t_\t_\t_\t_\t0\t_\t_\t_\n\n# label = b\n1\ty\t_\t_\t_\t_\t0\t_\t_\t_\n\n",
     READ("conllu", 2, 2, "a", "x")},
    {"an unknown form", ".tsv", plain, .format = "tvs",
     .refused = "there is no \"tvs\" for this task; did you mean tsv? There are json,"},
    {"another unknown form", ".tsv", plain, .format = "foo",
     .refused = "choose one of json, jsonl, conllu, fasttext, tsv, csv"},
    {"a form of another task", ".tsv", plain, .shape = PARALLEL, .format = "fasttext",
     .refused = "there is no \"fasttext\" for this task"},

    /* pairs for a translator */
    {"source<TAB>target", ".tsv", "ein Hund\ta dog\tCC-BY\nzwei\ttwo\t\n", .shape = PARALLEL,
     .as = "tsv", .rows = 2, .first_text = "ein Hund", .first_pair = "a dog"},
    {"target first, by number", ".tsv", "a dog\tein Hund\nb\tc\n", .shape = PARALLEL, .text = "2",
     .pair = "1", .as = "tsv", .rows = 2, .first_text = "ein Hund", .first_pair = "a dog"},
    {"source,target with names", ".csv",
     "id,source,target\n1,ein Hund,a dog\n2,\"zwei, drei\",\"two, three\"\n", .shape = PARALLEL,
     .as = "csv", .rows = 2, .first_text = "ein Hund", .first_pair = "a dog"},
    {"JSON translations", ".json", "[{\"translation\":{\"de\":\"ein Hund\",\"en\":\"a dog\"}}]",
     .shape = PARALLEL, .as = "json", .rows = 1, .first_text = "ein Hund", .first_pair = "a dog"},
    {"one file of prose", ".de", "ein Hund\nzwei Hunde\n", .shape = PARALLEL,
     .refused =
         "not recognised as pairs of texts; give two files that answer each other line by line"},
    {"prose with commas", ".de", "ein Hund, eine Katze\nzwei Hunde\nja, nein, ja\n",
     .shape = PARALLEL, .refused = "not recognised as pairs of texts"},

    /* numbers */
    {"number<TAB>text", ".tsv", "4.5\tx\ty z\n-1e3\ty\n+2\tz\n", .shape = RATED,
     READ("tsv", 3, 0, "4.5", "x\ty z")},
    {"number<TAB>text<TAB>text", ".tsv", "4.5\tx\ty\n1\ty\tw\n2\tz\tv\n", .shape = RATED,
     READ("tsv", 3, 0, "4.5", "x"), .first_pair = "y"},
    {"text,number", ".csv", "\"x, y\",3\nb,4\nc,5\n", .shape = RATED,
     READ("csv", 3, 0, "3", "x, y")},
    {"numbers under a name of their own", ".csv", "worth;note;said\n1;i;x\n2;j;y\n", .shape = RATED,
     .refused = "which column has the texts?"},
    {"numbers under names", ".csv", "id,review,rating\n7,x,1\n8,y,2.5\n9,y,3\n", .shape = RATED,
     READ("csv", 3, 0, "1", "x"), .doubled = 1},
    {"numbers by name", ".csv", "n,body,worth\n1,x,3\n2,y,4\n", .shape = RATED, .text = "body",
     .label = "worth", READ("csv", 2, 0, "3", "x")},
    {"numbers in JSON", ".jsonl",
     "{\"stars\":4,\"text\":\"x\"}\n{\"text\":\"y\",\"stars\":\"2.5\"}\n", .shape = RATED,
     READ("jsonl", 2, 0, "4", "x")},
    {"likeness of two", ".json",
     "[{\"score\":0.5,\"sentence1\":\"x\",\"sentence2\":\"y\"},{\"score\":1,\"sentence1\":"
     "\"z\",\"sentence2\":\"z\"}]",
     .shape = RATED, READ("json", 2, 0, "0.5", "x"), .first_pair = "y"},
    {"labels for numbers", ".tsv", "good\tx\nbad\ty\n", .shape = RATED,
     .refused = "line 1: \"good\" is no number such as 4.5 or -1e3; name the column"},
    {"a number with a comma", ".csv", "note;text\n1,5;x\n2,5;y\n", .shape = RATED, .label = "1",
     .text = "2", .refused = "\"1,5\" is no number such as 4.5 or -1e3 (a point"},
    {"one that is no number", ".tsv", "1\tx\n2\ty\nmany\tz\n", .shape = RATED,
     .refused = "line 3: \"many\" is no number"},
    {"a number that is missing", ".tsv", "1\tx\n\ty\n3\tz\n", .shape = RATED,
     .refused = "line 2: the number is missing"},
    {"not a number", ".tsv", "1\tx\nnan\ty\n", .shape = RATED, .refused = "\"nan\" is no number"},
    {"beyond all numbers", ".tsv", "1\tx\n1e39\ty\n", .shape = RATED,
     .refused = "\"1e39\" is no number"},
    {"one number", ".tsv", "3\tx\n3.0\ty\n3\tz\n", .shape = RATED,
     .refused = "all rows have the same number, 3"},
    {"JSON without a number", ".jsonl", "{\"text\":\"x\"}\n", .shape = RATED,
     .refused = "lacks the number (\"score\") or \"text\""},
    {"prose for numbers", ".txt", "It is a truth\n", .shape = RATED,
     .refused = "rows may be number<TAB>text"},

    /* texts alone */
    {"lines", ".txt", "one, two\r\n\r\nthree\r\n", .shape = LINES, .as = "text", .rows = 2,
     .empty = 1, .first_text = "one, two"},
    {"a column of texts", ".csv", "id,body\n1,\"one, two\"\n2,three\n", .shape = LINES,
     .text = "body", .as = "csv", .rows = 2, .first_text = "one, two"},
    {"running text, packed", ".txt.gz", .make = gz, .shape = STREAM, .as = "text", .rows = 1,
     .first_text = plain},
    {"running text of Windows", ".txt", .make = crlf_stream, .shape = STREAM, .as = "text",
     .rows = 3},
};
enum { N_TABLE = sizeof table / sizeof *table };

/* ---- reading one ---- */

static int n_bad;

/* All rows are tried, whatever becomes of the first. */
static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    print_error("\n");
    n_bad++;
}

static void put_file(const char *path, const char *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_messy(const messy *m, const char *path) {
    qkv_buf made = {0};
    if (m->make)
        m->make(&made);
    else
        qkv_buf_add(&made, m->bytes, m->n ? m->n : strlen(m->bytes));
    assert_int_equal(made.status, QKV_OK);
    put_file(path, made.len ? made.data : "", made.len);
    qkv_buf_free(&made);
}

static void check_text(const messy *m, const char *what, qkv_text got, const char *wanted) {
    if (wanted &&
        (got.len != strlen(wanted) || (got.len && memcmp(got.data, wanted, got.len) != 0)))
        complain("%s: %s is \"%.*s\", wanted \"%s\"", m->name, what, (int)got.len, got.data,
                 wanted);
}

static void check_number(const messy *m, const char *what, int64_t got, int wanted) {
    if (got != wanted) complain("%s: %s %lld, wanted %d", m->name, what, (long long)got, wanted);
}

static void check_read(const messy *m, const qkv_corpus *c, const qkv_survey *s) {
    const qkv_row *row = &c->rows[0];
    if (strcmp(c->format, m->as) != 0)
        complain("%s: read as %s, wanted %s", m->name, c->format, m->as);
    check_number(m, "rows", (int64_t)c->n, m->rows);
    check_number(m, "empty", s->empty, m->empty);
    check_number(m, "doubled", s->doubled, m->doubled);
    check_number(m, "classes", c->labels.n, m->classes);
    char list[100] = "";
    for (size_t k = 0; k < row->n_labels; k++) {
        strcat(list, k ? "|" : "");
        strcat(list, c->labels.names[row->labels[k]]);
    }
    if (c->several) check_text(m, "labels", (qkv_text){list, strlen(list)}, m->first_label);
    if (m->first_label && m->shape != RATED && !c->several)
        check_text(m, "label",
                   (qkv_text){c->labels.names[row->label], strlen(c->labels.names[row->label])},
                   m->first_label);
    if (m->shape == RATED) {
        char number[32];
        check_text(m, "number",
                   (qkv_text){number, (size_t)snprintf(number, sizeof number, "%g", row->value)},
                   m->first_label);
    }
    check_text(m, "text", row->text, m->first_text);
    if (m->first_pair) check_text(m, "pair", row->second, m->first_pair);
}

static void check_messy(const messy *m) {
    char path[100];
    const char *list = path;
    qkv_survey s = {0};
    qkv_corpus c;
    snprintf(path, sizeof path, "test_messy-%d%s", (int)getpid(), m->ending);
    write_messy(m, path);
    const uint64_t live = qkv_mem_count().live;
    const qkv_corpus_spec spec = {.shape = (qkv_corpus_shape)m->shape,
                                  .paths = &list,
                                  .n_paths = 1,
                                  .format = m->format,
                                  .between = m->between,
                                  .column = {m->label, m->text, m->pair}};
    qkv_status status = qkv_corpus_read(&c, &spec);
    const bool opened = status == QKV_OK;
    if (opened) status = qkv_survey_make(&c, &s);
    if (status == QKV_OK) status = qkv_survey_check(&c, &s);
    const char *named = strstr(qkv_error(), "line 1");
    if (m->refused && status != QKV_OK && named && strstr(named + 1, "line 1"))
        complain("%s: says its line twice: \"%s\"", m->name, qkv_error());
    if (m->refused && status == QKV_OK)
        complain("%s: was read; wanted \"%s\"", m->name, m->refused);
    else if (m->refused && !strstr(qkv_error(), m->refused))
        complain("%s: says \"%s\", wanted \"%s\"", m->name, qkv_error(), m->refused);
    if (!m->refused && status != QKV_OK) complain("%s: %s", m->name, qkv_error());
    if (!m->refused && status == QKV_OK) check_read(m, &c, &s);
    qkv_survey_free(&s);
    if (opened) qkv_corpus_free(&c);
    if (qkv_mem_count().live != live) complain("%s: leaves memory behind", m->name);
    unlink(path);
}

static void every_row(void **state) {
    (void)state;
    assert_true(N_TABLE >= 60);
    for (size_t i = 0; i < N_TABLE; i++) check_messy(&table[i]);
    print_message("%d messy files, %d of them wrong\n", N_TABLE, n_bad);
    assert_int_equal(n_bad, 0);
}

/* Without memory, whichever allocation fails, there is a message and nothing is left. */
static qkv_status read_once(const void *path) {
    const char *const list[] = {path};
    qkv_corpus c;
    qkv_survey s;
    QKV_TRY(qkv_corpus_read(&c, &(qkv_corpus_spec){.paths = list, .n_paths = 1}));
    qkv_status status = qkv_survey_make(&c, &s);
    if (status == QKV_OK) qkv_survey_free(&s);
    qkv_corpus_free(&c);
    return status;
}

static void without_memory(void **state) {
    (void)state;
    static const struct {
        const char *path, *content;
    } files[] = {
        {"test_messy-memory.csv",
         "id,text,label\n1,\"a "
         "\"\"b\"\"\",x\n2,b,y\n3,c,x\n4,d,y\n5,e,x\n6,f,y\n7,g,x\n8,h,y\n9,i,X\n"},
        {"test_messy-memory.tsv", "a\tx\nb\ty\na\tz\n"},
        {"test_messy-memory.json",
         "[{\"label\":\"a\",\"text\":\"x\",\"n\":1},{\"label\":\"b\",\"text\":\"\\u00e4\"}]"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put_file(files[i].path, files[i].content, strlen(files[i].content));
        assert_fails_cleanly(read_once, files[i].path, 0);
        unlink(files[i].path);
    }
}

/* ---- the order of rows ---- */

/* A shuffled file has the same labels with the same numbers, and the same counts. */
static void order_of_rows(void **state) {
    (void)state;
    static const char *const contents[] = {"b\tx\na\ty\nÄ\tz\na\tx\nb\tw\n",
                                           "a\tx\nÄ\tz\nb\tw\nb\tx\na\ty\n"};
    qkv_corpus c[2];
    qkv_survey s[2];
    const char *path = "test_messy-order.tsv";
    for (int i = 0; i < 2; i++) {
        put_file(path, contents[i], strlen(contents[i]));
        assert_ok(qkv_corpus_read(&c[i], &(qkv_corpus_spec){.paths = &path, .n_paths = 1}));
        assert_ok(qkv_survey_make(&c[i], &s[i]));
        assert_ok(qkv_survey_check(&c[i], &s[i]));
    }
    assert_int_equal(c[0].labels.n, c[1].labels.n);
    for (int k = 0; k < c[0].labels.n; k++) {
        assert_string_equal(c[0].labels.names[k], c[1].labels.names[k]);
        assert_string_equal(s[0].classes[k].name, s[1].classes[k].name);
        assert_int_equal(s[0].classes[k].n, s[1].classes[k].n);
    }
    assert_int_equal(s[0].doubled, s[1].doubled);
    for (int i = 0; i < 2; i++) {
        qkv_survey_free(&s[i]);
        qkv_corpus_free(&c[i]);
    }
    unlink(path);
}

/* Labels that differ by blanks or case are found, in any script; the largest class stands first. */
static void labels_alike(void **state) {
    (void)state;
    static const char content[] = "Äpfel\tx\näpfel\ty\nno\tz\nNo \tw\nn o\tv\nyes\tu\n";
    const char *path = "test_messy-alike.tsv";
    qkv_corpus c;
    qkv_survey s;
    put_file(path, content, sizeof content - 1);
    assert_ok(qkv_corpus_read(&c, &(qkv_corpus_spec){.paths = &path, .n_paths = 1}));
    assert_ok(qkv_survey_make(&c, &s));
    assert_int_equal(s.alike.n, 3);
    assert_string_equal(s.alike.at[0].a, "No ");
    assert_string_equal(s.alike.at[0].b, "n o");
    assert_string_equal(s.alike.at[1].b, "no");
    assert_string_equal(s.alike.at[2].a, "Äpfel");
    assert_string_equal(s.alike.at[2].b, "äpfel");
    assert_int_equal(s.n_rare, 6);
    qkv_survey_free(&s);
    qkv_corpus_free(&c);
    unlink(path);
}

/* Nine tenths of one class are worth a warning, a half of two are not. */
static void imbalance(void **state) {
    (void)state;
    qkv_class_count classes[] = {{"ham", 90}, {"spam", 10}};
    qkv_survey s = {.rows = 100, .classes = classes, .n_classes = 2};
    assert_true(qkv_survey_imbalance(&s) == 0.9);
    classes[0].n = 60, classes[1].n = 40;
    assert_true(qkv_survey_imbalance(&s) == 0);
}

/* ---- the same rows in every form ---- */

enum { ROWS = 48 };
static const char *const words[] = {"fine", "Splendid", "dull", "weak", "naïve", "über"};
static const char *const labels[] = {"quite good", "very bad 😀"};

/* Sorted by label, as a folder is. */
static const char *label_of(int i, bool bare) {
    return bare ? (i < ROWS / 2 ? "a" : "b") : labels[i >= ROWS / 2];
}

static void text_of(int i, char out[100]) {
    snprintf(out, 100, "the %s, \"%s\"; a | film; no. %d", words[i % 6], words[i * 5 % 6], i);
}

/* A field in quotes, quotes doubled. */
static void put_quoted(qkv_buf *b, const char *text, const char *quote) {
    qkv_buf_putc(b, '"');
    for (; *text; text++) {
        if (*text == '"')
            qkv_buf_puts(b, quote);
        else
            qkv_buf_putc(b, *text);
    }
    qkv_buf_putc(b, '"');
}

static const struct form {
    const char *name, *head, *tail, *line_end;
    char kind; /* t tsv, c csv, r csv with the label last, j json, f fasttext */
    char separator;
} forms[] = {
    {"a.tsv", "", "", "\n", 't', '\t'},
    {"b.tsv", "\xEF\xBB\xBF", "", "\r\n", 't', '\t'},
    {"c.tsv", "label\ttext\n", "", "\n", 't', '\t'},
    {"d.csv", "", "", "\n", 'c', ','},
    {"e.csv", "label;text\r\n", "", "\r\n", 'c', ';'},
    {"f.csv", "text|label\n", "", "\n", 'r', '|'},
    {"g.csv", "", "", "\n", 'r', ','},
    {"h.jsonl", "", "", "\n", 'j', 0},
    {"i.json", "[", "]", ",\n", 'j', 0},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

static void put_row(qkv_buf *b, const struct form *f, const char *label, const char *text) {
    if (f->kind == 't') {
        qkv_buf_printf(b, "%s\t%s", label, text);
    } else if (f->kind == 'f') {
        qkv_buf_printf(b, "__label__%s %s", label, text);
    } else if (f->kind == 'j') {
        qkv_buf_printf(b, "{\"text\": ");
        put_quoted(b, text, "\\\"");
        qkv_buf_puts(b, ", \"label\": ");
        put_quoted(b, label, "\\\"");
        qkv_buf_putc(b, '}');
    } else {
        put_quoted(b, f->kind == 'r' ? text : label, "\"\"");
        qkv_buf_putc(b, f->separator);
        put_quoted(b, f->kind == 'r' ? label : text, "\"\"");
    }
}

static void write_form(const char *path, const struct form *f, bool bare) {
    qkv_buf b = {0};
    qkv_buf_puts(&b, f->head);
    for (int i = 0; i < ROWS; i++) {
        char text[100];
        text_of(i, text);
        put_row(&b, f, label_of(i, bare), text);
        if (i + 1 < ROWS || !f->tail[0]) qkv_buf_puts(&b, f->line_end);
    }
    qkv_buf_puts(&b, f->tail);
    assert_int_equal(b.status, QKV_OK);
    put_file(path, b.data, b.len);
    qkv_buf_free(&b);
}

static void write_packed(const char *from, const char *to,
                         void (*pack)(const char *, size_t, qkv_buf *)) {
    qkv_file f;
    qkv_buf b = {0};
    assert_ok(qkv_file_open(from, SIZE_MAX / 2, &f));
    pack(f.data, f.size, &b);
    put_file(to, b.data, b.len);
    qkv_file_close(&f);
    qkv_buf_free(&b);
}

/* One folder per class; also what is not to be looked at. */
static void write_folder(const char *root) {
    char path[300], text[100];
    static const char *const others[] = {"/.hidden", "/unsup"};
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s%s", root, others[k]);
        assert_ok(qkv_folder_make(path));
        snprintf(path, sizeof path, "%s%s/1.txt", root, others[k]);
        put_file(path, "no class", 8);
    }
    for (int i = 0; i < ROWS; i++) {
        snprintf(path, sizeof path, "%s/%s", root, label_of(i, false));
        assert_ok(qkv_folder_make(path));
        snprintf(path, sizeof path, "%s/%s/%03d.txt", root, label_of(i, false), i);
        text_of(i, text);
        strcat(text, i % 2 ? "\n" : "\r\n\r\n");
        put_file(path, text, strlen(text));
        snprintf(path, sizeof path, "%s/%s/.DS_Store", root, label_of(i, false));
        put_file(path, "\xFF\0", 2);
    }
    snprintf(path, sizeof path, "%s/README", root);
    put_file(path, "no class either", 15);
}

/* Trains on it and holds the weights against those of the first. */
static void train_alike(const char *folder, const char *data, qkv_file *first) {
    static const char *const set[] = {
        "arch=transformer",  "d_model=16",       "layers=1", "heads=2",
        "d_ff=24",           "max_len=32",       "steps=2",  "vocab_size=200",
        "ngram_buckets=512", "batch_tokens=512", NULL};
    const char *const train[] = {data, NULL};
    char out[200];
    qkv_file weights;
    snprintf(out, sizeof out, "%s/model", folder);
    if (qkv_train(&(qkv_train_request){
            .task = "classify", .train = train, .out = out, .set = set, .overwrite = true}) !=
        QKV_OK)
        fail_msg("%s: %s", data, qkv_error());
    strcat(out, "/model.safetensors");
    assert_ok(qkv_file_open(out, SIZE_MAX / 2, &weights));
    if (!first->data) {
        first->data = test_malloc(weights.size);
        first->size = weights.size;
        memcpy((char *)(uintptr_t)first->data, weights.data, weights.size);
    } else if (weights.size != first->size || memcmp(weights.data, first->data, first->size) != 0) {
        fail_msg("%s: another model than from the first form", data);
    }
    qkv_file_close(&weights);
}

static void same_model(void **state) {
    (void)state;
    static const struct {
        const char *name;
        void (*pack)(const char *, size_t, qkv_buf *);
    } packers[] = {{"a.tsv.gz", gzip_bytes}, {"a.tsv.xz", xz_bytes}, {"a.tsv.zst", zstd_bytes}};
    static const struct form fasttext = {"x.txt", "", "", "\n", 'f', 0};
    char folder[64], path[200], tsv[200];
    qkv_file first = {0}, bare = {0};
    make_temporary(folder);
    for (int i = 0; i < N_FORMS; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, forms[i].name);
        write_form(path, &forms[i], false);
        train_alike(folder, path, &first);
    }
    snprintf(tsv, sizeof tsv, "%s/%s", folder, forms[0].name);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, packers[i].name);
        write_packed(tsv, path, packers[i].pack);
        train_alike(folder, path, &first);
    }
    snprintf(path, sizeof path, "%s/classes", folder);
    write_folder(path);
    train_alike(folder, path, &first);
    /* fastText's labels have no blanks */
    write_form(tsv, &forms[0], true);
    train_alike(folder, tsv, &bare);
    snprintf(path, sizeof path, "%s/%s", folder, fasttext.name);
    write_form(path, &fasttext, true);
    train_alike(folder, path, &bare);
    test_free((void *)(uintptr_t)first.data);
    test_free((void *)(uintptr_t)bare.data);
    remove_temporary(folder);
}

/* ---- names of columns as settings ---- */

/* A name may have blanks, of which none is lost; the next key=value is the next setting. */
static void names_with_blanks(void **state) {
    (void)state;
    qkv_train_config c;
    const qkv_settings s = qkv_train_settings(&c);
    qkv_settings_default(&s);
    assert_ok(qkv_settings_assign(&s, 1, " text=Review  Text epochs=2 label=a b\tc pair="));
    assert_string_equal(c.text, "Review  Text");
    assert_string_equal(c.label, "a b\tc");
    assert_string_equal(c.pair, "");
    assert_int_equal(c.epochs, 2);
    assert_fails(qkv_settings_assign(&s, 1, "epochs=2 3"), QKV_USAGE, "not of the form key=value");
    assert_fails(qkv_settings_assign(&s, 1, "Review text=x"), QKV_USAGE, "not of the form");
}

/* ---- folders that are none ---- */

static void wrong_folders(void **state) {
    (void)state;
    char folder[64], path[200];
    const char *list = folder;
    qkv_corpus c;
    qkv_corpus_spec spec = {.paths = &list, .n_paths = 1};
    make_temporary(folder);
    assert_fails(qkv_corpus_read(&c, &spec), QKV_BAD_FILE, "one folder per class");
    snprintf(path, sizeof path, "%s/1.txt", folder);
    put_file(path, "x", 1);
    assert_fails(qkv_corpus_read(&c, &spec), QKV_BAD_FILE, "one folder per class");
    snprintf(path, sizeof path, "%s/train/pos", folder);
    assert_ok(qkv_folder_make(path));
    assert_fails(qkv_corpus_read(&c, &spec), QKV_BAD_FILE, "give one of them");
    snprintf(path, sizeof path, "%s/neg", folder);
    assert_ok(qkv_folder_make(path));
    strcat(path, "/1.txt");
    put_file(path, "caf\xE9", 4);
    assert_fails(qkv_corpus_read(&c, &spec), QKV_BAD_FILE, "neg/1.txt, line 1: byte 0xE9");
    spec.shape = QKV_CORPUS_LINES;
    assert_fails(qkv_corpus_read(&c, &spec), QKV_USAGE, "give its files");
    remove_temporary(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),         cmocka_unit_test(without_memory),
        cmocka_unit_test(names_with_blanks), cmocka_unit_test(order_of_rows),
        cmocka_unit_test(labels_alike),      cmocka_unit_test(imbalance),
        cmocka_unit_test(wrong_folders),     cmocka_unit_test(same_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
