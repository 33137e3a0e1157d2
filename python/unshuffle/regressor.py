"""Regressions between tables whose row links are lost, as scikit-learn estimators."""

from __future__ import annotations

import json
import os
import warnings
import zlib
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from . import _core, plots
from ._deprecated import renamed, seed_of, threads_of, value_of
from ._frames import columns_of, is_frame, is_plain, names_of
from ._options import declared, given, takes_options
from ._progress import reporting
from ._tables import (
    codes_of, columns_or_array, key_names, matrix_of, refuse_masked, row_number, row_weights, validated, validated_pair,
)
from ._warnings import ConvergenceWarning, TableWarning

_pair = np.dtype([("response_row", np.int64), ("feature_row", np.int64), ("probability", np.float64)])


_options = declared(_core.estimators(), renamed)
_own = {
    "method": "auto", "model": "linear", "fit_intercept": True, "hint": "auto", "missing": "drop", "dates": None, "random_state": 0, "n_jobs": None,
    "progress": None, **{old: "deprecated" for old in renamed},
}


class Summary(str):
    """A table as text, which notebooks show with its columns aligned."""

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self)}</pre>"


@takes_options(_own, _options)
class ShuffledRegressor(RegressorMixin, BaseEstimator):
    """Fits a regression and the row links together.

    ``fit(X, y)`` takes one table whose response may be (partly) shuffled against the rows; ``fit_tables`` takes two
    tables of any lengths whose rows are not linked. ``predict`` takes complete rows.

    Parameters
    ----------
    method : how rows are linked: "auto" examines the data and explains its choice; see docs/methods.
    model : "linear", "sine", "spline:K" with K knots per feature; for points in the plane or in space "rigid",
        "similarity" or "affine".
    fit_intercept : whether the model has an intercept (never with "sine").
    hint : "rows" when row i of one table probably belongs to row i of the other, "none" when the order means nothing;
        "auto": rows for ``fit``, nothing known for ``fit_tables``.
    missing : rows of data frames with missing cells: "drop", "error", or "indicator" for the mean and a column that marks it.
    dates : "day-first" or "month-first", for texts such as 3/4/2024 of which no cell tells.
    random_state : the seed of everything random, or a NumPy generator to draw it from; None draws a new one every time.
    n_jobs : threads; None or -1 for all; the answer does not depend on it.
    progress : a function of (done, total), which stops the fit by returning False; True for a bar (needs tqdm).

    Options of the methods; one that the chosen method does not read is an error:

    {options}

    Data frames (pandas, polars, pyarrow, ...) may hold text, truth values and missing cells, which are treated as on the command
    line and reported by a ``TableWarning``; ``predict`` takes them as they are.

    Attributes
    ----------
    coef_, intercept_ : of the model's columns, one row per output when there are several.
    coef_names_ : what they belong to: the columns of data frames, else x1, ..., z1, ...
    coefficients_, std_errors_ : by name; a standard error is None when the method has none.
    intervals_ : by name, both ends of the 95 % interval; ``intervals(level)`` for another.
    verdict_ : "identified", "weakly identified", "not identifiable" or "not assessed".
    alternatives_ : other coefficients that explain the data, each as a dict.
    vcov_ : covariance of all parameters in the order of parameter_names_; None when the method has none.
    notes_ : what was left out or coded, one sentence each.
    result_ : everything ``unshuffle fit --json`` says.
    pairs_ : one-to-one links with their probabilities, as an array with the fields response_row, feature_row and
        probability; rows without a partner are in unmatched_responses_ and unmatched_features_.
    trace_ : one row per outer iteration: start, iteration, epsilon, objective, gradient norm, marginal error, inner
        iterations.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, soft_groups: Any = None, known: Any = None,
            prior: Any = None, **facts: Any) -> Any:
        """One table: row i of X probably belongs to y[i], but some or all of y may be shuffled.

        groups: only rows of the same group may have swapped responses: labels of the rows, or in data frames the name of a
            column of X, or a list of names. soft_groups: (column, rate), true partners agree at this rate.
        known, prior and facts: as for ``fit_tables``.
        """
        by_name = _names_columns(groups, X)
        if soft_groups is not None or by_name or is_frame(X) and not (is_plain(X) and (not is_frame(y) or is_plain(y))):
            _refuse_facts(facts)
            labels = groups if groups is None or by_name else (groups, groups)
            return self._fit_coded([y], X, one_table=True, response_weights=sample_weight, groups=labels, soft_groups=soft_groups,
                                   known=known, prior=prior)
        names, y_names = names_of(X), names_of(y)
        X, y = validated_pair(self, X, y)
        sample_weight = None if sample_weight is None else row_weights(sample_weight, X)
        response_groups, feature_groups = codes_of(None if groups is None else (groups, groups))
        problem = _problem(y, None, X, y_names, [], names, response_weights=sample_weight, feature_weights=sample_weight,
                           response_groups=response_groups, feature_groups=feature_groups, prior=prior,
                           **_facts(len(X), known=known, **facts))
        return self._fit(problem, one_table=True)

    def fit_tables(
        self, *, y: Any, z: Any, x: Any = None, formula: str | None = None, response_weights: Any = None, feature_weights: Any = None,
        groups: Any = None, soft_groups: Any = None, known: Any = None, prior: Any = None, **facts: Any,
    ) -> Any:
        """Two tables: y (and x, features in the same table) of n rows, z of m rows.

        formula: "log(wage) ~ age + C(region)" of columns of the frames y and z.
        groups: labels of the responses and labels of the features; only rows with equal labels may match. In data frames the
            name of a column, a pair of names where they differ, or a list of these.
        soft_groups: (column, rate) or (column of y or x, column of z, rate): true partners agree at this rate.
        known: pairs (response row, feature row) that are certain.
        prior: (response row, feature row, weight): the prior odds of that pair relative to those not listed.
        facts: arrays of an entry per row: offset of the features (feature_offset) or of the responses (offset), trials
        of the responses, event (1: the response is the time of an event, 0: it was only observed until then); and for links in the order given safe (true: right), mismatch (columns their odds depend on),
        link_probability, wrong_rate (also one number), with audit, how many links were examined to find that rate.
        """
        tables = [table for table in (y, x, z) if table is not None]
        by_name = isinstance(groups, (str, list)) or (isinstance(groups, tuple) and isinstance(groups[0], str))
        coded = formula is not None or by_name or soft_groups is not None
        if coded or any(is_frame(table) and not is_plain(table) for table in tables):
            _refuse_facts(facts)
            return self._fit_coded(
                tables[:-1], tables[-1], formula=formula, response_weights=response_weights, feature_weights=feature_weights,
                groups=groups, soft_groups=soft_groups, known=known, prior=prior,
            )
        names = [names_of(table) for table in (y, x, z)]
        response_groups, feature_groups = codes_of(groups)
        problem = _problem(
            matrix_of(y, "y"), None if x is None else matrix_of(x, "x"), matrix_of(z, "z"), *names,
            response_weights=response_weights, feature_weights=feature_weights,
            response_groups=response_groups, feature_groups=feature_groups, prior=prior,
            **_facts(len(y), known=known, **facts),
        )
        in_frames = bool(names[2]) and (x is None or bool(names[1]))
        return self._fit(problem, one_table=False, named=in_frames)

    def _fit_coded(
        self, left: list[Any], right: Any, *, one_table: bool = False, formula: str | None = None, response_weights: Any = None,
        feature_weights: Any = None, groups: Any = None, soft_groups: Any = None, known: Any = None, prior: Any = None,
    ) -> Any:
        """Frames whose columns have to be coded, or are named by a formula or as keys."""
        sides = [columns_or_array(table, prefix) for table, prefix in zip([*left, right], ["y", *["x"] * (len(left) - 1), "z"])]
        keys, labels = key_names(groups)
        soft_keys = [tuple(one) if len(one) == 3 else (one[0], one[0], one[1]) for one in soft_groups or []]
        taken = [{key[0] for key in [*keys, *soft_keys]}, {key[1] for key in [*keys, *soft_keys]}]
        features = [name for name, _ in sides[-1] if name not in taken[1]]
        responses = [column for side in sides[:-1] for column in side]
        if labels is not None:
            keys = [("(groups)", "(groups)")]
            for side, codes in zip((responses,) if one_table else (responses, sides[-1]), codes_of(labels)):
                side.append(("(groups)", np.asarray(codes, float)))
        for side, weights in ((responses, response_weights), (sides[-1], feature_weights)):
            if weights is not None:
                side.append(("(weights)", np.ascontiguousarray(weights, float)))
        choice = {"response": None, "x": None, "z": None, "formula": formula or "", "groups": keys, "soft_groups": soft_keys,
                  "weights": "" if response_weights is None and feature_weights is None else "(weights)"}
        if formula is None:
            choice["response"] = [name for name, _ in sides[0] if name not in taken[0]]
            choice["x"] = [name for name, _ in sides[1] if name not in taken[0]] if len(left) > 1 else []
            choice["z"] = features
        rows_first = self.hint == "rows" or (self.hint == "auto" and one_table)
        prepared = _core.prepare_tables([*responses, *sides[-1]] if one_table else responses, None if one_table else sides[-1], choice,
                                        missing=self.missing, dates=self.dates, in_order=rows_first)
        prepared.link([] if known is None else _pairs(known, "known"), _odds(prior))
        for note in prepared.notes:
            warnings.warn(note, TableWarning, stacklevel=3)
        intercept = self.fit_intercept if formula is None else _core.parse_formula(formula)[1]
        return self._fit(prepared.problem, one_table, named=formula is None, prepared=prepared, intercept=intercept,
                         given_names=[*(choice["x"] or []), *features])

    def predict(self, X: Any, return_std: Any = False, *, offset: Any = None, trials: Any = None) -> Any:
        """The response of complete rows: the columns of x (if there were any), then those of z. A fit with an offset or
        trials needs those of these rows.

        With return_std also the standard errors of the predictions, which the noise of a new response comes on top of.
        """
        facts = _row_facts(offset=offset, trials=trials)
        if not return_std:
            return self._predicted(X, lambda x, z: (self._fitted.predict(x, z, facts),))[0]
        return self._predicted(X, lambda x, z: self._fitted.predict_with_intervals(x, z, 0.95, facts))[:2]

    def predict_interval(self, X: Any, level: Any = 0.95, *, offset: Any = None, trials: Any = None) -> Any:
        """Both ends of the intervals that hold this share of new responses at these rows."""
        facts = _row_facts(offset=offset, trials=trials)
        return self._predicted(X, lambda x, z: self._fitted.predict_with_intervals(x, z, level, facts))[2:]

    def intervals(self, level: Any = 0.95) -> Any:
        """Both ends of every coefficient's interval, by name."""
        check_is_fitted(self)
        return dict(zip(self._fitted.names, self._fitted.intervals(level).tolist()))

    def conf_int(self, level: float = 0.95) -> np.ndarray:
        """Both ends of every parameter's interval, a row each in the order of parameter_names_."""
        check_is_fitted(self)
        return np.asarray(self._fitted.intervals(level))

    def wald_test(self, hypothesis: Any, value: Any = 0.0) -> dict[str, float]:
        """Whether parameters have the values that are given, all together: statistic, degrees of freedom and p value.

        hypothesis: a name, several names, or a matrix with a row for every linear combination of the parameters.
        """
        check_is_fitted(self)
        if self.vcov_ is None:
            raise ValueError("the fit has no standard errors, so nothing can be tested; summary() says why")
        names = list(self.parameter_names_)
        if isinstance(hypothesis, str):
            hypothesis = [hypothesis]
        if isinstance(hypothesis[0], str):
            unknown = [name for name in hypothesis if name not in names]
            if unknown:
                raise ValueError(f"there is no parameter {unknown[0]}; there are {', '.join(names)}")
            hypothesis = [[float(name == one) for name in names] for one in hypothesis]
        rows = np.atleast_2d(np.asarray(hypothesis, float))
        if rows.shape[1] != len(names):
            raise ValueError(f"the hypothesis has {rows.shape[1]} columns; one for each of {len(names)} parameters was expected")
        apart = rows @ np.asarray(self._fitted.parameters) - np.asarray(value, float)
        covariance = rows @ self.vcov_ @ rows.T
        statistic = float(apart @ np.linalg.solve(covariance, apart))
        return {"statistic": statistic, "df": len(rows), "p_value": float(stats.chi2.sf(statistic, len(rows)))}

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, linked: bool = False, known: Any = None) -> float:
        """How much of the distribution of y the fit explains, at most 1.

        Rows of X and y need not belong together: the distribution of predictions with the fit's noise is compared with that of y,
        1 - (squared Wasserstein distance) / (variance of y), averaged over responses. It does not see which row has which response:
        a wrong fit can have the right distribution. linked=True gives R² of rows that do belong together, and known, pairs (row
        of y, row of X), R² of these pairs.
        """
        if known is not None:
            rows = np.asarray(_pairs(known, "known"))
            if len(rows) < 2:
                raise ValueError(f"known: {len(rows)} pairs; R² needs at least two")
            weights = None if sample_weight is None else np.asarray(sample_weight, float)[rows[:, 0]]
            return float(r2_score(np.asarray(y, float)[rows[:, 0]], np.asarray(self.predict(X))[rows[:, 1]], sample_weight=weights))
        if linked:
            return float(super().score(X, y, sample_weight))
        predicted = np.asarray(self.predict(X)).reshape(len(X), -1)
        observed = np.asarray(y, float).reshape(len(predicted), -1)
        weights = None if sample_weight is None else np.asarray(sample_weight, float)
        covariance = self.result_.get("noise_covariance")
        noise = np.full(observed.shape[1], self.result_["noise_sd"]) if covariance is None else np.sqrt(np.diag(covariance))
        return float(np.mean([_explained(predicted[:, k], observed[:, k], noise[k], weights)
                              for k in range(observed.shape[1])]))

    def _predicted(self, X: Any, predict: Any) -> Any:
        check_is_fitted(self)
        if self._coded:
            if not is_frame(X):
                raise ValueError("the fit was to data frames whose columns were coded; predict needs a frame with these columns")
            x, z = _core.code_rows(self._fitted, columns_of(X))
        else:
            X = validated(self, X)
            x_count = len(self.result_["columns"]["x"])
            x, z = X[:, :x_count], X[:, x_count:]
        arrays = predict(x, z)
        return tuple(arrays if self._several_outputs else (array[:, 0] for array in arrays))

    def summary(self) -> Summary:
        """A table in the style of statsmodels."""
        check_is_fitted(self)
        return Summary(self._summary)

    def to_json(self) -> str:
        """A fit.json for ``unshuffle predict`` and ``unshuffle match``."""
        check_is_fitted(self)
        return self._json

    @classmethod
    def from_json(cls, text: str | os.PathLike[str]) -> ShuffledRegressor:
        """The fit that to_json() or ``unshuffle fit --out`` wrote: the text itself, or the path of the file."""
        if not str(text).lstrip().startswith("{"):
            with open(text, encoding="utf-8") as file:
                text = file.read()
        fitted = _core.Fitted.from_json(str(text))
        said = json.loads(str(text))
        model = cls()
        model.method, model.model, model.fit_intercept = said["method"], said["model"], said["has_intercept"]
        model._json, model._summary, model._page, model._rows = str(text), "", None, None
        model._remember(fitted, len(said["columns"]["response"]), said)
        names = [*said["columns"]["x"], *said["columns"]["z"]]
        model.n_features_in_ = len(names)
        model._restored = True
        return model

    def report(self, path: str | os.PathLike[str], truth: Any = None) -> None:
        """Writes one HTML page with the verdict, pictures and numbers, as ``unshuffle fit --report``.

        truth: pairs (response row, feature row) that are right, to hold match probabilities against; not after pickling.
        """
        check_is_fitted(self)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._report([] if truth is None else _pairs(truth, "truth")))

    def _report(self, truth: list[tuple[int, int]]) -> str:
        if not self._restored:
            return str(self._fitted.report(truth))
        if self._page is None:
            raise ValueError("a report needs the tables of the fit, which fit.json does not have")
        if truth:
            raise ValueError("the truth can be compared with by the original fit only; this one was unpickled")
        return zlib.decompress(self._page).decode()

    def plot_coefficients(self, ax: Any = None, level: float = 0.95) -> Any:
        """Coefficients with their intervals; see ``unshuffle.plots``."""
        return plots.plot_coefficients(self, ax, level)

    def plot_distribution(self, ax: Any = None) -> Any:
        """Observed against predicted distribution of the response."""
        return plots.plot_distribution(self, ax)

    def plot_links(self, ax: Any = None) -> Any:
        """How certain the links are."""
        return plots.plot_links(self, ax)

    def plot_landscape(self, ax: Any = None) -> Any:
        """The objective around the answer."""
        return plots.plot_landscape(self, ax)

    def match(self, samples: int | None = None, *, random_state: int = 0) -> Any:
        """One-to-one links, unmatched responses and unmatched features, by rows of the tables as given.

        samples=M: instead M complete sets of links drawn from their posterior, a list of arrays with the fields response_row and
        feature_row. Repeat an analysis on each and pool the results: ``unshuffle.pool``.
        """
        return self._matching if samples is None else self._drawn(samples, random_state)

    def _drawn(self, samples: int, seed: int) -> list[np.ndarray]:
        check_is_fitted(self)
        if self._restored:
            raise ValueError("drawing links needs the tables of the fit, which fit.json does not have; unshuffle match --samples reads both")
        drawn = self._fitted.sample_links(samples, seed).astype(int)
        links = np.empty(len(drawn), [("response_row", np.int64), ("feature_row", np.int64)])
        for side, field in enumerate(("response_row", "feature_row")):
            rows = drawn[:, side + 1]
            links[field] = self._rows[side][0][rows] if self._rows else rows
        return [links[drawn[:, 0] == k] for k in range(samples)]

    @cached_property
    def _matching(self) -> Any:
        check_is_fitted(self)
        pairs, responses, features = self._fitted.match()
        linked = np.empty(len(pairs), _pair)
        for at, field in enumerate(("response_row", "feature_row", "probability")):
            linked[field] = pairs[:, at]
        unmatched = [np.asarray(responses, int), np.asarray(features, int)]
        for side, field in enumerate(("response_row", "feature_row") if self._rows else ()):
            kept, count = self._rows[side]
            dropped = np.setdiff1d(np.arange(count), kept)
            linked[field] = kept[linked[field]]
            unmatched[side] = np.sort(np.concatenate([kept[unmatched[side]], dropped]))
        return linked, unmatched[0], unmatched[1]

    @property
    def pairs_(self) -> Any:
        return self._matching[0]

    @property
    def unmatched_responses_(self) -> Any:
        return self._matching[1]

    @property
    def unmatched_features_(self) -> Any:
        return self._matching[2]

    def _fit(self, problem: Any, one_table: bool, named: bool = False, prepared: Any = None, intercept: Any = None, given_names: Any = ()) -> Any:
        self.__dict__.pop("_matching", None)
        if self.hint not in ("auto", "rows", "none"):
            raise ValueError(f"hint = {self.hint} must be one of auto, rows, none")
        problem.hint = "rows" if self.hint == "auto" and one_table else self.hint
        seed, threads = seed_of(value_of(self, "random_state")), threads_of(value_of(self, "n_jobs"))
        with reporting(self.progress) as progress:
            fitted = _core.fit(
                problem, model=self.model, intercept=self.fit_intercept if intercept is None else intercept, method=self.method,
                options=given(self, _options), seed_and_threads=(seed, threads), one_table=one_table, progress=progress,
            )
        self._rows: Any = None
        self.notes_: list[str] = []
        if prepared is not None:
            fitted.remember(prepared, one_table)
            self._remember_rows(prepared)
            self.n_features_in_ = len(given_names)
            self.__dict__.pop("feature_names_in_", None)
            if named:
                self.feature_names_in_ = np.asarray(given_names, object)
        elif not one_table:
            self._remember_columns(problem, named)
        self._json, self._summary = fitted.to_json(), fitted.summary()
        self._page: Any = None
        self._remember(fitted, len(problem.y_names), json.loads(self._json))
        self._warn()
        return self

    def _remember_rows(self, prepared: Any) -> None:
        self.notes_ = list(prepared.notes)
        kept = [(prepared.response_rows, prepared.response_count), (prepared.feature_rows, prepared.feature_count)]
        self._rows = [(rows.astype(int), count) for rows, count in kept]

    def _remember_columns(self, problem: Any, named: bool) -> None:
        columns = problem.x_names + problem.z_names
        self.n_features_in_ = len(columns)
        self.__dict__.pop("feature_names_in_", None)
        if named:
            self.feature_names_in_ = np.asarray(columns, object)

    def _remember(self, fitted: Any, outputs: int, result: Any) -> None:
        self._fitted = fitted
        self._restored = False
        self._several_outputs = outputs > 1
        self.result_ = result
        self._coded = "codes" in result["columns"] or "formula" in result["columns"]
        self.parameter_names_ = np.asarray(fitted.names, object)
        covariance = np.asarray(fitted.covariance)
        self.vcov_ = covariance if covariance.size else None
        self.verdict_ = result["identifiable"]["verdict"]
        self.alternatives_ = result["identifiable"]["alternatives"]
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

    def _warn(self) -> None:
        if self.result_["status"] != "converged":
            warnings.warn(self.result_["message"], ConvergenceWarning, stacklevel=4)
        identifiable = self.result_["identifiable"]
        if identifiable["verdict"] == "not identifiable":
            warnings.warn(f"not identifiable: {identifiable['reason']}", ConvergenceWarning, stacklevel=4)

    def __getstate__(self) -> Any:
        if hasattr(self, "_fitted"):
            if not self._restored:  # computed now, because the tables are not pickled
                self._matching  # noqa: B018
                self._page = zlib.compress(self._fitted.report([]).encode())
        state = super().__getstate__().copy()
        state.pop("_fitted", None)
        return state

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if "_json" in state:
            self._fitted = _core.Fitted.from_json(self._json)
            self._restored = True

    def __sklearn_is_fitted__(self) -> Any:
        return hasattr(self, "_json")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _more_tags(self) -> Any:  # scikit-learn before 1.6
        return {"multioutput": True}


