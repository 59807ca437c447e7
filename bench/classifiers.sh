#!/bin/sh
# The classifiers of docs/RESULTS.md: qkv with its defaults beside fastText (Debian: fasttext) with word bigrams and beside
# a linear SVM on tf-idf (bench/svm.py).
#   SEEDS="1 2 3" WORKS="trec sst2 hotel clinc agnews imdb" WHO="fasttext svm qkv" QKV_DATA=… sh bench/classifiers.sh
# Prints a row for each run: work, program, seed, accuracy, core-minutes (user and system time). scikit-learn is installed
# into build/venv unless QKV_BENCH_PYTHON names an interpreter that has it.
set -eu
cd "$(dirname "$0")/.."
data=${QKV_DATA:-none} seeds=${SEEDS:-1 2 3} works=${WORKS:-trec sst2 hotel clinc agnews imdb}
who=${WHO:-fasttext svm qkv} threads=${THREADS:-2}
out=$PWD/build/bench/classify
mkdir -p "$out"
[ -x "$data/unpack" ] || { echo "bench: set QKV_DATA to the folder of data sets" >&2; exit 1; }

# train.tsv and test.tsv of a work. The hotel reviews have no split of their own: every tenth row is the test.
prepare() {
    [ -f "$out/$1/test.tsv" ] && return
    mkdir -p "$out/$1"
    case $1 in
    hotel)
        "$data/unpack" zh_hotel "$out/raw"
        awk 'NR % 10 != 0' "$out/raw/zh_hotel/hotel.tsv" > "$out/hotel/train.tsv"
        awk 'NR % 10 == 0' "$out/raw/zh_hotel/hotel.tsv" > "$out/hotel/test.tsv"
        ;;
    sst2)
        "$data/unpack" sst2 "$out/raw"
        cp "$out/raw/sst2/train.tsv" "$out/sst2/train.tsv"
        cp "$out/raw/sst2/dev.tsv" "$out/sst2/test.tsv"
        ;;
    clinc)
        "$data/unpack" clinc150 "$out/raw"
        cp "$out/raw/clinc150/train.tsv" "$out/raw/clinc150/test.tsv" "$out/clinc/"
        ;;
    agnews)
        "$data/unpack" agnews "$out/raw"
        cp "$out/raw/agnews/train10k.tsv" "$out/agnews/train.tsv"
        cp "$out/raw/agnews/test.tsv" "$out/agnews/test.tsv"
        ;;
    *)
        "$data/unpack" "$1" "$out/raw"
        cp "$out/raw/$1/train.tsv" "$out/raw/$1/test.tsv" "$out/$1/"
        ;;
    esac
}

# What fastText is given: lower case, punctuation apart; Chinese as single characters; shuffled,
# since it reads in order and some files are sorted by label.
normalise() {
    python3 - "$1" "$2" "$3" <<'P'
import random, re, sys
work, source, target = sys.argv[1:]
with open(source, encoding="utf-8", newline="\n") as file:
    rows = [row for row in file.read().split("\n") if row]
random.Random(1).shuffle(rows)
with open(target, "w", encoding="utf-8") as out:
    for row in rows:
        label, text = row.split("\t", 1)
        words = list(text.replace(" ", "")) if work == "hotel" else re.findall(r"[\w']+|[^\w\s]", text.lower())
        print(f"__label__{label}", *words, file=out)
P
}

# Runs a command and leaves its core-minutes in $minutes.
timed() {
    command time -f "%U %S" -o "$out/time" "$@" > /dev/null
    minutes=$(awk 'END { printf "%.2f", ($1 + $2) / 60 }' "$out/time")
}

python=${QKV_BENCH_PYTHON:-build/venv/bin/python}
case $who in *svm*)
    if [ ! -x "$python" ]; then
        echo "bench: installing scikit-learn into build/venv" >&2
        python3 -m venv build/venv
        build/venv/bin/pip install --quiet scikit-learn
    fi ;;
esac

for work in $works; do
    prepare "$work"
    dir=$out/$work
    for one in $who; do
        case $one in
        fasttext)
            for side in train test; do normalise "$work" "$dir/$side.tsv" "$dir/$side.txt"; done
            epochs=5
            [ "$work" = trec ] && epochs=25
            timed fasttext supervised -input "$dir/train.txt" -output "$dir/fasttext" -wordNgrams 2 -epoch $epochs -lr 0.5 -dim 50 \
                -thread "$threads" -verbose 0
            echo "$work fasttext - $(fasttext test "$dir/fasttext.bin" "$dir/test.txt" | awk '$1 == "P@1" { print $2 }') $minutes" ;;
        svm) echo "$work svm - $("$python" bench/svm.py "$dir/train.tsv" "$dir/test.tsv")" ;;
        qkv)
            for seed in $seeds; do
                timed build/qkv train classify --train "$dir/train.tsv" --out "$dir/model$seed" --overwrite --quiet --seed "$seed" \
                    --threads "$threads"
                accuracy=$(build/qkv eval "$dir/model$seed" --data "$dir/test.tsv" --threads "$threads" --json |
                    grep -o '"accuracy": *[0-9.]*' | grep -o '[0-9.]*$')
                echo "$work qkv $seed $accuracy $minutes"
            done ;;
        esac
    done
done
