#!/usr/bin/env python3
"""Reruns the figures of docs/believing.md: draws samples, fits them with the program, compares with the truth.

Usage: scripts/believing.py STUDY [--draws N] [--n ROWS] [--csv FILE] [--workers N] [--program PATH]

One line per draw and a last line with the counts; --csv writes the draws (for reliability, the table) to a file. Everything
is drawn from seeds 0, 1, 2, ... so runs repeat. Several workers draw side by side with one thread each.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def put_into_groups(folder, permutation, size, seed):
    """Adds a key that partners share to both tables, drawn without a look at the values; a group has `size` rows."""
    order = list(range(len(permutation)))
    random.Random(seed).shuffle(order)
    responses, features = read_rows(f"{folder}/responses.csv"), read_rows(f"{folder}/features.csv")
    for place, row in enumerate(order):
        responses[row]["key"] = features[permutation[row]]["key"] = place // size
    write_rows(f"{folder}/responses.csv", responses)
    write_rows(f"{folder}/features.csv", features)


def lose_rows(folder, table, share, seed):
    """Takes a share of the rows of one table away, drawn without a look at the values."""
    rows = read_rows(f"{folder}/{table}.csv")
    kept = random.Random(seed).sample(range(len(rows)), round((1 - share) * len(rows)))
    write_rows(f"{folder}/{table}.csv", [rows[k] for k in sorted(kept)])


class Draw:
    """One simulated sample, its fit and how far the fit is from the truth."""

    def __init__(self, arguments, design, seed):
        threads = 1 if arguments.workers > 1 else 2
        self.seed = seed
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([arguments.program, "simulate", *design.simulate, "--seed", str(seed), "--out", folder, "--quiet"],
                           check=True)
            self.truth = json.loads(pathlib.Path(folder, "truth.json").read_text())
            if design.group_size:
                put_into_groups(folder, self.truth["permutation"], design.group_size, seed)
            if design.lost:
                lose_rows(folder, *design.lost, seed)
            command = [arguments.program, "fit", f"{folder}/responses.csv", f"{folder}/features.csv", "--response", "y",
                       "--threads", str(threads), "--json", "--quiet", *design.fit]
            if design.group_size:
                command += ["--group", "key"]
            if design.links:
                command += [f"--{design.links}", f"{folder}/links.csv"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
                self.fit = json.loads(running.stdout.read())
                usage = os.wait4(running.pid, 0)[2]
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
            self.error = self.test_error(read_rows(f"{folder}/test.csv"))
            self.links = read_rows(f"{folder}/links.csv") if design.links else []
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
        ends = {name: self.fit["intervals"][name] for name in self.truth["coefficients"]}
        return [ends[name][0] <= value <= ends[name][1] for name, value in self.truth["coefficients"].items()
                if None not in ends[name]]

    def row(self):
        hits = self.covered()
        return {"seed": self.seed, "ratio": f"{self.ratio:.5f}", "verdict": self.verdict, "seconds": f"{self.seconds:.1f}",
                "cpu_seconds": f"{self.cpu_seconds:.1f}", "intervals": len(hits), "covered": sum(hits)}


class Design:
    def __init__(self, simulate, fit, group_size=0, lost=()):
        self.simulate, self.fit, self.group_size = simulate, fit, group_size
        self.lost = lost  # a table and the share of its rows that is lost
        self.links = ""  # links: probabilities of rows in order; pairs: those of the rows matched

    def draws(self, arguments):
        with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
            yield from pool.map(lambda seed: Draw(arguments, self, seed), range(arguments.draws))


def search(design):
    """How often the coefficients are found, and reported as identified."""
    def study(arguments):
        draws = []
        for draw in design(arguments).draws(arguments):
            print(f"{draw.seed}: ratio {draw.ratio:.4f}, {draw.seconds:.1f} s, {draw.cpu_seconds:.1f} s of processor time, "
                  f"{draw.verdict}: {draw.reason}", flush=True)
            draws.append(draw)
            if arguments.csv:
                write_rows(arguments.csv, [d.row() for d in draws])
        verdicts = {v: sum(d.verdict == v for d in draws) for v in ("identified", "weakly identified", "not identifiable")}
        ratios = [d.ratio for d in draws]
        sure = [d.ratio for d in draws if d.verdict == "identified"]
        hits = [hit for d in draws for hit in d.covered()]
        print(f"{len(draws)} draws: {verdicts}; test error / oracle: median {statistics.median(ratios):.4f}, "
              f"{sum(r <= 1.05 for r in ratios)} at most 1.05; of those identified {sum(r <= 1.05 for r in sure)} of "
              f"{len(sure)}, worst {max(sure, default=float('nan')):.3f}; intervals hold the truth {sum(hits)} of "
              f"{len(hits)} times; exchange named {sum('exchange' in d.reason for d in draws)} times; "
              f"longest {max(d.seconds for d in draws):.1f} s, {max(d.cpu_seconds for d in draws):.1f} s of processor time")
    return study


def coverage(design):
    """How often 95 % intervals hold the truth, over all draws and over those that are identified."""
    def study(arguments):
        rows = []
        for draw in design(arguments).draws(arguments):
            rows.append(draw.row())
            if arguments.csv:
                write_rows(arguments.csv, rows)
        for name, some in (("all", rows), ("identified", [r for r in rows if r["verdict"] == "identified"])):
            intervals, covered = sum(r["intervals"] for r in some), sum(r["covered"] for r in some)
            print(f"{name}: {len(some)} draws, {covered} of {intervals} intervals hold the truth "
                  f"({covered / max(1, intervals):.1%})")
    return study


def reliability(arguments):
    """Predicted probabilities of links against how often they are right, by tenths."""
    table = []
    for name, design, links in (("rows in order, mixture", hinted(arguments), "links"),
                                ("pairs beside rows in order, mixture", hinted(arguments), "pairs"),
                                ("pairs within groups, entropic", grouped(arguments), "pairs")):
        design.links = links
        tenths = [[] for _ in range(10)]
        for draw in design.draws(arguments):
            for link in draw.links:
                response, feature = link["response_row"], link.get("feature_row", link["response_row"])
                probability = float(link["probability"])
                right = draw.truth["permutation"][int(response)] == int(feature)
                tenths[min(9, int(10 * probability))].append((probability, right))
        for k, told in enumerate(tenths):
            predicted = statistics.fmean(p for p, _ in told) if told else float("nan")
            right = statistics.fmean(r for _, r in told) if told else float("nan")
            table.append({"probabilities": name, "from": k / 10, "to": (k + 1) / 10, "links": len(told),
                          "predicted": f"{predicted:.4f}", "right": f"{right:.4f}"})
            print(f"{name}, {k / 10:.1f} to {(k + 1) / 10:.1f}: {len(told)} links, predicted {predicted:.3f}, "
                  f"right {right:.3f}", flush=True)
    if arguments.csv:
        write_rows(arguments.csv, table)


def mixture(arguments):
    for features, shares in ((5, (0.1, 0.3, 0.5, 0.7)), (20, (0.1, 0.3, 0.5))):
        for share in shares:
            design = Design(["sensing", "--n", str(arguments.n or 1000), "--dim-z", str(features), "--snr", "100",
                             "--mean", "1", "--shuffle", str(share)], ["--hint", "rows"])
            draws = list(design.draws(arguments))
            mean = sum(d.error for d in draws) / sum(d.truth["oracle_test_error"] for d in draws)
            print(f"{features} features, {share:.0%} shuffled: mean test error {mean:.4f} × oracle, worst "
                  f"{max(d.ratio for d in draws):.3f} ×", flush=True)


entropic = ["--method", "entropic"]


def gamma(*options):
    return lambda arguments: Design(["gamma", "--n", str(arguments.n or 50000)], [*entropic, *options])


def gaussian(arguments):
    return Design(["sensing", "--n", str(arguments.n or 1000), "--shuffle", "1"], entropic)


def exchange(arguments):
    return Design(["gamma", "--n", str(arguments.n or 5000), "--shape", "1", "--dim-z", "3"], entropic)


def hinted(arguments):
    return Design(["sensing", "--n", str(arguments.n or 500), "--snr", "100", "--mean", "1", "--shuffle", "0.5"],
                  ["--hint", "rows"])


def adjusted(arguments):
    return Design(["sensing", "--n", str(arguments.n or 2000), "--snr", "3", "--mean", "1", "--shuffle", "0.4"],
                  ["--method", "adjusted", "--hint", "rows"])


def grouped(arguments):
    return Design(["sensing", "--n", str(arguments.n or 300), "--noise", "0.1", "--dim-z", "3", "--shuffle", "1"], entropic,
                  group_size=5)


def two_gammas(*lost):
    """All rows shuffled; `lost` are a table and the share of its rows that is not there."""
    return lambda arguments: Design(["gamma", "--n", str(arguments.n or 2000), "--dim-z", "2"], entropic, lost=lost)


studies = {
    "gamma": search(gamma()),
    "gamma-no-intercept": search(gamma("--no-intercept")),
    "gamma-known-noise": search(gamma("--no-intercept", "--noise-sd", str(0.1 ** 0.5))),
    "gaussian": search(gaussian),
    "exchange": search(exchange),
    "mixture": mixture,
    "coverage-hint": coverage(hinted),
    "coverage-adjusted": coverage(adjusted),
    "coverage-groups": coverage(grouped),
    "coverage-shuffled": coverage(two_gammas()),
    "coverage-fewer-responses": coverage(two_gammas("responses", 0.3)),
    "coverage-fewer-features": coverage(two_gammas("features", 0.08)),
    "reliability": reliability,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=studies)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--n", type=int, default=0)
    parser.add_argument("--csv", default="")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--program", default=str(root / "build/release/unshuffle"))
    arguments = parser.parse_args()
    studies[arguments.study](arguments)


if __name__ == "__main__":
    main()
