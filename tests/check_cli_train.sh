#!/bin/sh
# The commands train, eval and classify: answers, files, exit codes; stopping by signal and going on.
#   check_cli_train.sh BUILD_FOLDER
here=$(cd "$(dirname "$0")" && pwd)
. "$here/scratch.sh"

# A task that two words decide.
i=0
while [ $i -lt 60 ]; do
    printf 'good\tthe film was fine %d\nbad\tthe film was dull %d\n' $i $i
    i=$((i + 1))
done >rows.tsv
small="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --batch-tokens 128 --lr 0.01"

wants 0 "validation" "$qkv" train classify --train rows.tsv --out m $small --epochs 6
for f in config.json tokenizer.json model.safetensors README.md log.jsonl run.json result.json; do
    [ -e "m/$f" ] || fail "m/$f is missing"
done
grep -q "^memory    about [0-9]* MB$" err && grep -q "^time      about .* seconds in all, .* to come$" err || fail "no estimates"
# Both losses of a validation are of the same kind: on rows that n-grams know by heart it is small.
grep '"kind":"valid"' m/log.jsonl | head -1 | grep -q '"train_loss":[0-9.e-]*,"best":true}$' || fail "a validation's line in the log"
# What only the training needed is gone, unless it is to be kept.
[ ! -e m/checkpoints ] && [ ! -e m/cache ] || fail "a finished folder has checkpoints"
wants 0 "use it" "$qkv" train classify --train rows.tsv --out kept $small --epochs 2 --keep-checkpoints
[ -e kept/checkpoints/last/state.json ] && [ -e kept/checkpoints/best ] || fail "--keep-checkpoints"
printf 'the film was fine\n\nthe film was dull\n' | "$qkv" classify m >out || fail classify
printf 'the film was fine\0the film was dull\0' | "$qkv" classify m -0 --json >out0 || fail "classify -0 --json"
[ "$(tr '\0' '\n' <out0 | grep -c '^{"label":"[a-z]*","probability":[0-9.]*}$')" -eq 2 ] || fail "classify -0 --json"
i=0; while [ $i -lt 40 ]; do printf 'the film '; i=$((i + 1)); done | "$qkv" classify m --all --json >out1 2>err || fail "a long line"
grep -q '^{"[a-z]*":[0-9.]*,"[a-z]*":' out1 && grep -q 'longer than the model reads' err || fail "a long line is cut and said so"
[ "$(wc -l <out)" -eq 3 ] || fail "one answer per line"
sed -n 1p out | grep -q '^good	[01]\.[0-9]*$' || fail "first answer: $(sed -n 1p out)"
sed -n 3p out | grep -q '^bad	' || fail "third answer: $(sed -n 3p out)"
"$qkv" eval m --data rows.tsv --json >out || fail eval
grep -q '"accuracy":1[,.]' out || fail "accuracy: $(cat out)"

# What was chosen for somebody who says nothing is said, in lines of a terminal's width; what was given is not.
"$qkv" train classify --train rows.tsv --out chosen --threads 1 --average 0 2>err >out || fail "train with defaults"
cat out err | sed -n '/^chosen /,/^model /p' | grep -v '^model ' >lines
printf '%s\n' 'chosen    a GRU with n-grams, since there are 120 rows (570 tokens);' '          --preset tiny for a Transformer' \
    '          70 words in lower case, n-grams of up to 2 tokens or 5 characters' '          at most 10 passes, muon, rate 0.01, smoothing 0.1' |
    cmp - lines || fail "what was chosen: $(cat lines)"
"$qkv" train classify --train rows.tsv --out chosen2 $small --preset tiny --tokenizer word --ngrams 0 --epochs 1 \
    --optimizer adamw --label-smoothing 0 --average 0 2>err >out || fail "train with everything given"
cat out err | grep '^chosen' && fail "what was given is said to be chosen"

