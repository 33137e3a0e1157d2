"""The command line as users see it: its output, exit codes and files.

Usage: run.py PROGRAM
"""

import csv
import json
import math
import os
import random
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
FIGURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../apps/unshuffle/reproduce/figures.py")


# Under the address sanitizer a failed allocation has to look like one, not like a bug.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":allocator_may_return_null=1"


def run(*arguments, cwd=None, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *map(str, arguments)], cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, text=True,
                          timeout=600)


def read_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "w", newline="") as file:
            file.write(content)
        return name

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def run_here(self, *arguments, **options):
        return run(*arguments, cwd=self.folder.name, **options)

    def succeed(self, *arguments):
        done = self.run_here(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refuse(self, exit_code, *arguments, says=(), creates=()):
        """One line on stderr, the right exit code, nothing on stdout, no new file."""
        before = sorted(os.listdir(self.folder.name))
        done = self.run_here(*arguments)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("unshuffle: error: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for words in [says] if isinstance(says, str) else says:
            self.assertIn(words, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder.name)), sorted([*before, *creates]))

    def make_sample(self, rows=80, seed=1):
        """y = 1 + 2 a - 3 b + 0.5 c with a on the response side; a third of the rows of the other table shuffled."""
        draw = random.Random(seed)
        linked = []
        for row in range(rows):
            a, b, c = draw.gauss(0, 1), draw.gauss(0, 1), draw.gauss(1, 1)
            linked.append((a, b, c, 1 + 2 * a - 3 * b + 0.5 * c + draw.gauss(0, 0.05), "NS"[row % 2]))
        moved = list(range(0, rows, 3))
        places = moved[:]
        draw.shuffle(places)
        order = list(range(rows))
        for source, target in zip(moved, places):
            order[target] = source
        self.write("r.csv", "a,y,city\n" + "".join(f"{a!r},{y!r},{g}\n" for a, _, _, y, g in linked))
        right = [linked[at] for at in order]
        self.write("f.csv", "b,c,town\n" + "".join(f"{b!r},{c!r},{g}\n" for _, b, c, _, g in right))
        self.write("t.csv", "a,b,c,y\n" + "".join(f"{a!r},{b!r},{c!r},{y!r}\n" for a, b, c, y, _ in linked))
        self.write("w.json", json.dumps({"coefficients": {"a": 2, "b": -3, "c": 0.5}, "intercept": 1}))


