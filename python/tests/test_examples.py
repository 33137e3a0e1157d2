import os
import subprocess
import sys
from pathlib import Path

import pytest

scripts = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def run(script, folder):
    environment = {**os.environ, "PYTHONWARNINGS": "error::unshuffle._warnings.ConvergenceWarning"}
    return subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True, timeout=1200, env=environment)


@pytest.mark.parametrize("script", scripts, ids=lambda script: script.stem)
def test_runs(script, tmp_path):
    text = script.read_text()
    assert len(text.splitlines()) < 60
    for package in ("torch", "pandas", "matplotlib"):
        if f"import {package}" in text:
            pytest.importorskip(package, reason=f"{package} is not installed")
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_network_learns_without_links(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed; Debian: python3-torch")
    last = run(next(s for s in scripts if s.stem == "torch_network"), tmp_path).stdout.splitlines()[-1]
    before, after = map(float, last.removeprefix("relative test error ").split(" -> "))
    assert after < 0.1 < before
