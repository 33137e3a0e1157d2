"""Whether a program or module has the hardening of packages. Usage: hardening.py FILE [compiled]

Always: a position of its own in memory, and relocations that are read-only once they are done. With `compiled`, what
UNSHUFFLE_HARDEN changes in the code: guards on the stack, checked calls, marked places to jump to (x86).
"""

import subprocess
import sys


def read(*options):
    return subprocess.run(["readelf", *options, sys.argv[1]], check=True, capture_output=True, text=True).stdout


def main():
    missing = []

    def require(holds, what):
        if not holds:
            missing.append(what)

    header, dynamic, segments, symbols = read("-h"), read("-d"), read("-lW"), read("-W", "--dyn-syms")
    require("DYN (" in header, "position independent (PIE)")
    require("GNU_RELRO" in segments, "read-only relocations (RELRO)")
    require("BIND_NOW" in dynamic or "NOW" in dynamic.split("FLAGS_1")[-1], "relocated at the start (full RELRO)")
    stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
    require("RWE" not in stack, "a stack that is not executed")
    if "compiled" in sys.argv[2:]:
        require("__stack_chk_fail" in symbols, "guards on the stack (-fstack-protector-strong)")
        require("_chk@" in symbols, "checked calls (_FORTIFY_SOURCE)")
        if "X86-64" in header:
            with open(sys.argv[1], "rb") as file:
                marks = file.read().count(b"\xf3\x0f\x1e\xfa")  # endbr64
            require(marks > 1000, f"marked places to jump to (-fcf-protection; {marks} found)")
    if missing:
        raise SystemExit(f"{sys.argv[1]} lacks: {', '.join(missing)}")


main()
