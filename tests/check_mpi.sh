#!/bin/sh
# Training over several ranks: the same bits run after run, the losses of one rank, stopping and going on, a rank
# that dies. check_mpi.sh BUILD
. "$(dirname "$0")/scratch.sh"
[ ! -x "$qkv-mpi" ] || qkv=$qkv-mpi
if ! command -v mpirun >/dev/null 2>&1 || ! ldd "$qkv" 2>/dev/null | grep -q libmpi; then
    echo "mpi: left out, there is no mpirun or the build has no MPI"
    exit 0
fi
# Open MPI refuses root and more ranks than cores unless told; MPICH knows none of these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1

i=0
while [ $i -lt 100 ]; do
    printf 'good\tthe film number %d was fine and clever\nbad\tthe film number %d was dull\nmixed\tsome of film %d\n' $i $i $i
    i=$((i + 1))
done >rows.tsv
# No dropout: its draws follow the batch.
model="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --lr 0.01 --dropout 0 --attention-dropout 0 --embedding-dropout 0"
set -- $model --batch-tokens 256 --steps 30 --set save_every=10
ranks() { n=$1; shift; mpirun -n "$n" "$qkv" train classify --train rows.tsv "$@" 2>err || fail "$n ranks: $*"; }
# losses FOLDER: those of the log, to compare to four digits
losses() { sed -n 's/.*"kind":"\([a-z]*\)".*"loss":\([-0-9.e]*\).*/\1 \2/p' "$1/log.jsonl"; }
same_losses() {
    losses "$1" >a; losses "$2" >b
    [ "$(wc -l <a)" -gt 10 ] || fail "few losses in $1"
    paste a b | awk '{ d = $2 - $4; if (d < 0) d = -d; if ($1 != $3 || d > 1e-4 * (1 + $2)) { print; bad = 1 } } END { exit bad }' ||
        fail "the losses of $1 and $2 differ"
}

"$qkv" train classify --train rows.tsv --out one "$@" 2>err || fail one rank
ranks 2 --out two "$@"
grep -q 'validation' err || fail "rank 0 says how it goes"
[ "$(grep -c '^data  ' err)" -eq 1 ] || fail "one rank speaks"
ranks 2 --out again "$@"
cmp -s two/model.safetensors again/model.safetensors || fail "two ranks gave other bits the second time"
same_losses one two
ranks 4 --out four "$@"
same_losses one four

# Accumulated batches are dealt out whole.
set -- $model --batch-tokens 64 --steps 20 --set accumulate=4 --set ema=0.9 --set save_every=10
"$qkv" train classify --train rows.tsv --out one-k "$@" 2>err || fail one rank, accumulating
ranks 2 --out two-k "$@"
same_losses one-k two-k
ranks 3 --out three-k "$@"
same_losses one-k three-k

# Matrices that are updated whole.
set -- $model --batch-tokens 256 --steps 20 --set optimizer=muon --set save_every=10
"$qkv" train classify --train rows.tsv --out one-m "$@" 2>err || fail one rank, muon
ranks 2 --out two-m "$@"
same_losses one-m two-m

# A rank that dies ends the run; the checkpoint that was there is whole, and the same command goes on from it.
set -- $model --batch-tokens 256 --steps 400 --set save_every=50
ranks 2 --out whole "$@"
mpirun -n 2 "$qkv" train classify --train rows.tsv --out parts "$@" 2>err & pid=$!
while [ ! -e parts/checkpoints/last ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -9 "$(pgrep -f "^$qkv train classify .* --out parts" | tail -1)" || fail "the run was over before a rank could be killed"
wait $pid && fail "a rank died, and the run says that all went well"
ranks 2 --out parts "$@"
cmp -s whole/model.safetensors parts/model.safetensors || fail "killed and resumed is not the same"

# What one rank refuses, all refuse.
mpirun -n 2 "$qkv" train classify --train nowhere.tsv --out x 2>err && fail "a file that is not there was read"
grep -q 'nowhere.tsv' err || fail "the message names the file"
echo "mpi: ok"
