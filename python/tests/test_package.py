import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import unshuffle

root = Path(__file__).parents[2]


def test_the_version_is_stated_once():
    stated = re.search(r"project\(unshuffle VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text()).group(1)
    assert unshuffle.__version__ == stated == version("unshuffle")


def test_is_typed():
    package = Path(unshuffle.__file__).parent
    assert (package / "py.typed").exists()
    stub = (package / "_core.pyi").read_text()
    for name in ("class Transport:", "class Fitted:", "def read_fcs", "def simulate"):
        assert name in stub


def test_the_package_carries_the_program():
    command = [sys.executable, "-m", "unshuffle", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert unshuffle.__version__ in done.stdout


def test_importing_leaves_scikit_learn_alone():
    code = "import sys, unshuffle; assert 'sklearn' not in sys.modules; unshuffle.ShuffledRegressor; assert 'sklearn' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_a_faster_build_is_loaded_where_the_processor_can_run_it(tmp_path):
    """The compiled part, as a wheel would bring it along for newer processors."""
    package = tmp_path / "unshuffle"
    shutil.copytree(Path(unshuffle.__file__).parent, package, ignore=shutil.ignore_patterns("bin"))
    code = "import sys, unshuffle; from unshuffle import _processor; print(*_processor.levels()); print(sys.modules['unshuffle._core'].__file__)"

    def loaded(**environment):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
            env={**os.environ, "PYTHONPATH": str(tmp_path), **environment},
        )
        levels, path = done.stdout.splitlines()
        return levels.split(), Path(path).parent

    levels, folder = loaded()
    assert folder == package
    if not levels:
        pytest.skip("this processor reaches no level beyond the lowest")
    faster = package / "lib" / "unshuffle" / levels[0]
    faster.mkdir(parents=True)
    shutil.copy(next(package.glob("_core*.so")), faster)
    assert loaded()[1] == faster
    assert loaded(UNSHUFFLE_LEVEL="x86-64") == ([], package)


def test_types_are_right():
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--cache-dir", "build/mypy", "python/unshuffle", "examples"]
    checked = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900)
    assert checked.returncode == 0, checked.stdout
