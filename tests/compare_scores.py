"""Compares `qkv score` with sacrebleu: python compare_scores.py QKV [HYP REF]…
Without files: on synthetic lines over characters that the tokenisations treat differently."""
import json
import random
import subprocess
import sys
import tempfile

import sacrebleu
from sacrebleu.significance import PairedTest

TOKENS = ("13a", "intl", "char", "zh", "none")
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
                 (out["chrf_words"], sacrebleu.metrics.CHRF(word_order=2).corpus_score(hyp, [ref]).score),
                 (out["ter"], sacrebleu.metrics.TER().corpus_score(hyp, [ref]).score)]
        worst = max([worst] + [abs(a - b) for a, b in pairs])
        print(f"{name} {tok}: " + "  ".join(f"{a:.4f} ({b:.4f})" for a, b in pairs))
    return worst


def shuffled(rng, hyp, often):
    """Another system: some lines with phrases moved and words lost, so that TER has moves to find."""
    out = []
    for line in hyp:
        words = line.split()
        if len(words) > 3 and rng.random() < often:
            at, n, to = rng.randrange(len(words)), rng.randrange(1, 6), rng.randrange(len(words))
            phrase = words[at:at + n]
            words[at:at + n] = []
            words[to:to] = phrase
            if rng.random() < 0.3:
                words.pop()
        out.append(" ".join(words))
    return out


def compare_systems(qkv, name, folder, hyp_path, ref_path, rng):
    """Paired bootstrap of the lines against a worse version of themselves."""
    hyp, ref = lines_of(hyp_path), lines_of(ref_path)
    other, path = shuffled(rng, hyp, rng.choice((0.02, 0.1, 0.7))), f"{folder}/other"
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.writelines(line + "\n" for line in other)
    out = json.loads(subprocess.run([qkv, "score", "--ref", ref_path, "--baseline", hyp_path, "--json", path],
                                    check=True, capture_output=True).stdout)
    metrics = {"bleu": sacrebleu.metrics.BLEU(references=[ref]), "chrf": sacrebleu.metrics.CHRF(references=[ref]),
               "chrf_words": sacrebleu.metrics.CHRF(word_order=2, references=[ref]),
               "ter": sacrebleu.metrics.TER(references=[ref])}
    _, results = PairedTest([("a", hyp), ("b", other)], metrics, None, "bs")()
    worst = 0
    for key, (which, found) in zip(metrics, [(k, v) for k, v in results.items() if k != "System"]):
        base, system = found
        for side, r in (("baseline", base), ("system", system)):
            low, high = out[side][key + "_interval"]
            pairs = [(out[side][key], r.score), (out[side][key + "_mean"], r.mean), ((high - low) / 2, r.ci)]
            worst = max([worst] + [abs(a - b) for a, b in pairs])
        worst = max(worst, abs(out[key + "_p"] - system.p_value))
        print(f"{name} {which}: p {out[key + '_p']:.4f} ({system.p_value:.4f})")
    return worst


def main():
    qkv, files = sys.argv[1], sys.argv[2:]
    worst = 0
    for hyp, ref in zip(files[::2], files[1::2]):
        worst = max(worst, compare(qkv, hyp, hyp, ref))
        with tempfile.TemporaryDirectory() as folder:
            worst = max(worst, compare_systems(qkv, hyp, folder, hyp, ref, random.Random(0)))
    for seed in range(0 if files else 5):
        with tempfile.TemporaryDirectory() as folder:
            for name, lines in zip("hr", synthetic(random.Random(seed), 300)):
                with open(f"{folder}/{name}", "w", encoding="utf-8", newline="\n") as f:
                    f.writelines(line + "\n" for line in lines)
            worst = max(worst, compare(qkv, f"seed {seed}", f"{folder}/h", f"{folder}/r"))
            worst = max(worst, compare_systems(qkv, f"seed {seed}", folder, f"{folder}/h", f"{folder}/r",
                                               random.Random(seed)))
    print(f"largest difference {worst:.2e}")
    sys.exit(worst > 0.001)


main()
