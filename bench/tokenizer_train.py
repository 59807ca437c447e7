#!/usr/bin/env python3
"""Training a tokenizer: qkv, Hugging Face `tokenizers` and SentencePiece on the same text, one after the other.

    tokenizer_train.py QKV TEXT [--size N] [--threads 1 2] [--kind bpe unigram wordpiece]

Each runs in a process of its own with that many threads; the time is that of training alone (for the Python
packages without reading the file into memory; qkv's includes reading and writing files). Prints a table a
kind: seconds, and how many times faster qkv is."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HUGGING_FACE = """
import sys, time
from tokenizers import Tokenizer, normalizers, pre_tokenizers, models, trainers
text, kind, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
lines = open(text, encoding="utf8", newline="\\n").read().split("\\n")[:-1]
if kind == "bpe":
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
elif kind == "wordpiece":
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=False)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=size, min_frequency=2, show_progress=False, special_tokens=["[UNK]"])
else:
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=size, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"])
start = time.perf_counter()
tok.train_from_iterator(lines, trainer)
print(time.perf_counter() - start)
"""

SENTENCEPIECE = """
import os, sys, tempfile, time
import sentencepiece
text, kind, size, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with tempfile.TemporaryDirectory() as folder:
    start = time.perf_counter()
    sentencepiece.SentencePieceTrainer.train(
        input=text, model_prefix=os.path.join(folder, "m"), vocab_size=size, model_type=kind, num_threads=threads,
        normalization_rule_name="identity", max_sentence_length=1 << 24, minloglevel=2)
    print(time.perf_counter() - start)
"""


def python(code, args, kind, threads):
    env = dict(os.environ, RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="true" if threads > 1 else "false")
    out = subprocess.run([sys.executable, "-c", code, args.text, kind, str(args.size), str(threads)], env=env,
                         check=True, capture_output=True, text=True)
    return float(out.stdout)


def qkv(args, kind, threads, *options):
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run([args.qkv, "tokenizer", "train", "--kind", kind, "--vocab-size", str(args.size),
                              "--threads", str(threads), "--json", "-o", os.path.join(folder, "t.json"), *options,
                              args.text], check=True, capture_output=True, text=True)
        return json.loads(out.stdout)["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv")
    parser.add_argument("text")
    parser.add_argument("--size", type=int, default=8000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kind", nargs="+", default=["bpe", "unigram", "wordpiece"])
    parser.add_argument("--peer", nargs="+", default=["tokenizers", "sentencepiece"])
    args = parser.parse_args()
    print("| kind | threads | qkv, s | peer | peer, s | times faster |")
    print("| --- | ---: | ---: | --- | ---: | ---: |")
    for kind in args.kind:
        for threads in args.threads:
            ours = min(qkv(args, kind, threads) for _ in range(2))
            for name, code in (("tokenizers", HUGGING_FACE), ("sentencepiece", SENTENCEPIECE)):
                if name not in args.peer or (name == "sentencepiece" and kind == "wordpiece"):
                    continue
                theirs = python(code, args, kind, threads)
                print(f"| {kind} | {threads} | {ours:.2f} | {name} | {theirs:.2f} | {theirs / ours:.1f} |", flush=True)


if __name__ == "__main__":
    main()
