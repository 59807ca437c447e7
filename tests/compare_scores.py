"""Compares `qkv score` with sacrebleu: python compare_scores.py QKV [HYP REF]…
Without files: on synthetic lines over characters that the tokenisations treat differently."""
import json
import random
import subprocess
import sys
import tempfile

import sacrebleu

TOKENS = ("13a", "intl", "char", "none")
ALPHABET = list("abcAB019..,,--'\"()<>&;:!?/\\$%+=*#@[]{}|~^_` \t") + \
    ["é", "ß", "ж", "Ж", "字", "。", "，", "ا", "٣", "½", "€", "“", "”", "–", "…", "\u00a0", "\u3000", "\u200b",
     "\U0001f600", "e\u0301", "&quot;", "&amp;", "&lt;", "<skipped>", "5.5", "ab", " the ", " cat "]


def synthetic(rng, lines):
    hyp, ref = [], []
    for _ in range(lines):
        line = [rng.choice(ALPHABET) for _ in range(rng.randrange(60))]
        hyp.append("".join(line))
        for _ in range(rng.randrange(12)):
            if line:
                line[rng.randrange(len(line))] = rng.choice(ALPHABET + [""])
        ref.append("".join(line))
    return hyp, ref


def lines_of(path):
    with open(path, encoding="utf-8", newline="\n") as f:
        return [line.rstrip("\n") for line in f]


def compare(qkv, name, hyp_path, ref_path):
    hyp, ref = lines_of(hyp_path), lines_of(ref_path)
    worst = 0
    for tok in TOKENS:
        out = json.loads(subprocess.run([qkv, "score", "--ref", ref_path, "--tokenize", tok, "--json", hyp_path],
                                        check=True, capture_output=True).stdout)
        pairs = [(out["bleu"], sacrebleu.metrics.BLEU(tokenize=tok, force=True).corpus_score(hyp, [ref]).score),
                 (out["chrf"], sacrebleu.metrics.CHRF().corpus_score(hyp, [ref]).score),
                 (out["chrf_words"], sacrebleu.metrics.CHRF(word_order=2).corpus_score(hyp, [ref]).score)]
        worst = max([worst] + [abs(a - b) for a, b in pairs])
        print(f"{name} {tok}: " + "  ".join(f"{a:.4f} ({b:.4f})" for a, b in pairs))
    return worst


def main():
    qkv, files = sys.argv[1], sys.argv[2:]
    worst = 0
    for hyp, ref in zip(files[::2], files[1::2]):
        worst = max(worst, compare(qkv, hyp, hyp, ref))
    for seed in range(0 if files else 5):
        with tempfile.TemporaryDirectory() as folder:
            for name, lines in zip("hr", synthetic(random.Random(seed), 300)):
                with open(f"{folder}/{name}", "w", encoding="utf-8", newline="\n") as f:
                    f.writelines(line + "\n" for line in lines)
            worst = max(worst, compare(qkv, f"seed {seed}", f"{folder}/h", f"{folder}/r"))
    print(f"largest difference {worst:.2e}")
    sys.exit(worst > 0.001)


main()
