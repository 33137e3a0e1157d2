#!/usr/bin/env bash
# From a clean clone to a fitted regression: installs what is missing, builds, draws a sample, fits it.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'echo "Quick start: FAILED (see above)." >&2' ERR

out=quickstart-output
./scripts/build.sh quickstart
unshuffle=build/quickstart/unshuffle

rm -rf "$out"
"$unshuffle" simulate sensing --n 1000 --dim-z 5 --shuffle 0.5 --snr 100 --mean 1 --seed 0 --out "$out"
echo
"$unshuffle" fit "$out/responses.csv" "$out/features.csv" --response y --hint rows \
  --out "$out/fit.json" --pairs "$out/pairs.csv"
"$unshuffle" predict "$out/fit.json" "$out/test.csv" --out "$out/predictions.csv"
echo "Wrote $out/predictions.csv"
echo
echo "The true coefficients of the sample are in $out/truth.json."
echo "Quick start: SUCCESS. The fit is in $out/fit.json, the row links are in $out/pairs.csv."
