/* Attention as one page: attention_page.html with the weights written into it,
 * as 16-bit numbers in base64. */
#include "draw/attention_page.h"
#include "base/json.h"
#include "draw/page_fill.h"

#include <math.h>

extern const char qkv_attention_page[]; /* made from attention_page.html when building */

static void put_base64(const float *weights, size_t n, qkv_buf *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    int held = 0;
    for (size_t i = 0; i < 2 * n; i++) {
        const double w = fmin(fmax((double)weights[i / 2], 0), 1);
        const unsigned value = isfinite(w) ? (unsigned)lround(w * 65535) : 0;
        bits = bits << 8 | (i % 2 ? value >> 8 : value & 255); /* the low byte first */
        for (held += 8; held >= 6; held -= 6) qkv_buf_putc(out, digits[bits >> (held - 6) & 63]);
    }
    if (held) qkv_buf_putc(out, digits[bits << (6 - held) & 63]);
    for (size_t i = 2 * n; i % 3; i++) qkv_buf_putc(out, '=');
}

static void put_names(qkv_json_out *j, const char *key, const char *const *names, int32_t n) {
    qkv_json_put_key(j, key);
    qkv_json_open(j, '[');
    for (int32_t i = 0; i < n; i++) qkv_json_put_text(j, names[i]);
    qkv_json_close(j, ']');
}

/* What each head says, and which one says most. */
static void put_says(qkv_json_out *j, const qkv_attention_part *p) {
    int32_t layer = 0, head = 0;
    qkv_attention_most(p, &layer, &head);
    qkv_json_put_key(j, "first");
    qkv_json_open(j, '[');
    qkv_json_put_int(j, layer);
    qkv_json_put_int(j, head);
    qkv_json_close(j, ']');
    qkv_json_put_key(j, "says");
    qkv_json_open(j, '[');
    for (int32_t l = 0; l < p->layers; l++)
        for (int32_t h = 0; h < p->heads; h++)
            qkv_json_put_real(j, qkv_attention_head(p, l, h).says, 4);
    qkv_json_close(j, ']');
}

static void put_part(qkv_json_out *j, const qkv_attention_part *p) {
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "title");
    qkv_json_put_text(j, p->title);
    qkv_json_put_key(j, "self");
    qkv_json_put_bool(j, p->self);
    qkv_json_put_key(j, "layers");
    qkv_json_put_int(j, p->layers);
    qkv_json_put_key(j, "heads");
    qkv_json_put_int(j, p->heads);
    put_says(j, p);
    put_names(j, "queries", p->query_names, p->queries);
    put_names(j, "keys", p->key_names, p->keys);
    qkv_buf weights = {0};
    qkv_buf_putc(&weights, '"');
    put_base64(p->weights,
               (size_t)p->layers * (size_t)p->heads * (size_t)p->queries * (size_t)p->keys,
               &weights);
    qkv_buf_putc(&weights, '"');
    if (weights.status != QKV_OK) j->buf->status = weights.status;
    qkv_json_put_key(j, "weights");
    if (weights.status == QKV_OK) qkv_json_put_raw(j, weights.data);
    qkv_buf_free(&weights);
    qkv_json_close(j, '}');
}

qkv_status qkv_attention_html(const qkv_attention_picture *p, qkv_buf *out) {
    qkv_buf json = {0};
    qkv_json_out j = qkv_json_begin(&json, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "title");
    qkv_json_put_text(&j, p->title);
    qkv_json_put_key(&j, "subtitle");
    qkv_json_put_text(&j, p->subtitle);
    qkv_json_put_key(
        &j, "first"); /* the last part tells most: of a translator, what was read for each word */
    qkv_json_put_int(&j, (int64_t)p->n - 1);
    qkv_json_put_key(&j, "parts");
    qkv_json_open(&j, '[');
    for (size_t i = 0; i < p->n; i++) put_part(&j, &p->parts[i]);
    qkv_json_close(&j, ']');
    qkv_json_close(&j, '}');
    return qkv_page_fill(qkv_attention_page, &json, out);
}
