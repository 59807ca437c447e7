/* Drawings: aligned tables, charts and heat maps whose marks are where they should be, SVG that is
 * well-formed whatever the text. QKV_KEEP=FOLDER leaves the pictures there to be looked at. */
#include "harness.h"
#include "base/file.h"
#include "draw/chart.h"
#include "draw/diagram.h"
#include "draw/heat.h"
#include "draw/svg.h"
#include "draw/text_table.h"

#include <math.h>
#include <stdlib.h>

static void keep(const char *name, const qkv_buf *b) {
    const char *folder = getenv("QKV_KEEP");
    qkv_buf path = {0};
    if (!folder) return;
    assert_ok(qkv_path_join(&path, folder, name));
    assert_ok(qkv_file_write(path.data, b->data, b->len));
    qkv_buf_free(&path);
}

/* Every tag that opens closes, in order; no raw '<' or '&' in text: enough to be XML. */
static void assert_well_formed(const char *text) {
    const char *stack[32];
    int depth = 0;
    for (const char *p = text; *p; p++) {
        if (*p == '&') assert_true(strchr(p, ';') && strchr(p, ';') - p < 8);
        if (*p != '<') continue;
        const char *end = strchr(p, '>');
        assert_non_null(end);
        assert_null(memchr(p + 1, '<', (size_t)(end - p - 1)));
        if (p[1] == '/') {
            assert_true(depth > 0);
            const char *open = stack[--depth];
            assert_true(strncmp(open, p + 2, (size_t)(end - p - 2)) == 0);
        } else if (end[-1] != '/') {
            assert_true(depth < 32);
            stack[depth++] = p + 1;
        }
        p = end;
    }
    assert_int_equal(depth, 0);
}

static void test_width(void **state) {
    (void)state;
    assert_int_equal(qkv_text_width("abc", 3), 3);
    assert_int_equal(qkv_text_width("\xE4\xBD\xA0\xE5\xA5\xBD", 6), 4); /* two Chinese characters */
    assert_int_equal(qkv_text_width("e\xCC\x81", 3), 1); /* e and a combining accent */
    assert_int_equal(qkv_text_width("\xFF", 1), 1);
    qkv_buf b = {0};
    qkv_text_fit(&b, "abcdef", 6, 4, false);
    qkv_text_fit(&b, "x", 1, 3, true);
    qkv_text_fit(&b, "\xE4\xBD\xA0\xE5\xA5\xBD", 6, 3, false);
    qkv_text_fit(&b, "\n\xFF", 2, 3, false);
    assert_string_equal(b.data, "abc…  x\xE4\xBD\xA0…␊\xEF\xBF\xBD ");
    qkv_buf_free(&b);
}

static void test_table(void **state) {
    (void)state;
    qkv_table t = qkv_table_begin("lrl");
    static const char *const rows[][3] = {
        {"class", "F1", "note"}, {"\xE4\xBD\xA0\xE5\xA5\xBD", "0.9", "wide"}, {"bad", "12.25", ""}};
    for (int r = 0; r < 3; r++) {
        if (r == 2) qkv_table_rule(&t);
        for (int c = 0; c < 3; c++) qkv_table_cell(&t, "%s", rows[r][c]);
    }
    qkv_buf b = {0};
    assert_ok(qkv_table_print(&t, (qkv_ink){0}, &b));
    assert_string_equal(b.data, "class     F1  note\n"
                                "\xE4\xBD\xA0\xE5\xA5\xBD     0.9  wide\n"
                                "──────────────────\n"
                                "bad    12.25  \n");
    qkv_table_free(&t);
    qkv_buf_clear(&b);
    t = qkv_table_begin("lr");
    qkv_table_cell(&t, "a very long description of a thing");
    qkv_table_cell(&t, "1");
    assert_ok(qkv_table_print(&t, (qkv_ink){.columns = 20}, &b));
    assert_string_equal(b.data, "a very long desc…  1\n");
    qkv_table_free(&t);
    qkv_buf_free(&b);
}

static void test_axis(void **state) {
    (void)state;
    qkv_axis a = qkv_axis_make(0.13, 0.87, 4, true);
    char label[32];
    assert_true(fabs(a.low) < 1e-12 && fabs(a.high - 1) < 1e-12);
    assert_int_equal(a.n, 6);
    qkv_axis_label(&a, a.tick[3], label);
    assert_string_equal(label, "0.6");
    a = qkv_axis_make(0, 48000, 5, false);
    qkv_axis_label(&a, a.tick[1], label);
    assert_string_equal(label, "10k");
    a = qkv_axis_make(5, 5, 5, true); /* one value has room around it */
    assert_true(a.low < 5 && a.high > 5 && a.n >= 2);
    a = qkv_axis_make(NAN, -INFINITY, 5, true);
    assert_true(a.low < a.high);
}

