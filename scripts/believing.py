#!/usr/bin/env python3
"""Reruns the figures of docs/believing.md: draws samples, fits them with the program, compares with the truth.

Usage: scripts/believing.py gamma|gaussian|exchange|mixture|coverage [--draws N] [--n ROWS] [--program PATH]

One line per draw and a last line with the counts. Everything is drawn from seeds 0, 1, 2, ... so runs repeat.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent


class Draw:
    """One simulated sample, its fit and how far the fit is from the truth."""

    def __init__(self, program, simulate, fit):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, "simulate", *simulate, "--out", folder, "--quiet"], check=True)
            tables = [f"{folder}/responses.csv", f"{folder}/features.csv"]
            done = subprocess.run([program, "fit", *tables, "--response", "y", "--json", "--quiet", *fit],
                                  capture_output=True, text=True, check=False)
            self.fit = json.loads(done.stdout)
            self.truth = json.loads(pathlib.Path(folder, "truth.json").read_text())
            with open(f"{folder}/test.csv", newline="", encoding="utf-8") as file:
                self.error = self.test_error(list(csv.DictReader(file)))
        self.ratio = self.error / self.truth["oracle_test_error"]
        self.verdict = self.fit["identifiable"]["verdict"]
        self.reason = self.fit["identifiable"]["reason"]
        self.seconds = self.fit["seconds"]

    def test_error(self, rows):
        w = self.fit["coefficients"]
        y = [float(row["y"]) for row in rows]
        mean = statistics.fmean(y)
        squares = sum((self.fit["intercept"] + sum(w[k] * float(row[k]) for k in w) - value) ** 2
                      for row, value in zip(rows, y))
        return squares / sum((value - mean) ** 2 for value in y)

    def covered(self):
        """Whether the 95 % interval holds the truth, coefficient by coefficient."""
        for name, value in self.truth["coefficients"].items():
            error = self.fit["std_errors"][name]
            if error is not None:
                yield abs(self.fit["coefficients"][name] - value) <= 1.959964 * error


def report(draws):
    for seed, draw in enumerate(draws):
        print(f"{seed}: ratio {draw.ratio:.4f}, {draw.seconds:.1f} s, {draw.verdict}: {draw.reason}", flush=True)
        yield draw


def search(arguments, simulate, fit=("--method", "entropic")):
    draws = list(report(Draw(arguments.program, [*simulate, "--seed", str(seed)], fit)
                        for seed in range(arguments.draws)))
    verdicts = {v: sum(d.verdict == v for d in draws) for v in ("identified", "weakly identified", "not identifiable")}
    ratios = [d.ratio for d in draws]
    sure = [d.ratio for d in draws if d.verdict == "identified"]
    hits = [hit for d in draws for hit in d.covered()]
    print(f"{len(draws)} draws: {verdicts}; test error / oracle: median {statistics.median(ratios):.4f}, "
          f"{sum(r <= 1.05 for r in ratios)} at most 1.05; of those identified {sum(r <= 1.05 for r in sure)} of "
          f"{len(sure)}, worst {max(sure, default=float('nan')):.3f}; intervals hold the truth {sum(hits)} of "
          f"{len(hits)} times; exchange named {sum('exchange' in d.reason for d in draws)} times; "
          f"longest {max(d.seconds for d in draws):.1f} s")


def gamma(arguments):
    search(arguments, ["gamma", "--n", str(arguments.n or 50000)])


def gaussian(arguments):
    search(arguments, ["sensing", "--n", str(arguments.n or 1000), "--shuffle", "1"])


def exchange(arguments):
    search(arguments, ["gamma", "--n", str(arguments.n or 5000), "--shape", "1", "--dim-z", "3"])


def mixture(arguments):
    for features, shares in ((5, (0.1, 0.3, 0.5, 0.7)), (20, (0.1, 0.3, 0.5))):
        for share in shares:
            simulate = ["sensing", "--n", str(arguments.n or 1000), "--dim-z", str(features), "--snr", "100",
                        "--mean", "1", "--shuffle", str(share)]
            draws = [Draw(arguments.program, [*simulate, "--seed", str(seed)],
                          ["--method", "mixture", "--hint", "rows"]) for seed in range(arguments.draws)]
            mean = sum(d.error for d in draws) / sum(d.truth["oracle_test_error"] for d in draws)
            print(f"{features} features, {share:.0%} shuffled: mean test error {mean:.4f} × oracle, worst "
                  f"{max(d.ratio for d in draws):.3f} ×", flush=True)


def coverage(arguments):
    """95 % intervals of the mixture, half of the links wrong."""
    simulate = ["sensing", "--n", str(arguments.n or 500), "--snr", "100", "--mean", "1", "--shuffle", "0.5"]
    hits = [hit for seed in range(arguments.draws)
            for hit in Draw(arguments.program, [*simulate, "--seed", str(seed)],
                            ["--method", "mixture", "--hint", "rows"]).covered()]
    print(f"mixture: {sum(hits)} of {len(hits)} intervals hold the truth ({sum(hits) / len(hits):.1%})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    studies = {f.__name__: f for f in (gamma, gaussian, exchange, mixture, coverage)}
    parser.add_argument("study", choices=studies)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--n", type=int, default=0)
    parser.add_argument("--program", default=str(root / "build/release/unshuffle"))
    arguments = parser.parse_args()
    studies[arguments.study](arguments)


if __name__ == "__main__":
    main()
