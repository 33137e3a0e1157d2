#!/usr/bin/env bash
# Installs what is missing, checks the formatting, builds, runs every test in the release build and again under the sanitizers, then those of
# the Python package.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'echo "Tests: FAILED (see above)." >&2' ERR

export OMP_WAIT_POLICY=passive  # tests run side by side: a thread that waits must not keep a core from another
./scripts/check-format.sh
for preset in ci asan; do
  ./scripts/build.sh "$preset"
  ctest --preset "$preset" --parallel "$(nproc)"
done
./scripts/test-python.sh
echo "Tests: PASSED in the release build, under the address and undefined behaviour sanitizers, and in Python."