static double steps[2000], train[2000], valid[40], valid_steps[40];

static qkv_chart loss_chart(qkv_series series[2]) {
    for (int i = 0; i < 2000; i++) {
        steps[i] = i * 10;
        train[i] = 1.45 + 2.6 * exp(-i / 260.0) + 0.05 * sin(i * 1.7) * exp(-i / 900.0);
    }
    for (int i = 0; i < 40; i++) {
        valid_steps[i] = (i + 1) * 500;
        valid[i] = 1.56 + 2.3 * exp(-(i + 1) / 5.0);
    }
    valid[7] = NAN;
    series[0] = (qkv_series){"train", steps, train, 2000};
    series[1] = (qkv_series){"valid", valid_steps, valid, 40};
    return (qkv_chart){
        .title = "Loss", .x_label = "step", .y_label = "nats", .series = series, .n = 2};
}

static void test_chart(void **state) {
    (void)state;
    qkv_series series[2];
    qkv_chart c = loss_chart(series);
    qkv_buf b = {0};
    assert_ok(qkv_chart_svg(&c, 760, 360, &b));
    assert_well_formed(b.data);
    assert_non_null(strstr(b.data, ">train</text>"));
    assert_true(b.len < 60000); /* 2000 points are thinned to what shows */
    keep("loss.svg", &b);
    qkv_buf_clear(&b);
    assert_ok(qkv_chart_terminal(&c, (qkv_ink){.columns = 80}, 12, &b));
    assert_null(strchr(b.data, 27));
    int lines = 0;
    for (const char *p = b.data; *p;) {
        size_t n = strcspn(p, "\n");
        assert_true(qkv_text_width(p, n) <= 80);
        p += n + 1;
        lines++;
    }
    assert_int_equal(lines, 1 + 12 + 3);
    keep("loss.txt", &b);
    qkv_buf_clear(&b);
    assert_ok(qkv_chart_terminal(&c, (qkv_ink){.columns = 100, .colour = true}, 14, &b));
    keep("loss.ansi", &b);
    /* Nothing to draw is drawn as nothing. */
    qkv_chart empty = {.title = "Empty"};
    assert_ok(qkv_chart_terminal(&empty, (qkv_ink){0}, 5, &b));
    assert_ok(qkv_chart_svg(&empty, 300, 200, &b));
    qkv_buf_free(&b);
}

/* Two charts over one x: the best step is marked in both, what is written stands once. */
static void test_panels(void **state) {
    (void)state;
    qkv_series series[2], right = {"held out", valid_steps, valid, 40};
    qkv_chart charts[2] = {loss_chart(series), loss_chart(series)};
    charts[0].title = "my-model <1>";
    charts[0].subtitle = "classify";
    for (int i = 0; i < 2; i++) charts[i].mark = 12000, charts[i].mark_name = "best: step 12,000";
    charts[1].series = &right, charts[1].n = 1, charts[1].y_label = "right, %";
    qkv_buf b = {0};
    assert_ok(qkv_charts_svg(charts, 2, 760, 540, &b));
    assert_well_formed(b.data);
    keep("panels.svg", &b);
    static const struct {
        const char *text;
        int times;
    } wanted[] = {{">my-model &lt;1></text>", 1},
                  {">best: step 12,000</text>", 1},
                  {">step</text>", 1},
                  {">right, %</text>", 1},
                  {"class=\"edge dash\"", 2}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        int times = 0;
        for (const char *p = b.data; (p = strstr(p, wanted[i].text)); p++) times++;
        assert_int_equal(times, wanted[i].times);
    }
    qkv_buf_clear(&b);
    assert_ok(qkv_chart_terminal(&charts[0], (qkv_ink){.columns = 40}, 8, &b));
    assert_non_null(strstr(b.data, "┆ best: step 12,000\n"));
    for (const char *p = b.data; *p;) {
        const size_t n = strcspn(p, "\n");
        assert_true(qkv_text_width(p, n) <= 40);
        p += n + 1;
    }
    charts[0].mark = 1e9; /* outside: no line */
    qkv_buf_clear(&b);
    assert_ok(qkv_chart_terminal(&charts[0], (qkv_ink){.columns = 80}, 8, &b));
    assert_null(strstr(b.data, "┆"));
    assert_fails(qkv_charts_svg(charts, 0, 1, 1, &b), QKV_USAGE, "no charts");
    qkv_buf_free(&b);
}

