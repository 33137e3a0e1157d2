"""Regression when the links between the rows of two tables are lost."""

from typing import TYPE_CHECKING

from . import _build

_build.load_fastest()

from ._core import (  # noqa: E402
    Ball,
    Exact,
    FcsFile,
    Free,
    KullbackLeibler,
    Sampled,
    Simulation,
    Transport,
    TransportPlan,
    read_fcs,
    simulate,
)
from ._core import __version__  # type: ignore[attr-defined]  # noqa: E402
from ._pool import Pooled, pool  # noqa: E402
from ._tracking import evaluate_tracking  # noqa: E402
from ._transport import transport  # noqa: E402

if TYPE_CHECKING:
    from ._warnings import ConvergenceWarning, TableWarning
    from .regressor import RobustShuffledRegressor, ShuffledRegressor

__all__ = [
    "Ball",
    "ConvergenceWarning",
    "Exact",
    "FcsFile",
    "Free",
    "KullbackLeibler",
    "Pooled",
    "RobustShuffledRegressor",
    "Sampled",
    "ShuffledRegressor",
    "Simulation",
    "TableWarning",
    "Transport",
    "TransportPlan",
    "__version__",
    "evaluate_tracking",
    "pool",
    "read_fcs",
    "simulate",
    "transport",
]

# What needs scikit-learn is loaded when it is asked for: importing that takes longer than all the rest.
_LATER = {
    "ConvergenceWarning": "_warnings",
    "RobustShuffledRegressor": "regressor",
    "ShuffledRegressor": "regressor",
    "TableWarning": "_warnings",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LATER[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
