"""Writes optim_golden.h: three parameters after 1 and after 10 steps of each optimiser in PyTorch.

    python make_optim_golden.py > optim_golden.h      (torch 2.13.0)

Gradients and rates are simple formulas that tests/test_optim.c repeats exactly. The gradient's global norm is
clipped to 1 as clip/norm (torch adds 1e-6 to the norm; we do not). Muon runs its products in float32 instead of
bfloat16, with adjust_lr_fn="match_rms_adamw"; the vector gets AdamW.
"""
import math
import torch

torch.Tensor.bfloat16 = lambda self: self.clone()  # Muon's products in float32

SHAPES = [(5, 7), (9, 4), (1, 6)]  # wide, tall, vector without decay


def value(p, i):
    return ((i * 37 + p * 101) % 200 - 100) / 128


def gradient(p, i, step):
    return ((i * 7919 + p * 131 + step * 104729) % 1000 - 500) / 512


def rate(step):
    return 0.01 * (1 + 0.125 * step)


def make(kind, params):
    decayed, plain = params[:2], params[2:]
    groups = lambda d: [{"params": decayed, "weight_decay": d}, {"params": plain, "weight_decay": 0.0}]
    if kind == "adamw":
        return [torch.optim.AdamW(groups(0.1), betas=(0.9, 0.98), eps=1e-8)]
    if kind == "adam":
        return [torch.optim.Adam(groups(0.1), betas=(0.9, 0.98), eps=1e-8)]
    if kind == "sgd":
        return [torch.optim.SGD(groups(0.1), momentum=0.9)]
    if kind == "sgd_nesterov":
        return [torch.optim.SGD(groups(0.1), momentum=0.9, nesterov=True)]
    return [torch.optim.Muon(decayed, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(plain, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.0)]


def run(kind):
    params = [torch.tensor([[value(p, i * c + j) for j in range(c)] for i in range(r)], requires_grad=True)
              for p, (r, c) in enumerate(SHAPES)]
    optimisers, after = make(kind, params), {}
    for step in range(1, 11):
        for p, (r, c) in enumerate(SHAPES):
            params[p].grad = torch.tensor([[gradient(p, i * c + j, step) for j in range(c)] for i in range(r)])
        norm = math.sqrt(sum(float((q.grad.double() ** 2).sum()) for q in params))
        for q in params:
            q.grad.mul_(min(1.0, 1.0 / norm))
        for o in optimisers:
            for group in o.param_groups:
                group["lr"] = rate(step)
            o.step()
        if step in (1, 10):
            after[step] = [float(x) for q in params for x in q.detach().flatten()]
    return after


print("/* Made by make_optim_golden.py with torch %s. */" % torch.__version__.split("+")[0])
for kind in ("adamw", "adam", "sgd", "sgd_nesterov", "muon"):
    for step, values in run(kind).items():
        print("static const float golden_%s_%d[] = {" % (kind, step))
        for at in range(0, len(values), 6):
            print("    " + " ".join("%.9g," % v for v in values[at:at + 6]))
        print("};")
