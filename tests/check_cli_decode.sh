#!/bin/sh
# The commands translate and generate: answers in order, the same in any batching, options, exit codes.
#   check_cli_decode.sh BUILD_FOLDER
. "$(dirname "$0")/scratch.sh"

# Letters become capitals.
i=0
while [ $i -lt 40 ]; do
    printf 'a b c\tA B C\nc a\tC A\nb\tB\nb c a a\tB C A A\nc c b\tC C B\n'
    i=$((i + 1))
done >pairs.tsv
small="--threads 1 --set d_model=32 --set layers=1 --set heads=2 --set dropout=0 --batch-tokens 256"
"$qkv" train translate --train pairs.tsv --out t $small --set max_len=32 --tokenizer word --steps 150 --lr 0.01 \
    >/dev/null 2>err || fail "train translate"

printf 'a b c\n\nb\nb c a a\nc a\n' >lines
"$qkv" translate t --threads 1 <lines >together || fail translate
[ "$(wc -l <together)" -eq 5 ] || fail "one translation per line"
[ "$(sed -n 1p together)" = "A B C" ] || fail "translation: $(sed -n 1p together)"
[ -z "$(sed -n 2p together)" ] || fail "nothing becomes nothing"
while IFS= read -r line; do printf '%s\n' "$line" | "$qkv" translate t --threads 1; done <lines >alone
cmp -s together alone || fail "a translation depends on its batch"
"$qkv" translate t --threads 2 --max-wait 5 <lines >out || fail "translate --max-wait"
cmp -s together out || fail "a translation depends on the threads"
tr '\n' '\0' <lines | "$qkv" translate t -0 | tr '\0' '\n' >out
cmp -s together out || fail "translate -0"
printf 'a b c' | "$qkv" translate t >out # a last line without its end
[ "$(cat out)" = "A B C" ] || fail "a line without its end: $(cat out)"

# A shortlist learned from the pairs: the same in any batching; a model without one says so.
"$qkv" translate t --shortlist --threads 1 <lines >short || fail "translate --shortlist"
cmp -s together short || fail "the shortlist of so small a vocabulary changed a translation"
while IFS= read -r line; do printf '%s\n' "$line" | "$qkv" translate t --shortlist; done <lines >out
cmp -s short out || fail "translate --shortlist: alone is not together"
"$qkv" quantize t t8 --to int8 >/dev/null || fail "quantize a translator"
"$qkv" translate t8 --shortlist <lines >out || fail "the shortlist of a quantized model"
rm t8/shortlist.safetensors
got=0; "$qkv" translate t8 --shortlist <lines >out 2>err || got=$?
[ "$got" -eq 2 ] && grep -q "no shortlist" err || fail "a shortlist that is not there gave $got"
printf 'x' >t8/shortlist.safetensors
wants 3 "shortlist.safetensors" "$qkv" translate t8
printf 'a b c\n' | "$qkv" translate t --beam 4 --nbest 3 >out
[ "$(wc -l <out)" -eq 3 ] || fail "three best"
sed -n 1p out | grep -q '^1	A B C	-[0-9.]*	-[0-9.]*$' || fail "n best: $(sed -n 1p out)"
printf 'a b c\n' | "$qkv" translate t --align >out
grep -q '^A B C	[0-9]-0 [0-9]-1 [0-9]-2$' out || fail "links: $(cat out)"
printf 'a b c\n' | "$qkv" translate t --json >out
grep -q '^{"text":"A B C","log_prob":-.*,"links":\[\]}$' out || fail "json: $(cat out)"
printf 'a b c\n' | "$qkv" translate t --prefix "C" >out
grep -q '^C' out || fail "prefix: $(cat out)"
printf 'a b c\n' | "$qkv" translate t --forbid B >out
grep -q B out && fail "forbidden: $(cat out)"
printf 'b\n' | "$qkv" translate t --min-tokens 3 >out
[ "$(wc -w <out)" -ge 3 ] || fail "min-tokens: $(cat out)"
printf 'a b c a b c a b c a b c a b c a b c a b c a b c a b c a b c a b c a b c\n' | "$qkv" translate t >out 2>err
grep -q "longer than the model reads" err || fail "a long line needs a notice"
got=0; "$qkv" translate t --beam 2 --nbest 3 <lines >out 2>err || got=$?
[ "$got" -eq 2 ] || fail "more than the beam holds gave $got"
wants 2 "not to generate" "$qkv" generate t --prompt a
wants 1 "nowhere" "$qkv" translate nowhere

# A language model of characters.
i=0
while [ $i -lt 100 ]; do printf 'the cat sat on the mat.\n'; i=$((i + 1)); done >text
"$qkv" train lm --train text --out g $small --set max_len=32 --set position=learned --tokenizer char --steps 400 --lr 0.003 >/dev/null 2>err ||
    fail "train lm"
gen() { "$qkv" generate g --threads 1 "$@"; }
gen --prompt "the cat" --temperature 0 --tokens 17 >out || fail generate
[ "$(cat out)" = " sat on the mat." ] || fail "generated: $(cat out)"
gen --prompt "the cat" --temperature 0 --stop "the" >out
[ "$(cat out)" = " sat on " ] || fail "stop: $(cat out)"
gen --prompt "the" --echo --temperature 0 --tokens 4 >out
[ "$(cat out)" = "the cat" ] || fail "echo: $(cat out)"
gen --prompt "the" --tokens 100 --temperature 2 --seed 7 >one
gen --prompt "the" --tokens 100 --temperature 2 --seed 7 --threads 2 >two
cmp -s one two || fail "the same seed, another text"
gen --prompt "the" --tokens 100 --temperature 2 --seed 8 >two
cmp -s one two && fail "another seed, the same text"
[ "$(wc -c <one)" -ge 101 ] || fail "a text longer than the window: $(wc -c <one)"
printf 'the\nthe cat\n' | gen --temperature 0 --tokens 4 >out
[ "$(sed -n 1p out)" = " cat" ] && [ "$(sed -n 2p out)" = " sat" ] || fail "prompts on stdin: $(cat out)"
gen --prompt "" --tokens 3 --json >out
grep -q '"prompt_tokens":1,"tokens":3,.*"end":"tokens"' out || fail "json: $(cat out)"
wants 2 "learned positions" "$qkv" generate g --prompt x --tokens 50 --window 33
printf "a\n" >lines; got=0; "$qkv" translate g <lines >out 2>err || got=$?; [ "$got" -eq 2 ] || fail "translating with a language model gave $got"
echo "decode: ok"