@takes_options({"unmatched": 0.2, "rho1": None, "rho2": None, **_own, "method": "robot-robust"}, _options)
class RobustShuffledRegressor(ShuffledRegressor):
    """As ShuffledRegressor with method "robot-robust": rows without a partner may stay unmatched.

    unmatched is the share of the smaller table that may (of the larger, also its surplus rows); rho1 and rho2 say
    instead how far the sums of the plan may leave the weights of the responses and of the features, as a squared distance,
    0 for not at all. The other parameters are those of ShuffledRegressor.
    """


def _names_columns(groups: Any, table: Any) -> bool:
    """Whether groups are columns of the frame, and not a label of every row."""
    if isinstance(groups, str):
        return True
    return isinstance(groups, list) and is_frame(table) and all(isinstance(one, str) and one in names_of(table) for one in groups)


def _pairs(pairs: Any, name: Any) -> Any:
    return [(row_number(i, name), row_number(j, name)) for i, j in pairs]


def _odds(prior: Any) -> Any:
    return [] if prior is None else [(*_pairs([pair], "prior")[0], float(weight)) for *pair, weight in prior]


def _explained(predicted: np.ndarray, observed: np.ndarray, noise: float, weights: np.ndarray | None) -> float:
    """1 - W²(predictions with noise, observations) / variance, both by their quantiles."""
    steps = 32  # of the noise, at the middles of equal shares of its law
    noisy = np.sort((predicted[:, None] + noise * stats.norm.ppf((np.arange(steps) + 0.5) / steps)).ravel())
    weights = np.ones(len(observed)) if weights is None else weights
    order = np.argsort(observed, kind="stable")
    ends = np.cumsum(weights[order]) / weights.sum()
    middles = (np.arange(len(noisy)) + 0.5) / len(noisy)
    apart = noisy - observed[order][np.minimum(np.searchsorted(ends, middles), len(observed) - 1)]
    variance = np.average((observed - np.average(observed, weights=weights)) ** 2, weights=weights)
    return float(1 - np.mean(apart**2) / variance) if variance > 0 else float("nan")


