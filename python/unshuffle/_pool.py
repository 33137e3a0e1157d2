from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core


@dataclass(frozen=True)
class Pooled:
    """Estimates pooled over several sets of links.

    params, std_errors : pooled estimates and their standard errors.
    vcov : their covariance: the mean one within sets plus (1 + 1/M) times that between M sets.
    dof : degrees of freedom of each (Barnard and Rubin).
    low, high : ends of the intervals at the level that was asked for.
    information_lost : share of the information on each that is missing because the links are not known.
    names : of the estimates.
    """

    params: np.ndarray
    std_errors: np.ndarray
    vcov: np.ndarray
    dof: np.ndarray
    low: np.ndarray
    high: np.ndarray
    information_lost: np.ndarray
    names: tuple[str, ...]

    def __str__(self) -> str:
        width = max(12, *(len(name) + 2 for name in self.names))
        titles = ("coef", "std err", "low", "high", "dof", "lost")
        lines = [" " * width + "".join(f"{title:>12}" for title in titles)]
        columns = (self.params, self.std_errors, self.low, self.high, self.dof, self.information_lost)
        lines += [f"{name:<{width}}" + "".join(f"{column[k]:>12.5g}" for column in columns) for k, name in enumerate(self.names)]
        return "\n".join(lines)


def pool(estimates: Any, errors: Any = None, *, dof: float | None = None, level: float = 0.95) -> Pooled:
    """Pools one analysis of each of M sets of links, such as those of ``model.match(samples=M)``, by Rubin's rules.

    estimates: the M analyses themselves (results of statsmodels and lifelines, or anything with params and cov_params(), or with
        params_ and variance_matrix_), or an array of estimates, M×k or M of a single number.
    errors: with an array, standard errors of the same shape or covariances M×k×k.
    dof: degrees of freedom that each analysis would have if its links were the true ones; by default df_resid of the analyses where
        they have it, else infinity. Intervals for the level are those of Barnard and Rubin (1999).
    """
    names: Any = None
    if errors is None:
        analyses = list(estimates)
        found = [_coefficients(one) for one in analyses]
        names = found[0][0]
        if any(one[0] != names for one in found):
            raise ValueError("the analyses to be pooled do not have the same coefficients")
        values = np.array([one[1] for one in found], float)
        covariances = [one[2] for one in found]
        if dof is None:
            each = [getattr(one, "df_resid", None) for one in analyses]
            dof = None if any(one is None for one in each) else float(min(each))  # type: ignore[type-var,arg-type]
    else:
        values, covariances = _from_arrays(np.asarray(estimates, float), np.asarray(errors, float))
    names = names or tuple(f"estimate {k + 1}" for k in range(values.shape[1]))
    params, vcov, freedom, lost, ends = _core.pool(values, covariances, np.inf if dof is None else float(dof), level)
    return Pooled(params, np.sqrt(np.diag(vcov)), vcov, freedom, ends[:, 0], ends[:, 1], lost, tuple(names))


def _coefficients(analysis: Any) -> Any:
    params = getattr(analysis, "params", None)
    if params is None:
        params = getattr(analysis, "params_", None)
    covariance = analysis.cov_params() if hasattr(analysis, "cov_params") else getattr(analysis, "variance_matrix_", None)
    if params is None or covariance is None:
        raise TypeError(f"a {type(analysis).__name__} has no coefficients with a covariance (params and cov_params()); give arrays of "
                        "estimates and errors")
    values = np.atleast_1d(np.asarray(params, float))
    index = getattr(params, "index", None)
    names = tuple(f"estimate {k + 1}" for k in range(len(values))) if index is None else tuple(map(str, index))
    return names, values, np.asarray(covariance, float).reshape(len(values), -1)


def _from_arrays(estimates: np.ndarray, errors: np.ndarray) -> Any:
    if estimates.ndim == 1:
        estimates = estimates[:, None]
        errors = errors.reshape(len(errors), *((1,) if errors.ndim == 1 else errors.shape[1:]))
    if estimates.ndim != 2:
        raise ValueError(f"estimates have {estimates.ndim} dimensions; M×k was expected")
    if errors.shape == estimates.shape:
        return estimates, [np.diag(one**2) for one in errors]
    if errors.shape == (*estimates.shape, estimates.shape[1]):
        return estimates, list(errors)
    raise ValueError(f"errors of the shape {errors.shape} do not fit estimates of the shape {estimates.shape}; standard errors of the "
                     "same shape, or a covariance for each row, were expected")
