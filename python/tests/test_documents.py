import subprocess
import sys
from pathlib import Path

import pytest

import unshuffle

sys.path.append(str(Path(__file__).parents[2] / "tests" / "documents"))
import fixtures  # noqa: E402

examples = [
    pytest.param(block, id=f"{document.stem}-{at}")
    for document in fixtures.DOCUMENTS
    for at, block in enumerate(fixtures.blocks(document, "python"))
]


def prepare(folder):
    """What the shell examples before the Python ones leave behind."""
    fixtures.write(folder)
    (folder / "results").mkdir()
    truth = folder / "MOT15" / "train" / "ETH-Sunnyday" / "gt" / "gt.txt"
    (folder / "results" / "ETH-Sunnyday.txt").write_text(truth.read_text())
    from test_data import fcs

    (folder / "cells").mkdir()
    (folder / "cells" / "features.fcs").write_bytes(fcs([[1, 2], [3, 4]], ["z1", "z2"]))


@pytest.mark.parametrize("block", examples)
def test_python_example(block, tmp_path):
    for package in ("torch", "pandas"):
        if f"import {package}" in block:
            pytest.importorskip(package, reason=f"{package} is not installed")
    prepare(tmp_path)
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr


def test_there_are_examples():
    assert len(examples) >= 5 and unshuffle.__version__
