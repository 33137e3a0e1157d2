"""Regression when the links between the rows of two tables are lost."""

from ._core import (
    Ball,
    Exact,
    FcsFile,
    Free,
    KullbackLeibler,
    Sampled,
    Simulation,
    Transport,
    TransportPlan,
    __version__,
    read_fcs,
    simulate,
)
from ._tracking import evaluate_tracking
from ._transport import transport
from ._warnings import ConvergenceWarning
from .regressor import RobustShuffledRegressor, ShuffledRegressor

__all__ = [
    "Ball",
    "ConvergenceWarning",
    "Exact",
    "FcsFile",
    "Free",
    "KullbackLeibler",
    "RobustShuffledRegressor",
    "Sampled",
    "ShuffledRegressor",
    "Simulation",
    "Transport",
    "TransportPlan",
    "__version__",
    "evaluate_tracking",
    "read_fcs",
    "simulate",
    "transport",
]
