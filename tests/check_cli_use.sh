#!/bin/sh
# What a person runs into when using models: refusals that name the way out, nothing dropped in silence, nothing overwritten.
#   check_cli_use.sh BUILD_FOLDER
. "$(dirname "$0")/scratch.sh"

watch=$(dirname "$qkv")/watch_terminal
works() { "$@" >out 2>err || fail "$*"; }

i=0
while [ $i -lt 60 ]; do
    printf 'good\tthe film was fine %d\nbad\tthe film was dull %d\nodd\tthe film was strange %d\n' $i $i $i
    i=$((i + 1))
done >rows.tsv
cut -f2 rows.tsv >lines.txt
size="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --batch-tokens 128 --lr 0.01"
"$qkv" train classify --train rows.tsv --out c --arch transformer --label-smoothing 0.3 $size --epochs 4 -q 2>err || fail train
"$qkv" train classify --train rows.tsv --out r --arch gru $size --epochs 1 -q 2>err || fail "train a GRU"
wants 0 'use it    qkv generate g --prompt' "$qkv" train lm --train lines.txt --out g --tokenizer char $size --epochs 1

# ---- refusals ----
# A model that is there stays, unless that is asked for.
"$qkv" quantize c c8 >out 2>err || fail quantize
sum=$(cksum <g/model.safetensors)
wants 2 'g/config.json is there already: another folder, or --overwrite' "$qkv" quantize c g
wants 2 'is there already' "$qkv" quantize c c8
[ "$(cksum <g/model.safetensors)" = "$sum" ] || fail "quantize overwrote a model"
works "$qkv" quantize c c8 --overwrite
wants 2 'there is no preset "smal", the nearest is small; `qkv describe --presets` lists them' "$qkv" describe --preset smal
wants 2 'there is no preset "xyzzy"; `qkv describe --presets` lists' "$qkv" train classify --train rows.tsv --out x --preset xyzzy
[ ! -e x ] || fail "a refused start left a folder"
wants 2 'not to generate text; "qkv classify" uses it' "$qkv" generate c --prompt the
[ ! -s out ] || fail "generate on a classifier prints something"
wants 2 'cannot write ".png" files, only .svg .json .txt' "$qkv" describe c -o d.png
wants 2 'cannot write ".pdf" files, only .svg .html .json .txt' "$qkv" attention c "a film" -o a.pdf
[ ! -e d.png ] && [ ! -e a.pdf ] || fail "a file that is not what its name says"
for f in d.svg d.json d.txt d; do works "$qkv" describe c -o $f; [ -s $f ] || fail "$f"; done
wants 2 'no attention: its layers are GRUs; `qkv classify DIR --explain` shows what each word added' "$qkv" attention r "a film"
wants 2 'no option --model' "$qkv" bench classify --model c

# ---- nothing goes in silence ----
wants 0 'longer than the model reads and was cut' "$qkv" attention c "the film the film the film the film the film the film the film the film the film"
works "$qkv" attention c "the film"
[ ! -s err ] || fail "a short text was not cut"
echo 'größe und größe' >text
i=0
while [ $i -lt 6 ]; do cat text text >more; mv more text; i=$((i + 1)); done
"$qkv" tokenizer train --kind bpe --vocab-size 280 -o b.json text >out 2>err || fail "tokenizer train"
ids() { printf "$1" | "$qkv" tokenizer decode b.json >out 2>err; }
got=0; ids '70 71\n72 99999\n' || got=$?
[ $got -eq 2 ] && grep -q 'line 2: there is no token 99999; the tokenizer.s ids are 0 to [0-9]*$' err || fail "decode: $got $(cat err)"
[ "$(wc -l <out)" -eq 1 ] || fail "decode: the lines before the wrong one"
echo 'größe' | "$qkv" tokenizer encode b.json --explain >out || fail explain
grep -q 'word 1: größe' out && grep -q '<C3> <B6>' out && ! grep -q 'Ã' out || { cat out; fail "explain shows bytes, not characters"; }
printf 'und\ngröße und\n' | "$qkv" tokenizer encode b.json --pad 4 --mask >out
grep -q '^[0-9 ]*	\(1 \)\{1,\}0' out || { cat out; fail "encode --mask"; }
printf 'und\n"ö"\n' | "$qkv" tokenizer encode b.json --pad 4 --json --offsets >out
sed -n 1p out | grep -Eq '^\{"ids":\[[0-9]+,[0-9]+,[0-9]+,[0-9]+\],"begin":\[0,.*\],"end":\[.*\],"mask":\[1,.*0\],"cut":false\}$' || { cat out; fail "encode --json"; }

