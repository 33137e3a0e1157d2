"""Runs of several processes that differ in ways drawn at random: either all agree, or one of them says in what they do not.

Usage: mpi.py PROGRAM
UNSHUFFLE_ATTACKS sets the number of runs, 40 when it is not set; UNSHUFFLE_SEED draws others.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
RUNS = int(os.environ.get("UNSHUFFLE_ATTACKS", "40"))
SEED = int(os.environ.get("UNSHUFFLE_SEED", "1"))
MPIRUN = shutil.which("mpirun")


def run(command, folder):
    return subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=900)


def lines_of(path):
    with open(path) as file:
        return file.read().split("\n")[:-1]


def put(path, lines, end="\n"):
    with open(path, "w") as file:
        file.write("\n".join(lines) + end)


def change_cell(draw, path):
    lines = lines_of(path)
    at = draw.randrange(1, len(lines))
    cells = lines[at].split(",")
    cells[draw.randrange(len(cells))] = str(draw.uniform(-2, 2))
    put(path, lines[:at] + [",".join(cells)] + lines[at + 1:])


def swap_rows(draw, path):
    lines = lines_of(path)
    a, b = draw.sample(range(1, len(lines)), 2)
    lines[a], lines[b] = lines[b], lines[a]
    put(path, lines)


def drop_rows(draw, path):
    lines = lines_of(path)
    put(path, lines[: -draw.randrange(1, len(lines) // 2)])


def turn_columns(draw, path):
    lines = [line.split(",") for line in lines_of(path)]
    order = list(range(len(lines[0])))
    while order == sorted(order) and len(order) > 1:
        draw.shuffle(order)
    put(path, [",".join(line[k] for k in order) for line in lines])


def touch(draw, path):
    put(path, lines_of(path))


TABLES = (change_cell, swap_rows, drop_rows, turn_columns, touch)
OPTIONS = (["--seed", "5"], ["--robust"], ["--epsilon", "0.02"], ["--no-intercept"], ["--stream"], ["--hint", "none"],
           ["--method", "ls"], ["--model", "spline:3"], ["--pairs", "p.csv"], ["--threads", "1"], ["--quiet"])
HARMLESS = ("--threads", "--quiet")
COMMON = ([], ["--method", "robot"], ["--method", "robot", "--stream"], ["--method", "ls"], ["--bootstrap", "2"])


def attack(draw, folder):
    """The complaint about one run; empty: it went as it should."""
    for name in ("a", "b", "fit.json", "p.csv"):
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
    drawn = run([PROGRAM, "simulate", "sensing", "--n", draw.choice([60, 400, 3000]), "--dim-z", "3", "--mean", 1, "--snr", 50,
                 "--seed", draw.randrange(100), "--out", "a", "--quiet"], folder)
    assert drawn.returncode == 0, drawn.stderr
    shutil.copytree(os.path.join(folder, "a"), os.path.join(folder, "b"))
    common, extra, told = draw.choice(COMMON), [], ""
    if draw.random() < 0.6:
        kind, table = draw.choice(TABLES), draw.choice(["responses.csv", "features.csv"])
        path = os.path.join(folder, "b", table)
        before = open(path).read()
        kind(draw, path)
        told = f"{kind.__name__} of {table}"
        differs = open(path).read() != before
    else:
        extra = draw.choice([option for option in OPTIONS if option[0] not in common])
        told, differs = " ".join(extra), extra[0] not in HARMLESS
    processes = draw.randrange(2, 5)
    fit = [["fit", f"{side}/responses.csv", f"{side}/features.csv", "--response", "y", "--hint", "rows", *common, "--out", "fit.json"]
           for side in "ab"]
    if "--hint" in extra:
        fit = [[word for word in words if word not in ("--hint", "rows")] for words in fit]
    done = run([MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", processes - 1, PROGRAM, *fit[0], ":", "-n", 1, PROGRAM,
                *fit[1], *extra], folder)
    written = os.path.exists(os.path.join(folder, "fit.json"))
    where = f"{told}, {processes} processes, {common}: exit {done.returncode}: {done.stderr.strip()[:400]}"
    if differs and (done.returncode not in (2, 3) or written or f"process {processes} of {processes}" not in done.stderr):
        # An option that makes no sense by itself is refused before anybody is asked.
        return "" if done.returncode == 2 and not written and "unshuffle: error" in done.stderr and extra else where
    if not differs and (done.returncode not in (0, 1) or not written):
        return where
    if written:
        json.load(open(os.path.join(folder, "fit.json")))
    return ""


def main():
    said = subprocess.run([PROGRAM, "info", "--json"], capture_output=True, text=True).stdout
    if MPIRUN is None or "missing" in json.loads(said)["components"]["mpi"]:
        print("mpirun or the component mpi is not here")
        return 77
    complaints = []
    for k in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            complaint = attack(random.Random(1000 * SEED + k), folder)
        if complaint:
            complaints.append(f"{1000 * SEED + k}: {complaint}")
            print(complaints[-1], flush=True)
    print(f"{RUNS} runs of several processes, {len(complaints)} went wrong")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
