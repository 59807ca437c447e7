/* Why an answer was given, as text, JSON or page. */
#include "draw/explain_page.h"
#include "report/show.h"

static void put_place(const qkv_explanation *e, uint32_t begin, uint32_t end, qkv_json_out *j) {
    qkv_json_put_key(j, "text");
    qkv_json_put_string(j, e->text.data + begin, end - begin);
    qkv_put_count(j, "begin", begin);
    qkv_put_count(j, "end", end);
}

static void put_words(const qkv_explanation *e, qkv_json_out *j) {
    qkv_json_put_key(j, "words");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < e->n; i++) {
        const qkv_explain_word *w = &e->words[i];
        qkv_json_open(j, '{');
        put_place(e, w->begin, w->end, j);
        qkv_put_real(j, "weight", w->weight, 9);
        if (e->votes) qkv_put_real(j, "ngrams", w->ngrams, 9);
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
}

static void put_ngrams(const qkv_explanation *e, qkv_json_out *j) {
    qkv_json_put_key(j, "ngrams");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < e->n_ngrams; i++) {
        const qkv_explain_ngram *g = &e->ngrams[i];
        qkv_json_open(j, '{');
        put_place(e, g->begin, g->end, j);
        qkv_put_real(j, "weight", g->weight, 9);
        qkv_put_text(j, "of", g->characters ? "characters" : "tokens");
        qkv_put_count(j, "places", g->places);
        qkv_json_put_key(j, "begins");
        qkv_json_put_bool(j, g->begins);
        qkv_json_put_key(j, "ends");
        qkv_json_put_bool(j, g->ends);
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
}

/* An object a line; of a part of a text (a tagger's word) with its place. */
static void put_line(const qkv_explanation *e, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    if (e->begin > 0 || e->end < e->text.len) put_place(e, e->begin, e->end, &j);
    if (e->label) {
        qkv_put_text(&j, "label", e->label);
        qkv_put_real(&j, "probability", e->probability, 6);
    } else {
        qkv_put_real(&j, "number", e->lead, 7);
    }
    if (e->against) qkv_put_text(&j, "against", e->against);
    qkv_put_real(&j, "lead", e->lead, 9);
    put_words(e, &j);
    qkv_put_real(&j, "rest", e->rest, 9);
    qkv_put_real(&j, "start", e->start, 9);
    if (e->votes) put_ngrams(e, &j);
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

qkv_status qkv_explanations_show(const qkv_explanation *at, size_t n,
                                 const qkv_explain_style *style, char **text) {
    const qkv_ink ink = {.colour = style->colour, .columns = style->columns};
    qkv_buf out = {0};
    qkv_status status = QKV_OK;
    *text = NULL;
    qkv_buf_puts(&out, "");
    switch (style->how) {
    case QKV_SHOW_TABLE:
        for (size_t i = 0; i < n && status == QKV_OK; i++) {
            if (i) qkv_buf_putc(&out, '\n');
            status = qkv_explain_terminal(&at[i], ink, &out);
        }
        break;
    case QKV_SHOW_JSON:
        for (size_t i = 0; i < n; i++) put_line(&at[i], &out);
        break;
    case QKV_SHOW_HTML:
        status = qkv_explain_html(at, n, &out);
        break;
    case QKV_SHOW_SVG:
        status =
            qkv_fail(QKV_USAGE, "explanations are shown as text, JSON or a page, not as a picture");
        break;
    }
    return qkv_show_end(status, &out, text);
}
