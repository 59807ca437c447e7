/* The reliability diagram (DeGroot & Fienberg 1983): answers are put into bins by the probability
 * that the model gave them; the share that was right stands against it. On the diagonal a model
 * means what it says, below it is too sure of itself, above not sure enough. */
#include "draw/axis.h"
#include "draw/svg.h"
#include "report/evaluate.h"

#include <math.h>
#include <stdio.h>

enum { LEFT = 60, TOP = 64, SIDE = 360, BARS = 60, GAP = 14, WIDTH = 480 };

static double place_x(double p) {
    return LEFT + p * SIDE;
}

static double place_y(double p) {
    return TOP + (1 - p) * SIDE;
}

static void draw_frame(qkv_buf *out) {
    const qkv_axis axis = qkv_axis_make(0, 1, 5, false);
    char label[32];
    for (int i = 0; i < axis.n; i++) {
        const double p = axis.tick[i];
        qkv_axis_label(&axis, p, label);
        qkv_svg_line(out, LEFT, place_y(p), LEFT + SIDE, place_y(p), "grid");
        qkv_svg_text(out, LEFT - 8, place_y(p) + 4, 'e', "soft small", label);
        qkv_svg_text(out, place_x(p), TOP + SIDE + GAP + BARS + 18, 'm', "soft small", label);
    }
    qkv_svg_text(out, LEFT + SIDE / 2.0, TOP + SIDE + GAP + BARS + 38, 'm', "soft small",
                 "probability that the model gave its answer");
    qkv_svg_text_turned(out, 20, TOP + SIDE / 2.0, -90, 'm', "soft small",
                        "share of these answers that was right");
}

/* Above: the share that was right; below: how many answers there are. */
static void draw_bin(const qkv_evaluation *e, size_t k, int64_t most, qkv_buf *out) {
    const qkv_calibration_bin b = e->bins[k];
    const double width = SIDE / (double)e->n_bins, x = LEFT + (double)k * width;
    char hint[128];
    if (b.n == 0) return;
    snprintf(hint, sizeof hint, "%lld answers: said %.3f, right %.3f", (long long)b.n, b.confidence,
             b.accuracy);
    qkv_svg_cell(out, x + 1, place_y(b.accuracy), width - 2, b.accuracy * SIDE, 0.55, hint);
    qkv_svg_line(out, x + 1, place_y(b.accuracy), x + width - 1, place_y(b.accuracy), "s0");
    qkv_svg_line(out, x + 1, place_y(b.confidence), x + width - 1, place_y(b.confidence), "s1");
    const double height = BARS * (double)b.n / (double)most;
    qkv_svg_cell(out, x + 1, TOP + SIDE + GAP + BARS - height, width - 2, height, 0.3, hint);
}

qkv_status qkv_reliability_svg(const qkv_evaluation *e, qkv_buf *out) {
    char text[96];
    int64_t most = 1, all = 0;
    if (e->n_bins == 0)
        return qkv_fail(QKV_USAGE, "there is no reliability diagram: it was not asked for, or the "
                                   "answers have no probabilities");
    for (size_t k = 0; k < e->n_bins; k++) {
        all += e->bins[k].n;
        if (e->bins[k].n > most) most = e->bins[k].n;
    }
    qkv_svg_begin(out, WIDTH, TOP + SIDE + GAP + BARS + 54, "Reliability");
    qkv_svg_text(out, LEFT, 28, 's', "ink title", "Does the model mean what it says?");
    snprintf(text, sizeof text, "%lld answers, calibration error (ECE) %.4f", (long long)all,
             e->ece);
    qkv_svg_text(out, LEFT, 48, 's', "soft small", text);
    draw_frame(out);
    for (size_t k = 0; k < e->n_bins; k++) draw_bin(e, k, most, out);
    qkv_svg_line(out, place_x(0), place_y(0), place_x(1), place_y(1), "edge dash");
    qkv_svg_line(out, LEFT, TOP + SIDE, LEFT + SIDE, TOP + SIDE, "edge");
    qkv_svg_line(out, LEFT, TOP + SIDE + GAP + BARS, LEFT + SIDE, TOP + SIDE + GAP + BARS, "edge");
    qkv_svg_text(out, LEFT + 10, TOP + 18, 's', "f0 small strong", "right");
    qkv_svg_text(out, LEFT + 10, TOP + 34, 's', "f1 small strong", "said");
    qkv_svg_text(out, LEFT + 10, TOP + SIDE + GAP + 12, 's', "soft small", "answers");
    qkv_svg_end(out);
    return QKV_OK;
}

/* A bar as long as the share that was right, with a mark at what was said. */
void qkv_reliability_terminal(const qkv_evaluation *e, qkv_buf *out) {
    enum { COLUMNS = 40 };
    qkv_buf_puts(out, "\n      said   right  answers   0 ");
    for (int c = 0; c < COLUMNS - 2; c++) qkv_buf_puts(out, "·");
    qkv_buf_puts(out, " 1\n");
    for (size_t k = 0; k < e->n_bins; k++) {
        const qkv_calibration_bin b = e->bins[k];
        if (b.n == 0) continue;
        const int right = (int)lround(b.accuracy * COLUMNS),
                  said = (int)lround(b.confidence * (COLUMNS - 1));
        qkv_buf_printf(out, "    %6.3f  %6.3f  %7lld   ", b.confidence, b.accuracy, (long long)b.n);
        for (int c = 0; c < COLUMNS && (c < right || c <= said); c++)
            qkv_buf_puts(out, c == said ? "│" : c < right ? "█" : " ");
        qkv_buf_putc(out, '\n');
    }
    qkv_buf_puts(out, "    (█ was right, │ what the model said)\n");
}
