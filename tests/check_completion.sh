#!/bin/sh
# Completion in the shells themselves: each is started on a terminal, and keys are pressed. Says which were tried; with
# QKV_ALL_SHELLS set, as CI does, one that is missing is a failure.
#   check_completion.sh BUILD_FOLDER
. "$(dirname "$0")/scratch.sh"
watch=$(dirname "$qkv")/watch_terminal
PATH=$(dirname "$qkv"):$PATH
export PATH HOME="$dir" XDG_CONFIG_HOME="$dir" TERM=xterm PS1='> '
mkdir -p "reviews data/inner"
mkdir -p some-folder/within && : >some-folder/within/rows.tsv

# The words of the commands that a shell shows once it was asked; each line stands as completed.
keys="--type 'qkv desc\t' --type '\c' --type 'qkv train cl\t' --type '\c' --type 'qkv train classify --pres\tllam\t' --type '\c' \
--type 'qkv train classify --norm-k\trm\t' --type '\c' --type 'qkv bench gem\t' --type '\c' --type 'qkv train lm --format fast\t' --type '\c' \
--type 'qkv tokenizer enc\t--no-s\t' --type '\c' --type 'qkv eval some\twith\trow\t' --type '\c' --type 'qkv train lm --train some\twith\trow\t' --type '\c'"
wanted='qkv describe
qkv train classify
qkv train classify --preset llama-like
qkv train classify --norm-kind rms
qkv bench gemm
qkv train lm --format fasttext
qkv tokenizer encode --no-special
qkv eval some-folder/within/rows.tsv
qkv train lm --train some-folder/within/rows.tsv'

# completes SHELL "how it is told" COMMAND…
completes() {
    shell=$1 begin=$2; shift 2
    if ! command -v "$shell" >/dev/null; then
        [ -z "${QKV_ALL_SHELLS:-}" ] || fail "$shell is not installed"
        tried="$tried, $shell is not installed"
        return 0
    fi
    eval "\"$watch\" 200x50 --type '$begin' $keys \"\$@\"" >"$shell.out" 2>err || fail "$shell"
    echo "$wanted" | while read -r line; do
        grep -q -F -e "$line" "$shell.out" || { cat "$shell.out"; fail "$shell does not complete to: $line"; }
    done || exit 1
    tried="$tried, $("$shell" --version | head -n 1)"
}
tried=
printf 'PS1="> "\nautoload -U compinit && compinit -u -D\nsource <(qkv completion zsh)\n' >.zshrc
qkv completion fish >completion.fish || fail "completion fish"
completes bash 'source <(qkv completion bash)\n' bash --norc --noprofile -i
completes zsh '' zsh -d -i
completes fish 'source completion.fish\n' fish --no-config -i
echo "passed: ${tried#, }"