static const char *const source[] = {"Ein",       "kleines", "Mädchen", "klettert", "in",  "ein",
                                     "Spielhaus", "aus",     "Holz",    ".",        "</s>"};
static const char *const target[] = {"A", "little", "girl",      "climbing", "into",
                                     "a", "wooden", "playhouse", ".",        "</s>"};
static float weights[10 * 11], square[8][20 * 20], large[60 * 60];

static void make_weights(void) {
    static const int to[10] = {0, 1, 2, 3, 4, 5, 8, 6, 9, 10};
    for (int r = 0; r < 10; r++) {
        float sum = 0;
        for (int c = 0; c < 11; c++)
            sum += weights[r * 11 + c] = expf(-fabsf((float)(c - to[r])) * 1.6f);
        for (int c = 0; c < 11; c++) weights[r * 11 + c] /= sum;
    }
    for (int m = 0; m < 8; m++)
        for (int r = 0; r < 20; r++)
            for (int c = 0; c < 20; c++)
                square[m][r * 20 + c] =
                    c > r    ? 0
                    : m == 0 ? c == r
                    : m == 1 ? c + 1 == r
                    : m == 2 ? 1.f / (float)(r + 1)
                             : expf(-(float)((r - c) % (m + 1)) - 0.1f * (float)(r - c));
    for (int r = 0; r < 60; r++)
        for (int c = 0; c < 60; c++)
            large[r * 60 + c] = c > r ? 0 : expf(-0.15f * (float)(r - c)) * (c % 7 ? 0.3f : 1);
}

static void test_heat(void **state) {
    (void)state;
    make_weights();
    qkv_heat h = {.title = "Layer 3, head 2: translation",
                  .values = weights,
                  .rows = 10,
                  .columns = 11,
                  .stride = 11,
                  .row_names = target,
                  .column_names = source};
    qkv_buf b = {0};
    assert_true(fabs(qkv_heat_strength(&h, 0, 0, qkv_heat_max(&h)) - 1) < 0.3);
    assert_ok(qkv_heat_svg(&h, &b));
    assert_well_formed(b.data);
    assert_non_null(strstr(b.data, "girl → Mädchen"));
    keep("align.svg", &b);
    qkv_buf_clear(&b);
    assert_ok(qkv_heat_terminal(&h, (qkv_ink){.columns = 80}, &b));
    assert_null(strchr(b.data, 27));
    /* The strongest cell of "girl" stands under "Mädchen", the third column;
     * a cell has two characters. */
    const char *line = strstr(b.data, "     girl ");
    assert_non_null(line);
    const char *full = strstr(line, "█");
    assert_non_null(full);
    assert_int_equal(qkv_text_width(line, (size_t)(full - line)), 10 + 2 * 2);
    keep("align.txt", &b);
    qkv_buf_clear(&b);
    assert_ok(qkv_heat_terminal(&h, (qkv_ink){.columns = 80, .colour = true}, &b));
    keep("align.ansi", &b);
    qkv_buf_clear(&b);

    const char *names[60];
    for (int i = 0; i < 60; i++) names[i] = source[i % 11];
    qkv_heat big = {.title = "60 tokens",
                    .values = large,
                    .rows = 60,
                    .columns = 60,
                    .stride = 60,
                    .row_names = names,
                    .column_names = names};
    assert_ok(qkv_heat_svg(&big, &b));
    keep("large.svg", &b);
    qkv_buf_clear(&b);
    assert_ok(qkv_heat_terminal(&big, (qkv_ink){.columns = 40}, &b)); /* in bands */
    for (const char *p = b.data; *p;) {
        size_t n = strcspn(p, "\n");
        assert_true(qkv_text_width(p, n) <= 40);
        p += n + 1;
    }
    float odd[4] = {NAN, -1, INFINITY, 0};
    qkv_heat bad = {.values = odd, .rows = 2, .columns = 2, .stride = 2};
    assert_ok(qkv_heat_svg(&bad, &b));
    assert_null(strstr(b.data, "nan"));
    qkv_buf_free(&b);
}

