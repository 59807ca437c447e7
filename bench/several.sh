#!/bin/sh
# Several labels a text: TREC's questions with their coarse and their fine class as two labels (56 in all), qkv train
# classify with its defaults beside one-vs-rest logistic regression on tf-idf (scikit-learn).
#   QKV_DATA=FOLDER SEEDS="1 2 3" QKV_BENCH_PYTHON=python3 sh bench/several.sh
set -eu
cd "$(dirname "$0")/.."
data=${QKV_DATA:-none} seeds=${SEEDS:-1 2 3} python=${QKV_BENCH_PYTHON:-python3}
qkv=${QKV:-build/qkv}
out=${OUT:-build/bench/several}
mkdir -p "$out"
[ -x "$data/unpack" ] || { echo "bench: set QKV_DATA to the folder of data sets" >&2; exit 1; }
"$data/unpack" trec "$out"
for side in train test; do # coarse:fine<TAB>question
    awk -F '\t' '{ split($1, part, ":"); print "__label__" part[1], "__label__" $1, $2 }' "$out/trec/$side.fine.tsv" > "$out/$side.txt"
done
[ "${PEERS:-1}" = 0 ] || "$python" bench/several_peers.py "$out/train.txt" "$out/test.txt"
for seed in $seeds; do
    command time -f "%U %S" -o "$out/time" \
        "$qkv" train classify --train "$out/train.txt" --out "$out/model$seed" --overwrite --quiet --seed "$seed" --threads "${THREADS:-1}"
    echo "qkv, seed $seed: $("$qkv" eval "$out/model$seed" --data "$out/test.txt" | head -2 | tr '\n' ' ')" \
        "$(awk 'END { printf "%.2f core-minutes", ($1 + $2) / 60 }' "$out/time")"
done
