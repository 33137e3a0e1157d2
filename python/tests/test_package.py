import re
from importlib.metadata import version
from pathlib import Path

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
