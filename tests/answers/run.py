"""Every stored problem through the command line, compared with the answers in expected.json.

Usage: run.py PROGRAM [--write]

A problem is fitted by two threads, which print JSON, and by one, which prints the table; both have to give the stored
answer. --write stores what PROGRAM answers instead. Do so only from a commit whose answers are trusted, and name every
answer that changes in CHANGELOG.md.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile

import answers
from problems import all_problems

# Lines below the printed coefficients that belong to the answer; the others say how it was found.
PRINTED = ("Matched share", "Noise sd", "Epsilon", "Objective")

# Other tests run at the same time: a thread that waits should leave them the core.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


class Failure(Exception):
    pass


def write_table(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_tables(problem, folder):
    columns = ("response_row", "feature_row", "weight")
    tables = {"responses": problem.responses, "features": problem.features, "new": problem.complete_rows()}
    for name in ("known", "prior"):
        tables[name] = [dict(zip(columns, pair)) for pair in getattr(problem, name)]
    for name, rows in tables.items():
        if rows:
            write_table(os.path.join(folder, f"{name}.csv"), rows)


def arguments_of(problem):
    arguments = ["responses.csv", *(["features.csv"] if problem.features else []), "--response", problem.response]
    for name, value in problem.options.items():
        arguments += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    for name in ("known", "prior"):
        arguments += [f"--{name}", f"{name}.csv"] if getattr(problem, name) else []
    return arguments


def run(program, folder, *arguments):
    """What the program prints. It may end with 1, by which it says that an answer is not to be relied on."""
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=900)
    if done.returncode not in (0, 1):
        raise Failure(f"{arguments[0]} ended with exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def printed_answer(table):
    _, _, coefficients, facts = table.split("-" * 78 + "\n")
    return coefficients.splitlines() + [line for line in facts.splitlines() if line.startswith(PRINTED)]


def read_pairs(path):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [[convert(cell) if cell else None for convert, cell in zip((int, int, float), row)] for row in rows]


def predictions(program, folder, fit):
    intervals = [] if None in fit["std_errors"].values() else ["--intervals"]
    rows = csv.DictReader(run(program, folder, "predict", "fit.json", "new.csv", *intervals).splitlines())
    return [{name: float(cell) for name, cell in row.items()} for row in rows]


def answer(program, problem):
    with tempfile.TemporaryDirectory() as folder:
        write_tables(problem, folder)
        fit = ("fit", *arguments_of(problem))
        by_two = json.loads(run(program, folder, *fit, "--threads", "2", "--json"))
        pairs = ["--pairs", "pairs.csv"] if problem.pairs else []
        table = run(program, folder, *fit, "--threads", "1", "--out", "fit.json", *pairs)
        with open(os.path.join(folder, "fit.json")) as file:
            by_one = json.load(file)
        got = {"tables": answers.of_tables(problem), "fit": answers.of_fit(by_two),
               "fit by one thread": answers.of_fit(by_one), "printed": printed_answer(table)}
        if problem.pairs:
            got["pairs"] = answers.of_pairs(read_pairs(os.path.join(folder, "pairs.csv")))
        if problem.predict:
            got["predictions"] = predictions(program, folder, by_one)
        return got


def complaints(program, problem, stored):
    """One line for everything that is not as stored."""
    if problem.name not in stored:
        return ["has no stored answer"]
    expected = stored[problem.name]
    try:
        got = answer(program, problem)
    except (Failure, subprocess.TimeoutExpired) as failure:
        return [str(failure)]
    found = answers.differences({**expected, "fit by one thread": expected["fit"]}, got)
    return [f"{field}: expected {wanted!r}, got {given!r}" for field, wanted, given in found]


def compare(program):
    stored, failed = answers.stored(), 0
    for problem in all_problems():
        found = complaints(program, problem, stored)
        stored.pop(problem.name, None)
        failed += bool(found)
        print(f"{problem.name}: {'differs' if found else 'as stored'}", flush=True)
        for line in found:
            print(f"  {problem.name}: {line}", flush=True)
    for name in stored:
        print(f"{name}: is stored, but no longer among the problems")
    failed += len(stored)
    print(f"{len(all_problems()) + len(stored) - failed} passed, {failed} failed")
    return failed == 0


def write(program):
    made = {}
    for problem in all_problems():
        made[problem.name] = got = answer(program, problem)
        if found := answers.differences(got["fit"], got.pop("fit by one thread")):
            raise Failure(f"{problem.name}: two threads and one do not agree: {found}")
        print(f"{problem.name}: stored", flush=True)
    with open(answers.EXPECTED, "w") as file:
        json.dump(made, file, indent=1)
        file.write("\n")


def main(program, writing):
    if writing:
        write(program)
    elif not compare(program):
        sys.exit(1)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--write"]):
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]), writing=len(sys.argv) > 2)
