from __future__ import annotations

from typing import Any

import warnings

from ._core import Transport, TransportPlan


def transport(cost: Any, epsilon: float = 1e-2, *, row_weights: Any = None, column_weights: Any = None, **options: Any) -> TransportPlan:
    """The entropic transport plan of a cost (n×m), or of a batch of them (k×n×m).

    epsilon is the smoothing, relative to the largest \\|cost\\| unless relative=False. The options are those of
    `Transport`, which solves a series of similar problems faster.
    """
    plan = Transport(epsilon, **options).solve(cost, row_weights, column_weights)
    if not plan.converged:
        from ._warnings import ConvergenceWarning  # needs scikit-learn

        warnings.warn(plan.message, ConvergenceWarning, stacklevel=2)
    return plan
