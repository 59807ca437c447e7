#!/bin/sh
# The layering of docs/ARCHITECTURE.md: each folder includes only itself and what stands below it.
# Also: only kern/ may use SIMD headers, only base/mem.c calls malloc, only cli/ and draw's callers print.
set -eu
cd "$(dirname "$0")/.."
bad=0

may_include() { # folder → the folders it may include (each list is closed: what those may include is in it)
    case "$1" in
    base) echo "" ;;
    kern | tape | store | chat | score | draw | policy) echo "base" ;;
    text) echo "store base" ;;
    ops) echo "tape kern base" ;;
    nn) echo "ops tape kern base" ;;
    model) echo "nn ops tape kern store base" ;;
    data) echo "text store base" ;;
    decode) echo "model nn ops tape kern store base" ;;
    task) echo "policy decode model nn ops tape kern store data text base" ;;
    train) echo "task policy decode model nn ops tape kern store data text base" ;;
    foreign) echo "model nn ops tape kern store data text base" ;;
    folder) echo "foreign task policy decode model nn ops tape kern store data text base" ;;
    use) echo "chat folder foreign task policy decode model nn ops tape kern store data text base" ;;
    report) echo "use chat folder foreign train task policy decode model nn ops tape kern store data text score draw base" ;;
    run) echo "use chat folder foreign train task policy decode model nn ops tape kern store data text draw base" ;;
    api) echo "run report use chat folder foreign draw score train task policy decode model nn ops tape kern store data text base" ;;
    *) echo "unknown folder $1" >&2; exit 1 ;;
    esac
}

for path in src/*/; do
    folder=$(basename "$path")
    allowed=" $folder $(may_include "$folder") "
    for file in $(find "$path" -name '*.[ch]' -o -name '*.def' | sort); do
        for target in $(sed -n 's|^ *# *include "\([a-z0-9_]*\)/[^"]*".*|\1|p' "$file"); do
            case "$allowed" in
            *" $target "*) ;;
            *) echo "$file: includes $target/, but $folder may include only:$allowed"; bad=1 ;;
            esac
        done
    done
done

# Naming a type (`struct qkv_x`, a forward declaration too) is knowing it, as including its header is.
# A name belongs to one folder.
defined=$(find src -name '*.[ch]' | xargs sed -n 's|.*\bstruct \(qkv_[a-z0-9_]*\) {.*|\1|p;F' |
    awk '/^src\//{split($0, part, "/"); folder = part[2]; next} {print $1, folder}' | sort -u)
twice=$(echo "$defined" | awk '{print $1}' | uniq -d)
[ -z "$twice" ] || { echo "types of one name in two folders:" $twice; bad=1; }
for path in src/*/; do
    folder=$(basename "$path")
    allowed=" $folder $(may_include "$folder") "
    for name in $(grep -ohE '\bstruct qkv_[a-z0-9_]+' -r "$path" | sed 's/struct //' | sort -u); do
        owner=$(echo "$defined" | awk -v name="$name" '$1 == name {print $2}')
        case "$allowed" in
        *" ${owner:-$folder} "*) ;;
        *) echo "src/$folder names struct $name of $owner/, but may know only:$allowed"; bad=1 ;;
        esac
    done
done

# A name says one thing: no two files of one name, no two types of one name in the tree.
twice=$(find src cli bench tests fuzz include -name '*.[ch]' | sed 's|.*/||' | sort | uniq -d)
[ -z "$twice" ] || { echo "two files of one name:" $twice; bad=1; }
twice=$(grep -rhoE '^(} qkv_[a-z0-9_]+;|typedef [^(){]* \*?qkv_[a-z0-9_]+;|typedef .*\(\*qkv_[a-z0-9_]+\))' src include bench |
    sed -E 's/.*(\b|\*)(qkv_[a-z0-9_]+)\)?;?$/\2/' | sort | uniq -d)
[ -z "$twice" ] || { echo "two types of one name:" $twice; bad=1; }

# A function of more than 7 parameters wants a struct that says what they are.
many=$(find src cli bench -name '*.[ch]' | sort | xargs awk '
    FNR == 1 { text = "" }
    /^[A-Za-z_].*\(/ && !/^#/ && !/;$/ { text = ""; open = 1 }
    open {
        text = text " " $0
        if ($0 ~ /;[ \t]*$/) open = 0
        else if ($0 ~ /\{[ \t]*$/) {
            open = 0
            depth = commas = 0
            for (i = 1; i <= length(text); i++) {
                c = substr(text, i, 1)
                if (c == "(") depth++
                else if (c == ")") depth--
                else if (c == "," && depth == 1) commas++
            }
            name = text; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
            if (name != "" && commas > 6) print FILENAME ": " name
        }
    }')
[ -z "$many" ] || { echo "functions of more than 7 parameters:"; echo "$many"; bad=1; }

for file in $(find cli -name '*.[ch]' | sort); do
    # The command sees the public header and its own files only.
    # cmd_bench.c alone sees the benchmarks, which are no part of the library.
    if grep -nE '^ *# *include "' "$file" | grep -vE '"(qkv\.h|[a-z_]+\.(h|def))"' |
        if [ "$file" = cli/cmd_bench.c ]; then grep -v '"bench/bench.h"'; else cat; fi | grep .; then
        echo "$file: the command may include only qkv.h"; bad=1
    fi
done

if grep -rnE '\b(malloc|calloc|realloc|free|strdup|aligned_alloc) *\(' src --include='*.[ch]' | grep -vE 'src/base/mem\.[ch]|qkv_|_free *\(|\* |//'; then
    echo "only base/mem.c may call the system's allocator"; bad=1
fi
if grep -rlE 'immintrin|_mm(256|512)?_' src --include='*.[ch]' | grep -v '^src/kern/'; then
    echo "only kern/ may use SIMD intrinsics"; bad=1
fi
if grep -rnE '\b(printf|fputs|puts|perror|exit|abort) *\(' src --include='*.[ch]' | grep -vE 'snprintf|_printf|format\(printf|^[^:]*:[0-9]+: *\*|/\*'; then
    echo "the library never prints, exits or aborts"; bad=1
fi
[ "$bad" -eq 0 ] && echo "layers: ok"
exit "$bad"
