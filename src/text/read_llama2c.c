/* llama2.c's tokenizer.bin: the longest piece's length, then for each piece its score, its length
 * and its bytes. It is a SentencePiece vocabulary with ▁ written as a blank, and <s>, </s> between
 * line ends. There is no magic number: a file is one when its pieces fill it to the last byte. */
#include "text/reader.h"
#include "base/mem.h"

#include <string.h>

#define PIECE_HEAD 8 /* bytes of score and length */

typedef struct piece {
    float score;
    qkv_text text;
} piece;

/* The next piece; false where the file is not of this form. */
static bool next_piece(const char **at, const char *end, uint32_t longest, piece *out) {
    uint32_t len;
    if (end - *at < PIECE_HEAD) return false;
    memcpy(&out->score, *at, 4);
    memcpy(&len, *at + 4, 4);
    *at += PIECE_HEAD;
    if (len > longest || len > (size_t)(end - *at)) return false;
    out->text = (qkv_text){*at, len};
    *at += len;
    return true;
}

static bool longest_of(const char *data, size_t n, uint32_t *out) {
    if (n < 4) return false;
    memcpy(out, data, 4);
    return *out > 0 && *out < QKV_TOKEN_MAX;
}

bool qkv_is_llama2c_tokenizer(const char *data, size_t n) {
    uint32_t longest;
    if (!longest_of(data, n, &longest)) return false;
    size_t pieces = 0;
    piece p;
    for (const char *at = data + 4; at < data + n; pieces++)
        if (!next_piece(&at, data + n, longest, &p)) return false;
    return pieces > 0 && pieces <= QKV_VOCAB_MAX;
}

/* Appends the piece as SentencePiece spells it. */
static void put_spelled(qkv_buf *to, qkv_text text) {
    if (text.len > 2 && text.data[0] == '\n' && text.data[text.len - 1] == '\n') {
        qkv_buf_add(to, text.data + 1, text.len - 2); /* <s>, </s> */
        return;
    }
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == ' ')
            qkv_buf_puts(to, "\xE2\x96\x81");
        else
            qkv_buf_putc(to, text.data[i]);
}

static bool is_byte(qkv_text t) {
    return t.len == 6 && !memcmp(t.data, "<0x", 3) && t.data[5] == '>';
}

/* Fills the arrays of `out`, whose texts will lie in `bytes`. */
static qkv_status read_pieces(const char *data, size_t n, qkv_pieces *out, qkv_buf *bytes,
                              size_t *ends) {
    uint32_t longest = 0;
    longest_of(data, n, &longest);
    piece p;
    qkv_buf_extend(bytes, 0); /* a place even for pieces that are all empty */
    size_t i = 0;
    for (const char *at = data + 4; at < data + n; i++) {
        if (!next_piece(&at, data + n, longest, &p)) break;
        put_spelled(bytes, p.text);
        ends[i] = bytes->len;
        out->score[i] = p.score;
    }
    if (bytes->status != QKV_OK) return bytes->status;
    out->n = i;
    for (i = 0; i < out->n; i++) {
        const size_t from = i ? ends[i - 1] : 0;
        out->text[i] = (qkv_text){bytes->data + from, ends[i] - from};
        out->type[i] = is_byte(out->text[i]) ? QKV_PIECE_BYTE : QKV_PIECE_NORMAL;
        out->byte_fallback = out->byte_fallback || out->type[i] == QKV_PIECE_BYTE;
    }
    return QKV_OK;
}

/* The first three ids are <unk>, <s> and </s> in every file that llama2.c writes. */
static qkv_status name_specials(qkv_pieces *p) {
    static const char *const names[] = {"<unk>", "<s>", "</s>"};
    for (size_t i = 0; i < 3; i++) {
        if (p->n <= i || p->text[i].len != strlen(names[i]) ||
            memcmp(p->text[i].data, names[i], p->text[i].len))
            return qkv_fail(QKV_BAD_FILE, "piece %zu of a llama2.c tokenizer should be %s", i,
                            names[i]);
        p->type[i] = i ? QKV_PIECE_CONTROL : QKV_PIECE_UNKNOWN;
    }
    p->unk = 0;
    p->bos = 1;
    p->eos = 2;
    p->pad = -1;
    return QKV_OK;
}

qkv_status qkv_read_llama2c(qkv_tokenizer *tok, const char *name, const char *data, size_t n) {
    const size_t most = n / PIECE_HEAD + 1;
    qkv_buf bytes = {0};
    qkv_pieces p = {.add_dummy_prefix = true, .escape_whitespaces = true, .add_bos = true};
    p.text = qkv_alloc(most * sizeof *p.text);
    p.score = qkv_alloc(most * sizeof *p.score);
    p.type = qkv_alloc(most * sizeof *p.type);
    size_t *ends = qkv_alloc(most * sizeof *ends);
    qkv_status status =
        p.text && p.score && p.type && ends ? read_pieces(data, n, &p, &bytes, ends) : QKV_FAILED;
    if (status == QKV_OK) status = name_specials(&p);
    if (status == QKV_OK) status = qkv_pieces_build(tok, &p);
    qkv_free(p.text);
    qkv_free(p.score);
    qkv_free(p.type);
    qkv_free(ends);
    qkv_buf_free(&bytes);
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "%s", name);
}
