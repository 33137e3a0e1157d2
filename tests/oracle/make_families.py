#!/usr/bin/env python3
"""Writes ../data/families.json: simulated regressions of every family with the coefficients, standard errors, deviance and
log-likelihood that statsmodels finds (Student's: SciPy's optimiser), and a mixture of right and wrong links of every
family, maximised by SciPy from the formulas alone."""
import json
import pathlib

import numpy as np
import statsmodels.api as sm
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, gammaln

random = np.random.default_rng(24)
n = 80
z = random.normal(size=(n, 2))
design = sm.add_constant(z)
w = np.array([0.4, 0.7, -0.5])
offset = np.log(random.uniform(0.5, 3, n)).round(6)
trials = random.integers(1, 12, n).astype(float)
eta = design @ w
out = {"z": z.tolist(), "offset": offset.tolist(), "trials": trials.tolist(), "fits": {}}


def entry(y, fit, deviance, shape=(), **given):
    return {"y": np.asarray(y, float).tolist(), "coefficients": list(map(float, fit.params[:3])),
            "std_errors": list(map(float, fit.bse[:3])), "deviance": float(deviance), "shape": list(map(float, shape)),
            "log_likelihood": float(fit.llf), **given}


def glm(y, family, **options):
    return sm.GLM(y, design, family=family, **options).fit(tol=1e-14, maxiter=200)


y = (random.uniform(size=n) < expit(eta)).astype(float)
fit = glm(y, sm.families.Binomial())
out["fits"]["binomial"] = entry(y, fit, fit.deviance)

successes = random.binomial(trials.astype(int), expit(eta)).astype(float)
fit = glm(np.column_stack([successes, trials - successes]), sm.families.Binomial())
out["fits"]["binomial of trials"] = entry(successes, fit, fit.deviance, trials=True)

y = random.poisson(np.exp(eta + offset))
fit = glm(y, sm.families.Poisson(), offset=offset)
out["fits"]["poisson"] = entry(y, fit, fit.deviance, offset=True)

y = random.gamma(3, np.exp(eta) / 3)
fit = glm(y, sm.families.Gamma(sm.families.links.Log()))
out["fits"]["gamma"] = entry(y, fit, fit.deviance, [fit.scale])

y = random.negative_binomial(1 / 0.6, 1 / (1 + 0.6 * np.exp(eta + 1)))
model = sm.NegativeBinomial(y, design)
near = model.fit(disp=0, method="bfgs", maxiter=1000).params
fit = model.fit(disp=0, method="newton", start_params=near, maxiter=200, tol=1e-14)
out["fits"]["negative-binomial"] = entry(
    y, fit, sm.families.NegativeBinomial(alpha=fit.params[3]).deviance(y, fit.predict(design)), [fit.params[3]])


def maximised(minus, start):
    """The maximum, polished by Newton's method with differences of the gradient's differences."""
    best = minimize(minus, start, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000})
    theta = minimize(minus, best.x, method="Nelder-Mead",
                     options={"xatol": 1e-12, "fatol": 1e-14, "maxiter": 40000, "maxfev": 40000}).x
    return theta


def hessian(minus, theta, step=2e-4):
    p = len(theta)
    made = np.zeros((p, p))
    for a in range(p):
        for b in range(p):
            at = lambda i, j: minus(theta + step * (i * np.eye(p)[a] + j * np.eye(p)[b]))
            made[a, b] = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * step**2)
    return made


y = eta + 0.3 * random.standard_t(3, n)
minus = lambda t: -stats.t.logpdf(y, np.exp(t[4]), design @ t[:3], np.exp(0.5 * t[3])).sum()
theta = maximised(minus, np.r_[w, np.log(0.1), np.log(4)])
errors = np.sqrt(np.diag(np.linalg.inv(hessian(minus, theta))))
out["fits"]["student"] = {"y": y.tolist(), "coefficients": theta[:3].tolist(), "std_errors": errors[:3].tolist(),
                          "deviance": None, "shape": np.exp(theta[3:]).tolist(), "log_likelihood": -minus(theta)}

# Rows in order, some of them wrong: y ~ (1 - a) p(y | eta) + a h(y), with h the shares of every value among all rows.
m = 300
z = random.normal(size=(m, 2))
design = sm.add_constant(z)
y = random.poisson(np.exp(design @ np.array([1.0, 0.8, -0.4])))
moved = random.choice(m, 60, replace=False)
y[moved] = y[random.permutation(moved)]
values, place, counts = np.unique(y, return_inverse=True, return_counts=True)
log_other = np.log(counts[place] / m)


def minus_mixture(theta):
    rate = design @ theta[:3]
    right = y * rate - np.exp(rate) - gammaln(y + 1)
    return -np.logaddexp(np.log(expit(theta[3])) + right, np.log(expit(-theta[3])) + log_other).sum()


theta = maximised(minus_mixture, np.r_[1.0, 0.8, -0.4, 1])
errors = np.sqrt(np.diag(np.linalg.inv(hessian(minus_mixture, theta))))
rate = design @ theta[:3]
right = np.log(expit(theta[3])) + y * rate - np.exp(rate) - gammaln(y + 1)
out["mixture"] = {"z": z.tolist(), "y": y.astype(float).tolist(), "coefficients": theta[:3].tolist(),
                  "std_errors": errors[:3].tolist(), "logit": float(theta[3]), "logit_error": float(errors[3]),
                  "log_likelihood": -minus_mixture(theta),
                  "link_probability": expit(right - np.log(expit(-theta[3])) - log_other).tolist()}

path = pathlib.Path(__file__).resolve().parent.parent / "data" / "families.json"
path.write_text(json.dumps(out, indent=0) + "\n")
