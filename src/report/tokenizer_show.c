/* What a tokenizer is and how it does on a text, in words. */
#include "report/show.h"
#include "base/utf8.h"

enum { SHOWN = 24 }; /* bytes of a long token */

/* ---- table ---- */

static void put_steps(const char *title, const char *const *names, qkv_buf *out) {
    qkv_buf_printf(out, "%-15s", title);
    for (size_t i = 0; names[i]; i++) qkv_buf_printf(out, "%s%s", i ? " → " : "", names[i]);
    if (!names[0]) qkv_buf_puts(out, "none");
    qkv_buf_putc(out, '\n');
}

static void put_token(qkv_text t, qkv_buf *out) {
    const size_t len = t.len > SHOWN ? qkv_utf8_complete(t.data, SHOWN) : t.len;
    qkv_buf_printf(out, "  %.*s%s", (int)len, t.data, t.len > SHOWN ? "…" : "");
}

/* What encoding puts around a text, if anything. */
static void put_around(const qkv_tokenizer_facts *f, qkv_buf *out) {
    if (!f->n_around) return;
    qkv_buf_puts(out, "template      ");
    for (size_t i = 0; i < f->n_around; i++) {
        const qkv_text t = f->around[i].text;
        if (f->around[i].id < 0)
            qkv_buf_puts(out, " (text)");
        else if (t.data)
            qkv_buf_printf(out, " %.*s", (int)t.len, t.data);
    }
    qkv_buf_putc(out, '\n');
}

static void put_special(const qkv_tokenizer_facts *f, qkv_buf *out) {
    qkv_buf_puts(out, "special      ");
    for (size_t i = 0; i < f->n_special; i++) {
        const qkv_token *t = &f->special[i];
        if (t->text.data)
            qkv_buf_printf(out, "  %s %.*s (%d)", t->role, (int)t->text.len, t->text.data, t->id);
    }
    qkv_buf_putc(out, '\n');
}

static void put_counts(const qkv_tokenizer_facts *f, qkv_buf *out) {
    const double unknown = f->tokens ? (double)f->unknown / (double)f->tokens : 0;
    qkv_buf_printf(out, "text           %llu lines, %llu bytes, %llu words, %llu tokens\n",
                   (unsigned long long)f->lines, (unsigned long long)f->bytes,
                   (unsigned long long)f->words, (unsigned long long)f->tokens);
    qkv_buf_printf(
        out, "               %.3f tokens per word, %.3f bytes per token, %llu unknown (%.4f %%)\n",
        f->tokens_per_word, f->bytes_per_token, (unsigned long long)f->unknown, 100 * unknown);
}

static void table(const void *result, qkv_buf *out) {
    const qkv_tokenizer_facts *f = result;
    qkv_buf_printf(out, "model          %s, %zu ids (%zu added tokens)\n", f->model, f->size,
                   f->added);
    put_steps("normalizer", f->normalizer, out);
    put_steps("pre-tokenizer", f->pretokenizer, out);
    put_steps("decoder", f->decoder, out);
    put_around(f, out);
    put_special(f, out);
    qkv_buf_puts(out, "longest      ");
    for (size_t i = 0; i < f->n_longest; i++) put_token(f->longest[i].text, out);
    qkv_buf_putc(out, '\n');
    if (f->lines) put_counts(f, out);
}

/* ---- JSON ---- */

static void members(const void *result, qkv_json_out *j) {
    const qkv_tokenizer_facts *f = result;
    qkv_put_text(j, "model", f->model);
    qkv_put_count(j, "size", (int64_t)f->size);
    qkv_put_count(j, "added", (int64_t)f->added);
    qkv_json_put_key(j, "special");
    qkv_json_open(j, '{');
    for (size_t i = 0; i < f->n_special; i++)
        qkv_put_count(j, f->special[i].role, f->special[i].id);
    qkv_json_close(j, '}');
    qkv_json_put_key(j, "longest");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < f->n_longest; i++)
        qkv_json_put_string(j, f->longest[i].text.data, f->longest[i].text.len);
    qkv_json_close(j, ']');
    if (!f->lines) return;
    qkv_put_count(j, "lines", (int64_t)f->lines);
    qkv_put_count(j, "bytes", (int64_t)f->bytes);
    qkv_put_count(j, "words", (int64_t)f->words);
    qkv_put_count(j, "tokens", (int64_t)f->tokens);
    qkv_put_count(j, "unknown", (int64_t)f->unknown);
    qkv_put_real(j, "tokens_per_word", f->tokens_per_word, 6);
    qkv_put_real(j, "bytes_per_token", f->bytes_per_token, 6);
}

qkv_status qkv_tokenizer_facts_show(const qkv_tokenizer_facts *f, qkv_show how, char **text) {
    return qkv_show_result(f, &(qkv_wording){table, members}, how, text);
}
