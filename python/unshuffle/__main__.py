"""python -m unshuffle: the command line program."""

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).parent / "bin" / "unshuffle"
    if not program.exists():
        sys.exit(f"unshuffle: error: {program} is missing: install a package that was built with UNSHUFFLE_BUILD_APP=ON")
    os.execv(program, ["unshuffle", *sys.argv[1:]])


if __name__ == "__main__":
    main()
