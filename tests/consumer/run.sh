#!/usr/bin/env bash
# Usage: run.sh find_package|pkg_config CMAKE BUILD_FOLDER COMPILER SANITIZERS
# Installs the build into a temporary prefix, builds the consumer against it and runs it.
set -euo pipefail
kind="$1" cmake="$2" build="$3" compiler="$4" sanitizers="$5"
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
flags=()
if [ -n "$sanitizers" ]; then
  flags=("-fsanitize=$sanitizers")
fi

if [ "$kind" = find_package ]; then
  "$cmake" -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="${flags[*]}"
  "$cmake" --build "$work/build"
  "$work/build/consumer"
else
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH="$(dirname "$(find "$work/prefix" -name unshuffle.pc)")"
  # shellcheck disable=SC2046
  "$compiler" -std=c++20 -O1 "${flags[@]}" $(pkg-config --cflags unshuffle) "$here/main.cpp" \
    -o "$work/consumer" $(pkg-config --libs unshuffle)
  "$work/consumer"
fi
