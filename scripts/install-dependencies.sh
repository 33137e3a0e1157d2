#!/usr/bin/env bash
# Installs the Debian packages the build needs, and nothing when all of them are there. --tests: also the second compiler
# and the checkers that test.sh runs. --site: also what makes the site and looks at it. --wheels: also what tries wheels in a
# bare Debian and on an old processor. --all: all of these, optional components (the Siamese model, videos), and packages
# without which some tests are skipped.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config dpkg-dev python3 python3-dev python3-venv
  libeigen3-dev libopenblas-dev liblapack-dev liblapacke-dev libboost-dev libcli11-dev libfmt-dev nlohmann-json3-dev
  libcsv-dev libpugixml-dev zlib1g-dev libzstd-dev
  libgtest-dev libbenchmark-dev
)
if [ "${1:-}" = --tests ] || [ "${1:-}" = --all ]; then
  packages+=(clang clang-format-14 clang-tidy python3-clang-14 libomp-dev)
fi
if [ "${1:-}" = --all ]; then
  packages+=(libtorch-dev libopencv-imgproc-dev libopencv-imgcodecs-dev libopencv-videoio-dev)
  packages+=(python3-torch python3-matplotlib chromium man-db zsh)
  packages+=(libopenmpi-dev openmpi-bin procps)
fi

if [ "${1:-}" = --site ] || [ "${1:-}" = --all ]; then
  packages+=(doxygen chromium)
fi
if [ "${1:-}" = --wheels ] || [ "${1:-}" = --all ]; then
  packages+=(debootstrap qemu-user-static)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo)
fi
echo "Installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
