#!/usr/bin/env bash
# Runs every libFuzzer target N times (default 10 million) and keeps what was run in docs/results/fuzz.csv.
# Usage: scripts/fuzz.sh [N] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-10000000}
shift || true
targets=("${@:-csv}")
if [ $# -eq 0 ]; then targets=(csv npy fcs gating_ml mot json checkpoint pickle measurements); fi
command -v clang++ > /dev/null || { echo "clang is needed: apt-get install clang" >&2; exit 1; }
cmake --preset fuzz > /dev/null
for target in "${targets[@]}"; do cmake --build --preset fuzz --target "fuzz_$target"; done
corpus=build/fuzz/corpus
python3 fuzz/make_corpus.py "$corpus"
kept=docs/results/fuzz.csv
[ -f "$kept" ] || echo "target,runs,crashes,coverage,version" > "$kept"
version=$(sed -n 's/^project(unshuffle VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
for target in "${targets[@]}"; do
  dictionary=()
  if [ -f "fuzz/$target.dict" ]; then dictionary=("-dict=fuzz/$target.dict"); fi
  log=build/fuzz/$target.log
  crashes=0
  "build/fuzz/fuzz_$target" -runs="$runs" -max_len=4096 -artifact_prefix=build/fuzz/ "${dictionary[@]}" \
    "$corpus/$target" 2> "$log" || crashes=1
  done_runs=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log")
  coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d' ' -f2)
  echo "$target,${done_runs:-0},$crashes,${coverage:-},$version" | tee -a "$kept"
done
