#!/usr/bin/env python3
"""Checks every #include and every symbol against the order of the rooms.

Usage: scripts/check_rooms.py BUILD_FOLDER

A room may use those before it in src/CMakeLists.txt, cytometry, tracking and pixels what is listed there; nothing else.
Includes are read from the sources, symbols from the object files of a build. Prints what is out of order, one line each.
"""
import collections
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
include = re.compile(r'^#include "(?:unshuffle/)?([a-z_]+)/[a-z_/]+\.hpp"')


def allowed_uses(build):
    """Room → the rooms it may use."""
    lines = (build / "rooms.txt").read_text(encoding="utf-8").splitlines()
    listed = {name: uses.split() for name, uses in (line.split(":") for line in lines)}
    order = listed.pop("order")
    uses = {room: set(order[: place + 1]) for place, room in enumerate(order)}
    for library, others in listed.items():
        uses[library] = {library, *others}
    return uses


def misplaced_includes(uses):
    for folder in (root / "src", root / "include" / "unshuffle"):
        for path in sorted(folder.rglob("*.[ch]pp")):
            room = path.relative_to(folder).parts[0]
            if room not in uses or len(path.relative_to(folder).parts) == 1:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = include.match(line)
                if match and match[1] in uses and match[1] not in uses[room]:
                    yield f"{path.relative_to(root)}:{number}: {room} may not include {match[1]}"


def symbols_of(objects, kinds):
    """Symbols of the project's own namespace in these object files, of these kinds of nm."""
    out = subprocess.run(["nm", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    found = set()
    for line in out.splitlines():
        parts = line.split()
        if len(parts) >= 2 and parts[-2] in kinds and "9unshuffle" in parts[-1]:
            found.add(parts[-1])
    return found


def misplaced_symbols(build, uses):
    defined = collections.defaultdict(set)
    needed = {}
    for room in uses:
        objects = sorted((build / "src" / "CMakeFiles" / f"unshuffle_room_{room}.dir").rglob("*.o"))
        if not objects:
            raise SystemExit(f"{build}: has no object files of {room}; build first")
        for symbol in symbols_of(objects, "TVWBDRuv"):
            defined[symbol].add(room)
        needed[room] = symbols_of(objects, "U")
    for room, symbols in needed.items():
        for symbol in sorted(symbols):
            places = defined.get(symbol, set())
            if places and not places & uses[room]:
                yield f"{room} needs {symbol}, which only {', '.join(sorted(places))} has"


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    build = pathlib.Path(sys.argv[1])
    uses = allowed_uses(build)
    problems = [*misplaced_includes(uses), *misplaced_symbols(build, uses)]
    print("\n".join(problems) if problems else f"{len(uses)} rooms use each other in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
