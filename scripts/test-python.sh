#!/usr/bin/env bash
# Builds the Python package in a virtual environment under build/ and runs its tests and the examples. What optional
# packages would add (torch, pandas, ...) is skipped and named at the end when they are not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=build/venv
if [ ! -x "$environment/bin/python" ]; then
  # Sees Debian's packages, torch among them.
  /usr/bin/python3 -m venv --system-site-packages "$environment"
fi
"$environment/bin/pip" install --quiet 'scikit-build-core>=0.10' 'nanobind>=2.4' scikit-learn pytest pandas tqdm matplotlib

# The compiler by the name the release preset knows it by, so that ccache has the library already.
CXX=c++ CMAKE_CXX_COMPILER_LAUNCHER=ccache "$environment/bin/pip" install --quiet --no-build-isolation --no-deps .
"$environment/bin/python" -m pytest "$@"
