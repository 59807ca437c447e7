"""PyTorch on the three works of `qkv bench train`, as a good user would write them: the same models and ids,
batches within the same token budget from examples sorted by length and padded, fused attention and optimiser.

    python torch_train.py --work imdb --ids FILE [--seconds 10] [--threads 2] [--precision f32] [--compile]

Prints one JSON object; tokens are real tokens, source and target counted both, padding not counted.
"""
import argparse
import json
import resource
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WORKS = {
    "imdb": dict(d=128, layers=6, heads=8, ff=512, vocab=50000, budget=8192, max_len=512, dropout=0.1),
    "multi30k": dict(d=256, layers=3, heads=4, ff=1024, vocab=8000, budget=4096, max_len=256, dropout=0.1),
    "gpt": dict(d=384, layers=6, heads=6, ff=1536, vocab=65, budget=4096, max_len=256, dropout=0.0),
}
PAD, BOS, EOS = 0, 1, 2


class Attention(nn.Module):
    def __init__(self, d, heads, cross=False):
        super().__init__()
        self.heads, self.cross = heads, cross
        if cross:
            self.q, self.kv = nn.Linear(d, d), nn.Linear(d, 2 * d)
        else:
            self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, memory=None, mask=None, causal=False):
        if self.cross:
            q, (k, v) = self.q(x), self.kv(memory).chunk(2, -1)
        else:
            q, k, v = self.qkv(x).chunk(3, -1)
        y = F.scaled_dot_product_attention(self.split(q), self.split(k), self.split(v), attn_mask=mask,
                                           is_causal=causal)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """Pre-norm; with `cross` a decoder layer of a translator."""

    def __init__(self, w, cross=False, act=F.relu):
        super().__init__()
        d = w["d"]
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, w["heads"])
        self.up, self.down, self.act = nn.Linear(d, w["ff"]), nn.Linear(w["ff"], d), act
        self.drop = nn.Dropout(w["dropout"])
        if cross:
            self.norm3, self.cross = nn.LayerNorm(d), Attention(d, w["heads"], cross=True)

    def forward(self, x, mask=None, causal=False, memory=None, memory_mask=None):
        x = x + self.drop(self.attn(self.norm1(x), mask=mask, causal=causal))
        if memory is not None:
            x = x + self.drop(self.cross(self.norm3(x), memory, memory_mask))
        return x + self.drop(self.down(self.act(self.up(self.norm2(x)))))


