#!/bin/sh
# Runs the fast tests of the three builds. Stops at the first build that fails; the exit code is the verdict.
set -eu
cd "$(dirname "$0")/.."
jobs=$(($(nproc) + 1)) # some tests wait for a terminal more than they work
for build in build/double build/sanitize build; do
    echo "== tests of $build"
    ctest --test-dir "$build" --output-on-failure --no-tests=error -LE long -j "$jobs"
done
