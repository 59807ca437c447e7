/* A tokenizer of whole words with blanks between them, from a list of those words. */
#include "text/reader.h"
#include "base/mem.h"
#include "base/utf8.h"

static const char *const specials[] = {"<blank>", "<unk>", "<s>", "</s>", "<pad>"};

static bool is_special(qkv_text w) {
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (qkv_text_is(w, specials[i])) return true;
    return false;
}

/* A tokenizer file holds UTF-8 and nothing else: malformed bytes become U+FFFD. */
static void put_word(const char *word, size_t len, qkv_buf *out) {
    for (size_t i = 0; i < len;) {
        int32_t cp;
        const size_t n = (size_t)qkv_utf8_decode(word + i, len - i, &cp);
        qkv_buf_add(out, cp < 0 ? "\xEF\xBF\xBD" : word + i, cp < 0 ? 3 : n);
        i += n;
    }
    qkv_buf_putc(out, '\n');
}

static void put_words(const char *list, size_t len, qkv_buf *out) {
    for (const char *at = list, *const end = list + len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        put_word(at, (size_t)(stop - at), out);
        at = stop + 1;
    }
}

typedef QKV_VEC(qkv_text) word_list;

static qkv_status cut_words(const qkv_buf *text, word_list *out) {
    for (const char *at = text->data, *const end = at + text->len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!QKV_PUSH(*out, ((qkv_text){at, (size_t)(stop - at)}))) return QKV_FAILED;
        at = stop + 1;
    }
    return QKV_OK;
}

static qkv_status build(qkv_tokenizer *tok, const word_list *words) {
    QKV_TRY(qkv_tokenizer_set_wordlevel(tok, words->at, words->n, "<unk>"));
    for (size_t i = 0; i < words->n; i++) {
        const qkv_text w = words->at[i];
        if (qkv_vocab_find(&tok->vocab, w.data, w.len) != (int32_t)i)
            return qkv_fail(QKV_BAD_FILE, "the vocabulary has \"%.*s\" twice",
                            (int)(w.len < 60 ? w.len : 60), w.data);
    }
    QKV_TRY(qkv_tokenizer_set_stage(tok, QKV_STAGE_PRETOKENIZER, "{\"type\":\"WhitespaceSplit\"}"));
    for (size_t i = 0; i < words->n; i++)
        if (is_special(words->at[i]))
            QKV_TRY(qkv_add_special(tok, words->at[i].data, words->at[i].len, (int32_t)i));
    return qkv_tokenizer_finish(tok);
}

qkv_status qkv_tokenizer_of_words(const char *list, size_t len, qkv_tokenizer **out) {
    qkv_buf text = {0};
    word_list words = {0};
    qkv_tokenizer *tok = NULL;
    put_words(list, len, &text);
    qkv_status status = text.status;
    if (status == QKV_OK) status = cut_words(&text, &words);
    if (status == QKV_OK) status = qkv_tokenizer_new(&tok);
    if (status == QKV_OK) status = build(tok, &words);
    qkv_free(words.at);
    qkv_buf_free(&text);
    if (status != QKV_OK)
        qkv_tokenizer_free(tok);
    else
        *out = tok;
    return status;
}
