"""Tables in pieces, several processes, and behaviour when a run is interrupted, a disk is full or something breaks.

Usage: faults.py PROGRAM
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../attack"))
import case  # noqa: E402
from case import PROGRAM, SANITIZED  # noqa: E402

MPIRUN = shutil.which("mpirun")
HAS_MPI = MPIRUN is not None and "missing" not in json.loads(
    subprocess.run([PROGRAM, "info", "--json"], capture_output=True, text=True).stdout)["components"]["mpi"]


def same_but_for_time(text):
    if not text.startswith("{"):
        return text
    fit = json.loads(text)
    for key in ("seconds", "peak_memory_mb"):
        fit.pop(key, None)
    return fit


class Case(case.Case):
    def command(self, *arguments):
        return [PROGRAM, *map(str, arguments)]

    def run_here(self, command, **options):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600, **options)

    def succeed(self, *arguments):
        done = self.run_here(self.command(*arguments))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def processes(self, count, *arguments):
        return [MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", str(count), *self.command(*arguments)]

    def read(self, name):
        with open(self.path(name)) as file:
            return json.load(file)

    def no_leftovers(self, *expected):
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(expected))


class Pieces(Case):
    FIT = ("fit", "s/responses-*.csv", "s/features-*.csv", "--response", "y", "--hint", "rows")

    def setUp(self):
        super().setUp()
        self.succeed("simulate", "sensing", "--n", 4000, "--shards", 3, "--mean", 1, "--snr", 100, "--out", "s")

    def test_a_table_in_pieces_is_fitted_like_one_in_memory(self):
        for part in ("responses", "features"):
            with open(self.path(f"{part}.csv"), "w") as whole:
                for k in (1, 2, 3):
                    with open(self.path(f"s/{part}-000{k}.csv")) as shard:
                        header = shard.readline()
                        whole.write(("" if k > 1 else header) + shard.read())
        memory = json.loads(self.succeed("fit", "responses.csv", "features.csv", *self.FIT[3:], "--json"))
        pieces = json.loads(self.succeed(*self.FIT, "--stream", "--json"))
        self.assertEqual((pieces["responses"], pieces["features"]), (4000, 4000))
        self.assertEqual(pieces["pieces"]["processes"], 1)
        truth = self.read("s/truth.json")["coefficients"]
        for name, value in memory["coefficients"].items():
            self.assertAlmostEqual(pieces["coefficients"][name], value, delta=3e-3)
            self.assertLess(abs(value - truth[name]), 5 * pieces["std_errors"][name])

    def test_a_header_may_be_longer_than_a_block(self):
        names = [letter * 100000 for letter in "abcd"]
        draw = random.Random(1)
        rows = [[draw.gauss(0, 1) for _ in names] for _ in range(300)]
        self.write("long/z.csv", ",".join(names) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
        self.write("long/y.csv", "y\n" + "".join(f"{sum(row) + draw.gauss(0, 0.1)}\n" for row in rows))
        fit = ("fit", "long/y.csv", "long/z.csv", "--response", "y", "--hint", "rows", "--json")
        memory, pieces = (json.loads(self.succeed(*fit, *stream)) for stream in ((), ("--stream",)))
        for name in names:
            self.assertAlmostEqual(pieces["coefficients"][name], memory["coefficients"][name], delta=1e-3)

    def test_what_pieces_cannot_do_is_said(self):
        for option in (("--pairs", "p.csv"), ("--report", "r.html"), ("--checkpoint", "c"), ("--group", "g"),
                       ("--method", "em")):
            done = self.run_here(self.command(*self.FIT, "--stream", *option))
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{option[0]}: not with tables in pieces (--stream)", done.stderr)

    @unittest.skipUnless(HAS_MPI, "needs mpirun and the component mpi")
    def test_any_number_of_processes_gives_the_same_answer(self):
        for method in ("robot", "auto"):
            answers = []
            for count in (1, 2, 4):
                done = self.run_here(self.processes(count, *self.FIT, "--method", method, "--stream", "--json"))
                self.assertEqual(done.returncode, 0, done.stderr)
                answers.append(json.loads(done.stdout))
                self.assertEqual(answers[-1]["pieces"]["processes"], count)
            for other in answers[1:]:
                self.assertGreater(other["pieces"]["bytes_per_evaluation"], 0)
                for name, value in answers[0]["coefficients"].items():
                    self.assertAlmostEqual(other["coefficients"][name], value, delta=1e-9 * max(1, abs(value)))

    @unittest.skipUnless(HAS_MPI, "needs mpirun and the component mpi")
    def test_any_number_of_processes_refuses_files_of_unequal_lengths(self):
        with open(self.path("s/features-0002.csv")) as file:
            lines = file.readlines()
        with open(self.path("s/features-0002.csv"), "w") as file:
            file.writelines(lines[:-100])
        with open(self.path("s/features-0003.csv"), "a") as file:
            file.writelines(lines[-100:])
        for count in (1, 2, 3):
            done = self.run_here(self.processes(count, *self.FIT, "--method", "mixture", "--stream"))
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("need as many rows in every file of either side", done.stderr)

    @unittest.skipUnless(HAS_MPI, "needs mpirun and the component mpi")
    def test_bad_data_in_one_process_ends_all_of_them(self):
        with open(self.path("s/features-0003.csv"), "a") as file:
            file.write("1,2,3,4,oops\n")
        done = self.run_here(self.processes(2, *self.FIT, "--out", "fit.json"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("process 2 of 2", done.stderr)
        self.assertIn('column "z5" holds "oops"', done.stderr)
        self.no_leftovers("s")

    @unittest.skipUnless(HAS_MPI, "needs mpirun and the component mpi")
    def test_a_process_that_dies_takes_the_others_with_it(self):
        self.succeed("simulate", "sensing", "--n", 400000, "--shards", 4, "--mean", 1, "--snr", 100, "--out", "s")
        job = subprocess.Popen(self.processes(2, *self.FIT, "--out", "fit.json"), cwd=self.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        ranks = []
        while len(ranks) < 2 and time.time() < deadline:
            listed = subprocess.run(["pgrep", "-P", str(job.pid), "-x", "unshuffle"], capture_output=True, text=True)
            ranks = listed.stdout.split()
        time.sleep(0.5)
        os.kill(int(ranks[1]), signal.SIGKILL)
        _, said = job.communicate(timeout=900)
        self.assertNotEqual(job.returncode, 0)
        self.assertIn("signal 9", said)
        self.no_leftovers("s")


@unittest.skipUnless(HAS_MPI, "needs mpirun and the component mpi")
class Shared(Case):
    """What has no pieces: every process holds the tables, and they share starts, groups or the plan."""

    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        rows = []
        for k in range(90):
            z = (draw.gauss(0, 1), draw.gauss(0, 1))
            y = (z[0] + 0.7 * z[1] + draw.gauss(0, 0.1), 1.5 * z[0] - 0.3 * z[1] + draw.gauss(0, 0.1))
            rows.append((*y, *z, k % 5))
        with open(self.path("y.csv"), "w") as file:
            file.write("y1,y2,g\n" + "".join(f"{a},{b},{g}\n" for a, b, _, _, g in rows))
        with open(self.path("z.csv"), "w") as file:
            file.write("z1,z2,g\n" + "".join(f"{c},{d},{g}\n" for _, _, c, d, g in reversed(rows)))

    def same_for_any_number(self, *arguments):
        command = ("fit", "y.csv", "z.csv", *arguments, "--threads", 1, "--json")
        alone = self.run_here(self.command(*command))
        self.assertEqual(alone.stderr, "")
        one = json.loads(alone.stdout)
        self.assertNotIn("team", one)
        for count in (2, 3):
            done = self.run_here(self.processes(count, *command))
            self.assertEqual(done.returncode, alone.returncode, done.stderr)
            self.assertIn("every process holds both tables", done.stderr)
            shared = json.loads(done.stdout)
            self.assertEqual(shared["team"]["processes"], count)
            self.assertGreater(shared["team"]["bytes_per_evaluation"], 0)
            self.assertEqual(shared["status"], one["status"])
            for name, value in one["coefficients"].items():
                self.assertAlmostEqual(shared["coefficients"][name], value, delta=1e-9 * max(1, abs(value)))

    TWO = ("--response", "y1", "--response", "y2", "--z", "z1", "--z", "z2", "--epsilon", "1e-2")

    def test_starts(self):
        self.same_for_any_number(*self.TWO, "--starts", 4)

    def test_plan(self):
        self.same_for_any_number(*self.TWO, "--starts", 1, "--start", "ls")
        self.same_for_any_number(*self.TWO, "--starts", 1, "--start", "ls", "--robust")

    def test_groups(self):
        self.same_for_any_number(*self.TWO, "--starts", 1, "--start", "ls", "--group", "g")
        self.same_for_any_number("--response", "y1", "--z", "z1", "--z", "z2", "--group", "g", "--method", "entropic")

    def test_one_of_them_writes_and_a_checkpoint_serves_all(self):
        command = ("fit", "y.csv", "z.csv", *self.TWO, "--threads", 1, "--starts", 4, "--quiet", "--checkpoint", "c")
        for attempt in ("first", "again"):
            done = self.run_here(self.processes(2, *command, "--out", f"{attempt}.json", "--pairs", "p.csv"))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        first, again = (same_but_for_time(json.dumps(self.read(f"{name}.json"))) for name in ("first", "again"))
        self.assertEqual(len(self.read("c")["done"]), 4)
        self.assertGreater(first.pop("team")["bytes_per_evaluation"], 0)
        again.pop("team")
        self.assertEqual(first, again)
        self.no_leftovers("again.json", "c", "first.json", "p.csv", "y.csv", "z.csv")

    def test_a_stream_cannot(self):
        done = self.run_here(self.processes(2, "fit", "y.csv", "z.csv", *self.TWO, "--stream"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("several columns of --response: not with tables in pieces (--stream)", done.stderr)


@unittest.skipUnless(HAS_MPI, "needs mpirun and the component mpi")
class Unlike(Case):
    """Processes of one run that are not given the same: none of them works, and one says what differs."""

    ROWS = 3000

    def setUp(self):
        super().setUp()
        self.succeed("simulate", "sensing", "--n", self.ROWS, "--dim-z", 2, "--mean", 1, "--snr", 100, "--out", "a")
        shutil.copytree(self.path("a"), self.path("b"))

    def side_by_side(self, first, second):
        """One process of either command."""
        return self.run_here([MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", "1", *self.command(*first), ":",
                              "-n", "1", *self.command(*second)])

    def fit(self, folder, *options):
        return ("fit", f"{folder}/responses.csv", f"{folder}/features.csv", "--response", "y", "--hint", "rows",
                "--out", "fit.json", *options)

    def refused(self, done, *words):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("unshuffle: error"), 1, done.stderr)
        self.assertIn("process 2 of 2 has", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.no_leftovers("a", "b")

    IN_MEMORY = ("--method", "ls")

    def other(self, change):
        with open(self.path("b/features.csv")) as file:
            lines = file.read().split("\n")
        with open(self.path("b/features.csv"), "w") as file:
            file.write("\n".join(change(lines)))

    def test_copies_are_alike(self):
        for options in ((), self.IN_MEMORY):
            done = self.side_by_side(self.fit("a", *options), self.fit("b", *options, "--threads", 1))
            self.assertEqual(done.returncode, 0, done.stderr)
            os.remove(self.path("fit.json"))

    def test_other_content(self):
        self.other(lambda lines: lines[:200] + [lines[200].replace(".", ".1", 1)] + lines[201:])
        self.refused(self.side_by_side(self.fit("a"), self.fit("b")), "content of FEATURES: ")
        self.refused(self.side_by_side(self.fit("a", *self.IN_MEMORY), self.fit("b", *self.IN_MEMORY)), "values of z: ")

    def test_other_order_of_columns(self):
        self.other(lambda lines: [",".join(reversed(line.split(","))) for line in lines])
        for options in ((), self.IN_MEMORY):
            self.refused(self.side_by_side(self.fit("a", *options), self.fit("b", *options)), "z2,z1 instead of z1,z2")

    def test_fewer_rows(self):
        self.other(lambda lines: lines[:-500])
        self.refused(self.side_by_side(self.fit("a"), self.fit("b")), "bytes of FEATURES: ")
        self.refused(self.side_by_side(self.fit("a", *self.IN_MEMORY), self.fit("b", *self.IN_MEMORY)),
                     f"rows of features: {self.ROWS - 499} instead of {self.ROWS}")

    def test_other_options(self):
        for option, said in ((("--seed", 3), "--seed: 3 instead of none"), (("--robust",), "--robust: true instead of none"),
                             (("--group", "g"), "--group: g instead of none"), (("--stream",), "--stream: true instead of"),
                             (("--method", "em"), "--method: em instead of none"),
                             (("--pairs", "p.csv"), "--pairs: p.csv instead of none")):
            self.refused(self.side_by_side(self.fit("a"), self.fit("a", *option)), said)

    def test_what_processes_cannot_share_is_refused(self):
        fit = self.run_here(self.command(*self.fit("a")))
        self.assertEqual(fit.returncode, 0, fit.stderr)
        tables = ("a/responses.csv", "a/features.csv")
        for command in (("match", "fit.json", *tables, "--out", "p.csv"), ("predict", "fit.json", "a/test.csv", "--out", "p"),
                        ("compare", *tables, "--response", "y", "--csv", "c.csv"), ("simulate", "sensing", "--out", "s"),
                        ("reproduce", "rho", "--out", "r")):
            done = self.run_here(self.processes(2, *command))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{command[0]} is done by one process, and mpirun or srun started 2", done.stderr)
        self.no_leftovers("a", "b", "fit.json")


class Kills(Case):
    """The same command again and again, cut off by SIGKILL at a moment drawn at random, until it gets through."""

    kills = 0

    def until_through(self, command, longest, draw):
        for _ in range(500):
            job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                _, said = job.communicate(timeout=draw.uniform(0.02, longest))
            except subprocess.TimeoutExpired:
                job.kill()
                job.communicate()
                Kills.kills += 1
                continue
            self.assertIn(job.returncode, (0, 1), said)
            return
        self.fail("never got through")

    def check(self, command, out, expected, longest, left_behind):
        """Runs from the beginning to the end as often as it takes for ten kills; `out` is `expected` every time."""
        before, draw = Kills.kills, random.Random(out)
        while Kills.kills < before + 10:
            self.until_through(command, longest, draw)
            with open(self.path(out)) as file:
                self.assertEqual(same_but_for_time(file.read()), same_but_for_time(expected))
            left = [name for _, _, names in os.walk(self.folder) for name in names if name.startswith(".unshuffle-")]
            self.assertEqual(left, [], "the run that got through removes what killed ones left")
            for name in left_behind:
                shutil.rmtree(self.path(name)) if os.path.isdir(self.path(name)) else os.remove(self.path(name))

    def test_fits_end_in_the_same_bits(self):
        self.succeed("simulate", "linear", "--n", 150, "--seed", 3, "--out", "linear")
        self.succeed("simulate", "gamma", "--n", 1500, "--dim-z", 2, "--seed", 1, "--out", "gamma")
        for sample, *options in (("linear", "--method", "robot", "--backend", "dense", "--starts", 12),
                                 ("gamma", "--method", "entropic", "--bootstrap", 40)):
            fit = ("fit", f"{sample}/responses.csv", f"{sample}/features.csv", "--response", "y", "--hint", "none",
                   "--threads", 1, *options)
            begin = time.time()
            self.run_here(self.command(*fit, "--out", "whole.json"))
            longest = max(0.4, 0.4 * (time.time() - begin))
            if "--bootstrap" in options:
                self.assertIn("from 40 samples", self.read("whole.json")["std_error_note"])
            with open(self.path("whole.json")) as file:
                self.check(self.command(*fit, "--checkpoint", "c", "--out", "cut.json"), "cut.json", file.read(), longest,
                           ("c", "cut.json"))

    def test_experiments_end_in_the_same_bits(self):
        for name in ("rho", "landscape"):
            begin = time.time()
            self.succeed("reproduce", name, "--quick", "--out", "whole", "--quiet")
            longest = 1.3 * (time.time() - begin)
            with open(self.path(f"whole/{name}.csv")) as file:
                self.check(self.command("reproduce", name, "--quick", "--resume", "--out", "cut", "--quiet"),
                           f"cut/{name}.csv", file.read(), longest, ("cut",))

    def test_training_ends_in_the_same_bits(self):
        frames, people = 60, 8
        self.write("Walk/seqinfo.ini",
                   f"[Sequence]\nname=Walk\nframeRate=10\nseqLength={frames}\nimWidth=640\nimHeight=480\n")
        boxes = [(frame, person, f"{60 + 70 * person + (person - 4) * frame},{100 + 20 * person},40,100")
                 for frame in range(1, frames + 1) for person in range(people)]
        self.write("Walk/det/det.txt", "".join(f"{frame},-1,{box},1\n" for frame, _, box in boxes))
        self.write("Walk/gt/gt.txt", "".join(f"{frame},{person + 1},{box},1,-1,-1,-1\n" for frame, person, box in boxes))
        train = ("train-tracker", "Walk", "--epochs", 60, "--quiet")
        begin = time.time()
        self.succeed(*train, "--out", "whole.json")
        longest = max(0.2, 0.4 * (time.time() - begin))
        with open(self.path("whole.json")) as file:
            self.check(self.command(*train, "--checkpoint", "c", "--resume", "--out", "cut.json"), "cut.json", file.read(),
                       longest, ("c", "cut.json"))

    def test_a_checkpoint_of_something_else_is_refused(self):
        self.succeed("simulate", "linear", "--n", 100, "--seed", 3, "--out", "s")
        fit = ("fit", "s/responses.csv", "s/features.csv", "--response", "y", "--method", "robot", "--starts", 2,
               "--checkpoint", "c")
        self.run_here(self.command(*fit))
        done = self.run_here(self.command(*fit, "--seed", 7))
        self.assertEqual(done.returncode, 3)
        self.assertIn("c: was written for other tables or options", done.stderr)
        with open(self.path("c"), "r+b") as file:
            file.truncate(os.path.getsize(self.path("c")) // 2)
        done = self.run_here(self.command(*fit))
        self.assertEqual(done.returncode, 3)
        self.assertIn("c: not a checkpoint of a fit, or damaged", done.stderr)

    @classmethod
    def tearDownClass(cls):
        print(f"{cls.kills} kills survived")


class Faults(Case):
    def setUp(self):
        super().setUp()
        self.succeed("simulate", "sensing", "--n", 200000, "--mean", 1, "--snr", 100, "--out", "s")

    FIT = ("fit", "s/responses.csv", "s/features.csv", "--response", "y", "--hint", "rows", "--out", "fit.json")

    def wait_until_caught(self, pid, number):
        """The program has come so far that it handles the signal."""
        deadline = time.time() + 60
        while time.time() < deadline:
            with open(f"/proc/{pid}/status") as file:
                caught = next(line for line in file if line.startswith("SigCgt:"))
            if int(caught.split()[1], 16) >> (number - 1) & 1:
                return
        self.fail("the signal is not handled")

    def test_signals_end_a_run_with_one_line(self):
        for number, word in ((signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated"),
                             (signal.SIGHUP, "the terminal is gone")):
            job = subprocess.Popen(self.command(*self.FIT), cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
            self.wait_until_caught(job.pid, number)
            time.sleep(0.1)
            job.send_signal(number)
            out, said = job.communicate(timeout=900)
            self.assertEqual(job.returncode, 128 + number, said)
            self.assertEqual((out, said), ("", f"unshuffle: {word}; nothing more was written\n"))
            self.no_leftovers("s")

    @unittest.skipIf(SANITIZED, "sanitizers need more address space than any limit leaves")
    def test_a_memory_limit_ends_a_run_with_one_line(self):
        ended = 0
        for megabytes in (100, 130, 160, 200, 250, 300, 350, 400, 500, 700, 1000):
            limit = megabytes << 20
            done = self.run_here(self.command(*self.FIT, "--method", "robot", "--quiet"),
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            if done.returncode == 0:
                os.remove(self.path("fit.json"))
                continue
            self.assertEqual((done.returncode, done.stderr), (4, "unshuffle: error: out of memory\n"), megabytes)
            self.no_leftovers("s")
            ended += 1
        self.assertGreater(ended, 1)

    @unittest.skipUnless(os.geteuid() == 0, "only root can mount a small disk")
    def test_a_full_disk_ends_a_run_with_one_line(self):
        os.mkdir(self.path("small"))
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "none", self.path("small")],
                          capture_output=True).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(subprocess.run, ["umount", self.path("small")])
        done = self.run_here(self.command("simulate", "sensing", "--n", 100000, "--out", "small/s"))
        self.assertEqual(done.returncode, 4)
        self.assertIn("cannot be written: No space left on device", done.stderr)
        self.assertEqual(os.listdir(self.path("small/s")), [])
        done = self.run_here(self.command(*self.FIT, "--stream", "--scratch", "small"))
        self.assertEqual(done.returncode, 4)
        self.assertIn("scratch file cannot be written: No space left on device; --scratch", done.stderr)
        self.no_leftovers("s", "small")

    def test_a_read_error_ends_a_run_with_one_line(self):
        done = self.run_here(self.command("fit", "/proc/self/mem", "s/features.csv", "--response", "y"))
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertEqual(done.stderr, "unshuffle: error: /proc/self/mem: cannot be read: Input/output error\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
