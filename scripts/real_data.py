#!/usr/bin/env python3
"""Shuffles the rows of real tables, fits them by every method and writes docs/results-real.md.

Usage: scripts/real_data.py [--data FOLDER] [--draws N] [--out FILE] [--methods A,B] [--program PATH] [tables|partly|shuffled|outputs|survey|worms ...]

The data is not part of the project: FOLDER (../shared/data) holds regression/*.csv and worms/*.csv. Errors are those on
rows that were linked all the time, relative to regression on the true links (the oracle): 1 is as good as knowing them.
"""
import argparse
import csv
import itertools
import json
import pathlib
import random
import statistics
import subprocess
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
methods = ["auto", "mixture", "adjusted", "entropic", "robot", "robot-robust", "am", "em", "hard-em", "rr", "rs",
           "one-step", "ls", "sliced-gw", "sinkhorn-gw"]


def read_columns(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def write_columns(path, columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))


def standardised(values):
    values = [float(v) for v in values]
    mean, spread = statistics.fmean(values), statistics.pstdev(values)
    return [(v - mean) / spread if spread > 0 else 0.0 for v in values]


class Table:
    """A regression table with standardised columns; the last one is the response."""

    def __init__(self, arguments, name):
        columns = {c: standardised(v) for c, v in read_columns(arguments.data / f"regression/{name}.csv").items()}
        self.response = list(columns)[-1]
        self.values = columns.pop(self.response)
        self.features = columns

    def sample(self, **how):
        return Sample({self.response: self.values}, self.features, **how)


class Sample:
    """A table split into responses and features whose rows are in another order, and linked rows to test on."""

    def __init__(self, responses, features, key=None, seed=0, order=None, held_out=0.2, moved_share=1.0):
        chance = random.Random(seed)
        rows = list(range(len(next(iter(responses.values())))))
        if order is None:
            chance.shuffle(rows)
            test = rows[:int(held_out * len(rows))]
            train = rows[len(test):]
            moved = train[:]
            places = chance.sample(range(len(train)), int(moved_share * len(train)))
            for place, row in zip(places, chance.sample([train[k] for k in places], len(places))):
                moved[place] = row
        else:
            test = train = rows
            moved = [order[row] for row in rows]
        pick = lambda columns, chosen: {name: [values[row] for row in chosen] for name, values in columns.items()}
        place = {row: at for at, row in enumerate(train)}
        self.responses, self.features = pick(responses, moved), pick(features, train)
        self.test = pick({**responses, **features}, test)
        self.known = {"response_row": range(len(moved)), "feature_row": [place[row] for row in moved]}
        if key is not None:
            self.responses["key"], self.features["key"] = [key[row] for row in moved], [key[row] for row in train]

    def write(self, folder):
        paths = {name: f"{folder}/{name}.csv" for name in ("responses", "features", "test", "known")}
        for name, path in paths.items():
            write_columns(path, getattr(self, name))
        return paths

    def errors(self, program, response, options, groups=(), keys=(), chosen=methods):
        """Test error of every method relative to the oracle's; None for a method that cannot run."""
        without_keys = lambda columns: {name: values for name, values in columns.items() if name not in keys}
        with tempfile.TemporaryDirectory() as folder:
            paths = self.write(folder)
            run = lambda *more: {one["method"]: one["test_error"] for one in json.loads(subprocess.run(
                [program, "compare", paths["responses"], paths["features"], "--response", response, "--test", paths["test"],
                 "--json", *options, *more], capture_output=True, text=True, check=False).stdout)["methods"]}
            found = run("--methods", ",".join(chosen), *groups)
            # True partners need not agree in their keys, so the oracle is not told of them.
            write_columns(paths["responses"], without_keys(self.responses))
            write_columns(paths["features"], without_keys(self.features))
            oracle = run("--methods", "oracle", "--known", paths["known"])["oracle"]
            return {method: error / oracle if error is not None else None
                    for method, error in found.items()}


