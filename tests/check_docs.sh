#!/bin/sh
# What docs/ARCHITECTURE.md, CONTRIBUTING.md and README.md name between backticks exists: files and
# folders (from the root, from src/, or by a name that is unique in the tree), functions and types.
# NAME in a path stands for what a reader adds; pre_*.c must fit some file. And ARCHITECTURE has a
# row for each folder of src.
set -eu
cd "$(dirname "$0")/.."
bad=0
files=$(find . \( -path ./build -o -path ./.git \) -prune -o -type f -print | sed 's|^\./||')

exists() { # a path as the pages write it; each * stands for a part of a name
    shape=$(printf '%s' "$1" | sed 's|[.]|[.]|g; s|NAME|[a-z0-9_]+|g; s|[*]|[a-z0-9_]*|g; s|/$|/.*|')
    printf '%s\n' "$files" | grep -qE "^(src/)?$shape\$" && return
    case "$1" in
    */*) return 1 ;;
    *) printf '%s\n' "$files" | grep -qE "/$shape\$" ;;
    esac
}

for page in docs/ARCHITECTURE.md CONTRIBUTING.md README.md; do
    words=$(grep -v '^    ' "$page" | grep -oE '`[^` ]+`' | tr -d '`' | sort -u)
    for word in $words; do
        case "$word" in
        build/* | lib*.a | lib*.so | *=* | [A-Z]*_*.h) continue ;; # what a build makes, settings
        esac
        if printf '%s' "$word" | grep -qE '^[A-Za-z0-9_*./-]+\.(c|h|def|md|sh|py|html|txt)$' ||
            printf '%s' "$word" | grep -qE '^[a-z_.]+(/[a-zA-Z0-9_]+)*/$|^(src|tests|bench|cli|docs|fuzz|examples|include)(/[a-zA-Z0-9_]+)*$'; then
            case "$word" in
            src | tests | bench | cli | docs | fuzz | examples) [ -d "$word" ] ;;
            */* | *.*) exists "$word" || [ -d "$word" ] || [ -d "src/$word" ] ;;
            esac || { echo "$page: there is no $word"; bad=1; }
        elif printf '%s' "$word" | grep -qE '^_?qkv_[a-z0-9_]+$'; then
            grep -rqw "$word" src include bench cli || { echo "$page: there is no $word"; bad=1; }
        fi
    done
done

# In a code block and in prose too: a path of two parts is one that can be opened.
for page in docs/ARCHITECTURE.md CONTRIBUTING.md; do
    for path in $(grep -oE '\b(src|cli|tests|bench|fuzz|docs|include|examples)/[A-Za-z0-9_/]+\.[a-z]+' "$page" | sort -u); do
        exists "$path" || { echo "$page: there is no $path"; bad=1; }
    done
done

for folder in src/*/; do
    folder=${folder%/}
    grep -q "^| \`$folder\` |" docs/ARCHITECTURE.md ||
        { echo "docs/ARCHITECTURE.md: its table of folders has no row for $folder"; bad=1; }
done
for folder in $(sed -n 's/^| `\(src\/[a-z]*\)` |.*/\1/p' docs/ARCHITECTURE.md); do
    [ -d "$folder" ] || { echo "docs/ARCHITECTURE.md: there is no $folder"; bad=1; }
done

[ "$bad" -eq 0 ] && echo "docs: ok"
exit "$bad"
