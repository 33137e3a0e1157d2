"""Outputs: nothing is overwritten that is read, nothing is left behind, and what cannot be written is told.

Usage: outputs.py PROGRAM
"""

import json
import os
import resource
import signal
import subprocess
import time
import unittest

from case import PROGRAM, Case


class Inputs(Case):
    def spared(self, *arguments, inputs):
        """The command refuses to overwrite any of its inputs, and they stay as they are."""
        before = {name: self.read(name) for name in inputs}
        for name in inputs:
            for path in (name, os.path.join(".", name), self.linked(name, os.symlink), self.linked(name, os.link)):
                self.refuse(*(path if a == "OUT" else a for a in arguments), code=2, says="which is read; name another file")
        self.assertEqual(before, {name: self.read(name) for name in inputs})

    def linked(self, name, link):
        path = f"{os.path.basename(name)}.{link.__name__}"
        if not os.path.lexists(self.path(path)):
            link(os.path.abspath(self.path(name)), self.path(path))
        return path

    def test_no_table_is_overwritten_by_a_fit(self):
        tables = self.tables()
        for option in ("--out", "--pairs", "--report", "--checkpoint"):
            self.spared("fit", *tables, "--response", "y", option, "OUT", inputs=tables)
        self.spared("fit", "y*.csv", "z.csv", "--response", "y", "--stream", "--out", "OUT", inputs=tables)

    def test_nor_what_else_a_fit_reads(self):
        tables, fit = self.tables(), self.fitted()
        self.write("known.csv", "response_row,feature_row\n0,0\n")
        self.spared("fit", *tables, "--response", "y", "--known", "known.csv", "--start", fit, "--out", "OUT",
                    inputs=("known.csv", fit))

    def test_nor_by_what_reads_fits(self):
        fit = self.fitted()
        self.spared("match", fit, "y.csv", "z.csv", "--out", "OUT", inputs=(fit, "y.csv", "z.csv"))
        self.spared("predict", fit, "z.csv", "--out", "OUT", inputs=(fit, "z.csv"))
        self.spared("compare", "y.csv", "z.csv", "--response", "y", "--csv", "OUT", inputs=("y.csv", "z.csv"))

    def test_nor_by_trackers(self):
        video = self.video()
        os.rename(self.path(f"{video}/det/det.txt"), self.path(f"{video}/det/Walk.txt"))
        os.symlink("Walk.txt", self.path(f"{video}/det/det.txt"))
        self.refuse("track", video, "--out", f"{video}/det", code=2, says="which is read; name another file")
        other = self.video("Other")
        self.spared("train-tracker", other, "--out", "OUT", inputs=(f"{other}/det/det.txt", f"{other}/seqinfo.ini"))

    def test_nor_by_simulate(self):
        table = "a,b,y\n" + "".join(f"{k % 7},{k * k % 11},{k % 5}\n" for k in range(40))
        for name in ("responses.csv", "test.csv"):
            self.write(f"s/{name}", table)
            self.refuse("simulate", "cytometry", "--from", f"s/{name}", "--response", "y", "--out", "s", code=2,
                        says=f"--out s/{name} would overwrite s/{name}, which is read; name another file")
            self.assertEqual(self.read(f"s/{name}").decode(), table)
        self.succeed("simulate", "cytometry", "--from", "s/test.csv", "--response", "y", "--out", "other", "--quiet")

    def test_nor_by_evaluate(self):
        video = self.video()
        self.write(f"{video}/gt/gt.txt", "".join(f"{frame},1,{60 + 3 * frame},100,40,100,1,1,1\n" for frame in range(1, 13)))
        self.succeed("track", video, "--tracker", "sort", "--out", "t", "--quiet")
        for option in ("--csv", "--out"):
            self.spared("evaluate", "--gt", video, "--results", "t", option, "OUT", inputs=(f"{video}/gt/gt.txt", "t/Walk.txt"))

    def test_nor_by_reproduce(self):
        self.succeed("reproduce", "rho", "--quick", "--quiet", "--out", "kept")
        before = self.read("kept/rho.csv")
        self.refuse("reproduce", "rho", "--from", "kept", "--out", "./kept", code=2, says="--from and --out both name ./kept")
        self.assertEqual(self.read("kept/rho.csv"), before)


