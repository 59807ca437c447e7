"""Golden values of whole models, from PyTorch: writes model_golden.safetensors.

Every model is written again here with torch's own functions (attention, norms, LSTM, GRU, cross-entropy,
AdamW) and run sequence by sequence. Weights and tokens are formulas of their names and indices, the same in
tests/test_golden.c, so that only results are stored. Run with PyTorch 2.x: python make_model_golden.py
"""
import json
import math
import os
import struct

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)  # results are rounded to float once, at the end

BASE = ("vocab_size=11 classes=3 max_len=16 d_model=12 layers=2 heads=2 d_ff=14 dropout=0 window=2 "
        "rel_distance=3 t5_buckets=8 t5_distance=9")

# Loss, hidden rows, every gradient, ten AdamW steps and the weights after them.
TRAINED = [
    "task=classify position=learned norm=post activation=relu pool=mean",
    "task=lm position=learned norm=pre activation=gelu_tanh head_bias=true",
    "task=translate position=sinusoidal norm=post activation=relu embedding_scale=true layers=1",
    "task=lm position=rope rope_pairing=halves norm=pre norm_kind=rms activation=swiglu qkv_bias=false "
    "out_bias=false ffn_bias=false kv_heads=1 tie=false",
    "task=classify arch=lstm bidirectional=true d_state=6 layers=1 pool=max",
    "task=lm arch=lstm",
    "task=lm arch=gru",
    "task=translate arch=gru d_state=8 layers=1",
    "task=tag arch=gru d_state=5 layers=1",
]
# Loss and hidden rows only.
FORWARD = (
    [f"task=classify position={p}" for p in
     ("none", "sinusoidal", "relative", "rope", "alibi", "t5", "structural")]
    + [f"task=lm position={p}" for p in ("none", "sinusoidal", "relative", "rope", "alibi", "t5")]
    + [f"task={t} position=alibi heads={h} d_head=4" for t in ("lm", "classify") for h in (3, 6)]
    + [f"task=lm activation={a}" for a in ("relu", "gelu", "silu", "geglu", "geglu_tanh")]
    + [f"task=classify pool={p}" for p in ("max", "first", "last")]
    + ["task=classify norm=post norm_kind=rms", "task=lm attention=local",
       "task=classify attention=local", "task=lm attention_scale=full heads=3 d_head=6",
       "task=classify projections=false attention_scale=none",
       "task=mlm head_transform=true embedding_norm=true activation=gelu head_bias=true",
       "task=classify pooler=tanh pool=first", "task=classify sinusoidal_pairing=halves position=sinusoidal",
       "task=translate position=rope norm=pre share_embeddings=false tie=false",
       "task=translate position=t5 norm=pre norm_kind=rms", "task=translate arch=lstm",
       "task=classify arch=gru bidirectional=true", "task=classify attention=linformer linformer_rank=3",
       "task=translate position=structural decoder_position=relative",
       "task=translate attention=linformer linformer_rank=3 decoder_attention=local",
       "task=classify pooler=relu", "task=embed pool=mean", "task=tag position=rope norm=post"]
)

# Sequences of several blocks of 64, where patterns differ: loss, hidden rows and gradients.
LONG_BASE = "d_model=4 d_ff=6 max_len=160 global_tokens=3 random_links=1 window=9"
LONG = [f"task={t} position=rope attention={a}" for t in ("classify", "lm")
        for a in ("local", "global", "random", "bigbird")]

# Later ones, behind all others so that those keep their numbers; trained as those of TRAINED.
LATER = ["task=classify segments=2 position=learned norm=post embedding_norm=true activation=gelu pooler=tanh "
         "pool=first", "task=mlm segments=3 arch=gru bidirectional=true d_state=6 layers=1",
         "task=rate arch=gru bidirectional=true d_state=5 layers=1 pool=max", "task=classify several=true norm=post"]

LENGTHS = {"case": ([5, 1, 7], [4, 3, 6]), "long": ([130, 1, 79], [150, 66, 1])}
BLOCK = 64  # queries that see the same random links


