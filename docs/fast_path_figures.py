#!/usr/bin/env python3
"""Draws the pictures of fast-path.md into docs/images. Needs matplotlib.

    mkdir -p build/figures
    build/release/bench_fast_path_figures build/figures
    python3 docs/fast_path_figures.py build/figures
"""

import csv
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "unshuffle"})
POINT, NODE, GRID = "#555555", "#c2410c", "#0369a1"


def read(path):
    with open(path, newline="") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


def save(figure, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def draw_nodes(source, target):
    points = [row["position"] for row in read(source / "points.csv")]
    grid = [row["position"] for row in read(source / "grid.csv")]
    nodes, boxes = read(source / "nodes.csv"), read(source / "boxes.csv")
    figure, panels = plt.subplots(2, 1, figsize=(10, 7.6), layout="constrained")
    top = max(row["weight"] for row in nodes) * 1.08
    middle = [box for box in boxes if box["compressed"] and box["low"] > -0.7][:2]
    zoom = (middle[0]["low"] - 0.05, middle[-1]["high"] + 0.05)
    for panel, limits in zip(panels, [(points[0] - 0.15, points[-1] + 0.15), zoom]):
        whole = panel is panels[0]
        for box in boxes:
            colour = "#fde7d3" if box["compressed"] else "#e8e8e8"
            panel.axvspan(box["low"], box["high"], color=colour, lw=0)
        panel.vlines([row["position"] for row in nodes], 0, [row["weight"] for row in nodes], color=NODE, lw=1.4)
        panel.plot([row["position"] for row in nodes], [row["weight"] for row in nodes], "o", color=NODE,
                   ms=4 if whole else 7, label=f"{len(nodes)} nodes" if whole else "nodes, height = weight")
        panel.plot(points, [-0.1 * top] * len(points), "|", color=POINT, ms=9, mew=0.7, label=f"{len(points)} points" if whole else "points")
        if not whole:
            panel.plot(grid, [-0.2 * top] * len(grid), ".", color=GRID, ms=6,
                       label="grid for interpolation, per cell")
        panel.axhline(0, color="black", lw=0.6)
        panel.set_xlim(limits)
        panel.set_ylim((-0.16 if whole else -0.27) * top, top)
        panel.set_ylabel("weight")
        panel.set_yticks([0, 0.01, 0.02] if top > 0.02 else [0, 0.005, 0.01])
    panels[0].set_title("A measure and its boxes (2√ε wide; grey: few points, kept as they are)", fontsize=12)
    panels[1].set_title("Two of the boxes", fontsize=12)
    panels[1].set_xlabel("position")
    panels[0].legend(loc="upper left", framealpha=0.9)
    panels[1].legend(loc="upper right", framealpha=0.9)
    save(figure, target, "fast-path-nodes")


def draw_accuracy(source, target):
    rows = read(source / "accuracy.csv")
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.8), sharey=True, layout="constrained")
    colours = {4: "#94a3b8", 6: "#0369a1", 8: "#15803d", 12: "#c2410c"}
    for panel, what in zip(panels, ["objective", "gradient"]):
        for order, colour in colours.items():
            own = [row for row in rows if row["order"] == order]
            width = [row["width"] for row in own]
            panel.semilogy(width, [max(row[what], 1e-16) for row in own], "o-", color=colour, ms=5,
                           label=f"order {order}")
            if what == "gradient":
                panel.semilogy(width, [max(row["estimate"], 1e-16) for row in own], ":", color=colour, lw=1.5)
        panel.axvline(2, color="black", lw=0.8, ls="--")
        panel.set_xlabel("box width / √ε")
        panel.set_title(f"{what}" + (" (dotted: the estimate)" if what == "gradient" else ""), fontsize=12)
        panel.grid(True, which="major", alpha=0.3)
    panels[0].set_ylabel("relative error against the uncompressed solve")
    panels[0].set_ylim(1e-16, 3)
    panels[0].legend(loc="lower right")
    panels[0].annotate("used", (2, 0.3), xytext=(4, 0), textcoords="offset points")
    save(figure, target, "fast-path-accuracy")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    images = pathlib.Path(__file__).resolve().parent / "images"
    draw_nodes(pathlib.Path(sys.argv[1]), images)
    draw_accuracy(pathlib.Path(sys.argv[1]), images)
