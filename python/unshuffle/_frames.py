"""Data frames of any kind (pandas, polars, pyarrow and others that narwhals knows) as columns for the compiled part."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

#: A name, and float64 numbers or texts; an empty text is a missing cell.
Columns = list[tuple[str, Any]]


def frame_of(table: Any) -> nw.DataFrame[Any] | None:
    """A data frame, or a series as one; None: it is neither."""
    made = nw.from_native(table, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(made, nw.Series):
        return made.alias(str(made.name or "y")).to_frame()
    return made if isinstance(made, nw.DataFrame) else None


def is_frame(table: Any) -> bool:
    return frame_of(table) is not None


def columns_of(table: Any) -> Columns:
    """Every column of a frame."""
    frame = frame_of(table)
    assert frame is not None
    return [(str(series.name), _cells(series)) for series in frame.iter_columns()]


def names_of(table: Any) -> list[str]:
    """The names of its columns; none: it is no frame."""
    frame = frame_of(table)
    return [] if frame is None else [str(name) for name in frame.columns]


def is_plain(table: Any) -> bool:
    """Whether every cell is a number, so that nothing has to be coded."""
    frame = frame_of(table)
    assert frame is not None
    return all(series.dtype.is_numeric() and not np.isnan(_numbers(series)).any() for series in frame.iter_columns())


def _numbers(series: Any) -> np.ndarray:
    return np.ascontiguousarray(series.cast(nw.Float64).to_numpy(), float)


def _cells(series: Any) -> np.ndarray | list[str]:
    if series.dtype.is_numeric():
        return _numbers(series)
    return ["" if _is_missing(cell) else str(cell) for cell in series.to_list()]


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and cell != cell) or str(cell) in ("<NA>", "NaT")
