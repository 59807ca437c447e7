#!/bin/sh
# A task is one file and one row: qkv-toy is the command with the task of tests/toy, and all that a task has
# follows from its row: training, resuming, evaluation, use, card, help, manual and completion.
#   check_new_task.sh BUILD_FOLDER
. "$(dirname "$0")/scratch.sh"
qkv=$qkv-toy

i=0
while [ $i -lt 60 ]; do
    printf 'a b c d e f g\nc d e f g h i\ne f g h i j k\n'
    i=$((i + 1))
done >rows.txt
small="--threads 1 --d-model 32 --layers 1 --heads 2 --max-len 16 --batch-tokens 256 --lr 0.01 --tokenizer char"

"$qkv" train --help >out || fail help
grep -q 'denoise *a text from what is left' out || fail "train --help does not list it"
wants 2 "did you mean denoise" "$qkv" train denoize --train rows.txt --out m
wants 2 "denoise" "$qkv" train
mkdir man; "$qkv" --man-pages man || fail "man pages"
grep -q 'denoise' man/qkv-train.1 || fail "the manual does not list it"
for shell in bash fish; do
    "$qkv" completion $shell | grep 'train' | grep -q denoise || fail "completion for $shell"
done

# Trained at once, and in two parts: the same bits.
wants 0 "use it    echo" "$qkv" train denoise --train rows.txt --out whole $small --steps 60
grep -q 'A model for: denoise' whole/README.md || fail "model card"
grep -q 'qkv translate whole' whole/README.md || fail "the use line of the card"
"$qkv" train denoise --train rows.txt --out part $small --steps 60 --save-every 5 >out 2>err &
pid=$!
n=0
while [ ! -e part/checkpoints/last ] && [ $n -lt 200 ]; do n=$((n + 1)); sleep 0.02; done
kill -INT $pid 2>/dev/null || true
wait $pid || true
wants 0 "use it" "$qkv" train denoise --train rows.txt --out part $small --steps 60 --save-every 5
wants 0 "use it" "$qkv" train denoise --train rows.txt --out never $small --steps 60 --save-every 5
cmp part/model.safetensors never/model.safetensors || fail "stopped and resumed is not never stopped"

"$qkv" eval whole --data rows.txt --json >out || fail eval
grep -q '"task":"denoise".*"loss":.*"perplexity":' out || fail "eval: $(cat out)"
[ "$(printf 'a b c d e f g\n' | "$qkv" translate whole | wc -l)" -eq 1 ] || fail "translate"
"$qkv" describe whole >out || fail describe
grep -q cross out || fail "describe"
echo "new task: ok"
