#!/bin/sh
# Classification of qkv beside PyTorch's and ONNX Runtime's: the same weights and reviews,
# interleaved, best of REPS runs.
#   REPS=5 SECONDS_EACH=3 THREADS=2 TYPES="f32 bf16 int8" WHO="qkv torch compile onnx" IDS=build/bench/imdb.ids sh bench/classify.sh
# QKV_BENCH_PYTHON must have torch, numpy, safetensors, onnx, onnxscript and onnxruntime; the
# reviews are those of bench/run.sh, or, with IDS=build/bench/imdb_test.ids, all 25,000 of the test
# set.
set -eu
cd "$(dirname "$0")/.."
reps=${REPS:-5} seconds=${SECONDS_EACH:-3} threads=${THREADS:-$(nproc)} who=${WHO:-qkv torch compile onnx}
python=${QKV_BENCH_PYTHON:-build/venv/bin/python}
out=${OUT:-build/bench}
ids=${IDS:-$out/imdb.ids} weights=$out/classify.safetensors results=$out/classify.jsonl
build/qkv bench classify --set ids="$out/imdb.ids" --set save="$weights" --set seconds=0.001 > /dev/null
: > "$results"
note() { # work, who, JSON
    printf '{"work":"%s","who":"%s","result":%s}\n' "$1" "$2" "$3" >> "$results"
}
rep=1
while [ "$rep" -le "$reps" ]; do
    for type in ${TYPES:-f32 bf16 int8}; do
        for one in $who; do
            case $one in
            qkv)
                note $type qkv "$(build/qkv bench classify --json --threads "$threads" --set ids="$ids" --set weights=$type \
                    --set seconds="$seconds")" ;;
            *)
                flag= && [ $type = f32 ] || flag=--$type
                case $one$flag in compile--int8 | onnx--bf16) continue ;; esac # does not trace; has no kernels on CPUs
                note $type "$one" "$("$python" bench/classify_peers.py --who "$one" --ids "$ids" --weights "$weights" $flag \
                    --onnx "$out/classify$flag.onnx" --seconds "$seconds" --threads "$threads")" ;;
            esac
        done
    done
    rep=$((rep + 1))
done
python3 bench/best.py "$results" reviews_per_s check
