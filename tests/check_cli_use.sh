#!/bin/sh
# What a person runs into when using models: refusals that name the way out, nothing dropped in silence, nothing overwritten.
#   check_cli_use.sh BUILD_FOLDER
. "$(dirname "$0")/scratch.sh"

works() { "$@" >out 2>err || fail "$*"; }

i=0
while [ $i -lt 60 ]; do
    printf 'good\tthe film was fine %d\nbad\tthe film was dull %d\nodd\tthe film was strange %d\n' $i $i $i
    i=$((i + 1))
done >rows.tsv
cut -f2 rows.tsv >lines.txt
size="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --batch-tokens 128 --lr 0.01"
"$qkv" train classify --train rows.tsv --out c --arch transformer $size --epochs 4 -q 2>err || fail train
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
wants 2 'no attention: its layers are GRUs; "qkv classify DIR --explain" shows' "$qkv" attention r "a film"
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
echo 'use: ok'
