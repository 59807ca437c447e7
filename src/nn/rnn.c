/* Recurrent stacks; see rnn.h. The cells' equations and gradients are in ops. */
#include "nn/rnn.h"

#include "base/mem.h"

static int32_t directions(const qkv_rnn_spec *s) {
    return s->bidirectional ? 2 : 1;
}

static qkv_rnn_cell declare_cell(qkv_params *p, const qkv_rnn_spec *s, int64_t in,
                                 const char *stack, int32_t layer, const char *way) {
    int64_t gates = s->cell == QKV_CELL_LSTM ? 4 : 3, k = s->state;
    qkv_param_spec weight = {
        .rows = gates * k, .init = QKV_INIT_XAVIER, .fan_out = k, .product = true};
    qkv_param_spec bias = {.rows = 1, .cols = gates * k, .vector = true, .no_decay = true};
    qkv_rnn_cell cell = {0};
    weight.cols = in;
    cell.w_x = qkv_param_declare(p, &weight, "%s.layers.%d.%s.input.weight", stack, layer, way);
    weight.cols = k;
    if (s->cell == QKV_CELL_GRU) weight.split = 2 * k; /* its last gate is computed apart */
    cell.w_h = qkv_param_declare(p, &weight, "%s.layers.%d.%s.state.weight", stack, layer, way);
    cell.b_x = qkv_param_declare(p, &bias, "%s.layers.%d.%s.input.bias", stack, layer, way);
    if (s->cell == QKV_CELL_GRU)
        cell.b_h = qkv_param_declare(p, &bias, "%s.layers.%d.%s.state.bias", stack, layer, way);
    return cell;
}

qkv_status qkv_rnn_declare(qkv_rnn *r, const qkv_rnn_spec *spec, qkv_params *params,
                           const char *name) {
    static const char *const ways[] = {"forward", "backward"};
    *r = (qkv_rnn){.spec = *spec};
    int32_t ways_n = directions(spec);
    QKV_TRY_ALLOC(r->cells = qkv_zalloc((size_t)spec->layers * (size_t)ways_n, sizeof *r->cells));
    for (int32_t i = 0; i < spec->layers; i++)
        for (int32_t w = 0; w < ways_n; w++)
            r->cells[i * ways_n + w] = declare_cell(
                params, spec, i == 0 ? spec->in : qkv_rnn_width(spec), name, i, ways[w]);
    return params->status;
}

void qkv_rnn_free(qkv_rnn *r) {
    qkv_free(r->cells);
    *r = (qkv_rnn){0};
}

void qkv_rnn_initialise(qkv_rnn *r) {
    if (r->spec.cell != QKV_CELL_LSTM) return;
    for (int32_t i = 0; i < r->spec.layers * directions(&r->spec); i++)
        for (int64_t k = 0; k < r->spec.state; k++) r->cells[i].b_x->tensor.data[k] = 1;
}

static qkv_tensor *run_cell(qkv_tape *t, const qkv_rnn *r, const qkv_rnn_cell *cell, qkv_tensor *x,
                            const qkv_recurrent_spec *spec) {
    if (r->spec.cell == QKV_CELL_LSTM)
        return qkv_lstm(t, x, qkv_of(cell->w_x), qkv_of(cell->w_h), qkv_of(cell->b_x), spec);
    return qkv_gru(t, x, qkv_of(cell->w_x), qkv_of(cell->w_h), qkv_of(cell->b_x), qkv_of(cell->b_h),
                   spec);
}

qkv_tensor *qkv_rnn_apply(qkv_tape *t, const qkv_rnn *r, qkv_tensor *x, qkv_layout layout,
                          qkv_rnn_state *state) {
    int32_t ways = directions(&r->spec);
    for (int32_t i = 0; i < r->spec.layers; i++) {
        qkv_recurrent_spec spec = {.layout = layout};
        if (i > 0 && r->spec.dropout > 0) x = qkv_dropout(t, x, (real)r->spec.dropout);
        if (state) {
            spec.h0 = state->h[i];
            if (state->c) spec.c0 = state->c[i];
            if (state->keep) {
                spec.h_last = &state->h[i];
                if (state->c) spec.c_last = &state->c[i];
            }
        }
        qkv_tensor *way[2] = {run_cell(t, r, &r->cells[i * ways], x, &spec), NULL};
        if (r->spec.bidirectional) {
            spec.reverse = true;
            way[1] = run_cell(t, r, &r->cells[i * ways + 1], x, &spec);
            x = qkv_concat(t, way, 2);
        } else {
            x = way[0];
        }
    }
    return x;
}
