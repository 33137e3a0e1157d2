"""Writes tests/data/methods.json: robust regression and Gromov-Wasserstein alignments by independent programs.

Usage: python make_methods.py > ../data/methods.json     (needs numpy, scipy, scikit-learn and POT)

huber     scikit-learn's HuberRegressor finds coefficients and a scale together; given that scale, the coefficients
          minimise Huber's loss with threshold = epsilon * scale. SciPy minimises the same loss at another threshold.
gromov    POT's entropic Gromov-Wasserstein plan (projected gradient, squared loss) and the loss of a fixed matching.
unrolled  transport cost after a fixed number of Sinkhorn iterations, and its gradient by complex-step differentiation.
"""
import json

import numpy as np
import ot
from scipy.optimize import minimize
from sklearn.linear_model import HuberRegressor

rng = np.random.default_rng(20240607)


def listed(array):
    return np.asarray(array).tolist()


def huber_case():
    x = rng.normal(size=(80, 3))
    y = 0.5 + x @ [1.0, -2.0, 0.3] + 0.2 * rng.normal(size=80)
    y[:20] = rng.permutation(y[:20])
    fitted = HuberRegressor(epsilon=1.35, alpha=0, max_iter=10000, tol=1e-10).fit(x, y)
    design = np.column_stack([np.ones(80), x])
    threshold = 0.5

    def loss(w):
        r = np.abs(y - design @ w)
        return np.where(r <= threshold, r**2, 2 * threshold * r - threshold**2).sum()

    def gradient(w):
        return -2 * design.T @ np.clip(y - design @ w, -threshold, threshold)

    solved = minimize(loss, np.zeros(4), jac=gradient, method="BFGS", options={"gtol": 1e-9})
    return {"x": listed(x), "y": listed(y),
            "sklearn": {"threshold": 1.35 * fitted.scale_, "w": [fitted.intercept_, *listed(fitted.coef_)]},
            "scipy": {"threshold": threshold, "w": listed(solved.x), "loss": float(solved.fun)}}


def gromov_case():
    u = rng.normal(size=(12, 2))
    v = np.column_stack([u @ [[0.8, -0.6], [0.6, 0.8]], 0.1 * rng.normal(size=12)])[rng.permutation(12)]
    du, dv = ot.dist(u, u), ot.dist(v, v)
    weights = np.full(12, 1 / 12)
    epsilon = 0.5
    plan = ot.gromov.entropic_gromov_wasserstein(du, dv, weights, weights, "square_loss", epsilon=epsilon, solver="PGD",
                                                 max_iter=10000, tol=1e-12, numItermax=20000, stopThr=1e-11)
    matching = rng.permutation(12)
    hard = np.zeros((12, 12))
    hard[np.arange(12), matching] = 1 / 12
    const, h1, h2 = ot.gromov.init_matrix(du, dv, weights, weights, "square_loss")
    return {"u": listed(u), "v": listed(v), "epsilon": epsilon, "plan": listed(plan), "matching": listed(matching),
            "loss": float(ot.gromov.gwloss(const, h1, h2, hard))}


def unrolled_case():
    cost = rng.uniform(size=(5, 7))
    a = rng.uniform(0.5, 1.5, size=5)
    b = rng.uniform(0.5, 1.5, size=7)
    a, b = a / a.sum(), b / b.sum()
    epsilon, iterations = 0.1, 7

    def transport_cost(c):
        kernel = np.exp(-c / epsilon)
        s = np.ones(7, dtype=complex)
        for _ in range(iterations):
            r = a / (kernel @ s)
            s = b / (kernel.T @ r)
        return (r[:, None] * kernel * s * c).sum()

    gradient = np.zeros_like(cost)
    for at in np.ndindex(*cost.shape):
        moved = cost.astype(complex)
        moved[at] += 1e-30j
        gradient[at] = transport_cost(moved).imag / 1e-30
    return {"cost": listed(cost), "a": listed(a), "b": listed(b), "epsilon": epsilon, "iterations": iterations,
            "transport_cost": float(transport_cost(cost.astype(complex)).real), "gradient": listed(gradient)}


print(json.dumps({"huber": huber_case(), "gromov": gromov_case(), "unrolled": unrolled_case()}))
