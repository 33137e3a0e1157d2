#!/usr/bin/env bash
# Usage: run.sh find_package|build_tree|pkg_config CMAKE BUILD_FOLDER COMPILER SANITIZERS
# Builds the consumer against the build, installed into a temporary prefix unless build_tree, and runs it.
set -euo pipefail
kind="$1" cmake="$2" build="$3" compiler="$4" sanitizers="$5"
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

[ "$kind" = build_tree ] || "$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
flags=()
if [ -n "$sanitizers" ]; then
  flags=("-fsanitize=$sanitizers")
fi

if [ "$kind" != pkg_config ]; then
  place=(-DCMAKE_PREFIX_PATH="$work/prefix")
  [ "$kind" = find_package ] || place=(-Dunshuffle_DIR="$build")
  "$cmake" -S "$here" -B "$work/build" "${place[@]}" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="${flags[*]}"
  "$cmake" --build "$work/build"
  "$work/build/consumer"
else
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH="$(dirname "$(find "$work/prefix" -name unshuffle.pc)")"
  # shellcheck disable=SC2046
  "$compiler" -O1 "${flags[@]}" $(pkg-config --cflags unshuffle) "$here/main.cpp" \
    -o "$work/consumer" $(pkg-config --libs unshuffle)
  "$work/consumer"
fi
