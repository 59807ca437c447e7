#include "draw/svg.h"
#include "base/utf8.h"
#include "draw/ink.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* name, light, dark */
static const struct colour {
    const char *rule, *light, *dark;
} colours[] = {
    {".bg{fill:%s}", "#ffffff", "#0f172a"},
    {".halo{paint-order:stroke;stroke-width:4px;stroke:%s}", "#ffffff", "#0f172a"},
    {".card{fill:%s}", "#f8fafc", "#1e293b"},
    {".ink{fill:%s}", "#0f172a", "#f1f5f9"},
    {".soft{fill:%s}", "#64748b", "#94a3b8"},
    {".grid{stroke:%s}", "#e2e8f0", "#334155"},
    {".edge{stroke:%s}", "#94a3b8", "#64748b"},
    {".arrow{fill:%s}", "#94a3b8", "#64748b"},
    {".heat{fill:%s}", "#1d4ed8", "#60a5fa"},
    {".frame{stroke:%s}", "#cbd5e1", "#475569"},
    {".mark{stroke:%s}", "#475569", "#cbd5e1"},
    {".s0{stroke:%s}", "#2563eb", "#60a5fa"},
    {".s1{stroke:%s}", "#ea580c", "#fb923c"},
    {".s2{stroke:%s}", "#059669", "#34d399"},
    {".s3{stroke:%s}", "#9333ea", "#c084fc"},
    {".s4{stroke:%s}", "#dc2626", "#f87171"},
    {".s5{stroke:%s}", "#0891b2", "#22d3ee"},
    {".s6{stroke:%s}", "#a16207", "#facc15"},
    {".s7{stroke:%s}", "#db2777", "#f472b6"},
    {".f0{fill:%s}", "#2563eb", "#60a5fa"},
    {".f1{fill:%s}", "#ea580c", "#fb923c"},
    {".f2{fill:%s}", "#059669", "#34d399"},
    {".f3{fill:%s}", "#9333ea", "#c084fc"},
    {".f4{fill:%s}", "#dc2626", "#f87171"},
    {".f5{fill:%s}", "#0891b2", "#22d3ee"},
    {".f6{fill:%s}", "#a16207", "#facc15"},
    {".f7{fill:%s}", "#db2777", "#f472b6"},
    {".b0{fill:%s}", "#e2e8f0", "#334155"}, /* blocks of a diagram, by kind */
    {".b1{fill:%s}", "#dbeafe", "#1e3a8a"},
    {".b2{fill:%s}", "#dcfce7", "#14532d"},
    {".b3{fill:%s}", "#fef9c3", "#713f12"},
    {".b4{fill:%s}", "#fae8ff", "#581c87"},
};

