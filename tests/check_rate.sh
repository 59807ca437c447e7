#!/bin/sh
# qkv train rate, rate and eval: forms, answers, pairs, refusals. check_rate.sh BUILD
. "$(dirname "$0")/scratch.sh"

i=0
while [ $i -lt 60 ]; do
    printf '5\tthe film was fine %d\n1\tthe film was dull %d\n' $i $i >>rows.tsv
    i=$((i + 1))
done
awk -F '\t' 'BEGIN { print "id,review,stars" } { printf "%d,\"%s\",%.1f\n", NR, $2, $1 }' rows.tsv >rows.csv
awk -F '\t' '{ print $1 "\tfilm\t" $2 }' rows.tsv >pairs.tsv
small="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --batch-tokens 256 --lr 0.01"

wants 0 'numbers   1 to 5, mean 3, standard deviation 2' "$qkv" train rate --train rows.tsv --out m $small --epochs 4
grep -q 'right' err && fail "nothing is right or wrong of a number"
grep -q 'best validation | loss' m/README.md && grep -q 'qkv rate m' m/README.md || fail "the model card"
wants 0 'number: "stars" (column 3); text: "review"' "$qkv" train rate --train rows.csv --out c $small --epochs 4
cmp m/model.safetensors c/model.safetensors || fail "the same rows in two forms"

printf 'the film was fine\nthe film was dull\n' | "$qkv" rate m >out 2>err || fail rate
awk 'NR == 1 && $1 > 4 { n++ } NR == 2 && $1 < 2 { n++ } END { exit !(NR == 2 && n == 2) }' out || fail "$(cat out)"
"$qkv" rate m 'the film was fine' 'the film was dull' >out2 2>err || fail "texts as arguments"
cmp out out2 || fail "texts as arguments"
printf 'fine "x"\n' | "$qkv" rate m --json --keep >out 2>err || fail "rate --json"
grep -qE '^\{"text":"fine \\"x\\"","number":-?[0-9.]+\}$' out || fail "$(cat out)"
printf 'fine\0dull\0' | "$qkv" rate m -0 --keep | tr '\0' '\n' | grep -cE '^-?[0-9.]+	(fine|dull)$' >out
[ "$(cat out)" = 2 ] || fail "rate -0 --keep"

"$qkv" eval m --data rows.tsv >out 2>err || fail eval
grep -qE '^mse 0?\.?[0-9.e-]+   mae .*pearson (0.99|1.00).*spearman .*\(120 rows\)' out || fail "$(cat out)"
grep -qE '^95 % interval: mse [0-9.e-]+ to [0-9.e-]+   pearson (0.9[0-9]*|1.0000) to (0.9[0-9]*|1.0000)$' out || fail "$(cat out)"
sed '3s/^[0-9.]*/40/' rows.tsv >odd.tsv
"$qkv" eval m --data odd.tsv --errors 1 --samples 0 >out 2>err || fail "eval --errors"
grep -qE '^line 3: -?[0-9.]+, but it is 40$' out && ! grep -q interval out || fail "$(cat out)"
"$qkv" eval m --data rows.csv --label stars --text review --json >out 2>err || fail "eval --json"
grep -q '"task":"rate","examples":120,.*"mse":.*"mae":.*"pearson":.*"spearman":' out || fail "$(cat out)"

wants 0 'text: column 2; pair:' "$qkv" train rate --train pairs.tsv --out p $small --epochs 1
printf 'film\tthe film was fine\n' | "$qkv" rate p >out 2>err || fail "a pair"
wants 3 'line 1: no TAB: this model reads pairs' sh -c "echo fine | '$qkv' rate p"
wants 0 'use it' "$qkv" train rate --train rows.tsv --valid rows.csv --out v $small --epochs 1 --arch gru
wants 0 'tensors from m' "$qkv" train rate --train rows.tsv --out i $small --epochs 1 --init m

sed 's/^5/five/' rows.tsv >words.tsv
wants 3 'line 1: "five" is no number' "$qkv" train rate --train words.tsv --out x $small
[ ! -e x ] || fail "a start that was refused leaves nothing"
wants 3 'is no number' "$qkv" eval m --data words.tsv
wants 2 'trained to rate, not to classify' "$qkv" classify m x
wants 0 'validation' "$qkv" train classify --train rows.tsv --out k $small --epochs 1
wants 2 'trained to classify, not to rate' "$qkv" rate k x
echo ok
