#!/usr/bin/env bash
# Builds the release preset, measures, and writes BENCHMARKS.md. --quick: small sizes, to see that everything runs;
# the tables then go to build/benchmarks-quick.md.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  "") quick=(); report=BENCHMARKS.md ;;
  --quick) quick=(--quick); report=build/benchmarks-quick.md ;;
  *) echo "usage: $0 [--quick]" >&2; exit 2 ;;
esac

./scripts/build.sh release
if ! .venv/bin/python -c 'import ot' 2>/dev/null; then
  python3 -m venv .venv
  .venv/bin/pip install --quiet pot numpy scipy
fi

# The Python package, installed as its tests want it.
./scripts/test-python.sh --collect-only --quiet > /dev/null

value() { lscpu | sed -n "s/^$1: *//p" | head -n 1; }
partial="$report.partial"
trap 'rm -f "$partial"' EXIT
{
  echo "# Benchmarks"
  echo
  echo "$(value 'Model name'), $(nproc) threads available, $(value 'L2 cache') L2, $(value 'L3 cache') L3." \
    "Made by \`./scripts/benchmarks.sh\`, which runs"
  echo
  echo "    build/release/bench_hypergradient ${quick[*]:-}"
  echo "    build/release/bench_million_rows ${quick[*]:-}"
  echo "    build/release/bench_table"
  echo "    .venv/bin/python bench/pot_compare.py ${quick[*]:-}"
  echo "    build/venv/bin/python bench/python_overhead.py --check"
  echo "    build/venv/bin/python bench/torch_layer.py --check"
  echo
  build/release/bench_hypergradient "${quick[@]}"
  echo
  build/release/bench_million_rows "${quick[@]}"
  echo
  echo "### Reading CSV, a million rows of six numbers"
  echo
  build/release/bench_table 2> /dev/null | sed 's/^/    /'
  echo
  .venv/bin/python bench/pot_compare.py "${quick[@]}"
  echo
  echo "### A fit from Python against the library's own time"
  echo
  build/venv/bin/python bench/python_overhead.py --check
  echo
  echo "### \`unshuffle.torch.transport_cost\` against autograd through Sinkhorn's iterations"
  echo
  build/venv/bin/python bench/torch_layer.py --check
} | sed 's/ *$//' > "$partial"
mv "$partial" "$report"
echo "wrote $report"