def philox(seed, stream, index):
    """Four words of Philox 4x32-10."""
    low = 0xFFFFFFFF
    c = [index & low, index >> 32, stream & low, stream >> 32]
    k = [seed & low, seed >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & low, (p0 >> 32) ^ c[3] ^ k[1], p0 & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c


def permuted(seed, stream, n, i):
    """The image of i under a keyed permutation of 0 ... n - 1: four Feistel rounds, walked until below n."""
    half = 1
    while 1 << 2 * half < n:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = i >> half, i & mask
        for r in range(4):
            at = right << 2 | r
            left, right = right, left ^ (philox(seed, stream, at >> 1)[(at & 1) * 2] & mask)
        i = left << half | right
        if i < n:
            return i


def links(layer, block, allowed, count):
    """Which of the blocks in `allowed` a block of queries is linked to, in a layer."""
    x = philox(layer, 0x6B65795F64657269, block * BLOCK)
    y = philox(layer, x[0] << 32 | x[1], 0)
    return [allowed[permuted(layer, y[0] << 32 | y[1], len(allowed), i)]
            for i in range(min(count, len(allowed)))]


def alibi_slopes(heads):
    """As in the code of its authors."""
    if heads & (heads - 1) == 0:
        return [2 ** (-8 * (i + 1) / heads) for i in range(heads)]
    power = 2 ** math.floor(math.log2(heads))
    return alibi_slopes(power) + alibi_slopes(2 * power)[0::2][:heads - power]


def fnv(name):
    h = 0x811C9DC5
    for b in name.encode():
        h = ((h ^ b) * 0x01000193) & 0xFFFFFFFF
    return h


def weight(name, rows, cols):
    i = torch.arange(rows * cols, dtype=torch.int64)
    k = (i * 37 + fnv(name) % 1009) % 211
    w = (k.double() - 105) / 105 * 0.4
    if name.endswith("norm.weight"):
        w = w + 1
    return w.float().double().reshape(rows, cols)


class Model:
    def __init__(self, text, lengths=LENGTHS["case"]):
        defaults = dict(task="classify", arch="transformer", position="learned", norm="pre",
                        norm_kind="layer", activation="relu", attention="full", pool="mean", pooler="none",
                        attention_scale="head", qkv_bias=True, out_bias=True, ffn_bias=True, tie=True,
                        share_embeddings=True, embedding_scale=False, embedding_norm=False,
                        head_bias=False, several=False, head_transform=False, projections=True, bidirectional=True,
                        kv_heads=0, d_head=0, d_state=0, rope_pairing="adjacent",
                        sinusoidal_pairing="adjacent", decoder_position="same", decoder_attention="same",
                        global_tokens=2, random_links=2, segments=0)
        c = defaults
        for pair in text.split():
            key, value = pair.split("=")
            c[key] = {"true": True, "false": False}.get(value, int(value) if value.isdigit() else value)
        c["kv_heads"] = c["kv_heads"] or c["heads"]
        c["d_head"] = c["d_head"] or c["d_model"] // c["heads"]
        c["d_state"] = c["d_state"] or c["d_model"]
        self.c, self.p, self.lengths = c, {}, lengths
        self.encodes = c["task"] != "lm"
        self.decodes = c["task"] in ("lm", "translate")

    def par(self, name, *shape):
        if name not in self.p:
            rows, cols = shape if len(shape) == 2 else (1, shape[0])
            w = weight(name, rows, cols)
            self.p[name] = (w if len(shape) == 2 else w[0]).clone().requires_grad_()
        return self.p[name]

    def dense(self, name, x, out, bias=True):
        w = self.par(name + ".weight", out, x.shape[-1])
        return F.linear(x, w, self.par(name + ".bias", out) if bias else None)

    def norm(self, name, x):
        d = x.shape[-1]
        if self.c["norm_kind"] == "rms":
            return F.rms_norm(x, (d,), self.par(name + ".weight", d), 1e-5)
        return F.layer_norm(x, (d,), self.par(name + ".weight", d), self.par(name + ".bias", d), 1e-5)

    # ---- positions ----
    def sinusoid(self, n):
        d = self.c["d_model"]
        pe = torch.zeros(n, d)
        for i in range(d // 2):
            angle = torch.arange(n) / 10000 ** (2 * i / d)
            if self.c["sinusoidal_pairing"] == "halves":
                pe[:, i], pe[:, d // 2 + i] = angle.sin(), angle.cos()
            else:
                pe[:, 2 * i], pe[:, 2 * i + 1] = angle.sin(), angle.cos()
        return pe

    def rope(self, x):  # (heads, n, k)
        k, n = x.shape[-1], x.shape[1]
        angle = torch.outer(torch.arange(n), 10000.0 ** (-torch.arange(k // 2) * 2 / k))
        if self.c["rope_pairing"] == "halves":
            a, b = x[..., : k // 2], x[..., k // 2 :]
            return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()],
                           -1).flatten(-2)

    def t5_bucket(self, rel, causal):
        n, most, first = self.c["t5_buckets"], self.c["t5_distance"], 0
        if causal:
            rel = max(-rel, 0)
        else:
            n //= 2
            first = n if rel > 0 else 0
            rel = abs(rel)
        exact = n // 2
        if rel < exact:
            return first + rel
        return first + min(n - 1, exact + int(math.log(rel / exact) / math.log(most / exact) * (n - exact)))

    # ---- patterns ----
    def of(self, stack, key):
        """A setting that a decoder may have for itself."""
        own = self.c["decoder_" + key]
        return own if stack == "decoder" and own != "same" else self.c[key]

    def seen(self, pattern, n, causal, layer):
        """Which keys each query sees."""
        c = self.c
        i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
        local, first, blocks = (i - j).abs() <= c["window"], j < c["global_tokens"], (n - 1) // BLOCK + 1
        sees_all = i < c["global_tokens"]
        own = i // BLOCK == j // BLOCK

        def linked(reach):
            out = torch.zeros(n, n, dtype=torch.bool)
            for b in range(blocks):
                # blocks of keys that no query of block b reaches otherwise
                low, high = (b * BLOCK - reach) // BLOCK, -(-((b + 1) * BLOCK + reach) // BLOCK)
                allowed = [k for k in range(blocks) if k < low or (k >= high and not causal)]
                for k in links(layer, b, allowed, c["random_links"]):
                    out[b * BLOCK:(b + 1) * BLOCK, k * BLOCK:(k + 1) * BLOCK] = True
            return out

        what = {"full": lambda: torch.ones(n, n, dtype=torch.bool), "local": lambda: local,
                "global": lambda: first | sees_all | (i == j), "random": lambda: own | linked(0),
                "bigbird": lambda: local | first | sees_all | linked(c["window"])}[pattern]()
        return what & (j <= i) if causal else what

    # ---- layers ----
    def attention(self, name, x, causal, stack, layer):
        c, n = self.c, x.shape[0]
        h, g, k = c["heads"], c["kv_heads"], c["d_head"]
        scale = {"head": k ** -0.5, "full": c["d_model"] ** -0.5, "none": 1.0}[c["attention_scale"]]
        i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
        pattern, position = self.of(stack, "attention"), self.of(stack, "position")
        seen = self.seen("full" if pattern == "linformer" else pattern, n, causal, layer)
        if not c["projections"]:
            q = key = v = x.reshape(n, h, k).transpose(0, 1)
        else:
            qkv = self.dense(name + ".qkv", x, (h + 2 * g) * k, c["qkv_bias"])
            q, key, v = (a.reshape(n, -1, k).transpose(0, 1) for a in qkv.split([h * k, g * k, g * k], 1))
        if position == "rope":
            q, key = self.rope(q), self.rope(key)
        key, v = key.repeat_interleave(h // g, 0), v.repeat_interleave(h // g, 0)
        if pattern == "linformer":
            r = min(c["linformer_rank"], n)
            e, f = (self.par(f"{name}.along_{a}", c["linformer_rank"], c["max_len"]) for a in "kv")
            key, v = e[:r, :n] @ key, f[:r, :n] @ v
            seen = torch.ones(n, r, dtype=torch.bool)
        bias = torch.zeros(h, *seen.shape)
        if position == "alibi":
            slope = torch.tensor(alibi_slopes(h))
            bias = -slope[:, None, None] * (i - j).abs()
        if position == "t5":
            table = self.par(f"{stack}.position.bias", h, c["t5_buckets"])
            index = torch.tensor([[self.t5_bucket(b - a, causal) for b in range(n)] for a in range(n)])
            bias = table[:, index]
        bias = bias.masked_fill(~seen, -math.inf)
        if position in ("relative", "structural"):
            most = c["rel_distance"]
            if position == "relative":
                index, count = (j - i).clamp(-most, most) + most, 2 * most + 1
            else:
                index = torch.tensor([[tree_distance(a, b) for b in range(n)] for a in range(n)])
                index, count = index.clamp(max=most), most + 1
            rel_k = self.par(f"{name}.rel_k", count, k)[index]
            rel_v = self.par(f"{name}.rel_v", count, k)[index]
            scores = scale * (q @ key.transpose(1, 2)) + torch.einsum("hik,ijk->hij", q, rel_k) + bias
            p = scores.softmax(-1)
            y = p @ v + torch.einsum("hij,ijk->hik", p, rel_v)
        else:
            y = F.scaled_dot_product_attention(q, key, v, attn_mask=bias, scale=scale)
        y = y.transpose(0, 1).reshape(n, h * k)
        return self.dense(name + ".out", y, c["d_model"], c["out_bias"]) if c["projections"] else y

    def cross(self, name, x, memory):
        c, h, k = self.c, self.c["heads"], self.c["d_head"]
        q = self.dense(name + ".q", x, h * k, c["qkv_bias"]).reshape(-1, h, k).transpose(0, 1)
        kv = self.dense(name + ".kv", memory, 2 * h * k, c["qkv_bias"])
        key, v = (a.reshape(-1, h, k).transpose(0, 1) for a in kv.split(h * k, 1))
        scale = {"head": k ** -0.5, "full": c["d_model"] ** -0.5, "none": 1.0}[c["attention_scale"]]
        y = F.scaled_dot_product_attention(q, key, v, scale=scale).transpose(0, 1).reshape(-1, h * k)
        return self.dense(name + ".out", y, c["d_model"], c["out_bias"])

    def act(self, x):
        return {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"),
                "silu": F.silu, "swiglu": F.silu, "geglu": F.gelu,
                "geglu_tanh": lambda v: F.gelu(v, approximate="tanh")}[self.c["activation"]](x)

    def ffn(self, name, x):
        c = self.c
        if c["activation"] in ("swiglu", "geglu", "geglu_tanh"):
            a, b = self.dense(name + ".in", x, 2 * c["d_ff"], c["ffn_bias"]).chunk(2, 1)
            hidden = self.act(a) * b
        else:
            hidden = self.act(self.dense(name + ".in", x, c["d_ff"], c["ffn_bias"]))
        return self.dense(name + ".out", hidden, c["d_model"], c["ffn_bias"])

    def table(self, stack):
        shared = self.encodes and self.decodes and self.c["share_embeddings"]
        name = "embedding.weight" if shared else f"{stack}.embedding.weight"
        return self.par(name, self.c["vocab_size"], self.c["d_model"])

    def embed(self, stack, ids):
        c, n = self.c, len(ids)
        x = self.table(stack)[ids] * (math.sqrt(c["d_model"]) if c["embedding_scale"] else 1)
        if c["arch"] == "transformer":
            position = self.of(stack, "position")
            if position in ("sinusoidal", "structural"):
                x = x + self.sinusoid(n)
            if position == "learned":
                x = x + self.par(f"{stack}.position.weight", c["max_len"], c["d_model"])[:n]
            if position == "structural":
                depth = torch.tensor([tree_depth(i) for i in range(n)]).clamp(max=c["rel_distance"])
                x = x + self.par(f"{stack}.depth.weight", c["rel_distance"] + 1, c["d_model"])[depth]
        if c["segments"] and stack == "encoder":  # the second half of a sequence is the second segment
            x = x + self.par(f"{stack}.segment_embedding.weight", c["segments"], c["d_model"])[
                (2 * torch.arange(n) >= n).long()]
        return self.norm(f"{stack}.embedding_norm", x) if c["embedding_norm"] else x

    def stack(self, stack, x, causal, memory=None):
        pre = self.c["norm"] == "pre"

        def part(norm, x, f):
            return x + f(self.norm(norm, x)) if pre else self.norm(norm, x + f(x))

        for i in range(self.c["layers"]):
            at = f"{stack}.layers.{i}"
            x = part(f"{at}.attention_norm", x,
                     lambda y: self.attention(f"{at}.attention", y, causal, stack, i))
            if memory is not None:
                x = part(f"{at}.cross_norm", x, lambda y: self.cross(f"{at}.cross", y, memory))
            x = part(f"{at}.ffn_norm", x, lambda y: self.ffn(f"{at}.ffn", y))
        return self.norm(f"{stack}.norm", x) if pre else x

    # ---- recurrent: torch's own cells, its gate order made from ours ----
    def cell(self, at, x, reverse, h0):
        k, d = self.c["d_state"], x.shape[1]
        gates = 4 if self.c["arch"] == "lstm" else 3
        w_x, w_h = self.par(f"{at}.input.weight", gates * k, d), self.par(f"{at}.state.weight", gates * k, k)
        b_x = self.par(f"{at}.input.bias", gates * k)
        h0 = torch.zeros(k) if h0 is None else h0
        rows = reversed(range(len(x))) if reverse else range(len(x))
        out = [None] * len(x)
        if self.c["arch"] == "lstm":  # ours: f, u, o, c; torch's: i (= u), f, g (= c), o
            order = [1, 0, 3, 2]
            w_x, w_h = (torch.cat([w.chunk(4)[o] for o in order]) for w in (w_x, w_h))
            b = torch.cat([b_x.chunk(4)[o] for o in order])
            h, state = h0[None], torch.zeros(1, k)
            for r in rows:
                h, state = torch._VF.lstm_cell(x[r][None], (h, state), w_x, w_h, b, torch.zeros_like(b))
                out[r] = h[0]
        else:
            b_h = self.par(f"{at}.state.bias", gates * k)
            h = h0[None]
            for r in rows:
                h = torch._VF.gru_cell(x[r][None], h, w_x, w_h, b_x, b_h)
                out[r] = h[0]
        return torch.stack(out)

    def recurrent(self, stack, x, both, starts=None):
        for i in range(self.c["layers"]):
            at = f"{stack}.layers.{i}"
            one = self.cell(f"{at}.forward", x, False, starts[i] if starts else None)
            x = torch.cat([one, self.cell(f"{at}.backward", x, True, None)], 1) if both else one
        return x

    # ---- models ----
    def encode(self, ids):
        x = self.embed("encoder", ids)
        if self.c["arch"] != "transformer":
            return self.recurrent("encoder", x, self.c["bidirectional"])
        return self.stack("encoder", x, False)

    def decode(self, ids, memory):
        x, c = self.embed("decoder", ids), self.c
        if c["arch"] == "transformer":
            return self.stack("decoder", x, True, memory)
        if memory is None:
            return self.recurrent("decoder", x, False)
        starts = [torch.tanh(self.dense(f"decoder.layers.{i}.start", memory.mean(0), c["d_state"]))
                  for i in range(c["layers"])]
        s = self.recurrent("decoder", x, False, starts)
        q = self.dense("decoder.ask", s, memory.shape[1], False)
        context = F.scaled_dot_product_attention(q[None], memory[None], memory[None])[0]
        return torch.tanh(self.dense("decoder.combine", torch.cat([context, s], 1), c["d_model"]))

    def run(self):
        """Hidden rows of all sequences (models without a head: one vector each), and the loss or None."""
        c, hidden, targets, pooled = self.c, [], [], []
        at_s = at_t = 0
        for n_src, n_tgt in zip(*self.lengths):
            src, tgt = ids(at_s, n_src, c, 7, 3), ids(at_t, n_tgt, c, 5, 1)
            at_s, at_t = at_s + n_src, at_t + n_tgt
            memory = self.encode(src) if self.encodes else None
            rows = self.decode(tgt, memory) if self.decodes else memory
            hidden.append(rows)
            targets += (tgt[1:] + [0]) if self.decodes else src
            pool = {"mean": rows.mean(0), "max": rows.max(0)[0], "first": rows[0], "last": rows[-1]}
            pooled.append(pool[c["pool"]])
        hidden = torch.cat(hidden)
        if c["task"] == "embed":
            return torch.stack(pooled), None
        if c["task"] in ("classify", "rate"):
            y = torch.stack(pooled)
            if c["pooler"] != "none":
                y = {"tanh": torch.tanh, "relu": F.relu}[c["pooler"]](self.dense("head.pooler", y, y.shape[1]))
            labels = torch.tensor([s % c["classes"] for s in range(len(pooled))])
            if c["task"] == "rate":  # the labels are the numbers
                found = self.dense("head.classes", y, 1)[:, 0]
                return hidden, F.mse_loss(found, labels.double(), reduction="sum")
            logits = self.dense("head.classes", y, c["classes"])
            if c["several"]:  # its label, and the first one
                yes = F.one_hot(labels, c["classes"]).double()
                yes[:, 0] = 1
                return hidden, F.binary_cross_entropy_with_logits(logits, yes, reduction="sum")
            return hidden, F.cross_entropy(logits, labels)
        if c["task"] == "tag":  # every second row has a label
            logits = self.dense("head.classes", hidden[::2], c["classes"])
            return hidden, F.cross_entropy(logits, torch.arange(0, len(hidden), 2) % c["classes"])
        y = hidden
        if c["head_transform"]:
            y = self.norm("head.norm", self.act(self.dense("head.transform", y, y.shape[1])))
        last = "decoder" if self.decodes else "encoder"
        w = self.table(last) if c["tie"] else self.par("head.weight", c["vocab_size"], y.shape[1])
        b = self.par("head.bias", c["vocab_size"]) if c["head_bias"] else None
        return hidden, F.cross_entropy(F.linear(y, w, b), torch.tensor(targets))


def ids(first, n, c, step, offset):
    return [((first + i) * step + offset) % c["vocab_size"] for i in range(n)]


def tree_depth(i):  # the parent of node i is node i // 2
    return 0 if i == 0 else tree_depth(i // 2) + 1


def tree_distance(a, b):
    if a == b:
        return 0
    return tree_distance(max(a, b) // 2, min(a, b)) + 1


def decays(name):
    free = ("norm.weight", ".bias", "embedding.weight", "position.weight", "depth.weight", "rel_k", "rel_v")
    return not name.endswith(free)


def main():
    tensors, meta = {}, {}
    cases = ([("case", BASE + " " + text, text in TRAINED) for text in TRAINED + FORWARD]
             + [("long", f"{BASE} {LONG_BASE} {text}", False) for text in LONG]
             + [("case", BASE + " " + text, True) for text in LATER])
    for number, (kind, text, trained) in enumerate(cases):
        model = Model(text, LENGTHS[kind])
        meta[f"{kind}.{number:02d}"] = text
        hidden, loss = model.run()
        tensors[f"{number:02d}/hidden"] = hidden
        if loss is not None:
            tensors[f"{number:02d}/loss"] = loss.reshape(1)
        if not trained and kind != "long":
            continue
        loss.backward()
        for name, p in model.p.items():
            tensors[f"{number:02d}/grad/{name}"] = p.grad
        if not trained:
            continue
        groups = [{"params": [p for n, p in model.p.items() if decays(n) == d], "weight_decay": 0.1 * d}
                  for d in (False, True)]
        # Where a gradient is zero but for rounding (biases of keys), a smaller eps would blow the rounding up.
        optimiser = torch.optim.AdamW([g for g in groups if g["params"]], lr=0.01, betas=(0.9, 0.98), eps=1e-3)
        losses = []
        for _ in range(10):
            optimiser.zero_grad()
            loss = model.run()[1]
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        tensors[f"{number:02d}/losses"] = torch.tensor(losses)
        for name, p in model.p.items():
            tensors[f"{number:02d}/final/{name}"] = p

    header, data, at = {"__metadata__": meta}, b"", 0
    for name in sorted(tensors):
        t = tensors[name].detach().float().contiguous()
        raw = struct.pack(f"<{t.numel()}f", *t.flatten().tolist())
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        data, at = data + raw, at + len(raw)
    text = json.dumps(header, separators=(",", ":"))
    text += " " * (-len(text) % 8)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "model_golden.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text.encode() + data)


if __name__ == "__main__":
    main()