static const char shapes[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto "
    "Sans','DejaVu Sans',sans-serif;font-size:12px}"
    ".title{font-size:15px;font-weight:600}.small{font-size:11px}.tiny{"
    "font-size:9px}.strong{font-weight:600}"
    ".grid{stroke-width:1;fill:none}.edge{stroke-width:1.5;fill:none}."
    "frame{stroke-width:1;fill:none}.mark{stroke-width:1.2;fill:none;stroke-linecap:round}"
    ".dash{stroke-dasharray:4 3}"
    ".s0,.s1,.s2,.s3,.s4,.s5,.s6,.s7{fill:none;stroke-width:2;stroke-"
    "linejoin:round;stroke-linecap:round}";

/* A rule with its colour put in; the rules hold one %s each. */
static void put_rule(qkv_buf *out, const char *rule, const char *colour) {
    const char *hole = strstr(rule, "%s");
    qkv_buf_add(out, rule, (size_t)(hole - rule));
    qkv_buf_puts(out, colour);
    qkv_buf_puts(out, hole + 2);
}

void qkv_svg_number(qkv_buf *out, double x) {
    if (!isfinite(x) || fabs(x) > 1e12) x = 0;
    long long hundredths = llround(x * 100), whole = hundredths / 100,
              rest = llabs(hundredths % 100);
    if (hundredths < 0 && whole == 0) qkv_buf_putc(out, '-');
    qkv_buf_printf(out, "%lld", whole);
    if (rest == 0) return;
    qkv_buf_printf(out, rest % 10 ? ".%02lld" : ".%01lld", rest % 10 ? rest : rest / 10);
}

void qkv_svg_escape(qkv_buf *out, const char *text, size_t len) {
    for (size_t i = 0; i < len;) {
        int32_t cp;
        int n = qkv_utf8_decode(text + i, len - i, &cp);
        if (cp == '<')
            qkv_buf_puts(out, "&lt;");
        else if (cp == '&')
            qkv_buf_puts(out, "&amp;");
        else if (cp == '"')
            qkv_buf_puts(out, "&quot;");
        else if (cp < 0)
            qkv_buf_puts(out, "\xEF\xBF\xBD");
        else if (cp >= 0x20 && cp != 0x7f && cp != 0xFFFE && cp != 0xFFFF) /* the rest is not XML */
            qkv_buf_add(out, text + i, (size_t)n);
        i += (size_t)n;
    }
}

/* ` name="value"` */
static void attribute(qkv_buf *out, const char *name, double value) {
    qkv_buf_printf(out, " %s=\"", name);
    qkv_svg_number(out, value);
    qkv_buf_putc(out, '"');
}

void qkv_svg_begin(qkv_buf *out, double width, double height, const char *title) {
    const size_t n = sizeof colours / sizeof *colours;
    qkv_buf_puts(out, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    attribute(out, "width", width);
    attribute(out, "height", height);
    qkv_buf_puts(out, " viewBox=\"0 0 ");
    qkv_svg_number(out, width);
    qkv_buf_putc(out, ' ');
    qkv_svg_number(out, height);
    qkv_buf_puts(out, "\" role=\"img\">\n<title>");
    qkv_svg_escape(out, title, strlen(title));
    qkv_buf_puts(out, "</title>\n<style>");
    qkv_buf_puts(out, shapes);
    for (size_t i = 0; i < n; i++) put_rule(out, colours[i].rule, colours[i].light);
    qkv_buf_puts(out, "@media(prefers-color-scheme:dark){");
    for (size_t i = 0; i < n; i++) put_rule(out, colours[i].rule, colours[i].dark);
    qkv_buf_puts(out, "}</style>\n");
    qkv_svg_rect(out, 0, 0, width, height, 0, "bg");
}

void qkv_svg_end(qkv_buf *out) {
    qkv_buf_puts(out, "</svg>\n");
}

void qkv_svg_rect(qkv_buf *out, double x, double y, double w, double h, double radius,
                  const char *class) {
    qkv_buf_printf(out, "<rect class=\"%s\"", class);
    attribute(out, "x", x);
    attribute(out, "y", y);
    attribute(out, "width", w);
    attribute(out, "height", h);
    if (radius > 0) attribute(out, "rx", radius);
    qkv_buf_puts(out, "/>\n");
}

void qkv_svg_cell(qkv_buf *out, double x, double y, double w, double h, double strength,
                  const char *hint) {
    if (strength < 0.004 && !hint) return; /* would not show */
    qkv_buf_puts(out, "<rect class=\"heat\"");
    attribute(out, "x", x);
    attribute(out, "y", y);
    attribute(out, "width", w);
    attribute(out, "height", h);
    attribute(out, "fill-opacity", strength);
    if (!hint) {
        qkv_buf_puts(out, "/>\n");
        return;
    }
    qkv_buf_puts(out, "><title>");
    qkv_svg_escape(out, hint, strlen(hint));
    qkv_buf_puts(out, "</title></rect>\n");
}

void qkv_svg_cells_begin(qkv_buf *out, double strength) {
    qkv_buf_puts(out, "<path class=\"heat\"");
    attribute(out, "fill-opacity", strength);
    qkv_buf_puts(out, " d=\"");
}

void qkv_svg_cells_add(qkv_buf *out, double x, double y, double w, double h) {
    const double numbers[] = {x, y, w, h, -w};
    for (int i = 0; i < 5; i++) {
        qkv_buf_puts(out, i == 0 ? "M" : i == 1 ? " " : i == 3 ? "v" : "h");
        qkv_svg_number(out, numbers[i]);
    }
    qkv_buf_putc(out, 'z');
}

void qkv_svg_cells_end(qkv_buf *out) {
    qkv_svg_path_end(out);
}

void qkv_svg_line(qkv_buf *out, double x1, double y1, double x2, double y2, const char *class) {
    qkv_buf_printf(out, "<line class=\"%s\"", class);
    attribute(out, "x1", x1);
    attribute(out, "y1", y1);
    attribute(out, "x2", x2);
    attribute(out, "y2", y2);
    qkv_buf_puts(out, "/>\n");
}

void qkv_svg_text_turned(qkv_buf *out, double x, double y, double degrees, char anchor,
                         const char *class, const char *text) {
    qkv_buf_printf(out, "<text class=\"%s\"", class);
    attribute(out, "x", x);
    attribute(out, "y", y);
    if (anchor != 's') qkv_buf_printf(out, " text-anchor=\"%s\"", anchor == 'm' ? "middle" : "end");
    if (degrees != 0) {
        qkv_buf_puts(out, " transform=\"rotate(");
        qkv_svg_number(out, degrees);
        qkv_buf_putc(out, ' ');
        qkv_svg_number(out, x);
        qkv_buf_putc(out, ' ');
        qkv_svg_number(out, y);
        qkv_buf_puts(out, ")\"");
    }
    qkv_buf_putc(out, '>');
    qkv_svg_escape(out, text, strlen(text));
    qkv_buf_puts(out, "</text>\n");
}

void qkv_svg_text(qkv_buf *out, double x, double y, char anchor, const char *class,
                  const char *text) {
    qkv_svg_text_turned(out, x, y, 0, anchor, class, text);
}

void qkv_svg_path_begin(qkv_buf *out, const char *class) {
    qkv_buf_printf(out, "<path class=\"%s\" d=\"", class);
}

void qkv_svg_path_to(qkv_buf *out, bool move, double x, double y) {
    qkv_buf_putc(out, move ? 'M' : 'L');
    qkv_svg_number(out, x);
    qkv_buf_putc(out, ' ');
    qkv_svg_number(out, y);
}

void qkv_svg_path_end(qkv_buf *out) {
    qkv_buf_puts(out, "\"/>\n");
}

double qkv_svg_text_width(const char *text, double size) {
    return qkv_text_width(text, strlen(text)) * size * 0.56;
}
