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
# Its program: by the build for this processor, by the one for any, and on an old processor.
./scripts/install-dependencies.sh --wheels
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
dpkg-deb --extract "$out"/unshuffle_*.deb "$unpacked"
program="$unpacked/usr/bin/unshuffle"
"$program" simulate sensing --n 200 --dim-z 2 --shuffle 0.5 --snr 100 --mean 1 --out "$unpacked/sample" > /dev/null
for start in "" "env UNSHUFFLE_LEVEL=x86-64" "qemu-x86_64-static -cpu core2duo"; do
  # shellcheck disable=SC2086
  $start "$program" fit "$unpacked/sample/responses.csv" "$unpacked/sample/features.csv" --response y --hint rows > /dev/null
done
./scripts/site.sh
tar -C build -czf "$out/unshuffle-$version-site.tar.gz" site

(cd "$out" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)
echo "Release: $version is in $out."
