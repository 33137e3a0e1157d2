#!/usr/bin/env bash
# Fails when a function has more than 60 lines or more than 6 parameters. Bindings of Python are free in the number of
# their parameters, which are those of the Python function.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=build/lizard
if [ ! -x "$environment/bin/lizard" ]; then
  /usr/bin/python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet 'lizard==1.24.3'
fi
# Its complexity (-C) is not judged.
count=("$environment/bin/lizard" -l cpp -C 1000000 -L 60)
"${count[@]}" -w -a 6 src apps include bench fuzz tests
"${count[@]}" -w -a 1000000 python
echo "No function has more than 60 lines or 6 parameters."
