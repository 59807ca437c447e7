"""Writes xent_golden.h: cross-entropy of pairs that should agree (R-Drop), from PyTorch's own functions.

    python make_xent_golden.py > xent_golden.h      (torch 2.13.0)

Logits are a formula that tests/test_ops.c repeats; rows r and 3 + r are the two views of one example.
"""
import torch
import torch.nn.functional as F

PAIRS, V, SMOOTHING, AGREE = 3, 7, 0.1, 0.8
TARGETS = [3, 0, 6]
z = torch.tensor([((i * 37) % 101 - 50) / 16 for i in range(2 * PAIRS * V)], dtype=torch.float64)
z = z.reshape(2 * PAIRS, V).requires_grad_(True)
targets = torch.tensor(TARGETS * 2)
ce = F.cross_entropy(z, targets, label_smoothing=SMOOTHING, reduction="sum")
p, q = F.log_softmax(z[:PAIRS], -1), F.log_softmax(z[PAIRS:], -1)
kl = F.kl_div(p, q, log_target=True, reduction="sum") + F.kl_div(q, p, log_target=True, reduction="sum")
loss = ce + AGREE * kl / 2
loss.backward()
print("/* Written by make_xent_golden.py. */")
print(f"enum {{ XENT_PAIRS = {PAIRS}, XENT_V = {V} }};")
print(f"static const double xent_smoothing = {SMOOTHING}, xent_agree = {AGREE}, xent_loss = {loss.item():.12g};")
print("static const int32_t xent_targets[] = {" + ", ".join(map(str, TARGETS * 2)) + "};")
print("static const real xent_grad[] = {")
for row in z.grad:
    print("    " + " ".join(f"(real){x:.9g}," for x in row.tolist()))
print("};")
