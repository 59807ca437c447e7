/* Building a model: from a configuration to declared parameters. No weight is made here, so any
 * size takes milliseconds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/parts.h"
#include "model/weights.h"

/* What feeds the residual stream of L layers is made smaller, so that the sum of all keeps its size
 * (GPT-2). Post-norm stacks norm after every sum and need none of it. */
static double residual_gain(const qkv_config *c, int64_t layers, int parts) {
    return c->norm == QKV_NORM_PRE ? 1 / sqrt((double)(parts * layers)) : 1;
}

static qkv_position_spec position_spec(const qkv_config *c, bool causal, int64_t layers) {
    qkv_position_kind kind = qkv_config_position(c, causal);
    bool rope = kind == QKV_POSITION_ROPE, t5 = kind == QKV_POSITION_T5;
    return (qkv_position_spec){
        .kind = kind,
        .d_model = qkv_config_embedding(c), /* of what is added to embeddings */
        .d_head = c->d_head,
        .max_len = c->max_len,
        .heads = (int32_t)c->heads,
        .layers = (int32_t)layers,
        .causal = causal,
        .base = rope ? c->rope_base : c->sinusoidal_base,
        .pairing = (qkv_pairing)(rope ? c->rope_pairing : c->sinusoidal_pairing),
        .rates = (qkv_wave_rates)c->sinusoidal_rates,
        .first = c->sinusoidal_first,
        .turned = c->rope_width ? c->rope_width : c->d_head,
        .scaling = {.kind = (qkv_rope_scaling_kind)c->rope_scaling,
                    .factor = c->rope_factor,
                    .length = (double)c->rope_length,
                    .low = c->rope_low,
                    .high = c->rope_high,
                    .fast = c->rope_fast,
                    .slow = c->rope_slow,
                    .attention = c->rope_attention},
        .distance = (int32_t)(t5 ? c->t5_distance : c->rel_distance),
        .buckets = (int32_t)c->t5_buckets,
    };
}

static qkv_stack_spec stack_spec(const qkv_config *c, bool decoder, bool cross) {
    int64_t layers = decoder ? c->decoder_layers : c->encoder_layers;
    double gain = residual_gain(c, layers, cross ? 3 : 2);
    qkv_pattern_kind pattern = qkv_config_pattern(c, decoder);
    bool linformer = pattern == QKV_PATTERN_LINFORMER;
    return (qkv_stack_spec){
        .layers = (int32_t)layers,
        .cross = cross,
        .pre_norm = c->norm == QKV_NORM_PRE,
        .out_norm = c->norm_after,
        .parallel = c->parallel,
        .shared = c->share_layers,
        .bare_norm = !c->norm_bias,
        .first_bare = !c->first_norm,
        .full_every = (int32_t)c->full_every,
        .full_at = (int32_t)c->full_at,
        .local_base = c->rope_base_local,
        .biased = c->position_bias,
        .bias_distance = (int32_t)c->t5_distance,
        .read_once = decoder || !qkv_shape_of(c->task).decoder, /* else each layer's cross reads */
        .norm_kind = (qkv_norm_kind)c->norm_kind,
        .norm_eps = c->norm_eps,
        .dropout = c->dropout,
        .layer_drop = c->layer_drop,
        .attention = {.d_model = c->d_model,
                      .d_head = c->d_head,
                      .heads = (int32_t)c->heads,
                      .kv_heads = (int32_t)c->kv_heads,
                      .projections = c->projections,
                      .qkv_bias = c->qkv_bias,
                      .out_bias = c->out_bias,
                      .scale = (qkv_score_scale)c->attention_scale,
                      .factor = c->score_scale,
                      .normed = c->qk_norm,
                      .norm_eps = c->norm_eps,
                      .dropout = c->attention_dropout,
                      .init = (qkv_init_scheme)c->init,
                      .out_gain = gain,
                      .linformer_rank = linformer ? c->linformer_rank : 0,
                      .linformer_per_head = c->linformer_per_head,
                      .max_len = c->max_len},
        .ffn = {.kind = (qkv_ffn_kind)c->activation,
                .d_model = c->d_model,
                .d_ff = c->d_ff,
                .bias = c->ffn_bias,
                .init = (qkv_init_scheme)c->init,
                .out_gain = gain},
        .pattern = {.kind = pattern,
                    .causal = decoder,
                    .window = (int32_t)c->window,
                    .global_tokens = (int32_t)c->global_tokens,
                    .random_links = (int32_t)c->random_links,
                    .rank = (int32_t)c->linformer_rank},
        .position = position_spec(c, decoder, layers),
    };
}