def _refuse_facts(facts: dict[str, Any]) -> None:
    """Rows of frames whose columns are coded may be dropped on the way; arrays beside them would no longer fit."""
    if facts:
        raise ValueError(f"{', '.join(facts)}: can be given with columns of numbers only, without a formula or keys by name")


def _row_facts(*, offset: Any = None, feature_offset: Any = None, trials: Any = None, event: Any = None, mismatch: Any = None, wrong_rate: Any = None,
               audit: Any = 0) -> Any:
    facts = _core.RowFacts()
    given = {"response_offset": offset, "feature_offset": feature_offset, "trials": trials, "event": event, "wrong_rate": wrong_rate}
    for name, values in given.items():
        if values is not None:
            refuse_masked(values, name)
            setattr(facts, name, np.asarray(values, float))
    if mismatch is not None:
        facts.mismatch, facts.mismatch_names = mismatch
    facts.audit = float(audit)
    return facts


def _mismatch(rows: int, mismatch: Any, link_probability: Any) -> Any:
    """Columns on which the odds of a wrong link depend, with their names; a probability by its log odds."""
    columns, names = [], []
    if link_probability is not None:
        probability = np.asarray(link_probability, float)
        if not ((probability >= 0) & (probability <= 1)).all():
            raise ValueError("link_probability must be within 0 and 1")
        kept = probability.clip(1e-6, 1 - 1e-6)
        columns.append(np.log(kept / (1 - kept)).reshape(rows, 1))
        names.append("logit(link_probability)")
    if mismatch is not None:
        values = np.asarray(mismatch, float).reshape(rows, -1)
        columns.append(values)
        names += names_of(mismatch) or [f"mismatch{k + 1}" for k in range(values.shape[1])]
    return (np.hstack(columns), names) if columns else None


def _facts(rows: int, *, known: Any = None, safe: Any = None, mismatch: Any = None, link_probability: Any = None,
           wrong_rate: Any = None, **others: Any) -> dict[str, Any]:
    """What is known of rows, as arguments of _problem."""
    if safe is not None:
        known = [*(known or []), *((int(row), int(row)) for row in np.flatnonzero(np.asarray(safe)))]
    if wrong_rate is not None:
        wrong_rate = np.broadcast_to(np.asarray(wrong_rate, float), (rows,)).copy()
    return {
        "known": known,
        "facts": _row_facts(mismatch=_mismatch(rows, mismatch, link_probability), wrong_rate=wrong_rate, **others),
    }


def _problem(y: Any, x: Any, z: Any, y_names: Any, x_names: Any, z_names: Any, *, response_weights: Any = None, feature_weights: Any = None, response_groups: Any = (),
             feature_groups: Any = (), known: Any = None, prior: Any = None, facts: Any = None) -> Any:
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
        prior=_odds(prior),
        facts=_core.RowFacts() if facts is None else facts,
    )
