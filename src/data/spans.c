#include "data/spans.h"
#include "base/buf.h"
#include "base/mem.h"

#include <string.h>

static qkv_status read_label(qkv_span_scheme *s, const char *name, qkv_span_label *out) {
    *out = (qkv_span_label){.type = -1, .other = -1};
    if (strcmp(name, "O") == 0) out->part = 'O';
    if ((name[0] != 'B' && name[0] != 'I') || name[1] != '-' || !name[2]) return QKV_OK;
    out->part = name[0];
    out->type = qkv_labels_add(&s->types, name + 2, strlen(name + 2));
    s->spans = true;
    return out->type < 0 ? QKV_FAILED : QKV_OK;
}

/* The labels B and I of a type know each other. */
static qkv_status pair_up(qkv_span_scheme *s) {
    int32_t *first = qkv_alloc(((size_t)s->types.n + 1) * 2 * sizeof *first);
    if (!first) return QKV_FAILED;
    for (int32_t i = 0; i < 2 * s->types.n; i++) first[i] = -1;
    for (int32_t i = 0; i < s->n; i++)
        if (s->label[i].type >= 0) first[2 * s->label[i].type + (s->label[i].part == 'I')] = i;
    for (int32_t i = 0; i < s->n; i++)
        if (s->label[i].type >= 0)
            s->label[i].other = first[2 * s->label[i].type + (s->label[i].part == 'B')];
    qkv_free(first);
    return QKV_OK;
}

qkv_status qkv_span_scheme_of(const qkv_labels *labels, qkv_span_scheme *out) {
    *out = (qkv_span_scheme){.n = labels->n};
    out->label = qkv_zalloc((size_t)labels->n + 1, sizeof *out->label);
    qkv_status status = out->label ? QKV_OK : QKV_FAILED;
    for (int32_t i = 0; i < labels->n && status == QKV_OK; i++)
        status = read_label(out, labels->names[i], &out->label[i]);
    if (status == QKV_OK) status = pair_up(out);
    if (status != QKV_OK) qkv_span_scheme_free(out);
    return status;
}

void qkv_span_scheme_free(qkv_span_scheme *s) {
    qkv_free(s->label);
    qkv_labels_free(&s->types);
    *s = (qkv_span_scheme){0};
}

/* An I without a span of its type before it begins one. */
size_t qkv_spans_find(const qkv_span_scheme *s, const int32_t *label, size_t n,
                      qkv_word_span *out) {
    size_t count = 0;
    bool open = false;
    for (size_t i = 0; i < n; i++) {
        const qkv_span_label l =
            label[i] >= 0 ? s->label[label[i]] : (qkv_span_label){.type = -1, .other = -1};
        const bool goes_on = open && l.part == 'I' && out[count - 1].type == l.type;
        if (goes_on)
            out[count - 1].to = i + 1;
        else if (l.type >= 0)
            out[count++] = (qkv_word_span){i, i + 1, l.type};
        open = l.type >= 0;
    }
    return count;
}

/* Must the word before have a label of the same type? */
static bool is_bound(const qkv_span_label *l) {
    return l->part == 'I' && l->other >= 0;
}

void qkv_spans_decode(const qkv_span_scheme *s, float *score, size_t n, int32_t *from,
                      int32_t *label) {
    const int32_t k = s->n;
    for (size_t i = 0; i < n; i++) {
        float *now = score + i * (size_t)k;
        const float *before = i ? now - k : NULL;
        int32_t top = 0;
        for (int32_t j = 1; before && j < k; j++)
            if (before[j] > before[top]) top = j;
        for (int32_t j = 0; j < k; j++) {
            const qkv_span_label *l = &s->label[j];
            int32_t best = top;
            if (is_bound(l) && before) best = before[j] > before[l->other] ? j : l->other;
            from[i * (size_t)k + (size_t)j] = best;
            if (before)
                now[j] += before[best];
            else if (is_bound(l))
                now[j] = -1e30f;
        }
    }
    for (size_t i = n; i-- > 0;) {
        const float *now = score + i * (size_t)k;
        int32_t best = 0;
        if (i + 1 < n)
            best = from[(i + 1) * (size_t)k + (size_t)label[i + 1]];
        else
            for (int32_t j = 1; j < k; j++)
                if (now[j] > now[best]) best = j;
        label[i] = best;
    }
}
