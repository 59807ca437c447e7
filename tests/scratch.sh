# What the scripts that try the command begin with: . "$(dirname "$0")/scratch.sh", with the build's folder as $1.
# Sets $qkv, and goes into an empty folder that is removed at the end.
set -eu
qkv=$(cd "$1" && pwd)/qkv
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() { echo "FAILED: $*"; cat err 2>/dev/null; exit 1; }

# wants CODE WORDS COMMAND…: the exit code is exact, and stderr has the words
wants() {
    code=$1 words=$2; shift 2
    got=0; "$@" >out 2>err </dev/null || got=$?
    [ "$got" -eq "$code" ] || fail "$* gave $got, wanted $code"
    grep -q -e "$words" err || fail "$*: stderr lacks \"$words\""
}
