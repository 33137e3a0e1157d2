#!/usr/bin/env bash
# Builds the Python package in a virtual environment under build/ and runs its tests, the examples and the notebooks.
# What optional packages would add (torch, pandas, ...) is skipped and named at the end when they are not installed.
# --build-only: without the tests; other arguments are pytest's.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=build/venv
if [ ! -x "$environment/bin/python" ]; then
  # Sees Debian's packages, torch among them.
  /usr/bin/python3 -m venv --system-site-packages "$environment"
fi
"$environment/bin/pip" install --quiet 'scikit-build-core>=0.11' 'nanobind>=2.4' scikit-learn narwhals mypy pytest pandas polars pyarrow tqdm 'matplotlib>=3.8'

# The compiler, its flags and ccache as the presets of the tests have them, so that the library is in the cache
# already; with precompiled headers ccache keeps nothing unless it may overlook their times.
export CXX=c++ CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_SLOPPINESS=pch_defines,time_macros
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
harden=${UNSHUFFLE_HARDEN:-OFF}  # ON compiles the library anew, as users get it
"$environment/bin/pip" install --quiet --no-build-isolation --no-deps --config-settings=cmake.define.UNSHUFFLE_WERROR=ON \
  --config-settings=cmake.define.UNSHUFFLE_HARDEN="$harden" .
if [ "${1:-}" = --build-only ]; then exit 0; fi
module=$(cd build && venv/bin/python -c 'import unshuffle._core; print(unshuffle._core.__file__)')
python3 tests/package/hardening.py "$module" $([ "$harden" = OFF ] || echo compiled)
"$environment/bin/python" -m pytest "$@"
"$environment/bin/python" tests/attack/python.py
