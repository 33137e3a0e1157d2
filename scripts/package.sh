#!/usr/bin/env bash
# Builds build/package/unshuffle_VERSION_ARCH.deb for any machine of this architecture.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/build.sh package
(cd build/package && cpack)
