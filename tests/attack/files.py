"""Inputs that once gave wrong answers, crashes or hangs: tables, fits, checkpoints, thread counts.

Usage: files.py PROGRAM
"""

import json
import os
import random
import subprocess
import unittest

from case import PROGRAM, SANITIZED, Case


class Tables(Case):
    def long_tables(self, rows, line_end, header_end=None):
        draw = random.Random(3)
        header_end = header_end or line_end
        z = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(rows)]
        self.write("y.csv", "y" + header_end + "".join(f"{1 + 2 * a - b + draw.gauss(0, 0.1)!r}{line_end}" for a, b in z))
        self.write("z.csv", "a,b" + header_end + "".join(f"{a!r},{b!r}{line_end}" for a, b in z))

    def test_line_ends_of_any_kind_give_one_answer(self):
        answers = set()
        for ends in (("\n",), ("\r\n",), ("\r",), ("\n", "\r")):
            self.long_tables(80_000, *ends)
            for stream in ((), ("--stream",)):
                told = json.loads(self.succeed("fit", "y.csv", "z.csv", "--response", "y", "--hint", "rows", "--method", "robot",
                                               "--json", "--threads", 2, *stream))
                self.assertEqual((told["responses"], told["features"]), (80_000, 80_000), (ends, stream))
                answers.add((bool(stream), json.dumps(told["coefficients"]), told["noise_sd"]))
        self.assertEqual(len(answers), 2, answers)

    def test_a_table_without_a_header_is_refused(self):
        y, z = self.tables()
        self.write(y, self.read(y).split(b"\n", 1)[1])
        for stream in ((), ("--stream",)):
            self.refuse("fit", y, z, "--response", "y", *stream, code=3,
                        says="y.csv:1: the first line holds numbers only")

    def test_two_signs_make_no_number(self):
        y, z = self.tables()
        self.write(y, self.read(y) + b"+-1\n")
        self.refuse("fit", y, z, "--response", "y", code=3, says='holds "+-1"; a number was expected')

    def test_names_in_latin1_are_converted(self):
        y, z = self.tables()
        self.write(z, b"gr\xf6sse\n" + self.read(z).split(b"\n", 1)[1])
        done = self.run_here("fit", y, z, "--response", "y", "--method", "ls", "--hint", "rows", "--json")
        self.assertIn(done.returncode, (0, 1), done.said)
        self.assertEqual(list(json.loads(done.stdout)["coefficients"]), ["gr\xf6sse"])

    def test_a_cell_without_end_is_refused(self):
        _, features = self.tables()
        self.write("y.csv", "y\n" + "1" * (20 << 20))
        self.refuse("fit", "y.csv", features, "--response", "y", says="y.csv:2: a cell is longer than 16 MiB", code=3)
        self.write("y.csv", "y\n1\n\"2\n" + "3\n" * (10 << 20))
        self.refuse("fit", "y.csv", features, "--response", "y", says="y.csv:3: a cell is longer than 16 MiB", code=3)
        self.write("y.csv", "y" + ",y" * 1_000_000 + "\n")
        self.refuse("fit", "y.csv", features, "--response", "y", says="y.csv:1: the header has more than 1000000 columns", code=3)

    def test_a_pipe_is_refused_by_stream(self):
        y, z = self.tables()
        os.mkfifo(self.path("pipe"))
        self.refuse("fit", "pipe", z, "--response", "y", "--stream", code=3, says="pipe: is not a regular file", timeout=900)

    def test_the_header_names_of_npy_files_are_utf8(self):
        name = b"gr\xf6sse.npy"
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n"
        with open(os.path.join(self.folder.encode(), name), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 8 + b"\0\0\0\0\0\0\xf0?" * 2)
        self.write("y.csv", "y\n1\n2\n3.5\n")
        done = self.run_here("fit", "y.csv", name, "--response", "y", "--method", "ls", "--hint", "rows", "--json")
        self.assertIn(done.returncode, (0, 1, 3), done.said)
        if done.returncode < 2:
            json.loads(done.stdout)


