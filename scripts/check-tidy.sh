#!/usr/bin/env bash
# Fails when clang-tidy finds something in the library or the program. Reads the sources as the clang preset compiles
# them together, so that headers are read once per folder.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install-dependencies.sh --tests
cmake --preset clang > /dev/null
units=$(python3 - <<'PYTHON'
import json
for entry in json.load(open("build/clang/compile_commands.json")):
    if any(f"/build/clang/{folder}/" in entry["file"] for folder in ("src", "apps")):
        print(entry["file"])
PYTHON
)
echo "clang-tidy reads $(wc -w <<< "$units") units."
xargs -n 1 -P "$(nproc)" clang-tidy -p build/clang --quiet --warnings-as-errors='*' <<< "$units" 2> build/clang/tidy.log ||
  { grep error: build/clang/tidy.log || true; exit 1; }
