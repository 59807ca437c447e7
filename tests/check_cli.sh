#!/bin/sh
# The command: what is said, where, and with which exit code. check_cli.sh BUILD
set -u
qkv=$1/qkv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# expect CODE STDOUT STDERR ARGS…: runs qkv; "*" stands for anything, texts are shell patterns.
expect() {
    code=$1 out=$2 err=$3
    shift 3
    "$qkv" "$@" > "$work/out" 2> "$work/err" < /dev/null
    got=$?
    # shellcheck disable=SC2254
    case "$(cat "$work/out")" in $out) ;; *) got=stdout ;; esac
    # shellcheck disable=SC2254
    case "$(cat "$work/err")" in $err) ;; *) got=stderr ;; esac
    [ "$got" = "$code" ] && return
    echo "qkv $*: expected exit $code, stdout '$out', stderr '$err'; failed in $got:"
    head -3 "$work/out" "$work/err"
    bad=1
}

expect 0 'qkv [0-9]*.[0-9]*.[0-9]*' '' --version
expect 0 'qkv: *Examples*Commands*doctor*' '' --help
expect 0 'qkv: *Commands*' '' help
expect 2 '' 'qkv: *Commands*'
expect 2 '' 'qkv: there is no "qkv bnch"; did you mean "qkv bench"?' bnch
expect 2 '' 'qkv: there is no "qkv xyzzy"; "qkv --help" lists what there is' xyzzy
expect 2 '' 'qkv: there is no option --wrong before a command*' --wrong
expect 0 'qkv bench: *Examples*Usage: qkv bench*--threads N*--help*' '' bench --help
expect 0 'qkv bench: *' '' help bench
expect 0 'qkv tokenizer encode: *' '' help tokenizer encode
expect 0 '*memory *' '' bench
expect 2 '' 'qkv: there is no option --jsn; did you mean --json?*see: qkv bench --help' bench --jsn
expect 2 '' 'qkv: --threads must lie between 1 and 256, not 0*' bench memory --threads 0
expect 2 '' 'qkv: --threads takes a whole number, not "two"*' bench memory --threads=two
expect 2 '' 'qkv: --threads needs a value*' bench memory --threads
expect 2 '' 'qkv: --json takes no value*' bench memory --json=yes
expect 2 '' 'qkv: --precision is one of f32|bf16, not "f16"*' bench memory --precision f16
expect 2 '' 'qkv: there is no option -z*' bench -z
expect 2 '' 'qkv: qkv bench does not know what to do with "b"*' bench a b
expect 2 '' 'qkv: bench: there is no benchmark "memry"; did you mean "memory"?' bench memry
expect 2 '' 'qkv: bench memory: takes no "second"; did you mean "seconds"?' bench memory --set second=1
expect 0 '{"read_gb_per_s":*}' '' bench memory --json --seconds .01 -t1
expect 2 '' 'qkv: qkv completion needs an argument*' completion
expect 2 '' 'qkv: completion is there for bash, zsh and fish, not for "tcsh"' completion tcsh
expect 0 '*complete * -F _qkv qkv' '' completion bash
expect 0 '#compdef qkv*' '' completion zsh
expect 0 '*complete -c qkv *' '' completion fish
expect 0 '*.svg*' '' describe --help

# A full disk is noticed although the text went into a buffer.
if [ -c /dev/full ]; then
    "$qkv" --help > /dev/full 2> "$work/err"
    [ $? -eq 1 ] && grep -q 'cannot write the output' "$work/err" || { echo "/dev/full was not noticed"; bad=1; }
fi
# No colour where there is no terminal.
if "$qkv" --help | grep -q "$(printf '\033')"; then echo "colour in a pipe"; bad=1; fi

# Completion does complete.
if command -v bash >/dev/null 2>&1; then
    done=$(PATH="$1:$PATH" bash -c 'eval "$(qkv completion bash)"
        try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _qkv; echo "${COMPREPLY[@]}"; }
        try qkv doc; try qkv bench --thr; try qkv bench --precision b; try qkv tokenizer enc')
    [ "$done" = "doctor
--threads
bf16
encode" ] || { echo "bash completion gives: $done"; bad=1; }
fi

# Every command has a page with its options.
"$qkv" --man-pages "$work" || bad=1
grep -q '\\-\\-threads' "$work/qkv-bench.1" || { echo "qkv-bench.1 lacks --threads"; bad=1; }
[ "$(find "$work" -name 'qkv*.1' | wc -l)" -gt 5 ] || { echo "manual pages are missing"; bad=1; }
expect 1 '' '*cannot write*' --man-pages "$work/nowhere"

[ "$bad" -eq 0 ] && echo "cli: ok"
exit "$bad"
