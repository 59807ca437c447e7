#!/bin/sh
# Every report, picture and help on terminals of 80×24 and 200×50: no line runs over the edge. (Lines that answer lines, as
# those of classify --all, are data and as long as they are.)
#   check_screens.sh BUILD_FOLDER
. "$(dirname "$0")/scratch.sh"
watch=$(dirname "$qkv")/watch_terminal
export LC_ALL=C.UTF-8

# Twelve classes with long names, long words, wide characters; words with labels; two languages.
i=0
while [ $i -lt 30 ]; do
    for class in astronomy-and-space biology chemistry-of-everyday-life economics football geography history-of-science law \
        mathematics-for-children philosophy 天文学与空间科学 zoology-of-the-southern-seas; do
        printf '%s\tthe %s text number %d is about antidisestablishmentarianism and 你好\n' $class $class $i
    done
    i=$((i + 1))
done >rows.tsv
awk 'BEGIN { for (i = 0; i < 80; i++) printf "Paul%d\tB-PER\nsleeps\tO\n\n", i }' >words.conll
awk 'BEGIN { for (i = 0; i < 80; i++) printf "%.1f\tthe film number %d\n", i % 5, i }' >rated.tsv
awk 'BEGIN { for (i = 0; i < 80; i++) printf "ein Haus und %d Hunde\ta house and %d dogs\n", i, i }' >pairs.tsv
cut -f2 rows.tsv >lines.txt
size="--threads 1 --set d_model=16 --set layers=2 --set heads=8 --set d_head=4 --batch-tokens 1024 --epochs 1 -q"
for model in "classify --train rows.tsv --out few --arch transformer --max-len 256" "classify --train rows.tsv --out gru --arch gru" \
    "tag --train words.conll --out tagger --arch transformer" "rate --train rated.tsv --out rater" "translate --train pairs.tsv --out translator" \
    "lm --train lines.txt --out lm --tokenizer char"; do
    "$qkv" train $model $size 2>err || fail "train $model"
done
printf 'Paul1 sleeps\n' >names.txt
long=$(head -16 lines.txt | tr '\n' ' ')

# A line each: the command as a shell reads it.
cat >screens <<'END'
--version
eval few --data rows.tsv
eval gru --data rows.tsv
eval tagger --data words.conll
eval translator --data pairs.tsv --beam 1
eval lm --data lines.txt
eval rater --data rated.tsv
classify few --explain "the law text number 3 is about 你好"
classify gru --explain "$long"
rate rater --explain "the film"
describe rater
describe few
describe gru
describe translator
describe --preset reference
describe --preset gpt3-like
describe --presets
describe --keys
attention few "a text about 你好 and more"
attention few "$long"
attention translator "ein Haus und 3 Hunde"
classify few "the law text"
tag tagger <names.txt
quantize few few8 --overwrite --data rows.tsv
tokenizer info few
tokenizer info few lines.txt
tokenizer encode few --explain <names.txt
train classify --train rows.tsv --out found --find-lr --threads 1 --set d_model=16 --set layers=1
train classify --train rows.tsv --out again$columns --threads 1 --set d_model=16 --set layers=1 --epochs 2
train classify --train rows.tsv --out again$columns --threads 1 --set d_model=16 --set layers=1 --epochs 2
score --ref pairs.tsv pairs.tsv
import --formats
doctor
bench
END
{
    echo "--help"
    "$qkv" --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1 --help/p'
    "$qkv" tokenizer --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/tokenizer \1 --help/p'
    "$qkv" train --help | sed -n '/^TASK/,/^$/s/^  \([a-z]*\) .*/train \1 --help/p'
    echo "train --help all"
} >>screens
[ "$(wc -l <screens)" -gt 50 ] || fail "the help names no commands"

tried=0
for size in 80x24 200x50; do
    columns=${size%x*} rows=${size#*x}
    while read -r screen; do
        "$watch" "$size" sh -c "long=\$0; columns=$columns; exec '$qkv' $screen" "$long" >out 2>err </dev/null || fail "$screen"
        set -- $(tail -n 1 out)
        [ "$1 $2 $4" = "watched: widest broken" ] || { cat out; fail "watch_terminal said nothing of $screen"; }
        [ "$3" -le "$columns" ] && [ "$5" -eq 0 ] || { cat out; fail "$size, $screen: a line is too wide"; }
        shift 9
        [ "$2" -eq 0 ] || { cat out; fail "$size, $screen: exit code $2"; }
        tried=$((tried + 1))
    done <screens
done
# The check itself: a line too many is seen.
"$watch" 80x24 printf '%081d\n' 0 | grep -q 'broken 1 ' || fail "watch_terminal does not see a broken line"
echo "passed: $tried screens"
