#!/usr/bin/env bash
# Builds build/package/unshuffle_VERSION_ARCH.deb for any machine of this architecture; on x86-64 with a program for any
# processor, which continues as the one for the levels in UNSHUFFLE_LEVELS that the processor reaches.
set -euo pipefail
cd "$(dirname "$0")/.."

levels=${UNSHUFFLE_LEVELS-x86-64-v3 x86-64-v4}
[ "$(uname -m)" = x86_64 ] || levels=
./scripts/build.sh package
python3 tests/package/hardening.py build/package/unshuffle compiled
for level in $levels; do
  ./scripts/build.sh "package-$level"
done
cmake --preset package -DUNSHUFFLE_PACKED_LEVELS="${levels// /;}" > /dev/null
(cd build/package && cpack)
