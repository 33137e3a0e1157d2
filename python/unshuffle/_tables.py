"""Converts users' tables for the compiled part."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_array

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn before 1.6: a method of the estimator

    def validate_data(estimator, X, y="no_validation", **options):
        return estimator._validate_data(X, y, **options)


def validated(estimator, X):
    """Rows to predict, checked against the fitted columns."""
    return validate_data(estimator, X, reset=False, dtype=np.float64)


def validated_pair(estimator, X, y):
    """Table and responses of equal length; remembers the columns."""
    X, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True, multi_output=True, ensure_min_samples=2)
    return X, y.astype(np.float64, copy=False)


def matrix_of(table, name: str):
    """Rows × columns of float64; the array itself where it is one already."""
    return check_array(table, dtype=np.float64, ensure_2d=False, ensure_min_samples=2, input_name=name, order=None).reshape(
        len(table), -1
    )


def column_names(table) -> list[str]:
    """Column names of a data frame or series; empty for anything without them."""
    columns = getattr(table, "columns", None)
    if columns is not None:
        return [str(name) for name in columns]
    name = getattr(table, "name", None)
    return [] if name is None else [str(name)]


def codes_of(groups):
    """Labels of any kind on both sides as integers, equal where the labels are equal."""
    if groups is None:
        return [], []
    responses, features = (np.asarray(labels) for labels in groups)
    for labels, side in ((responses, "responses"), (features, "features")):
        missing = [row for row, label in enumerate(labels) if label is None or label != label or label == ""]
        if missing:
            raise ValueError(
                f"groups of the {side}: row {missing[0]} has no label ({len(missing)} of {len(labels)} rows); "
                "fill it in or drop the rows"
            )
    _, codes = np.unique(np.concatenate([responses, features]), return_inverse=True)
    return codes[: len(responses)].tolist(), codes[len(responses) :].tolist()
