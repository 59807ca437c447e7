/* Why answers were given, as one page: explain_page.html with the words and what they add written
 * into it. Places become numbers of words, which a script that counts no bytes can use. */
#include "base/json.h"
#include "draw/explain_page.h"
#include "draw/page_fill.h"

extern const char qkv_explain_page[]; /* made from explain_page.html when building */

static void put(qkv_json_out *j, const char *key, const qkv_explanation *e, size_t begin,
                size_t end) {
    qkv_json_put_key(j, key);
    qkv_json_put_string(j, e->text.data + begin, end - begin);
}

static void put_number(qkv_json_out *j, const char *key, double value) {
    qkv_json_put_key(j, key);
    qkv_json_put_real(j, value, 6);
}

static void put_label(qkv_json_out *j, const char *key, const char *label) {
    qkv_json_put_key(j, key);
    if (label)
        qkv_json_put_text(j, label);
    else
        qkv_json_put_null(j);
}

/* The text between words, which alternate with it, and what they weigh. */
static void put_words(qkv_json_out *j, const qkv_explanation *e) {
    size_t at = 0;
    qkv_json_put_key(j, "words");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < e->n; i++) {
        const qkv_explain_word *w = &e->words[i];
        qkv_json_open(j, '{');
        if (w->begin > at) put(j, "gap", e, at, w->begin);
        put(j, "text", e, w->begin, w->end);
        put_number(j, "weight", w->weight);
        if (e->votes) put_number(j, "ngrams", w->ngrams);
        qkv_json_close(j, '}');
        at = w->end;
    }
    qkv_json_close(j, ']');
    put(j, "tail", e, at, e->text.len);
}

/* The first word that ends behind byte `at`. */
static size_t word_at(const qkv_explanation *e, uint32_t at) {
    size_t low = 0, high = e->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (e->words[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void put_ngrams(qkv_json_out *j, const qkv_explanation *e) {
    qkv_json_put_key(j, "ngrams");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < e->n_ngrams; i++) {
        const qkv_explain_ngram *g = &e->ngrams[i];
        qkv_json_open(j, '{');
        put(j, "text", e, g->begin, g->end);
        put_number(j, "weight", g->weight);
        put_number(j, "places", g->places);
        put_number(j, "from", (double)word_at(e, g->begin));
        put_number(j, "to", (double)word_at(e, g->end - 1));
        const struct {
            const char *key;
            bool is;
        } flags[] = {{"characters", g->characters}, {"begins", g->begins}, {"ends", g->ends}};
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
            qkv_json_put_key(j, flags[k].key);
            qkv_json_put_bool(j, flags[k].is);
        }
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
}

static void put_one(qkv_json_out *j, const qkv_explanation *e) {
    qkv_json_open(j, '{');
    put_label(j, "label", e->label);
    put_label(j, "against", e->against);
    put_number(j, "probability", e->probability);
    put_number(j, "lead", e->lead);
    put_number(j, "rest", e->rest);
    put_number(j, "start", e->start);
    put_number(j, "most", qkv_explain_largest(e));
    qkv_json_put_key(j, "exact");
    qkv_json_put_bool(j, e->passes > 0);
    if (e->begin > 0 || e->end < e->text.len) {
        put(j, "about", e, e->begin, e->end);
        put_number(j, "word", (double)word_at(e, e->begin));
    }
    put_words(j, e);
    put_ngrams(j, e);
    qkv_json_close(j, '}');
}

qkv_status qkv_explain_html(const qkv_explanation *at, size_t n, qkv_buf *out) {
    qkv_buf json = {0};
    qkv_json_out j = qkv_json_begin(&json, 0);
    qkv_json_open(&j, '[');
    for (size_t i = 0; i < n; i++) put_one(&j, &at[i]);
    qkv_json_close(&j, ']');
    return qkv_page_fill(qkv_explain_page, &json, out);
}
