#!/usr/bin/env bash
# scripts/check-wheels.sh [SUITE]: installs the wheel of build/wheels for Debian's Python into a bare Debian, without
# compilers and without the packages that it was built with, and fits there, also on emulated old processors: the program on the
# oldest x86-64 one, Python on the oldest one that NumPy supports. Needs root for chroot.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:-bookworm}
root=build/bare-$suite
[ "$(id -u)" -eq 0 ] || { echo "chroot needs root: run scripts/check-wheels.sh as root" >&2; exit 1; }
./scripts/install-dependencies.sh --wheels

if [ ! -e "$root/ready" ]; then
  rm -rf "$root"
  debootstrap --variant=minbase --include=python3-minimal,python3-venv "$suite" "$root" > "build/bare-$suite.log"
  touch "$root/ready"
fi
# Wheels come from outside: the bare system needs no network.
rm -rf "$root/wheels" "$root/environment"
mkdir -p "$root/wheels"
tag=$(chroot "$root" /usr/bin/python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
wheel=$(ls build/wheels/unshuffle-*-"$tag"-*.whl)
cp "$wheel" "$root/wheels/"
python3 -m pip download --quiet --only-binary :all: --python-version "${tag#cp}" --dest "$root/wheels" "$wheel"
cp tests/package/wheel.py "$root/"

mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"  # programs find their libraries by it
trap 'umount "$root/proc"' EXIT
inside() { chroot "$root" /usr/bin/env -i HOME=/ PATH=/usr/bin:/bin "$@"; }
inside /usr/bin/python3 -m venv /environment
SECONDS=0
inside /environment/bin/pip install --quiet --no-index --find-links /wheels unshuffle
echo "installed in $SECONDS s without a compiler"
if inside sh -c 'command -v cc c++ gcc'; then echo "the system has a compiler and shows nothing" >&2; exit 1; fi

inside /environment/bin/python /wheel.py
echo "the same with the build for any processor:"
inside UNSHUFFLE_LEVEL=x86-64 /environment/bin/python /wheel.py
cp "$(command -v qemu-x86_64-static)" "$root/emulator"
echo "the same on an emulated Nehalem of 2008:"
inside EMULATED=1 /emulator -cpu Nehalem /environment/bin/python /wheel.py
program=$(inside sh -c 'echo /environment/lib/python3*/site-packages/unshuffle/bin/unshuffle')
for processor in qemu64 core2duo; do
  echo "the program on an emulated $processor:"
  inside /emulator -cpu "$processor" "$program" simulate sensing --n 200 --dim-z 2 --shuffle 0.5 --snr 100 --mean 1 --out /sample
  inside /emulator -cpu "$processor" "$program" fit /sample/responses.csv /sample/features.csv --response y --hint rows
done
echo "Wheels: PASSED in a bare $suite and on emulated old processors."
