#!/usr/bin/env python3
"""Ids of qkv beside those of the originals, line by line (a long test; needs PyPI tokenizers, sentencepiece, tiktoken).

    python3 tests/compare_tokenizers.py QKV DATA

QKV is the command, DATA the data folder unpacked (data sets imdb, multi30k, tatoeba_fra, tatoeba_cmn, zh_hotel,
zh_chnsenticorp, newstest2015_enru, tokenizers). Compares 100,000 lines of real text and 20,000 of random and hostile Unicode
for each tokenizer file and fails if more lines differ than are listed and explained in ALLOWED.
"""
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

# Lines that may differ, and why.
ALLOWED = {
    # User-defined pieces next to runs of one letter: sums that tie in single precision.
    "hf-fixtures/spiece.model": 16,
}


def read(path):
    return open(path, "rb").read().decode().split("\n")[:-1]


def real_lines(data):
    lines = [l.split("\t", 1)[1] for l in read(f"{data}/imdb/test.tsv")]
    random.shuffle(lines)
    lines = lines[:20000]
    for language in ("en", "de", "fr"):
        lines += read(f"{data}/multi30k/train.{language}")[:10000]
    for name in ("zh_hotel/hotel.tsv", "zh_chnsenticorp/train.tsv"):
        lines += [l.split("\t", 1)[1] for l in read(f"{data}/{name}")]
    pairs = read(f"{data}/tatoeba_fra/eng-fra.tsv")
    random.shuffle(pairs)
    lines += pairs[:20000] + read(f"{data}/tatoeba_cmn/eng-cmn.tsv")[:12000]
    lines += read(f"{data}/newstest2015_enru/newstest2015.en-ru.tsv")
    return [l.replace("\r", " ") for l in lines][:100000]


FRAGMENTS = ["'s", "'S", "'ll", "don't", "123456", "▁", "<s>", "</s>", " <mask> ", "[MASK]", "[CLS]", "<pad>", "<unk>",
             "<extra_id_0>", "<0x41>", "##a", "ﬁ", "İ", "ß", "ﷺ", "한국어", "e\u0301", "ǅ", "Å", "🏳️‍🌈", "👨‍👩‍👧", "\u1100\u1161\u11a8",
             "x" * 50, "a" * 120, "   ", "\t\t", "!!!", "?!", "—", "“x”", "½", "Ⅷ", "①", "٣", "日本語", "中文字", "שלום", "नमस्ते"]


def hostile_lines(count):
    every = [c for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF and c not in (10, 13)]
    assigned = [c for c in every if unicodedata.category(chr(c)) not in ("Cn", "Co")]
    marks = [c for c in assigned if unicodedata.category(chr(c))[0] == "M"]
    spaces = [9, 0xB, 0xC, 0x1C, 32, 32, 0x85, 0xA0, 0x1680, 0x2003, 0x200B, 0x2028, 0x202F, 0x3000, 0xFEFF, 0x2581]
    pick = [lambda: chr(random.choice(every)), lambda: chr(random.choice(assigned)), lambda: chr(random.choice(marks)),
            lambda: chr(random.choice(spaces)), lambda: chr(random.randint(32, 126)), lambda: random.choice(FRAGMENTS)]
    mixes = [(0,), (1,), (2, 4), (3, 4), (5,), (3, 4, 5), (0, 1, 2, 3, 4, 5)]
    return ["".join(pick[random.choice(mixes[i % len(mixes)])]() for _ in range(random.randint(1, 40))).replace("\n", " ")
            for i in range(count)]


def ours(command, path, lines, *options):
    with tempfile.TemporaryFile() as text:
        text.write(("\n".join(lines) + "\n").encode())
        text.seek(0)
        out = subprocess.run([command, "tokenizer", "encode", path, *options], stdin=text, capture_output=True, check=True)
    return [[int(i) for i in l.split()] for l in out.stdout.decode().split("\n")[:-1]]


def hugging_face(path, lines):
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(path)
    tok.no_padding()
    return [e.ids for at in range(0, len(lines), 2000) for e in tok.encode_batch(lines[at:at + 2000])]


def sentencepiece(path, lines):
    import sentencepiece as sp
    return sp.SentencePieceProcessor(model_file=path).encode(lines)


def rank_file(path, lines):
    import tiktoken
    import tiktoken_ext.openai_public as public
    from tiktoken.load import load_tiktoken_bpe
    ranks = load_tiktoken_bpe(path)
    public.load_tiktoken_bpe = lambda *a, **k: ranks
    large = len(ranks) > 60000
    spec = public.cl100k_base() if large else {"pat_str": public.r50k_pat_str, "special_tokens": {"<|endoftext|>": 50256}}
    tok = tiktoken.Encoding(name="file", pat_str=spec["pat_str"], mergeable_ranks=ranks, special_tokens=spec["special_tokens"])
    return tok.encode_batch(lines, allowed_special="all")


FILES = [(hugging_face, f"{n}/tokenizer.json") for n in
         ("roberta-base", "bert-base-uncased", "bert-base-chinese", "all-minilm-l6-v2", "t5-small", "phi-3-mini", "whisper-tiny")]
FILES += [(sentencepiece, n) for n in
          ("llama2/tokenizer.model", "hf-fixtures/spiece.model", "hf-fixtures/test_sentencepiece.model",
           "hf-fixtures/test_sentencepiece_bpe.model", "sentencepiece/test_model.model", "sentencepiece/test_ja_model.model")]
FILES += [(rank_file, f"tiktoken/{n}_base.tiktoken") for n in ("r50k", "cl100k")]


def main():
    command, data = sys.argv[1], sys.argv[2]
    random.seed(7)
    lines = real_lines(data) + hostile_lines(20000)
    failed = False
    for peer, name in FILES:
        path = f"{data}/tokenizers/{name}"
        if not os.path.exists(path):
            print(f"{name}: not there")
            continue
        theirs, mine = peer(path, lines), ours(command, path, lines)
        differ = [i for i, (a, b) in enumerate(zip(mine, theirs)) if list(a) != list(b)]
        bad = len(differ) > ALLOWED.get(name, 0) or len(mine) != len(theirs)
        failed |= bad
        print(f"{name}: {len(differ)} of {len(lines)} lines differ{' — FAILED' if bad else ''}", flush=True)
        for i in differ[:3] if bad else []:
            print("   ", ascii(lines[i][:100]))
    sys.exit(failed)


if __name__ == "__main__":
    main()
