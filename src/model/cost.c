/* The walk over a model's parts, with the cost of each.
 *
 * Multiply-adds are those of one forward pass: a linear map of R rows costs R·in·out; attention
 * 2·heads·d_head for each pair of a query and a key that it sees; lookups, norms and activations
 * are free. */
#include "model/cost.h"

typedef struct walker {
    const qkv_model *m;
    const qkv_workload *work;
    qkv_cost_fn visit;
    void *user;
} walker;

qkv_workload qkv_workload_even(int64_t batch, int64_t length) {
    double rows = (double)batch * (double)length, squares = rows * (double)length;
    return (qkv_workload){.source_rows = rows,
                          .target_rows = rows,
                          .target_squares = squares,
                          .batch = batch,
                          .length = length};
}

static double count_rows(const qkv_layout *l) {
    double rows = 0;
    for (int32_t s = 0; l && s < l->n; s++) rows += qkv_layout_len(l, s);
    return rows;
}

qkv_workload qkv_workload_of(const qkv_layout *source, const qkv_layout *target) {
    qkv_workload w = {.source = source, .target = target};
    w.source_rows = count_rows(source);
    w.target_rows = count_rows(target);
    for (int32_t s = 0; target && s < target->n; s++)
        w.target_squares += (double)qkv_layout_len(target, s) * qkv_layout_len(target, s);
    w.batch = source ? source->n : target ? target->n : 0;
    return w;
}

/* Pairs of self-attention over one side's sequences. */
static double self_pairs(const walker *w, const qkv_pattern *p, bool target) {
    const qkv_layout *l = target ? w->work->target : w->work->source;
    if (!l) return (double)w->work->batch * qkv_pattern_pairs(p, w->work->length);
    double pairs = 0;
    for (int32_t s = 0; s < l->n; s++) pairs += qkv_pattern_pairs(p, qkv_layout_len(l, s));
    return pairs;
}

static double cross_pairs(const walker *w) {
    const qkv_layout *a = w->work->source, *b = w->work->target;
    if (!a || !b) return w->work->target_squares;
    double pairs = 0;
    for (int32_t s = 0; s < a->n && s < b->n; s++)
        pairs += (double)qkv_layout_len(a, s) * qkv_layout_len(b, s);
    return pairs;
}

static double rows_of(const walker *w, bool target) {
    return target ? w->work->target_rows : w->work->source_rows;
}

static void add_param(qkv_cost_part *part, const qkv_param *p) {
    if (p && part->n_params < QKV_PART_PARAMS) part->params[part->n_params++] = p;
}

/* Adds a linear map over `rows` rows. */
static void add_dense(qkv_cost_part *part, const qkv_dense *d, double rows) {
    if (!d->weight) return;
    add_param(part, d->weight);
    add_param(part, d->bias);
    part->macs += rows * (double)d->weight->spec.rows * (double)d->weight->spec.cols;
    part->kept += (double)d->weight->spec.rows;
}

/* `brief`: the normed rows are made again in backward. */
static void visit_norm(const walker *w, qkv_cost_part part, const char *name,
                       const qkv_norm_layer *n, bool brief) {
    if (!n->gain) return;
    part.name = name;
    add_param(&part, n->gain);
    add_param(&part, n->bias);
    part.width = n->gain->spec.cols;
    part.kept =
        brief ? 2 : (double)part.width + 2; /* mean, deviation; the sum lies over what it adds */
    w->visit(w->user, &part);
}

static void visit_attention(const walker *w, qkv_cost_part part, const qkv_stack *s,
                            const qkv_layer *l) {
    const qkv_multihead *a = &l->self;
    double rows = rows_of(w, part.target), pairs = self_pairs(w, &l->pattern, part.target);
    int64_t inner = a->spec.heads * a->spec.d_head;
    part.name = "attention";
    part.width = a->spec.d_model;
    part.inside = (a->spec.heads + 2 * a->spec.kv_heads) * a->spec.d_head;
    add_dense(&part, &a->qkv, rows);
    add_dense(&part, &a->out, rows);
    part.kept += (double)inner + a->spec.heads;
    part.macs += 2 * (double)inner * pairs;
    if (a->along_k) {
        double short_rows = (double)a->spec.linformer_rank;
        add_param(&part, a->along_k);
        add_param(&part, a->along_v);
        part.macs += 2 * rows * short_rows * (double)(a->spec.kv_heads * a->spec.d_head);
    }
    if (part.layer >= 0 && s->position.rel_k) {
        add_param(&part, s->position.rel_k[part.layer]);
        add_param(&part, s->position.rel_v[part.layer]);
    }
    w->visit(w->user, &part);
}