# ---- classify: texts as arguments, the best few, a threshold, the line beside its answer ----
classify() { "$qkv" classify c "$@" >out 2>err </dev/null || fail "classify $*"; }
lines() { printf 'the film was fine 3\nthe film was dull 4\n'; }
lines | "$qkv" classify c >wanted || fail classify
classify "the film was fine 3" "the film was dull 4" && cmp -s out wanted || fail "texts as arguments: $(cat out)"
lines | "$qkv" classify c --all >all
lines | "$qkv" classify c --top 2 >out
cut -f1-4 all | cmp -s - out || fail "--top 2: $(cat out)"
lines | "$qkv" classify c --top 9 | cmp -s - all || fail "--top over the number of classes"
lines | "$qkv" classify c --keep >out
lines | paste wanted - | cmp -s - out || fail "--keep: $(cat out)"
echo 'xylophones hum' | "$qkv" classify c >unsure
echo 'xylophones hum' | "$qkv" classify c --threshold 0.9999 --unknown '?' >out
[ "$(cut -f1 out)" = '?' ] && [ "$(cut -f2 out)" = "$(cut -f2 unsure)" ] || fail "--threshold: $(cat out unsure)"
lines | "$qkv" classify c --threshold 0.5 | cmp -s - wanted || fail "--threshold 0.5"
lines | "$qkv" classify c --threshold 0 | cmp -s - wanted || fail "--threshold 0"
lines | "$qkv" classify c --all --threshold 0.3 >out
awk -F'\t' '{ for (i = 2; i <= NF; i += 2) if ($i < 0.3) exit 1 }' out || fail "--all --threshold: $(cat out)"
classify --json --keep "a \"film\"" && grep -Eq '^\{"text":"a \\"film\\"","label":"[a-z]+","probability":[0-9.]+\}$' out || fail "--json --keep: $(cat out)"
classify --json --top 2 "a film" && grep -Eq '^\{"[a-z]+":[0-9.]+,"[a-z]+":[0-9.]+\}$' out || fail "--json --top: $(cat out)"
classify --json --top 1 --keep "a film" && grep -Eq '^\{"text":"a film","classes":\{"[a-z]+":[0-9.]+\}\}$' out || fail "--json --top --keep: $(cat out)"
wants 2 'threshold' "$qkv" classify c --unknown x "a film"
works "$qkv" classify c lines.txt && grep -q '"lines.txt" is read as a text, though a file has this name; .*< lines.txt' err || fail "a file's name as a text"
works "$qkv" embed c "a film" && [ "$(wc -l <out)" -eq 1 ] || fail "embed TEXT"

"$watch" 80x24 --type 'a film\n' "$qkv" classify c >out 2>err || true
grep -q 'a text per line, please; Ctrl-D ends' out || { cat out; fail "nothing says that it is the person's turn"; }

