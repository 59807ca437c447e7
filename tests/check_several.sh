#!/bin/sh
# Classifiers of several labels a text: forms, answers, eval. check_several.sh BUILD
. "$(dirname "$0")/scratch.sh"

i=0
while [ $i -lt 40 ]; do
    printf '__label__dog __label__red the dog was red %d\n__label__dog the dog ran %d\n' $i $i >>rows.txt
    printf '__label__red a red car %d\nnothing at all %d\n' $i $i >>rows.txt
    i=$((i + 1))
done
awk '{ n = 0; list = ""; s = $0
       while (match(s, /^__label__[a-z]+ /)) { l = substr(s, 10, RLENGTH - 10); list = list (n++ ? ";" : "") l; s = substr(s, RLENGTH + 1) }
       print "\"" s "\"," list >"rows.csv"
       gsub(/;/, "\",\"", list); print "{\"text\":\"" s "\",\"labels\":[" (n ? "\"" list "\"" : "") "]}" >"rows.jsonl" }' rows.txt
small="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --batch-tokens 256 --lr 0.01 --epochs 10"

wants 0 'labels    several labels a row: 1.00 on average; 40 rows without any' "$qkv" train classify --train rows.txt --out m $small
grep -q 'classes   2: dog 80, red 80' err || fail "classes"
wants 0 'several labels a row' "$qkv" train classify --train rows.csv --text 1 --label 2 --labels-separator ';' --out c $small
wants 0 'several labels a row' "$qkv" train classify --train rows.jsonl --out j $small
cmp m/model.safetensors c/model.safetensors && cmp m/model.safetensors j/model.safetensors || fail "the same rows in other forms"
grep -q '"several": true' m/config.json && grep -q '"threshold"' m/config.json || fail config.json

printf 'the dog was red\nthe dog ran\na red car\nnothing at all\n' >asked
"$qkv" classify m <asked >out 2>err || fail classify
awk -F '\t' 'NR == 1 { n += NF == 4 } NR == 2 { n += NF == 2 && $1 == "dog" } NR == 3 { n += NF == 2 && $1 == "red" } NR == 4 { n += NF == 0 }
             END { exit !(NR == 4 && n == 4) }' out || fail "classify: $(cat out)"
"$qkv" classify m --json --keep <asked >out 2>err || fail "classify --json"
sed -n 4p out | grep -q '^{"text":"nothing at all","labels":{}}$' || fail "$(cat out)"
sed -n 2p out | grep -qE '^\{"text":"the dog ran","labels":\{"dog":[0-9.]+\}\}$' || fail "$(cat out)"
"$qkv" classify m --all <asked >out 2>err || fail "classify --all"
awk -F '\t' 'NF != 4 { exit 1 }' out || fail "--all: $(cat out)"
"$qkv" classify m --top 1 --json <asked >out 2>err || fail "classify --top"
sed -n 4p out | grep -qE '^\{"(dog|red)":[0-9.e-]+\}$' || fail "--top: $(cat out)"
"$qkv" classify m --threshold 0 "nothing at all" >out 2>err || fail "classify --threshold"
awk -F '\t' 'NF != 4 { exit 1 }' out || fail "--threshold 0: $(cat out)"
"$qkv" classify m --unknown none "nothing at all" >out 2>err || fail "classify --unknown"
grep -q '^none	' out || fail "--unknown: $(cat out)"

"$qkv" eval m --data rows.txt >out 2>err || fail eval
grep -qE '^micro F1 (1.0000|0.9)' out && grep -q '^exact match' out || fail "$(cat out)"
"$qkv" eval m --data rows.csv --text 1 --label 2 --labels-separator ';' --json >out 2>err || fail "eval --json"
grep -q '"macro_f1":.*"micro_f1":.*"exact_match":' out || fail "$(cat out)"


"$qkv" classify m --explain --json "the dog was red" >out 2>err || fail "classify --explain"
[ "$(grep -o '"label":"[a-z]*","probability":[0-9.]*,"lead":[0-9.]*' out | wc -l)" = 2 ] || fail "each label by itself: $(cat out)"
grep -q '"against"' out && fail "a label of several is against none"

# One label a row stays what it was; lists are refused where the model gives one.
grep -E '^__label__[a-z]+ [^_]' rows.txt >one.txt
wants 0 'classes   2' "$qkv" train classify --train one.txt --out o $small
grep -q 'several labels' err && fail "one label a row"
wants 2 'errors and --calibration are for models of one label a text' "$qkv" eval m --data rows.txt --errors 3
wants 3 'several labels; in the training data every row has one' "$qkv" eval o --data rows.txt
wants 2 'for one label a row, not for several' "$qkv" train classify --train rows.txt --out x $small --class-weights balanced
wants 2 'under a threshold' "$qkv" classify o --unknown none x
echo ok