static void test_grid(void **state) {
    (void)state;
    make_weights();
    static const char *const titles[] = {"layer 1 head 1", "head 2", "head 3", "head 4",
                                         "layer 2 head 1", "head 2", "head 3", "head 4"};
    qkv_heat maps[8];
    for (int i = 0; i < 8; i++)
        maps[i] = (qkv_heat){
            .title = titles[i], .values = square[i], .rows = 20, .columns = 20, .stride = 20};
    qkv_heat_grid g = {
        .title = "Self-attention, 2 layers of 4 heads", .maps = maps, .n = 8, .across = 4};
    qkv_buf b = {0};
    assert_ok(qkv_heat_grid_svg(&g, &b));
    assert_well_formed(b.data);
    keep("grid.svg", &b);
    qkv_buf_clear(&b);
    assert_ok(qkv_heat_grid_terminal(&g, (qkv_ink){.columns = 90, .colour = true}, &b));
    keep("grid.ansi", &b);
    qkv_buf_clear(&b);
    assert_ok(qkv_heat_grid_terminal(&g, (qkv_ink){.columns = 90}, &b));
    keep("grid.txt", &b);
    g.n = 0;
    assert_fails(qkv_heat_grid_svg(&g, &b), QKV_USAGE, "no maps");
    qkv_buf_free(&b);
}

static void test_diagram(void **state) {
    (void)state;
    static const qkv_diagram_block encoder[] = {
        {.title = "Token embedding",
         .detail = "30,000 × 1024 · 30,720,000",
         .shape = "n × 1024",
         .tile = {{.title = "Positions: sinusoidal", .glyph = QKV_GLYPH_WAVES, .added = true},
                  {.title = "Segments", .detail = "two\nlines", .added = true}}},
        {.title = "GRU, forwards", .kind = QKV_BLOCK_ATTENTION, .loops = true},
        {.title = "GRU, backwards",
         .kind = QKV_BLOCK_ATTENTION,
         .beside = true,
         .loops = true,
         .shape = "n × 2048"},
        {.title = "Feed-forward",
         .kind = QKV_BLOCK_DENSE,
         .residual = 1,
         .tile = {{.title = "N-grams", .added = true, .from_input = true}}},
        {.title = "LayerNorm", .detail = "2,048", .kind = QKV_BLOCK_NORM},
    };
    static const qkv_diagram_block decoder[] = {
        {.title = "Embedding", .detail = "30,000 × 1024"},
        {.title = "LayerNorm", .kind = QKV_BLOCK_NORM},
        {.title = "Causal self-attention",
         .kind = QKV_BLOCK_ATTENTION,
         .residual = 2,
         .tile = {{.title = "Positions: alibi", .glyph = QKV_GLYPH_DISTANCES}}},
        {.title = "Cross-attention",
         .kind = QKV_BLOCK_ATTENTION,
         .residual = 1,
         .from_first = "keys, values"},
        {.title = "Output <softmax> & \"projection\"", .kind = QKV_BLOCK_OUTPUT},
    };
    static const qkv_diagram_group layers[] = {{1, 3, "layer 1"}, {3, 5, "× 12"}},
                                   eight = {1, 4, "× 8"};
    const qkv_diagram_stack stacks[] = {
        {"Encoder", "in: source tokens", "out: vectors", encoder, 5, layers, 2},
        {"Decoder", "in: target tokens", "out: scores", decoder, 5, &eight, 1}};
    qkv_diagram d = {.title = "Encoder-decoder, 201,399,600 parameters",
                     .subtitle = "d 1024 · 4 heads of 192 · feed-forward 512",
                     .legend = "n, m: tokens",
                     .stacks = stacks,
                     .n = 2};
    qkv_buf b = {0};
    assert_ok(qkv_diagram_svg(&d, &b));
    assert_well_formed(b.data);
    assert_non_null(strstr(b.data, "&lt;softmax> &amp; &quot;projection&quot;"));
    assert_non_null(strstr(b.data, ">keys, values</text>"));
    assert_non_null(strstr(b.data, ">two</text>"));
    keep("model.svg", &b);
    d.n = 3;
    assert_fails(qkv_diagram_svg(&d, &b), QKV_USAGE, "one or two stacks");
    qkv_buf_free(&b);
}

static qkv_status draw_once(const void *chart) {
    qkv_buf b = {0};
    const qkv_status svg = qkv_chart_svg(chart, 300, 200, &b),
                     text = qkv_chart_terminal(chart, (qkv_ink){0}, 5, &b);
    qkv_buf_free(&b);
    return svg != QKV_OK ? svg : text;
}

static void test_out_of_memory(void **state) {
    (void)state;
    qkv_series series[2];
    const qkv_chart c = loss_chart(series);
    assert_fails_cleanly(draw_once, &c, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_width),         cmocka_unit_test(test_table),
        cmocka_unit_test(test_axis),          cmocka_unit_test(test_chart),
        cmocka_unit_test(test_panels),        cmocka_unit_test(test_heat),
        cmocka_unit_test(test_grid),          cmocka_unit_test(test_diagram),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
