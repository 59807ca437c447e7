#!/bin/sh
# Data as people have it, through the command: columns, packed files, standard input, folders; what was understood is said in
# 80 columns; what is refused leaves nothing behind. check_data_in.sh BUILD
built=$(cd "$1" && pwd)
. "$(dirname "$0")/scratch.sh"
export LC_ALL=C.UTF-8

small="--threads 1 --steps 2 --batch-tokens 512 --set d_model=16 --set layers=1 --set heads=2 --set max_len=16"
# train WORDS OUT ARGS…: stderr has the words
train() { words=$1 out=$2; shift 2; wants 0 "$words" "$qkv" train classify "$@" --out "$out" $small; }
# refused CODE WORDS ARGS…: the same for what is refused; no folder x is left, nor one above it
refused() {
    code=$1 words=$2; shift 2
    wants "$code" "$words" "$qkv" train "$@" --out x/y/z --threads 1
    [ ! -e x ] || fail "$* left $(find x)"
}
narrow() { sed -n '/^read /,/^data /p' err | sed '$d' | wc -L >width; [ "$(cat width)" -le 80 ] || fail "wider than 80 columns"; }

awk 'BEGIN {
    print "ID;Review Text;Verdict" >"names.csv"
    for (i = 0; i < 40; i++) {
        w = i % 2 ? "dull" : "fine"; l = i % 2 ? "bad" : "good"
        printf "%d;\"the film; it was %s, %d\";%s\n", i, w, i, l >"names.csv"
        printf "%s\tthe film; it was %s, %d\n", l, w, i >"rows.tsv"
        printf "the film it was %s %d\t%s\n", w, i, l >"swapped.tsv"
    }
}'

# ---- what was understood ----
train '^classes   2: bad 20, good 20$' plain --train rows.tsv
grep -q '^read      rows.tsv: TSV$' err && grep -q '^          no names in the first row; label: column 1; text: the rest$' err ||
    fail "how it was read"
grep -q '^rows      40; 0 without text left out, 0 double$' err || fail "rows"
grep -q '^first     good: "the film; it was fine, 0"$' err || fail "a sample"
narrow
train 'not used: "ID"' named --train names.csv --text "Review Text" --label verdict
grep -q '^read      names.csv: CSV with ";"$' err || fail "the form"
grep -q '^          named in the first row; label: "Verdict" (column 3); text: "Review$' err || fail "the columns"
narrow
cmp -s plain/model.safetensors named/model.safetensors || fail "the same rows gave another model"
grep -q '"text": "Review Text"' named/run.json && grep -q '"label": "verdict"' named/run.json || fail "columns in run.json"
grep -q "set 'text=Review Text'" named/README.md || fail "columns in the model card"
wants 0 finished "$qkv" train classify --train names.csv --text "Review Text" --label verdict --out named $small
wants 2 '"text": "Review Text" there, "2" here' "$qkv" train classify --train names.csv --text 2 --label verdict --out named $small
grep -v -e '"text":' -e '"label":' -e '"pair":' plain/run.json >old && mv old plain/run.json # as versions before wrote it
wants 0 finished "$qkv" train classify --train rows.tsv --out plain $small

# what is validated on is described too
printf 'text,label\n"fine, as it was",good\n,good\nfine again,good\n' >held.csv
train 'no row of "bad"' held --train rows.tsv --valid held.csv
grep -q '^valid     held.csv: CSV$' err && grep -q '^          named in the first row; label: "label" (column 2); text: "text"' err &&
    grep -q '^          2; 1 without text left out, 0 double$' err || fail "the validation file: $(cat err)"
narrow

# many classes, long names, wide letters: still 80 columns
awk 'BEGIN { for (i = 0; i < 120; i++) printf "分類の名前はとても長いものであり %d 番目\tテキスト %d はここにあります。とても長い文章なので、途中で切られるはずです。\n", i % 30, i
    for (i = 0; i < 600; i++) printf "Label\tmore %d\n", i; print "label\tless\n label \tleast" }' >wide.tsv
train '^warning   always answering "Label" would be right in 83.1 % of the rows' wide --train wide.tsv
narrow
grep -q '23 more, down to' err && grep -q '^warning   2 classes have fewer than 3 rows' err || fail "classes: $(cat err)"
grep -q '^warning   labels that differ only by blanks or case' err || fail "labels alike"
printf 'a\tx \033[31m red\033]0;title\007\nb\ty\na\tz\n' >escape.tsv
train 'first     a: "x  \[31m red \]0;title "' escape --train escape.tsv