# The same command again has nothing left to do, says so before it reads anything, and changes nothing; so does the same
# said in other words, once it has read. Another one is refused.
sum=$(cksum <m/model.safetensors)
wants 0 "go on     with a larger --epochs" "$qkv" train classify --train rows.tsv --out m $small --epochs 6
grep -q '^read' err && fail "a finished run is read again"
wants 0 "finished  this run is done: 30 steps" "$qkv" train classify --train rows.tsv --out m --epochs 6 $small
[ "$(cksum <m/model.safetensors)" = "$sum" ] || fail "a finished run changed its model"
wants 2 "give it 25: raise" "$qkv" train classify --train rows.tsv --out m $small --epochs 5
wants 2 "d_ff.*overwrite" "$qkv" train classify --train rows.tsv --out m $small --epochs 7 --d-ff 48
[ -e m/result.json ] || fail "a refused run took the result away"
# With more passes it goes on: a new schedule from the weights that it left, in one log; killed on the way it ends alike.
cp -r m again
wants 0 "from step 30 on" "$qkv" train classify --train rows.tsv --out m $small --epochs 9
grep -q '"step":40,.*"lr":0.0031' m/log.jsonl || fail "the schedule is not a new one"
grep -q '"step": 45,' m/result.json || fail "a run that went on: $(cat m/result.json)"
[ "$(grep -c '"kind":"valid"' m/log.jsonl)" -eq 9 ] || fail "the log of a run that went on"
wants 0 "finished" "$qkv" train classify --train rows.tsv --out m $small --epochs 9
"$qkv" train classify --train rows.tsv --out again $small --epochs 9 >out 2>err & pid=$!
while [ ! -e again/checkpoints/last ] && kill -0 $pid 2>/dev/null; do :; done
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
wants 0 "" "$qkv" train classify --train rows.tsv --out again $small --epochs 9
cmp -s m/model.safetensors again/model.safetensors || fail "killed while going on, it ends elsewhere"
wants 2 "finished, after" "$qkv" train classify --train rows.tsv --out m $small --minutes 0.0001
wants 0 "validation" "$qkv" train classify --train rows.tsv --out m $small --epochs 6 --overwrite
[ "$(cksum <m/model.safetensors)" = "$sum" ] || fail "the same run gave another model"

