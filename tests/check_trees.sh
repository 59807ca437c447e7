#!/bin/sh
# Structural positions on a real treebank, where QKV_DATA says where it is. check_trees.sh BUILD
data=$(cd "${QKV_DATA:-none}" 2>/dev/null && pwd)/ud_en_ewt || data=
. "$(dirname "$0")/scratch.sh"
small="--threads 1 --set position=structural --set d_model=16 --set layers=1 --set heads=2 --set max_len=64 --batch-tokens 1024"

i=0
while [ $i -lt 20 ]; do
    printf '# label = up\n1\tgo\t_\t_\t_\t_\t0\t_\t_\t_\n2\tn%d\t_\t_\t_\t_\t1\t_\t_\t_\n\n' $i
    printf '# label = down\n1\tgo\t_\t_\t_\t_\t2\t_\t_\t_\n2\tm%d\t_\t_\t_\t_\t0\t_\t_\t_\n\n' $i
    i=$((i + 1))
done >rows.conllu
"$qkv" train classify --train rows.conllu --out c $small --steps 3 2>err || fail train
echo 'go n3' | "$qkv" classify c --trees rows.conllu >out 2>err || fail classify
grep -q '	[01]\.' out || fail "an answer: $(cat out)"
"$qkv" classify c --trees rows.conllu --explain --json 'go n3' >out 2>err || fail explain
grep -q '"words":\[{"text":"go","begin":0,"end":2,' out || fail "explained: $(cat out)"
got=0; echo 'go n3' | "$qkv" classify c >out 2>err || got=$?
[ $got -eq 3 ] && grep -q 'no tree' err || fail "a model with structural positions ran without trees"

# A translator: trees of the sources, a decoder with positions of its own.
grep -o '^[12]	[^	]*' rows.conllu | cut -f2 | paste -d' ' - - >rows.src
sed 's/go n.*/up/; s/go m.*/down/' rows.src >rows.tgt
"$qkv" train translate --train rows.src rows.tgt --out t --trees rows.conllu $small --set decoder_position=relative --steps 3 2>err || fail train translate
echo 'go n3' | "$qkv" translate t --trees rows.conllu --max-tokens 5 >out 2>err || fail translate
[ "$(wc -l <out)" -eq 1 ] || fail "one translation"
"$qkv" eval t --data rows.src rows.tgt --trees rows.conllu >out 2>err || fail eval translate
"$qkv" embed t --trees rows.conllu <rows.src >out 2>err || fail embed
"$qkv" attention t 'go n3' up --trees rows.conllu --json >out 2>err || fail attention
got=0; echo 'go n3' | "$qkv" translate t >out 2>err || got=$?
[ $got -eq 3 ] && grep -q 'no tree' err || fail "a translator with structural positions ran without trees"

if [ -n "$data" ] && [ -f "$data/en_ewt-ud-dev.conllu.xz" ] && command -v xz >/dev/null; then
    xz -dc "$data/en_ewt-ud-dev.conllu.xz" >dev.conllu
    "$qkv" train mlm --train dev.conllu --out m $small --steps 2 2>err || fail train on ud_en_ewt
    grep -q ' 2,001 rows (conllu)' err || fail "2001 sentences"
else
    echo "ud_en_ewt is not there: left out"
fi
echo "trees: ok"
