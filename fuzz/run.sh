#!/bin/sh
# make fuzz: every target of fuzz.def under libFuzzer with address and undefined-behaviour sanitizers.
#   SECONDS_EACH=600 fuzz/run.sh [TARGET…]     more time; only these targets
# What is found is left in build/fuzz/<target>/ : put it into tests/corpus/<target>/ once it is mended.
set -eu
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-60}
command -v clang >/dev/null 2>&1 || { echo "fuzz: needs clang (Debian: apt-get install clang)" >&2; exit 1; }
targets=${*:-$(sed -n 's/^FUZZ(\([a-z_]*\)).*/\1/p' fuzz/fuzz.def)}
flags="-std=c11 -O1 -g -D_GNU_SOURCE -DQKV_VERSION=\"fuzz\" -Iinclude -Isrc -Ifuzz -fopenmp
       -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all"
libraries="$(pkg-config --cflags --libs libutf8proc libpcre2-8) -lm"
status=0
for target in $targets; do
    out=build/fuzz/$target
    mkdir -p "$out/corpus" "tests/corpus/$target"
    printf '#include "fuzz.h"\nint LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { fuzz_%s(d, n); return 0; }\n' \
        "$target" > "$out/entry.c"
    # Parsers stand on base, store, text and data alone; none needs a kernel.
    # shellcheck disable=SC2086
    clang $flags "$out/entry.c" "fuzz/fuzz_$target.c" fuzz/as_file.c src/base/*.c src/store/*.c src/text/*.c src/data/*.c \
        $libraries -o "$out/run"
    echo "== fuzz $target for $seconds s"
    OMP_NUM_THREADS=1 "$out/run" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=512 -max_len=4096 \
        -print_final_stats=1 -artifact_prefix="$out/" "$out/corpus" "tests/corpus/$target" 2> "$out/log" || status=1
    grep -E 'stat::number_of_executed_units|stat::average_exec|SUMMARY|ERROR' "$out/log" || true
done
exit $status
