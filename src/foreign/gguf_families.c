/* The table of architectures of GGUF files. */
#include "foreign/gguf_families.h"
#include "base/error.h"

#include <string.h>

#define DECODER_LAYER "decoder.layers.%d."

/* Llama's block: norms before, gated, no positions but RoPE. */
static const qkv_gguf_tensor_row decoder_tensors[] = {
    {"token_embd", "decoder.embedding", QKV_GGUF_ALL},
    {"output_norm", "decoder.norm", QKV_GGUF_ALL},
    {"output", "head", QKV_GGUF_ALL},
    {"blk.%d.attn_norm", DECODER_LAYER "attention_norm", QKV_GGUF_ALL},
    {"blk.%d.attn_q", DECODER_LAYER "attention.qkv", QKV_GGUF_Q},
    {"blk.%d.attn_k", DECODER_LAYER "attention.qkv", QKV_GGUF_K},
    {"blk.%d.attn_v", DECODER_LAYER "attention.qkv", QKV_GGUF_V},
    {"blk.%d.attn_output", DECODER_LAYER "attention.out", QKV_GGUF_ALL},
    {"blk.%d.ffn_norm", DECODER_LAYER "ffn_norm", QKV_GGUF_ALL},
    {"blk.%d.ffn_gate", DECODER_LAYER "ffn.in", QKV_GGUF_FIRST},
    {"blk.%d.ffn_up", DECODER_LAYER "ffn.in", QKV_GGUF_LAST},
    {"blk.%d.ffn_down", DECODER_LAYER "ffn.out", QKV_GGUF_ALL},
    {0},
};

/* Families that keep q, k and v, and the halves of a gate, in one matrix, as we do. */
static const qkv_gguf_tensor_row stacked_tensors[] = {
    {"token_embd", "decoder.embedding", QKV_GGUF_ALL},
    {"output_norm", "decoder.norm", QKV_GGUF_ALL},
    {"output", "head", QKV_GGUF_ALL},
    {"position_embd", "decoder.position", QKV_GGUF_ALL},
    {"blk.%d.attn_norm", DECODER_LAYER "attention_norm", QKV_GGUF_ALL},
    {"blk.%d.attn_qkv", DECODER_LAYER "attention.qkv", QKV_GGUF_ALL},
    {"blk.%d.attn_output", DECODER_LAYER "attention.out", QKV_GGUF_ALL},
    {"blk.%d.ffn_norm", DECODER_LAYER "ffn_norm", QKV_GGUF_ALL},
    {"blk.%d.ffn_up", DECODER_LAYER "ffn.in", QKV_GGUF_ALL},
    {"blk.%d.ffn_down", DECODER_LAYER "ffn.out", QKV_GGUF_ALL},
    {0},
};

static const qkv_gguf_key_row decoder_keys[] = {
    {"block_count", "layers", NULL, true},
    {"context_length", "max_len", NULL, true},
    {"embedding_length", "d_model", NULL, true},
    {"feed_forward_length", "d_ff", NULL, true},
    {"attention.head_count", "heads", NULL, true},
    {"attention.head_count_kv", "kv_heads", NULL, false},
    {"attention.key_length", "d_head", NULL, false},
    {"attention.value_length", "d_head", NULL, false},
    {"attention.layer_norm_rms_epsilon", "norm_eps", NULL, true},
    {"rope.freq_base", "rope_base", NULL, false},
    {"rope.dimension_count", "d_head", NULL, false},
    {"rope.scaling.type", NULL, "none", false},
    {"attention.sliding_window", NULL, NULL, false}, /* gguf_model.c */
    {"vocab_size", NULL, NULL, false},
    {0},
};

static const qkv_gguf_key_row gpt2_keys[] = {
    {"block_count", "layers", NULL, true},
    {"context_length", "max_len", NULL, true},
    {"embedding_length", "d_model", NULL, true},
    {"feed_forward_length", "d_ff", NULL, true},
    {"attention.head_count", "heads", NULL, true},
    {"attention.layer_norm_epsilon", "norm_eps", NULL, true},
    {"vocab_size", NULL, NULL, false},
    {0},
};

#define LLAMA                                                                                      \
    "task=lm norm=pre norm_kind=rms activation=swiglu position=rope qkv_bias=false "               \
    "out_bias=false ffn_bias=false"

static const qkv_gguf_family families[] = {
    /* rows of q and k lie so that RoPE turns neighbours */
    {"llama", LLAMA " rope_pairing=adjacent", decoder_tensors, decoder_keys},
    {"phi3", LLAMA " rope_pairing=halves", stacked_tensors, decoder_keys},
    /* its norms have their + 1 in the file */
    {"gemma", LLAMA " activation=geglu_tanh embedding_scale=true rope_pairing=halves",
     decoder_tensors, decoder_keys},
    {"gpt2",
     "task=lm norm=pre norm_kind=layer activation=gelu_tanh position=learned qkv_bias=true "
     "out_bias=true ffn_bias=true",
     stacked_tensors, gpt2_keys},
    {"qwen2", LLAMA " qkv_bias=true rope_pairing=halves", decoder_tensors, decoder_keys},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

const qkv_gguf_family *qkv_gguf_family_at(size_t i) {
    return i < N_FAMILIES ? &families[i] : NULL;
}

const qkv_gguf_family *qkv_gguf_family_of(const char *name, size_t len) {
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strlen(families[i].name) == len && !memcmp(families[i].name, name, len))
            return &families[i];
    qkv_fail(QKV_BAD_FILE, "GGUF models of the architecture \"%.*s\" are not read",
             (int)(len < 60 ? len : 60), name);
    return NULL;
}
