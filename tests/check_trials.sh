#!/bin/sh
# Trainings that are compared: train --folds and --tune; their figures, ledgers and what goes on from them.
#   check_trials.sh BUILD_FOLDER
. "$(dirname "$0")/scratch.sh"
i=0
while [ $i -lt 60 ]; do
    printf 'good\tthe film was %s %d\nbad\tthe film was %s %d\n' "$([ $((i % 4)) = 0 ] && echo dull || echo fine)" $i dull $i
    i=$((i + 1))
done >rows.tsv
small="--train rows.tsv --threads 1 --set d_model=16 --set layers=1 --set heads=2 --max-len 16 --batch-tokens 128 --lr 0.01"
figures() { sed 's/"mark":"[^"]*",//; s/"seconds":[0-9.e-]*,//' "$1"; }

# Every row is left out once; the figures lie about their mean.
"$qkv" train classify $small --out cv --folds 3 --epochs 2 >out 2>err || fail "--folds"
grep -q '^fold 2 .*[0-9] %' out && grep -q '^mean .* right, 95 % interval .* to ' out || fail "--folds says: $(cat out)"
grep -q '^fold 3    [0-9.]* % of 40 right' err || fail "a fold is not said when it is over"
[ "$(grep -c '"targets":40,' cv/folds.jsonl)" -eq 3 ] || fail "rows: $(cat cv/folds.jsonl)"
[ "$(ls cv)" = folds.jsonl ] || fail "a cross-validation leaves more than figures: $(ls cv)"
"$qkv" train classify $small --out cv --folds 3 --epochs 2 --json >out 2>err || fail "folds that are done"
grep -q '^{"figure":"right","mean":[0-9.]*,"low":.*,"trials":\[{"what":"fold 1","targets":40,' out || fail "--json: $(cat out)"
[ ! -s err ] || fail "folds that are done are made again"
wants 2 "another command" "$qkv" train classify $small --out cv --folds 4 --epochs 2
wants 2 "give one" "$qkv" train classify $small --out cv --folds 4 --tune 1
wants 2 "read only once" "$qkv" train classify --train - --out x --folds 3
[ ! -e x ] || fail "a refused cross-validation left a folder"

# Killed on the way, the same command ends with the same figures.
"$qkv" train classify $small --out killed --folds 3 --epochs 2 >/dev/null 2>err & pid=$!
while [ ! -s killed/folds.jsonl ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
"$qkv" train classify $small --out killed --folds 3 --epochs 2 >/dev/null 2>err || fail "the rest of the folds"
figures cv/folds.jsonl >a
figures killed/folds.jsonl | cmp -s - a || fail "killed and gone on with, the folds differ"

# Running text is left out in stretches.
cut -f2 rows.tsv >lines.txt
for i in 1 2 3; do cat lines.txt; done >text.txt
"$qkv" train lm --train text.txt --out lm --folds 2 --threads 1 --steps 3 --d-model 16 --layers 1 --heads 2 --max-len 16 \
    --tokenizer char --batch-tokens 64 >out 2>err || fail "--folds of running text"
grep -q '^mean loss [0-9.]*, 95 % interval' out || fail "folds of a language model: $(cat out)"

# A search: every trial is on file, the first as chosen; the best becomes the model; the same command goes on.
wants 0 "trial 1 .*as chosen" "$qkv" train classify $small --steps 10 --out best --tune 0.08
grep -q '^best      trial [0-9]* of [0-9]* ' err || fail "which trial was the best"
head -1 best/trials.jsonl | grep -q '"what":"","over":true,' || fail "the first trial: $(cat best/trials.jsonl)"
[ "$(wc -l <best/trials.jsonl)" -gt 1 ] || fail "one trial is no search"
grep -q '"what":"[a-z_]*=' best/trials.jsonl || fail "trials without settings"
[ -e best/result.json ] && [ ! -e best/trial ] || fail "what a search leaves: $(ls best)"
[ "$(printf 'the film was fine\n' | "$qkv" classify best | cut -f1)" = good ] || fail "the model of a search"
wants 0 "use it" "$qkv" train classify $small --steps 2 --out run
wants 2 "holds a run" "$qkv" train classify $small --steps 2 --out run --tune 0.08
wants 0 "finished" "$qkv" train classify $small --steps 10 --out best --tune 0.01
echo "trials: ok"