# ---- packed, from standard input, several, a folder ----
gzip -k rows.tsv
head -20 rows.tsv >part1 && tail -20 rows.tsv >part2
"$qkv" train classify --train - --out stdin $small <rows.tsv 2>err || fail "standard input"
grep -q '^read      standard input: TSV' err || fail "standard input is named"
"$qkv" train classify --train - --out stdingz $small <rows.tsv.gz 2>err || fail "packed standard input"
train 'part1 and 1 more: TSV' two --train part1 part2
for m in stdin stdingz two; do cmp -s plain/model.safetensors $m/model.safetensors || fail "$m: another model"; done
mkdir -p reviews/good reviews/bad reviews/unsup
i=0
while read -r label text; do i=$((i + 1)); echo "$text" >reviews/$label/$i.txt; done <rows.tsv
echo 'no verdict' >reviews/unsup/1.txt
train 'left out, as texts without labels: "unsup"' folder --train reviews
grep -q '^read      reviews: one folder per class$' err || fail "a folder"
for data in rows.tsv rows.tsv.gz reviews "part1 part2"; do
    "$qkv" eval plain --data $data --json >out 2>err || fail "eval --data $data"
    grep -q '"examples":40' out || fail "eval --data $data: $(cat out)"
done
"$qkv" eval plain --data - <rows.tsv >out 2>err || fail "eval of standard input"
"$qkv" eval plain --data names.csv --text "Review Text" --label 3 --json >out2 2>err || fail "eval by columns"
"$qkv" eval plain --data rows.tsv --json >out && cmp -s out out2 || fail "eval by columns: $(cat out2)"
wants 2 'no column is named "Revue"; the first row is "ID", "Review Text", "Verdict"' "$qkv" eval plain --data names.csv --text Revue
wants 2 'there is no "foo" for this task' "$qkv" eval plain --data rows.tsv --format foo
tail -n +2 names.csv >body.csv
wants 0 '^          named in the first row; text: "Review Text" (column 2)$' "$qkv" train mlm --train names.csv --text "Review Text" --out mlm $small

# ---- refused, and nothing left ----
refused 3 'the texts look like labels. If label and text changed places: --text 1 --label 2' classify --train swapped.tsv
refused 3 'as many labels as rows' classify --train names.csv --text "Review Text" --label ID
refused 2 'there is no "foo" for this task; choose one of json, jsonl,' classify --train rows.tsv --format foo
printf 'ein Hund\nzwei Hunde, drei Hunde\n' >prose.de
refused 3 'give two files that answer each other line by line' translate --train prose.de
refused 2 'can be read only once' classify --train - --valid -
refused 1 'the machine has' classify --train rows.tsv --preset gpt3-like
refused 2 'not a multiple of heads' classify --train rows.tsv --preset tiny --set heads=3
refused 2 'structural positions need the trees' classify --train rows.tsv --position structural
printf 'good\tfine\n' | iconv -f UTF-8 -t UTF-16 >utf16.tsv
refused 3 'iconv -f UTF-16 -t UTF-8' classify --train utf16.tsv
sum=$(cat plain/* 2>/dev/null | cksum)
wants 1 'the machine has' "$qkv" train classify --train rows.tsv --out plain --overwrite --preset gpt3-like
[ "$(cat plain/* 2>/dev/null | cksum)" = "$sum" ] || fail "a start that was refused overwrote a model"

# Texts in the place of labels are told at once: 120,000 of them, in little memory.
awk 'BEGIN { for (i = 0; i < 120000; i++) printf "a sentence of some words, number %d\t%s\n", i, i % 2 ? "bad" : "good" }' >large.tsv
grep -sqE '^QKV_(SANITIZE|TSAN):BOOL=ON' "$built/CMakeCache.txt" && memory=unlimited || memory=4000000 # shadow memory is large
(ulimit -v $memory; timeout 20 "$qkv" train classify --train large.tsv --out x --threads 1 >out 2>err) && fail "was trained"
grep -q 'the texts look like labels' err || fail "120,000 sentences"
echo "data in: ok"
