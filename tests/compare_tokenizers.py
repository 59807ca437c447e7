#!/usr/bin/env python3
"""Ids, texts and offsets of qkv beside those of the originals, line by line (a long test).

    python3 tests/compare_tokenizers.py QKV DATA [--only NAME…]
    python3 tests/compare_tokenizers.py QKV --characters

QKV is the command, DATA the data folder unpacked (data sets imdb, multi30k, tatoeba_fra, tatoeba_cmn, zh_hotel,
zh_chnsenticorp, newstest2015_enru, tokenizers). For each tokenizer file, on 100,000 lines of real text and 20,000 of random
and hostile Unicode: the ids; the text of those ids without and with special tokens; and, on every tenth line, the offsets
(Hugging Face only: the others state none in the same sense). Fails if more lines differ than DIFFERENCES lists and explains.
With --characters instead: every assigned code point through each normalizer and pre-tokenizer of `tokenizers`.
Needs the PyPI packages tokenizers, sentencepiece and tiktoken.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

# Lines that may differ, and why: {(file, what): (lines, reason)}.
DAMAGED = "the file's no-break spaces have become blanks: it is not the model's vocabulary, and tokenizers refuses it"
DIFFERENCES = {
    ("t5-small/tokenizer.json", "offsets"): (230, "Hugging Face counts characters wrongly where the charsmap joins or drops some"),
    ("pre_tokenizer Whitespace ", "characters"): (102, "characters that came after Unicode 15, combining marks most of all"),
    ("pre_tokenizer Digits ", "characters"): (26, "numbers that came after Unicode 15"),
    ("llama2/tokenizer.json", "ids"): (3700, DAMAGED),
    ("llama2/tokenizer.json", "text"): (3700, DAMAGED),
}


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")


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


def qkv(command, verb, path, lines, *options):
    """The lines that the command answers with, as bytes."""
    with tempfile.TemporaryFile() as text:
        text.write(b"\n".join(lines) + b"\n")
        text.seek(0)
        out = subprocess.run([command, "tokenizer", verb, path, *options], stdin=text, capture_output=True, check=True)
    return out.stdout.split(b"\n")[:-1]


# ---- the originals: each has ids(lines), and texts(ids, keep_special) if it decodes ----

class HuggingFace:
    def __init__(self, path):
        from tokenizers import Tokenizer
        self.tok = path if isinstance(path, Tokenizer) else Tokenizer.from_file(path)
        self.tok.no_padding()

    def ids(self, lines):
        return [e.ids for at in range(0, len(lines), 2000) for e in self.tok.encode_batch(lines[at:at + 2000])]

    def texts(self, ids, keep):
        return self.tok.decode_batch(ids, skip_special_tokens=not keep)

    def offsets(self, lines):
        return [e.offsets for at in range(0, len(lines), 2000) for e in self.tok.encode_batch(lines[at:at + 2000])]


def bert(path):
    """A vocab.txt in the pipeline that BERT's own code states."""
    from tokenizers import BertWordPieceTokenizer
    lower = not any(l != l.lower() for l in read(path) if not l.startswith("["))
    tok = BertWordPieceTokenizer(path, lowercase=lower)._tokenizer
    for special in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"):
        tok.add_special_tokens([special])
    return HuggingFace(tok)


