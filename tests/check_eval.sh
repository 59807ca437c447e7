#!/bin/sh
# qkv eval: every task's scores, in both forms. check_eval.sh BUILD
. "$(dirname "$0")/scratch.sh"

# has WORDS…: the file `out` has them all
has() { for words in "$@"; do grep -q -e "$words" out || fail "lacks '$words': $(cat out)"; done; }
# value KEY: a number of the JSON object in `out`
value() { sed "s/.*\"$1\":\([-0-9.e+]*\).*/\1/" out; }
# close A B: to a thousandth
close() { awk "BEGIN { d = $1 - $2; exit !(d < 0.001 && d > -0.001) }" || fail "$1 is not $2"; }

i=0
while [ $i -lt 60 ]; do
    printf 'good\tthe film was fine %d\nbad\tthe film was dull %d\n' $i $i >>rows.tsv
    printf 'one two %d\n' $i >>text.txt
    printf 'eins zwei %d\tone two %d\n' $i $i >>pairs.tsv
    i=$((i + 1))
done
small="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --batch-tokens 256 --lr 0.01"

"$qkv" train classify --train rows.tsv --out c $small --epochs 6 2>err || fail train classify
"$qkv" eval c --data rows.tsv >out 2>err || fail eval
has 'accuracy 100.00 %' 'macro F1 1.0000' 'precision *recall *F1 *rows' 'true . answered *bad *good' '^good *0 *60'
"$qkv" eval c --data rows.tsv --json >out
has '"examples":120' '"support":60' '"confusion":\[\[60,0\],\[0,60\]\]' '"macro_f1":1'

"$qkv" train lm --tokenizer char --train text.txt --out l $small --steps 30 2>err || fail train lm
"$qkv" eval l --data text.txt --json >out 2>err || fail eval lm
bytes=$(wc -c <text.txt)
[ "$(value bytes)" = "$bytes" ] || fail "bytes: $(cat out)"
[ "$(value targets)" = $((bytes - 1)) ] || fail "every character but the first is a target: $(cat out)"
close "$(value bits_per_byte)" "$(awk "BEGIN { print $(value loss) / log(2) }")" # a character is a byte here
close "$(value perplexity)" "$(awk "BEGIN { print exp($(value loss)) }")"

"$qkv" train mlm --train text.txt --out m $small --steps 10 2>err || fail train mlm
"$qkv" eval m --data text.txt >out 2>err || fail eval mlm
has 'perplexity' 'bits per byte'

"$qkv" train translate --train pairs.tsv --out t $small --steps 200 2>err || fail train translate
"$qkv" eval t --data pairs.tsv --json --beam 2 --tokenize none >out 2>err || fail eval translate
has '"bits_per_byte":' '"bleu_signature":"nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|' '"chrf_words":'
"$qkv" eval t --data pairs.tsv >text 2>err || fail eval translate
cut -f1 pairs.tsv | "$qkv" translate t >hyp 2>err || fail translate
cut -f2 pairs.tsv >ref
"$qkv" score --ref ref hyp >out || fail score
tail -4 text | cmp -s - out || fail "eval and score differ: $(cat text out)"

got=0; "$qkv" eval c 2>err || got=$?
[ $got -eq 2 ] || fail "eval without data gave $got"
echo "eval: ok"