class Model(nn.Module):
    def __init__(self, name):
        super().__init__()
        w = WORKS[name]
        self.name, self.d = name, w["d"]
        self.embed = nn.Embedding(w["vocab"], w["d"])
        nn.init.normal_(self.embed.weight, std=0.02)
        self.drop = nn.Dropout(w["dropout"])
        if name == "multi30k":
            p, i = torch.arange(w["max_len"])[:, None], torch.arange(0, w["d"], 2)[None]
            angle = p / 10000 ** (i / w["d"])
            self.register_buffer("position", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        else:
            self.position = nn.Parameter(torch.randn(w["max_len"], w["d"]) * 0.02)
        act = F.gelu if name == "gpt" else F.relu
        self.layers = nn.ModuleList([Layer(w, act=act) for _ in range(w["layers"])])
        self.norm = nn.LayerNorm(w["d"])
        if name == "imdb":
            self.head = nn.Linear(w["d"], 2)
        if name == "multi30k":
            self.decoder = nn.ModuleList([Layer(w, cross=True) for _ in range(w["layers"])])
            self.decoder_norm = nn.LayerNorm(w["d"])

    def start(self, ids):
        return self.drop(self.embed(ids) + self.position[: ids.shape[1]])

    def forward(self, src, tgt, mask, targets):
        x = self.start(src)
        causal = self.name == "gpt"
        for layer in self.layers:
            x = layer(x, mask=None if mask is None else mask[:, None, None, :], causal=causal)
        x = self.norm(x)
        if self.name == "imdb":
            m = mask[..., None].to(x.dtype)
            return F.cross_entropy(self.head((x * m).sum(1) / m.sum(1)).float(), targets)
        if self.name == "multi30k":
            memory, x = x, self.start(tgt)
            for layer in self.decoder:
                x = layer(x, causal=True, memory=memory, memory_mask=mask[:, None, None, :])
            x = self.decoder_norm(x)
        logits = F.linear(x, self.embed.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-1)


def padded(rows, fill):
    out = torch.full((len(rows), max(map(len, rows))), fill, dtype=torch.long)
    for i, r in enumerate(rows):
        out[i, : len(r)] = torch.tensor(r)
    return out


def batches_of(name, path):
    """(src, tgt, mask, targets, real tokens), examples sorted by length, at most `budget` padded tokens."""
    w = WORKS[name]
    examples = [[list(map(int, side.split())) for side in line.split("\t")] for line in open(path)]
    if name == "gpt":
        stream, t, n = examples[0][0], w["max_len"], w["budget"] // w["max_len"]
        windows = [stream[i : i + t + 1] for i in range(0, len(stream) - t - 1, t)]
        for i in range(0, len(windows) - n + 1, n):
            block = torch.tensor(windows[i : i + n])
            yield block[:, :-1].contiguous(), None, None, block[:, 1:].contiguous(), n * t
        return
    examples.sort(key=lambda e: [len(side) for side in e])
    group, widths = [], [0] * len(examples[0])
    for e in examples + [None]:
        new = [max(a, len(b) + 1) for a, b in zip(widths, e)] if e else None
        if group and (e is None or sum(new) * (len(group) + 1) > w["budget"]):
            yield finish(name, group)
            group, new = [], [len(b) + 1 for b in e] if e else None
        if e:
            group.append(e)
            widths = new


def finish(name, group):
    if name == "imdb":
        src, tgt = padded([e[0] for e in group], PAD), None
        lengths = torch.tensor([len(e[0]) for e in group])
        targets = torch.tensor([sum(e[0]) % 2 for e in group])
        tokens = int(lengths.sum())
    else:
        src = padded([e[0] + [EOS] for e in group], PAD)
        tgt = padded([[BOS] + e[1] for e in group], PAD)
        targets = padded([e[1] + [EOS] for e in group], -1)
        lengths = torch.tensor([len(e[0]) + 1 for e in group])
        tokens = int(lengths.sum() + (targets >= 0).sum())
    mask = torch.arange(src.shape[1])[None] < lengths[:, None]
    return src, tgt, mask, targets, tokens


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--work", choices=WORKS, required=True)
    a.add_argument("--ids", required=True)
    a.add_argument("--seconds", type=float, default=10)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    a.add_argument("--compile", action="store_true")
    a = a.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    batches = list(batches_of(a.work, a.ids))
    order = torch.randperm(len(batches)).tolist()
    model = Model(a.work).train()
    run = torch.compile(model, dynamic=a.work != "gpt") if a.compile else model
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    warm = 2 if not a.compile else 4 if a.work == "gpt" else len(order)  # compiled again for new shapes
    losses, tokens, seconds, steps = [], 0, 0.0, 0
    for k in range(10**9):
        src, tgt, mask, targets, real = batches[order[k % len(order)]]
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=a.precision == "bf16"):
            loss = run(src, tgt, mask, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(float(loss.detach()))
        if k >= warm:
            seconds += time.perf_counter() - begin
            tokens += real
            steps += 1
            if seconds >= a.seconds and (a.work == "gpt" or steps % len(order) == 0):
                break  # after whole passes, as qkv does: every length counts alike
    print(json.dumps({
        "tokens_per_s": round(tokens / seconds, 1), "steps": steps, "seconds": round(seconds, 3),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, 1),
        "loss_first": losses[0], "loss_last": losses[-1], "parameters": sum(p.numel() for p in model.parameters()),
        "torch": torch.__version__, "compile": a.compile, "precision": a.precision, "threads": a.threads}))


main()
