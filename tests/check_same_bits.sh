#!/bin/sh
# The same commands give the same bits as ever: weights, settings, tokenizers, shortlists, answers;
# and folders of earlier versions open, answer and go on. The rows are in golden/same_bits.txt; how
# a row is read is said there.
#   check_same_bits.sh BUILD_FOLDER       checks
#   check_same_bits.sh --record PROGRAM   rewrites the table from what PROGRAM gives (when bits are meant to change)
#   check_same_bits.sh --print PROGRAM    prints what the table would be, with the instruction set that QKV_ISA or the CPU chooses
# The table holds for the instruction set "plain", which every machine has. Its arithmetic is fixed (no contraction, no
# fast-math), but exp, log, pow, sin and cos of doubles come from libm: recorded with glibc 2.36,
# whose versions for CPUs with FMA are switched off below. With another libm last bits may differ;
# then compare two programs with --print.
golden=$(cd "$(dirname "$0")" && pwd)/golden
table=$golden/same_bits.txt
mode=--check
case $1 in --record | --print) mode=$1 program=$(realpath "$2"); set -- "$(dirname "$2")" ;; esac
few=$(grep -sE '^QKV_(SANITIZE|TSAN):BOOL=ON' "$1/CMakeCache.txt" || true)
. "$(dirname "$0")/scratch.sh"
[ $mode = --check ] || qkv=$program
export LC_ALL=C
if [ $mode != --print ]; then
    export QKV_ISA=plain
    export GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-FMA_Usable,-FMA4_Usable,-AVX2_Usable
fi

# ---- data, from a generator whose numbers are exact in every awk ----
mkdir data
awk '
    function draw(n) { seed = seed * 16807 % 2147483647; return int(seed / 2147483647 * n) }
    function pick(list, word) { return word[draw(split(list, word, " ")) + 1] }
    function remark(   not, text) { # sets good, too
        not = draw(3) == 0
        good = draw(2)
        text = pick("the a this") " " pick("plot film cast score ending camera") " was " (not ? "not " : "")
        return text (good != not ? pick("fine bright warm Splendid lively") : pick("dull weak cold Boring naïve"))
    }
    function review(   text, n) {
        for (n = draw(3); n > 0; n--) text = text remark() " " pick(", ;") " "
        return text remark() " ."
    }
    function tree(text, label, file,   w, n, i) {
        n = split(text, w, " ")
        if (label) printf "# label = %s\n", label >file
        for (i = 1; i <= n; i++) printf "%d\t%s\t_\t_\t_\t_\t%d\t_\t_\t_\n", i, w[i], int(i / 2) >file
        print "" >file
    }
    function pair(   n, k) {
        source = target = ""
        for (n = 2 + draw(5); n > 0; n--) {
            k = draw(12) + 1
            source = source (source ? " " : "") de[k]
            target = en[k] (target ? " " : "") target
        }
    }
    BEGIN {
        seed = 20
        split("null eins zwei drei vier fünf sechs sieben acht neun zehn elf", de, " ")
        split("zero one two three four five six seven eight nine ten eleven", en, " ")
        for (i = 0; i < 160; i++) {
            text = review()
            label = good ? "good" : draw(4) == 0 ? "poor" : "bad"
            if (i < 150) {
                print label "\t" text >"data/reviews.tsv"
                print text >"data/lines.txt"
            } else print text >"data/questions.txt"
            tree(text, i < 150 ? label : "good", "data/reviews.conllu")
            pair()
            if (i < 150) {
                print source >"data/pairs.de"
                print target >"data/pairs.en"
            } else print source >"data/asked.de"
            tree(source, "", "data/pairs.conllu")
        }
    }'

# ---- what a row may call ----
qkv() { "$qkv" "$@" 2>err || fail "$row: qkv $*"; }
train() { "$qkv" train "$@" --quiet 2>err >&2 || fail "$row: qkv train $*"; }
# No timing, no version; and the words that have become better since the table was recorded are put back.
tidy() {
    sed 's/,"[a-z_]*_per_s":[0-9.e+]*//g; s/version:qkv-[0-9.]*//g
         s/,"seed":[0-9]*}$/}/; s/\( 1 layer\) of/\1s of/; s/\(of 1 head\)"/\1s"/'
}
show() { qkv "$@" >out; tidy <out | sed 's/^/> /' >>shown; }
same() { cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "$row: $1 and $2 differ"; }

# The command is stopped as soon as there is a checkpoint, by the signal that cannot be caught, and run again.
interrupted() {
    "$qkv" train "$@" --quiet 2>err & pid=$!
    while [ -z "$(ls -d ./*/checkpoints/last 2>/dev/null)" ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
    kill -KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    train "$@"
}

hash_of() { sha256sum | cut -c1-64; }
later='pairs|segments|ngram_idf|rate_mean|rate_deviation|several|threshold' # keys that config.json did not have when the table was recorded

# What the row's commands left, as the table says it.
results() {
    for m in */model.safetensors; do
        [ -e "$m" ] || continue
        m=${m%/*}
        echo "$m weights $(hash_of <"$m/model.safetensors")"
        echo "$m config $(grep -vE "\"(qkv_version|$later)\"" "$m/config.json" | hash_of)"
        echo "$m tokenizer $(hash_of <"$m/tokenizer.json")"
        [ ! -e "$m/shortlist.safetensors" ] || echo "$m shortlist $(hash_of <"$m/shortlist.safetensors")"
    done
    [ ! -s answers ] || echo "answers $(tidy <answers | hash_of)"
    [ ! -s shown ] || cat shown
}

# ---- the rows ----
awk '/^#/ || NF == 0 { next }
     /^== / { n++; print $2; file = sprintf("row-%02d", n); next }
     /^\$ / { print substr($0, 3) >(file ".do"); next }
     { print >(file ".want") }' "$table" >names
# Sanitizers are slow: every third row, and all that open folders of earlier versions.
[ -z "$few" ] || echo "same bits: a build with sanitizers, not all rows are run"
n=0 run=0 differ=0
: >got.txt
while read -r row; do
    n=$((n + 1))
    number=$(printf %02d $n)
    case $few:$row in :* | *:folder-*) ;; *) [ $((n % 3)) -eq 1 ] || continue ;; esac
    run=$((run + 1))
    : >>row-$number.want
    mkdir "$row"
    (cd "$row" && cp ../data/* . && . "../row-$number.do" >answers </dev/null && results >../row-$number.got) ||
        { tail -20 "$row/answers"; exit 1; } # which has the message of fail
    if [ $mode = --check ] && ! diff row-$number.want row-$number.got >difference; then
        echo "$row: other bits (<: recorded, >: now)"
        cat difference
        differ=$((differ + 1))
    fi
    { echo "== $row"; sed 's/^/$ /' row-$number.do; cat row-$number.got; echo; } >>got.txt
    rm -r "$row"
done <names
{ sed -n '/^== /q; p' "$table"; sed '$d' got.txt; } >new.txt
case $mode in
--record) cp new.txt "$table" ;;
--print) cat new.txt ;;
--check)
    [ $differ -eq 0 ] || fail "$differ of $run rows"
    echo "same bits: ok, $run of $n rows"
    ;;
esac