static void visit_cross(const walker *w, qkv_cost_part part, const qkv_layer *l) {
    const qkv_multihead *a = &l->cross;
    double rows = rows_of(w, true), memory = rows_of(w, false);
    int64_t inner = a->spec.heads * a->spec.d_head;
    part.name = "cross";
    part.width = a->spec.d_model;
    part.inside = inner;
    add_dense(&part, &a->q, rows);
    add_dense(&part, &a->kv, memory);
    add_dense(&part, &a->out, rows);
    part.kept += (double)inner + a->spec.heads;
    part.macs += 2 * (double)inner * cross_pairs(w);
    w->visit(w->user, &part);
}

static void visit_ffn(const walker *w, qkv_cost_part part, const qkv_ffn *f) {
    double rows = rows_of(w, part.target);
    part.name = "ffn";
    part.width = f->out.weight->spec.rows;
    part.inside = f->out.weight->spec.cols;
    add_dense(&part, &f->in, rows);
    add_dense(&part, &f->out, rows);
    part.kept =
        (double)f->in.weight->spec.rows + (double)part.width; /* before or after the activation */
    w->visit(w->user, &part);
}

static void visit_stack(const walker *w, const qkv_side *side, qkv_cost_part part) {
    const qkv_stack *s = &side->stack;
    const bool pre = s->spec.pre_norm; /* a part's norm stands before it, or after */
    for (int32_t i = 0; i < s->spec.layers; i++) {
        const qkv_layer *l = &s->layers[i];
        part.layer = i;
        if (pre) visit_norm(w, part, "attention_norm", &l->self_norm, true);
        visit_attention(w, part, s, l);
        if (!pre) visit_norm(w, part, "attention_norm", &l->self_norm, false);
        if (pre && s->spec.cross) visit_norm(w, part, "cross_norm", &l->cross_norm, true);
        if (s->spec.cross) visit_cross(w, part, l);
        if (!pre && s->spec.cross) visit_norm(w, part, "cross_norm", &l->cross_norm, false);
        if (pre) visit_norm(w, part, "ffn_norm", &l->ffn_norm, true);
        visit_ffn(w, part, &l->ffn);
        if (!pre) visit_norm(w, part, "ffn_norm", &l->ffn_norm, false);
    }
    part.layer = -1;
    visit_norm(w, part, "norm", &s->final_norm, s->spec.read_once);
}

static void visit_cell(const walker *w, qkv_cost_part part, const qkv_rnn *r,
                       const qkv_rnn_cell *cell, const char *name) {
    double rows = rows_of(w, part.target), gates = (double)cell->w_h->spec.rows;
    part.name = name;
    part.width = r->spec.state;
    part.inside = cell->w_h->spec.rows;
    const qkv_param *all[] = {cell->w_x, cell->w_h, cell->b_x, cell->b_h};
    for (int i = 0; i < 4; i++) add_param(&part, all[i]);
    /* gates, cell and state; the two directions joined; the input with some values dropped */
    double ways = r->spec.bidirectional ? 2 : 1, k = (double)r->spec.state;
    part.kept = gates + (ways + 1) * k;
    if (part.layer > 0 && r->spec.dropout > 0) part.kept += (double)cell->w_x->spec.cols / ways;
    part.macs = rows * gates * (double)(cell->w_x->spec.cols + r->spec.state);
    w->visit(w->user, &part);
}

static void visit_rnn(const walker *w, const qkv_side *side, qkv_cost_part part) {
    const qkv_rnn *r = &side->rnn;
    int32_t ways = r->spec.bidirectional ? 2 : 1;
    for (int32_t i = 0; i < r->spec.layers; i++) {
        part.layer = i;
        if (part.target && w->m->bridge.start) {
            qkv_cost_part start = part;
            start.name = "start";
            start.by_sequence = true;
            start.width = r->spec.state;
            add_dense(&start, &w->m->bridge.start[i], (double)w->work->batch);
            w->visit(w->user, &start);
        }
        visit_cell(w, part, r, &r->cells[i * ways], "forward");
        if (ways == 2) visit_cell(w, part, r, &r->cells[i * ways + 1], "backward");
    }
    if (!part.target || !w->m->bridge.start) return;
    double rows = rows_of(w, true);
    part.layer = -1;
    part.name = "ask";
    part.width = w->m->config.d_model;
    part.inside = w->m->encoder.width + r->spec.state;
    part.macs = 2 * (double)w->m->encoder.width * cross_pairs(w);
    add_dense(&part, &w->m->bridge.ask, rows);
    add_dense(&part, &w->m->bridge.combine, rows);
    w->visit(w->user, &part);
}

