/* Joining two lists of words; see import_vocab.h. The source's words are sorted once and each word
 * of the target is looked for among them. */
#include "model/import_vocab.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

typedef struct word {
    qkv_text text;
    int32_t row;
} word;

typedef QKV_VEC(word) word_list;

static const char unknown[] = "<unk>";

static int by_text(const void *a, const void *b) {
    const word *x = a, *y = b;
    const size_t n = x->text.len < y->text.len ? x->text.len : y->text.len;
    const int order = memcmp(x->text.data, y->text.data, n);
    if (order) return order;
    return x->text.len < y->text.len ? -1 : x->text.len > y->text.len;
}

/* The words of a file; a table with one row more has an unknown word that the file
 * does not list. */
static qkv_status read_words(qkv_text file, int64_t rows, const char *side, word_list *out) {
    const char *at = file.data, *const end = file.data + file.len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        qkv_text text = {at, (size_t)((stop ? stop : end) - at)};
        at += text.len + 1;
        if (text.len && text.data[text.len - 1] == '\r') text.len--;
        const int32_t row = (int32_t)out->n;
        if (!QKV_PUSH(*out, ((word){text, row}))) return QKV_FAILED;
        if ((int64_t)out->n > rows) break;
    }
    const word extra = {{unknown, sizeof unknown - 1}, (int32_t)out->n};
    if ((int64_t)out->n == rows - 1 && !QKV_PUSH(*out, extra)) return QKV_FAILED;
    if ((int64_t)out->n == rows) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE, "the %s vocabulary does not have the %lld words of the model",
                    side, (long long)rows);
}

/* Sorted copy in which equal words stand together; a word twice in one list would have two ids. */
static qkv_status sorted(const word_list *words, const char *side, word **out) {
    QKV_TRY_ALLOC(*out = qkv_alloc((words->n + 1) * sizeof **out));
    if (words->n) memcpy(*out, words->at, words->n * sizeof **out);
    qsort(*out, words->n, sizeof **out, by_text);
    for (size_t i = 1; i < words->n; i++)
        if (by_text(*out + i - 1, *out + i) == 0)
            return qkv_fail(QKV_BAD_FILE, "the %s vocabulary has \"%.*s\" twice", side,
                            (int)((*out)[i].text.len < 60 ? (*out)[i].text.len : 60),
                            (*out)[i].text.data);
    return QKV_OK;
}

static void put_word(qkv_joint_vocab *v, qkv_buf *words, qkv_text text, int32_t source,
                     int32_t target) {
    v->source_row[v->n] = source;
    v->target_row[v->n] = target;
    v->n++;
    qkv_buf_add(words, text.data, text.len);
    qkv_buf_putc(words, '\n');
}

static qkv_status join(qkv_joint_vocab *v, const word_list *source, const word_list *target,
                       qkv_buf *words) {
    word *by_source = NULL, *by_target = NULL;
    qkv_status status = sorted(source, "source", &by_source);
    if (status == QKV_OK) status = sorted(target, "target", &by_target);
    for (size_t i = 0; status == QKV_OK && i < source->n; i++) {
        const word *same =
            bsearch(&source->at[i], by_target, target->n, sizeof *by_target, by_text);
        put_word(v, words, source->at[i].text, (int32_t)i, same ? same->row : -1);
    }
    for (size_t i = 0; status == QKV_OK && i < target->n; i++)
        if (!bsearch(&target->at[i], by_source, source->n, sizeof *by_source, by_text))
            put_word(v, words, target->at[i].text, -1, (int32_t)i);
    qkv_free(by_source);
    qkv_free(by_target);
    return status;
}

qkv_status qkv_joint_vocab_make(qkv_joint_vocab *v, qkv_text source, int64_t source_rows,
                                const qkv_text *target, int64_t target_rows, qkv_buf *words) {
    word_list s = {0}, t = {0};
    *v = (qkv_joint_vocab){0};
    qkv_status status = read_words(source, source_rows, "source", &s);
    if (status == QKV_OK) status = read_words(target ? *target : source, target_rows, "target", &t);
    if (status == QKV_OK) {
        v->source_row = qkv_alloc((s.n + t.n) * sizeof *v->source_row);
        v->target_row = qkv_alloc((s.n + t.n) * sizeof *v->target_row);
        status = v->source_row && v->target_row ? join(v, &s, &t, words) : QKV_FAILED;
    }
    if (status == QKV_OK) status = words->status;
    if (status != QKV_OK) qkv_joint_vocab_free(v);
    qkv_free(s.at);
    qkv_free(t.at);
    return status;
}

void qkv_joint_vocab_free(qkv_joint_vocab *v) {
    qkv_free(v->source_row);
    qkv_free(v->target_row);
    *v = (qkv_joint_vocab){0};
}
