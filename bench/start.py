"""From the start of the process to the first answer: `qkv classify DIR` with one line on a pipe.

    python start.py build/qkv DIR [runs 30]

Prints one JSON object: milliseconds (least and median of the runs) and the memory that is not the mapped weights, in MB.
"""
import json
import os
import statistics
import subprocess
import sys
import time

qkv, folder, runs = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 30
times, other, weights = [], [], []
for _ in range(runs):
    start = time.perf_counter()
    p = subprocess.Popen([qkv, "classify", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdin.write(b"a fine film with a fine cast , and not a minute too long\n")
    p.stdin.flush()
    p.stdout.readline()
    times.append(1e3 * (time.perf_counter() - start))
    resident = mapped = 0
    name = ""
    for line in open(f"/proc/{p.pid}/smaps"):
        if "-" in line.split()[0]:
            name = line.split()[-1]
        elif line.startswith("Rss:"):
            resident += int(line.split()[1])
            mapped += int(line.split()[1]) if name.endswith("model.safetensors") else 0
    other.append((resident - mapped) / 1e3)
    weights.append(mapped / 1e3)
    p.stdin.close()
    p.wait()
print(json.dumps({"least_ms": round(min(times), 2), "median_ms": round(statistics.median(times), 2),
                  "memory_mb": round(max(other), 2), "weights_resident_mb": round(max(weights), 2),
                  "weights_mb": round(os.path.getsize(os.path.join(folder, "model.safetensors")) / 1e6, 1)}))