static qkv_rnn_spec rnn_spec(const qkv_config *c, bool decoder) {
    return (qkv_rnn_spec){
        .cell = c->arch == QKV_ARCH_LSTM ? QKV_CELL_LSTM : QKV_CELL_GRU,
        .layers = (int32_t)(decoder ? c->decoder_layers : c->encoder_layers),
        .bidirectional = !decoder && c->bidirectional,
        .in = c->d_model,
        .state = c->d_state,
        .dropout = c->dropout,
    };
}

/* One table for both sides when they share it; its name says so. */
static const char *table_name(const qkv_model *m, const qkv_side *side) {
    bool shared = m->shape.encoder && m->shape.decoder && m->config.share_embeddings;
    if (shared) return "embedding.weight";
    return side == &m->encoder ? "encoder.embedding.weight" : "decoder.embedding.weight";
}

static qkv_norm_shape norm_shape(const qkv_config *c, int64_t width) {
    return (qkv_norm_shape){.kind = (qkv_norm_kind)c->norm_kind,
                            .bare = !c->norm_bias,
                            .width = width,
                            .eps = c->norm_eps};
}

static void declare_embedding(qkv_model *m, qkv_side *side, int64_t vocab, bool tied) {
    const qkv_config *c = &m->config;
    double deviation = c->embedding_scale ? 1 / sqrt((double)c->d_model) : 0.02;
    qkv_param_spec table = {
        .rows = vocab,
        .cols = qkv_config_embedding(c),
        .init = QKV_INIT_NORMAL,
        .gain = deviation,
        .no_decay = true,
        .narrow = true,
        .sparse = !tied}; /* a tied table's gradient is dense: the head touches every row */
    qkv_embedding_layer *e = &side->embedding;
    e->table = qkv_param_declare(&m->params, &table, "%s", table_name(m, side));
    e->scale = (real)(c->embedding_scale ? sqrt((double)c->d_model) : 1);
    e->dropout = (real)c->embedding_dropout;
    e->normed = c->embedding_norm;
    /* Zeros: a model that gets segments begins as the one that had none. */
    const qkv_param_spec segments = {
        .rows = c->segments, .cols = qkv_config_embedding(c), .no_decay = true};
    if (c->segments)
        e->segments =
            qkv_param_declare(&m->params, &segments, "%s.segment_embedding.weight", side->name);
    char name[QKV_NAME_BYTES];
    snprintf(name, sizeof name, "%s.embedding_norm", side->name);
    const qkv_norm_shape norm = norm_shape(c, qkv_config_embedding(c));
    if (e->normed) e->norm = qkv_norm_declare(&m->params, &norm, name);
    const qkv_dense_spec projection = {.in = qkv_config_embedding(c),
                                       .out = c->d_model,
                                       .bias = true,
                                       .init = (qkv_init_scheme)c->init};
    snprintf(name, sizeof name, "%s.embedding_projection", side->name);
    if (qkv_config_embedding(c) != c->d_model)
        e->projection = qkv_dense_declare(&m->params, &projection, name);
}

static qkv_status declare_side(qkv_model *m, qkv_side *side, bool decoder, bool tied) {
    const qkv_config *c = &m->config;
    side->name = decoder ? "decoder" : "encoder";
    side->recurrent = c->arch != QKV_ARCH_TRANSFORMER;
    declare_embedding(m, side, decoder ? c->target_vocab_size : c->vocab_size, tied);
    if (side->recurrent) {
        qkv_rnn_spec spec = rnn_spec(c, decoder);
        side->width = qkv_rnn_width(&spec);
        return qkv_rnn_declare(&side->rnn, &spec, &m->params, side->name);
    }
    qkv_stack_spec spec = stack_spec(c, decoder, decoder && m->shape.encoder);
    side->width = c->d_model;
    return qkv_stack_declare(&side->stack, &spec, &m->params, side->name);
}

static qkv_status declare_bridge(qkv_model *m) {
    const qkv_config *c = &m->config;
    qkv_rnn_bridge *b = &m->bridge;
    int64_t encoder = m->encoder.width, k = c->d_state;
    qkv_init_scheme init = (qkv_init_scheme)c->init;
    QKV_TRY_ALLOC(b->start = qkv_zalloc((size_t)c->decoder_layers, sizeof *b->start));
    for (int64_t i = 0; i < c->decoder_layers; i++) {
        char name[QKV_NAME_BYTES];
        snprintf(name, sizeof name, "decoder.layers.%d.start", (int)i);
        b->start[i] = qkv_dense_declare(
            &m->params, &(qkv_dense_spec){.in = encoder, .out = k, .bias = true, .init = init},
            name);
    }
    b->ask = qkv_dense_declare(&m->params, &(qkv_dense_spec){.in = k, .out = encoder, .init = init},
                               "decoder.ask");
    b->combine = qkv_dense_declare(
        &m->params,
        &(qkv_dense_spec){.in = encoder + k, .out = c->d_model, .bias = true, .init = init},
        "decoder.combine");
    m->decoder.width = c->d_model;
    return QKV_OK;
}

