#!/bin/sh
# Whole test sets in any batching, order and number of threads: the answers are the same bytes.
#   long_batching.sh QKV CLASSIFIER REVIEWS TRANSLATOR SENTENCES      (texts, one per line)
set -eu
qkv=$1 classifier=$2 reviews=$3 translator=$4 sentences=$5
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# check NAME FILE COMMAND…: as it comes; one thread; in small pieces as a slow pipe brings them; in another order
check() {
    name=$1 file=$2; shift 2
    "$@" --threads 2 < "$file" > "$dir/a"
    "$@" --threads 1 < "$file" > "$dir/b"
    cmp "$dir/a" "$dir/b" || { echo "FAILED: $name depends on the threads"; exit 1; }
    awk '{ print; if (NR % 7 == 0) fflush() }' "$file" | "$@" --threads 2 --max-wait 0 > "$dir/b"
    cmp "$dir/a" "$dir/b" || { echo "FAILED: $name depends on the batching"; exit 1; }
    awk '{ printf "%06d\t%s\n", (NR * 7919) % 1000003, $0 }' "$file" | sort > "$dir/order"
    cut -f 2- "$dir/order" | "$@" --threads 2 > "$dir/b"
    awk '{ printf "%06d\t%d\n", (NR * 7919) % 1000003, NR }' "$file" | sort | cut -f 2 | paste - "$dir/b" | sort -n | cut -f 2- > "$dir/c"
    cmp "$dir/a" "$dir/c" || { echo "FAILED: $name depends on the order"; exit 1; }
    echo "$name: $(wc -l < "$file") lines, the same bytes"
}

check classify "$reviews" "$qkv" classify "$classifier"
check "translate, beam 5" "$sentences" "$qkv" translate "$translator"
check "translate, beam 1" "$sentences" "$qkv" translate "$translator" --beam 1
[ ! -f "$translator/shortlist.safetensors" ] ||
    check "translate, beam 5, shortlist" "$sentences" "$qkv" translate "$translator" --shortlist