def gpt2(path):
    """vocab.json and merges.txt."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    tok = Tokenizer(models.BPE.from_file(f"{path}/vocab.json", f"{path}/merges.txt"))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens(["<|endoftext|>"])
    return HuggingFace(tok)


class SentencePiece:
    def __init__(self, path):
        import sentencepiece
        self.tok = sentencepiece.SentencePieceProcessor(model_file=path)

    def ids(self, lines):
        return self.tok.encode(lines)

    def texts(self, ids, keep):
        return None if keep else self.tok.decode(ids)


class RankFile:
    def __init__(self, path):
        import tiktoken
        import tiktoken_ext.openai_public as public
        from tiktoken.load import load_tiktoken_bpe
        ranks = load_tiktoken_bpe(path)
        public.load_tiktoken_bpe = lambda *a, **k: ranks
        large = len(ranks) > 60000
        spec = public.cl100k_base() if large else {"pat_str": public.r50k_pat_str, "special_tokens": {"<|endoftext|>": 50256}}
        self.tok = tiktoken.Encoding(name="file", pat_str=spec["pat_str"], mergeable_ranks=ranks,
                                     special_tokens=spec["special_tokens"])

    def ids(self, lines):
        return self.tok.encode_batch(lines, allowed_special="all")

    def texts(self, ids, keep):
        return self.tok.decode_batch(ids) if keep else None


# (original, file of ours, file of the original, options of ours)
FILES = [(HuggingFace, f"{n}/tokenizer.json", f"{n}/tokenizer.json", []) for n in
         ("roberta-base", "bert-base-uncased", "bert-base-chinese", "all-minilm-l6-v2", "t5-small", "phi-3-mini", "whisper-tiny")]
FILES += [(bert, f"{n}/vocab.txt", f"{n}/vocab.txt", []) for n in ("bert-base-uncased", "bert-base-chinese", "bert-cased")]
FILES += [(gpt2, "gpt2", "gpt2", [])]
FILES += [(SentencePiece, n, n, []) for n in
          ("llama2/tokenizer.model", "hf-fixtures/spiece.model", "hf-fixtures/test_sentencepiece.model",
           "hf-fixtures/test_sentencepiece_bpe.model", "hf-fixtures/test_sentencepiece_no_bos.model",
           "sentencepiece/test_model.model", "sentencepiece/test_ja_model.model")]
# `tokenizers` 0.23 refuses this file ("Merges text file invalid at line 18918"); its vocabulary is the model's.
FILES += [(SentencePiece, "llama2/tokenizer.json", "llama2/tokenizer.model", ["--no-special"])]
FILES += [(RankFile, f"tiktoken/{n}_base.tiktoken", f"tiktoken/{n}_base.tiktoken", []) for n in ("r50k", "cl100k")]
# A vocabulary in GGUF beside the tokenizer that it was converted from.
FILES += [(o, f"llama.cpp-vocab/ggml-vocab-{n}.gguf", p, ["--no-special"]) for o, n, p in
          ((gpt2, "gpt-2", "gpt2"), (bert, "bert-bge", "bert-base-uncased/vocab.txt"),
           (SentencePiece, "llama-spm", "llama2/tokenizer.model"))]


# ---- every character through each step ----

STEPS = [{"normalizer": n} for n in
         ({"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
          {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Nmt"}, {"type": "Lowercase"},
          {"type": "StripAccents"}, {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "ByteLevel"})]
STEPS += [{"pre_tokenizer": p} for p in
          ({"type": "BertPreTokenizer"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "UnicodeScripts"},
           {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"},
           {"type": "Split", "pattern": {"Regex": GPT2}, "behavior": "Isolated", "invert": False},
           {"type": "Split", "pattern": {"Regex": LLAMA3}, "behavior": "Isolated", "invert": False})]


def compare_steps(verdict, command):
    """Normalizers: the bytes of the result, as ids of byte tokens. Pre-tokenizers: the offsets of the pieces."""
    lines = [f"{head}{chr(c)}{tail}" for head, tail in (("a", "b1"), ("", ""), ("a\u0315", "\u0334b")) for c in range(0x32000)
             if c not in (0, 10, 13) and not 0xD800 <= c <= 0xDFFF]
    raw = [l.encode() for l in lines]
    spell = {"type": "BPE", "byte_fallback": True, "vocab": {f"<0x{b:02X}>": b for b in range(256)}, "merges": []}
    cut = {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"}
    for step in STEPS:
        kind, what = next(iter(step.items()))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tokenizer.json")
            parts = {"normalizer": None, "pre_tokenizer": None, **step}
            json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "post_processor": None,
                       "decoder": None, **parts, "model": spell if kind == "normalizer" else cut}, open(path, "w"))
            original = HuggingFace(path)
            if kind == "normalizer":
                theirs = original.ids(lines)
                mine = [[int(i) for i in l.split()] for l in qkv(command, "encode", path, raw)]
            else:
                theirs = [[list(o) for o in e] for e in original.offsets(lines)]
                mine = [[list(map(int, t.split(b":")[1].split(b"-"))) for t in l.split()]
                        for l in qkv(command, "encode", path, raw, "--characters")]
        pattern = what.get("pattern", {}).get("Regex", "")[:12]
        verdict.report(f"{kind} {what['type']} {pattern}", "characters", different(mine, theirs), lines)


class Verdict:
    failed = False

    def report(self, name, what, differ, lines):
        allowed, reason = DIFFERENCES.get((name, what), (0, ""))
        bad = len(differ) > allowed
        self.failed |= bad
        why = " — FAILED" if bad else f" ({reason})" if differ else ""
        print(f"{name}: {what}: {len(differ)} of {len(lines)} lines differ{why}", flush=True)
        for i in differ[:3] if bad else []:
            print("   ", i, ascii(lines[i][:100]))


def different(ours, theirs):
    assert len(ours) == len(theirs), f"{len(ours)} lines, the original has {len(theirs)}"
    return [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]


def byte_offsets(line, offsets):
    """Character offsets as byte offsets."""
    place = [0]
    for c in line:
        place.append(place[-1] + len(c.encode()))
    return [(place[a], place[b]) for a, b in offsets]


def compare(verdict, command, name, path, original, options, lines):
    raw = [l.encode() for l in lines]
    theirs = original.ids(lines)
    if "--no-special" in options and isinstance(original, HuggingFace):
        theirs = [e.ids for e in original.tok.encode_batch(lines, add_special_tokens=False)]
    mine = [[int(i) for i in l.split()] for l in qkv(command, "encode", path, raw, *options)]
    verdict.report(name, "ids", different(mine, theirs), lines)
    for keep in (False, True):
        texts = original.texts(theirs, keep)
        if texts is None:
            continue
        given = [" ".join(map(str, ids)).encode() for ids in theirs]
        ours = qkv(command, "decode", path, given, *(["--keep-special"] if keep else []))
        # The originals put U+FFFD for bytes that are no text, qkv gives the bytes back; a line end would end the answer.
        ours = [t.decode(errors="replace") for t in ours]
        differ = [i for i in different(ours, texts) if "\n" not in texts[i]]
        verdict.report(name, "text with special tokens" if keep else "text", differ, lines)
    if isinstance(original, HuggingFace) and "--no-special" not in options:
        some = lines[::10]
        theirs = [byte_offsets(l, o) for l, o in zip(some, original.offsets(some))]
        mine = [[tuple(map(int, t.split(b":")[1].split(b"-"))) for t in l.split()]
                for l in qkv(command, "encode", path, raw[::10], "--offsets")]
        verdict.report(name, "offsets", different(mine, theirs), some)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv")
    parser.add_argument("data", nargs="?")
    parser.add_argument("--characters", action="store_true")
    parser.add_argument("--only", nargs="+", default=[""], help="files whose name contains one of these")
    args = parser.parse_args()
    verdict = Verdict()
    if args.characters:
        compare_steps(verdict, args.qkv)
        sys.exit(verdict.failed)
    random.seed(7)
    lines = real_lines(args.data) + hostile_lines(20000)
    assert len(lines) == 120000, f"{len(lines)} lines"
    for make, name, source, options in FILES:
        if any(part in name for part in args.only):
            folder = f"{args.data}/tokenizers"
            compare(verdict, args.qkv, name, f"{folder}/{name}", make(f"{folder}/{source}"), options, lines)
    sys.exit(verdict.failed)


if __name__ == "__main__":
    main()
