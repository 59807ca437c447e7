#!/bin/sh
# The examples as a reader would run them, on data made here; in the release build also an installed copy, found through
# pkg-config and CMake. check_examples.sh BUILD
set -eu
build=$1
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
OMP_NUM_THREADS=1; export OMP_NUM_THREADS
fail() { echo "examples: $*"; exit 1; }

"$build/examples/train" "$folder/reviews" > "$folder/train.txt" || fail "train"
grep -q 'step 60 of 60' "$folder/train.txt" || fail "train did not tell of its steps"
printf 'a lovely film\na dull film\n' > "$folder/lines"
answers=$("$build/examples/classify" "$folder/reviews" < "$folder/lines" | cut -f1 | tr '\n' ' ')
[ "$answers" = 'good bad ' ] || fail "classify says: $answers"

i=0
while [ $i -lt 60 ]; do
    i=$((i + 1)); echo "one two three	1 2 3" >> "$folder/pairs.tsv"; echo "three two	3 2" >> "$folder/pairs.tsv"
done
tiny="--threads 1 --set d_model=32 --set layers=1 --set heads=2 --set vocab_size=300 --set dropout=0 --set optimizer=adamw --set position=learned --overwrite"
"$build/qkv" train translate --train "$folder/pairs.tsv" --out "$folder/numbers" --steps 60 --lr 0.01 $tiny > "$folder/log" 2>&1 ||
    { cat "$folder/log"; fail "training a translator"; }
"$build/examples/translate" "$folder/numbers" 'three two' | head -1 | grep -q '^3 2	' || fail "translate"
cut -f1 "$folder/pairs.tsv" > "$folder/text"
"$build/qkv" train lm --train "$folder/text" --out "$folder/writer" --steps 5 $tiny > "$folder/log" 2>&1 ||
    { cat "$folder/log"; fail "training a language model"; }
"$build/examples/generate" "$folder/writer" 'one' | grep -q '^one' || fail "generate"
"$build/examples/layers" | grep -q '16 of 16 right' || fail "layers did not learn"

case "$build" in *sanitize* | *tsan*) echo "examples: ok"; exit 0 ;; esac # what follows loads the library into other programs
if command -v python3 > /dev/null; then
    answers=$(python3 "$root/examples/classify.py" "$build/libqkv.so" "$folder/reviews" < "$folder/lines" | cut -f1 | tr '\n' ' ')
    [ "$answers" = 'good bad ' ] || fail "classify.py says: $answers"
else
    echo "left out: no python3"
fi

cmake --install "$build" --prefix "$folder/usr" > "$folder/log" 2>&1 || { cat "$folder/log"; fail "make install"; }
pc=$(dirname "$(find "$folder/usr" -name qkv.pc)")
cc=$(command -v cc || command -v gcc || command -v clang)
flags=$(PKG_CONFIG_PATH="$pc" pkg-config --cflags --libs qkv)
"$cc" -o "$folder/classify" "$root/examples/classify.c" $flags -Wl,-rpath,"${pc%/pkgconfig}" || fail "pkg-config"
"$folder/classify" "$folder/reviews" < "$folder/lines" | grep -q '^good' || fail "an installed library classifies"
mkdir "$folder/project"
cat > "$folder/project/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(qkv 0.1 REQUIRED)
add_executable(classify $root/examples/classify.c)
target_link_libraries(classify qkv::qkv)
EOF
cmake -S "$folder/project" -B "$folder/project/build" -DCMAKE_PREFIX_PATH="$folder/usr" > "$folder/log" 2>&1 &&
    cmake --build "$folder/project/build" >> "$folder/log" 2>&1 || { cat "$folder/log"; fail "find_package"; }
"$folder/project/build/classify" "$folder/reviews" < "$folder/lines" | grep -q '^good' || fail "find_package's program"
[ "$(find "$folder/usr" -name 'libqkv.so.0' | wc -l)" -eq 1 ] || fail "no libqkv.so.0"
for page in qkv qkv-classify qkv-attention qkv-embed qkv-import; do
    [ -n "$(find "$folder/usr" -name "$page.1*")" ] || fail "no man page $page"
done
echo "examples: ok"
