#!/bin/sh
# This program beside another one of qkv, say the one before a change: whole training steps of three works in both precisions,
# translation, classification, writing and the start of the program, interleaved; the best of REPS runs and the ratios.
#   REPS=5 SECONDS_EACH=4 sh bench/against.sh OTHER/build/qkv
# A change of the order of the functions in memory is worth one or two per cent either way.
set -eu
cd "$(dirname "$0")/.."
other=$1 reps=${REPS:-5} seconds=${SECONDS_EACH:-4} out=build/bench
mkdir -p "$out"
python3 bench/make_ids.py "$out"
head -300 "$out/imdb.ids" >"$out/few.ids"
build/qkv bench classify --set ids="$out/few.ids" --set save="$out/classify.safetensors" --set seconds=0.001 >/dev/null
[ -d "$out/start" ] || { # by the other one: later programs read what earlier ones wrote
    awk 'BEGIN { for (i = 0; i < 200; i++) print (i % 2 ? "good\ta fine film number " : "bad\ta dull film number ") i }' >"$out/start.tsv"
    "$other" train classify --train "$out/start.tsv" --out "$out/start" --steps 20 2>/dev/null
}
results=$out/against.jsonl
: >"$results"
rep=1
while [ "$rep" -le "$reps" ]; do
    for who in before qkv; do
        [ "$who" = qkv ] && program=build/qkv || program=$other
        note() {
            work=$1
            shift
            printf '{"work":"%s","who":"%s","result":%s}\n' "$work" "$who" "$("$@")" >>"$results"
        }
        for precision in f32 bf16; do
            for work in imdb multi30k gpt; do
                note "train $work $precision" "$program" bench train --json --seconds "$seconds" --set work=$work --precision $precision
            done
        done
        for weights in f32 int8; do
            note "translate $weights" "$program" bench translate --json --set beam=5 --set weights=$weights --set sentences=256
            note "classify $weights" "$program" bench classify --json --set ids="$out/few.ids" --set weights=$weights --set seconds="$seconds"
        done
        note write "$program" bench generate --json --set weights=int8
        note start python3 bench/start.py "$program" "$out/start"
    done
    rep=$((rep + 1))
done
python3 bench/best.py "$results" tokens_per_s sentences_per_s reviews_per_s alone_ms least_ms
