#!/usr/bin/env python3
"""Checks what the shared library exports: only what include/unshuffle declares.

Usage: scripts/check_exports.py LIBRARY

Prints every exported symbol of the project whose name no public header mentions, and fails if there is one.
"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
internal_namespaces = ("detail",)


def exported(library):
    """Qualified names of the project's exported functions, classes and objects."""
    out = subprocess.run(["nm", "--dynamic", "--defined-only", "--demangle", library], capture_output=True, text=True,
                         check=True).stdout
    for line in out.splitlines():
        _, _, symbol = line.split(" ", 2)
        symbol = re.sub(r"^(?:vtable|typeinfo|typeinfo name|VTT|guard variable) for ", "", symbol)
        match = re.match(r"(?:non-virtual thunk to )?(unshuffle::[\w:~]+)", symbol)
        if match:
            yield match[1]


def main():
    declared = "\n".join(path.read_text(encoding="utf-8") for path in (root / "include").rglob("*.hpp"))
    words = set(re.findall(r"\w+", declared))
    names = set(exported(sys.argv[1]))
    if not names:
        raise SystemExit(f"{sys.argv[1]}: exports nothing of the project")
    hidden_in_headers = sorted(name for name in names
                               if not set(re.findall(r"\w+", name)) - set(internal_namespaces) <= words)
    for name in hidden_in_headers:
        print(f"{name}: exported, but no public header declares it")
    print(f"{len(names)} names exported, {len(hidden_in_headers)} of them undeclared")
    return 1 if hidden_in_headers else 0


if __name__ == "__main__":
    sys.exit(main())
