#!/bin/sh
# make fuzz: every target of fuzz.def under libFuzzer with address and undefined-behaviour sanitizers.
#   SECONDS_EACH=600 fuzz/run.sh [TARGET…]     more time; only these targets
#   RUNS=1000000 fuzz/run.sh [TARGET…]         until each has run that many inputs, however long it takes
#   MAX_LEN=200 fuzz/run.sh [TARGET…]          smaller inputs (4096 bytes)
#   COMPARED=no fuzz/run.sh [TARGET…]          twice as fast, without watching comparisons: for texts, which have no form to guess
# What is found is left in build/fuzz/<target>/ : put it into tests/corpus/<target>/ once it is mended.
set -eu
cd "$(dirname "$0")/.."
[ -n "${RUNS:-}" ] && limit=-runs=$RUNS || limit=-max_total_time=${SECONDS_EACH:-60}
echo 'int main(void) { return 0; }' | clang -fopenmp -x c - -o /dev/null 2>/dev/null ||
    { echo "fuzz: needs clang with its OpenMP (Debian: apt-get install clang libomp-dev)" >&2; exit 1; }
targets=${*:-$(sed -n 's/^FUZZ(\([a-z_]*\)).*/\1/p' fuzz/fuzz.def)}
compiler=clang
command -v ccache >/dev/null 2>&1 && compiler="ccache clang"
flags="-std=c11 -O2 -g1 -D_GNU_SOURCE -DQKV_VERSION=\"fuzz\" -Iinclude -Isrc -Ifuzz -fopenmp
       $(pkg-config --cflags libutf8proc libpcre2-8 zlib liblzma libzstd)"
[ "${COMPARED:-}" = no ] && flags="$flags -fno-sanitize-coverage=trace-cmp"
checks=address,undefined
objects=build/fuzz/objects
mkdir -p "$objects"
# Parsers stand on base, chat, store, text and data alone; none needs a kernel. File names are unique in the tree.
for source in src/base/*.c src/chat/*.c src/store/*.c src/text/*.c src/data/*.c fuzz/*.c; do
    # shellcheck disable=SC2086
    $compiler $flags -fsanitize=fuzzer-no-link,$checks -fno-sanitize-recover=all -c "$source" \
        -o "$objects/$(basename "$source" .c).o"
done
status=0
for target in $targets; do
    out=build/fuzz/$target
    mkdir -p "$out/corpus" "tests/corpus/$target"
    printf '#include "fuzz.h"\nint LLVMFuzzerTestOneInput(const uint8_t *d, size_t n) { fuzz_%s(d, n); return 0; }\n' \
        "$target" > "$out/entry.c"
    # shellcheck disable=SC2046,SC2086
    clang $flags -fsanitize=fuzzer,$checks "$out/entry.c" "$objects"/*.o $(pkg-config --libs libutf8proc libpcre2-8 zlib liblzma libzstd) -lm \
        -o "$out/run"
    echo "== fuzz $target $limit"
    # Leaks are looked for at the end: what a target keeps (tokenizers, scratch memory) would be
    # searched for after each input.
    OMP_NUM_THREADS=1 "$out/run" "$limit" -detect_leaks=0 -timeout=20 -rss_limit_mb=1024 -entropic=0 -max_len=${MAX_LEN:-4096} \
        -print_final_stats=1 -artifact_prefix="$out/" "$out/corpus" "tests/corpus/$target" 2> "$out/log" || status=1
    grep -E 'stat::number_of_executed_units|stat::average_exec|SUMMARY|ERROR' "$out/log" || true
done
exit $status
