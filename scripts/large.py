#!/usr/bin/env python3
"""Measures fits of tables in pieces and writes docs/results/large.md.

Usage: scripts/large.py [--rows N] [--stream-rows N] [--folder F]
Simulates N rows, fits them on 1, 2 and 4 processes of one thread each, then another table on one process from disk.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/release/unshuffle"


def simulate(folder, rows):
    if not (folder / "truth.json").exists():
        subprocess.run([PROGRAM, "simulate", "sensing", "--n", str(rows), "--shards", str(max(1, rows // 10**6)),
                        "--dim-z", "5", "--shuffle", "0.5", "--snr", "100", "--mean", "1", "--seed", "1",
                        "--out", folder, "--quiet"], check=True)
    return sum(file.stat().st_size for file in folder.glob("*-*.csv"))


def fit(folder, *options, processes=0):
    command = [PROGRAM, "fit", f"{folder}/responses-*.csv", f"{folder}/features-*.csv", "--response", "y", "--hint",
               "rows", "--json", *options]
    if processes > 0:
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(processes), *command, "--threads", "1"]
    begin = time.time()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode > 1:
        raise SystemExit(f"{command} failed")
    return json.loads(done.stdout), time.time() - begin


def row(name, result, wall, first):
    pieces = result["pieces"]
    return (f"| {name} | {wall:.1f} | {result['seconds']:.1f} | {first / result['seconds']:.2f} | {pieces['passes']} | "
            f"{pieces['bytes_per_evaluation'] / 1000:.0f} | {result['peak_memory_mb']:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--stream-rows", type=int, default=10**8)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/var/tmp/unshuffle-large"))
    options = parser.parse_args()
    lines = ["# Tables in pieces, measured", "",
             f"Made by `scripts/large.py --rows {options.rows} --stream-rows {options.stream_rows}` on "
             f"{os.cpu_count()} cores. Sensing design, five features, half of the rows shuffled, `--hint rows`; every",
             "process has one thread except in the last table. Memory is that of the leading process.", ""]
    folder = options.folder / str(options.rows)
    size = simulate(folder, options.rows)
    for method in ("robot", "auto"):
        lines += [f"## {options.rows:.0e} rows ({size / 1e9:.1f} GB of CSV), `--method {method}`", "",
                  "| processes | s total | s without reading | speed-up | passes | kB moved per evaluation | MB |",
                  "|---|---|---|---|---|---|---|"]
        answers = []
        for processes in (1, 2, 4):
            result, wall = fit(folder, "--method", method, "--stream", processes=processes)
            answers.append(result)
            lines.append(row(processes, result, wall, answers[0]["seconds"]))
        apart = max(abs(other["coefficients"][name] - value) for other in answers[1:]
                    for name, value in answers[0]["coefficients"].items())
        lines += ["", f"Largest difference of a coefficient from that of one process: {apart:.1e}.", ""]
    shutil.rmtree(folder)
    folder = options.folder / str(options.stream_rows)
    size = simulate(folder, options.stream_rows)
    lines += [f"## {options.stream_rows:.0e} rows ({size / 1e9:.1f} GB of CSV) on one process, `--stream`", "",
              "| method | s total | s without reading | | passes | kB moved per evaluation | MB |",
              "|---|---|---|---|---|---|---|"]
    for method in ("robot", "auto"):
        result, wall = fit(folder, "--method", method, "--stream", "--scratch", str(options.folder))
        lines.append(row(method, result, wall, result["seconds"]))
        truth = json.loads((folder / "truth.json").read_text())["coefficients"]
        off = max(abs(result["coefficients"][name] - value) for name, value in truth.items())
        lines.append(f"| | largest error of a coefficient {off:.1e} | | | | | |")
    shutil.rmtree(folder)
    (ROOT / "docs/results/large.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