static void declare_vocab_head(qkv_model *m, const qkv_side *from) {
    const qkv_config *c = &m->config;
    qkv_head *h = &m->head;
    int64_t vocab = from == &m->decoder ? c->target_vocab_size : c->vocab_size;
    qkv_init_scheme init = (qkv_init_scheme)c->init;
    int64_t width = from->width;
    h->transformed = c->head_transform;
    if (h->transformed) {
        if (!from->recurrent) width = qkv_config_embedding(c);
        const qkv_norm_shape norm = norm_shape(c, width);
        h->transform = qkv_dense_declare(
            &m->params,
            &(qkv_dense_spec){.in = from->width, .out = width, .bias = c->norm_bias, .init = init},
            "head.transform");
        h->transform_norm = qkv_norm_declare(&m->params, &norm, "head.norm");
    }
    h->tied = c->tie;
    if (h->tied) {
        h->weight = from->embedding.table;
        h->weight->spec.product = true;
    } else {
        qkv_dense_spec spec = {.in = width, .out = vocab, .init = init};
        h->weight = qkv_dense_declare(&m->params, &spec, "head").weight;
    }
    qkv_param_spec bias = {.rows = 1, .cols = vocab, .vector = true, .no_decay = true};
    if (c->head_bias) h->bias = qkv_param_declare(&m->params, &bias, "head.bias");
}

static void declare_class_head(qkv_model *m, const qkv_side *from) {
    const qkv_config *c = &m->config;
    qkv_dense_spec pooler = {
        .in = from->width, .out = from->width, .bias = true, .init = (qkv_init_scheme)c->init};
    qkv_dense_spec classes = pooler;
    classes.out = c->classes;
    const bool pooled = qkv_is_pooled(m->shape);
    if (pooled && c->pooler != QKV_POOLER_NONE)
        m->head.pooler = qkv_dense_declare(&m->params, &pooler, "head.pooler");
    m->head.classes = qkv_dense_declare(&m->params, &classes, "head.classes");
    qkv_param_spec table = {
        .rows = c->ngram_buckets, .cols = c->classes, .no_decay = true, .fixed = true};
    qkv_param_spec idf = {
        .rows = 1, .cols = c->ngram_buckets, .vector = true, .no_decay = true, .fixed = true};
    if (pooled && c->ngrams)
        m->head.ngrams = qkv_param_declare(&m->params, &table, "head.ngrams.weight");
    if (pooled && c->ngrams && c->ngram_idf)
        m->head.ngram_idf = qkv_param_declare(&m->params, &idf, "head.ngrams.idf");
}

static qkv_status declare_all(qkv_model *m) {
    const qkv_shape *shape = &m->shape;
    bool tied = shape->head == QKV_HEAD_VOCAB && m->config.tie;
    bool shared = shape->encoder && shape->decoder && m->config.share_embeddings;
    /* A table is dense as soon as one of its users is the head. */
    if (shape->encoder)
        QKV_TRY(declare_side(m, &m->encoder, false, tied && (shared || !shape->decoder)));
    if (shape->decoder) QKV_TRY(declare_side(m, &m->decoder, true, tied));
    if (shape->encoder && shape->decoder && m->decoder.recurrent) QKV_TRY(declare_bridge(m));
    const qkv_side *last = shape->decoder ? &m->decoder : &m->encoder;
    if (shape->head == QKV_HEAD_VOCAB) declare_vocab_head(m, last);
    if (qkv_has_labels(*shape) || qkv_is_pooled(*shape)) declare_class_head(m, last);
    return m->params.status;
}

qkv_status qkv_model_build(const qkv_config *config, qkv_model **out) {
    qkv_model *m;
    *out = NULL;
    QKV_TRY_ALLOC(m = qkv_zalloc(1, sizeof *m));
    qkv_params_init(&m->params);
    qkv_status status = qkv_config_resolve(config, &m->config);
    if (status == QKV_OK) {
        m->shape = qkv_shape_of(m->config.task);
        m->built_for = m->config.max_len;
        status = declare_all(m);
    }
    if (status != QKV_OK) {
        qkv_model_free(m);
        return status;
    }
    *out = m;
    return QKV_OK;
}

/* Tables of positions and the like. */
static qkv_status allocate_stacks(qkv_model *m) {
    qkv_side *sides[] = {&m->encoder, &m->decoder};
    for (int i = 0; i < 2; i++)
        if (sides[i]->name && !sides[i]->recurrent) QKV_TRY(qkv_stack_allocate(&sides[i]->stack));
    return QKV_OK;
}

