#!/bin/sh
# qkv score: sacrebleu's figures, from files and pipes, of one system and of two; on real translations too where QKV_DATA says where they are. check_scores.sh BUILD
set -u
qkv=$1/qkv
data=${QKV_DATA:-none}/newstest2015_enru
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# expect TOKENISATION WORDS: the output for $work/hyp against $work/ref contains them all.
expect() {
    out=$("$qkv" score --ref "$work/ref" --tokenize "$1" "$work/hyp") || bad=1
    shift
    for word in "$@"; do
        case "$out" in *"$word"*) ;; *) echo "qkv score lacks '$word': $out"; bad=1 ;; esac
    done
}

printf 'A small dog runs, fast.\n\nDer Zug hält.\n' > "$work/hyp"
printf 'A small dog runs fast.\n\nDer Zug hält hier.\n' > "$work/ref"
expect 13a 'tok:13a|smooth:exp' ' = 47.74 ' ' = 74.13' ' = 75.33'
"$qkv" score --ref "$work/ref" "$work/hyp" > "$work/file"
"$qkv" score --ref "$work/ref" < "$work/hyp" | cmp -s "$work/file" - || { echo "standard input"; bad=1; }
"$qkv" score --ref "$work/ref" --threads 1 - < "$work/hyp" | cmp -s "$work/file" - || { echo "-"; bad=1; }
"$qkv" score --ref "$work/ref" --confidence "$work/hyp" | grep -q '^TER|.* = [0-9.]* (μ = [0-9.]* ± [0-9.]*)$' ||
    { echo "no intervals"; bad=1; }
"$qkv" score --ref "$work/ref" --baseline "$work/ref" "$work/hyp" --samples 100 --seed 7 > "$work/out" || bad=1
grep -q '^BLEU  *100.00 ± .* -[0-9.]* ' "$work/out" && grep -q '100 samples of them (paired bootstrap, seed 7)' "$work/out" ||
    { echo "no comparison: $(cat "$work/out")"; bad=1; }
"$qkv" score --ref "$work/ref" --seed 3 "$work/hyp" 2> "$work/err"
[ $? -eq 2 ] && grep -q -- '--confidence' "$work/err" || { echo "a seed for nothing"; bad=1; }
"$qkv" score "$work/hyp" 2> "$work/err"
[ $? -eq 2 ] && grep -q -- '--ref' "$work/err" || { echo "a score without a reference"; bad=1; }

if command -v xz > /dev/null && [ -f "$data/first100.mt.ru.xz" ]; then
    xz -dc "$data/first100.mt.ru.xz" > "$work/hyp"
    xz -dc "$data/first100.ref.ru.xz" > "$work/ref"
    expect 13a ' = 23.20 ' ' = 56.76' ' = 53.43'
    expect intl ' = 23.65 '
    expect char ' = 60.61 ' ' = 67.63'
    expect zh ' = 23.05 '
    xz -dc "$data/first100.mt.tok.ru.xz" > "$work/hyp"
    xz -dc "$data/first100.ref.tok.ru.xz" > "$work/ref"
    expect none ' = 23.17 ' # multi-bleu's figure, as the data's own notes have it
else
    echo "newstest2015_enru is not there: left out"
fi

[ "$bad" -eq 0 ] && echo "scores: ok"
exit "$bad"
