#!/bin/sh
# Standard streams that fail or are closed, limits of the system: an exit code that says it, and no file hurt.
#   check_streams.sh BUILD_FOLDER
. "$(dirname "$0")/scratch.sh"

i=0
while [ $i -lt 60 ]; do
    printf 'good\ta fine film number %d\nbad\ta dull film number %d\n' $i $i
    i=$((i + 1))
done >rows.tsv
"$qkv" train classify --train rows.tsv --out m --steps 6 --set save_every=3 2>err || fail train
"$qkv" train lm --train rows.tsv --out lm --steps 2 --tokenizer char --set d_model=16 --set layers=1 2>err || fail "train lm"

# What cannot be read is no end of the text: exit 1 and a sentence.
unread() {
    code=0
    "$qkv" "$@" </ >out 2>err || code=$?
    [ "$code" -eq 1 ] && grep -q '^qkv: .*Is a directory' err || { cat err; fail "a folder as stdin: exit $code: $*"; }
}
unread classify m
unread embed m
unread generate lm --tokens 2 --seed 1
unread tokenizer encode m
code=0
"$qkv" classify m <&- >out 2>err || code=$?
[ "$code" -eq 1 ] && grep -q 'cannot read' err || fail "closed stdin: exit $code"

# What cannot be written likewise.
code=0
echo "a fine film" | "$qkv" classify m >&- 2>err || code=$?
[ "$code" -eq 1 ] && grep -q 'cannot write' err || fail "closed stdout: exit $code"
if [ -c /dev/full ]; then
    code=0
    echo "a fine film" | "$qkv" classify m >/dev/full 2>err || code=$?
    [ "$code" -eq 1 ] && grep -q 'cannot write' err || fail "full disk: exit $code"
fi
# A message with no place to go lands in no file.
cp -r m kept
"$qkv" train classify --train rows.tsv --out m2 --steps 6 --set save_every=3 2>&- >&- <&- || fail "train without streams"
"$qkv" classify m2 "a fine film" >out || fail "a folder made without streams"
for part in model.safetensors config.json tokenizer.json; do cmp -s m/$part m2/$part || fail "$part differs without streams"; done

# A file over the limit of the system ends with a sentence, and leaves what was there.
code=0
(ulimit -f 8; "$qkv" train classify --train rows.tsv --out m3 --steps 6 --set save_every=3 2>err) || code=$?
[ "$code" -eq 1 ] && grep -q 'cannot write\|no space\|File too large' err || { cat err; fail "file size limit: exit $code"; }
# Data without end, or without a writer.
wants 1 'a device, which may never end' "$qkv" train classify --train /dev/zero --out m4
mkfifo empty
wants 1 'no program writes to' "$qkv" train classify --train empty --out m4
[ ! -e m4 ] || fail "a refused start left a folder"
"$qkv" train classify --train /dev/stdin --out m4 --steps 2 <rows.tsv 2>err || fail "train from /dev/stdin"
cat rows.tsv >empty &
"$qkv" train classify --train empty --out m5 --steps 2 2>err || fail "train from a pipe"

# A mapped file that is cut short while it is in use: a sentence and exit 3; read into memory, an answer as before.
"$qkv" train classify --train rows.tsv --out big --steps 2 --set arch=transformer --set d_model=64 --set layers=8 2>err || fail "train big"
[ "$(wc -c <big/model.safetensors)" -gt 1048576 ] || fail "big is small"
want=$(echo "a fine film" | "$qkv" classify big)
cut_short() { # OPTIONS…: cuts the weights once the first line is answered
    cp big/model.safetensors whole
    mkfifo lines
    : >out
    (code=0; "$qkv" classify big "$@" <lines >out 2>err || code=$?; echo "$code" >code) &
    exec 3>lines
    echo "a fine film" >&3
    while [ "$(wc -l <out)" -lt 1 ]; do sleep 0.02; done
    : >big/model.safetensors
    echo "a fine film" >&3
    exec 3>&-
    wait $!
    cp whole big/model.safetensors
    rm lines
}
cut_short
[ "$(cat code)" -eq 3 ] && grep -q 'cut short' err || fail "a file cut short: exit $(cat code)"
cut_short --no-mmap
[ "$(cat code)" -eq 0 ] && [ "$(tail -n 1 out)" = "$want" ] || fail "--no-mmap: exit $(cat code)"

echo passed
