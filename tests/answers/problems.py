"""The problems whose answers are stored: small tables drawn from a seed, and the options they are fitted with.

Only the standard library draws, and every number is rounded to four decimals, so that the tables are the same on every
machine.
"""

import math
import random
from dataclasses import dataclass, field

COEFFICIENTS = (2.0, -3.0, 0.8, 1.5)


@dataclass
class Sample:
    """Two tables as lists of rows, and the feature row that belongs to each response row."""

    responses: list
    features: list
    partners: list


@dataclass
class Problem:
    """Options are named as on the command line, without the dashes; True stands for a flag."""

    name: str
    responses: list
    features: list  # empty: one table
    options: dict
    response: str = "y"
    known: list = field(default_factory=list)
    prior: list = field(default_factory=list)
    pairs: bool = False
    predict: bool = False

    def columns(self, side):
        """The columns of numbers that are features."""
        taken = [*self.response.split(","), self.options.get("weights")]
        return [name for name, cell in side[0].items() if name not in taken and not isinstance(cell, str)]

    def complete_rows(self, count=5):
        """Rows with every feature column, to predict for."""
        names = self.columns(self.responses) + (self.columns(self.features) if self.features else [])
        rows = zip(self.responses, self.features or self.responses)
        return [{name: {**left, **right}[name] for name in names} for left, right in list(rows)[:count]]


def linear(cells, k):
    """The k-th response without its intercept and noise."""
    weights = COEFFICIENTS[k:] + COEFFICIENTS[:k]
    return sum(weight * cell for weight, cell in zip(weights, cells))


def curved(cells, _):
    return sum(cell**2 / 4 for cell in cells)


def waves(cells, _):
    return sum(math.sin(weight * cell) for weight, cell in zip((0.9, 1.6), cells)) - 1


def shuffled(draw, labels, share):
    """Where each row goes: the given share of them is shuffled among rows of the same label."""
    order = list(range(len(labels)))
    for label in sorted(set(labels)):
        moved = [row for row, own in enumerate(labels) if own == label and draw.random() < share]
        places = moved[:]
        draw.shuffle(places)
        for row, place in zip(moved, places):
            order[row] = place
    return order


def sample(seed, rows, *, x=0, z=2, outputs=1, groups=1, share=0.3, noise=0.1, signal=linear):
    """Skewed features x and z, responses 1 + signal + noise; group labels in city and town where there are several."""
    draw = random.Random(seed)
    responses, features = [], []
    for row in range(rows):
        cells = [round(draw.expovariate(1), 4) for _ in range(x + z)]
        left = {f"x{k + 1}": cell for k, cell in enumerate(cells[:x])}
        for k in range(outputs):
            left[f"y{k + 1}" if outputs > 1 else "y"] = round(1 + signal(cells, k) + draw.gauss(0, noise), 4)
        responses.append(left)
        features.append({f"z{k + 1}": cell for k, cell in enumerate(cells[x:])})
    labels = ["ABCDEFGH"[row % groups] for row in range(rows)]
    if groups > 1:
        for left, right, label in zip(responses, features, labels):
            left["city"] = right["town"] = label
    partners = shuffled(draw, labels, share)
    moved = [None] * rows
    for row, place in enumerate(partners):
        moved[place] = features[row]
    return Sample(responses, moved, partners)


def two_tables(name, drawn, options, **more):
    return Problem(name, drawn.responses, drawn.features, options, **more)


def one_table(name, drawn, options, **more):
    return Problem(name, [{**left, **right} for left, right in zip(drawn.responses, drawn.features)], [], options, **more)


def every(step, drawn):
    """Every so many of the true pairs."""
    return [(row, drawn.partners[row]) for row in range(0, len(drawn.partners), step)]


def of_lengths(drawn, responses, features):
    """Fewer rows of either table: some rows have no partner any more."""
    return Sample(drawn.responses[:responses], drawn.features[:features], [])


def with_weights(drawn):
    for row, left in enumerate(drawn.responses):
        left["weight"] = 1 + row % 3
    return drawn


def with_keys(seed, drawn, agreement=0.9):
    """A key in either table that partners mostly agree in."""
    draw = random.Random(seed)
    for left, partner in zip(drawn.responses, drawn.partners):
        key = draw.choice("abcdef")
        left["street"] = key
        drawn.features[partner]["road"] = key if draw.random() < agreement else draw.choice("abcdef")
    return drawn


def candidates(drawn):
    """Two candidates for every third response: its partner and, less likely, the row after that."""
    return [(row, (partner + late) % len(drawn.features), odds)
            for row, partner in every(3, drawn) for late, odds in ((0, 40), (1, 5))]


