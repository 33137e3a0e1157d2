"""What the tests of this folder share: a folder of their own, the program, small tables.

Every script takes the program as its first argument. UNSHUFFLE_ATTACK=nightly makes the generators draw a hundred times
as much as in CI.
"""

import os
import random
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "unshuffle"
NIGHTLY = os.environ.get("UNSHUFFLE_ATTACK") == "nightly"

# What the program may end with: success, not converged, bad usage, bad data, memory or files failed.
DOCUMENTED = (0, 1, 2, 3, 4)
SANITIZED = b"__asan_init" in open(PROGRAM, "rb").read() if os.path.exists(PROGRAM) else False


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return name

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run_here(self, *arguments, **options):
        options = {"capture_output": True, "timeout": 600, **options}
        command = [PROGRAM, *(a if isinstance(a, bytes) else str(a) for a in arguments)]
        done = subprocess.run(command, cwd=options.pop("cwd", self.folder), **options)
        done.said = (done.stderr or b"").decode(errors="backslashreplace")
        return done

    def succeed(self, *arguments, **options):
        done = self.run_here(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.said)
        return done.stdout

    def refuse(self, *arguments, says, code, **options):
        """The run ends with this exit code and one line that holds `says`; notes may stand before it."""
        done = self.run_here(*arguments, **options)
        self.assertEqual(done.returncode, code, done.said)
        lines = [line for line in done.said.split("\n") if not line.startswith("unshuffle: note: ")]
        self.assertEqual(lines[1:], [""], done.said)
        self.assertTrue(lines[0].startswith("unshuffle: error: "), done.said)
        self.assertIn(says, lines[0])

    def tables(self, rows=40, seed=1):
        """y.csv and z.csv, in order, y = 1 + 2 z + noise."""
        draw = random.Random(seed)
        z = [draw.gauss(0, 1) for _ in range(rows)]
        self.write("z.csv", "z\n" + "".join(f"{v!r}\n" for v in z))
        self.write("y.csv", "y\n" + "".join(f"{1 + 2 * v + draw.gauss(0, 0.1)!r}\n" for v in z))
        return "y.csv", "z.csv"

    def fitted(self):
        """fit.json of such tables."""
        self.succeed("fit", *self.tables(), "--response", "y", "--hint", "rows", "--method", "ls", "--out", "fit.json")
        return "fit.json"

    def video(self, name="Walk", frames=12, people=3):
        """A folder of detections of people who walk in straight lines."""
        self.write(f"{name}/seqinfo.ini",
                   f"[Sequence]\nname={name}\nframeRate=10\nseqLength={frames}\nimWidth=640\nimHeight=480\n")
        self.write(f"{name}/det/det.txt", "".join(
            f"{frame},-1,{60 + 120 * person + 3 * frame},{100 + 20 * person},40,100,1\n"
            for frame in range(1, frames + 1) for person in range(people)))
        return name
