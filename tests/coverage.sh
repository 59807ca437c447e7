#!/bin/sh
# How many lines of each folder of src the unit tests run, by gcov; without those tests that only repeat much. Folders under 80 % are marked as thin.
set -eu
cd "$(dirname "$0")/.."
cmake --preset coverage >/dev/null
cmake --build build/coverage -j "$(nproc)" >/dev/null
find build/coverage -name '*.gcda' -delete
ctest --test-dir build/coverage -LE long -R '^test_' -E '^test_(attention|optim|overfit|allocation|gemm)$' -j "$(nproc)" --output-on-failure >build/coverage/tests.txt ||
    { tail -20 build/coverage/tests.txt; exit 1; }
# Kernels are compiled once for each instruction set: a line counts as often.
find build/coverage -name '*.gcda' | grep '/src/' | while read -r data; do
    gcov -n "$data" 2>/dev/null
done | awk '
    /^File / { file = $2; gsub(/\x27/, "", file) }
    /^Lines executed:/ {
        if (match(file, /src\/[a-z]+\//) == 0 || file ~ /\/usr\//) next
        folder = substr(file, RSTART + 4, RLENGTH - 5)
        split($0, part, /[:% ]+/)   # Lines executed:93.10% of 29
        share = part[3]; n = $NF
        all[folder] += n; run[folder] += n * share / 100; total += n; ran += n * share / 100
    }
    END {
        for (folder in all)
            printf "%-8s %5.1f %% of %6d lines%s\n", folder, 100 * run[folder] / all[folder], all[folder],
                   run[folder] < 0.8 * all[folder] ? "   thin" : "" | "sort"
        close("sort")
        printf "coverage %5.1f %% of %6d lines\n", 100 * ran / total, total
    }'
