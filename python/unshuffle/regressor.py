"""Regressions between tables whose row links are lost, as scikit-learn estimators."""

from __future__ import annotations

import json
import warnings
from functools import cached_property

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from . import _core
from ._progress import reporting
from ._tables import codes_of, column_names, matrix_of, refuse_masked, row_number, validated, validated_pair
from ._options import declared, given, takes_options
from ._warnings import ConvergenceWarning

_pair = np.dtype([("response_row", np.int64), ("feature_row", np.int64), ("probability", np.float64)])


_options = declared(_core.estimators())
_own = {
    "method": "auto", "model": "linear", "fit_intercept": True, "hint": "auto", "seed": 0, "threads": 0,
    "progress": None,
}


@takes_options(_own, _options)
class ShuffledRegressor(RegressorMixin, BaseEstimator):
    """Fits a regression and the row links together.

    ``fit(X, y)`` takes one table whose response may be (partly) shuffled against the rows; ``fit_tables`` takes two
    tables whose rows are not linked, of equal length or not. ``predict`` is for rows that are complete.

    Parameters
    ----------
    method : how rows are linked: "auto" examines the data and explains its choice; see docs/methods.
    model : "linear", "sine" or "spline:K" with K knots per feature.
    fit_intercept : whether the model has an intercept (never with "sine").
    hint : "rows" when row i of one table probably belongs to row i of the other, "none" when the order means nothing;
        "auto": rows for ``fit``, nothing known for ``fit_tables``.
    seed : of everything random.
    threads : 0 for all; the answer does not depend on it.
    progress : a function of (done, total), which stops the fit by returning False; True for a bar (needs tqdm).

    Options of single methods; one that the method does not read is refused:

    {options}

    Attributes
    ----------
    coef_, intercept_ : of the model's columns, one row per output when there are several.
    coef_names_ : what they belong to: the columns of data frames, else x1, ..., z1, ...
    coefficients_, std_errors_ : by name; a standard error is None when the method has none.
    intervals_ : by name, both ends of the 95 % interval; ``intervals(level)`` for another.
    result_ : everything ``unshuffle fit --json`` says.
    pairs_ : one-to-one links with their probabilities, as an array with the fields response_row, feature_row and
        probability; rows without a partner are in unmatched_responses_ and unmatched_features_.
    trace_ : one row per outer iteration: start, iteration, epsilon, objective, gradient norm, marginal error, inner
        iterations.
    """

    def fit(self, X, y):
        """One table: row i of X probably belongs to y[i], but some or all of y may be shuffled."""
        names, y_names = column_names(X), column_names(y)
        X, y = validated_pair(self, X, y)
        return self._fit(_problem(y, None, X, y_names, [], names), one_table=True)

    def fit_tables(
        self, y, z, x=None, *, response_weights=None, feature_weights=None, groups=None, known=None,
        prior=None
    ):
        """Two tables: y (and x, features in the same table) of n rows, z of m rows.

        groups: labels of the responses and labels of the features; only rows with equal labels may match.
        known: pairs (response row, feature row) that are certain.
        prior: (response row, feature row, weight): the prior odds of that pair relative to those not listed.
        """
        names = [column_names(table) for table in (y, x, z)]
        response_groups, feature_groups = codes_of(groups)
        problem = _problem(
            matrix_of(y, "y"), None if x is None else matrix_of(x, "x"), matrix_of(z, "z"), *names,
            response_weights=response_weights, feature_weights=feature_weights,
            response_groups=response_groups, feature_groups=feature_groups, known=known, prior=prior,
        )
        in_frames = bool(names[2]) and (x is None or bool(names[1]))
        return self._fit(problem, one_table=False, named=in_frames)

    def predict(self, X, return_std=False):
        """The response of complete rows: the columns of x (if there were any), then those of z.

        With return_std also the standard errors of the predictions, which the noise of a new response comes on top of.
        """
        if not return_std:
            return self._predicted(X, lambda x, z: (self._fitted.predict(x, z),))[0]
        return self._predicted(X, lambda x, z: self._fitted.predict_with_intervals(x, z))[:2]

    def predict_interval(self, X, level=0.95):
        """Both ends of the intervals that hold this share of new responses at these rows."""
        return self._predicted(X, lambda x, z: self._fitted.predict_with_intervals(x, z, level))[2:]

    def intervals(self, level=0.95):
        """Both ends of every coefficient's interval, by name."""
        check_is_fitted(self)
        return dict(zip(self._fitted.names, self._fitted.intervals(level).tolist()))

    def _predicted(self, X, predict):
        check_is_fitted(self)
        X = validated(self, X)
        x_count = len(self.result_["columns"]["x"])
        arrays = predict(X[:, :x_count], X[:, x_count:])
        return tuple(arrays if self._several_outputs else (array[:, 0] for array in arrays))

    def summary(self) -> str:
        """A table in the style of statsmodels."""
        check_is_fitted(self)
        return self._summary

    def to_json(self) -> str:
        """A fit.json for ``unshuffle predict`` and ``unshuffle match``."""
        check_is_fitted(self)
        return self._json

    def report(self, path, truth=None) -> None:
        """Writes one HTML page with the verdict, pictures and numbers, as ``unshuffle fit --report``.

        truth: pairs (response row, feature row) that are right, to hold match probabilities against. A fit that was
        pickled has left behind what the pictures need.
        """
        check_is_fitted(self)
        if self._restored:
            raise ValueError("a report needs the original fit; this one was unpickled")
        page = self._fitted.report([] if truth is None else _pairs(truth, "truth"))
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)

    @cached_property
    def _matching(self):
        check_is_fitted(self)
        pairs, responses, features = self._fitted.match()
        linked = np.empty(len(pairs), _pair)
        for at, field in enumerate(_pair.names):
            linked[field] = pairs[:, at]
        return linked, np.asarray(responses, int), np.asarray(features, int)

    @property
    def pairs_(self):
        return self._matching[0]

    @property
    def unmatched_responses_(self):
        return self._matching[1]

    @property
    def unmatched_features_(self):
        return self._matching[2]

    def _fit(self, problem, one_table: bool, named: bool = False):
        self.__dict__.pop("_matching", None)
        if self.hint not in ("auto", "rows", "none"):
            raise ValueError(f"hint = {self.hint} must be one of auto, rows, none")
        problem.hint = "rows" if self.hint == "auto" and one_table else self.hint
        with reporting(self.progress) as progress:
            fitted = _core.fit(
                problem, model=self.model, intercept=self.fit_intercept, method=self.method,
                options=given(self, _options), seed_and_threads=(self.seed, self.threads), one_table=one_table,
                progress=progress,
            )
        if not one_table:
            self._remember_columns(problem, named)
        self._remember(fitted, len(problem.y_names))
        self._warn()
        return self

    def _remember_columns(self, problem, named: bool):
        columns = problem.x_names + problem.z_names
        self.n_features_in_ = len(columns)
        self.__dict__.pop("feature_names_in_", None)
        if named:
            self.feature_names_in_ = np.asarray(columns, object)

    def _remember(self, fitted, outputs: int):
        self._fitted = fitted
        self._restored = False
        self._json = fitted.to_json()
        self._summary = fitted.summary()
        self._several_outputs = outputs > 1
        self.result_ = json.loads(self._json)
        self.coefficients_ = self.result_["coefficients"]
        self.std_errors_ = self.result_["std_errors"]
        self.intervals_ = self.result_["intervals"]
        self.trace_ = fitted.trace
        self.n_iter_ = max(1, self.result_["iterations"])
        intercepts = self.result_["intercept"]
        self.coef_names_ = np.asarray(list(self.coefficients_), object)
        self.coef_ = np.asarray(list(self.coefficients_.values()))
        self.intercept_ = intercepts
        if outputs > 1:
            self.coef_ = self.coef_.reshape(outputs, -1)
            self.coef_names_ = self.coef_names_.reshape(outputs, -1)
            self.intercept_ = np.asarray(list(intercepts.values())) if isinstance(intercepts, dict) else intercepts

    def _warn(self):
        if self.result_["status"] != "converged":
            warnings.warn(self.result_["message"], ConvergenceWarning, stacklevel=4)
        identifiable = self.result_["identifiable"]
        if identifiable["verdict"] == "not identifiable":
            warnings.warn(f"not identifiable: {identifiable['reason']}", ConvergenceWarning, stacklevel=4)

    def __getstate__(self):
        if hasattr(self, "_fitted"):
            self._matching  # noqa: B018  computed now, because the tables are not pickled
        state = super().__getstate__().copy()
        state.pop("_fitted", None)
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        if "_json" in state:
            self._fitted = _core.Fitted.from_json(self._json)
            self._restored = True

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_json")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _more_tags(self):  # scikit-learn before 1.6
        return {"multioutput": True}


