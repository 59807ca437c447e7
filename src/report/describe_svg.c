/* A model as a block diagram: the parts of its description in the order in which they work, equal
 * layers drawn once. What a picture says beyond the parts comes from the configuration: where
 * positions act (told by the traits of their scheme, so a new one is drawn as well), what is pooled,
 * what goes in and what comes out. */
#include "report/describe_svg.h"
#include "base/mem.h"
#include "draw/diagram.h"
#include "report/describe_print.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 40, GROUPS = 8, TEXTS = 160, TEXT = 128, TILE_CHARACTERS = 22 };

/* One side of the diagram with the texts that its blocks point to. */
typedef struct side {
    const qkv_description *d;
    const qkv_config *config;
    bool decoder, reads_source;
    qkv_diagram_block blocks[BLOCKS];
    qkv_diagram_group groups[GROUPS];
    size_t n, n_groups, n_texts;
    char texts[TEXTS][TEXT];
} side;

static const char *say(side *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *say(side *s, const char *format, ...) {
    char *text = s->texts[s->n_texts < TEXTS - 1 ? s->n_texts++ : TEXTS - 1];
    va_list args;
    va_start(args, format);
    vsnprintf(text, TEXT, format, args);
    va_end(args);
    return text;
}

static const char *grouped(side *s, int64_t count) {
    char text[40];
    qkv_print_grouped((double)count, text);
    return say(s, "%s", text);
}

/* ---- what a part is called ---- */

static bool is_norm(const char *name) {
    const size_t n = strlen(name);
    return n >= 4 && strcmp(name + n - 4, "norm") == 0;
}

static const char *attention_title(side *s) {
    const qkv_pattern_kind pattern = qkv_config_pattern(s->config, s->decoder);
    const char *title = s->decoder ? "Causal self-attention" : "Self-attention";
    return pattern == QKV_PATTERN_FULL ? title
                                       : say(s, "%s, %s", title, qkv_pattern_names[pattern]);
}

static const char *ffn_title(side *s) {
    return say(s, "Feed-forward, %s", qkv_ffn_names[s->config->activation]);
}

static const char *cell_name(const side *s) {
    return s->config->arch == QKV_ARCH_LSTM ? "LSTM" : "GRU";
}

static const char *forward_title(side *s) {
    return say(s, s->decoder || !s->config->bidirectional ? "%s" : "%s, forwards", cell_name(s));
}

static const char *backward_title(side *s) {
    return say(s, "%s, backwards", cell_name(s));
}

/* Parts by name; others are called as they are. */
static const struct face {
    const char *name, *title;
    const char *(*make_title)(side *s); /* instead, where it depends on the configuration */
    qkv_diagram_kind kind;
    const char *from_first;
    bool loops;
} faces[] = {
    {"embedding", "Token embedding", NULL, QKV_BLOCK_INPUT, NULL, false},
    {"attention", NULL, attention_title, QKV_BLOCK_ATTENTION, NULL, false},
    {"cross", "Cross-attention", NULL, QKV_BLOCK_ATTENTION, "keys, values", false},
    {"ffn", NULL, ffn_title, QKV_BLOCK_DENSE, NULL, false},
    {"forward", NULL, forward_title, QKV_BLOCK_ATTENTION, NULL, true},
    {"backward", NULL, backward_title, QKV_BLOCK_ATTENTION, NULL, true},
    {"ask", "Attention to the source", NULL, QKV_BLOCK_ATTENTION, "keys, values", false},
    {"head", "Output over the vocabulary", NULL, QKV_BLOCK_OUTPUT, NULL, false},
    {"classes", "Output over the classes", NULL, QKV_BLOCK_OUTPUT, NULL, false},
    {"number", "Output of one number", NULL, QKV_BLOCK_OUTPUT, NULL, false},
    {"tags", "Output over the labels of words", NULL, QKV_BLOCK_OUTPUT, NULL, false},
};

static const struct face *face_of(const char *name) {
    for (size_t i = 0; i < sizeof faces / sizeof *faces; i++)
        if (strcmp(faces[i].name, name) == 0) return &faces[i];
    return NULL;
}

/* "8 heads of 32 · 263,168": the shape that says most, and the parameters. */
static const char *detail_of(side *s, const qkv_describe_part *p) {
    const qkv_config *c = s->config;
    const char *count = grouped(s, p->parameters);
    if (!p->parameters) return p->note ? p->note : *p->weights ? say(s, "%s", p->weights) : NULL;
    if ((strcmp(p->name, "attention") == 0 || strcmp(p->name, "cross") == 0) &&
        c->kv_heads != c->heads)
        return say(s, "%lld heads of %lld, %lld of keys · %s", (long long)c->heads,
                   (long long)c->d_head, (long long)c->kv_heads, count);
    if (strcmp(p->name, "attention") == 0 || strcmp(p->name, "cross") == 0)
        return say(s, "%lld heads of %lld · %s", (long long)c->heads, (long long)c->d_head, count);
    if (strcmp(p->name, "ffn") == 0)
        return say(s, "%lld → %lld → %lld · %s", (long long)c->d_model, (long long)c->d_ff,
                   (long long)c->d_model, count);
    const bool loops = face_of(p->name) && face_of(p->name)->loops; /* two of them share a row */
    if (!is_norm(p->name) && !loops && strlen(p->weights) < 24)
        return say(s, "%s · %s", p->weights, count);
    return count;
}

static const char *shape(side *s, int64_t width, bool by_sequence) {
    if (!width) return NULL;
    if (by_sequence) return say(s, "%lld", (long long)width);
    return say(s, "%s × %lld", s->reads_source ? "m" : "n", (long long)width);
}

/* ---- what stands beside a part ---- */

static void add_tile(qkv_diagram_block *b, qkv_diagram_tile tile) {
    size_t k = 0;
    while (k < QKV_TILES && b->tile[k].title) k++;
    if (k < QKV_TILES) b->tile[k] = tile;
}

static const qkv_describe_part *part_named(const side *s, const char *name) {
    for (size_t i = 0; i < s->d->n; i++)
        if (strcmp(s->d->parts[i].name, name) == 0 &&
            strcmp(s->d->parts[i].side, s->decoder ? "decoder" : "encoder") == 0)
            return &s->d->parts[i];
    return NULL;
}

/* The first sentence of a help, in lines that a small box holds. */
static void wrap(const char *help, char out[TEXT]) {
    size_t n = 0, line = 0;
    for (const char *word = help; *word && *word != ';' && *word != '(';) {
        const size_t len = strcspn(word, " ;(");
        if (n + len + 2 >= TEXT) break;
        if (n) out[n++] = line + len + 1 > TILE_CHARACTERS ? '\n' : ' ';
        line = n && out[n - 1] == '\n' ? len : line + len + (n > 0);
        memcpy(out + n, word, len);
        n += len;
        word += len + strspn(word + len, " ");
    }
    out[n] = 0;
}

/* Positions where they act: added to the embedding, or within each self-attention. */
static void add_positions(side *s, qkv_diagram_block *b, bool embedding) {
    const qkv_position_kind kind = qkv_config_position(s->config, s->decoder);
    const bool on_scores = qkv_position_has(kind, QKV_POSITION_ON_SCORES),
               turns = qkv_position_has(kind, QKV_POSITION_ROTATES);
    if (kind == QKV_POSITION_NONE || embedding == (on_scores || turns)) return;
    const qkv_describe_part *table = part_named(s, "position");
    char detail[TEXT];
    wrap(qkv_position_helps[kind], detail);
    const char *held = table && table->parameters ? say(s, "\n%s%s%s", table->weights,
                                                        table->parameters > 9999999 ? "\n" : " · ",
                                                        grouped(s, table->parameters))
                                                  : "";
    const qkv_glyph glyph = qkv_position_has(kind, QKV_POSITION_WANTS_TREES) ? QKV_GLYPH_TREE
                            : turns                                          ? QKV_GLYPH_TURN
                            : on_scores                                      ? QKV_GLYPH_DISTANCES
                            : qkv_position_has(kind, QKV_POSITION_HAS_END)   ? QKV_GLYPH_TABLE
                                                                             : QKV_GLYPH_WAVES;
    add_tile(b, (qkv_diagram_tile){.title = say(s, "Positions: %s", qkv_position_names[kind]),
                                   .detail = say(s, "%s%s", detail, held),
                                   .kind = QKV_BLOCK_INPUT,
                                   .glyph = glyph,
                                   .added = embedding});
}

static void add_segments(side *s, qkv_diagram_block *b, const qkv_describe_part *p) {
    add_tile(b, (qkv_diagram_tile){.title = "Segments",
                                   .detail = say(s, "which of the texts\n%s · %s", p->weights,
                                                 grouped(s, p->parameters)),
                                   .kind = QKV_BLOCK_INPUT,
                                   .added = true});
}

static void add_ngrams(side *s, qkv_diagram_block *b, const qkv_describe_part *p) {
    const qkv_config *c = s->config;
    const char *what = c->ngram_chars > 0 ? say(s, "1 – %lld tokens, 3 – %lld characters",
                                                (long long)c->ngrams, (long long)c->ngram_chars)
                                          : say(s, "of 1 – %lld tokens", (long long)c->ngrams);
    add_tile(b, (qkv_diagram_tile){
                    .title = "N-grams, a linear model",
                    .detail = say(s, "%s\n%s · %s", what, p->weights, grouped(s, p->parameters)),
                    .kind = QKV_BLOCK_OUTPUT,
                    .added = true,
                    .from_input = true});
}

static void add_start(side *s, qkv_diagram_block *b, const qkv_describe_part *p) {
    add_tile(b, (qkv_diagram_tile){
                    .title = "First state",
                    .detail = say(s, "tanh(W · mean of the source)\n%s", grouped(s, p->parameters)),
                    .kind = QKV_BLOCK_ATTENTION});
}

/* ---- blocks ---- */

static qkv_diagram_block *add_block(side *s) {
    if (s->n == BLOCKS) return NULL;
    return &s->blocks[s->n++];
}

/* One vector of a text's many, before a head of classes. */
static void add_pool(side *s) {
    const char *below = s->n ? s->blocks[s->n - 1].shape : NULL,
               *width = below ? strrchr(below, ' ') : NULL;
    qkv_diagram_block *b = add_block(s);
    if (!b) return;
    *b = (qkv_diagram_block){.title = say(s, "Pooling: %s", qkv_pool_names[s->config->pool]),
                             .detail = "one vector of all",
                             .kind = QKV_BLOCK_OUTPUT,
                             .shape = width ? width + 1 : NULL};
}

/* Parts that are no box of their own but stand beside one; false: this one is not. */
static bool add_beside(side *s, const qkv_describe_part *p) {
    qkv_diagram_block *first = &s->blocks[0], *last = s->n ? &s->blocks[s->n - 1] : NULL;
    if (strcmp(p->name, "position") == 0) return true; /* see add_positions */
    if (strcmp(p->name, "start") == 0) return true;    /* see add_part */
    if (!last || (strcmp(p->name, "segments") != 0 && strcmp(p->name, "ngrams") != 0)) return false;
    if (*p->name == 's')
        add_segments(s, first, p);
    else
        add_ngrams(s, last, p);
    return true;
}

static void add_part(side *s, const qkv_describe_part *p) {
    if (add_beside(s, p)) return;
    if (p->by_sequence && p->layer < 0) add_pool(s); /* a head that reads one vector of a text */
    const struct face *f = face_of(p->name);
    const bool norm = is_norm(p->name), beside = strcmp(p->name, "backward") == 0;
    qkv_diagram_block *b = add_block(s);
    if (!b) return;
    *b = (qkv_diagram_block){.title = norm ? s->config->norm_kind == QKV_NORM_RMS ? "RMSNorm"
                                                                                  : "LayerNorm"
                                      : f && f->make_title ? f->make_title(s)
                                      : f                  ? f->title
                                                           : p->name,
                             .detail = detail_of(s, p),
                             .kind = norm ? QKV_BLOCK_NORM
                                     : f  ? f->kind
                                          : QKV_BLOCK_DENSE,
                             .from_first = f ? f->from_first : NULL,
                             .shape = shape(s, beside ? 2 * p->width : p->width, p->by_sequence),
                             .beside = beside,
                             .loops = f && f->loops};
    const bool transformer = s->config->arch == QKV_ARCH_TRANSFORMER;
    if (transformer && strcmp(p->name, "embedding") == 0) add_positions(s, b, true);
    if (strcmp(p->name, "attention") == 0) add_positions(s, b, false);
    const bool starts = p > s->d->parts && strcmp(p[-1].name, "start") == 0;
    if (starts) add_start(s, b, p - 1);
}

/* Equal layers from part `at` on: one of them in a frame. Returns the index of what follows. */
static size_t add_layers(side *s, size_t at) {
    size_t parts;
    const int layers = qkv_describe_layers(s->d, at, false, &parts),
              first = s->d->parts[at].layer + 1;
    const size_t from = s->n;
    for (size_t i = 0; i < parts; i++) add_part(s, &s->d->parts[at + i]);
    const bool pre = s->config->norm == QKV_NORM_PRE;
    for (size_t i = from; i < s->n && s->config->arch == QKV_ARCH_TRANSFORMER; i++)
        if (s->blocks[i].kind != QKV_BLOCK_NORM)
            s->blocks[i].residual =
                pre && i > from && s->blocks[i - 1].kind == QKV_BLOCK_NORM ? 2 : 1;
    if (s->n_groups < GROUPS)
        s->groups[s->n_groups++] =
            (qkv_diagram_group){from, s->n,
                                layers == 1  ? say(s, "layer %d", first)
                                : first == 1 ? say(s, "× %d", layers)
                                             : say(s, "layers %d – %d", first, first + layers - 1)};
    return at + parts * (size_t)layers;
}

/* ---- the whole ---- */

static const char *output_of(side *s, qkv_shape shape) {
    if (!s->decoder && shape.decoder) return "out: what the decoder reads";
    switch (shape.head) {
    case QKV_HEAD_CLASSES:
        return say(s, "out: a score for each of %lld classes", (long long)s->config->classes);
    case QKV_HEAD_TAGS:
        return say(s, "out: scores of %lld labels for each word", (long long)s->config->classes);
    case QKV_HEAD_VOCAB:
        return shape.decoder ? "out: scores of the next token" : "out: scores of the hidden tokens";
    case QKV_HEAD_NUMBER:
        return "out: a number for each text";
    default:
        return shape.head == QKV_HEAD_NONE ? "out: a vector for each token"
                                           : "out: an answer for each text";
    }
}

static const char *input_of(const side *s, qkv_shape shape) {
    if (s->reads_source) return "in: target tokens so far, m ids";
    if (shape.encoder && shape.decoder) return "in: source tokens, n ids";
    if (s->decoder) return "in: tokens so far, n ids";
    return s->config->pairs ? "in: tokens of both texts, n ids" : "in: tokens, n ids";
}

static void collect(const qkv_description *d, side sides[2]) {
    for (size_t i = 0; i < d->n;) {
        const qkv_describe_part *p = &d->parts[i];
        /* A head that belongs to no side stands on the last one there is. */
        side *s = &sides[*p->side ? strcmp(p->side, "decoder") == 0 : d->decoder.layers > 0];
        if (p->layer >= 0)
            i = add_layers(s, i);
        else
            add_part(s, p), i++;
    }
}

static void write_titles(const qkv_description *d, const qkv_config *c, char title[TEXT],
                         char subtitle[TEXT]) {
    static const char *const archs[] = {
        [QKV_ARCH_TRANSFORMER] = "Transformer", [QKV_ARCH_LSTM] = "LSTM", [QKV_ARCH_GRU] = "GRU"};
    const qkv_shape shape = qkv_shape_of(c->task);
    char total[40];
    qkv_print_grouped((double)d->total, total);
    snprintf(title, TEXT, "%s: %s %s, %s parameters", qkv_task_names[c->task], archs[c->arch],
             !shape.decoder   ? "encoder"
             : !shape.encoder ? "decoder"
                              : "encoder and decoder",
             total);
    if (c->arch == QKV_ARCH_TRANSFORMER)
        snprintf(subtitle, TEXT, "width %lld · %lld heads of %lld · feed-forward %lld · %s-norm",
                 (long long)c->d_model, (long long)c->heads, (long long)c->d_head,
                 (long long)c->d_ff, c->norm == QKV_NORM_PRE ? "pre" : "post");
    else
        snprintf(subtitle, TEXT, "width %lld · state %lld", (long long)c->d_model,
                 (long long)c->d_state);
}

qkv_status qkv_describe_svg(const qkv_description *d, qkv_buf *out) {
    const qkv_config *config = qkv_description_config(d);
    const qkv_shape shape = qkv_shape_of(config->task);
    side *sides;
    QKV_TRY_ALLOC(sides = qkv_zalloc(2, sizeof *sides));
    for (int i = 0; i < 2; i++) {
        sides[i].d = d, sides[i].config = config, sides[i].decoder = i == 1;
        sides[i].reads_source = i == 1 && shape.encoder;
    }
    collect(d, sides);
    qkv_diagram_stack stacks[2];
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        side *s = &sides[i];
        if (s->n == 0) continue;
        stacks[n++] = (qkv_diagram_stack){.title = i ? "Decoder" : "Encoder",
                                          .input = input_of(s, shape),
                                          .output = output_of(s, shape),
                                          .blocks = s->blocks,
                                          .n = s->n,
                                          .groups = s->groups,
                                          .n_groups = s->n_groups};
    }
    char title[TEXT], subtitle[TEXT];
    write_titles(d, config, title, subtitle);
    const qkv_diagram picture = {
        .title = title,
        .subtitle = subtitle,
        .legend = n == 2 ? "n, m: how many tokens source and target have; ⊕ sum; ‖ joined; numbers "
                           "after a dot: parameters"
                         : "n: how many tokens; ⊕ sum; ‖ joined; after a dot: parameters",
        .stacks = stacks,
        .n = n};
    const qkv_status status = qkv_diagram_svg(&picture, out);
    qkv_free(sides);
    return status;
}
