#!/usr/bin/env bash
# Fails when clang warns of something in the library or the program, or clang-tidy finds something (.clang-tidy). Reads
# every room as one unit, so that headers are read once per room. A unit that is as it was when nothing was found is
# not read again: build/clang/tidy holds the digests of those, of the preprocessed text with its comments.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install-dependencies.sh --tests
cmake --preset clang > /dev/null
exec python3 scripts/check_tidy.py build/clang
