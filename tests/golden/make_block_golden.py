"""Golden values of GGUF's blocks: `python3 make_block_golden.py > block_golden.h` (pip install gguf==0.19.0).

Bytes come from a generator that tests/test_weight.c has too; gguf-py makes floats of them; kept is a hash of
their bits, by type.
"""
import numpy as np
from gguf import GGMLQuantizationType as T, quants
from gguf.constants import GGML_QUANT_SIZES

BLOCKS = 64
HALVES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108],
          T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0]}


def noise(n, seed):
    out, x = bytearray(n), seed
    for i in range(n):
        x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
        out[i] = x >> 56
    return out


def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 % 2**64
    return h


print('/* Made by make_block_golden.py: type, bytes of a block, where its f16 stand (-1: no second), hash. */')
print('#define BLOCKS', BLOCKS)
print('static const struct {\n    qkv_weight_format format;\n    int bytes, half[2];\n    uint64_t hash;\n} block_golden[] = {')
for t, halves in HALVES.items():
    elements, size = GGML_QUANT_SIZES[t]
    raw = noise(BLOCKS * size, t.value)
    for block in range(BLOCKS):
        for at in halves: # finite, and not all of one sign
            raw[block * size + at + 1] = raw[block * size + at + 1] & 0x8f | 0x20
    values = quants.dequantize(np.frombuffer(bytes(raw), dtype=np.uint8).reshape(BLOCKS, size), t)
    assert values.shape == (BLOCKS, elements) and np.isfinite(values).all()
    second = halves[1] if len(halves) > 1 else -1
    print(f'    {{QKV_WEIGHT_{t.name}, {size}, {{{halves[0]}, {second}}}, 0x{fnv(values.astype("<f4").tobytes()):016x}u}},')
print('};')
