#!/bin/sh
# A hundred thousand damaged model folders under the address sanitizer, and again without for the memory they take.
set -eu
cd "$(dirname "$0")/.."
QKV_MUTATIONS=${QKV_MUTATIONS:-100000} build/sanitize/test_folder
QKV_MUTATIONS=10000 build/test_folder
