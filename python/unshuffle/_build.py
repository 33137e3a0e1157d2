"""Picks the compiled part. A wheel has one for any processor and faster ones for newer processors."""

import importlib
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
FASTER = HERE / "lib" / "unshuffle"


def load_fastest() -> None:
    """Makes the fastest build that this processor can run the module unshuffle._core."""
    if not FASTER.is_dir():
        return
    processor = importlib.import_module(f"{__package__}._processor")

    for level in processor.levels():
        for path in (FASTER / level).glob("_core*.so"):
            name = f"{__package__}._core"
            spec = importlib.util.spec_from_file_location(name, path)
            if spec is None or spec.loader is None:
                continue
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            return
