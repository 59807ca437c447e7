#!/bin/sh
# --explain as a person and a script see it: in a pipe, on a terminal, as JSON and as a page.
#   check_explain.sh BUILD_FOLDER
. "$(dirname "$0")/scratch.sh"
watch=$(dirname "$qkv")/watch_terminal

i=0
while [ $i -lt 60 ]; do
    printf 'good\tthe film was fine %d\nbad\tthe film was dull %d\nodd\tthe film was strange %d\n' $i $i $i
    i=$((i + 1))
done >rows.tsv
i=0
while [ $i -lt 40 ]; do
    printf 'Anna\tB-PER\nsaw\tO\nNew\tB-LOC\nYork\tI-LOC\n\nthe\tO\nfilm\tO\nin\tO\nParis\tB-LOC\n\n'
    i=$((i + 1))
done >names.conll
size="--threads 1 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16 --batch-tokens 128 --lr 0.01"
"$qkv" train classify --train rows.tsv --out c --arch gru $size --epochs 4 -q 2>err || fail train
"$qkv" train tag --train names.conll --out t $size --epochs 8 -q 2>err || fail "train tag"
works() { "$qkv" "$@" >out 2>err </dev/null || fail "$*"; }

# ---- in a pipe: no escape, no line wider than 80, the word that decides first ----
works classify c --explain "the film was strange 中文字 👍 and a very long sentence it is that goes on and on"
grep -q "$(printf '\033')" out && fail "colours in a pipe"
[ "$(sed 's/[^ -~]/x/g' out | awk '{ if (length > m) m = length } END { print m }')" -le 200 ] || fail "too wide"
works classify c --explain "the film was strange 7"
head -n 1 out | grep -Eq '^odd [01]\.[0-9]{4}, \+[0-9.]+ over (good|bad)$' || { cat out; fail "the answer"; }
sed -n 3p out | grep -q '^  strange ' || { cat out; fail "the word that decides is not the first"; }
grep -q 'strange+++' out || { cat out; fail "signs"; }
printf 'the film was fine 3\n\nthe film was dull 4\n' | "$qkv" classify c --explain >out || fail "lines"
[ "$(grep -c ' over ' out)" -eq 3 ] || { cat out; fail "an answer for each line"; }
NO_COLOR=1 "$qkv" classify c --explain --by occlusion "the film was strange 7" >out || fail occlusion
sed -n 3p out | grep -q '^  strange ' || { cat out; fail "occlusion finds another word"; }

# ---- on a terminal ----
for columns in 40 80 200; do
    "$watch" ${columns}x50 "$qkv" classify c --explain "the film was strange 中文字 👍 and it goes on, and on, and on: averyveryverylongword_averyveryverylongword_averyveryverylongword" >out 2>err || fail watch
    set -- $(tail -n 1 out)
    [ "$3" -le $columns ] && [ "$5" -eq 0 ] || { cat out; fail "a line is too wide for $columns"; }
done

# ---- JSON: an object a line; weights and rest sum to the lead ----
printf 'the film was fine 3\n"dull"\\ \033\n' | "$qkv" classify c --explain --json >out || fail json
[ "$(wc -l <out)" -eq 2 ] || fail "not an object a line"
sums() {
    tr '{' '\n' <"$1" | awk '
        { if (match($0, /"lead":[-0-9.e+]+/)) lead = substr($0, RSTART + 7, RLENGTH - 7)
          if (!ngrams && match($0, /"weight":[-0-9.e+]+/)) sum += substr($0, RSTART + 9, RLENGTH - 9)
          if (match($0, /"rest":[-0-9.e+]+/)) { sum += substr($0, RSTART + 7, RLENGTH - 7); ngrams = 1 } }
        END { d = lead - sum; exit !(lead != 0 && d < 1e-5 && d > -1e-5) }'
}
head -n 1 out >one
sums one || { cat one; fail "weights and rest do not sum to the lead"; }
grep -Eq '^\{"label":"good","probability":[0-9.]+,"against":"(odd|bad)","lead":[0-9.]+,"words":\[\{"text":"the","begin":0,"end":3,"weight":' one || { cat one; fail "the form"; }
sed -n 2p out | grep -q '\\u001b' || fail "control characters"
"$qkv" classify c --explain --json "the film was fine 3" --threads 2 >two && cmp -s one two || fail "another answer as an argument or by two threads"

# ---- a page ----
works classify c --explain -o why.html "the film was fine" "</script><b>odd"
[ ! -s out ] || fail "something beside the page"
grep -q '^<!doctype html>' why.html && ! grep -q 'http' why.html && ! grep -q '<b>odd' why.html || fail "the page"
[ "$(grep -c '</script>' why.html)" -eq 1 ] || fail "a text closed the script"
wants 2 'cannot write ".svg" files, only .html' "$qkv" classify c --explain -o why.svg "a film"
wants 2 '--explain' "$qkv" classify c -o why.html "a film"
wants 2 'it takes no --top' "$qkv" classify c --explain --top 2 "a film"
wants 2 '--explain' "$qkv" classify c --by occlusion "a film"

# ---- a number ----
sed 's/^good/9/; s/^bad/2/; s/^odd/5/' rows.tsv >numbers.tsv
"$qkv" train rate --train numbers.tsv --out n $size --epochs 4 -q 2>err || fail "train rate"
works rate n --explain "the film was fine 3"
head -n 1 out | grep -Eq '^[0-9.]+$' && sed -n 3p out | grep -q '^  fine  *+' || { cat out; fail "rate --explain"; }
works rate n --explain --json "the film was dull 3"
grep -Eq '^\{"number":[0-9.]+,"lead":[0-9.]+,"words":\[' out && sums out || { cat out; fail "rate --explain --json"; }

# ---- a tagger: each word's label ----
echo 'Anna saw New York' | "$qkv" tag t --explain >out || fail "tag --explain"
[ "$(grep -c ' over ' out)" -eq 4 ] && grep -Eq '^York: [A-Z-]+ ' out || { cat out; fail "tag --explain"; }
echo 'Anna saw Paris' | "$qkv" tag t --explain --json >out || fail "tag --explain --json"
grep -Eq '^\{"text":"Anna saw Paris","answers":\[\{"text":"Anna","begin":0,"end":4,"label":"[A-Z-]+",.*\]\}$' out || { cat out; fail "tag --explain --json"; }
printf '\n' | "$qkv" tag t --explain --json >out && [ "$(cat out)" = '{"text":"","answers":[]}' ] || { cat out; fail "an empty line"; }
wants 2 'not to tag words' "$qkv" tag c --explain
wants 2 'not to classify' "$qkv" classify t --explain "a film"
echo 'explain: ok'
