#!/usr/bin/env python3
"""Tokenizers that qkv trained, side by side with Hugging Face `tokenizers` and SentencePiece.

    compare_training.py QKV TEXT [--size N] [--lines N] [--check LINES]

On the same text: BPE's merges must equal those of `tokenizers`' trainer, in order, up to ties; every file that
qkv wrote must load there and give the same ids on every line; Unigram's log-likelihood per word must be at most
0.5 % worse than SentencePiece's at the same size; WordPiece is compared by tokens per word. The exit code is the
verdict. Needs the packages tokenizers and sentencepiece."""
import argparse
import collections
import json
import math
import os
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, trainers
from tokenizers.pre_tokenizers import ByteLevel

failures = 0


def report(ok, text):
    global failures
    failures += not ok
    print(("ok    " if ok else "WRONG ") + text, flush=True)


def train(args, text, out, *options):
    subprocess.run([args.qkv, "tokenizer", "train", "--vocab-size", str(args.size), "-o", out, *options, text],
                   check=True, stdout=subprocess.DEVNULL)


def ids_of(args, path, text):
    """qkv's ids, one list per line."""
    with open(text, "rb") as lines:
        out = subprocess.run([args.qkv, "tokenizer", "encode", path], stdin=lines, check=True, capture_output=True)
    return [[int(i) for i in line.split()] for line in out.stdout.decode().split("\n")[:-1]]


def same_ids(args, name, path, text, lines):
    """The file loads in `tokenizers` and gives the same ids; returns tokens per word."""
    peer = Tokenizer.from_file(path)
    ours = ids_of(args, path, text)
    theirs = [e.ids for e in peer.encode_batch(lines)]
    different = sum(a != b for a, b in zip(ours, theirs)) + abs(len(ours) - len(theirs))
    report(different == 0, f"{name}: {len(lines)} lines, {different} with other ids than tokenizers gives")
    return sum(map(len, ours)) / sum(len(line.split()) for line in lines)


def compare_merges(args, name, path, lines, **options):
    """Trains `tokenizers` with the pipeline of our file and compares the merges one by one."""
    ours = json.load(open(path, encoding="utf8"))["model"]["merges"]
    peer = Tokenizer.from_file(path)
    specials = [t["content"] for t in json.load(open(path, encoding="utf8"))["added_tokens"]]
    trainer = trainers.BpeTrainer(vocab_size=args.size, min_frequency=2, special_tokens=specials,
                                  show_progress=False, **options)
    peer.train_from_iterator(lines, trainer)
    theirs = json.loads(peer.to_str())["model"]["merges"]
    ours = [tuple(m.split(" ") if isinstance(m, str) else m) for m in ours]
    theirs = [tuple(m.split(" ") if isinstance(m, str) else m) for m in theirs]
    first = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    different = len(set(ours) ^ set(theirs))
    # With marked forms (x</w>, ##x) the peer numbers characters in the order of a hash map: its ties are random.
    allowed = 0.15 * len(ours) if "initial_alphabet" not in options and options else 0
    report(different <= allowed, f"{name}: {len(ours)} merges, {different} of them not in both, the same order up to "
           f"merge {first}")


def likelihood(pieces, words):
    """Log-probability per word, all segmentations summed."""
    total = count = 0
    for word, n in words.items():
        way = [1.0] + [0.0] * len(word)
        for i in range(len(word)):
            for j in range(i + 1, min(len(word), i + 16) + 1):
                p = pieces.get(word[i:j])
                if p:
                    way[j] += way[i] * p
        total += n * math.log(way[-1])
        count += n
    return total / count


def compare_unigram(args, path, text, lines):
    import sentencepiece
    prefix = path + ".spm"
    sentencepiece.SentencePieceTrainer.train(
        input=text, model_prefix=prefix, vocab_size=args.size, model_type="unigram", pad_id=3,
        normalization_rule_name="identity", max_sentence_length=1 << 24, minloglevel=2, num_threads=os.cpu_count())
    model = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
    theirs = {model.id_to_piece(i): math.exp(model.get_score(i)) for i in range(4, model.get_piece_size())}
    vocab = json.load(open(path, encoding="utf8"))["model"]["vocab"]
    ours = {text: math.exp(score) for text, score in vocab[4:]}
    shared = {c for c in ours if len(c) == 1} & {c for c in theirs if len(c) == 1}
    words = collections.Counter("\u2581" + w for line in lines for w in line.split(" ") if w)
    words = {w: n for w, n in words.items() if len(w) < 60 and set(w) <= shared}
    a, b = likelihood(ours, words), likelihood(theirs, words)
    report(len(ours) == len(theirs), f"unigram: {len(ours)} pieces, sentencepiece {len(theirs)}")
    report(a > b * 1.005, f"unigram: {a:.4f} nats per word, sentencepiece {b:.4f}: {100 * (b - a) / b:+.2f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv")
    parser.add_argument("text")
    parser.add_argument("--size", type=int, default=8000)
    parser.add_argument("--lines", type=int, default=0, help="train on the first lines only")
    parser.add_argument("--check", type=int, default=10000, help="lines whose ids are compared")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text, sample = os.path.join(folder, "text"), os.path.join(folder, "sample")
        lines = open(args.text, encoding="utf8", newline="\n").read().split("\n")[:-1]
        lines = [line.rstrip("\r") for line in lines[: args.lines or None]]
        check = lines[:: max(1, len(lines) // args.check)]
        for name, content in ((text, lines), (sample, check)):
            with open(name, "w", encoding="utf8", newline="\n") as out:
                out.writelines(line + "\n" for line in content)
        alphabet = {"initial_alphabet": ByteLevel.alphabet()}
        for kind, split, options in (
                ("bpe", "byte-level", alphabet), ("bpe", "metaspace", {}),
                ("bpe", "end-of-word", {"end_of_word_suffix": "</w>"}),
                ("bpe", "bert", {"continuing_subword_prefix": "##"}),
                ("unigram", "metaspace", None), ("unigram", "byte-level", None), ("wordpiece", "bert", None),
                ("char", "metaspace", None), ("word", "end-of-word", None), ("word", "bert", None)):
            path = os.path.join(folder, f"{kind}-{split}.json")
            train(args, text, path, "--kind", kind, "--split", split)
            rate = same_ids(args, f"{kind} {split}", path, sample, check)
            print(f"      {kind} {split}: {rate:.4f} tokens per word")
            if options is not None:
                compare_merges(args, f"{kind} {split}", path, lines, **options)
            if (kind, split) == ("unigram", "metaspace"):
                compare_unigram(args, path, text, lines)
        path = os.path.join(folder, "by-count.json")
        train(args, text, path, "--kind", "wordpiece", "--by-count")
        rate = same_ids(args, "wordpiece by count", path, sample, check)
        print(f"      wordpiece by count: {rate:.4f} tokens per word")
        peer = Tokenizer.from_file(path)
        specials = [t["content"] for t in json.load(open(path, encoding="utf8"))["added_tokens"]]
        peer.train_from_iterator(lines, trainers.WordPieceTrainer(
            vocab_size=args.size, min_frequency=2, special_tokens=specials, show_progress=False))
        ours, theirs = set(Tokenizer.from_file(path).get_vocab()), set(peer.get_vocab())
        report(len(ours & theirs) >= 0.99 * len(ours), f"wordpiece by count: {len(ours & theirs)} of {len(ours)} tokens "
               "are also learned by tokenizers")
        rate = sum(len(e.ids) for e in peer.encode_batch(check)) / sum(len(line.split()) for line in check)
        print(f"      tokenizers' wordpiece: {rate:.4f} tokens per word")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
