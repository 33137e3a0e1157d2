#!/usr/bin/env bash
# Builds docs/ as a static site in build/site; broken links are errors.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=build/site-venv
[ -x "$environment/bin/python" ] || /usr/bin/python3 -m venv "$environment"
"$environment/bin/pip" install --quiet mkdocs latex2mathml
"$environment/bin/mkdocs" build --quiet
echo "The site is build/site/index.html"