class Fits(Case):
    DEEP = b"[" * 600_000

    def changed(self, change):
        fit = json.loads(self.read(self.fitted()))
        change(fit)
        self.write("changed.json", json.dumps(fit))
        return "changed.json"

    def test_deep_nesting_is_refused_everywhere(self):
        self.fitted()
        fit = self.read("fit.json")
        for content in (self.DEEP, b'{"a":' * 100_000, fit.replace(b'"coefficients": {', b'"coefficients": ' + self.DEEP + b', "x": {'),
                        b'{"format": "unshuffle motion model 1", "hidden": ' + self.DEEP):
            self.write("deep.json", content)
            for command in (("predict", "deep.json", "z.csv"), ("match", "deep.json", "y.csv", "z.csv"),
                            ("gradient", "y.csv", "z.csv", "--response", "y", "--at", "deep.json"),
                            ("fit", "y.csv", "z.csv", "--response", "y", "--method", "robot", "--start", "deep.json"),
                            ("fit", "y.csv", "z.csv", "--response", "y", "--method", "oracle", "--truth", "deep.json"),
                            ("track", self.video(), "--model", "deep.json", "--out", "tracks")):
                self.refuse(*command, code=3, says="deep.json: arrays and objects are nested more than 64 deep")

    def test_brackets_in_names_do_not_count(self):
        self.write("z.csv", "[[[[" * 40 + "\n1\n2\n3\n4\n7\n")
        self.write("y.csv", "y\n1\n2\n3\n4\n6\n")
        self.run_here("fit", "y.csv", "z.csv", "--response", "y", "--method", "ls", "--hint", "rows", "--out", "fit.json")
        self.succeed("predict", "fit.json", "z.csv")

    def test_coefficients_too_large_to_be_squared_are_told(self):
        for value in (1.7e308, -1.7e308, 1e200):
            name = self.changed(lambda fit: fit["coefficients"].update(z=value))
            for command in (("match", name, "y.csv", "z.csv"), ("gradient", "y.csv", "z.csv", "--response", "y", "--at", name)):
                self.refuse(*command, code=3, says="the squared difference is beyond the largest double")

    def test_a_matrix_that_is_no_covariance_is_refused(self):
        for rows in ([[-1, 0], [0, 1]], [[1, 2], [2, 1]], [[1, 0.5], [-0.5, 1]], [[1, None], [None, 1]], [[1, 0.1], [0.1, None]]):
            name = self.changed(lambda fit: fit.update(covariance={"names": ["intercept", "z"], "rows": rows}))
            self.refuse("predict", name, "z.csv", "--intervals", code=3, says='"covariance" is not the covariance of anything')
        for noise in (1.7e308, -1):
            name = self.changed(lambda fit: fit.update(noise_sd=noise))
            self.refuse("predict", name, "z.csv", "--intervals", code=3, says="must be at least 0 and at most 1e+150")
        good = {"names": ["intercept", "z"], "rows": [[1, 1e-9], [1e-9, 1e-18]]}
        self.succeed("predict", self.changed(lambda fit: fit.update(covariance=good)), "z.csv", "--intervals")


