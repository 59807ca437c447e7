#!/usr/bin/env python3
"""How good explanations are: `qkv classify --explain` on rows of a labelled file.

    bench/explain.py QKV MODEL rows.tsv [--rows 500] [--seed 1] [--check]

1. Completeness: what the words' weights and the start lack of the lead, as a share of what the
   words add (lead - start), and of the lead.
2. Deletion: of rows that the model answers rightly, the three words with the largest weights are
   taken out of the text, and the text is classified again; how far the winner's probability falls,
   beside three random words (the mean of five draws). Rows of fewer than four words are left out.
3. With --check occlusion beside it: how often it finds the same first word, and gives the three
   words the same sign.

Prints a table, and one JSON object with --json. Nothing but Python's standard library."""
import argparse
import json
import random
import subprocess
import sys

DRAWS = 5


def run(args, lines):
    asked = "".join(x + "\0" for x in lines).encode()
    out = subprocess.run(args, input=asked, stdout=subprocess.PIPE, check=True)
    return [json.loads(x) for x in out.stdout.decode("utf-8", "replace").split("\0") if x]


def without(text, words):
    """The text (bytes) without these words, blanks as they were."""
    for w in sorted(words, key=lambda w: -w["begin"]):
        text = text[: w["begin"]] + text[w["end"]:]
    return text.decode("utf-8", "replace")


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("qkv")
    p.add_argument("model")
    p.add_argument("data")
    p.add_argument("--rows", type=int, default=500)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--check", action="store_true")
    p.add_argument("--threads", default="1")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    draw = random.Random(a.seed)
    with open(a.data, encoding="utf-8", newline="\n") as f:
        rows = [x.rstrip("\n").split("\t", 1) for x in f]
    draw.shuffle(rows)
    classify = [a.qkv, "classify", a.model, "--json", "-0", "--threads", a.threads]
    known = run(classify, [r[1] for r in rows[: 2 * a.rows]])
    right = [r for r, k in zip(rows, known) if r[0] == k["label"]]
    right = right[: a.rows + a.rows // 5]
    found = run(classify + ["--explain"], [r[1] for r in right])

    chosen = []
    for (label, text), e in zip(right, found):
        if len(e["words"]) >= 4 and len(chosen) < a.rows:
            chosen.append((text.encode(), e))
    error_of_words, error_of_lead = [], []
    for _, e in chosen:
        words = sum(w["weight"] for w in e["words"])
        error = abs(e["lead"] - e["start"] - words)
        error_of_words.append(error / abs(e["lead"] - e["start"]))
        error_of_lead.append(error / abs(e["lead"]))

    asked = []
    for text, e in chosen:
        top = sorted(e["words"], key=lambda w: -w["weight"])[:3]
        asked.append(without(text, top))
        for _ in range(DRAWS):
            asked.append(without(text, draw.sample(e["words"], 3)))
    answers = run(classify + ["--all"], asked)
    top = other = 0.0
    for i, (_, e) in enumerate(chosen):
        of = [x[e["label"]] for x in answers[i * (DRAWS + 1): (i + 1) * (DRAWS + 1)]]
        top += e["probability"] - of[0]
        other += e["probability"] - sum(of[1:]) / DRAWS
    n = len(chosen)
    result = {
        "texts": n,
        "error_of_words_worst": max(error_of_words),
        "error_of_words_median": quantile(error_of_words, 0.5),
        "error_of_words_over_1_percent": sum(x >= 0.01 for x in error_of_words),
        "error_of_lead_worst": max(error_of_lead),
        "error_of_lead_over_1_percent": sum(x >= 0.01 for x in error_of_lead),
        "fall_top_three": top / n,
        "fall_random_three": other / n,
        "ratio": top / other if other else float("inf"),
    }
    if a.check:
        hidden = run(classify + ["--explain", "--by", "occlusion"], [t.decode() for t, _ in chosen])
        first = signs = 0
        for (_, e), o in zip(chosen, hidden):
            order = sorted(range(len(e["words"])), key=lambda i: -e["words"][i]["weight"])
            first += order[0] == max(range(len(o["words"])), key=lambda i: o["words"][i]["weight"])
            signs += sum(e["words"][i]["weight"] * o["words"][i]["weight"] > 0 for i in order[:3])
        result["same_first_word"] = first / n
        result["same_sign"] = signs / (3 * n)
    if a.json:
        print(json.dumps(result))
        return
    for key, value in result.items():
        print(f"{key:32} {value:.5g}")


if __name__ == "__main__":
    sys.exit(main())
