#!/bin/sh
# The library as others see it: only qkv_ symbols, a header that C++ takes too. check_library.sh BUILD
set -eu
cd "$(dirname "$0")/.."
bad=0
if command -v nm >/dev/null 2>&1; then
    others=$(nm -D --defined-only "$1/libqkv.so" | awk '{print $3}' | grep -v '^qkv_' | grep -v '^_\(init\|fini\|edata\|end\|_bss_start\)$' || true)
    # Sanitizers bring symbols of their own.
    case "$others" in
    '' | *asan* | *ubsan*) ;;
    *) echo "libqkv.so shows more than qkv_ names:"; echo "$others" | head; bad=1 ;;
    esac
    nm -D --defined-only "$1/libqkv.so" | grep -q ' qkv_version$' || { echo "libqkv.so lacks qkv_version"; bad=1; }
fi
cxx=$(command -v c++ || command -v clang++ || true)
if [ -n "$cxx" ]; then
    echo '#include "qkv.h"
    int main() { return qkv_version() == nullptr; }' | "$cxx" -std=c++11 -Wall -Wextra -Werror -Iinclude -x c++ -fsyntax-only - || bad=1
else
    echo "no C++ compiler: the header was not tried with one"
fi
[ "$bad" -eq 0 ] && echo "library: ok"
exit "$bad"
