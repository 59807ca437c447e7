/* Opening a tokenizer: which kind of file it is follows from its content,
 * and so does what it is when it is none. */
#include "text/reader.h"
#include "base/sys.h"
#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define FILE_MAX (256u << 20)

static bool begins(const char *data, size_t n, const char *with) {
    return n >= strlen(with) && !memcmp(data, with, strlen(with));
}

/* Things that people hand over by mistake; letters may be small or capital. */
static const struct {
    const char *begins, *is;
} wrong[] = {
    {"version https://git-lfs", "a Git LFS pointer, not the file itself: run `git lfs pull`"},
    {"<!DOCTYPE", "an HTML page, not a tokenizer: the download was answered by a web page"},
    {"<html", "an HTML page, not a tokenizer: the download was answered by a web page"},
    {"<?xml", "an XML document (often a server's error message), not a tokenizer"},
    {"PK\x03\x04", "a ZIP archive: unpack it first"},
    {"\x1F\x8B", "a gzip file: unpack it first"},
    {"\xFD"
     "7zXZ",
     "an xz file: unpack it first"},
    {"\x28\xB5\x2F\xFD", "a zstd file: unpack it first"},
    {"\x80\x02",
     "a Python pickle, which is never read: save the tokenizer as tokenizer.json instead"},
    {"\x80\x04",
     "a Python pickle, which is never read: save the tokenizer as tokenizer.json instead"},
    {"\x80\x05",
     "a Python pickle, which is never read: save the tokenizer as tokenizer.json instead"},
    {"\x7F"
     "ELF",
     "a program, not a tokenizer"},
    {"\x89PNG", "a picture, not a tokenizer"},
};

/* "base64 digits" on the first line. */
static bool looks_like_ranks(const char *data, size_t n) {
    size_t i = 0;
    while (i < n && i < 4096 && data[i] != ' ' && data[i] != '\n') i++;
    if (i == 0 || i % 4 || i + 1 >= n || data[i] != ' ') return false;
    for (i++; i < n && data[i] != '\n' && data[i] != '\r'; i++)
        if (data[i] < '0' || data[i] > '9') return false;
    return true;
}

/* A protobuf whose first field is a piece: 0A, a length, 0A again. */
static bool looks_like_sentencepiece(const char *data, size_t n) {
    return n > 4 && data[0] == 0x0A &&
           (data[2] == 0x0A || ((uint8_t)data[1] >= 0x80 && data[3] == 0x0A)) &&
           memchr(data, 0, n < 4096 ? n : 4096);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Refuses what is plainly something else by its name; else says where the text begins. */
static qkv_status check_beginning(const char *name, const char *data, size_t n, size_t *begin) {
    size_t i = begins(data, n, "\xEF\xBB\xBF") ? 3 : 0;
    while (i < n && is_blank(data[i])) i++;
    if (i == n) return qkv_fail(QKV_BAD_FILE, "%s: an empty file: the download failed?", name);
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        const size_t len = strlen(wrong[w].begins);
        if (n - i >= len && !strncasecmp(data + i, wrong[w].begins, len))
            return qkv_fail(QKV_BAD_FILE, "%s: %s", name, wrong[w].is);
    }
    *begin = i;
    return QKV_OK;
}

/* The status of a reader; if it refused a text that lacks its usual end as well,
 * the message says so. */
static qkv_status check_end(qkv_status status, const char *data, size_t n, char end) {
    if (status != QKV_BAD_FILE) return status;
    while (n && end != '\n' && is_blank(data[n - 1])) n--;
    if (n && data[n - 1] == end) return status;
    return qkv_fail(status, "%s; the file stops in the middle: a truncated download?", qkv_error());
}

static qkv_status read_any(qkv_tokenizer *tok, const char *name, const char *data, size_t n) {
    size_t begin;
    if (begins(data, n, "GGUF")) return qkv_read_gguf(tok, name, data, n);
    if (looks_like_sentencepiece(data, n)) return qkv_read_sentencepiece(tok, name, data, n);
    if (qkv_is_llama2c_tokenizer(data, n)) return qkv_read_llama2c(tok, name, data, n);
    QKV_TRY(check_beginning(name, data, n, &begin));
    if (data[begin] == '{')
        return check_end(qkv_read_tokenizer_json(tok, name, data, n), data, n, '}');
    if (looks_like_ranks(data, n))
        return check_end(qkv_read_tiktoken(tok, name, data, n), data, n, '\n');
    return qkv_read_vocab_txt(tok, name, data, n);
}