static void visit_side(const walker *w, const qkv_side *side) {
    qkv_cost_part part = {.side = side, .layer = -1, .target = side == &w->m->decoder};
    qkv_cost_part table = part;
    bool first = side == &w->m->encoder || !w->m->encoder.name;
    table.name = "embedding";
    table.width = table.inside = w->m->config.d_model;
    table.kept = (double)table.width;
    if (first || side->embedding.table != w->m->encoder.embedding.table)
        add_param(&table, side->embedding.table);
    else
        table.note = "shared with the encoder";
    w->visit(w->user, &table);
    if (side->embedding.segments) {
        qkv_cost_part segments = part;
        segments.name = "segments";
        segments.kept = (double)table.width;
        add_param(&segments, side->embedding.segments);
        w->visit(w->user, &segments);
    }
    if (!side->recurrent && side->stack.position.table) {
        qkv_cost_part position = part;
        position.name = "position";
        add_param(&position, side->stack.position.table);
        w->visit(w->user, &position);
    }
    visit_norm(w, part, "embedding_norm", &side->embedding.norm, false);
    if (side->recurrent)
        visit_rnn(w, side, part);
    else
        visit_stack(w, side, part);
}

static void visit_head(const walker *w) {
    const qkv_head *h = &w->m->head;
    bool target = w->m->shape.decoder;
    qkv_cost_part part = {.side = target ? &w->m->decoder : NULL, .layer = -1, .target = target};
    const double rows = w->work->guessed_rows > 0 ? w->work->guessed_rows : rows_of(w, target);
    if (qkv_is_pooled(w->m->shape)) {
        part.name = w->m->shape.head == QKV_HEAD_NUMBER ? "number" : "classes";
        part.by_sequence = true;
        part.width = h->classes.weight->spec.rows;
        add_dense(&part, &h->pooler, (double)w->work->batch);
        add_dense(&part, &h->classes, (double)w->work->batch);
        w->visit(w->user, &part);
        qkv_cost_part ngrams = {
            .layer = -1, .name = "ngrams", .by_sequence = true, .width = part.width};
        add_param(&ngrams, h->ngrams);
        add_param(&ngrams, h->ngram_idf);
        if (h->ngrams) w->visit(w->user, &ngrams);
    } else if (w->m->shape.head == QKV_HEAD_TAGS) {
        part.name = "tags";
        part.width = h->classes.weight->spec.rows;
        add_dense(&part, &h->classes, rows);
        w->visit(w->user, &part);
    } else if (w->m->shape.head == QKV_HEAD_VOCAB) {
        part.name = "head";
        add_dense(&part, &h->transform, rows);
        if (h->transformed) add_param(&part, h->transform_norm.gain);
        if (h->transformed) add_param(&part, h->transform_norm.bias);
        part.width = h->weight->spec.rows;
        if (h->tied)
            part.note = "tied to the embedding";
        else
            add_param(&part, h->weight);
        add_param(&part, h->bias);
        part.macs += rows * (double)h->weight->spec.rows * (double)h->weight->spec.cols;
        w->visit(w->user, &part);
    }
}

void qkv_model_walk(const qkv_model *m, const qkv_workload *work, qkv_cost_fn visit, void *user) {
    walker w = {m, work, visit, user};
    if (m->encoder.name) visit_side(&w, &m->encoder);
    if (m->decoder.name) visit_side(&w, &m->decoder);
    visit_head(&w);
}

static void add_macs(void *user, const qkv_cost_part *part) {
    *(double *)user += part->macs;
}

double qkv_model_macs(const qkv_model *m, const qkv_layout *src, const qkv_layout *tgt,
                      int64_t guessed) {
    qkv_workload work = qkv_workload_of(src, tgt);
    work.guessed_rows = (double)guessed;
    double macs = 0;
    qkv_model_walk(m, &work, add_macs, &macs);
    return macs;
}
