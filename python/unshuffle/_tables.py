"""Converts users' tables for the compiled part."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array

from ._frames import columns_of, is_frame

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn before 1.6: a method of the estimator

    def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        return estimator._validate_data(X, y, **options)


def refuse_masked(table: Any, name: str) -> None:
    """What a mask covers has no value, and nothing here could stand for it."""
    if np.ma.is_masked(table):
        row = int(np.argwhere(np.atleast_1d(np.ma.getmaskarray(table)))[0][0])
        raise ValueError(f"{name} is a masked array whose row {row} is masked; fill masked entries in or leave their rows out")


def row_number(value: Any, name: str) -> int:
    """A row, counted from 0; 3.0 is one and 0.5 is none."""
    if value != value or int(value) != value:
        raise ValueError(f"{name}: {value} is not the number of a row; a whole number was expected")
    return int(value)


def validated(estimator: Any, X: Any) -> Any:
    """Rows to predict, checked against the fitted columns."""
    refuse_masked(X, "X")
    return validate_data(estimator, X, reset=False, dtype=np.float64)


def validated_pair(estimator: Any, X: Any, y: Any) -> Any:
    """Table and responses of equal length; remembers the columns."""
    refuse_masked(X, "X")
    refuse_masked(y, "y")
    X, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True, multi_output=True, ensure_min_samples=2)
    return X, y.astype(np.float64, copy=False)


def row_weights(weights: Any, X: Any) -> Any:
    """One for each row of X, some of them above 0."""
    weights = _check_sample_weight(weights, X, dtype=np.float64)
    if not weights.any():
        raise ValueError("sample_weight: every weight is zero; at least one above zero was expected")
    return weights


def matrix_of(table: Any, name: str) -> Any:
    """Rows × columns of float64; the array itself where it is one already."""
    refuse_masked(table, name)
    return check_array(table, dtype=np.float64, ensure_2d=False, ensure_min_samples=2, input_name=name, order=None).reshape(
        len(table), -1
    )


def columns_or_array(table: Any, prefix: str) -> Any:
    """Columns of a frame, or of an array, whose columns are numbered."""
    if is_frame(table):
        return columns_of(table)
    array = matrix_of(table, prefix)
    names = ["y"] if prefix == "y" and array.shape[1] == 1 else [f"{prefix}{k + 1}" for k in range(array.shape[1])]
    return [(name, np.ascontiguousarray(array[:, k])) for k, name in enumerate(names)]


def key_names(groups: Any) -> Any:
    """Groups as pairs of column names, and as labels where they are labels."""
    if groups is None:
        return [], None
    if isinstance(groups, str):
        return [(groups, groups)], None
    if isinstance(groups, tuple) and not isinstance(groups[0], str):
        return [], groups
    if isinstance(groups, tuple):
        return [groups], None
    return [(one, one) if isinstance(one, str) else tuple(one) for one in groups], None


def codes_of(groups: Any) -> Any:
    """Labels of any kind on both sides as integers, equal where the labels are equal."""
    if groups is None:
        return [], []
    responses, features = groups
    refuse_masked(responses, "groups of the responses")
    refuse_masked(features, "groups of the features")
    responses, features = np.asarray(responses), np.asarray(features)
    for labels, side in ((responses, "responses"), (features, "features")):
        missing = [row for row, label in enumerate(labels) if label is None or label != label or label == ""]
        if missing:
            raise ValueError(
                f"groups of the {side}: row {missing[0]} has no label ({len(missing)} of {len(labels)} rows); "
                "fill it in or drop the rows"
            )
    _, codes = np.unique(np.concatenate([responses, features]), return_inverse=True)
    return codes[: len(responses)].tolist(), codes[len(responses) :].tolist()
