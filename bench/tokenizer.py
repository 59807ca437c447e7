#!/usr/bin/env python3
"""Speed of the peers on the same text as `qkv bench tokenizer`: Hugging Face tokenizers (encode_batch) and tiktoken
(encode_ordinary_batch). One process measures one peer with one thread count.

    python3 bench/tokenizer.py hf TOKENIZER.json TEXT THREADS
    python3 bench/tokenizer.py tiktoken RANKS.tiktoken TEXT THREADS
"""
import os
import sys
import time


def hugging_face(path, lines, threads):
    os.environ["RAYON_NUM_THREADS"] = str(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
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


def main():
    peer, path, text, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    data = open(text, "rb").read()
    lines = data.decode().split("\n")
    run = hugging_face if peer == "hf" else rank_file
    loaded, seconds, tokens = run(path, lines, threads)
    print(f"{peer} {threads} threads: load {1e3 * loaded:.0f} ms, {seconds:.2f} s, "
          f"{len(data) / seconds / 1e6:.2f} MB/s, {tokens} tokens")


if __name__ == "__main__":
    main()
