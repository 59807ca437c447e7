/* Attention weights as text, picture, page or JSON. */
#include "base/json.h"
#include "draw/attention_page.h"

static void put_names(qkv_json_out *j, const char *key, const char *const *names, int32_t n) {
    qkv_json_put_key(j, key);
    qkv_json_open(j, '[');
    for (int32_t i = 0; i < n; i++) qkv_json_put_text(j, names[i]);
    qkv_json_close(j, ']');
}

static void put_head(qkv_json_out *j, const qkv_attention_part *p, int32_t layer, int32_t head) {
    const qkv_head_statistics s = qkv_attention_head(p, layer, head);
    const size_t cells = (size_t)p->queries * (size_t)p->keys;
    const float *w = p->weights + ((size_t)layer * (size_t)p->heads + (size_t)head) * cells;
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "layer");
    qkv_json_put_int(j, layer + 1);
    qkv_json_put_key(j, "head");
    qkv_json_put_int(j, head + 1);
    qkv_json_put_key(j, "entropy");
    qkv_json_put_real(j, s.entropy, 5);
    qkv_json_put_key(j, "distance");
    qkv_json_put_real(j, s.distance, 5);
    qkv_json_put_key(j, "peak");
    qkv_json_put_real(j, s.peak, 5);
    qkv_json_put_key(j, "says");
    qkv_json_put_real(j, s.says, 5);
    qkv_json_put_key(j, "weights");
    qkv_json_open(j, '[');
    for (int32_t q = 0; q < p->queries; q++) {
        qkv_json_open(j, '[');
        for (int32_t k = 0; k < p->keys; k++) qkv_json_put_real(j, (double)*w++, 6);
        qkv_json_close(j, ']');
    }
    qkv_json_close(j, ']');
    qkv_json_close(j, '}');
}

static qkv_status write_json(const qkv_attention_parts *a, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "title");
    qkv_json_put_text(&j, a->title);
    qkv_json_put_key(&j, "subtitle");
    qkv_json_put_text(&j, a->subtitle);
    qkv_json_put_key(&j, "parts");
    qkv_json_open(&j, '[');
    for (size_t i = 0; i < a->n; i++) {
        const qkv_attention_part *p = &a->at[i];
        qkv_json_open(&j, '{');
        qkv_json_put_key(&j, "name");
        qkv_json_put_text(&j, p->name);
        put_names(&j, "queries", p->query_names, p->queries);
        put_names(&j, "keys", p->key_names, p->keys);
        qkv_json_put_key(&j, "heads");
        qkv_json_open(&j, '[');
        for (int32_t l = 0; l < p->layers; l++)
            for (int32_t h = 0; h < p->heads; h++) put_head(&j, p, l, h);
        qkv_json_close(&j, ']');
        qkv_json_close(&j, '}');
    }
    qkv_json_close(&j, ']');
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
    return out->status;
}

qkv_status qkv_attention_show(const qkv_attention_parts *a, const qkv_attention_style *style,
                              char **text) {
    const qkv_attention_picture picture = {
        .title = a->title, .subtitle = a->subtitle, .parts = a->at, .n = a->n};
    qkv_buf out = {0};
    qkv_status status = QKV_OK;
    switch (style->how) {
    case QKV_SHOW_TABLE:
        status = qkv_attention_terminal(
            &picture, (qkv_ink){.colour = style->colour, .columns = style->columns}, &out);
        break;
    case QKV_SHOW_JSON:
        status = write_json(a, &out);
        break;
    case QKV_SHOW_SVG:
        status = qkv_attention_svg(&picture, &out);
        break;
    case QKV_SHOW_HTML:
        status = qkv_attention_html(&picture, &out);
        break;
    }
    if (status != QKV_OK) qkv_buf_free(&out);
    *text = out.data;
    return status;
}
