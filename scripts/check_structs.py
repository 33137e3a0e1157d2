#!/usr/bin/env python3
"""Fails when a struct of a public header has more than 15 fields: it is several things then.

Usage: scripts/check_structs.py BUILD_FOLDER

Reads the umbrella headers by libclang (Debian: python3-clang-14).
"""
import pathlib
import sys

from clang import cindex

root = pathlib.Path(__file__).resolve().parent.parent
umbrellas = ["unshuffle", "cytometry", "tracking", "pixels"]
limit = 15


def parsed(name, build):
    header = root / "include" / "unshuffle" / f"{name}.hpp"
    arguments = ["-x", "c++", "-std=c++20", f"-I{root / 'include'}", f"-I{build / 'include'}", "-I/usr/include/eigen3"]
    unit = cindex.Index.create().parse(str(header), arguments, options=cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES)
    errors = [str(d) for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    if errors:
        raise SystemExit("\n".join(errors))
    return unit


def structs_below(node):
    kinds = cindex.CursorKind
    for child in node.get_children():
        if child.kind in (kinds.NAMESPACE, kinds.STRUCT_DECL, kinds.CLASS_DECL, kinds.CLASS_TEMPLATE):
            if child.kind != kinds.NAMESPACE and child.is_definition():
                yield child
            yield from structs_below(child)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    seen, crowded = 0, set()
    for name in umbrellas:
        for namespace in parsed(name, build).cursor.get_children():
            if namespace.spelling != "unshuffle":
                continue
            for struct in structs_below(namespace):
                fields = sum(c.kind == cindex.CursorKind.FIELD_DECL for c in struct.get_children())
                seen += 1
                if fields > limit:
                    place = pathlib.Path(struct.location.file.name).resolve().relative_to(root)
                    crowded.add(f"{place}:{struct.location.line}: {struct.spelling} has {fields} fields; at most {limit} belong in one")
    if not seen:
        raise SystemExit("no struct was found: the headers were not read")
    print("\n".join(sorted(crowded)) or f"{seen} structs and classes in public headers, none with more than {limit} fields.")
    return bool(crowded)


if __name__ == "__main__":
    sys.exit(main())
