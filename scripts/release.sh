#!/usr/bin/env bash
# Makes and checks everything a release consists of, in build/artefacts: source archive, wheels, .deb, site. What ./scripts/test.sh
# checks is not repeated here. scripts/release.sh [PYTHON]...: the Pythons wheels are made for.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'echo "Release: FAILED (see above)." >&2' ERR

version=$(sed -n 's/^project(unshuffle VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
out=build/artefacts
if [ -n "$(git status --porcelain)" ]; then
  echo "there are changes that are not committed: commit or stash them, a release is made of a commit" >&2
  exit 1
fi
grep -q "^## \[$version\]" CHANGELOG.md || { echo "CHANGELOG.md has no section [$version]" >&2; exit 1; }

rm -rf "$out"
mkdir -p "$out"
git archive --prefix="unshuffle-$version/" --output="$out/unshuffle-$version.tar.gz" HEAD

./scripts/wheels.sh "$@"
cp build/wheels/*.whl "$out/"
if [ "$(id -u)" -eq 0 ]; then
  ./scripts/check-wheels.sh
else
  echo "Not checked: the wheels in a bare system, which needs root (sudo ./scripts/check-wheels.sh)"
fi
./scripts/package.sh
cp build/package/unshuffle_*.deb "$out/"
[ "$(dpkg-deb --field "$out"/unshuffle_*.deb Version)" = "$version" ]
./scripts/site.sh
tar -C build -czf "$out/unshuffle-$version-site.tar.gz" site

(cd "$out" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
echo "Release: $version is in $out."
