#!/bin/sh
# Stars of IMDb's reviews, 1 to 10: qkv train rate with its defaults beside ridge regression on tf-idf (scikit-learn).
#   QKV_DATA=FOLDER SEEDS="1 2 3" QKV_BENCH_PYTHON=python3 sh bench/rate.sh
# Trained on every fifth review of the training set (5,000), tested on every fifth of the test set.
set -eu
cd "$(dirname "$0")/.."
data=${QKV_DATA:-none} seeds=${SEEDS:-1 2 3} python=${QKV_BENCH_PYTHON:-python3}
qkv=${QKV:-build/qkv}
out=${OUT:-build/bench/rate}
mkdir -p "$out"
[ -x "$data/unpack" ] || { echo "bench: set QKV_DATA to the folder of data sets" >&2; exit 1; }
"$data/unpack" imdb "$out"
# meta.tsv has "class/id_stars<TAB>stars" in the order of the reviews, "label<TAB>review"
for side in train test; do
    paste "$out/imdb/$side.meta.tsv" "$out/imdb/$side.tsv" |
        awk -F '\t' 'NR % 5 == 1 { stars = $2; sub(/^[^\t]*\t[^\t]*\t[^\t]*\t/, ""); print stars "\t" $0 }' > "$out/$side.tsv"
done
[ "${PEERS:-1}" = 0 ] || "$python" bench/rate_peers.py "$out/train.tsv" "$out/test.tsv"
for seed in $seeds; do
    command time -f "%U %S" -o "$out/time" \
        "$qkv" train rate --train "$out/train.tsv" --out "$out/model$seed" --overwrite --quiet --seed "$seed" --threads "${THREADS:-1}"
    echo "qkv, seed $seed: $("$qkv" eval "$out/model$seed" --data "$out/test.tsv" | tail -1)" \
        "$(awk 'END { printf "%.2f core-minutes", ($1 + $2) / 60 }' "$out/time")"
done
