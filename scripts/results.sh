#!/usr/bin/env bash
# Runs every experiment of the paper in full and writes docs/results.md from the measurements, which are kept in
# docs/results/paper; pictures and pages go to build/results. Arguments are passed on to `unshuffle reproduce all`
# (--mot-data FOLDER adds the tracking table, --resume goes on after an interruption). --pages: writes docs/results.md from the kept measurements alone.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/build.sh release unshuffle_app
kept=docs/results/paper
if [ "${1:-}" = --pages ]; then
  build/release/unshuffle reproduce all --quiet --from "$kept" --out build/results
else
  build/release/unshuffle reproduce all --quiet --out build/results "$@"
  mkdir -p "$kept"
  cp build/results/*.csv "$kept"
fi
cp build/results/results.md docs/results.md
echo "wrote docs/results.md; the pictures are in build/results/index.html"
