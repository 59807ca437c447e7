"""Writes the ids on which `qkv bench train` and torch_train.py do the same work: OUT/imdb.ids, multi30k.ids, gpt.ids; and, for
classify.sh, all reviews of a test set that is at hand: OUT/imdb_test.ids.

    python make_ids.py OUT [DATA]

A line is an example: ids separated by blanks, source and target by a TAB. With DATA (a folder with imdb/train.tsv,
multi30k/train.{en,de}, tiny_shakespeare/input.txt) the texts are real, in words and characters; without, lengths and ids are
drawn from distributions like theirs. Ids 0 … 3 are left to padding, begin, end and unknown.
"""
import collections
import glob
import os
import random
import re
import sys

out, data = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
os.makedirs(out, exist_ok=True)
draw = random.Random(1)


def find(*names):
    for name in names:
        for path in glob.glob(os.path.join(data, name)) if data else []:
            return path
    return None


def number(texts, size):
    """Each distinct token by frequency; what does not fit becomes 3."""
    count = collections.Counter(t for text in texts for t in text)
    ids = {t: i + 4 for i, (t, _) in enumerate(count.most_common(size - 4))}
    return [[ids.get(t, 3) for t in text] for text in texts]


def zipf(n, size):
    return [min(size - 1, int(size ** draw.random()) + 3) for _ in range(n)]


def write(name, lines):
    with open(os.path.join(out, name + ".ids"), "w") as f:
        for sides in lines:
            f.write("\t".join(" ".join(map(str, s)) for s in sides) + "\n")


def spread(examples, budget, batches=8):
    """The examples of a few batches, from the shortest lengths to the longest: small enough for both programs to time whole
    passes over the same work, and each batch as even in length as in the whole set."""
    examples = sorted(examples, key=lambda e: [len(side) for side in e])
    groups, tokens = [[]], 0
    for e in examples:
        size = sum(len(side) + 1 for side in e)
        if tokens + size > budget:
            groups.append([])
            tokens = 0
        groups[-1].append(e)
        tokens += size
    groups = groups[:-1] or groups
    chosen = [groups[(2 * i + 1) * len(groups) // (2 * batches)] for i in range(min(batches, len(groups)))]
    return [e for group in chosen for e in group]


words = re.compile(r"\w+|[^\w\s]")
reviews = find("imdb/train.tsv")
if reviews:
    texts = [words.findall(line.split("\t", 1)[1].lower()) for line in open(reviews)]
    draw.shuffle(texts)
    examples = [[t[:512]] for t in number(texts, 50000)[:8000]]
else:
    examples = [[zipf(min(512, max(10, int(draw.lognormvariate(5.16, 0.75)))), 50000)] for _ in range(8000)]
write("imdb", spread(examples, 8192))
if find("imdb/test.tsv"):
    test = [words.findall(line.split("\t", 1)[1].lower()) for line in open(find("imdb/test.tsv"))]
    write("imdb_test", [[t[:512]] for t in number(test, 50000)])

source, target = find("multi30k/train.de", "multi30k/train.lc.norm.tok.de"), find("multi30k/train.en", "multi30k/train.lc.norm.tok.en")
if source and target:
    a, b = ([words.findall(line.lower()) for line in open(p)] for p in (source, target))
    joint = number(a + b, 8000)
    pairs = list(zip(joint[: len(a)], joint[len(a):]))[:8000]
else:
    pairs = []
    for _ in range(8000):
        shared = draw.gauss(14, 4)
        pairs.append([zipf(min(40, max(4, int(shared + draw.gauss(0, 2)))), 8000) for _ in range(2)])
write("multi30k", spread(pairs, 4096))

text = find("tinyshakespeare/input.txt", "tiny_shakespeare/input.txt", "shakespeare/input.txt")
if text:
    chars = {c: i for i, c in enumerate(sorted(set(open(text).read())))}
    write("gpt", [[[chars[c] for c in open(text).read()]]])
else:
    write("gpt", [[[draw.randrange(65) for _ in range(1 << 20)]]])
