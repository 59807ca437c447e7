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
has '95 % interval: accuracy 100.00 to 100.00 %' 'calibration error'
"$qkv" eval c --data rows.tsv --json >out
has '"accuracy_interval":\[1,1\]' '"samples":1000' '"ece":[0-9]' '"unknown":0' '"mistaken":\[\]'
has '"examples":120' '"support":60' '"confusion":\[\[60,0\],\[0,60\]\]' '"macro_f1":1'

# Labels that it has never seen, and what it got wrong: here the labels are.
{ cat rows.tsv; printf 'bad\tthe film was fine 3\nodd\tthe film was dull\nodder\twhat film\n'; } >more.tsv
"$qkv" eval c --data more.tsv --errors 5 --calibration --samples 0 >out 2>err || fail eval unknown
has 'accuracy 97.56 %' 'not know, counted as wrong: 2$' '^    "odd", "odder"$' 'without them: accuracy 99.17 %' \
    '^line 121: good [0-9.]*, but it is bad [0-9.e-]*$' '^    the film was fine 3$' '█ was right'
! grep -q '95 %' out || fail "intervals that were not asked for"
! grep -q 'line 122' out || fail "an unknown label is no error to look at"
"$qkv" eval c --data more.tsv -o r.svg 2>err && grep -q '<svg.*' r.svg && grep -q 'ECE' r.svg || fail reliability
"$qkv" eval c --data more.tsv --errors 1 -o e.json && grep -q '"errors":\[{"file":"more.tsv","line":121,' e.json || fail errors
printf 'an unknown label that is a good deal longer than a line should be for a terminal\tx\n' >>more.tsv
"$qkv" eval c --data more.tsv --errors 2 >out 2>err || fail eval
[ "$(LC_ALL=C.UTF-8 wc -L <out)" -le 80 ] || fail "wider than 80 columns: $(cat out)"
wants 2 'cannot write ".png"' "$qkv" eval c --data more.tsv -o r.png
wants 2 'reads rows' "$qkv" eval c --data more.tsv --lengths

"$qkv" train lm --tokenizer char --train text.txt --out l $small --steps 30 2>err || fail train lm
"$qkv" eval l --data text.txt --json >out 2>err || fail eval lm
bytes=$(wc -c <text.txt)
[ "$(value bytes)" = "$bytes" ] || fail "bytes: $(cat out)"
[ "$(value targets)" = $((bytes - 1)) ] || fail "every character but the first is a target: $(cat out)"
close "$(value bits_per_byte)" "$(awk "BEGIN { print $(value loss) / log(2) }")" # a character is a byte here
close "$(value perplexity)" "$(awk "BEGIN { print exp($(value loss)) }")"

"$qkv" eval l --data text.txt --lengths --json >out 2>err || fail eval --lengths
has '"lengths":\[{"length":16,' '{"length":32,' '{"length":64,'
wants 2 'lists wrong answers' "$qkv" eval l --data text.txt --errors 3
"$qkv" train lm --tokenizer char --train text.txt --out p $small --position learned --steps 2 2>err || fail train lm learned
wants 2 'at most 16 tokens, not 32: its learned positions end there' "$qkv" eval p --data text.txt --lengths

"$qkv" train mlm --train text.txt --out m $small --steps 10 2>err || fail train mlm
"$qkv" eval m --data text.txt >out 2>err || fail eval mlm
has 'perplexity' 'bits per byte'

"$qkv" train translate --train pairs.tsv --out t $small --steps 200 2>err || fail train translate
"$qkv" eval t --data pairs.tsv --json --beam 2 --tokenize none >out 2>err || fail eval translate
has '"bits_per_byte":' '"bleu_signature":"nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|' '"chrf_words":'
"$qkv" eval t --data pairs.tsv >text 2>err || fail eval translate
cut -f1 pairs.tsv | "$qkv" translate t >hyp 2>err || fail translate
cut -f2 pairs.tsv >ref
"$qkv" score --ref ref --confidence hyp >out || fail score
tail -4 text | cmp -s - out || fail "eval and score differ: $(cat text out)"

"$qkv" eval t --data pairs.tsv --errors 2 --samples 0 >out 2>err || fail eval translate --errors
has '^line [0-9]*: chrF2 [0-9.]*$' '^    eins zwei [0-9]*$' '^  wrote ' '^  right one two [0-9]*$'

# A tagger: spans, intervals over sentences, the word in its sentence.
i=0
while [ $i -lt 40 ]; do
    printf 'we O\nsaw O\nAnn B-PER\nLee I-PER\nin O\nRome B-LOC\n%d O\n\n' $i
    i=$((i + 1))
done >words.conll
{ cat words.conll; printf 'we O\nsaw O\nAnn B-LOC\nLee B-ORG\nin O\nRome B-LOC\n\n'; } >other.conll
"$qkv" train tag --train words.conll --out w $small --epochs 60 2>err || fail train tag
"$qkv" eval w --data other.conll --errors 3 --samples 50 >out 2>err || fail eval tag
has 'spans F1 [0-9.]* to [0-9.]*' 'not know, counted as wrong: 1$' '^    "B-ORG"$' \
    'B-PER [0-9.]*, but it is B-LOC [0-9.e-]*$' '^    we saw \[Ann\] Lee in Rome'
"$qkv" eval w --data other.conll --errors 3 --json >out 2>err || fail eval tag
has '"span_f1_interval":\[' '"text":"we saw Ann Lee in Rome.*","begin":7,"end":10,"truth":"B-LOC","answer":"B-PER"'

got=0; "$qkv" eval c 2>err || got=$?
[ $got -eq 2 ] || fail "eval without data gave $got"
echo "eval: ok"
