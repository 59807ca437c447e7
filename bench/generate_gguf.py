"""The weights that `qkv bench generate --set save=W` leaves, as a GGUF file for llama.cpp.

    python generate_gguf.py W OUT.gguf [--type f32|bf16|q8_0]
"""
import argparse

import gguf
import numpy as np
from gguf.quants import quantize
from safetensors.numpy import load_file

p = argparse.ArgumentParser()
p.add_argument("weights")
p.add_argument("out")
p.add_argument("--type", default="f32", choices=["f32", "bf16", "q8_0"])
p.add_argument("--heads", type=int, default=12)
a = p.parse_args()
w = load_file(a.weights)
kind = {"f32": gguf.GGMLQuantizationType.F32, "bf16": gguf.GGMLQuantizationType.BF16,
        "q8_0": gguf.GGMLQuantizationType.Q8_0}[a.type]
vocab, d = w["decoder.embedding.weight"].shape
layers = sum(name.endswith(".attention.out.weight") for name in w)
ff = w["decoder.layers.0.ffn.out.weight"].shape[1]

out = gguf.GGUFWriter(a.out, "llama")
out.add_context_length(2048)
out.add_embedding_length(d)
out.add_block_count(layers)
out.add_feed_forward_length(ff)
out.add_head_count(a.heads)
out.add_head_count_kv(a.heads)
out.add_rope_dimension_count(d // a.heads)
out.add_layer_norm_rms_eps(1e-5)
out.add_vocab_size(vocab)
# A vocabulary that is never used: ids go in, ids come out.
tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)]
tokens += ["t%d" % i for i in range(len(tokens), vocab)]
out.add_tokenizer_model("llama")
out.add_token_list(tokens)
out.add_token_scores([0.0] * vocab)
out.add_token_types([2, 3, 3] + [6] * 256 + [1] * (vocab - 259))
out.add_bos_token_id(1)
out.add_eos_token_id(2)


def put(name, x):
    x = np.ascontiguousarray(x.astype(np.float32))
    if x.ndim == 1 or kind == gguf.GGMLQuantizationType.F32:
        out.add_tensor(name, x)
    else:
        out.add_tensor(name, quantize(x, kind), raw_dtype=kind)


put("token_embd.weight", w["decoder.embedding.weight"])
put("output.weight", w["head.weight"])
put("output_norm.weight", w["decoder.norm.weight"])
for i in range(layers):
    at, to = f"decoder.layers.{i}.", f"blk.{i}."
    for name, x in zip(("attn_q", "attn_k", "attn_v"), np.split(w[at + "attention.qkv.weight"], 3)):
        put(to + name + ".weight", x)
    for name, x in zip(("ffn_gate", "ffn_up"), np.split(w[at + "ffn.in.weight"], 2)):
        put(to + name + ".weight", x)
    put(to + "attn_output.weight", w[at + "attention.out.weight"])
    put(to + "ffn_down.weight", w[at + "ffn.out.weight"])
    put(to + "attn_norm.weight", w[at + "attention_norm.weight"])
    put(to + "ffn_norm.weight", w[at + "ffn_norm.weight"])
out.write_header_to_file()
out.write_kv_data_to_file()
out.write_tensors_to_file()
out.close()
