#!/bin/sh
# Conversations through a pipe: messages are lines, /reset begins anew, templates are what the model is told.
#   check_chat.sh BUILD_FOLDER
golden=$(cd "$(dirname "$0")" && pwd)/golden
. "$(dirname "$0")/scratch.sh"
model=$golden/gguf/llama.gguf
chat() { "$qkv" chat "$model" --template t.jinja --temperature 0 --tokens 4 "$@"; }

# A template that writes nothing but the messages, as the model's few characters allow.
printf '%s' "{% for m in messages %}{{ m.content | trim }}{% endfor %}" >t.jinja
printf 'ab!\nab!\n/reset\nab!\n' | chat >out || fail "a conversation"
[ "$(wc -l <out)" = 3 ] || fail "three messages, three answers: $(cat out)"
[ "$(sed -n 1p out)" = "$(sed -n 3p out)" ] || fail "after /reset the first answer comes again"
printf 'ab!\n' | chat --json >out || fail "JSON"
grep -q '^{"text":".*","prompt_tokens":2,"tokens":[0-9]*,"end":"[a-z]*"}$' out || fail "JSON: $(cat out)"
printf '!\n' | chat --system ab --json >out && grep -q '"prompt_tokens":2' out || fail "the system's message comes first"

# Errors: no template, a template that is none, what a template refuses.
wants 2 'no chat template' "$qkv" chat "$model"
printf '{%% macro x() %%}' >t.jinja
wants 3 'the tag "macro" is not implemented' chat
printf '{{ raise_exception("no") }}' >t.jinja
got=0; printf 'ab\n' | chat 2>err || got=$?
[ "$got" = 2 ] || fail "what a template refuses is the caller's to mend: $got"
grep -q 'says: no' err || fail "a refusal's words"
echo "chat: ok"
