"""The values of a regressor's ``progress``: None, True for a tqdm bar, or a function of (done, total)."""

from __future__ import annotations

from typing import Any

from contextlib import contextmanager


@contextmanager
def reporting(progress: Any) -> Any:
    """The function to call with (done, total), or None."""
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    else:
        with _bar() as bar:

            def update(done: float, total: float) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield update


def _bar() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as missing:
        raise ImportError("progress=True needs the package tqdm; or give a function of (done, total)") from missing
    return tqdm(unit="step", leave=False)
