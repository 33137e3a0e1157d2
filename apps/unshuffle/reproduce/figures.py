#!/usr/bin/env python3
"""Draws the figures of `unshuffle reproduce` from its CSV files, as SVG and PNG. Needs matplotlib.

    python3 figures.py [DIR]     DIR holds the CSV files; by default, the folder that holds this script

Every CSV file is in long form: panel, x, run, method, quantity, value. FIGURES says what is drawn from which file.
"""

import argparse
import csv
import math
import pathlib
import sys
from dataclasses import dataclass, field

try:
    import matplotlib
except ImportError:
    sys.exit("figures.py: matplotlib is missing; install it with: pip install matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy
from matplotlib.colors import PowerNorm
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator


@dataclass
class Panel:
    """One set of axes, and which rows of the CSV file it shows."""

    kind: str  # a key of KINDS
    panel: str = ""  # rows with this panel; empty: all rows
    quantity: str = ""  # rows with this quantity; empty: all rows
    title: str = ""
    x: str = ""  # axis labels
    y: str = ""
    log: str = ""  # axes with a logarithmic scale: "", "x", "y" or "xy"
    names: list = field(default_factory=list)  # categories: names of x = 0, 1, ...; empty: the rows' panels
    left_out: tuple = ()  # categories: panels that are sums of others
    extent: tuple = ()  # heat: range of both axes as (left, right, bottom, top)
    cells: tuple = ()  # heat: rows and columns
    lowest: float = 1  # curve: the part of the range of y that is shown, from its bottom


@dataclass
class Figure:
    title: str  # {name} stands for the value of that quantity in the panel "setting"
    panels: list
    columns: int = 2
    height: float = 2.5  # of a row of panels, in inches
    share_y: bool = False
    scale: str = ""  # heat: what its colours mean


ERROR = "relative test error"
SMOOTHINGS = ("transport, ε → 0", "transport, ε = 1e-2", "entropic, ε = 1e-2")


def capitalised(text):
    return text[0].upper() + text[1:]


def over_settings(quantity, label):
    """The four sweeps that the linear and the nonlinear experiment share."""
    return [
        Panel("lines", "d", quantity, "Features beside the response", "their number d", label, "y"),
        Panel("lines", "e", quantity, "Features with lost links", "their number e", label, "y"),
        Panel("lines", "noise", quantity, "Noise", "its variance", label, "xy"),
        Panel("lines", "n", quantity, "Rows", "their number n", label, "xy"),
    ]


def over_dimension_and_noise(mean):
    law = f"features N({mean}, I)"
    return [
        Panel("lines", f"dimension, {law}", "relative_error", f"Dimension, {law}", "number of features e", ERROR, "y"),
        Panel("lines", f"SNR, {law}", "relative_error", f"Signal, {law}", "signal-to-noise ratio", ERROR, "xy"),
    ]


def over_shuffling(mean):
    law = f"features N({mean}, I)"
    return Panel("lines", law, "relative_error", capitalised(law), "rows shuffled (%)", ERROR, "y")


def plan(rho):
    name = f"ρ₁ = ρ₂ = {rho:g}"
    return Panel("heat", name, "mass", name, "s of Unif(0, 1)", "t of Unif(0, 2)", extent=(0, 1, 0, 2), cells=(60, 60))


def correspondence(start):
    return Panel("heat", start, "linked", f"{capitalised(start)} start", "feature row, by its true rank",
                 "response, by rank", extent=(0, 30, 0, 30), cells=(30, 30))


def over_iterations(panel, quantity, title, label):
    return Panel("lines", panel, quantity, title, "Sinkhorn iterations", label, "xy")


def along_a_line(name, title, lowest):
    return Panel("curve", name, "objective", title, "offset of the first coefficient", "objective per row",
                 lowest=lowest)


def over_sequences(quantity, label):
    return Panel("categories", "", quantity, "", label, left_out=("moving cameras", "fixed cameras", "all sequences"))


# What is drawn from NAME.csv.
FIGURES = {
    "sensing": Figure("Unlabelled sensing, n = 1000, half of the rows shuffled",
                      over_dimension_and_noise(0) + over_dimension_and_noise(1), share_y=True),
    "nonlinear": Figure("Sum of sines, two platforms, all rows shuffled",
                        over_settings("relative_error", "test transport cost / spread"), share_y=True),
    "cytometry": Figure("Flow cytometry: all links lost, or lost within gates",
                        [Panel("categories", "", "relative_error", "", ERROR, "", "x",
                               names=["all links lost", "3 gates", "4 gates", "5 gates", "10 gates"])],
                        columns=1, height=3.6),
    "initialisation": Figure("Ten random starts, all rows shuffled, n = 1000, five features",
                             [Panel("percentiles", "", "residual", "Training residual", "percentile of the starts",
                                    "training residual per row", "y"),
                              Panel("percentiles", "", "relative_error", "Test error", "percentile of the starts",
                                    ERROR, "y")]),
    "autodiff": Figure("Implicit gradient against unrolled Sinkhorn iterations, n = {rows}",
                       [over_iterations("accuracy", "gradient_error", "Unrolled gradient", "relative error"),
                        over_iterations("cost", "seconds", "Time", "seconds"),
                        over_iterations("cost", "megabytes", "Memory", "megabytes")], columns=3),
    "em-correspondence": Figure("Expected correspondence where stochastic EM ends, n = 30, one feature",
                                [correspondence("good"), correspondence("poor")], height=2.9, share_y=True,
                                scale="probability of a link"),
    "ransac": Figure("RS alone, against half the samples and then ROBOT", [over_shuffling(0), over_shuffling(1)],
                     share_y=True),
    "rho": Figure("Robust plans between Unif(0, 2) and Unif(0, 1)", [plan(rho) for rho in (0, 0.1, 0.2, 1)],
                  columns=4, height=2.6, share_y=True, scale="mass of the plan"),
    "alignment": Figure("Exact and robust alignment of two point sets with outliers",
                        [Panel("links", kind, "mass", f"{capitalised(kind)} plan", "first coordinate",
                               "second coordinate") for kind in ("exact", "robust")], height=2.4, share_y=True),
    "linear-residual": Figure("Linear model, two platforms, all rows shuffled",
                              over_settings("residual", "residual of matched rows / spread"), share_y=True),
    "landscape": Figure("Objective along a line through the true coefficients, 8 rows",
                        [along_a_line(name, capitalised(name), 1) for name in SMOOTHINGS]
                        + [along_a_line(name, "Bottom of the curve", 0.04) for name in SMOOTHINGS], columns=3),
    "conditioning": Figure("Condition numbers in the paper's quadratic model (ρ = 0.5, λ = 0.1)",
                           [Panel("lines", "condition", "number", "", "dimension d = d₁ = d₂", "condition number",
                                  "xy")], columns=1, height=3.2),
    "mot": Figure("Tracking: motion models on boxes alone",
                  [over_sequences("IDF1", "IDF1 (%)"), over_sequences("IDS", "identity switches")],
                  height=4.2, share_y=True),
}

# The palette of Okabe and Ito, which colour-blind readers can tell apart; markers and dashes differ too.
BLACK, GREY, ORANGE, SKY, GREEN = "#000000", "#888888", "#e69f00", "#56b4e9", "#009e73"
BLUE, VERMILION, PURPLE = "#0072b2", "#d55e00", "#cc79a7"

# Colour, marker and line of a method, the same in every figure; its name, where the CSV file has another one.
STYLES = {
    "oracle": (BLACK, "D", "--"),
    "ls": (GREY, "v", "-"),
    "am": (ORANGE, "^", "-"),
    "em": (SKY, "s", "-"),
    "hard-em": (BLUE, "P", "-"),
    "rr": (PURPLE, "X", "-"),
    "rs": (GREEN, "<", "-"),
    "robot": (VERMILION, "o", "-"),
    "robot-robust": (BLUE, "p", "-"),
    "robot-paper": (VERMILION, "*", ":"),
    "robot-unrolled": (GREEN, ">", "-"),
    "rs + robot": (BLUE, "d", "-"),
    "sliced-gw": (PURPLE, "h", "-"),
    "sinkhorn-gw": (ORANGE, "^", "-"),
    "unrolled, stored": (ORANGE, "^", "-"),
    "unrolled, recomputed": (GREEN, ">", "-"),
    "implicit, any cost": (BLUE, "p", "-"),
    "implicit, one response": (VERMILION, "o", "-"),
    "alternating": (ORANGE, "^", "-"),
    "alternating, formula": (BLACK, "", ":", "formula of the paper"),
    "bilevel": (VERMILION, "o", "-"),
    "bilevel, formula": (BLACK, "", ":", "formula of the paper"),
    "bilevel as defined": (GREEN, ">", "-"),
    "SORT": (ORANGE, "^", "-"),
    "identity": (GREY, "v", "-"),
    "constant velocity": (SKY, "s", "-"),
    "ROBOT-trained + camera": (VERMILION, "o", "-"),
    "trained with true links": (BLACK, "D", "--"),
    "first set": (VERMILION, "o", ""),
    "second set": (BLUE, "s", ""),
}

GRID = "#e4e4e4"
UNDATED = {"svg": {"Date": None}, "png": {}}  # the same numbers give the same file
PAGE_WIDTH = 7.2  # inches; text of 9 points stays legible there
RULES = {
    "figure.dpi": 100, "savefig.dpi": 200, "font.size": 9, "font.family": "DejaVu Sans",
    "axes.titlesize": 9, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.labelsize": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "grid.color": GRID, "grid.linewidth": 0.6, "lines.linewidth": 1.5, "lines.markersize": 4.5,
    "legend.frameon": False, "svg.hashsalt": "unshuffle", "svg.fonttype": "none",
}


class Rows:
    """Rows of a CSV file, and what can be asked of them."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def where(self, **wanted):
        """Rows that have these values; an empty one matches all."""
        return Rows([row for row in self.rows if all(value in ("", row[key]) for key, value in wanted.items())])

    def distinct(self, key):
        """Its different values, in order of first appearance."""
        return list(dict.fromkeys(row[key] for row in self.rows))

    def values(self):
        return [row["value"] for row in self.rows]

    def grouped(self, key):
        """Values that share a key, by key in increasing order."""
        groups = {}
        for row in self.rows:
            groups.setdefault(row[key], []).append(row["value"])
        return dict(sorted(groups.items()))


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = {"panel", "x", "run", "method", "quantity", "value"} - set(reader.fieldnames or [])
        if missing:
            sys.exit(f"figures.py: {path}: there is no column {', '.join(sorted(missing))}")
        rows = list(reader)
    for line, row in enumerate(rows, start=2):
        try:
            row.update(x=float(row["x"]), run=int(row["run"]), value=float(row["value"]))
        except (TypeError, ValueError):
            sys.exit(f"figures.py: {path}: line {line}: x, run and value must be numbers")
    return Rows(rows)


def style_of(method):
    colour, marker, line, *label = STYLES.get(method, (BLACK, ".", "-"))
    return {"color": colour, "marker": marker or "None", "linestyle": line or "None", "label": (label or [method])[0]}


def summary(groups):
    """Keys, means, and lower and upper ends of the middle half of each group."""
    low, high = zip(*(numpy.quantile(values, (0.25, 0.75)) for values in groups.values()))
    return list(groups), [numpy.mean(values) for values in groups.values()], low, high


def draw_summary(axes, style, groups):
    """A line through the means; a band spans the middle half of the runs."""
    at, means, low, high = summary(groups)
    axes.plot(at, means, **style)
    if any(len(values) > 1 for values in groups.values()):
        axes.fill_between(at, low, high, color=style["color"], alpha=0.15, linewidth=0)


def draw_lines(axes, panel, rows, _):
    methods, settings = rows.distinct("method"), rows.distinct("x")
    for method in methods:
        style = style_of(method) | ({} if len(methods) > 1 else {"label": ""})  # one line needs no legend
        draw_summary(axes, style, rows.where(method=method).grouped("x"))
    if len(settings) <= 7:
        axes.set_xticks(settings, [f"{x:g}" for x in settings])
        axes.xaxis.set_minor_locator(NullLocator())


def draw_percentiles(axes, panel, rows, _):
    """The values of every run in increasing order: what share of the starts ends below a value."""
    for method in rows.distinct("method"):
        ranked = list(zip(*map(sorted, rows.where(method=method).grouped("run").values())))
        groups = {100 * (rank + 1) / len(ranked): values for rank, values in enumerate(ranked)}
        draw_summary(axes, style_of(method), groups)


def draw_curve(axes, panel, rows, everything):
    """One run, without averaging."""
    x, y = [row["x"] for row in rows], rows.values()
    axes.plot(x, y, color=VERMILION)
    if panel.lowest < 1:
        top = min(y) + panel.lowest * (max(y) - min(y))
        inside = [at for at, value in zip(x, y) if value <= top]
        axes.set(xlim=(min(inside), max(inside)), ylim=(min(y) - 0.05 * (top - min(y)), top))
    else:
        minima = everything.where(panel=panel.panel, quantity="local_minima").values()
        axes.set_title("\n".join([panel.title] + [f"{count:g} local minima" for count in minima[:1]]))


def draw_categories(axes, panel, rows, _):
    """Categories from top to bottom with their methods side by side; bars span the middle half of the runs."""
    rows = Rows([row for row in rows if row["panel"] not in panel.left_out])
    names = panel.names or rows.distinct("panel")
    methods = rows.distinct("method")
    for place, method in enumerate(methods):
        at, means, low, high = summary(rows.where(method=method).grouped("x"))
        offset = 0.7 * ((place + 0.5) / len(methods) - 0.5)
        axes.hlines([x + offset for x in at], low, high, color=style_of(method)["color"], linewidth=1)
        axes.plot(means, [x + offset for x in at], **style_of(method) | {"linestyle": "None"})
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    for edge in range(1, len(names)):
        axes.axhline(edge - 0.5, color=GRID, linewidth=0.6)


def draw_heat(axes, panel, rows, everything):
    """A matrix as colours, on the same scale in all panels; x is its row, run its column."""
    cells = numpy.zeros(panel.cells)
    for row in rows:
        cells[int(row["x"]), row["run"]] = row["value"]
    largest = max(everything.where(quantity=panel.quantity).values())
    axes.grid(False)
    axes.imshow(cells, origin="lower", extent=panel.extent, aspect="auto", cmap="Blues", interpolation="nearest",
                norm=PowerNorm(0.5, 0, largest))
    axes.locator_params(axis="x", nbins=3)
    axes.locator_params(axis="y", nbins=6)


def draw_links(axes, panel, rows, everything):
    """Two sets of points; the darker the line between two of them, the more mass the plan moves."""
    u1, u2, v1, v2 = (everything.where(panel="points", quantity=name).values() for name in ("u1", "u2", "v1", "v2"))
    for row in rows:
        i, j, strength = int(row["x"]), row["run"], min(1, row["value"] * len(u1))
        if strength > 0.05:
            axes.plot([u1[i], v1[j]], [u2[i], v2[j]], color=BLACK, alpha=0.6 * strength, linewidth=0.9)
    axes.plot(u1, u2, **style_of("first set"), markersize=3.5)
    axes.plot(v1, v2, **style_of("second set"), markersize=3.5)
    axes.set_aspect("equal")


KINDS = {"lines": draw_lines, "percentiles": draw_percentiles, "curve": draw_curve, "categories": draw_categories,
         "heat": draw_heat, "links": draw_links}


def label_decades(axis):
    """Ticks at powers of ten, and at 2 and 5 times these where there are few, unless the ticks are set already."""
    if isinstance(axis.get_major_locator(), FixedLocator):
        return
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1,) if math.log10(high / low) > 2.5 else (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e-0", "e-")))
    axis.set_minor_formatter(NullFormatter())


def draw_panel(axes, panel, rows):
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    axes.set_xscale("log" if "x" in panel.log else "linear")
    axes.set_yscale("log" if "y" in panel.log else "linear")
    KINDS[panel.kind](axes, panel, rows.where(panel=panel.panel, quantity=panel.quantity), rows)
    for name in panel.log:
        label_decades(getattr(axes, f"{name}axis"))


def add_legend(picture):
    """One legend below the panels, every name once, in lines that fit the page."""
    handles = {}
    for axes in picture.axes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    if handles:
        fitting = max(1, 96 // (max(map(len, handles)) + 7))  # characters
        lines = math.ceil(len(handles) / fitting)
        picture.legend(handles.values(), handles.keys(), loc="upper center", bbox_to_anchor=(0.5, 0),
                       ncols=math.ceil(len(handles) / lines))


def panels_of(figure, rows):
    """The panels that there are rows for."""
    return [panel for panel in figure.panels if len(rows.where(panel=panel.panel, quantity=panel.quantity))]


def draw(figure, rows):
    """The matplotlib figure."""
    panels = panels_of(figure, rows)
    columns = min(figure.columns, len(panels))
    lines = math.ceil(len(panels) / columns)
    picture, grid = plt.subplots(lines, columns, figsize=(PAGE_WIDTH, 0.4 + figure.height * lines), squeeze=False,
                                 sharey=figure.share_y, layout="constrained")
    settings = {row["quantity"]: f"{row['value']:g}" for row in rows.where(panel="setting")}
    picture.suptitle(figure.title.format(**settings), x=0.01, ha="left", weight="bold", size=11)
    for axes, panel in zip(grid.flat, panels):
        draw_panel(axes, panel, rows)
    if figure.share_y:
        for axes in grid[:, 1:].flat:
            axes.set_ylabel("")
    if figure.scale:
        picture.colorbar(grid[0, 0].images[0], ax=grid, label=figure.scale)
    add_legend(picture)
    return picture


def main():
    parser = argparse.ArgumentParser(description="Draws the figures of `unshuffle reproduce` from its CSV files.")
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=here, metavar="DIR",
                        help="Folder with the CSV files; the figures go there too (default: that of this script).")
    parser.add_argument("--formats", nargs="+", default=["svg", "png"], choices=["svg", "png"],
                        help="Which files to write (default: both).")
    options = parser.parse_args()
    found = [name for name in FIGURES if (options.folder / f"{name}.csv").exists()]
    if not found:
        sys.exit(f"figures.py: {options.folder}: none of {', '.join(f'{name}.csv' for name in FIGURES)} is there")
    plt.rcParams.update(RULES)
    for name in found:
        rows = read(options.folder / f"{name}.csv")
        if not panels_of(FIGURES[name], rows):
            sys.exit(f"figures.py: {options.folder / name}.csv: has no rows for any panel of this figure")
        picture = draw(FIGURES[name], rows)
        for extension in options.formats:
            picture.savefig(options.folder / f"{name}.{extension}", bbox_inches="tight", metadata=UNDATED[extension])
        plt.close(picture)
    print(f"Drew {len(found)} {'figure' if len(found) == 1 else 'figures'} in {options.folder}: {', '.join(found)}")


if __name__ == "__main__":
    main()
