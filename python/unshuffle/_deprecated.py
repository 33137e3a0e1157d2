"""Names of parameters that were others before."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

#: Old name → the name scikit-learn has for it.
renamed = {"seed": "random_state", "threads": "n_jobs", "max_iterations": "max_iter"}


def value_of(estimator: Any, name: str) -> Any:
    """The parameter, or what was given under its old name."""
    old = next(old for old, new in renamed.items() if new == name)
    given = getattr(estimator, old, "deprecated")
    if isinstance(given, str) and given == "deprecated":
        return getattr(estimator, name)
    warnings.warn(f"{old} is called {name} now; the old name goes with the next release", FutureWarning, stacklevel=5)
    return given


def seed_of(random_state: Any) -> int:
    """A number as it is; a random state draws one; None draws one that is different every time."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**32))
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        draw = random_state.integers if isinstance(random_state, np.random.Generator) else random_state.randint
        return int(draw(2**31 - 1))
    return int(random_state)


def threads_of(n_jobs: Any) -> int:
    """None and -1 are all processors, -2 all but one, as joblib counts them; 0 is all too."""
    import os

    jobs = 0 if n_jobs is None else int(n_jobs)
    return jobs if jobs >= 0 else max(1, (os.cpu_count() or 1) + 1 + jobs) if jobs < -1 else 0