class Files(Case):
    def test_a_longer_file_below_dev_is_replaced_whole(self):
        fit = self.fitted()
        path = f"/dev/shm/unshuffle-attack-{os.getpid()}.json"
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))
        with open(path, "w") as file:
            file.write("x" * 100_000)
        self.succeed("fit", "y.csv", "z.csv", "--response", "y", "--method", "ls", "--out", path)
        with open(path) as file:
            self.assertEqual(json.load(file)["coefficients"], json.loads(self.read(fit))["coefficients"])

    def test_standard_output_by_its_name_goes_on_where_it_is(self):
        fit = self.fitted()
        with open(self.path("out.csv"), "w") as out:
            out.write("before\n")
            out.flush()
            for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
                self.run_here("predict", fit, "z.csv", "--out", name, capture_output=False, stdout=out)
        text = self.read("out.csv").decode()
        self.assertTrue(text.startswith("before\ny\n"), text[:40])
        self.assertEqual(text.count("y\n"), 3)

    def test_what_killed_runs_left_is_removed_and_nothing_else(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        left = self.write(f".unshuffle-{ended.pid}-AbC123", "half")
        others = [self.write(name, "x") for name in (
            f".unshuffle-{os.getpid()}-AbC123",  # of a process that lives
            f".unshuffle-{ended.pid}-AbC123.csv", f"unshuffle-{ended.pid}-AbC123", ".unshuffle-x-AbC123", "fit.json.AbC123")]
        self.fitted()
        self.assertFalse(os.path.exists(self.path(left)))
        for name in others:
            self.assertTrue(os.path.exists(self.path(name)), name)

    def test_a_file_that_someone_has_locked_is_being_written(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        held = self.write(f".unshuffle-{ended.pid}-AbC123", "of another machine")
        import fcntl
        with open(self.path(held)) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.fitted()
            self.assertTrue(os.path.exists(self.path(held)))
        self.fitted()
        self.assertFalse(os.path.exists(self.path(held)))

    def test_a_limit_on_the_size_of_files_is_told(self):
        before = self.write("s/responses.csv", "old")
        self.refuse("simulate", "sensing", "--n", 20000, "--out", "s", code=4, says="cannot be written: File too large",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
        self.assertEqual(os.listdir(self.path("s")), ["responses.csv"])
        self.assertEqual(self.read(before), b"old")


class Ends(Case):
    def started(self, **options):
        self.succeed("simulate", "sensing", "--n", 200_000, "--mean", 1, "--out", "s")
        command = [PROGRAM, "fit", "s/responses.csv", "s/features.csv", "--response", "y", "--hint", "rows", "--out", "fit.json"]
        job = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        deadline = time.time() + 60
        while time.time() < deadline:
            with open(f"/proc/{job.pid}/status") as file:
                caught = next(line for line in file if line.startswith("SigCgt:"))
            if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                return job
        self.fail("signals are not handled")

    def test_a_terminal_that_goes_away_ends_a_run(self):
        job = self.started()
        job.send_signal(signal.SIGHUP)
        out, said = job.communicate(timeout=900)
        self.assertEqual((job.returncode, out, said), (129, "", "unshuffle: the terminal is gone; nothing more was written\n"))
        self.assertEqual(os.listdir(self.folder), ["s"])

    def test_but_not_under_nohup(self):
        job = self.started(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        job.send_signal(signal.SIGHUP)
        _, said = job.communicate(timeout=900)
        self.assertIn(job.returncode, (0, 1), said)

    def test_closed_standard_streams_abort_nothing(self):
        fit = self.fitted()
        for closed in ((0,), (1,), (2,), (1, 2), (0, 1, 2)):
            def close(closed=closed):
                for descriptor in closed:
                    os.close(descriptor)
            done = subprocess.run([PROGRAM, "predict", fit, "z.csv", "--out", "p.csv"], cwd=self.folder, preexec_fn=close)
            self.assertEqual(done.returncode, 0, closed)
            self.assertTrue(self.read("p.csv").startswith(b"y\n"))
            done = subprocess.run([PROGRAM, "predict", fit, "z.csv"], cwd=self.folder, preexec_fn=close,
                                  stdout=subprocess.DEVNULL if 1 not in closed else None)
            self.assertEqual(done.returncode, 4 if 1 in closed else 0, closed)
            done = subprocess.run([PROGRAM, "predict", "none.json", "z.csv"], cwd=self.folder, preexec_fn=close)
            self.assertEqual(done.returncode, 3, closed)

    def test_a_message_that_cannot_be_written_aborts_nothing(self):
        with open("/dev/full", "w") as full:
            done = self.run_here("predict", "none.json", "z.csv", capture_output=False, stderr=full)
        self.assertEqual(done.returncode, 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
