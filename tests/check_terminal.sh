#!/bin/sh
# What a person sees: training, demo and help on terminals of several sizes, and in a pipe.
#   check_terminal.sh BUILD_FOLDER [long]
. "$(dirname "$0")/scratch.sh"
watch=$(dirname "$qkv")/watch_terminal
long=${2:-}

# looks WIDEST COMMAND…: nothing ran over the edge, and no live line was left behind
looks() {
    widest=$1; shift
    "$watch" "$@" >out 2>err || fail "$*"
    set -- $(tail -n 1 out)
    [ "$1 $2 $4" = "watched: widest broken" ] || fail "watch_terminal said nothing"
    [ "$3" -le "$widest" ] && [ "$5" -eq 0 ] || { cat out; fail "a line is too wide"; }
    first=$7 silence=$9; shift 9
    [ "$2" -eq 0 ] || [ "$2" -eq 124 ] || { cat out; fail "exit code $2"; }
    grep -Eq '^(step|validation|steps|reading|tokenizer|last fit)  ' out && { cat out; fail "a live line was left"; }
    return 0
}
# A loaded machine may take a little longer than is promised to a person with one to himself.
in_time() {
    awk -v f="$first" -v s="$silence" 'BEGIN { exit !(f < 1.5 && s < 2) }' || fail "first $first s, silent for $silence s"
}

i=0
while [ $i -lt 400 ]; do
    printf 'good\tthe film was fine, and so were the %d actors that played in it\nbad\tthe film was dull, %d times over\n' $i $i
    i=$((i + 1))
done >rows.tsv
small="--threads 1 --set d_model=32 --set layers=1 --set heads=2"
for size in 40x24 80x24 200x50; do
    rm -rf m
    looks ${size%x*} $size "$qkv" train classify --train rows.tsv --out m $small --epochs 2
    in_time
    grep -q '^ *step .*validation' out && grep -q 'best$' out || fail "no table of validations"
    grep -q '^spent ' out || fail "no summary at $size"
done
# Made narrower while it runs, which takes three seconds on any machine: what comes from then on fits.
rm -rf m
looks 40 120x24 --resize 1 40x24 "$qkv" train classify --train rows.tsv --out m $small --minutes 0.05
# Long work without a word of its own is told all the same: a tokenizer of much text.
i=0
while [ $i -lt 60000 ]; do
    echo "a$((i * 7919 % 100003)) stone$((i * 104729 % 50021)) and w$i rolls on and on"
    i=$((i + 1))
done >lines.txt
looks 40 40x24 "$qkv" tokenizer train --kind unigram --vocab-size 2000 -o t.json lines.txt
in_time

# Errors fit, too; a pipe gets plain lines.
"$watch" 40x24 "$qkv" train classify --train rows.tsv --out m --preset foo >out 2>err
grep -q 'broken 0 .* exit 2$' out || { cat out; fail "an error is too wide"; }
rm -rf m
"$qkv" train classify --train rows.tsv --out m $small --epochs 1 >out 2>err || fail train
LC_ALL=C grep -q "[[:cntrl:]]" err && fail "control characters in a pipe"
grep -q '^reading' err && fail "a phase that is over at once needs no line"

# The demo, up to its first steps; whole where there is time.
export TMPDIR="$dir"
for size in ${long:+40x24} 80x24 200x50; do
    if [ "$long" ]; then
        looks ${size%x*} $size "$qkv" demo
        grep -q 'qkv demo --keep' out || fail "the demo does not say how to keep its models"
        grep -q 'qkv-demo-' out && fail "the demo names a folder that it has deleted"
    else
        looks ${size%x*} $size timeout --foreground -s INT 4 "$qkv" demo || true
    fi
    in_time
done
ls -d qkv-demo-* >/dev/null 2>&1 && [ "$long" ] && fail "the demo left its folder"

# Help fits 80 columns in a pipe, and the terminal where there is one.
{
    "$qkv" --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p'
    "$qkv" tokenizer --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/tokenizer \1/p'
    "$qkv" train --help | sed -n '/^TASK/,/^$/s/^  \([a-z]*\) .*/train \1/p'
} >commands
[ "$(wc -l <commands)" -gt 20 ] || fail "the help names no commands"
while read -r command; do
    "$qkv" $command --help >out 2>err || fail "$command --help"
    [ "$(LC_ALL=C.UTF-8 wc -L <out)" -le 80 ] || fail "$command --help has lines over 80 columns"
done <commands
"$qkv" train --help >out
[ "$(wc -l <out)" -le 40 ] || fail "train --help is longer than 40 lines"
[ "$(sed -n 3p out)" = Examples ] || fail "examples come first"
"$qkv" train --help all >all
"$qkv" train mlm --help >mlm
grep -q -e '--layer-decay' all && grep -q -e '--mask-rate' mlm || fail "not all options"
grep -q -e '--mask-rate\|--layer-decay' out && fail "the short help is not short"
grep -q -e '--ngram-cost\|--source-eos' mlm && fail "options of other tasks"
"$qkv" help train mlm | cmp -s - mlm || fail "help train mlm"
for size in 40x24 80x24 200x50; do
    for command in "" train "train classify" "tokenizer encode" translate; do
        looks ${size%x*} $size "$qkv" $command --help # a word or two
    done
    looks ${size%x*} $size "$qkv" train --help all
done
echo passed
