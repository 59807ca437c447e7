"""The best of several interleaved runs, and the ratios to the first: best.py RESULTS.jsonl FIGURE...

A line of RESULTS is {"work": …, "who": …, "result": {figure: number, …}}. Of figures that end in _ms the least is the best, and
ratios say how many times faster `qkv` is.
"""
import json
import sys

best = {}
for line in open(sys.argv[1]):
    row = json.loads(line)
    at = best.setdefault(row["work"], {}).setdefault(row["who"], {})
    for figure in sys.argv[2:]:
        value = row["result"].get(figure)
        if value is not None:
            at[figure] = (min if figure.endswith("_ms") else max)(at.get(figure, value), value)
for work, by in best.items():
    for who, figures in by.items():
        parts = []
        for figure, value in figures.items():
            ours = by.get("qkv", {}).get(figure)
            ratio = "" if who == "qkv" or not ours else " (qkv %.2f×)" % (
                value / ours if figure.endswith("_ms") else ours / value)
            parts.append("%s %.4g%s" % (figure, value, ratio))
        print("%-22s %-12s %s" % (work, who, "; ".join(parts)))
