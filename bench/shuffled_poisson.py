#!/usr/bin/env python3
"""Fully shuffled Poisson regression with four features of distinct laws: verdict, processor time, and the deviance of new
rows divided by that of the regression on linked rows.

    python3 bench/shuffled_poisson.py PROGRAM [--rows N] [--draws K]
"""
import argparse
import json
import pathlib
import resource
import subprocess
import tempfile

import numpy as np


def features(random, rows):
    """None of them symmetric, as the sign of one that is could not be told."""
    return np.column_stack([random.gumbel(size=rows) / 1.28 - 0.45, random.exponential(size=rows) - 1,
                            3.35 * random.uniform(size=rows) ** 2 - 1.12, (random.uniform(size=rows) < 0.25) - 0.25])


def regression(z, y):
    design, w = np.column_stack([np.ones(len(z)), z]), np.zeros(5)
    w[0] = np.log(y.mean())
    for _ in range(50):
        mean = np.exp(design @ w)
        step = np.linalg.solve((design.T * mean) @ design, design.T @ (y - mean))
        w += step
        if np.abs(step).max() < 1e-12:
            return w
    return w


def deviance(w, z, y):
    eta = w[0] + z @ w[1:]
    return 2 * np.mean(np.where(y > 0, y * np.log(np.maximum(y, 1)), 0) - y - y * eta + np.exp(eta))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    arguments = parser.parse_args()
    truth = np.array([2.0, 0.4, -0.6, 0.5, 1.0])
    for draw in range(arguments.first, arguments.first + arguments.draws):
        random = np.random.default_rng(draw)
        z = features(random, arguments.rows)
        y = random.poisson(np.exp(truth[0] + z @ truth[1:])).astype(float)
        new = features(random, 100_000)
        new_y = random.poisson(np.exp(truth[0] + new @ truth[1:])).astype(float)
        oracle = regression(z, y)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            np.save(path / "y.npy", random.permutation(y))
            np.save(path / "z.npy", z)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([arguments.program, "fit", path / "y.npy", path / "z.npy", "--response", "y", "--family", "poisson",
                            "--method", "entropic", "--out", path / "fit.json", "--quiet"], check=False)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            said = json.loads((path / "fit.json").read_text())
        found = np.array([said["intercept"], *said["coefficients"].values()])
        ratio = deviance(found, new, new_y) / deviance(oracle, new, new_y)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"draw {draw}: {arguments.rows} rows, {said['status']}, {said['identifiable']['verdict']}, test deviance "
              f"{ratio:.4f} times the oracle's, {seconds:.1f} s of processor time, coefficients {np.round(found, 3)}", flush=True)


if __name__ == "__main__":
    main()
