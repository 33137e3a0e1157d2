#!/usr/bin/env python3
"""Runs clang-tidy over the units of library and program in a build folder, as many at a time as there are processors.

Usage: scripts/check_tidy.py BUILD_FOLDER (see check-tidy.sh)
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def units(build):
    folders = tuple(f"{build / name}/" for name in ("src", "apps"))
    return [unit for unit in json.loads((build / "compile_commands.json").read_text()) if unit["file"].startswith(folders)]


def digest(unit, common):
    """Of all that clang-tidy would read: comments count, for NOLINT stands in them."""
    command = shlex.split(unit["command"])
    at = command.index("-o")
    command = [*command[:at], *command[at + 2:], "-E", "-C"]
    text = subprocess.run(command, cwd=unit["directory"], capture_output=True, check=True).stdout
    return hashlib.sha256(common + " ".join(command).encode() + text).hexdigest()


def checked(unit, build, common):
    """Whether the unit was read, and what was found in it."""
    seen = build / "tidy" / digest(unit, common)
    if seen.exists():
        return False, ""
    done = subprocess.run(["clang-tidy", "-p", str(build), "--quiet", "--warnings-as-errors=*", unit["file"]],
                          capture_output=True, text=True)
    if done.returncode == 0:
        seen.touch()
        return True, ""
    return True, done.stdout or done.stderr or f"{unit['file']}: clang-tidy ended with {done.returncode}"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    (build / "tidy").mkdir(exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    found = units(build)
    if not found:
        sys.exit(f"{build}: no unit of the library or the program was found")
    read = 0
    complaints = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for was_read, complaint in pool.map(lambda unit: checked(unit, build, common), found):
            read += was_read
            complaints += [complaint] if complaint else []
    print("\n".join(complaints), end="")
    print(f"clang-tidy: {len(found)} units, {read} read anew, something found in {len(complaints)}.")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