class Success(Case):
    def test_fit_prints_a_table_and_writes_what_it_was_asked_for(self):
        self.make_sample()
        out = self.succeed("fit", "r.csv", "f.csv", "--response", "y", "--method", "robot", "--hint", "rows", "--out",
                           "fit.json", "--pairs", "pairs.csv", "--trace", "trace.csv")
        for words in ("coef", "std err", "[0.025", "intercept", "Convergence", "Wrote fit.json"):
            self.assertIn(words, out)
        with open(self.path("fit.json")) as file:
            fit = json.load(file)
        for key in ("status message method model coefficients std_errors intercept objective epsilon marginal_error "
                    "noise_sd matched_share identifiable iterations seconds peak_memory_mb seed version").split():
            self.assertIn(key, fit)
        self.assertEqual(list(fit["coefficients"]), ["a", "b", "c"])
        self.assertAlmostEqual(fit["coefficients"]["a"], 2, delta=0.1)
        self.assertAlmostEqual(fit["coefficients"]["b"], -3, delta=0.1)
        self.assertAlmostEqual(fit["coefficients"]["c"], 0.5, delta=0.1)
        pairs = read_rows(self.path("pairs.csv"))
        self.assertEqual(list(pairs[0]), ["response_row", "feature_row", "probability"])
        self.assertEqual(len(pairs), 80)
        self.assertEqual(len({pair["feature_row"] for pair in pairs}), 80)
        self.assertGreater(len(read_rows(self.path("trace.csv"))), 0)

    def test_text_columns_are_mentioned_on_stderr_and_not_when_quiet(self):
        self.make_sample()
        arguments = ("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows")
        done = self.run_here(*arguments)
        self.assertIn('note: r.csv: column "city" shares its values with "town" of f.csv: left out; make it a key with '
                      "--group city=town", done.stderr)
        self.assertIn('note: f.csv: column "town"', done.stderr)
        quiet = self.run_here(*arguments, "--quiet")
        self.assertEqual((quiet.stdout, quiet.stderr), ("", ""))

    def test_responses_of_unlike_scales_are_mentioned(self):
        self.make_sample()
        with open(self.path("r.csv")) as file:
            rows = list(csv.DictReader(file))
        self.write("two.csv", "y,cents\n" + "".join(f"{row['y']},{100 * float(row['y'])}\n" for row in rows))
        done = self.run_here("fit", "two.csv", "f.csv", "--response", "y,cents", "--hint", "rows", "--method", "ls")
        self.assertIn('note: two.csv: the response "cents" has the standard deviation', done.stderr)
        self.assertIn("bring them to similar scales", done.stderr)

    def test_json_is_printed_alone(self):
        self.make_sample()
        fit = json.loads(self.succeed("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows", "--json"))
        self.assertEqual(fit["method"], "auto")

    def test_auto_says_what_it_chose_and_writes_link_probabilities(self):
        self.make_sample()
        out = self.succeed("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows", "--links", "links.csv")
        self.assertIn("mixture: rows in order", out)
        self.assertIn("Identifiability   identified", out)
        self.assertEqual(len(read_rows(self.path("links.csv"))), 80)

    def test_answers_the_data_cannot_tell_apart_end_with_exit_code_1(self):
        self.succeed("simulate", "sensing", "--n", 300, "--dim-z", 2, "--shuffle", 1, "--seed", 1, "--out", "s")
        done = self.run_here("fit", "s/responses.csv", "s/features.csv", "--response", "y", "--out", "fit.json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertLess(done.stdout.index("not identifiable"), done.stdout.index("one of the solutions"))
        self.assertIn("advice: give some known or probable pairs", done.stdout)
        self.assertNotIn("std err", done.stdout)
        self.refuse(3, "predict", "fit.json", "s/test.csv", "--intervals", says="fit.json: the fit has no standard errors")
        with open(self.path("fit.json")) as file:
            self.assertEqual(json.load(file)["identifiable"]["verdict"], "not identifiable")

    def test_every_method_writes_a_fit_that_predict_and_match_can_use(self):
        self.make_sample()
        self.write("known.csv", "response_row,feature_row\n" + "".join(f"{i},{i}\n" for i in range(80) if i % 3 > 0))
        for method in ("auto mixture am em hard-em ls oracle robot robot-robust robot-unrolled rr rs sinkhorn-gw sliced-gw").split():
            extra = {"rs": ("--rs-samples", 2000), "robot-unrolled": ("--unroll", 20, "--max-iterations", 3)}
            done = self.run_here("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows", "--method", method, "--known",
                                 "known.csv", "--out", "fit.json", "--json", *extra.get(method, ()))
            self.assertIn(done.returncode, (0, 1), f"{method}: {done.stderr}")
            fit = json.loads(done.stdout)
            self.assertEqual(fit["method"], method)
            self.assertIn("objective_name", fit)
            self.succeed("predict", "fit.json", "t.csv", "--out", "p.csv")
            self.succeed("match", "fit.json", "r.csv", "f.csv", "--out", "pairs.csv")
            self.assertEqual(len(read_rows(self.path("p.csv"))), 80)
            if method == "oracle":
                self.assertAlmostEqual(fit["coefficients"]["b"], -3, delta=0.05)
                self.assertLess(fit["std_errors"]["b"], 0.05)

    def test_known_pairs_that_make_no_sense_are_bad_data(self):
        self.make_sample()
        fit = ("fit", "r.csv", "f.csv", "--response", "y", "--quiet", "--known", "k.csv")
        self.refuse(3, *fit, says="k.csv: cannot be opened")
        self.write("k.csv", "response_row,feature_row\n0,one\n")
        self.refuse(3, *fit, says='column "feature_row" holds "one"; a row number from 0 was expected')
        self.write("k.csv", "response_row,feature_row\n0,80\n")
        self.refuse(3, *fit, says="has no row 80; 0 to 79 was expected")
        self.write("k.csv", "response_row,feature_row\n0,1\n0,2\n")
        self.refuse(3, *fit, says="is already in another pair")
        self.write("k.csv", "response_row,feature_row\n0,1\n2,2\n0,1\n")
        self.refuse(3, *fit, says="k.csv, row 3: the pair 0,1 is given twice, first in row 1")

    def test_prior_weights_identify_what_is_not_identifiable_without(self):
        chance = random.Random(1)
        n, order = 120, list(range(120))
        chance.shuffle(order)
        z = [chance.gauss(0, 1) for _ in range(n)]
        key = [chance.randrange(12) for _ in range(n)]
        self.write("f.csv", "z,town\n" + "".join(f"{z[j]},c{key[j]}\n" for j in range(n)))
        self.write("r.csv", "y,city\n" + "".join(
            f"{2 * z[j] + chance.gauss(0, 0.2)},c{key[j] if chance.random() < 0.9 else chance.randrange(12)}\n" for j in order))
        self.write("p.csv", "response_row,feature_row,weight\n" + "".join(
            f"{i},{order[i] if chance.random() < 0.6 else chance.randrange(n)},{0.6 / 0.4 * (n - 1)}\n" for i in range(n)))
        tables = ("r.csv", "f.csv", "--response", "y", "--json")
        for evidence in (("--prior", "p.csv"), ("--soft-group", "city=town:0.9")):
            fit = json.loads(self.succeed("fit", *tables, *evidence, "--out", "fit.json", "--pairs", "pairs.csv"))
            self.assertEqual(fit["backend"], "dense")
            self.assertAlmostEqual(fit["coefficients"]["z"], 2, delta=0.1)
            self.assertEqual(fit["identifiable"]["verdict"], "identified")
        self.assertEqual(fit["columns"]["soft_groups"], [["city", "town", 0.9]])
        self.succeed("match", "fit.json", "r.csv", "f.csv", "--out", "again.csv")
        self.assertEqual(read_rows(self.path("pairs.csv")), read_rows(self.path("again.csv")))

    def test_prior_weights_that_make_no_sense_are_refused(self):
        self.make_sample()
        fit = ("fit", "r.csv", "f.csv", "--response", "y", "--quiet")
        self.write("p.csv", "response_row,feature_row\n0,1\n")
        self.refuse(3, *fit, "--prior", "p.csv", says='no column "weight"')
        self.write("p.csv", "response_row,feature_row,weight\n0,1,0\n")
        self.refuse(3, *fit, "--prior", "p.csv", says='column "weight" holds 0; prior odds > 0 were expected')
        self.write("p.csv", "response_row,feature_row,weight\n0,80,2\n")
        self.refuse(3, *fit, "--prior", "p.csv", says="has no row 80; 0 to 79 was expected")
        self.write("p.csv", "response_row,feature_row,weight\n0,1,2\n")
        self.refuse(2, *fit, "--prior", "p.csv", "--method", "am", says="am cannot use prior weights of pairs")
        self.refuse(2, *fit, "--prior", "p.csv", "--method", "robot", "--backend", "sorted", says="need the dense one")
        self.refuse(2, *fit, "--prior", "p.csv", "--stream", says="--prior: not with tables in pieces")
        self.refuse(2, *fit, "--soft-group", "b", says="--soft-group b: COLUMN:RATE or LEFT=RIGHT:RATE was expected")
        self.refuse(2, *fit, "--soft-group", "b:1", says="above 0 and below 1")
        self.refuse(2, *fit, "--soft-group", "a=b:0.9", "--stream", says="--soft-group: not with tables in pieces")

    def test_compare_tells_of_every_method_and_why_one_cannot_run(self):
        self.succeed("simulate", "sensing", "--n", 120, "--dim-z", 2, "--shuffle", 0.3, "--snr", 100, "--mean", 1, "--out",
                     "s")
        files = ("s/responses.csv", "s/features.csv", "--response", "y", "--hint", "rows", "--rs-samples", 500)
        out = json.loads(self.succeed("compare", *files, "--test", "s/test.csv", "--truth", "s/truth.json", "--json",
                                      "--csv", "table.csv"))
        rows = {row["method"]: row for row in out["methods"]}
        self.assertNotIn("robot-unrolled", rows)
        for name in ("ls", "oracle", "am", "em", "hard-em", "rr", "rs", "sliced-gw", "sinkhorn-gw", "robot"):
            self.assertIsNotNone(rows[name]["test_error"], rows[name])
            self.assertIsNotNone(rows[name]["coefficient_error"], name)
        self.assertLess(rows["oracle"]["test_error"], 0.03)
        self.assertLess(rows["robot"]["test_error"], rows["ls"]["test_error"])
        table = {row["method"]: row for row in read_rows(self.path("table.csv"))}
        self.assertEqual(list(table), list(rows))
        self.assertAlmostEqual(float(table["rr"]["test_error"]), rows["rr"]["test_error"])
        # The known truth is the oracle's alone.
        without = json.loads(self.succeed("compare", *files, "--methods", "am,oracle", "--json"))["methods"]
        self.assertEqual(without[0]["parameters"], rows["am"]["parameters"])
        self.assertEqual(without[1]["status"], "failed")
        self.assertIn("known pairs", without[1]["message"])
        text = self.succeed("compare", *files, "--methods", "ls,rr", "--model", "sine", "--no-intercept")
        self.assertIn("cannot run: rr needs a model that is linear", text)
        self.assertEqual(self.run_here("compare", *files, "--methods", "oracle").returncode, 1)

    def test_same_seed_same_numbers_for_any_number_of_threads(self):
        self.make_sample()
        fits = []
        for threads in (1, 2, 2):
            text = self.succeed("fit", "r.csv", "f.csv", "--response", "y", "--seed", 3, "--threads", threads, "--json")
            fits.append(json.loads(text)["coefficients"])
        self.assertEqual(fits[0], fits[1])
        self.assertEqual(fits[1], fits[2])

    def test_options_may_stand_before_the_files(self):
        self.make_sample()
        self.succeed("fit", "--response", "y", "--z", "b,c", "--hint", "rows", "r.csv", "f.csv")

    def test_one_table_is_fitted_with_its_rows_as_a_hint(self):
        self.make_sample()
        self.succeed("fit", "t.csv", "--response", "y", "--out", "fit.json")
        with open(self.path("fit.json")) as file:
            fit = json.load(file)
        self.assertEqual(fit["columns"]["z"], ["a", "b", "c"])
        self.succeed("match", "fit.json", "t.csv", "--out", "pairs.csv")

    def test_groups_robust_weights_and_models_are_accepted(self):
        self.make_sample()
        common = ("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows", "--json")
        robust = json.loads(self.succeed(*common, "--robust", "--unmatched", 0.1))
        self.assertEqual(robust["method"], "robot-robust")
        self.succeed(*common, "--group", "city=town")
        self.succeed(*common, "--objective", "entropic", "--epsilon", 1e-3)
        no_intercept = json.loads(self.run_here(*common, "--no-intercept").stdout)
        self.assertEqual(no_intercept["intercept"], 0)

    def test_pairs_never_leave_their_group(self):
        self.make_sample()
        self.succeed("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows", "--group", "city=town", "--pairs",
                     "pairs.csv")
        city = [row["city"] for row in read_rows(self.path("r.csv"))]
        town = [row["town"] for row in read_rows(self.path("f.csv"))]
        pairs = [pair for pair in read_rows(self.path("pairs.csv")) if pair["response_row"] and pair["feature_row"]]
        self.assertGreater(len(pairs), 0)
        for pair in pairs:
            self.assertEqual(city[int(pair["response_row"])], town[int(pair["feature_row"])])

    def test_a_fit_is_good_for_predict_match_gradient_and_start(self):
        self.make_sample()
        self.succeed("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows", "--out", "fit.json")
        predictions = list(csv.DictReader(self.succeed("predict", "fit.json", "t.csv").splitlines()))
        truth = read_rows(self.path("t.csv"))
        self.assertEqual(len(predictions), len(truth))
        for prediction, row in zip(predictions, truth):
            self.assertAlmostEqual(float(prediction["y"]), float(row["y"]), delta=0.5)
        self.succeed("predict", "fit.json", "t.csv", "--out", "p.csv")
        self.assertEqual(len(read_rows(self.path("p.csv"))), 80)
        self.succeed("predict", "fit.json", "t.csv", "--intervals", "--out", "p.csv")
        intervals = read_rows(self.path("p.csv"))
        self.assertEqual(list(intervals[0]), ["y", "y_std_err", "y_low", "y_high"])
        inside = sum(float(at["y_low"]) < float(row["y"]) < float(at["y_high"]) for at, row in zip(intervals, truth))
        self.assertGreater(inside, 60)
        self.assertLess(inside, 81)
        with open(self.path("fit.json")) as file:
            noise = json.load(file)["noise_sd"]
        for at, row in zip(intervals, predictions):
            self.assertEqual(at["y"], row["y"])
            reach = 1.959964 * (float(at["y_std_err"]) ** 2 + noise ** 2) ** 0.5
            self.assertAlmostEqual(float(at["y_high"]) - float(at["y"]), reach, delta=1e-6 * reach)
        self.succeed("match", "fit.json", "r.csv", "f.csv")
        self.assertEqual(len(read_rows(self.path("pairs.csv"))), 80)
        self.succeed("gradient", "r.csv", "f.csv", "--response", "y", "--at", "fit.json")
        self.succeed("fit", "r.csv", "f.csv", "--response", "y", "--start", "fit.json")

    def test_spline_fits_predict_with_the_knots_they_were_fitted_with(self):
        self.make_sample(rows=120)
        done = self.run_here("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows", "--model", "spline:3", "--out",
                             "fit.json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        whole = self.succeed("predict", "fit.json", "t.csv").splitlines()
        with open(self.path("t.csv")) as file:
            lines = file.readlines()
        self.write("part.csv", "".join(lines[:5]))
        part = self.succeed("predict", "fit.json", "part.csv").splitlines()
        self.assertEqual(part, whole[:5])
        with open(self.path("fit.json")) as file:
            fit = json.load(file)
        fit["model_state"][0] = -1
        self.write("broken.json", json.dumps(fit))
        self.refuse(3, "predict", "broken.json", "t.csv", says="broken.json: a stored spline column claims -1 knots")

    def test_joined_tables_keep_cells_as_written(self):
        self.make_sample()
        self.succeed("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows", "--out", "fit.json")
        self.succeed("match", "fit.json", "r.csv", "f.csv", "--join", "left", "--out", "joined.csv")
        joined = read_rows(self.path("joined.csv"))
        self.assertEqual(list(joined[0]), ["a", "y", "city", "b", "c", "town", "probability"])
        self.assertEqual([row["y"] for row in joined], [row["y"] for row in read_rows(self.path("r.csv"))])

    def test_gradient_prints_what_a_script_needs(self):
        self.make_sample()
        text = self.succeed("gradient", "r.csv", "f.csv", "--response", "y", "--at", "w.json", "--repeat", 3, "--json")
        out = json.loads(text)
        for key in "objective gradient marginal_error epsilon backend seconds_cold seconds_warm".split():
            self.assertIn(key, out)
        self.assertEqual(sorted(out["gradient"]), ["a", "b", "c", "intercept"])

    def test_gradient_agrees_with_differences_of_the_objective(self):
        self.make_sample()

        def evaluate(b):
            self.write("w.json", json.dumps({"coefficients": {"a": 1.5, "b": b, "c": 0.7}, "intercept": 0.9}))
            return json.loads(self.succeed("gradient", "r.csv", "f.csv", "--response", "y", "--at", "w.json", "--repeat",
                                           1, "--epsilon-abs", 0.05, "--tolerance", 1e-12, "--json"))

        step = 1e-4
        slope = (evaluate(-2.5 + step)["objective"] - evaluate(-2.5 - step)["objective"]) / (2 * step)
        self.assertAlmostEqual(evaluate(-2.5)["gradient"]["b"] / slope, 1, delta=1e-5)

    def test_simulate_writes_a_sample_that_can_be_fitted(self):
        self.succeed("simulate", "linear", "--n", 60, "--shuffle", 0.3, "--seed", 2, "--out", "s")
        self.assertEqual(sorted(os.listdir(self.path("s"))),
                         ["features.csv", "responses.csv", "test.csv", "truth.json"])
        with open(self.path("s/truth.json")) as file:
            truth = json.load(file)
        self.assertEqual(list(truth["coefficients"]), ["x1", "x2", "z1", "z2", "z3"])
        self.assertLess(truth["oracle_test_error"], truth["ls_test_error"])
        self.succeed("fit", "s/responses.csv", "s/features.csv", "--response", "y", "--hint", "rows", "--out", "fit.json")
        self.succeed("predict", "fit.json", "s/test.csv", "--out", "p.csv")

    def test_simulate_is_reproducible(self):
        self.succeed("simulate", "sensing", "--n", 50, "--seed", 5, "--out", "a")
        self.succeed("simulate", "sensing", "--n", 50, "--seed", 5, "--out", "b")
        for name in os.listdir(self.path("a")):
            with open(self.path("a/" + name)) as one, open(self.path("b/" + name)) as two:
                self.assertEqual(one.read(), two.read())

    def test_info_and_help_teach(self):
        self.assertIn("version", self.succeed("info"))
        self.assertEqual(set(json.loads(self.succeed("info", "--json"))["components"]), {"torch", "opencv", "mpi"})
        self.assertIn("Exit codes", self.succeed("--help"))
        for command in "fit predict match simulate gradient gate info".split():
            self.assertIn("Example", self.succeed(command, "--help"))

    def test_a_fit_that_did_not_converge_is_written_and_exits_with_1(self):
        self.make_sample()
        done = self.run_here("fit", "r.csv", "f.csv", "--response", "y", "--optimizer", "momentum", "--max-iterations", 1,
                             "--start", "random", "--out", "fit.json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(os.path.exists(self.path("fit.json")))


class Families(Case):
    """Responses of other laws, and what is known of links, through files."""

    def setUp(self):
        super().setUp()
        draw = random.Random(4)
        lines, self.total = ["visits,age,years,sure"], 0
        for row in range(200):
            age, years = draw.gauss(0, 1), draw.uniform(0.5, 2)
            mean, visits, product = years * 2 ** age, 0, draw.random()
            while product > 2.718281828459045 ** -mean:
                visits, product = visits + 1, product * draw.random()
            self.total += visits
            lines.append(f"{visits},{age:.6f},{years:.6f},{int(row < 60)}")
        self.write("visits.csv", "\n".join(lines) + "\n")

    def test_counts_predict_means_with_whole_ends(self):
        self.succeed("fit", "visits.csv", "--response", "visits", "--z", "age", "--offset", "years", "--method", "ls",
                     "--family", "poisson", "--out", "fit.json", "--quiet")
        self.succeed("predict", "fit.json", "visits.csv", "--intervals", "--out", "means.csv")
        rows = read_rows(self.path("means.csv"))
        self.assertAlmostEqual(sum(float(row["visits"]) for row in rows), self.total, places=4)
        self.assertTrue(all(float(row["visits_high"]).is_integer() for row in rows))
        with open(self.path("fit.json")) as file:
            self.assertEqual(json.load(file)["law"]["family"], "poisson")
        self.write("short.csv", "age\n0.5\n")
        self.refuse(3, "predict", "fit.json", "short.csv", says=["years"])

    def test_an_offset_in_a_formula_is_that_of_a_column(self):
        with open(self.path("visits.csv")) as file:
            rows = file.read().splitlines()
        self.write("logs.csv", "\n".join([rows[0] + ",exposure"] + [f"{row},{math.exp(float(row.split(',')[2]))!r}" for row in rows[1:]]))
        fits = []
        for choice in (("--formula", "visits ~ age + offset(years)"), ("--formula", "visits ~ age + offset(log(exposure))"),
                       ("--response", "visits", "--z", "age", "--offset", "years")):
            self.succeed("fit", "logs.csv", *choice, "--method", "ls", "--family", "poisson", "--out", "fit.json", "--quiet")
            predicted = self.succeed("predict", "fit.json", "logs.csv")
            with open(self.path("fit.json")) as file:
                fits.append((json.load(file)["coefficients"]["age"], float(predicted.split()[1])))
        for coefficient, first in fits:
            self.assertAlmostEqual(coefficient, fits[0][0], places=6)
            self.assertAlmostEqual(first, fits[0][1], places=5)
        fit = ("fit", "logs.csv", "--formula")
        self.refuse_formula(*fit, "visits ~ age:offset(years)", says="offset() is added to the others")
        self.refuse_formula(*fit, "visits ~ age + offset(years) + offset(age)", says="a second offset()")
        self.refuse_formula(*fit, "visits ~ age + offset(years)", "--method", "ls", says="--offset")

    def refuse_formula(self, *arguments, says):
        done = self.run_here(*arguments)
        self.assertIn(done.returncode, (2, 3), done.stdout)
        self.assertIn(says, done.stderr)

    def test_counts_without_a_family_are_told(self):
        self.assertIn("poisson may fit better", self.succeed("fit", "visits.csv", "--response", "visits", "--z", "age",
                                                            "--method", "ls"))

    def test_what_is_known_of_links(self):
        self.succeed("fit", "visits.csv", "--response", "visits", "--z", "age", "--family", "poisson", "--method",
                     "mixture", "--safe", "sure", "--wrong-rate", "0.05", "--audit", "80", "--out", "fit.json", "--quiet")
        with open(self.path("fit.json")) as file:
            self.assertIn("constant", json.load(file)["law"]["mismatch"])
        self.refuse(2, "fit", "visits.csv", "--response", "visits", "--z", "age", "--method", "ls", "--wrong-rate", "0.1",
                    says=["mixture"])
        self.refuse(2, "fit", "visits.csv", "--response", "visits", "--wrong-rate", "1.5", says=["--wrong-rate"])
        self.refuse(2, "fit", "visits.csv", "--response", "visits", "--family", "gamma", "--method", "robot",
                    says=["--family"])

    def test_sampled_links_are_complete_sets_of_rows_in_the_files(self):
        lines = self.read("visits.csv").splitlines()
        self.write("visits.csv", "\n".join([lines[0], ",0.5,1,0", *lines[1:]]) + "\n")  # the first row lacks its response
        self.succeed("fit", "visits.csv", "--response", "visits", "--z", "age", "--family", "poisson", "--method", "mixture",
                     "--wrong-rate", "0.2", "--out", "fit.json", "--quiet")
        told = self.succeed("match", "fit.json", "visits.csv", "--samples", "3", "--out", "links.csv")
        self.assertIn("3 sets of 200 links", told)
        rows = read_rows(self.path("links.csv"))
        for sample in "012":
            for side in ("response_row", "feature_row"):
                self.assertEqual(sorted(int(row[side]) for row in rows if row["sample"] == sample), list(range(1, 201)))
        again = self.read("links.csv")
        self.succeed("match", "fit.json", "visits.csv", "--samples", "3", "--seed", "1", "--out", "links.csv", "--quiet")
        self.assertNotEqual(again, self.read("links.csv"))
        self.refuse(2, "match", "fit.json", "visits.csv", "--samples", "3", "--join", "left", says=["--samples", "--join"])
        self.refuse(2, "match", "fit.json", "visits.csv", "--seed", "3", says=["--samples"])

    def test_survival(self):
        draw = random.Random(6)
        lines = ["years,died,age"]
        for _ in range(150):
            age = draw.gauss(0, 1)
            time, limit = draw.expovariate(2.718281828 ** age), draw.expovariate(0.4)
            lines.append(f"{min(time, limit):.6f},{int(time <= limit)},{age:.6f}")
        self.write("deaths.csv", "\n".join(lines) + "\n")
        fit = ("fit", "deaths.csv", "--response", "years", "--family", "cox")
        told = self.succeed(*fit, "--event", "died", "--method", "ls", "--out", "fit.json")
        self.assertNotIn("intercept", told)
        self.assertIn("negative log partial likelihood", told)
        self.succeed("predict", "fit.json", "deaths.csv", "--out", "ratios.csv")
        with open(self.path("fit.json")) as file:
            slope = json.load(file)["coefficients"]["age"]
        rows = read_rows(self.path("ratios.csv"))
        self.assertAlmostEqual(float(rows[4]["years"]), 2.718281828459045 ** (slope * float(lines[5].split(",")[2])), places=6)
        self.succeed(*fit, "--event", "died", "--method", "adjusted", "--wrong-rate", "0.1", "--audit", "60", "--quiet")
        self.refuse(2, *fit, "--method", "ls", says=["--event"])
        self.refuse(2, *fit, "--event", "died", "--method", "entropic", says=["--known", "--hint rows"])
        self.refuse(3, "fit", "deaths.csv", "--response", "years", "--family", "cox", "--event", "age",
                    "--method", "ls", says=["age", "0 or 1"])


class OnATerminal(Case):
    def shown(self, *arguments):
        """What reaches a terminal that is this process's stderr."""
        ours, theirs = os.openpty()
        process = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder.name, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                part = b""
            if not part:
                break
            text += part
        os.close(ours)
        process.wait()
        return text.decode()

    def test_the_bar_tells_rate_and_time_left_and_goes_away(self):
        self.make_sample(rows=300)
        fit = ["fit", "r.csv", "f.csv", "--response", "y", "--method", "robot", "--x", "a", "--z", "b,c", "--starts", "60"]
        shown = self.shown(*fit)
        self.assertIn("%", shown)
        self.assertRegex(shown, r"\] +\d+ %, [\d.e+]+/s, .* left")
        self.assertEqual(shown.rstrip(" ").split("\r")[-1].strip(), "")
        self.assertEqual(self.shown(*fit, "--quiet"), "")

    def test_verbose_tells_where_every_start_led(self):
        self.make_sample(rows=60)
        fit = ["fit", "r.csv", "f.csv", "--response", "y", "--method", "robot", "--x", "a", "--z", "b,c", "--starts", "4"]
        plain, verbose = self.run_here(*fit).stdout, self.run_here(*fit, "--verbose").stdout
        self.assertNotIn("outcome", plain)
        rows = verbose.split("outcome\n")[1].splitlines()
        self.assertEqual([row.split()[0] for row in rows[:4]], ["1", "2", "3", "4"])
        self.refuse(2, *fit, "--verbose", "--quiet", says="--quiet")


class BadUsage(Case):
    def setUp(self):
        super().setUp()
        self.make_sample(rows=20)

    def refuse_fit(self, *options, says):
        self.refuse(2, "fit", "r.csv", "f.csv", "--response", "y", "--out", "fit.json", *options, says=says)

    def test_no_command(self):
        self.refuse(2)

    def test_unknown_command_option_and_choice(self):
        self.refuse(2, "frobnicate")
        self.refuse_fit("--frobnicate", says="--frobnicate")
        self.refuse_fit("--method", "magic", says="magic")
        self.refuse_fit("--backend", "magic", says="magic")
        self.refuse_fit("--model", "magic", says="magic")
        self.refuse_fit("--model", "spline:x", says="spline:x")

    def test_a_report_is_refused_before_the_work_begins(self):
        self.refuse_fit("--report-truth", "truth.json", says="--report-truth applies only with --report")
        self.refuse(4, "fit", "r.csv", "f.csv", "--response", "y", "--report", "nowhere/report.html",
                    says="nowhere/report.html")

    def test_missing_response(self):
        self.refuse(2, "fit", "r.csv", "f.csv", says="--response")

    def test_negative_zero_and_unreadable_epsilon(self):
        self.refuse_fit("--epsilon", "-1", says="--epsilon = -1 must be > 0")
        self.refuse_fit("--epsilon", "0", says="--epsilon = 0 must be > 0")
        self.refuse_fit("--epsilon", "nan", says="--epsilon = nan must be > 0")
        self.refuse_fit("--epsilon", "small", says="--epsilon = small must be a number > 0")
        self.refuse_fit("--epsilon-abs", "-2", says="--epsilon-abs = -2 must be > 0")
        self.refuse_fit("--epsilon-abs", "1", "--epsilon", "1", says="exclude each other")
        self.refuse_fit("--epsilon-start", "1e-9", says="--epsilon-start = 1e-09 must be above")

    def test_numbers_out_of_range(self):
        self.refuse_fit("--robust", "--unmatched", "1", says="--unmatched = 1 must be")
        self.refuse_fit("--robust", "--rho1", "-1", says="--rho1 = -1 must be at least 0")
        self.refuse_fit("--threads", "-1", says="--threads = -1 must be at least 0")
        self.refuse_fit("--starts", "-1", says="--starts = -1 must be at least 0")
        self.refuse_fit("--tolerance", "0", says="--tolerance = 0 must be > 0")
        self.refuse_fit("--starts", "many", says="many")
        self.refuse(2, "simulate", "sensing", "--n", "1", "--out", "s", says="n = 1 must be at least 2")
        self.refuse(2, "simulate", "sensing", "--shuffle", "-1", "--out", "s", says="--shuffle = -1")
        self.refuse(2, "gradient", "r.csv", "f.csv", "--response", "y", "--at", "w.json", "--repeat", "0",
                    says="--repeat = 0 must be at least 1")

    def test_two_outputs_in_one_file(self):
        self.refuse_fit("--pairs", "fit.json", says="--out and --pairs both name fit.json; give each its own file")
        self.refuse_fit("--links", "o", "--report", "./o", says="--links and --report both name ./o")
        self.refuse_fit("--method", "robot", "--trace", "o", "--checkpoint", "o", says="--trace and --checkpoint both name o")
        self.refuse_fit("--method", "robot", "--stream", "--trace", "fit.json", says="--out and --trace both name fit.json")
        self.refuse(2, "evaluate", "--gt", ".", "--results", ".", "--csv", "o", "--out", "o", says="--csv and --out both name o")

    def test_options_without_meaning_are_not_ignored(self):
        for method in ("entropic", "ls", "rr", "one-step"):
            self.refuse_fit("--method", method, "--trace", "t.csv", says="--trace applies only with --method robot, ")
        self.refuse_fit("--method", "robot", "--bootstrap", "9", says="--bootstrap applies only with --method auto")
        self.refuse_fit("--method", "mixture", "--bootstrap", "1", says="--bootstrap = 1 must be 0 or at least 2")
        self.refuse_fit("--unmatched", "0.1", says="--unmatched applies only with --method robot-robust")
        self.refuse_fit("--batch", "10", says="--batch applies only with the optimizers momentum and adam")
        self.refuse_fit("--rs-samples", "10", says="--rs-samples applies only with --method rs")
        self.refuse_fit("--optimizer", "lbfgs", "--method", "am", says="--optimizer applies only with --method robot, robot-robust, robot-unrolled")
        self.refuse_fit("--method", "oracle", "--quiet", says="oracle needs known pairs")
        self.refuse_fit("--method", "robot", "--truth", "t.json", says="--truth applies only with --method oracle")
        self.refuse_fit("--method", "oracle", "--truth", "t.json", "--known", "k.csv", says="use one of them")
        self.refuse_fit("--robust", "--method", "robot", says="--robust contradicts --method robot")


class BadData(Case):
    def setUp(self):
        super().setUp()
        self.make_sample(rows=20)

    def refuse_tables(self, *options, says, left="r.csv", right="f.csv", exit_code=3, response="y"):
        self.refuse(exit_code, "fit", left, right, "--response", response, "--quiet", "--out", "fit.json", "--pairs",
                    "pairs.csv", *options, says=says)

    def refuse_features(self, content, says):
        self.refuse_tables(right=self.write("bad.csv", content), says=says)

    def test_missing_file(self):
        self.refuse_tables(right="none.csv", says="none.csv: cannot be opened: No such file")
        self.refuse(3, "predict", "none.json", "t.csv", says="none.json: cannot be opened")
        self.refuse(3, "gradient", "r.csv", "f.csv", "--response", "y", "--quiet", "--at", "none.json", says="none.json")
        self.refuse_tables("--start", "none.json", says="none.json: cannot be opened")

    def test_folder_for_a_file(self):
        os.mkdir(self.path("folder"))
        self.refuse_tables(right="folder", says="folder: cannot be read: Is a directory")

    def test_empty_file_and_header_only(self):
        self.refuse_features("", "bad.csv: the file is empty")
        self.refuse_features("b,c\n", "bad.csv: the file holds a header and no rows")

    def test_ragged_rows(self):
        self.refuse_features("b,c\n1,2\n3\n", "bad.csv:3: 1 field; the header has 2")
        self.refuse_features("b,c\n1,2\n3,4,5\n", "bad.csv:3: 3 fields; the header has 2")

    def test_text_in_a_numeric_column(self):
        self.refuse_features("b,c\n1,2\n3,4x\n", 'bad.csv:3: column "c" holds "4x"; a number was expected')
        self.refuse_tables("--missing", "error", right=self.write("bad.csv", "b,c\n1,2\n3,\nNaN,NA\n"),
                           says="cells are missing in 2 of 3 rows of bad.csv (b: 1, c: 2)")
        self.refuse_tables(response="city", says='r.csv:2: column "city" holds "N"; a number was expected')

    def test_infinity(self):
        self.refuse_features("b,c\n1,2\ninf,4\n", 'bad.csv:3: column "b" holds "inf"')
        self.refuse_features("b,c\n1,2\n-Infinity,4\n", 'bad.csv:3: column "b" holds "-Infinity"')

    def test_duplicate_and_unknown_columns(self):
        self.refuse_features("b,b\n1,2\n3,4\n", 'bad.csv:1: two columns are named "b"')
        self.refuse_tables("--z", "b,nope", says='f.csv: there is no column "nope"; the columns are b, c, town')
        self.refuse_tables("--x", "nope", says='r.csv: there is no column "nope"; the columns are a, y, city')
        self.refuse_tables(response="nope", says='r.csv: there is no column "nope"')
        self.refuse_tables("--weights", "nope", says='there is no column "nope"')
        self.refuse_tables("--group", "nope", says='there is no column "nope"')

    def test_broken_quotes(self):
        self.refuse_features('b,c\n1,2\n"3,4\n', "bad.csv: a quoted field is never closed")

    def test_constant_column(self):
        rows = "".join(f"{row},7\n" for row in range(20))
        self.refuse_features("b,c\n" + rows, 'column "c" is 7 in every row')

    def test_responses_that_do_not_vary(self):
        left = self.write("same.csv", "y,v\n" + "".join(f"3,{row}\n" for row in range(20)))
        for options in ((), ("--hint", "none"), ("--method", "robot"), ("--no-intercept",)):
            self.refuse_tables(*options, left=left, says='column "y" is 3 in every row; there is nothing to explain')
        self.refuse_tables(left=left, response="v,y", says='column "y" is 3 in every row; leave it out')

    def test_numbers_that_cannot_be_squared(self):
        def table(scale, offset=0):
            return "b,c\n" + "".join(f"{(row + offset) * scale!r},{row * row * scale!r}\n" for row in range(20))

        self.refuse_features(table(1e290), 'column "b" holds the magnitude 1.9e+291; 1e-70 to 1e+70 was expected')
        self.refuse_features(table(1e-300), 'column "b" varies by no more than 1.9e-299')
        self.refuse_features(table(1, 1e9), 'column "b" has the mean 1e+09 and the standard deviation 5.77')
        left = self.write("small.csv", "y\n" + "".join(f"{row}e-138\n" for row in range(20)))
        self.refuse_tables("--hint", "none", left=left, right=self.write("bad.csv", table(1e135)),
                           says='column "y" varies by no more than 1.9e-137')
        left = self.write("large.csv", "y\n" + "".join(f"{row}e300\n" for row in range(20)))
        self.refuse_tables(left=left, says='column "y" holds the magnitude 1.9e+301')

    def test_fewer_rows_than_parameters(self):
        self.refuse_features("b,c\n1,2\n3,5\n4,4\n", "the feature table has 3 rows for 5 parameters")

    def test_one_row(self):
        self.refuse_features("b,c\n1,2\n", "the feature table has 1 row")
        left = self.write("one.csv", "a,y\n1,2\n")
        self.refuse_tables(left=left, says="the response table has 1 row")

    def test_weights_negative_or_all_zero(self):
        rows = [f"{row},{row * row},1" for row in range(20)]
        rows[4] = "4,16,-1"
        bad = self.write("bad.csv", "b,c,w\n" + "\n".join(rows) + "\n")
        self.refuse_tables("--weights", "w", right=bad, says='bad.csv, row 5: column "w" holds the weight -1')
        bad = self.write("bad.csv", "b,c,w\n" + "".join(f"{row},{row * row},0\n" for row in range(20)))
        self.refuse_tables("--weights", "w", right=bad, says='bad.csv: every weight in column "w" is 0')

    def test_groups_that_never_meet(self):
        rows = "".join(f"{row},{row * row},X\n" for row in range(20))
        bad = self.write("bad.csv", "b,c,city\n" + rows)
        self.refuse_tables("--group", "city", right=bad, says="no group occurs in both tables")
        self.refuse_tables("--soft-group", "city:0.9", right=bad,
                           says="--soft-group city:0.9: no value occurs in both tables")

    def test_empty_cells_in_a_group_key(self):
        bad = self.write("bad.csv", "b,c,town\n" + "".join(f"{row},{row * row},{'' if row in (3, 7) else 'N'}\n"
                                                          for row in range(20)))
        self.refuse_tables("--group", "city=town", right=bad,
                           says=('bad.csv:5: column "town" is empty (2 of 20 rows)', "--soft-group"))

    def test_broken_parameters(self):
        def refuse_at(content, says):
            self.write("w.json", content)
            self.refuse(3, "gradient", "r.csv", "f.csv", "--response", "y", "--quiet", "--at", "w.json", says=says)

        refuse_at("{", "w.json: not valid JSON")
        refuse_at("{}", 'w.json: the key "coefficients" is missing')
        refuse_at('{"coefficients": {"a": 1, "b": 2}}', 'w.json: the coefficient "c" is missing')
        refuse_at('{"coefficients": {"a": 1, "b": 2, "c": 3, "d": 4}}', 'w.json: the model has no parameter "d"')
        self.refuse(3, "predict", "w.json", "t.csv", says='w.json: the key "columns" is missing')

    def test_prediction_needs_every_feature(self):
        self.succeed("fit", "r.csv", "f.csv", "--response", "y", "--hint", "rows", "--quiet", "--out", "fit.json")
        self.refuse(3, "predict", "fit.json", "f.csv", says='f.csv: there is no column "a"; the columns are b, c, town')


class Reproduce(Case):
    def test_an_experiment_leaves_numbers_pages_and_a_script_for_figures(self):
        said = self.succeed("reproduce", "conditioning", "--quick", "--out", "a")
        self.assertIn("[holds]", said)
        self.assertEqual(said.splitlines()[-1], "Wrote a/index.html; draw its figures with: python3 a/figures.py")
        files = ["conditioning.csv", "figures.py", "index.html", "results.md", "settings.txt"]
        self.assertEqual(sorted(os.listdir(self.path("a"))), files)
        with open(self.path("a/figures.py")) as written, open(FIGURES) as script:
            self.assertEqual(written.read(), script.read())
        for row in read_rows(self.path("a/conditioning.csv")):
            if row["method"] == "alternating":  # 1 + dρ/(1-ρ) at ρ = 1/2
                self.assertAlmostEqual(float(row["value"]), 1 + float(row["x"]), places=3)

    def test_the_command_that_draws_figures_can_be_pasted(self):
        said = self.succeed("reproduce", "conditioning", "--quick", "--out", "it's here")
        command = said.splitlines()[-1].split(": ")[1]
        self.assertEqual(shlex.split(command), ["python3", "it's here/figures.py"])

    def test_figures_of_other_numbers_go(self):
        os.mkdir(self.path("a"))
        self.write("a/rho.svg", "old")
        self.write("a/alignment.svg", "other")
        self.succeed("reproduce", "rho", "--quick", "--out", "a")
        self.assertFalse(os.path.exists(self.path("a/rho.svg")))
        self.write("a/rho.svg", "new")
        self.succeed("reproduce", "rho", "--quick", "--resume", "--out", "a")
        self.assertTrue(os.path.exists(self.path("a/rho.svg")))
        self.assertTrue(os.path.exists(self.path("a/alignment.svg")))

    def test_claims_come_from_the_numbers_alone(self):
        self.succeed("reproduce", "rho", "--quick", "--out", "a")
        self.succeed("reproduce", "rho", "--from", "a", "--out", "b")
        for name in ("rho.csv", "results.md", "index.html"):
            with open(self.path("a/" + name)) as first, open(self.path("b/" + name)) as second:
                self.assertEqual(first.read(), second.read(), name)

    def test_goes_on_where_it_was_interrupted(self):
        run_rho = ("reproduce", "rho", "--quick", "--out", "a")
        written = lambda: os.stat(self.path("a/rho.csv")).st_ino  # a file that is written anew is another one
        self.succeed(*run_rho)
        first = written()
        self.succeed(*run_rho, "--resume")
        self.assertEqual(written(), first)
        self.refuse(2, *run_rho, "--seed", "1", "--resume", says="other settings")
        with open(self.path("a/rho.csv"), "rb") as file:  # keeps its number from being given out again
            self.succeed(*run_rho)
            self.assertNotEqual(written(), os.fstat(file.fileno()).st_ino)

    def test_what_cannot_be_reproduced(self):
        self.refuse(2, "reproduce", "nothing", "--out", "a", says="nothing")
        self.refuse(2, "reproduce", "cytometry", "--cytometry-file", "x.fcs", "--out", "a", says="must be given together")
        self.refuse(3, "reproduce", "rho", "--from", "none", "--out", "a", says="rho.csv", creates=["a"])


class BadDisk(Case):
    def setUp(self):
        super().setUp()
        self.make_sample(rows=20)

    def refuse_output(self, *options, says):
        self.refuse(4, "fit", "r.csv", "f.csv", "--response", "y", "--method", "robot", "--hint", "rows", "--quiet", *options, says=says)

    def test_missing_output_folder(self):
        for option in ("--out", "--pairs", "--trace"):
            self.refuse_output(option, "none/file", says="none/file: cannot be written: No such file or directory")
        self.refuse(4, "simulate", "sensing", "--out", "r.csv/s", says="r.csv/s: cannot be created")

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_folder_without_permission(self):
        os.mkdir(self.path("closed"), 0o500)
        self.refuse_output("--out", "closed/fit.json", says="closed/fit.json: cannot be written: Permission denied")

    def test_folder_in_the_place_of_the_file(self):
        os.mkdir(self.path("folder"))
        self.refuse_output("--out", "folder", says="folder: cannot be written: Is a directory")

    def test_full_disk(self):
        self.refuse_output("--out", "/dev/full", says="/dev/full: cannot be written: No space left on device")
        with open("/dev/full", "w") as full:
            done = self.run_here("info", stdout=full)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr, "unshuffle: error: standard output: cannot be written: No space left on device\n")

    def test_more_rows_than_memory_can_hold(self):
        self.refuse(4, "simulate", "sensing", "--n", 10**15, "--out", "s", says=("rows of 6 columns need about", "GB of memory"))

    def test_a_failed_run_leaves_an_earlier_result_alone(self):
        self.write("fit.json", "earlier")
        self.refuse(3, "fit", "r.csv", "none.csv", "--response", "y", "--out", "fit.json", says="none.csv")
        with open(self.path("fit.json")) as file:
            self.assertEqual(file.read(), "earlier")


class Cytometry(Case):
    GATES = """<g:Gating-ML>
<g:RectangleGate g:id="low"><g:dimension g:max="0"><d:fcs-dimension d:name="z1"/></g:dimension></g:RectangleGate>
</g:Gating-ML>"""

    def make_events(self, *more):
        self.succeed("simulate", "cytometry", "--n", 200, "--dim-z", 3, "--seed", 4, "--fcs", "--out", "s", *more)

    def test_fcs_files_stand_wherever_tables_do(self):
        self.make_events()
        self.succeed("fit", "s/responses.fcs", "s/features.fcs", "--response", "y", "--method", "robot", "--out", "fit.json")
        objectives = []
        for kind in ("csv", "fcs"):  # An FCS file holds single precision.
            done = self.succeed("gradient", "s/responses." + kind, "s/features." + kind, "--response", "y", "--at", "fit.json",
                                "--repeat", 1, "--json")
            objectives.append(json.loads(done)["objective"])
        self.assertAlmostEqual(objectives[0] / objectives[1], 1, delta=1e-4)
        self.succeed("predict", "fit.json", "s/features.fcs", "--out", "p.csv")
        self.assertEqual(len(read_rows(self.path("p.csv"))), 180)
        self.succeed("match", "fit.json", "s/responses.fcs", "s/features.fcs", "--join", "inner", "--out", "j.csv")
        self.assertEqual(len(read_rows(self.path("j.csv"))), 180)

    def test_info_and_gate_describe_a_file(self):
        self.make_events()
        self.assertIn("180 events, 3 channels", self.succeed("info", "s/features.fcs"))
        self.assertEqual([channel["name"] for channel in
                          json.loads(self.succeed("info", "s/features.fcs", "--json"))["channels"]], ["z1", "z2", "z3"])
        self.write("g.xml", self.GATES)
        self.assertIn("low", self.succeed("gate", "s/features.fcs", "g.xml", "--out", "m.csv"))
        inside = [int(row["low"]) for row in read_rows(self.path("m.csv"))]
        below = [int(float(row["z1"]) < 0) for row in read_rows(self.path("s/features.csv"))]
        self.assertEqual(inside, below)

    def write_fcs(self, name, channels, events, **keywords):
        """channels: (name, marker); FCS 3.1 of little-endian floats."""
        pairs = {"$BYTEORD": "1,2,3,4", "$DATATYPE": "F", "$MODE": "L", "$NEXTDATA": "0", "$PAR": len(channels), "$TOT": len(events),
                 "$BEGINANALYSIS": 0, "$ENDANALYSIS": 0, "$BEGINSTEXT": 0, "$ENDSTEXT": 0, **keywords}
        for at, (channel, marker) in enumerate(channels, 1):
            pairs |= {f"$P{at}N": channel, f"$P{at}B": 32, f"$P{at}R": 262144, f"$P{at}E": "0,0"}
            if marker:
                pairs[f"$P{at}S"] = marker
        data = struct.pack(f"<{len(events) * len(channels)}f", *(value for event in events for value in event))
        begin = 0
        for _ in range(2):  # the offsets are part of the text whose length they depend on
            whole = {**pairs, "$BEGINDATA": f"{begin:08}", "$ENDDATA": f"{begin + len(data) - 1:08}"}
            text = "|" + "".join(f"{key}|{value}|" for key, value in whole.items())
            begin = 58 + len(text)
        head = f"FCS3.1    {58:>8}{begin - 1:>8}{begin:>8}{begin + len(data) - 1:>8}{0:>8}{0:>8}"
        with open(self.path(name), "wb") as file:
            file.write((head + text).encode() + data)
        return name

    CHANNELS = [("Time", ""), ("FITC-A", "CD4"), ("PE-A", "CD8"), ("APC-A", "CD8"), ("BV-A", "CD3")]

    def cells(self):
        """asinh(CD4 / 150) = 1 + 0.5 asinh(CD3 / 150); time starts below 0, where it has no logarithm."""
        draw = random.Random(5)
        rows = []
        for at in range(80):
            cd3 = draw.uniform(0.5, 4)
            rows.append((at - 1.0, 150 * math.sinh(1 + 0.5 * cd3), draw.uniform(1, 9), draw.uniform(1, 9), 150 * math.sinh(cd3)))
        return rows

    def test_channels_are_found_by_their_markers(self):
        self.write_fcs("cells.fcs", self.CHANNELS, self.cells())
        fit = json.loads(self.succeed("fit", "cells.fcs", "--response", "CD4", "--z", "CD3", "--transform", "asinh", "--method", "ls",
                                      "--json", "--out", "fit.json"))
        self.assertEqual(fit["columns"]["response"], ["FITC-A"])
        self.assertAlmostEqual(fit["coefficients"]["BV-A"], 0.5, delta=1e-5)
        self.refuse(3, "fit", "cells.fcs", "--response", "CD8", says='"CD8" is the label of PE-A and of APC-A; name one of these')
        self.refuse(3, "fit", "cells.fcs", "--response", "CD44", says=("did you mean CD4?", "FITC-A (CD4)"))

    def test_a_scale_minds_the_channels_in_use(self):
        self.write_fcs("cells.fcs", self.CHANNELS, self.cells())
        self.succeed("fit", "cells.fcs", "--response", "CD4", "--z", "CD3", "--transform", "log", "--method", "ls")
        self.succeed("fit", "cells.fcs", "--formula", "`FITC-A` ~ `BV-A`", "--transform", "log", "--method", "ls")
        self.refuse(3, "fit", "cells.fcs", "--response", "CD4", "--transform", "log",
                    says='event 1: channel "Time" holds -1, which is not a finite number on the scale log')

    def test_a_fit_remembers_scales_and_gates(self):
        self.write_fcs("cells.fcs", self.CHANNELS, self.cells())
        self.write("g.xml", self.GATES.replace("z1", "PE-A").replace('max="0"', 'max="5"'))
        self.succeed("fit", "cells.fcs", "--response", "CD4", "--z", "CD3", "--transform", "asinh", "--gates", "g.xml", "--group",
                     "gates", "--method", "ls", "--out", "fit.json")
        os.remove(self.path("g.xml"))
        self.succeed("predict", "fit.json", "cells.fcs", "--out", "p.csv")
        for row, cell in zip(read_rows(self.path("p.csv")), self.cells()):
            self.assertAlmostEqual(float(row["FITC-A"]), math.asinh(cell[1] / 150), delta=1e-4)
        self.succeed("match", "fit.json", "cells.fcs", "--out", "m.csv")
        self.assertEqual(len(read_rows(self.path("m.csv"))), 80)
        self.refuse(2, "predict", "fit.json", "cells.fcs", "--transform", "log", says="--transform: fit.json remembers")
        self.succeed("predict", "fit.json", "cells.fcs", "--out", "with.fcs")
        channels = json.loads(self.succeed("info", "with.fcs", "--json"))["channels"]
        self.assertEqual([channel["name"] for channel in channels][-1], "FITC-A_predicted")

    def test_info_reads_what_fit_reads(self):
        self.write_fcs("odd.fcs", self.CHANNELS, self.cells(), **{"$COMP": "3,1,0,0,0,1,0,0,0,1"})
        self.succeed("fit", "odd.fcs", "--response", "CD4", "--z", "CD3", "--method", "ls")
        done = self.run_here("info", "odd.fcs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("80 events, 5 channels", done.stdout)

    def test_pairs_never_leave_their_gates(self):
        self.make_events()
        self.write("g.xml", self.GATES)
        self.succeed("fit", "s/features.fcs", "--response", "z2", "--gates", "g.xml", "--group", "gates", "--pairs", "p.csv")
        low = [float(row["z1"]) < 0 for row in read_rows(self.path("s/features.csv"))]
        for row in read_rows(self.path("p.csv")):
            self.assertEqual(low[int(row["response_row"])], low[int(row["feature_row"])])

    def test_equal_mass_gates_are_a_key(self):
        self.make_events("--equal-mass-gates", 4)
        by_column = self.succeed("fit", "s/responses.csv", "s/features.csv", "--response", "y", "--group", "mass_gate",
                                 "--json")
        self.write("r.csv", "".join(f"{row['y']}\n" for row in [{"y": "y"}, *read_rows(self.path("s/responses.csv"))]))
        by_option = self.succeed("fit", "r.csv", "s/features.csv", "--response", "y", "--equal-mass-gates", 4, "--json")
        self.assertEqual(json.loads(by_column)["coefficients"], json.loads(by_option)["coefficients"])

    def test_a_file_is_shuffled_as_in_the_paper(self):
        self.make_events()
        self.succeed("simulate", "cytometry", "--from", "s/features.fcs", "--response", "z2", "--features", "z1,z3",
                     "--transform", "asinh:2", "--transform", "z3=linear", "--equal-mass-gates", 3, "--out", "t")
        with open(self.path("t/truth.json")) as file:
            truth = json.load(file)
        self.assertEqual(list(truth["coefficients"]), ["z1", "z3"])
        self.assertEqual(len(truth["permutation"]), 162)
        self.assertEqual(len(read_rows(self.path("t/test.csv"))), 18)
        self.assertEqual({row["mass_gate"] for row in read_rows(self.path("t/features.csv"))}, {"1", "2", "3"})

    def test_bad_files_and_options_are_refused(self):
        self.make_events()
        fit = ["fit", "s/responses.fcs", "s/features.fcs", "--response", "y"]
        self.refuse(2, *fit, "--transform", "magic", says='"magic" is not a scale')
        self.refuse(3, *fit, "--transform", "q=log", says='no column "q"')
        self.refuse(3, *fit, "--transform", "log", says="which is not a finite number on the scale log")
        self.refuse(3, *fit, "--compensate", says="no spillover matrix")
        self.refuse(3, *fit, "--gates", "missing.xml", says="missing.xml")
        self.refuse(2, *fit, "--equal-mass-gates", 1, says="equal-mass gates = 1 must be at least 2")
        self.refuse(3, *fit, "--equal-mass-gates", 3, says="mass_gate")
        csv_fit = ["fit", "s/responses.csv", "s/features.csv", "--response", "y"]
        for option in (["--transform", "log"], ["--compensate"], ["--gates", "g.xml"]):
            self.refuse(2, *csv_fit, *option, says=option[0] + " applies only with FCS files")
        self.write("broken.fcs", "FCS3.1 and nothing more")
        self.refuse(3, "fit", "broken.fcs", "--response", "y", says="broken.fcs: this is not an FCS file")
        self.refuse(3, "info", "broken.fcs", says="broken.fcs: this is not an FCS file")
        self.refuse(2, "simulate", "cytometry", "--mean", 1, "--out", "u", says="--mean cannot be used with the design cytometry")
        self.refuse(2, "simulate", "linear", "--fcs", "--out", "u", says="--fcs applies only with the design cytometry")
        self.refuse(2, "simulate", "cytometry", "--from", "s/features.fcs", "--out", "u", says="--response")
        self.refuse(2, "simulate", "cytometry", "--transform", "log", "--out", "u", says="apply only with --from")
        self.refuse(2, "simulate", "cytometry", "--from", "s/features.fcs", "--response", "z1", "--noise", 1, "--out", "u",
                    says="--noise cannot be used with --from")


class GivenUpRows(Case):
    def test_a_row_without_a_partner_does_not_count_as_an_error_of_the_plan(self):
        self.succeed("simulate", "cytometry", "--n", "300", "--dim-z", "4", "--equal-mass-gates", "5", "--seed", "1",
                     "--out", "cells")
        self.succeed("fit", "cells/responses.csv", "cells/features.csv", "--response", "y", "--group", "mass_gate",
                     "--robust", "--unmatched", "0.02")


def components():
    """Names of the optional components that are here."""
    listed = json.loads(run("info", "--json").stdout)["components"]
    return {name for name, state in listed.items() if not state.startswith("missing")}


class Tracking(Case):
    def make_video(self, name="Walk", frames=25, people=3):
        """People who walk at constant speed, each detected in every frame; the truth has the detections' boxes."""
        os.makedirs(self.path(f"{name}/det"))
        os.makedirs(self.path(f"{name}/gt"))
        self.write(f"{name}/seqinfo.ini",
                   f"[Sequence]\nname={os.path.basename(name)}\nframeRate=10\nseqLength={frames}\nimWidth=640\nimHeight=480\n")
        detections, truth = [], []
        for frame in range(1, frames + 1):
            for person in range(people):
                box = f"{60 + 180 * person + (3 + person) * frame},{100 + 20 * person},40,100"
                detections.append(f"{frame},-1,{box},1\n")
                truth.append(f"{frame},{person + 1},{box},1,-1,-1,-1\n")
        self.write(f"{name}/det/det.txt", "".join(reversed(detections)))
        self.write(f"{name}/gt/gt.txt", "".join(truth))
        return name

    def make_film(self, name="Film", frames=8):
        """A dark square that walks over a lighter ground, in pictures of 160 x 120 pixels."""
        os.makedirs(self.path(f"{name}/det"))
        os.makedirs(self.path(f"{name}/gt"))
        os.makedirs(self.path(f"{name}/img1"))
        self.write(f"{name}/seqinfo.ini", f"[Sequence]\nname={name}\nimExt=.ppm\nframeRate=10\nseqLength={frames}\n"
                                          "imWidth=160\nimHeight=120\n")
        boxes = []
        for frame in range(1, frames + 1):
            left = 40 + 3 * frame
            boxes.append(f"{frame},1,{left},30,24,48,1,-1,-1,-1\n")
            inside = lambda x, y: left <= x < left + 24 and 30 <= y < 78
            pixels = bytes(40 if inside(x, y) else 150 + (x * 7 + y * 13) % 50
                           for y in range(120) for x in range(160) for _ in range(3))
            with open(self.path(f"{name}/img1/{frame:06}.ppm"), "wb") as file:
                file.write(b"P6 160 120 255\n" + pixels)
        self.write(f"{name}/det/det.txt", "".join(boxes))
        self.write(f"{name}/gt/gt.txt", "".join(boxes))
        return name

    def test_drawing_gives_a_picture_of_every_frame_or_a_video(self):
        self.make_video()
        if "opencv" not in components():
            self.refuse(2, "track", "Walk", "--out", "r", "--draw", "drawn", says="libopencv-imgcodecs-dev")
            self.skipTest("the component opencv is not installed; its message was checked")
        self.make_film()
        out = self.succeed("track", "Walk", "Film", "--out", "results", "--draw", "drawn")
        self.assertIn("Drew drawn/Film", out)
        self.assertEqual(sorted(os.listdir(self.path("drawn/Walk"))), [f"{frame:06}.jpg" for frame in range(1, 26)])
        self.assertEqual(len(os.listdir(self.path("drawn/Film"))), 8)
        self.succeed("track", "Walk", "--out", "results", "--draw", "walk.mp4")
        self.assertGreater(os.path.getsize(self.path("walk.mp4")), 1000)
        self.assertNotIn("unfinished-walk.mp4", os.listdir(self.path(".")))
        os.remove(self.path("Film/img1/000003.ppm"))
        self.refuse(3, "track", "Film", "--out", "r", "--draw", "d", says="000003.ppm: is missing")
        self.write("Film/img1/000003.ppm", "no picture")
        self.assertEqual(self.run_here("track", "Film", "--out", "r", "--draw", "f.mp4").returncode, 3)
        self.assertFalse(os.path.exists(self.path("f.mp4")))

    def test_a_siamese_model_learns_from_pictures_and_tracks(self):
        self.make_film()
        small = ["train-tracker", "Film", "--model", "siamese", "--width", 0.125, "--birth-wait", 1, "--hold-out", 3]
        self.refuse(2, *small, "--out", "s.pt", "--hidden", 3, says="--hidden cannot be used with --model siamese")
        self.refuse(2, "train-tracker", "Film", "--out", "s.json", "--width", 0.5, says="--width cannot be used with --model boxes")
        for name, package in ("torch", "libtorch-dev"), ("opencv", "libopencv-imgcodecs-dev"):
            if name not in components():
                self.refuse(2, *small, "--out", "s.pt", says=package)
                self.skipTest(f"the component {name} is not installed; its message was checked")
        out = self.succeed(*small, "--epochs", 2, "--out", "whole.pt", "--trace", "trace.csv")
        self.assertRegex(out, r"Held out, 2 predictions: IoU with the truth 0\.\d+ untrained -> 0\.\d+ trained")
        self.assertEqual(len(read_rows(self.path("trace.csv"))), 2)
        self.assertRegex(out, r"Held back: objective per pair 0\.\d+ untrained -> 0\.\d+ after epoch [012], which is kept")
        again = ["--out", "part.pt", "--checkpoint", "c", "--resume", "--trace", "again.csv"]
        self.succeed(*small, "--epochs", 1, *again)
        self.succeed(*small, "--epochs", 2, *again)
        self.assertEqual(read_rows(self.path("trace.csv")), read_rows(self.path("again.csv")))
        with open(self.path("whole.pt"), "rb") as whole, open(self.path("part.pt"), "rb") as part:
            self.assertEqual(whole.read(), part.read())
        self.refuse(3, *small, "--seed", 9, *again, says="c: was written for other videos or options")
        self.succeed("track", "Film", "--model", "whole.pt", "--birth-wait", 1, "--out", "results")
        with open(self.path("results/Film.txt")) as results:
            self.assertEqual(len(results.readlines()), 8)
        self.refuse(2, "track", "Film", "--model", "whole.pt", "--adapt", "--out", "r", says="--adapt")
        self.make_video()
        self.refuse(3, "track", "Walk", "--model", "whole.pt", "--out", "r", says="Walk: has no folder img1", creates=["r"])
        self.write("broken.pt", "PK rubbish")
        self.refuse(3, "track", "Film", "--model", "broken.pt", "--out", "s", says="broken.pt: cannot be read")

    def test_nanotrack_tracks_with_its_published_weights_and_learns_only_what_is_named(self):
        self.make_film()
        start = ["train-tracker", "Film", "--model", "nanotrack", "--birth-wait", 1]
        self.refuse(2, *start, "--out", "n.pt", says="--model nanotrack needs --start FILE")
        weights = os.path.join(os.path.dirname(__file__), "..", "..", "..", "shared", "data", "mot", "weights", "pretrained_nanotrackv2.pth")
        if not {"torch", "opencv"} <= components() or not os.path.exists(weights):
            self.skipTest("a component, or ../shared/data/mot/weights, is missing")
        start += ["--start", weights]
        self.refuse(2, *start, "--frozen", 2, "--out", "n.pt", says="--layers names what is trained")
        self.refuse(2, *start, "--rho", 0.001, "--unmatched", 0.1, "--out", "n.pt", says="--rho and --unmatched")
        self.refuse(2, *start, "--layers", "head", "--out", "n.pt", says="backbone, ban_head or what is in them")
        named = ["--layers", "ban_head.bbox_pred", "--decoding", "mean", "--true-links", "--epochs", 1, "--out", "n.pt"]
        self.assertIn("334078 parameters, 1 epochs of 8 frames", self.succeed(*start, *named))
        for model in weights, "n.pt":
            self.succeed("track", "Film", "--model", model, "--birth-wait", 1, "--out", "results")
            with open(self.path("results/Film.txt")) as results:
                self.assertEqual(len(results.readlines()), 8)

    def test_the_tracking_table_of_the_paper(self):
        self.make_video("a/Walk")
        self.make_video("a/Stroll", people=4)
        self.succeed("reproduce", "mot", "--mot-data", "a", "--out", "r")
        self.assertEqual(sorted(os.listdir(self.path("r"))),
                         ["figures.py", "index.html", "mot.csv", "results.md", "settings.txt"])
        with open(self.path("r/results.md")) as page:
            self.assertIn("| all sequences | SORT |", page.read())
        switches = [row for row in read_rows(self.path("r/mot.csv")) if row["quantity"] == "IDS"]
        self.assertEqual(len(switches), 5 * 4)  # five methods, two videos, fixed cameras and all
        self.refuse(2, "reproduce", "mot", "--out", "s", says="--mot-data")
        os.mkdir(self.path("empty"))
        self.refuse(3, "reproduce", "mot", "--mot-data", "empty", "--out", "s", says="det/det.txt", creates=["s"])
        self.refuse(3, "reproduce", "mot", "--mot-data", "none", "--out", "t", says="none", creates=["t"])

    def test_a_clear_video_is_tracked_without_a_mistake_and_evaluated(self):
        self.make_video()
        self.make_video("Other", frames=12)
        for extra in (["--model", "identity"], ["--adapt", "--epochs", 2], ["--associate", "plan"]):
            self.succeed("track", "Walk", "Other", "--out", "results", *extra)
            scores = json.loads(self.succeed("evaluate", "--gt", ".", "--results", "results", "--json"))
            self.assertEqual(list(scores), ["Other", "Walk", "COMBINED"])
            self.assertEqual(scores["COMBINED"]["mota"], 1)
            self.assertEqual(scores["COMBINED"]["idf1"], 1)
            self.assertAlmostEqual(scores["COMBINED"]["hota"], 1)

    def test_sort_waits_and_the_table_and_csv_say_so(self):
        self.make_video()
        self.succeed("track", "Walk", "--tracker", "sort", "--out", "results")
        table = self.succeed("evaluate", "--gt", "Walk", "--results", "results", "--csv", "s.csv", "--out", "s.json")
        self.assertIn("HOTA", table)
        self.assertIn("COMBINED", table)
        rows = read_rows(self.path("s.csv"))
        self.assertEqual([row["sequence"] for row in rows], ["Walk", "COMBINED"])
        self.assertEqual(rows[0]["ids"], "0")

    def test_training_goes_on_from_a_checkpoint_to_the_same_file(self):
        self.make_video()
        self.succeed("train-tracker", "Walk", "--out", "whole.json", "--epochs", 4, "--trace", "trace.csv")
        self.assertGreaterEqual(len(read_rows(self.path("trace.csv"))), 1)
        self.succeed("train-tracker", "Walk", "--out", "part.json", "--epochs", 1, "--checkpoint", "c.json", "--resume")
        self.succeed("train-tracker", "Walk", "--out", "part.json", "--epochs", 4, "--checkpoint", "c.json", "--resume",
                     "--threads", 1)
        with open(self.path("whole.json")) as whole, open(self.path("part.json")) as part:
            self.assertEqual(whole.read(), part.read())
        self.succeed("track", "Walk", "--model", "whole.json", "--out", "results")
        self.refuse(3, "train-tracker", "Walk", "--out", "part.json", "--seed", 9, "--checkpoint", "c.json", "--resume",
                    says="c.json: was written for other videos or options")

    def test_a_video_without_detections_gives_an_empty_file(self):
        self.make_video()
        self.write("Walk/det/det.txt", "")
        self.succeed("track", "Walk", "--out", "results")
        self.assertEqual(os.path.getsize(self.path("results/Walk.txt")), 0)
        self.succeed("train-tracker", "Walk", "--out", "m.json")

    def test_slips_are_answered_with_what_to_name_instead(self):
        self.make_video("all/Walk")
        self.make_video("all/Stroll")
        self.refuse(3, "track", "all", "--out", "r", says="all: holds 2 sequences, such as Stroll")
        self.refuse(3, "track", "all/Walk/det/det.txt", "--out", "r", says="is a file; the sequence's folder was expected")
        self.refuse(2, "track", "all/Walk", "--model", "kalman", "--out", "r",
                    says="model kalman: identity, constant-velocity or a file")
        self.refuse(2, "track", "all/Walk", "--out", "res.txt", says="--out res.txt: a folder was expected")

    def test_results_in_the_layout_of_trackeval_are_found(self):
        self.make_video()
        self.succeed("track", "Walk", "--out", "tracker/data")
        scores = json.loads(self.succeed("evaluate", "--gt", "Walk", "--results", "tracker", "--json"))
        self.assertEqual(scores["COMBINED"]["mota"], 1)

    def test_a_threshold_on_scores_says_what_it_ignores(self):
        self.make_video()
        done = self.run_here("track", "Walk", "--out", "r", "--min-confidence", 0.3)
        self.assertIn("Walk: --min-confidence 0.3 ignores 0 of 75 detections; scores are from 1 to 1", done.stderr)

    def test_adapting_says_how_training_went_and_what_the_video_supports(self):
        self.make_video(frames=60)
        out = self.succeed("track", "Walk", "--adapt", "--epochs", 2, "--out", "r")
        self.assertIn("Walk: training on its first 40 frames", out)
        self.assertRegex(out, r"Walk: \d+ epochs, objective per pair [\d.]+ -> [\d.]+")
        self.assertRegex(out, "support")
        out = self.succeed("track", "Walk", "--adapt", "--epochs", 2, "--terms", "all", "--out", "r")
        self.assertIn("Walk: training on its first 60 frames", out)
        self.assertNotIn("support", out)

    def test_errors_say_where(self):
        self.make_video()
        self.refuse(2, "track", "Walk", "--out", "r", "--least-overlap", 2, says="least_overlap = 2 must be from 0 to 1")
        self.refuse(2, "track", "Walk", "--out", "r", "--tracker", "sort", "--model", "identity", says="--tracker sort")
        self.refuse(2, "track", "Walk", "./Walk", "--out", "r", says="are both named Walk")
        self.refuse(2, "train-tracker", "Walk", "--out", "m.json", "--resume", says="--resume needs --checkpoint")
        self.refuse(3, "track", "Walk", "--out", "r", "--model", "none.json", says="none.json: cannot be opened")
        self.refuse(3, "track", "Nowhere", "--out", "r", says="Nowhere/det/det.txt: cannot be opened")
        self.refuse(3, "evaluate", "--gt", "Nowhere", "--results", ".", says="Nowhere: there is no such file or folder")
        self.refuse(3, "evaluate", "--gt", ".", "--results", "Walk", says="holds no results for Walk")
        self.write("Walk/det/det.txt", "1,-1,5,5,10,10,1\n99,-1,5,5,10,10,1\n")
        self.refuse(3, "track", "Walk", "--out", "r", says="det.txt:2: frame 99 is not a whole number from 1 to 25")
        self.write("bad.txt", "1,1,5,5,10,10\n1,1,6,6,10,10\n")
        self.refuse(3, "evaluate", "--gt", "Walk", "--results", "bad.txt", says="bad.txt:2: id 1 is in frame 1 already")


if __name__ == "__main__":
    unittest.main()