# A signal saves and stops; going on ends with the same bits as never stopping.
long="$small --steps 1500 --set save_every=500"
wants 0 "validation" "$qkv" train classify --train rows.tsv --out whole $long
got=0
"$qkv" train classify --train rows.tsv --out parts $long 2>err & pid=$!
while [ ! -s parts/log.jsonl ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -TERM $pid 2>/dev/null || true
wait $pid || got=$?
[ "$got" -eq 143 ] || [ "$got" -eq 0 ] || fail "SIGTERM gave $got, wanted 143"
wants 0 "" "$qkv" train classify --train rows.tsv --out parts $long
cmp -s whole/model.safetensors parts/model.safetensors || fail "stopped and resumed is not the same"

# What the folder holds for people; the same lines are not logged twice.
grep -q 'core-minutes' m/README.md && grep -q 'qkv classify m' m/README.md || fail "the model card"
for words in '>m</text>' '>loss, nats</text>' '>right, % of examples</text>' '>best: step [0-9]*, [0-9.]* % right<' '>step</text>'; do
    grep -q "$words" m/loss.svg || fail "loss.svg lacks $words"
done
ls m/events.out.tfevents.* >/dev/null || fail "event file"
[ -z "$(grep -o '"kind":"[a-z]*","step":[0-9]*' parts/log.jsonl | sort | uniq -d)" ] || fail "a line is logged twice"

# Ways to train: rehearsed minutes, a rate to use, one batch, a start from another model, rows that stand in both sets.
wants 0 "validation" "$qkv" train classify --train rows.tsv --out timed $small --minutes 0.01
"$qkv" train classify --train rows.tsv $small --find-lr -q >out 2>err || fail "find-lr"
grep -q 'use --lr' out || fail "find-lr says no rate"
wants 0 "use it" "$qkv" train classify --train rows.tsv --out one $small --overfit true --steps 30
cut -f2 rows.tsv >lines.txt
wants 0 "validation" "$qkv" train mlm --train lines.txt --out guess $small --steps 20 --set whole_word=true --tokenizer wordpiece --set head_bias=true
wants 0 "new: head" "$qkv" train classify --train rows.tsv --out tuned --init guess --threads 1 --batch-tokens 128 --steps 20 \
    --layer-decay 0.8 --unfreeze 1 --class-weights balanced --r-drop 1 --ema 0.9
grep -q "not used of it" err || fail "what was not used is not said"
wants 0 "validation rows are in the training data too" "$qkv" train classify --train rows.tsv --valid rows.tsv --out both $small --steps 2
wants 0 "validation" "$qkv" train lm --train lines.txt --out apart $small --steps 5 --set documents=apart
printf 'good\t%s\nbad\tdull\n' "$(seq -s ' ' 200)" >long.tsv
cat rows.tsv >>long.tsv
for how in cut split skip; do
    wants 0 "1 over 16 tokens" "$qkv" train classify --train long.tsv --valid rows.tsv --out "long-$how" $small --steps 2 --set too_long=$how
done
wants 2 "cannot be split" "$qkv" train translate --train rows.tsv --out x --set too_long=split

# A model of another program is fine-tuned as such are: by AdamW, gently, the head faster; the model's own dropout stays,
# and what is given is not chosen.
cp -r "$here/golden/foreign/bert" theirs && chmod -R u+w theirs && cut -f 2 rows.tsv | tr -d '0-9' >plain.txt
wants 0 "use it" "$qkv" train mlm --train plain.txt --out words --threads 1 --tokenizer word --set vocab_size=23 --set d_model=16 --set layers=1 \
    --set heads=2 --set max_len=16 --steps 1
cp words/tokenizer.json theirs
wants 0 "3 passes, adamw, rate 0.0024, 20 times that for the head" "$qkv" train classify --train rows.tsv --out from --init theirs --threads 1
grep -q '"dropout": *0.1,' from/config.json || fail "dropout of another program's model: $(cat from/config.json)"
wants 0 "use it" "$qkv" train classify --train rows.tsv --out from2 --init theirs --threads 1 --epochs 2 --optimizer muon
grep -q 'for the head' err && fail "rates of AdamW for another optimizer"

# Numbers that run away: exit code 4, advice, the rows on file, the last good checkpoint as it was.
wants 4 "the last good checkpoint is untouched" "$qkv" train classify --train rows.tsv --out wild $small --lr 1000 --weight-decay 100 \
    --warmup 0 --outlier 0 --steps 50 --set save_every=50
ls wild/incidents/step-*.json >/dev/null || fail "no incident was recorded"
grep -q '"rows"' wild/incidents/step-*.json || fail "an incident without rows"

wants 1 "the machine has" "$qkv" train classify --train rows.tsv --out huge --set d_model=16384 --set layers=200 --threads 1

# Ctrl-C saves too.
got=0
"$qkv" train classify --train rows.tsv --out stopped $small --steps 100000 --set save_every=100000 2>err & pid=$!
while [ ! -s stopped/log.jsonl ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -INT $pid
wait $pid || got=$?
[ "$got" -eq 130 ] || fail "SIGINT gave $got, wanted 130"
# … and what it leaves can be used.
grep -q "go on     by the same command" err && grep -q "no validation yet" err || fail "what a stop says"
[ "$(printf 'the film was fine\n' | "$qkv" classify stopped | cut -f1)" = good ] || fail "a stopped run's model"
"$qkv" train classify --train rows.tsv --out stopped2 $small --steps 1000000 --set save_every=20 --average 3 2>err & pid=$!
while ! grep -q '"kind":"valid"' stopped2/log.jsonl 2>/dev/null && kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -INT $pid
wait $pid || true
grep -q "best .*its weights are in place" err || fail "what a stop says after a validation"
[ "$(printf 'the film was fine\n' | "$qkv" classify stopped2 | cut -f1)" = good ] || fail "a stopped run's best model"

# What makes no sense is said, with the code of its kind.
wants 2 "train what" "$qkv" train
wants 2 "did you mean classify" "$qkv" train clasify --train rows.tsv --out x
wants 2 "needs a folder" "$qkv" train classify --train rows.tsv
wants 2 "needs data" "$qkv" train classify --out x
wants 2 "d_modle" "$qkv" train classify --train rows.tsv --out x --set d_modle=8
wants 1 "nowhere.tsv" "$qkv" train classify --train nowhere.tsv --out x
printf 'good\tfine\nbad dull\n' >broken.tsv
wants 3 "line 2: no TAB" "$qkv" train classify --train broken.tsv --out x
printf 'ugly\tthe film\n' >other.tsv
wants 3 'no label of the data ("ugly", …) occurs in the training data' "$qkv" eval m --data other.tsv
wants 2 "needs data" "$qkv" eval m
wants 1 "nowhere" "$qkv" classify nowhere
head -c 1000 m/model.safetensors >cut && cp -r m damaged && mv cut damaged/model.safetensors
wants 3 "model.safetensors" "$qkv" classify damaged
echo "train commands: ok"
