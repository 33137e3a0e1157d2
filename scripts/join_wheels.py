"""Puts the builds for newer processors into the wheel for any of them: join_wheels.py FOLDER

FOLDER/any holds the wheel, FOLDER/LEVEL one per level; the result goes to FOLDER/joined.
"""

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1])


def wheel(*arguments):
    subprocess.run([sys.executable, "-m", "wheel", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def unpacked(level):
    place = FOLDER / "unpacked" / level
    (packed,) = (FOLDER / level).glob("*.whl")
    wheel("unpack", "--dest", place, packed)
    (root,) = place.iterdir()
    return root


root = unpacked("any")
for level in sorted(path.name for path in FOLDER.glob("x86-64-*")):
    faster = unpacked(level) / "unshuffle"
    place = root / "unshuffle" / "lib" / "unshuffle" / level  # where _build.py and the program look
    place.mkdir(parents=True)
    (module,) = faster.glob("_core*.so")
    for path in (module, faster / "bin" / "unshuffle"):
        shutil.copy2(path, place)
for program in (root / "unshuffle").rglob("unshuffle"):  # unpacking lost that it is one
    if program.is_file():
        program.chmod(0o755)
joined = FOLDER / "joined"
joined.mkdir()
wheel("pack", "--dest-dir", joined, root)