@takes_options({"unmatched": 0.2, "rho1": None, "rho2": None, **_own, "method": "robot-robust"}, _options)
class RobustShuffledRegressor(ShuffledRegressor):
    """As ShuffledRegressor with method "robot-robust": rows without a partner may stay unmatched.

    unmatched is the share of the smaller table that may (of the larger, also its surplus rows); rho1 and rho2 say
    instead how far the sums of the plan may leave the weights of the responses and of the features, as a squared distance,
    0 for not at all. The other parameters are those of ShuffledRegressor.
    """


def _pairs(pairs, name):
    return [(row_number(i, name), row_number(j, name)) for i, j in pairs]


def _problem(y, x, z, y_names, x_names, z_names, *, response_weights=None, feature_weights=None, response_groups=(),
             feature_groups=(), known=None, prior=None):
    y = np.asarray(y, float)
    y = y.reshape(len(y), -1)
    x = np.empty((len(y), 0)) if x is None else x
    empty = np.empty(0)
    for weights, side in ((response_weights, "response_weights"), (feature_weights, "feature_weights")):
        refuse_masked(weights, side)
    return _core.Problem(
        y, x, z, y_names=y_names, x_names=x_names, z_names=z_names,
        response_weights=empty if response_weights is None else np.asarray(response_weights, float),
        feature_weights=empty if feature_weights is None else np.asarray(feature_weights, float),
        response_groups=response_groups, feature_groups=feature_groups,
        known=[] if known is None else _pairs(known, "known"),
        prior=[] if prior is None else [(*_pairs([pair], "prior")[0], float(weight)) for *pair, weight in prior],
    )
