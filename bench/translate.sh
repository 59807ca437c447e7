#!/bin/sh
# Translation of qkv beside CTranslate2's: the same weights and sentences, interleaved, best of REPS
# runs of PASSES passes each.
#   REPS=5 PASSES=3 MODEL=DIR SOURCE=test_2016_flickr.de THREADS=2 sh bench/translate.sh
# LENGTH=14 makes every translation that long, for models that are hardly trained. MODEL is a
# translator that CTranslate2 can take (see translate_ct2.py), for example
#   qkv train translate --train train.de train.en --valid val.de val.en --out DIR --vocab-size 8000 --d-model 256 --layers 3 --heads 4 \
#       --d-ff 1024 --set norm_kind=layer --set position=sinusoidal --set activation=relu --minutes 9
# QKV_BENCH_PYTHON must have ctranslate2, numpy, safetensors and tokenizers.
set -eu
cd "$(dirname "$0")/.."
reps=${REPS:-5} threads=${THREADS:-$(nproc)} length=${LENGTH:-0} python=${QKV_BENCH_PYTHON:-build/venv/bin/python}
types=${TYPES:-float32 int8} beams=${BEAMS:-1 5} out=${OUT:-build/bench}
results=$out/translate.jsonl
: > "$results"
build/qkv quantize "$MODEL" "$out/translator-int8" --to int8 > /dev/null
run() { # who, folder, options
    who=$1 from=$2
    shift 2
    printf '{"work":"%s beam %s %s","who":"%s","result":%s}\n' "$type" "$beam" "${how:+single}" "$who" \
        "$("$python" bench/translate_ct2.py "$from" --who "$who" --type "$type" --beam "$beam" $how "$@" \
        --source "$SOURCE" --length "$length" --repeat "${PASSES:-3}")" >> "$results"
}
rep=1
while [ "$rep" -le "$reps" ]; do
    for type in $types; do
        folder=$MODEL
        [ "$type" = float32 ] || folder=$out/translator-int8
        for beam in $beams; do
            for how in "" "--single --lines 200"; do
                run qkv "$folder" --threads "$threads"
                # CTranslate2's fastest way, by kind: one batch per thread. Alone, for both: all threads, or one.
                if [ -n "$how" ]; then
                    run qkv "$folder" --threads 1
                    run ct2 "$MODEL" --threads "$threads"
                    run ct2 "$MODEL" --threads 1
                else
                    run ct2 "$MODEL" --threads "$threads" --workers "$threads"
                fi
            done
        done
    done
    rep=$((rep + 1))
done
python3 bench/best.py "$results" words_per_s sentence_ms
