#!/usr/bin/env bash
# Installs what is missing, checks the formatting and the size of functions, builds, runs every test in the release build
# and again under the sanitizers, then those of the Python package, and checks the site.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'echo "Tests: FAILED (see above)." >&2' ERR

export OMP_WAIT_POLICY=passive  # tests run side by side: a thread that waits must not keep a core from another
./scripts/check-format.sh
./scripts/check-functions.sh
for preset in ci asan; do
  ./scripts/build.sh "$preset"
  ctest --preset "$preset" --parallel "$(nproc)"
done
/usr/bin/python3 scripts/check_structs.py build/release  # Debian's Python has libclang
./scripts/test-python.sh
./scripts/site.sh
echo "Tests: PASSED in the release build, under the address and undefined behaviour sanitizers, in Python and of the site."
