#!/usr/bin/env python3
"""Writes ../data/mixture.json: a partly shuffled regression and the parameters that maximise the likelihood of the
paired/mismatched mixture, found by SciPy's general optimiser from the formulas alone."""
import json
import pathlib

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

random = np.random.default_rng(5)
n = 80
z = random.normal(size=(n, 2))
y = 0.5 + z @ [2.0, -1.0] + 0.3 * random.normal(size=n)
moved = random.choice(n, 32, replace=False)
y[moved] = y[random.permutation(moved)]

h = y.std() * (4 / (3 * n)) ** 0.2
log_other = logsumexp(-0.5 * ((y[:, None] - y[None, :]) / h) ** 2, axis=1) - np.log(n * h * np.sqrt(2 * np.pi))
design = np.column_stack([np.ones(n), z])


def minus_log_likelihood(theta):
    w, log_variance, logit = theta[:3], theta[3], theta[4]
    residual = y - design @ w
    right = -0.5 * (np.log(2 * np.pi) + log_variance + residual**2 / np.exp(log_variance))
    both = np.logaddexp(np.log(expit(logit)) + right, np.log(expit(-logit)) + log_other)
    return -both.sum()


best = min(
    (
        minimize(minus_log_likelihood, np.r_[0.5, 2, -1, np.log(v), 0], method="Nelder-Mead",
                 options={"maxiter": 40000, "maxfev": 40000, "xatol": 1e-10, "fatol": 1e-12})
        for v in (0.05, 0.1, 0.3)
    ),
    key=lambda result: result.fun,
)
out = pathlib.Path(__file__).resolve().parent.parent / "data" / "mixture.json"
out.write_text(json.dumps({
    "y": y.tolist(),
    "z": z.tolist(),
    "parameters": best.x[:3].tolist(),
    "noise_variance": float(np.exp(best.x[3])),
    "mismatch_rate": float(expit(-best.x[4])),
    "log_likelihood": float(-best.fun),
}) + "\n")
print(best.x, best.fun)