qkv_status qkv_tokenizer_parse(const char *name, const char *data, size_t n, qkv_tokenizer **out) {
    qkv_tokenizer *tok;
    QKV_TRY(qkv_tokenizer_new(&tok));
    const qkv_status status = read_any(tok, name, data, n);
    if (status != QKV_OK)
        qkv_tokenizer_free(tok);
    else
        *out = tok;
    return status;
}

static qkv_status read_pair(qkv_tokenizer *tok, const char *vocab, const qkv_file *v,
                            const char *merges, const qkv_file *m) {
    size_t begin;
    QKV_TRY(check_beginning(vocab, v->data, v->size, &begin));
    QKV_TRY(check_beginning(merges, m->data, m->size, &begin));
    const qkv_status status = qkv_read_vocab_json(tok, vocab, v->data, v->size, m->data, m->size);
    return check_end(check_end(status, v->data, v->size, '}'), m->data, m->size, '\n');
}

static qkv_status open_pair(const char *vocab, const char *merges, qkv_tokenizer **out) {
    qkv_file v, m;
    qkv_tokenizer *tok = NULL;
    QKV_TRY(qkv_file_open(vocab, FILE_MAX, &v));
    qkv_status status = qkv_file_open(merges, FILE_MAX, &m);
    if (status == QKV_OK) {
        status = qkv_tokenizer_new(&tok);
        if (status == QKV_OK) status = read_pair(tok, vocab, &v, merges, &m);
        qkv_file_close(&m);
    }
    qkv_file_close(&v);
    if (status != QKV_OK)
        qkv_tokenizer_free(tok);
    else
        *out = tok;
    return status;
}

/* A GGUF file may be a whole model: it is mapped and only its header touched, so its size does not
 * matter. What is no regular file is read to its end, and must be small. */
static qkv_status open_file(const char *path, qkv_tokenizer **out) {
    qkv_file file;
    struct stat info;
    const bool regular = !qkv_sys.stat(path, &info) && S_ISREG(info.st_mode);
    QKV_TRY(qkv_file_open(path, regular ? SIZE_MAX : FILE_MAX, &file));
    qkv_status status = QKV_OK;
    if (file.size > FILE_MAX && !begins(file.data, file.size, "GGUF"))
        status = qkv_fail(QKV_BAD_FILE, "%s: %zu bytes: tokenizers are read up to %u", path,
                          file.size, FILE_MAX);
    if (status == QKV_OK) status = qkv_tokenizer_parse(path, file.data, file.size, out);
    qkv_file_close(&file);
    return status;
}

/* The files of a model folder, in the order in which they are preferred. */
static const char *const names[] = {"tokenizer.json", "tokenizer.model", "spiece.model",
                                    "sentencepiece.bpe.model", "vocab.txt"};

static qkv_status open_folder(const char *path, qkv_tokenizer **out) {
    qkv_buf file = {0}, merges = {0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        qkv_buf_clear(&file);
        if ((status = qkv_path_join(&file, path, names[i])) != QKV_OK) break;
        if (!qkv_file_exists(file.data)) continue;
        status = open_file(file.data, out);
        qkv_buf_free(&file);
        return status;
    }
    qkv_buf_clear(&file);
    if (status == QKV_OK) status = qkv_path_join(&file, path, "vocab.json");
    if (status == QKV_OK) status = qkv_path_join(&merges, path, "merges.txt");
    if (status == QKV_OK) {
        if (qkv_file_exists(file.data) && qkv_file_exists(merges.data))
            status = open_pair(file.data, merges.data, out);
        else
            status = qkv_fail(
                QKV_FAILED,
                "%s: no tokenizer in this folder (looked for tokenizer.json, tokenizer.model, "
                "spiece.model, vocab.txt, vocab.json with merges.txt)",
                path);
    }
    qkv_buf_free(&file);
    qkv_buf_free(&merges);
    return status;
}

qkv_status qkv_tokenizer_open(const char *path, qkv_tokenizer **out) {
    struct stat info;
    if (qkv_sys.stat(path, &info)) return qkv_fail(QKV_FAILED, "%s: %s", path, strerror(errno));
    return S_ISDIR(info.st_mode) ? open_folder(path, out) : open_file(path, out);
}
