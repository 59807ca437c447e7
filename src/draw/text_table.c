#include "draw/text_table.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS_MAX = 32, GAP = 2 };

qkv_table qkv_table_begin(const char *align) {
    return (qkv_table){.align = align};
}

void qkv_table_free(qkv_table *t) {
    for (size_t i = 0; i < t->cells.n; i++) qkv_free(t->cells.at[i]);
    qkv_free(t->cells.at);
    qkv_free(t->rules.at);
    *t = (qkv_table){.align = t->align};
}

void qkv_table_cell(qkv_table *t, const char *format, ...) {
    if (t->status != QKV_OK) return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n >= 0 ? qkv_alloc((size_t)n + 1) : NULL;
    if (text) {
        va_start(args, format);
        vsnprintf(text, (size_t)n + 1, format, args);
        va_end(args);
    }
    if (!text || !QKV_PUSH(t->cells, text)) {
        qkv_free(text);
        t->status = QKV_FAILED;
    }
}

void qkv_table_rule(qkv_table *t) {
    size_t columns = strlen(t->align);
    if (t->status == QKV_OK && columns && !QKV_PUSH(t->rules, t->cells.n / columns))
        t->status = QKV_FAILED;
}

/* Widths of the columns, cut so that a row fits where that is possible. */
static int measure(const qkv_table *t, size_t columns, int limit, int width[COLUMNS_MAX]) {
    int total = 0;
    for (size_t c = 0; c < columns; c++) {
        width[c] = 0;
        for (size_t i = c; i < t->cells.n; i += columns) {
            int w = qkv_text_width(t->cells.at[i], strlen(t->cells.at[i]));
            if (w > width[c]) width[c] = w;
        }
        total += width[c] + (c ? GAP : 0);
    }
    size_t widest = columns;
    for (size_t c = 0; c < columns; c++)
        if (t->align[c] == 'l' && (widest == columns || width[c] > width[widest])) widest = c;
    if (total > limit && widest < columns) {
        int least = 8, cut = total - limit;
        if (cut > width[widest] - least) cut = width[widest] > least ? width[widest] - least : 0;
        width[widest] -= cut;
        total -= cut;
    }
    return total;
}

static void put_rule(qkv_buf *out, int n) {
    for (int i = 0; i < n; i++) qkv_buf_puts(out, "─");
    qkv_buf_putc(out, '\n');
}

qkv_status qkv_table_print(const qkv_table *t, qkv_ink ink, qkv_buf *out) {
    size_t columns = strlen(t->align);
    int width[COLUMNS_MAX];
    if (t->status != QKV_OK) return t->status;
    if (columns == 0 || columns > COLUMNS_MAX)
        return qkv_fail(QKV_USAGE, "a table has 1 to %d columns, not %zu", COLUMNS_MAX, columns);
    int total = measure(t, columns, ink.columns > 0 ? ink.columns : 80, width);
    size_t rule = 0;
    for (size_t i = 0; i < t->cells.n; i++) {
        size_t c = i % columns, row = i / columns;
        bool header = row == 0;
        if (c == 0 && rule < t->rules.n && t->rules.at[rule] == row) rule++, put_rule(out, total);
        if (c) qkv_buf_puts(out, "  ");
        if (header && ink.colour) qkv_buf_puts(out, "\033[1m");
        const char *cell = t->cells.at[i];
        bool right = t->align[c] == 'r', last = c + 1 == columns;
        int w = last && !right ? qkv_text_width(cell, strlen(cell))
                               : width[c]; /* no blanks at the end */
        qkv_text_fit(out, cell, strlen(cell), w > width[c] ? width[c] : w, right);
        if (header && ink.colour) qkv_buf_puts(out, "\033[0m");
        if (last) qkv_buf_putc(out, '\n');
    }
    return out->status;
}
