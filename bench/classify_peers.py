"""PyTorch and ONNX Runtime on the work of `qkv bench classify`: the same weights, the same reviews, sorted by length and
padded in batches, as a good user would.

    qkv bench classify --set ids=IDS --set save=W
    python classify_peers.py --who torch|compile|onnx --ids IDS --weights W [--int8 | --bf16] [--seconds 3] [--threads 2]

Prints one JSON object. `check` is the mean of |logit 0 - logit 1|, as qkv prints it: the models compute the same.
"""
import argparse
import json
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

HEADS, LAYERS, MAX_LEN = 8, 6, 512


class Classifier(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        w = load_file(path)
        vocab, d = w["encoder.embedding.weight"].shape
        self.embed = torch.nn.Embedding.from_pretrained(w["encoder.embedding.weight"])
        self.position = torch.nn.Parameter(w["encoder.position.weight"])

        def linear(name):
            out, inner = w[name + ".weight"].shape
            m = torch.nn.Linear(inner, out)
            m.load_state_dict({"weight": w[name + ".weight"], "bias": w[name + ".bias"]})
            return m

        def norm(name):
            m = torch.nn.LayerNorm(d)
            m.load_state_dict({"weight": w[name + ".weight"], "bias": w[name + ".bias"]})
            return m

        self.layers = torch.nn.ModuleList()
        for i in range(LAYERS):
            at = f"encoder.layers.{i}."
            self.layers.append(torch.nn.ModuleDict({
                "norm1": norm(at + "attention_norm"), "qkv": linear(at + "attention.qkv"),
                "out": linear(at + "attention.out"), "norm2": norm(at + "ffn_norm"),
                "up": linear(at + "ffn.in"), "down": linear(at + "ffn.out")}))
        self.norm, self.head = norm("encoder.norm"), linear("head.classes")

    def forward(self, ids, lengths):
        n, t = ids.shape
        mask = torch.arange(t)[None] < lengths[:, None]
        x = self.embed(ids) + self.position[:t]
        for m in self.layers:
            q, k, v = (y.view(n, t, HEADS, -1).transpose(1, 2) for y in m["qkv"](m["norm1"](x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
            x = x + m["out"](y.transpose(1, 2).reshape(n, t, -1))
            x = x + m["down"](F.relu(m["up"](m["norm2"](x))))
        keep = mask[..., None].to(x.dtype)
        return self.head((self.norm(x) * keep).sum(1) / keep.sum(1))


def batches_of(path, budget):
    rows = sorted(([int(i) for i in line.split()][:MAX_LEN] for line in open(path)), key=len)
    group = []
    for row in rows + [None]:
        if group and (row is None or len(row) * (len(group) + 1) > budget):
            ids = np.zeros((len(group), len(group[-1])), dtype=np.int64)
            for i, r in enumerate(group):
                ids[i, : len(r)] = r
            yield ids, np.array([len(r) for r in group])
            group = []
        group.append(row)


def onnx_session(model, batch, a):
    import onnxruntime as ort
    folder = tempfile.mkdtemp()
    path = a.onnx or os.path.join(folder, "model.onnx")
    if not os.path.exists(path):
        export(model, batch, path, folder, a)
    options = ort.SessionOptions()
    options.intra_op_num_threads = a.threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda ids, lengths: session.run(None, {"ids": ids, "lengths": lengths})[0]


def export(model, batch, path, folder, a):
    n, t = torch.export.Dim("n", min=2, max=4096), torch.export.Dim("t", min=2, max=MAX_LEN)
    torch.onnx.export(model, batch, path, input_names=["ids", "lengths"], dynamo=True, external_data=False,
                      dynamic_shapes={"ids": {0: n, 1: t}, "lengths": {0: n}}, verbose=False)
    if a.int8:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
        whole = onnx.load(path)
        del whole.graph.value_info[:]  # shapes that its own inference does not agree with
        ready = os.path.join(folder, "ready.onnx")
        onnx.save(whole, ready)
        quantize_dynamic(ready, path, weight_type=QuantType.QInt8, per_channel=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--who", choices=["torch", "compile", "onnx"], required=True)
    p.add_argument("--ids", required=True)
    p.add_argument("--weights", required=True)
    p.add_argument("--int8", action="store_true")
    p.add_argument("--bf16", action="store_true", help="PyTorch's autocast")
    p.add_argument("--onnx", help="keep the exported model in this file, and use it when it is there")
    p.add_argument("--budget", type=int, default=4096, help="padded tokens in a batch")
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.set_grad_enabled(False)
    batches = list(batches_of(a.ids, a.budget))
    model = Classifier(a.weights).eval()
    if a.who == "onnx":
        run = onnx_session(model, tuple(map(torch.from_numpy, batches[len(batches) // 2])), a)
    else:
        if a.int8:
            model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
        net = torch.compile(model, dynamic=True) if a.who == "compile" else model
        batches = [tuple(map(torch.from_numpy, b)) for b in batches]
        run = lambda ids, lengths: net(ids, lengths).float().numpy()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=a.bf16):
        for b in batches[:: max(1, len(batches) // 16)]:  # of all lengths: to warm up
            run(*b)
        seconds, reviews, tokens = 0.0, 0, 0
        while seconds < a.seconds:
            start = time.perf_counter()
            answers = [run(*b) for b in batches]
            seconds += time.perf_counter() - start
            check = np.concatenate(answers)
            reviews += len(check)
            tokens += sum(int(b[1].sum()) for b in batches)
    print(json.dumps({"reviews_per_s": round(reviews / seconds, 2), "tokens_per_s": round(tokens / seconds, 1),
                      "check": float(np.abs(check[:, 0] - check[:, 1]).mean()), "who": a.who, "int8": a.int8, "bf16": a.bf16,
                      "threads": a.threads, "torch": torch.__version__}))


main()
