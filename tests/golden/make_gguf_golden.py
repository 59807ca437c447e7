"""Tiny GGUF models with what transformers computes: `python3 make_gguf_golden.py gguf/` (torch 2.13.0, transformers
5.23.0, gguf 0.19.0).

A model of each architecture that is read, of random weights in several types of blocks. The reference has the values of
those blocks as floats. Beside NAME.gguf stands NAME.f32: the logits of every token of IDS.
"""
import sys
import numpy as np
import torch
import gguf
from gguf import GGMLQuantizationType as T
from transformers import GPT2Config, GPT2LMHeadModel, GemmaConfig, GemmaForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers import Phi3Config, Phi3ForCausalLM, Qwen2Config, Qwen2ForCausalLM

OUT, VOCAB = sys.argv[1], 96
IDS = [1, 5, 9, 33, 2, 77, 5, 9, 34, 60, 61, 11]
TYPES = [T.Q4_1, T.Q8_0, T.F16, T.Q5_0, T.Q4_0, T.Q5_1, T.BF16, T.F32]


class Writer:
    def __init__(self, name, arch):
        self.w, self.name, self.n = gguf.GGUFWriter(f'{OUT}/{name}.gguf', arch), name, 0
        self.w.add_tokenizer_model('gpt2')
        self.w.add_tokenizer_pre('gpt-2')
        tokens = ['<|endoftext|>', 'ab'] + [chr(33 + i) for i in range(VOCAB - 2)]
        self.w.add_token_list(tokens)
        self.w.add_token_types([3] + [1] * (VOCAB - 1))
        self.w.add_token_merges(['a b'])
        self.w.add_eos_token_id(0)

    def put(self, name, param, how=lambda x: x, back=lambda x: x):
        """Writes a parameter in the next type, and gives the model what was written."""
        x = how(param.detach().numpy())
        if x.ndim == 1:
            self.w.add_tensor(name, np.ascontiguousarray(x))
            return
        t = TYPES[self.n % len(TYPES)]
        self.n += 1
        raw = gguf.quants.quantize(np.ascontiguousarray(x), t)
        self.w.add_tensor(name, raw, raw_dtype=t)
        with torch.no_grad():
            param.copy_(torch.from_numpy(np.array(back(gguf.quants.dequantize(raw, t)), dtype=np.float32)))

    def done(self, model):
        with torch.no_grad():
            logits = model.eval()(torch.tensor([IDS])).logits[0]
        self.w.write_header_to_file()
        self.w.write_kv_data_to_file()
        self.w.write_tensors_to_file()
        self.w.close()
        logits.numpy().astype('<f4').tofile(f'{OUT}/{self.name}.f32')


def randomise(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim > 1:
                p.copy_(torch.randn_like(p) * 0.3)
            else:
                p.copy_((1 if 'norm' in name or 'ln_' in name else 0) * ('bias' not in name) + 0.2 * torch.randn_like(p))


def common(w, c, rms=True):
    w.w.add_block_count(c.num_hidden_layers)
    w.w.add_context_length(c.max_position_embeddings)
    w.w.add_embedding_length(c.hidden_size)
    w.w.add_feed_forward_length(c.intermediate_size)
    w.w.add_head_count(c.num_attention_heads)
    w.w.add_head_count_kv(c.num_key_value_heads)
    w.w.add_layer_norm_rms_eps(c.rms_norm_eps)
    w.w.add_rope_freq_base(10000.0)
    w.w.add_vocab_size(VOCAB)


def turn(heads):
    """Rows of q and k from halves to neighbours, and back."""
    def there(x):
        return x.reshape(heads, 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)

    def back(x):
        return x.reshape(heads, -1, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)
    return there, back


def llama_like(name, arch, model, w=None, stacked=False):
    c = model.config
    randomise(model)
    w = Writer(name, arch)
    common(w, c)
    m = model.model
    plus = (lambda x: x + 1) if arch == 'gemma' else (lambda x: x)
    w.put('token_embd.weight', m.embed_tokens.weight)
    w.put('output_norm.weight', m.norm.weight, plus)
    if not c.tie_word_embeddings:
        w.put('output.weight', model.lm_head.weight)
    if arch == 'gemma':
        w.w.add_key_length(c.head_dim)
        w.w.add_value_length(c.head_dim)
    for i, layer in enumerate(m.layers):
        b, a, f = f'blk.{i}.', layer.self_attn, layer.mlp
        w.put(b + 'attn_norm.weight', layer.input_layernorm.weight, plus)
        w.put(b + 'ffn_norm.weight', layer.post_attention_layernorm.weight, plus)
        if stacked:
            w.put(b + 'attn_qkv.weight', a.qkv_proj.weight)
            w.put(b + 'ffn_up.weight', f.gate_up_proj.weight)
        else:
            for x, p, heads in (('q', a.q_proj, c.num_attention_heads), ('k', a.k_proj, c.num_key_value_heads),
                                ('v', a.v_proj, 0)):
                there = turn(heads) if heads and arch == 'llama' else ()
                w.put(f'{b}attn_{x}.weight', p.weight, *there)
                if p.bias is not None:
                    w.put(f'{b}attn_{x}.bias', p.bias)
            w.put(b + 'ffn_gate.weight', f.gate_proj.weight)
            w.put(b + 'ffn_up.weight', f.up_proj.weight)
        w.put(b + 'attn_output.weight', a.o_proj.weight)
        w.put(b + 'ffn_down.weight', f.down_proj.weight)
    w.done(model)


def gpt2(name):
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=64, n_embd=32, n_layer=2, n_head=4))
    randomise(model)
    w = Writer(name, 'gpt2')
    w.w.add_block_count(2)
    w.w.add_context_length(64)
    w.w.add_embedding_length(32)
    w.w.add_feed_forward_length(128)
    w.w.add_head_count(4)
    w.w.add_layer_norm_eps(1e-5)
    m = model.transformer
    flip = (lambda x: x.T, lambda x: x.T)
    w.put('token_embd.weight', m.wte.weight)
    w.put('position_embd.weight', m.wpe.weight)
    for x in ('weight', 'bias'):
        w.put('output_norm.' + x, getattr(m.ln_f, x))
    for i, layer in enumerate(m.h):
        for theirs, ours in (('attn_norm', layer.ln_1), ('ffn_norm', layer.ln_2), ('attn_qkv', layer.attn.c_attn),
                             ('attn_output', layer.attn.c_proj), ('ffn_up', layer.mlp.c_fc), ('ffn_down', layer.mlp.c_proj)):
            w.put(f'blk.{i}.{theirs}.weight', ours.weight, *(flip if ours.weight.ndim == 2 else ()))
            w.put(f'blk.{i}.{theirs}.bias', ours.bias)
    w.done(model)


torch.manual_seed(3)
sizes = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, pad_token_id=None, bos_token_id=None, eos_token_id=0)
llama_like('llama', 'llama', LlamaForCausalLM(LlamaConfig(**sizes, tie_word_embeddings=False)))
llama_like('llama_tied', 'llama', LlamaForCausalLM(LlamaConfig(**dict(sizes, num_key_value_heads=4), tie_word_embeddings=True)))
llama_like('qwen2', 'qwen2', Qwen2ForCausalLM(Qwen2Config(**sizes, tie_word_embeddings=True)))
llama_like('gemma', 'gemma', GemmaForCausalLM(GemmaConfig(**sizes, head_dim=32)))
llama_like('phi3', 'phi3', Phi3ForCausalLM(Phi3Config(**sizes, tie_word_embeddings=False, sliding_window=None)), stacked=True)
gpt2('gpt2')
