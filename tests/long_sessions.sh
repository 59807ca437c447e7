#!/bin/sh
# Many sessions on many threads under the thread sanitizer: 64 on 8 threads for a minute
# (QKV_TEST_SECONDS changes that).
set -eu
cd "$(dirname "$0")/.."
cmake --preset tsan > /dev/null
cmake --build build/tsan -j "$(nproc)" --target test_sessions
QKV_TEST_SECONDS=${QKV_TEST_SECONDS:-60} TSAN_OPTIONS=halt_on_error=1 build/tsan/test_sessions
