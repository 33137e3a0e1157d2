#!/usr/bin/env bash
# Builds docs/ as a static site in build/site; broken links are errors. The Python reference wants the package, which
# scripts/test-python.sh builds; the C++ reference is made from the headers by doxygen.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install-dependencies.sh --site
[ -x build/venv/bin/python ] || ./scripts/test-python.sh --build-only
environment=build/site-venv
[ -x "$environment/bin/python" ] || /usr/bin/python3 -m venv "$environment"
"$environment/bin/pip" install --quiet 'mkdocs-material>=9.5' 'mkdocstrings[python]>=0.27' latex2mathml black

# The sources with the stub of the compiled part.
reference=build/python-reference
rm -rf "$reference"
mkdir -p "$reference"
cp -r python/unshuffle "$reference/"
stub=$(cd build && venv/bin/python -c 'import pathlib, unshuffle._core as core; print(pathlib.Path(core.__file__).parent / "_core.pyi")')
cp "$stub" "$reference/unshuffle/"
# Lists of parameters as Markdown has them; the options of the methods are on a page of their own.
sed -i -E 's/^    ([a-z_]+(, [a-z_]+)*) : /\n    - `\1`: /; s/^    \{options\}$/    See [options](..\/options.md)./' \
  "$reference/unshuffle/regressor.py"

NO_MKDOCS_2_WARNING=1 "$environment/bin/mkdocs" build --quiet
python3 tests/documents/site.py build/site
echo "The site is build/site/index.html"
