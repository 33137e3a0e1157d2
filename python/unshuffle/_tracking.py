from __future__ import annotations

import os
from typing import Any
import warnings

from . import _core


def evaluate_tracking(truth: str | os.PathLike[str], results: str | os.PathLike[str], benchmark: str = "auto") -> dict[str, Any]:
    """Tracking results against ground truth in MOTChallenge files, as ``unshuffle evaluate --json``.

    truth is a folder of sequences, one sequence folder or a gt.txt; results a folder with SEQUENCE.txt or one file.
    Gives every number by sequence and name; COMBINED adds the counts of all sequences before dividing.
    """
    numbers, notes = _core.evaluate_tracking(truth, results, benchmark)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return numbers
