#!/usr/bin/env python3
"""POT on the problems of bench_hypergradient. Needs: pip install pot numpy scipy

Prints two Markdown tables: log-domain Sinkhorn with 200 iterations (forward only, POT has no implicit gradient) and the
exact one-dimensional solver, which is the limit ε = 0.
"""

import sys
import time
import warnings

import numpy as np
import ot

warnings.filterwarnings("ignore")


def text(seconds):
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def responses(n, generator):
    """y = Zw + noise and predictions at a w 5 % off, as in bench_hypergradient."""
    w = np.linspace(0.6, 1.4, 5)
    z = generator.standard_normal((n, 5))
    return z @ w + 0.3 * generator.standard_normal(n), z @ (1.05 * w)


def sinkhorn(n, iterations, generator):
    t, s = responses(n, generator)
    a, b = generator.standard_normal((n, 2)), generator.standard_normal((n, 2))
    costs = {
        "(t - s)²": (t[:, None] - s[None, :]) ** 2,
        "uniform": generator.uniform(size=(n, n)),
        "squared distances in R²": ot.dist(a, b),
    }
    weights = np.full(n, 1 / n)
    print(f"### POT {ot.__version__}: `ot.sinkhorn(method='sinkhorn_log', numItermax={iterations})`, n = m = {n}, "
          "ε = 1e-4 of the largest cost\n")
    print("| cost | time, without gradient | marginal error | transport cost |\n|---|---|---|---|")
    for name, cost in costs.items():
        begin = time.perf_counter()
        plan = ot.sinkhorn(weights, weights, cost, 1e-4 * cost.max(), method="sinkhorn_log", numItermax=iterations,
                           stopThr=1e-9)
        elapsed = time.perf_counter() - begin
        error = np.abs(plan.sum(0) - weights).sum() + np.abs(plan.sum(1) - weights).sum()
        print(f"| {name} | {text(elapsed)} | {error:.1e} | {(plan * cost).sum():.6g} |", flush=True)


def one_dimension(sizes, generator):
    print("\n### POT: `ot.emd2_1d`, the limit ε = 0 (value only)\n")
    print("| n = m | time | transport cost |\n|---|---|---|")
    for n in sizes:
        t, s = responses(n, generator)
        begin = time.perf_counter()
        value = ot.emd2_1d(t, s)
        print(f"| {n} | {text(time.perf_counter() - begin)} | {value:.6g} |", flush=True)


if __name__ == "__main__":
    quick = "--quick" in sys.argv[1:]
    random = np.random.default_rng(1)
    sinkhorn(300 if quick else 1000, 50 if quick else 200, random)
    one_dimension([10**3, 10**4] if quick else [10**3, 10**4, 10**5, 10**6], random)
