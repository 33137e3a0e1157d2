"""One system call fails, once, in every command: open, write, rename, fsync, mmap, malloc (fail_once.c).

However the run ends: its exit code is documented, an error is one line, outputs are the old or the new ones and whole,
and nothing is left behind. Usage: faults.py PROGRAM
"""

import json
import os
import random
import re
import shutil
import subprocess
import unittest

from case import DOCUMENTED, NIGHTLY, PROGRAM, SANITIZED, Case

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("open", "write", "rename", "fsync", "mmap", "malloc")
ONCE_EACH = 1000 if NIGHTLY else 6  # faults of a kind that are tried in a command; all when there are no more calls
OLD = b"old content\n"


def is_whole(name, content):
    if name.endswith(".json") or name == "c":
        json.loads(content)
    elif name.endswith(".html"):
        return content.endswith(b"</html>\n")
    return content.endswith(b"\n")


@unittest.skipIf(SANITIZED, "sanitizers have a malloc of their own")
class Faults(Case):
    injected = {kind: 0 for kind in KINDS}
    told = 0

    def setUp(self):
        super().setUp()
        self.shim = os.path.join(self.folder, "fail_once.so")
        made = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.shim, os.path.join(HERE, "fail_once.c"), "-ldl"],
                              capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.inputs = os.path.join(self.folder, "inputs")
        os.mkdir(self.inputs)

    def run_with(self, fault, command, counts=""):
        work = os.path.join(self.folder, "work")
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.inputs, work)
        environment = {**os.environ, "LD_PRELOAD": self.shim, "UNSHUFFLE_FAIL": fault, "UNSHUFFLE_FAIL_COUNTS": counts,
                       "OMP_NUM_THREADS": "2"}
        done = subprocess.run([PROGRAM, *command], cwd=work, env=environment, capture_output=True, text=True, timeout=900)
        return work, done

    def check(self, fault, command, outputs):
        work, done = self.run_with(fault, command)
        with self.subTest(command=command[0], fault=fault):
            self.assertIn(done.returncode, DOCUMENTED, done.stderr)
            if done.returncode > 1:
                errors = re.findall(r"^unshuffle: error: .+$", done.stderr, re.M)
                self.assertEqual(len(errors), 1, done.stderr)
                Faults.told += 1
            for name in outputs:
                path = os.path.join(work, name)
                content = open(path, "rb").read() if os.path.exists(path) else OLD
                if done.returncode <= 1:
                    self.assertNotEqual(content, OLD, f"{name} was not written, and nothing was said: {done.stderr}")
                self.assertTrue(content == OLD or is_whole(name, content), f"{name}: {content[-80:]}")
            left = {os.path.relpath(os.path.join(at, file), work) for at, _, files in os.walk(work) for file in files}
            known = {os.path.relpath(os.path.join(at, file), self.inputs) for at, _, files in os.walk(self.inputs) for file in files}
            self.assertEqual(left - known - set(outputs), set())
        Faults.injected[fault.split(":")[0]] += 1

    def attack(self, *command, outputs=(), old=True):
        command = [str(word) for word in command]
        for name in outputs if old else ():
            os.makedirs(os.path.dirname(os.path.join(self.inputs, name)), exist_ok=True)
            with open(os.path.join(self.inputs, name), "wb") as file:
                file.write(OLD)
        counts = os.path.join(self.folder, "counts")
        _, done = self.run_with("", command, counts)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        draw = random.Random(" ".join(command))
        for line in open(counts).read().splitlines():
            kind, calls = line.split()
            calls = range(1, int(calls) + 1)
            for k in calls if len(calls) <= ONCE_EACH else sorted(draw.sample(calls, ONCE_EACH)):
                self.check(f"{kind}:{k}", command, outputs)

    def prepare(self, *command):
        subprocess.run([PROGRAM, *map(str, command)], cwd=self.inputs, check=True, capture_output=True)

    def samples(self):
        self.prepare("simulate", "sensing", "--n", 60, "--dim-z", 2, "--mean", 1, "--snr", 100, "--out", "s")

    def fitted(self):
        self.samples()
        self.prepare("fit", "s/responses.csv", "s/features.csv", "--response", "y", "--hint", "rows", "--method", "ls", "--out", "fit.json")

    def video_here(self):
        self.folder, kept = self.inputs, self.folder
        name = self.video()
        self.write("Walk/gt/gt.txt", "".join(f"{frame},1,{60 + 3 * frame},100,40,100,1,1,1\n" for frame in range(1, 13)))
        self.folder = kept
        return name

    TABLES = ("s/responses.csv", "s/features.csv", "--response", "y", "--hint", "rows")

    def test_fit(self):
        self.samples()
        self.attack("fit", *self.TABLES, "--method", "robot", "--starts", 2, "--out", "fit.json", "--pairs", "pairs.csv", "--report",
                    "report.html", "--trace", "trace.csv", outputs=("fit.json", "pairs.csv", "report.html", "trace.csv"))

    def test_fit_with_a_checkpoint(self):
        self.samples()
        self.attack("fit", *self.TABLES, "--method", "robot", "--starts", 2, "--checkpoint", "c", "--out", "fit.json",
                    outputs=("fit.json", "c"), old=False)

    def test_a_long_cell_is_moved_a_few_times(self):
        """Room for a cell that grew by equal steps would be moved as often as the cell has steps."""
        size, moved = 12_000_000, os.path.join(self.folder, "moved")
        with open(os.path.join(self.inputs, "t.csv"), "w") as file:
            file.write("y,note\n1," + "x" * size + "\n2,x\n3,y\n")
        environment = {**os.environ, "LD_PRELOAD": self.shim, "UNSHUFFLE_FAIL_MOVED": moved, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([PROGRAM, "info", "t.csv"], cwd=self.inputs, env=environment, capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(int(open(moved).read()), 20 * size)

    def test_fit_in_pieces(self):
        self.samples()
        self.attack("fit", *self.TABLES, "--method", "robot", "--stream", "--scratch", ".", "--out", "fit.json", outputs=("fit.json",))

    def test_predict(self):
        self.fitted()
        self.attack("predict", "fit.json", "s/features.csv", "--out", "p.csv", outputs=("p.csv",))

    def test_match(self):
        self.fitted()
        self.attack("match", "fit.json", "s/responses.csv", "s/features.csv", "--join", "left", "--out", "m.csv", outputs=("m.csv",))

    def test_compare(self):
        self.samples()
        self.attack("compare", *self.TABLES, "--methods", "ls,mixture", "--csv", "c.csv", outputs=("c.csv",))

    def test_gradient(self):
        self.fitted()
        self.attack("gradient", *self.TABLES[:-2], "--at", "fit.json", "--repeat", 1)

    def test_simulate(self):
        self.attack("simulate", "sensing", "--n", 40, "--out", "s",
                    outputs=tuple(f"s/{name}" for name in ("responses.csv", "features.csv", "test.csv", "truth.json")))

    def test_track(self):
        self.attack("track", self.video_here(), "--tracker", "sort", "--out", "t", outputs=("t/Walk.txt",))

    def test_train_tracker(self):
        self.attack("train-tracker", self.video_here(), "--epochs", 2, "--checkpoint", "c", "--trace", "trace.csv", "--out", "m.json",
                    outputs=("m.json", "trace.csv", "c"))

    def test_evaluate(self):
        self.video_here()
        self.prepare("track", "Walk", "--tracker", "sort", "--out", "t")
        self.attack("evaluate", "--gt", "Walk", "--results", "t", "--csv", "e.csv", "--out", "e.json", outputs=("e.csv", "e.json"))

    def test_reproduce(self):
        self.attack("reproduce", "conditioning", "--quick", "--out", "r",
                    outputs=tuple(f"r/{name}" for name in ("conditioning.csv", "index.html", "results.md", "figures.py", "settings.txt")))

    @classmethod
    def tearDownClass(cls):
        print(f"faults injected: {', '.join(f'{kind} {count}' for kind, count in cls.injected.items())}; {cls.told} ended runs, "
              "each with a message")


if __name__ == "__main__":
    unittest.main(verbosity=2)
