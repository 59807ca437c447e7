#!/bin/sh
# Generation of qkv beside llama.cpp's: the same random weights, the same ids, interleaved, best of REPS runs.
#   REPS=5 PROMPT=256 TOKENS=32 THREADS=2 sh bench/generate.sh
# llama.cpp comes prebuilt for all kinds of x86 with the npm package node-llama-cpp, whose bundle
# has its headers; QKV_BENCH_PYTHON must have gguf, numpy and safetensors.
set -eu
cd "$(dirname "$0")/.."
reps=${REPS:-5} prompt=${PROMPT:-256} tokens=${TOKENS:-32} threads=${THREADS:-$(nproc)}
python=${QKV_BENCH_PYTHON:-build/venv/bin/python}
out=${OUT:-build/bench/generate}
mkdir -p "$out"
if [ ! -d "$out/node_modules/node-llama-cpp" ]; then
    (cd "$out" && npm init -y > npm.log && npm install --ignore-scripts node-llama-cpp >> npm.log 2>&1)
fi
modules=$out/node_modules libraries=$out/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64
[ -d "$out/llama.cpp" ] || git clone -q "$modules/node-llama-cpp/llama/gitRelease.bundle" "$out/llama.cpp"
# The libraries bear a version in their names.
lib() { basename "$(ls "$libraries/lib$1".*so)"; }
cc -O2 -I"$out/llama.cpp/include" -I"$out/llama.cpp/ggml/include" bench/generate_llama.c -o "$out/generate_llama" \
    -L"$libraries" -l:"$(lib llama)" -l:"$(lib ggml)" -l:libggml-base.so -Wl,-rpath,"$(realpath "$libraries")"
if [ ! -f "$out/q8_0.gguf" ]; then
    build/qkv bench generate --set save="$out/weights.safetensors" --set repeat=1 --set tokens=1 > /dev/null
    for type in f32 bf16 q8_0; do
        "$python" bench/generate_gguf.py "$out/weights.safetensors" "$out/$type.gguf" --type $type
    done
fi
results=$out/results.jsonl
: > "$results"
rep=1
while [ "$rep" -le "$reps" ]; do
    for pair in f32:f32 bf16:bf16 int8:q8_0; do
        printf '{"work":"%s","who":"qkv","result":%s}\n' "$pair" "$(build/qkv bench generate --json --threads "$threads" \
            --set weights="${pair%:*}" --set prompt="$prompt" --set tokens="$tokens")" >> "$results"
        printf '{"work":"%s","who":"llama.cpp","result":%s}\n' "$pair" "$("$out/generate_llama" "$out/${pair#*:}.gguf" \
            "$libraries" "$prompt" "$tokens" "$threads")" >> "$results"
    done
    rep=$((rep + 1))
done
python3 bench/best.py "$results" prompt_tokens_per_s tokens_per_s share
