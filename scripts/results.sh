#!/usr/bin/env bash
# Runs every experiment of the paper in full and writes docs/results/paper.md from the measurements, which are kept in
# docs/results/paper with the figures drawn from them; pages go to build/results too. Arguments are passed on to
# `unshuffle reproduce all` (--mot-data FOLDER adds the tracking table, --resume continues after an interruption).
# --pages: page and figures from the kept measurements alone. Needs matplotlib (scripts/test-python.sh installs it).
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
python=build/venv/bin/python
[ -x "$python" ] || python=python3
"$python" build/results/figures.py
cp build/results/*.svg "$kept"
sed 's|\](\([a-z-]*\.svg\))|](paper/\1)|' build/results/results.md > docs/results/paper.md
echo "wrote docs/results/paper.md and the figures in $kept; build/results/index.html shows them on one page"
