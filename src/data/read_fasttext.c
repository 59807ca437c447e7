/* fastText's form: labels, each behind __label__, then the text. A line may have none. */
#include "data/corpus.h"

#include <string.h>

static const qkv_text prefix = {"__label__", 9};

/* Takes the labels off the front of a line: __label__a __label__b; what is left is the text. */
static qkv_text take_labels(qkv_text *line) {
    size_t end = 0, last = 0;
    while (line->len - end > prefix.len && memcmp(line->data + end, prefix.data, prefix.len) == 0) {
        while (end < line->len && line->data[end] != ' ' && line->data[end] != '\t') end++;
        last = end;
        while (end < line->len && (line->data[end] == ' ' || line->data[end] == '\t')) end++;
    }
    const qkv_text labels = {line->data, last};
    *line = (qkv_text){line->data + end, line->len - end};
    return labels;
}

/* __label__x text, or __label__x __label__y text */
qkv_status qkv_read_fasttext(qkv_reader *r) {
    qkv_text line;
    while (qkv_reader_line(r, &line)) {
        if (line.len == 0) {
            r->corpus->n_empty++;
            continue;
        }
        const qkv_text labels = take_labels(&line);
        QKV_TRY(qkv_reader_add_list(r, labels, prefix, line, (qkv_text){0}, r->line));
    }
    return QKV_OK;
}
