#!/usr/bin/env bash
# Builds a preset (release unless another is named) into build/<preset>; the program is build/<preset>/unshuffle.
# Targets may follow the preset; without them everything is built.
set -euo pipefail
cd "$(dirname "$0")/.."

preset="${1:-release}"
./scripts/install-dependencies.sh
cmake --preset "$preset"
cmake --build --preset "$preset" ${2:+--target "${@:2}"}
