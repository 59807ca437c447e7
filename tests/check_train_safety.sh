#!/bin/sh
# A run that is killed at random moments, and one whose disk fills up, lose nothing: they end with
# the bits of a run never disturbed.
#   check_train_safety.sh BUILD_FOLDER [KILLS [DISK_SIZES [SEED]]]
# The disk is a small tmpfs in a mount namespace of our own; where that is not allowed the part is
# left out, and says so.
. "$(dirname "$0")/scratch.sh"
kills=${2:-5} sizes=${3:-4} seed=${4:-1}

for i in $(seq 60); do
    printf 'good\tthe film was fine %d\nbad\tthe film was dull %d\n' "$i" "$i"
done >rows.tsv
small="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --batch-tokens 64 --lr 0.01
       --steps 300 --set save_every=5 --average 3 --dropout 0.1 --quiet"
# shellcheck disable=SC2086
train() { exec "$qkv" train classify --train rows.tsv --out "$@" $small; } # to be called in a subshell, whose number it keeps
step() { readlink "$1/checkpoints/last" 2>/dev/null | sed 's/step-0*//; s/-.*//'; }

(train whole) 2>err || fail "the run that nobody disturbs"

# ---- kill −9 ----
done_runs=0 killed=0
while [ "$killed" -lt "$kills" ]; do
    before=$(step killed)
    (train killed) 2>err &
    pid=$!
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    sleep "0.$(printf %03d $((seed / 65536 % 600)))"
    if kill -9 $pid 2>/dev/null; then killed=$((killed + 1)); fi
    code=0
    wait $pid 2>/dev/null || code=$?
    [ "$code" -eq 137 ] || [ "$code" -eq 0 ] || fail "exit code $code after a resume"
    ! grep -q skipped err || fail "a checkpoint was damaged"
    after=$(step killed)
    [ "$code" -eq 0 ] || [ "${after:-0}" -ge "${before:-0}" ] || fail "step ${before:-0} was saved, now it is ${after:-0}"
    if [ "$code" -eq 0 ]; then
        cmp -s whole/model.safetensors killed/model.safetensors || fail "other bits after $killed kills"
        rm -rf killed
        done_runs=$((done_runs + 1))
    fi
done
(train killed) 2>err || fail "the last resume"
cmp -s whole/model.safetensors killed/model.safetensors || fail "other bits after $killed kills"
[ ! -e killed/checkpoints ] || fail "a finished run has checkpoints"
grep '"kind":"valid"' killed/log.jsonl | grep -o '"step":[0-9]*' | sort | uniq -d | grep -q . &&
    fail "log.jsonl says a validation twice"
[ "$(grep -c '"kind":"valid"' killed/log.jsonl)" -eq 60 ] || fail "log.jsonl lacks a validation"
echo "kill -9: $killed kills over $((done_runs + 1)) runs, nothing lost"

# ---- the disk is full ----
if ! unshare -m true 2>/dev/null; then
    echo "disk full: left out (no mount namespace may be made here)"
    exit 0
fi
export qkv small sizes dir
unshare -m sh -euc '
    fail() { echo "FAILED: $*"; cat err; exit 1; }
    mkdir -p disk
    mount -t tmpfs -o size=16m tmpfs disk || { echo "disk full: left out (no tmpfs)"; exit 0; }
    need=$(du -sk whole | cut -f1)
    full=0
    for i in $(seq "$sizes"); do
        rm -rf disk/run
        size=$((need * i / (sizes + 1)))
        mount -o remount,size=${size}k disk
        code=0
        "$qkv" train classify --train rows.tsv --out disk/run $small 2>err || code=$?
        if [ $code -ne 0 ]; then
            full=$((full + 1))
            [ $code -eq 1 ] || fail "$size KiB: exit code $code"
            grep -qi "no space" err || fail "$size KiB: the message does not speak of space"
            mount -o remount,size=64m disk
            "$qkv" train classify --train rows.tsv --out disk/run $small 2>err ||
                fail "$size KiB: does not go on with more space"
            ! grep -q skipped err || fail "$size KiB: a checkpoint was damaged"
        fi
        cmp -s whole/model.safetensors disk/run/model.safetensors || fail "$size KiB: other bits"
        [ -z "$(ls -A disk/run | grep -E "tmp|checkpoints")" ] || fail "$size KiB: rubbish is left"
    done
    [ $full -gt 0 ] || fail "the disk was never full"
    echo "disk full: $full of $sizes sizes, nothing lost"
'