# ---- generate: a fresh seed that is said, samples ----
generate() { "$qkv" generate g --threads 1 --prompt "the film" --tokens 40 --temperature 3 "$@"; }
generate >one 2>err || fail generate
seed=$(sed -n 's/^qkv: --seed \([0-9]*\) repeats this$/\1/p' err)
[ "$seed" ] || fail "the seed is not said"
generate --seed "$seed" >two 2>err || fail "generate --seed"
cmp -s one two && [ ! -s err ] || fail "the seed that was said gives another text"
generate >two 2>err && cmp -s one two && fail "not a fresh seed"
generate --temperature 0 >out 2>err && [ ! -s err ] || fail "a seed is said where nothing is drawn"
generate --seed 5 --samples 2 --json >out 2>err || fail "samples"
grep -q '"seed":5}$' out && grep -q '"seed":6}$' out && [ "$(wc -l <out)" -eq 2 ] || fail "samples: $(cat out)"
for s in 5 6; do generate --seed $s; [ $s -eq 6 ] || echo; done >wanted 2>err
generate --seed 5 --samples 2 >out 2>err && cmp -s out wanted || fail "samples are not the texts of their seeds"

# ---- the nearest texts, and vectors of words ----
works "$qkv" similar c --in lines.txt --top 2 "the film was fine 7"
printf '1.0000\t22\tthe film was fine 7\n' | cmp -s - out || head -1 out | grep -q '^1.0000	' || fail "similar: $(cat out)"
[ "$(wc -l <out)" -eq 2 ] || fail "similar --top"
head -2 lines.txt | "$qkv" similar c --in lines.txt --index near --top 1 >one 2>err || fail "similar --index"
printf '1.0000\t1\tthe film was fine 0\n\n1.0000\t2\tthe film was dull 0\n' | cmp -s - one || fail "similar: $(cat one)"
sum=$(cksum <near)
head -2 lines.txt | "$qkv" similar c --in lines.txt --index near --top 1 --threads 1 >two && cmp -s one two &&
    [ "$(cksum <near)" = "$sum" ] || fail "an index that is there gives other answers"
works "$qkv" similar c --in lines.txt --words --top 1 --json strange
grep -q '^{"text":"strange","nearest":\[{"cosine":1,"line":3,"text":"strange"}\]}$' out || fail "similar --words: $(cat out)"
wants 2 '\-\-in FILE' "$qkv" similar c "a film"
wants 3 'is no index of texts' "$qkv" similar c --in lines.txt --index rows.tsv "a film"
works "$qkv" embed c --tokens "the film was fine"
[ "$(cut -f1 out | tr '\n' ' ')" = "the film was fine  " ] || fail "embed --tokens: $(cat out)"
works "$qkv" embed c --tokens --json "the film"
grep -q '^{"words":\[{"text":"the","begin":0,"end":3,"vector":\[' out || fail "embed --tokens --json: $(cat out)"

# ---- beyond the trained length ----
long="the film was fine the film was fine the film was fine the film was dull"
"$qkv" train classify --train rows.tsv --out e --arch transformer --position learned $size --epochs 1 -q 2>err || fail "train learned"
wants 2 'at most 16 tokens, not 64: its learned positions end there' "$qkv" classify e "$long" --max-len 64
wants 0 'longer than the model reads and were cut' "$qkv" classify r "$long $long $long"
works "$qkv" classify r "$long $long $long" --max-len 200
[ ! -s err ] || fail "what was read whole is said to be cut"

# ---- translate: no tokens twice ----
i=0
while [ $i -lt 60 ]; do echo 'a b a b a b a b	x y x y x y x y'; i=$((i + 1)); done >pairs.tsv
"$qkv" train translate --train pairs.tsv --out t $size --tokenizer word --epochs 60 -q 2>err || fail "train translate"
echo 'a b a b a b a b' | "$qkv" translate t >out || fail translate
grep -q 'x y x y' out || fail "the translator did not learn to repeat: $(cat out)"
echo 'a b a b a b a b' | "$qkv" translate t --no-repeat-ngram 2 >out || fail "translate --no-repeat-ngram"
grep -q 'x y x y' out && fail "repeats: $(cat out)"
echo 'use: ok'
