#!/usr/bin/env python3
"""Writes docs/results/reliability.md: problems certified, attacks, faults injected, inputs fuzzed, load held.

Usage: scripts/reliability.py [--seeds N] [--attacks] [--logs FOLDER]
Runs the torture suite, the attacks and the fault tests of build/release, or with --attacks the attacks alone and puts their
part anew into the page; UNSHUFFLE_ATTACK=nightly draws a hundred times as many inputs. What was fuzzed and how large tables were fitted is read from
docs/results/fuzz.csv (scripts/fuzz.sh), docs/results/checks.csv (scripts/checks.sh) and docs/results/large.md
(scripts/large.py).
"""

import argparse
import csv
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/release"


def torture(seeds):
    rows, solved, offences = 0, 0, 0
    for seed in range(1, seeds + 1):
        said = subprocess.run([BUILD / "torture", "10000", str(seed)], capture_output=True, text=True).stdout
        for problems, converged in re.findall(r"^\| (?:dense|line) \| (\d+) \| (\d+) \|", said, re.M):
            rows += int(problems)
            solved += int(converged)
        offences += int(re.search(r"offences: (\d+)", said).group(1))
    return [f"Random transport problems over {seeds} seeds (`torture 10000 SEED`), both backends, all policies, costs 1e-150 to "
            f"1e150, ten decades of ε: **{rows}**, of which {solved} converged and were certified by the optimality "
            f"conditions, {rows - solved} reported non-convergence with a reason. False claims of convergence, crashes, NaN: "
            f"**{offences}**."]


def faults():
    done = subprocess.run([sys.executable, ROOT / "tests/cli/faults.py", BUILD / "unshuffle"], capture_output=True, text=True)
    said = done.stdout + done.stderr
    lines = ["| fault, or load | outcome |", "|---|---|"]
    for name, outcome in re.findall(r"^test_(\w+) .* \.\.\. (\w+)", said, re.M):
        lines.append(f"| {name.replace('_', ' ')} | {'as expected' if outcome == 'ok' else outcome} |")
    kills = int(re.search(r"(\d+) kills survived", said).group(1))
    lines += ["", f"SIGKILL at random moments of fits, experiments and training, each resumed to the end and then bit-identical to an "
              f"uninterrupted run: **{kills}**."]
    if done.returncode != 0:
        raise SystemExit(said)
    return lines


ATTACKS = {"outputs": "outputs, signals, closed streams, limits", "files": "tables, fits, checkpoints, thread counts",
           "names": "names in pages, paths, terminals, spreadsheets, matrices", "faults": "one system call fails",
           "generated": "generated tables and JSON files"}


def attacked(script, logs):
    """What a script of attacks says, now or in the log of an earlier run."""
    if logs:
        said = (pathlib.Path(logs) / f"{script}.log").read_text()
    else:
        done = subprocess.run([sys.executable, ROOT / f"tests/attack/{script}.py", BUILD / "unshuffle"], capture_output=True,
                              text=True)
        said = done.stdout + done.stderr
    if not re.search(r"^OK\b", said, re.M):
        raise SystemExit(said)
    return said


def attacks(logs=None):
    lines = ["By the scripts of `tests/attack`, on the program as it is released"
             + (", at their nightly size" if os.environ.get("UNSHUFFLE_ATTACK") == "nightly" else "") + ".", "",
             "| attack | tests | passed | skipped | told |", "|---|---|---|---|---|"]
    for script, what in ATTACKS.items():
        said = attacked(script, logs)
        count, skipped = int(re.search(r"^Ran (\d+) test", said, re.M).group(1)), re.search(r"^OK \(skipped=(\d+)\)", said, re.M)
        skipped = int(skipped.group(1)) if skipped else 0
        told = "; ".join(re.findall(r"^(?:tables tried|JSON files tried|faults injected): .+$", said, re.M))
        lines.append(f"| {what} | {count} | {count - skipped} | {skipped} | {told} |")
    return lines


def with_attacks(page, lines):
    """The page with that part anew; it comes before the faults."""
    part = "\n".join(["## Attacks", "", *lines, "", ""])
    if "## Attacks\n" in page:
        return re.sub(r"## Attacks\n.*?(?=## )", lambda _: part, page, flags=re.S)
    return page.replace("## Faults injected\n", part + "## Faults injected\n", 1)


def fuzzed():
    path = ROOT / "docs/results/fuzz.csv"
    lines = ["| parser | inputs | crashes | coverage points |", "|---|---|---|---|"]
    if not path.exists():
        return ["Nothing was recorded yet; run `scripts/fuzz.sh`."]
    total = {}
    for row in csv.DictReader(path.open()):
        runs, crashes, _ = total.get(row["target"], (0, 0, 0))
        total[row["target"]] = (runs + int(row["runs"]), crashes + int(row["crashes"]), row["coverage"])
    return lines + [f"| {target} | {runs} | {crashes} | {coverage} |" for target, (runs, crashes, coverage) in total.items()]


def checked():
    path = ROOT / "docs/results/checks.csv"
    if not path.exists():
        return ["Nothing was recorded yet; run `scripts/checks.sh`."]
    rows = list(csv.DictReader(path.open()))
    return ["| check | ran | found |", "|---|---|---|", *(f"| {r['check']} | {r['ran']} | {r['found']} |" for r in rows)]


def held():
    """The tables of docs/results/large.md, one heading deeper."""
    lines = (ROOT / "docs/results/large.md").read_text().splitlines()
    return [f"#{line}" if line.startswith("## ") else line for line in lines[2:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--attacks", action="store_true")
    parser.add_argument("--logs", help="folder with SCRIPT.log of attacks that ran already")
    options = parser.parse_args()
    page = ROOT / "docs/results/reliability.md"
    if options.attacks:
        page.write_text(with_attacks(page.read_text(), attacks(options.logs)))
        return
    text = ["# Reliability", "", "Written by `scripts/reliability.py`.", "", "## Problems certified", "",
            *torture(options.seeds), "", "## Attacks", "", *attacks(options.logs), "", "## Faults injected", "", *faults(), "", "## Inputs fuzzed", "",
            "By libFuzzer under address and undefined behaviour sanitizers (`scripts/fuzz.sh`); crashes found are fixed and "
            "counted where they happened. Every test run replays the corpus with 20,000 random changes per parser.", "",
            *fuzzed(), "", "## Longer checks", "", "By `scripts/checks.sh`; every test run also uses the address and undefined "
            "behaviour sanitizers.", "", *checked(), "", "## Load held", "", *held(), ""]
    page.write_text("\n".join(text))


if __name__ == "__main__":
    main()
