#!/usr/bin/env bash
# Fails when clang-format would change a C++ file; --fix changes it.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install-dependencies.sh --tests
mode=(--dry-run --Werror)
if [ "${1:-}" = --fix ]; then
  mode=(-i)
fi
git ls-files '*.cpp' '*.hpp' | xargs clang-format-14 "${mode[@]}"
