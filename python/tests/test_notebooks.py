import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))
from notebooks import difference, stable_lines  # noqa: E402

notebooks = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", notebooks, ids=lambda notebook: notebook.stem)
def test_runs(notebook):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    command = [sys.executable, ROOT / "scripts" / "notebooks.py", notebook.stem]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    assert f"{notebook.name}: ran" in done.stdout


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("identified\ncoef 1.502 0.1\nTime, memory 2 s, 8 MB", True),
        ("identified\ncoef 1.7 0.1\nTime, memory 1 s, 9 MB", False),
        ("weakly identified\ncoef 1.5 0.1\nTime, memory 1 s, 9 MB", False),
        ("identified\nTime, memory 1 s, 9 MB", False),
    ],
)
def test_another_answer_is_noticed(printed, same):
    def notebook(text):
        return {"cells": [{"outputs": [{"output_type": "stream", "text": text.splitlines(True)}]}, {}]}

    stored = notebook("identified\ncoef 1.5 0.1\nTime, memory 1 s, 9 MB")
    assert (difference(stable_lines(stored), stable_lines(notebook(printed))) is None) == same


@pytest.mark.parametrize("notebook", notebooks, ids=lambda notebook: notebook.stem)
def test_is_stored_with_what_it_shows(notebook):
    outputs = [output for cell in json.loads(notebook.read_text())["cells"] for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs) or notebook.stem == "within-groups"
    assert any(output["output_type"] == "stream" for output in outputs)


def test_there_are_notebooks():
    assert len(notebooks) >= 4