def methods_by_likelihood():
    linked, unlinked = sample(4, 80, share=0.2), sample(8, 90, share=1)
    guessed = sample(11, 60, share=1, noise=0.5)
    return [
        two_tables("auto", sample(1, 120, x=1), {"hint": "rows"}, pairs=True, predict=True),
        two_tables("auto-no-hint", sample(2, 80, share=1), {}, pairs=True),
        two_tables("auto-hint-none", sample(3, 60, x=1, z=1), {"hint": "none", "noise-sd": 0.1}),
        one_table("auto-one-table", sample(5, 150, z=3), {}, predict=True),
        two_tables("mixture", sample(6, 200, x=1), {"method": "mixture", "hint": "rows", "no-intercept": True}, pairs=True),
        two_tables("mixture-weights", with_weights(sample(7, 100)),
                   {"method": "mixture", "hint": "rows", "weights": "weight"}),
        two_tables("mixture-bootstrap", linked,
                   {"method": "mixture", "hint": "rows", "bootstrap": 20, "noise-sd": 0.1, "seed": 3}),
        two_tables("adjusted", sample(9, 150, noise=1), {"method": "adjusted", "hint": "rows", "bootstrap": 20}),
        two_tables("entropic", unlinked, {"method": "entropic"}, pairs=True, predict=True),
        two_tables("entropic-unequal", of_lengths(sample(10, 60, share=1), 45, 60), {"method": "entropic"}, pairs=True),
        two_tables("entropic-bootstrap", unlinked, {"method": "entropic", "bootstrap": 8, "starts": 4}),
        two_tables("entropic-prior", guessed, {"method": "entropic"}, prior=candidates(guessed)),
        two_tables("entropic-soft-group", with_keys(12, sample(12, 40, share=1, noise=0.5)),
                   {"method": "entropic", "soft-group": "street=road:0.9"}),
        two_tables("stream", sample(13, 400, x=1), {"method": "mixture", "hint": "rows", "stream": True}),
        two_tables("stream-no-hint", sample(14, 150, share=1), {"method": "entropic", "stream": True}),
    ]


def methods_by_plan():
    linked, known = sample(20, 60, x=1), sample(25, 40, share=1)
    grouped, guessed = sample(21, 96, groups=6, share=1), sample(31, 40, share=1)
    return [
        two_tables("robot", linked, {"method": "robot", "hint": "rows"}, pairs=True, predict=True),
        two_tables("robot-groups", grouped, {"method": "robot", "group": "city=town"}, pairs=True),
        two_tables("robot-group-means", grouped,
                   {"method": "robot", "group": "city=town", "start": "group-means", "optimizer": "lbfgs"}),
        two_tables("robot-prior", guessed, {"method": "robot", "epsilon-abs": 0.02, "starts": 3}, prior=candidates(guessed)),
        two_tables("robot-outputs", sample(22, 30, outputs=2, share=1), {"method": "robot"}, response="y1,y2", predict=True),
        two_tables("robot-spline", sample(23, 120, z=1, signal=curved), {"method": "robot", "model": "spline:2", "hint": "rows"},
                   predict=True),
        two_tables("robot-sine", sample(24, 100, signal=waves), {"method": "robot", "model": "sine", "hint": "rows"}),
        two_tables("robot-known", known, {"method": "robot", "backend": "dense"}, known=every(2, known), pairs=True),
        two_tables("robot-epsilon", sample(26, 80, share=1),
                   {"method": "robot", "epsilon": 1e-3, "epsilon-start": 0.1, "objective": "entropic", "start": "ls"}),
        two_tables("robot-momentum", linked,
                   {"method": "robot", "hint": "rows", "optimizer": "momentum", "learning-rate": 1e-3, "batch": 30,
                    "max-iterations": 200}),
        two_tables("robot-adam", linked,
                   {"method": "robot", "start": "ls", "optimizer": "adam", "learning-rate": 0.02, "max-iterations": 200}),
        two_tables("robot-paper-settings", linked, {"hint": "rows", "paper-settings": True}),
        two_tables("robot-random", sample(27, 80, share=1), {"method": "robot", "start": "random", "starts": 5, "seed": 7}),
        two_tables("robot-robust", of_lengths(sample(28, 80), 60, 75), {"robust": True, "unmatched": 0.1, "hint": "rows"},
                   pairs=True),
        two_tables("robot-robust-rho", of_lengths(sample(29, 50), 45, 40),
                   {"method": "robot-robust", "rho1": 0.004, "rho2": 0.002, "hint": "rows"}, pairs=True),
        two_tables("robot-unrolled", sample(30, 40), {"method": "robot-unrolled", "hint": "rows", "unroll": 50}),
    ]


def methods_to_compare_with():
    linked, unlinked, outputs = sample(40, 60), sample(41, 40, share=1), sample(42, 24, outputs=2, share=1, noise=0.02)
    return [
        two_tables("ls", linked, {"method": "ls"}, predict=True),
        two_tables("oracle", unlinked, {"method": "oracle"}, known=every(1, unlinked), pairs=True),
        two_tables("am", linked, {"method": "am", "hint": "rows", "starts": 3}),
        two_tables("am-gradient", linked,
                   {"method": "am", "am-step": "gradient", "start": "ls", "learning-rate": 1e-3, "momentum": 0.8,
                    "max-iterations": 200}),
        two_tables("em", sample(43, 30), {"method": "em", "hint": "rows", "em-chains": 2, "seed": 2}),
        two_tables("hard-em", sample(43, 30), {"method": "hard-em", "hint": "rows", "em-swaps": 10}),
        two_tables("rr", linked, {"method": "rr", "rr-threshold": 1.5}),
        two_tables("rs", sample(44, 40), {"method": "rs", "hint": "rows", "rs-samples": 2000, "rs-threshold": 0.05}),
        two_tables("one-step", linked, {"method": "one-step"}),
        two_tables("sliced-gw", outputs, {"method": "sliced-gw", "gw-slices": 50}, response="y1,y2"),
        two_tables("sinkhorn-gw", outputs, {"method": "sinkhorn-gw", "gw-epsilon": 0.01}, response="y1,y2", pairs=True),
    ]


def all_problems():
    return [*methods_by_likelihood(), *methods_by_plan(), *methods_to_compare_with()]
