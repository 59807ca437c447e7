"""The best of each program and work in results.jsonl, as a table with the ratios."""
import collections
import json
import sys

best, memory = {}, collections.defaultdict(lambda: float("inf"))
for line in open(sys.argv[1]):
    row = json.loads(line)
    key, r = (row["work"], row["who"]), row["result"]
    if key not in best or r["tokens_per_s"] > best[key]["tokens_per_s"]:
        best[key] = r
    memory[key] = min(memory[key], r["peak_rss_mb"])

print("%-10s %12s %8s %14s %14s %8s %12s %12s %8s" % (
    "work", "qkv tok/s", "of peak", "torch eager", "torch compile", "ratio", "qkv MB", "torch MB", "memory"))
for work in dict.fromkeys(k[0] for k in best):
    ours = best[(work, "qkv")]
    peers = {who: best[(w, who)] for w, who in best if w == work and who != "qkv"}
    name = max(peers, key=lambda who: peers[who]["tokens_per_s"])
    rate = lambda who: "%.0f" % peers[who]["tokens_per_s"] if who in peers else "-"
    print("%-10s %12.0f %7.1f%% %14s %14s %7.2fx %12.0f %12.0f %7.2fx" % (
        work, ours["tokens_per_s"], 100 * ours["share"], rate("torch"), rate("torch--compile"),
        ours["tokens_per_s"] / peers[name]["tokens_per_s"], memory[(work, "qkv")], memory[(work, name)],
        memory[(work, "qkv")] / memory[(work, name)]))