class Checkpoints(Case):
    def flipped(self, name, command, says, flips):
        """Any bit that flips is noticed; the same command goes on without the file."""
        content = self.read(name)
        draw = random.Random(7)
        for _ in range(flips):
            bits = bytearray(content)
            at = draw.randrange(8 * len(bits))
            bits[at // 8] ^= 1 << at % 8
            self.write(name, bytes(bits))
            self.refuse(*command, code=3, says=says)
        self.write(name, content)

    def test_of_fits(self):
        y, z = self.tables()
        fit = ("fit", y, z, "--response", "y", "--hint", "none", "--method", "robot", "--starts", 2, "--quiet", "--checkpoint", "c")
        self.run_here(*fit)
        self.flipped("c", fit, "c: not a checkpoint of a fit, or damaged; delete it or name another file", 60)
        self.assertIn(self.run_here(*fit).returncode, (0, 1))

    def test_of_trackers(self):
        train = ("train-tracker", self.video(), "--epochs", 3, "--quiet", "--out", "m.json", "--checkpoint", "c", "--resume")
        self.succeed(*train)
        self.flipped("c", train, "damaged; remove it to begin anew, or name another file", 60)
        self.succeed(*train)


class Arithmetic(Case):
    def test_an_answer_that_rounding_chose_is_called_that(self):
        """Another kernel of OpenBLAS rounds differently. Where answers differ by more than rounding, each says so."""
        draw = random.Random(4)
        z = [[draw.gauss(0, 1) for _ in range(3)] for _ in range(60)]
        y = [(a + 0.5 * b + draw.gauss(0, 0.4), b - c + draw.gauss(0, 0.4)) for a, b, c in z]
        draw.shuffle(y)
        self.write("y.csv", "y1,y2\n" + "".join(f"{a!r},{b!r}\n" for a, b in y))
        self.write("z.csv", "a,b,c\n" + "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in z))
        found = []
        for kernel in ("Prescott", "Haswell", "SkylakeX"):
            done = self.run_here("fit", "y.csv", "z.csv", "--response", "y1,y2", "--method", "robot", "--backend", "dense", "--starts", 4,
                                 "--json", env={**os.environ, "OPENBLAS_CORETYPE": kernel})
            self.assertIn(done.returncode, (0, 1), done.said)
            found.append(json.loads(done.stdout))
        reasons = [told["identifiable"]["reason"] for told in found]
        self.assertTrue(all("another processor that rounds differently" in reason for reason in reasons), reasons)
        for told in found:  # the alternatives are named with what they are
            others = [other["objective"] for other in told["identifiable"]["alternatives"]]
            self.assertTrue(others and min(others) >= told["objective"] * (1 - 1e-9), (told["objective"], others))


class Threads(Case):
    def test_no_count_of_threads_crashes(self):
        fit = self.fitted()
        tables = ("y.csv", "z.csv", "--response", "y")
        for command in (("fit", *tables), ("compare", *tables), ("gradient", *tables, "--at", fit), ("match", fit, "y.csv", "z.csv"),
                        ("track", self.video(), "--out", "t"), ("train-tracker", "Walk", "--out", "m.json"),
                        ("reproduce", "rho", "--quick", "--out", "r")):
            for count in (100_000, 2_000_000_000, -1):
                self.refuse(*command, "--threads", count, code=2, says=f"--threads = {count} must be at least 0 and at most ")
            for count in (99999999999999999999, "many", 1.5):
                self.refuse(*command, "--threads", count, code=2, says="--threads")

    def test_nor_does_the_variable(self):
        fit = self.fitted()
        for count in (1_000_000, 2_000_000_000):
            self.refuse("predict", fit, "z.csv", code=2, says=f"OMP_NUM_THREADS = {count} must be at least 0 and at most ",
                        env={**os.environ, "OMP_NUM_THREADS": str(count)})

    @unittest.skipIf(SANITIZED, "sanitizers take memory for every thread")
    def test_as_many_as_are_allowed_work(self):
        self.tables()
        self.succeed("fit", "y.csv", "z.csv", "--response", "y", "--hint", "rows", "--threads", 1024)

    @unittest.skipUnless(os.geteuid() == 0, "only root can limit the number of processes")
    def test_threads_that_cannot_be_started_are_told(self):
        folder = "/sys/fs/cgroup/pids" if os.path.isdir("/sys/fs/cgroup/pids") else "/sys/fs/cgroup"
        group = os.path.join(folder, f"unshuffle-attack-{os.getpid()}")
        try:
            os.mkdir(group)
            with open(os.path.join(group, "pids.max"), "w") as file:
                file.write("40")
        except OSError as error:
            self.skipTest(f"control groups are not to be had: {error}")
        self.addCleanup(os.rmdir, group)
        self.tables()

        def join():
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write("0")
        self.refuse("fit", "y.csv", "z.csv", "--response", "y", "--threads", 200, code=4, says="threads could be started",
                    preexec_fn=join)


if __name__ == "__main__":
    unittest.main(verbosity=2)
