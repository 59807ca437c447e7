#!/bin/sh
# Training speed of qkv beside PyTorch's on the same three works, interleaved, best of REPS runs; prints the ratios.
#   REPS=5 SECONDS_EACH=6 PRECISION=f32 THREADS=2 WORKS="imdb multi30k gpt" WAYS="eager compile" sh bench/run.sh
# PyTorch is installed into build/venv unless QKV_BENCH_PYTHON names an interpreter that has it.
set -eu
cd "$(dirname "$0")/.."
reps=${REPS:-5} seconds=${SECONDS_EACH:-6} precision=${PRECISION:-f32} threads=${THREADS:-$(nproc)}
works=${WORKS:-imdb multi30k gpt} ways=${WAYS:-eager compile}
out=build/bench
mkdir -p "$out"

python=${QKV_BENCH_PYTHON:-build/venv/bin/python}
if [ ! -x "$python" ]; then
    echo "bench: installing PyTorch into build/venv" >&2
    python3 -m venv build/venv
    build/venv/bin/pip install --quiet torch==2.13.0 numpy
fi

# Real texts where QKV_DATA says where they are, else synthetic ones of like lengths.
if [ ! -f "$out/gpt.ids" ]; then
    data=${QKV_DATA:-none}
    if [ -x "$data/unpack" ]; then
        "$data/unpack" imdb multi30k tinyshakespeare "$out/data"
        "$python" bench/make_ids.py "$out" "$out/data"
    else
        echo "bench: QKV_DATA is not set; texts of like lengths are drawn at random" >&2
        "$python" bench/make_ids.py "$out"
    fi
fi

results=$out/results.jsonl
: >"$results"
note() { # work, who, JSON
    printf '{"work":"%s","who":"%s","result":%s}\n' "$1" "$2" "$3" >>"$results"
}
rep=1
while [ "$rep" -le "$reps" ]; do
    for work in $works; do
        ids=$out/$work.ids
        note "$work" qkv "$(build/qkv bench train --json --threads "$threads" --precision "$precision" \
            --seconds "$seconds" --set work="$work" --set ids="$ids")"
        for way in $ways; do
            how=
            [ "$way" = eager ] || how=--$way
            note "$work" "torch$how" "$("$python" bench/torch_train.py --work "$work" --ids "$ids" \
                --seconds "$seconds" --threads "$threads" --precision "$precision" $how)"
        done
        echo "bench: run $rep of $reps, $work done" >&2
    done
    rep=$((rep + 1))
done
"$python" bench/summary.py "$results"
