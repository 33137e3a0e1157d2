#!/usr/bin/env python3
"""Measures how work grows with its size and writes docs/results/load.md.

Usage: scripts/load.py [--only NAME,...] [--scale S] [--seconds LIMIT] [--program PATH] [--print]
Every case is run at n and at 2n; what counts is processor time, which other work on the machine does not change, and the
exponent k of n^k between the two. S multiplies all sizes. A run that takes longer than LIMIT seconds of processor time
is ended and said to be.
"""

import argparse
import math
import os
import pathlib
import random
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def write(path, header, rows):
    with open(path, "w") as file:
        file.write(",".join(header) + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)


def linear(draw, n, outputs=1):
    """y = 2 + z1 + z2/2 and noise, as rows of responses and of features."""
    z = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(n)]
    y = [tuple(round(2 + a + (0.5 + 0.1 * k) * b + draw.gauss(0, 0.1), 6) for k in range(outputs)) for a, b in z]
    return y, [(round(a, 6), round(b, 6)) for a, b in z]


def tables(folder, draw, n, group_of=None, outputs=1):
    """Features in another order than responses; returns the feature row of every response."""
    y, z = linear(draw, n, outputs)
    order = list(range(n))
    draw.shuffle(order)
    names = [f"y{k}" for k in range(outputs)]
    key = (lambda i: (group_of(i),)) if group_of else (lambda i: ())
    write(folder / "y.csv", names + ["g"] * bool(group_of), ((*y[i], *key(i)) for i in range(n)))
    write(folder / "z.csv", ["z1", "z2"] + ["g"] * bool(group_of), ((*z[i], *key(i)) for i in order))
    place = [0] * n
    for row, i in enumerate(order):
        place[i] = row
    return place


FIT = ("fit", "y.csv", "z.csv", "--quiet", "--out", "fit.json")


def groups_of_ten(folder, draw, n):
    tables(folder, draw, n, lambda i: i // 10)
    return *FIT, "--response", "y0", "--z", "z1,z2", "--group", "g"


def one_large_group(folder, draw, n):
    tables(folder, draw, n, lambda i: 0 if i < n // 2 else i)
    return *FIT, "--response", "y0", "--z", "z1,z2", "--group", "g"


def known(folder, draw, n, share=1.0):
    place = tables(folder, draw, n)
    write(folder / "known.csv", ["response_row", "feature_row"], ((i, place[i]) for i in range(int(share * n))))
    return *FIT, "--response", "y0", "--known", "known.csv"


def half_known(folder, draw, n):
    return known(folder, draw, n, 0.5)


def columns(folder, draw, n):
    names = [f"z{k}" for k in range(n)]
    write(folder / "z.csv", names, ([round(draw.gauss(0, 1), 4) for _ in names] for _ in range(4)))
    write(folder / "y.csv", ["y0"], ((draw.gauss(0, 1),) for _ in range(4)))
    return *FIT, "--response", "y0"  # refused for more parameters than rows, after all of it was read


def responses(folder, draw, n):
    tables(folder, draw, 300, outputs=n)
    return *FIT, "--response", ",".join(f"y{k}" for k in range(n))


def one_line(folder, draw, n):
    with open(folder / "y.csv", "w") as file:
        file.write("y0\n" + "1" * n)
    return "fit", "y.csv", "y.csv", "--response", "y0", "--quiet"


def pairs_and_report(folder, draw, n):
    y, z = linear(draw, n)
    write(folder / "y.csv", ["y0"], y)
    write(folder / "z.csv", ["z1", "z2"], z)
    return *FIT, "--response", "y0", "--hint", "rows", "--pairs", "pairs.csv", "--report", "report.html"


def boxes(folder, draw, n):
    frames, side = 5, math.ceil(math.sqrt(n))
    (folder / "Crowd/det").mkdir(parents=True)
    (folder / "Crowd/seqinfo.ini").write_text(
        f"[Sequence]\nname=Crowd\nframeRate=10\nseqLength={frames}\nimWidth={40 * side}\nimHeight={40 * side}\n")
    with open(folder / "Crowd/det/det.txt", "w") as file:
        for frame in range(1, frames + 1):
            for k in range(n):
                file.write(f"{frame},-1,{40 * (k % side) + 2 * frame},{40 * (k // side)},50,60,1\n")
    return "track", "Crowd", "--out", "tracks", "--quiet"


CASES = {
    "rows in groups of ten": (groups_of_ten, 10_000, "rows"),
    "a large group and single rows": (one_large_group, 20_000, "rows"),
    "known pairs, all rows": (known, 500_000, "pairs"),
    "known pairs, half of the rows": (half_known, 25_000, "rows"),
    "columns of four rows": (columns, 50_000, "columns"),
    "responses of 300 rows": (responses, 8, "responses"),
    "rows with --pairs and --report": (pairs_and_report, 500_000, "rows"),
    "one line": (one_line, 100_000_000, "bytes"),
    "boxes in a frame": (boxes, 3000, "boxes"),
}


REFUSED = (columns, one_line)  # what is measured is how soon


def measured(program, make, n, limit):
    """Processor time and memory of a run, or None when it was ended."""
    with tempfile.TemporaryDirectory() as outer:
        folder = pathlib.Path(outer) / "run"
        folder.mkdir()
        command = make(folder, random.Random(n), n)
        job = subprocess.Popen([program, *command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**os.environ, "OMP_WAIT_POLICY": "passive"},
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)))
        _, status, used = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
    if job.returncode > 1 and make not in REFUSED:
        raise SystemExit(f"{command} ended with {job.returncode}")
    return None if job.returncode < 0 else (used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def row(name, unit, n, small, large):
    cells = [name]
    for size, found in ((n, small), (2 * n, large)):
        cells.append(f"{size:,} {unit}")
        cells.append("ended" if found is None else f"{found[0]:.1f} s, {found[1]:.0f} MB")
    known = small is not None and large is not None
    cells.append(f"{math.log2(max(large[0], 0.01) / max(small[0], 0.01)):.2f}" if known else "")
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/unshuffle")
    parser.add_argument("--print", action="store_true", help="print the table only")
    options = parser.parse_args()
    lines = ["# Load, measured", "", "Written by `scripts/load.py`. Processor time and the largest memory of `fit` with method `auto`, and of",
             "`track`, at n and 2n; the last column is k of n^k between them.", "",
             "| | n | | 2n | | k |", "|---|---|---|---|---|---|"]
    for name, (make, size, unit) in CASES.items():
        if options.only and not any(word in name for word in options.only.split(",")):
            continue
        n = max(2, int(size * options.scale))
        found = [measured(options.program.resolve(), make, each, options.seconds) for each in (n, 2 * n)]
        lines.append(row(name, unit, n, *found))
        print(lines[-1], flush=True)
    if not options.print:
        (ROOT / "docs/results/load.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
