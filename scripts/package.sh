#!/usr/bin/env bash
# Builds build/package/unshuffle_VERSION_ARCH.deb for any machine of this architecture.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/build.sh package
python3 tests/package/hardening.py build/package/unshuffle compiled
(cd build/package && cpack)