def table_row(name, draws):
    cells = []
    for method in methods:
        found = [draw[method] for draw in draws if draw[method] is not None]
        cells.append(f"{statistics.median(found):.3g}" if found else "-")
    return f"| {name} | " + " | ".join(cells) + " |"


def table(rows):
    return ["| data | " + " | ".join(f"`{m}`" for m in methods) + " |", "|---" * (len(methods) + 1) + "|", *rows, ""]


def regression_tables(arguments):
    lines = ["## Tables whose rows may match within groups of the response", "",
             f"Columns standardised, a fifth of the rows held out, the others divided into groups of equal size by the response "
             f"and shuffled within them; median of {arguments.draws} draw(s), error relative to the oracle's.", ""]
    rows = []
    for name in ("airfoil", "concrete", "yacht"):
        data = Table(arguments, name)
        ranks = {row: at for at, row in enumerate(sorted(range(len(data.values)), key=data.values.__getitem__))}
        for groups in (3, 5, 10):
            key = [ranks[row] * groups // len(ranks) for row in range(len(ranks))]
            draws = [data.sample(key=key, seed=seed).errors(
                arguments.program, data.response, [], ["--group", "key"], ["key"]) for seed in range(arguments.draws)]
            rows.append(table_row(f"{name}, {groups} groups", draws))
            print(rows[-1], flush=True)
    return lines + table(rows)


def partly_shuffled(arguments):
    lines = ["## Tables whose rows are partly in order", "",
             f"Columns standardised, a fifth of the rows held out, a share of the others shuffled, the order given as a hint "
             f"(`--hint rows`); median of {arguments.draws} draw(s), error relative to the oracle's.", ""]
    rows = []
    for name in ("airfoil", "concrete", "yacht"):
        data = Table(arguments, name)
        for share in (0.1, 0.3, 0.5, 0.7):
            draws = [data.sample(seed=seed, moved_share=share).errors(
                arguments.program, data.response, ["--hint", "rows"]) for seed in range(arguments.draws)]
            rows.append(table_row(f"{name}, {share:.0%} shuffled", draws))
            print(rows[-1], flush=True)
    return lines + table(rows)


def all_shuffled(arguments):
    """What `auto` says of tables without any hint, and how far it is off."""
    lines = ["## Tables whose rows are all shuffled", "",
             "Columns standardised, a fifth of the rows held out, the others shuffled, nothing known about the links (`--hint none`): "
             "the verdict of `auto` for each draw, and its error relative to the oracle's.", "",
             "| data | draw | error | verdict | why |", "|---|---|---|---|---|"]
    for name, seed in itertools.product(("airfoil", "concrete", "yacht", "accidents"), range(arguments.draws)):
        data = Table(arguments, name)
        sample = data.sample(seed=seed)
        with tempfile.TemporaryDirectory() as folder:
            sample.write(folder)
            fit = json.loads(subprocess.run(
                [arguments.program, "fit", f"{folder}/responses.csv", f"{folder}/features.csv", "--response", data.response,
                 "--hint", "none", "--json", "--quiet"], capture_output=True, text=True, check=False).stdout)
        error = sample.errors(arguments.program, data.response, ["--hint", "none"], chosen=["auto"])["auto"]
        said = fit["identifiable"]
        lines.append(f"| {name} | {seed} | {error:.3g} | {said['verdict']} | {said['reason']} |")
        print(lines[-1], flush=True)
    return [*lines, ""]


def many_outputs(arguments):
    columns = {c: standardised(v) for c, v in read_columns(arguments.data / "regression/ftp.csv").items()}
    outputs = [c for c in columns if c.startswith("y")]
    draws = []
    for seed in range(arguments.draws):
        chance = random.Random(seed)
        rows_here = chance.sample(range(len(columns["y1"])), len(columns["y1"]))
        places = rows_here[:]
        chance.shuffle(places)
        permutation = [place for _, place in sorted(zip(rows_here, places))]
        sample = Sample({c: columns[c] for c in outputs}, {c: v for c, v in columns.items() if c not in outputs},
                        order=permutation)
        draws.append(sample.errors(arguments.program, ",".join(outputs), ["--hint", "none"]))
    rows = [table_row("ftp, all rows shuffled", draws)]
    print(rows[-1], flush=True)
    return ["## Six outputs (ftp: 335 rows, 30 features)", "",
            f"Median of {arguments.draws} draw(s); errors on the rows fitted, so an oracle of 186 coefficients fits them well.",
            "", *table(rows)]


def survey(arguments):
    columns = read_columns(arguments.data / "regression/italian_survey.csv")
    order = [int(value) - 1 for value in columns["pi"]]
    rows = []
    for name, keys, options in (("hint rows", [], ["--hint", "rows"]), ("hint none", [], ["--hint", "none"]),
                                ("keys: sex, birth year", ["2", "3"], ["--hint", "none"]),
                                ("keys and hint", ["2", "3"], ["--hint", "rows"])):
        responses = {"income": columns["y1"], **{f"y{k}": columns[f"y{k}"] for k in keys}}
        features = {"before": columns["x1"], **{f"x{k}": columns[f"x{k}"] for k in keys}}
        sample = Sample(responses, features, order=order)
        group = list(itertools.chain.from_iterable(("--group", f"y{k}=x{k}") for k in keys))
        rows.append(table_row(f"survey, {name}", [sample.errors(
            arguments.program, "income", options, group, [side + k for k in keys for side in "xy"])]))
        print(rows[-1], flush=True)
    # How often true partners agree in each key, rounded, and that a fifth of the rows in order belong together.
    rates = {"2": 0.9, "3": 0.9, "4": 0.97, "5": 0.8, "6": 0.15}
    in_order = {"response_row": range(len(order)), "feature_row": range(len(order)),
                "weight": [0.2 / 0.8 * (len(order) - 1)] * len(order)}
    responses = {"income": columns["y1"], **{f"y{k}": columns[f"y{k}"] for k in rates}}
    features = {"before": columns["x1"], **{f"x{k}": columns[f"x{k}"] for k in rates}}
    sample = Sample(responses, features, order=order)
    with tempfile.TemporaryDirectory() as folder:
        write_columns(f"{folder}/prior.csv", in_order)
        for name, evidence in (("soft keys", []), ("soft keys and rows in order", ["--prior", f"{folder}/prior.csv"])):
            keys = list(itertools.chain.from_iterable(("--soft-group", f"y{k}=x{k}:{rate}") for k, rate in rates.items()))
            rows.append(table_row(f"survey, {name}", [sample.errors(
                arguments.program, "income", ["--hint", "none"], ["--starts", "1", *keys, *evidence],
                [side + k for k in rates for side in "xy"])]))
            print(rows[-1], flush=True)
    return ["## A survey with its own linkage", "",
            "Household incomes of two waves linked by the permutation found in practice (443 of 2211 rows right). Keys must "
            "agree exactly, although nine in ten do. Soft keys (sex, birth year and three more) need not: they are given the "
            "rate at which true partners agree, and rows in order the odds of being right; fits with them go from one start, "
            "what the keys alone say.", "", *table(rows)]


def worms(arguments):
    """Share of the neurons named in both worms that are paired with their namesake."""
    folder = arguments.data / "worms"
    names = [f"celegans_neuropal_worm{k}" for k in range(1, 7)]
    tables = {name: read_columns(folder / f"{name}.csv") for name in [*names, "celegans_statatlas_xx_head"]}
    # The share of rows without a partner is not known, so two are shown: the default and a larger one.
    compared = {"robot-robust": ["--method", "robot-robust"],
                "robot-robust, 0.3 unmatched": ["--method", "robot-robust", "--unmatched", "0.3"],
                "robot": ["--method", "robot"], "am": ["--method", "am"]}
    kinds = ("worm to worm", "worm to atlas", "all")
    right = {measure: {kind: {method: [] for method in compared} for kind in kinds} for measure in ("all", "linked")}
    for one, other in itertools.combinations(tables, 2):
        kind = "worm to atlas" if "atlas" in other else "worm to worm"
        a, b = tables[one], tables[other]
        place = {name: row for row, name in enumerate(b["name"]) if name}
        named = [(row, place[name]) for row, name in enumerate(a["name"]) if name in place]

        def partners(path):
            pairs = read_columns(path)
            return {int(i): int(j) for i, j in zip(pairs["response_row"], pairs["feature_row"]) if i and j}

        with tempfile.TemporaryDirectory() as path:
            write_columns(f"{path}/a.csv", {f"to_{c}": standardised(a[c]) for c in "xyz"})
            write_columns(f"{path}/b.csv", {f"from_{c}": standardised(b[c]) for c in "xyz"})
            for method, options in compared.items():
                subprocess.run([arguments.program, "fit", f"{path}/a.csv", f"{path}/b.csv", "--response", "to_x,to_y,to_z",
                                *options, "--pairs", f"{path}/pairs.csv", "--out", f"{path}/fit.json", "--quiet",
                                "--hint", "none"], capture_output=True, check=False)
                linked = partners(f"{path}/pairs.csv")
                everyone = linked
                if "robust" in method:
                    subprocess.run([arguments.program, "match", f"{path}/fit.json", f"{path}/a.csv", f"{path}/b.csv",
                                    "--all", "--out", f"{path}/pairs.csv", "--quiet"], check=True)
                    everyone = partners(f"{path}/pairs.csv")
                shares = {"all": statistics.fmean(everyone.get(i) == j for i, j in named),
                          "linked": statistics.fmean(linked[i] == j for i, j in named if i in linked)}
                for measure, share in shares.items():
                    for which in (kind, "all"):
                        right[measure][which][method].append(share)
    lines = ["## Neurons of six worms and an atlas", "",
             "Positions standardised axis by axis, affine map fitted without names (`fit --response to_x,to_y,to_z`). Right: the "
             "neurons named on both sides that are paired with their namesake, mean over pairs of worms; first with every row "
             "linked (robust: `match --all`), then of those that the fit links itself.", "",
             "| | " + " | ".join(f"`{m}`" for m in compared) + " |", "|---" * (len(compared) + 1) + "|"]
    for measure, label in (("all", "every row linked"), ("linked", "of those the fit links")):
        for kind, by_method in right[measure].items():
            lines.append(f"| {kind}, {label} | " + " | ".join(f"{statistics.fmean(by_method[m]):.1%}" for m in compared) + " |")
            print(lines[-1], flush=True)
    return [*lines, ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"tables": regression_tables, "partly": partly_shuffled, "shuffled": all_shuffled, "outputs": many_outputs,
             "survey": survey, "worms": worms}
    parser.add_argument("parts", nargs="*", metavar="|".join(parts))
    parser.add_argument("--data", type=pathlib.Path, default=root / "../shared/data")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default=root / "docs/results-real.md")
    parser.add_argument("--program", default=str(root / "build/release/unshuffle"))
    parser.add_argument("--methods", default=",".join(methods), help="some of: %(default)s")
    arguments = parser.parse_args()
    methods[:] = arguments.methods.split(",")
    lines = ["# Real data", "", "Generated by `scripts/real_data.py`, which documents the setup. Errors are relative to regression on the true "
             "links; `-` is a method that cannot run on the data. `robot-unrolled` is "
             "omitted: it minimises the same function as `robot` in a hundred times the time.", ""]
    for name, part in parts.items():
        if not arguments.parts or name in arguments.parts:
            lines += part(arguments)
    arguments.out.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
