#!/bin/sh
# Every architecture serves every task: trained for a step, evaluated, used. check_every_arch.sh BUILD
. "$(dirname "$0")/scratch.sh"

awk 'BEGIN {
    for (i = 0; i < 40; i++) {
        word = i % 2 ? "fine" : "dull"
        print (i % 2 ? "good" : "bad") "\tthe film was " word " " i >"classify"
        print "{\"label\":[" (i % 2 ? "\"good\"" : "") (i % 3 ? "" : (i % 2 ? "," : "") "\"third\"") "],\"text\":\"a " word " film " i "\"}" >"several"
        print i % 2 * 4 "\tthe film was " word " " i >"rate"
        print "ein zwei " i "\tone two " i >"translate"
        print "the film was " word " " i >"lm"
        print "the\tD\nfilm\tN\nwas\tV\n" word "\tA\n" >"tag"
    }
}'
cp lm mlm
tiny="--threads 1 --set d_model=16 --set heads=2 --set layers=1 --set max_len=16 --batch-tokens 256 --steps 1 --quiet"

# the data, the task, what uses the model on a line
while read -r data task use; do
    for arch in transformer lstm gru; do
        m=$data-$arch
        "$qkv" train "$task" --train "$data" --out "$m" --arch $arch $tiny 2>err || fail "train $task --arch $arch"
        grep -q "\"arch\": \"$arch\"" "$m/config.json" || fail "$task: not a $arch"
        "$qkv" eval "$m" --data "$data" --json >out 2>err || fail "eval $task --arch $arch"
        grep -q '"loss":[0-9]' out || fail "$task --arch $arch: $(cat out)"
        echo "the film was fine" | "$qkv" $use "$m" >out 2>err || fail "$use, a $arch"
        [ -s out ] || fail "$use, a $arch: no answer"
    done
done <<'END'
classify classify classify --all
several classify classify --all
rate rate rate
tag tag tag
translate translate translate --beam 2
lm lm generate --tokens 3 --prompt film
mlm mlm embed
END

# What has read hands on what it knows, widths included.
for arch in lstm gru; do
    "$qkv" train classify --train classify --out "from-$arch" --init "mlm-$arch" --ngrams 0 --threads 1 --steps 1 2>err >/dev/null ||
        fail "from mlm, a $arch"
    grep -q 'start     \([0-9]*\) of' err || fail "from mlm, a $arch"
    fresh=$(sed -n 's/.*; new: //p' err)
    [ "$fresh" = "head.classes.weight, head.classes.bias" ] || fail "from mlm, a $arch: new are $fresh"
done
echo ok