qkv_status qkv_model_allocate(qkv_model *m, bool for_training) {
    if (for_training && m->config.weights != QKV_WEIGHT_F32)
        return qkv_fail(QKV_USAGE,
                        "weights=%s is how a trained model is kept; train with weights=f32 and "
                        "use qkv quantize afterwards",
                        qkv_weight_names[m->config.weights]);
    QKV_TRY(qkv_params_allocate(&m->params, for_training));
    return allocate_stacks(m);
}

qkv_status qkv_model_open(qkv_model *m, const char *path) {
    QKV_TRY(qkv_weights_map(&m->params, path, &m->file));
    return qkv_model_opened(m);
}

qkv_status qkv_model_opened(qkv_model *m) {
    QKV_TRY(qkv_weights_check(&m->params));
    return allocate_stacks(m);
}

bool qkv_model_is_quantized(const qkv_model *m) {
    for (size_t i = 0; i < m->params.n; i++)
        if (m->params.list[i]->tensor.weight) return true;
    return false;
}

qkv_status qkv_model_plain(const qkv_model *m, qkv_model **out) {
    QKV_TRY(qkv_model_build(&m->config, out));
    qkv_status status = qkv_weights_plain(&m->params, &(*out)->params);
    if (status == QKV_OK) status = allocate_stacks(*out);
    if (status == QKV_OK) return QKV_OK;
    qkv_model_free(*out);
    *out = NULL;
    return status;
}

void qkv_model_keep(qkv_model *m, void *what, void (*free)(void *what)) {
    m->kept = what;
    m->free_kept = free;
}

void qkv_model_initialise(qkv_model *m, uint64_t seed) {
    qkv_params_initialise(&m->params, seed);
    qkv_side *sides[] = {&m->encoder, &m->decoder};
    for (int i = 0; i < 2; i++)
        if (sides[i]->name && sides[i]->recurrent) qkv_rnn_initialise(&sides[i]->rnn);
}

void qkv_model_free(qkv_model *m) {
    if (!m) return;
    qkv_side *sides[] = {&m->encoder, &m->decoder};
    for (int i = 0; i < 2; i++) {
        if (!sides[i]->name) continue;
        if (sides[i]->recurrent)
            qkv_rnn_free(&sides[i]->rnn);
        else
            qkv_stack_free(&sides[i]->stack);
    }
    qkv_free(m->bridge.start);
    qkv_params_free(&m->params);
    qkv_safetensors_close(&m->file);
    if (m->kept) m->free_kept(m->kept);
    qkv_free(m);
}

const qkv_config *qkv_model_config(const qkv_model *m) {
    return &m->config;
}

/* What one side has that ends at max_len; NULL: nothing. */
static const char *end_of(const qkv_model *m, bool decoder) {
    const qkv_config *c = &m->config;
    if (c->arch != QKV_ARCH_TRANSFORMER || !(decoder ? m->shape.decoder : m->shape.encoder))
        return NULL;
    if (qkv_position_has(qkv_config_position(c, decoder), QKV_POSITION_HAS_END))
        return "its learned positions end there; train with position=rope, alibi, sinusoidal, t5 "
               "or relative, which have no end";
    if (qkv_config_pattern(c, decoder) == QKV_PATTERN_LINFORMER)
        return "Linformer's projections end there; train with another attention";
    return NULL;
}

qkv_status qkv_model_may_read(const qkv_model *m, int64_t n) {
    const char *why = end_of(m, false);
    if (!why) why = end_of(m, true);
    if (n <= m->built_for || !why) return QKV_OK;
    return qkv_fail(QKV_USAGE, "this model reads at most %lld tokens, not %lld: %s",
                    (long long)m->built_for, (long long)n, why);
}

qkv_status qkv_model_read_up_to(qkv_model *m, int64_t n) {
    enum { MOST = 1 << 20 }; /* as config.def has it */
    if (n < 2 || n > MOST)
        return qkv_fail(QKV_USAGE, "a longest text of %lld tokens; 2 to %d are possible",
                        (long long)n, MOST);
    QKV_TRY(qkv_model_may_read(m, n));
    m->config.max_len = n;
    m->config.cut = 0;
    return QKV_OK;
}

qkv_status qkv_model_pack(qkv_model *m) {
    const bool many = m->shape.encoder && m->shape.decoder;
    return qkv_params_pack(&m->params, many);
}

qkv_params *qkv_model_params(qkv_model *m) {
    return &m->params;
}

const qkv_tensor *qkv_model_embeddings(const qkv_model *m) {
    return &m->encoder.embedding.table->tensor;
}
