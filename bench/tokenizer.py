#!/usr/bin/env python3
"""Encoding speed of qkv and of its peers on the same text, one after the other, round after round; the best of each counts.

    python3 bench/tokenizer.py QKV TOKENIZER TEXT [--threads 1 2] [--rounds 2]

TOKENIZER is a tokenizer.json (the peer is Hugging Face tokenizers, encode_batch) or a tiktoken rank file (tiktoken,
encode_ordinary_batch). Every measurement is a process of its own; all lines of the text are given in one batch. Prints rows of a
table: MB/s of both, how many times faster qkv is, the number of tokens of both, the time to load.
"""
import argparse
import json
import os
import subprocess
import sys
import time


def hugging_face(path, lines):
    from tokenizers import Tokenizer
    start = time.time()
    tok = Tokenizer.from_file(path)
    loaded = time.time() - start
    tok.no_padding()
    tok.no_truncation()
    start = time.time()
    tokens = sum(len(e.ids) for e in tok.encode_batch(lines))
    return loaded, time.time() - start, tokens


def rank_file(path, lines, threads):
    import tiktoken
    import tiktoken_ext.openai_public as public
    from tiktoken.load import load_tiktoken_bpe
    start = time.time()
    ranks = load_tiktoken_bpe(path)
    pattern = public.r50k_pat_str
    if len(ranks) > 60000:  # the expression of cl100k, without downloading its ranks
        public.load_tiktoken_bpe = lambda *a, **k: ranks
        pattern = public.cl100k_base()["pat_str"]
    tok = tiktoken.Encoding(name="file", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    loaded = time.time() - start
    start = time.time()
    tokens = sum(len(ids) for ids in tok.encode_ordinary_batch(lines, num_threads=threads))
    return loaded, time.time() - start, tokens


def peer(path, text, threads):
    """Measures in this process; prints a JSON object."""
    data = open(text, "rb").read()
    lines = data.decode().split("\n")[:-1]
    loaded, seconds, tokens = (rank_file(path, lines, threads) if path.endswith(".tiktoken") else hugging_face(path, lines))
    print(json.dumps({"load_ms": 1e3 * loaded, "mb_per_s": len(data) / seconds / 1e6, "tokens": tokens}))


def measure(command, threads):
    env = dict(os.environ, RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="true")
    return json.loads(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv")
    parser.add_argument("tokenizer")
    parser.add_argument("text")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    if args.qkv == "peer":
        return peer(args.tokenizer, args.text, args.threads[0])
    for threads in args.threads:
        commands = ([args.qkv, "bench", "tokenizer", "--tokenizer", args.tokenizer, "--data", args.text,
                     "--threads", str(threads), "--json"],
                    [sys.executable, __file__, "peer", args.tokenizer, args.text, "--threads", str(threads)])
        runs = [[measure(c, threads) for c in commands] for _ in range(args.rounds)]
        ours, theirs = (max((r[i] for r in runs), key=lambda m: m["mb_per_s"]) for i in (0, 1))
        load = [min(r[i]["load_ms"] for r in runs) for i in (0, 1)]
        name = os.path.join(*args.tokenizer.split("/")[-2:])
        print(f"| {name} | {threads} | {ours['mb_per_s']:.1f} MB/s | {theirs['mb_per_s']:.2f} MB/s | "
              f"{ours['mb_per_s'] / theirs['mb_per_s']:.1f}× | {ours['tokens']} / {theirs['tokens']} | "
              f"{load[0]:.1f} / {load[1]:.0f} ms |", flush=True)


if __name__ == "__main__":
    main()
