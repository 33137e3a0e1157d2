#!/usr/bin/env python3
"""Draws docs/images/reliability.svg from docs/results/reliability.csv (scripts/believing.py reliability --csv). Needs
matplotlib."""
import csv
import pathlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

folder = pathlib.Path(__file__).resolve().parent
plt.rcParams["svg.hashsalt"] = "unshuffle"


def main():
    with open(folder / "results/reliability.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["links"]) >= 50]
    figure, axes = plt.subplots(figsize=(4.2, 4.2))
    axes.fill_between([0, 1], [-0.05, 0.95], [0.05, 1.05], color="0.9", linewidth=0, label="within 5 points")
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    for name in dict.fromkeys(row["probabilities"] for row in rows):
        some = [row for row in rows if row["probabilities"] == name]
        axes.plot([float(row["predicted"]) for row in some], [float(row["right"]) for row in some], "o-", markersize=4,
                  label=name)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability", ylabel="share of links that are right", aspect="equal")
    axes.legend(frameon=False, loc="upper left", fontsize="small")
    figure.tight_layout()
    figure.savefig(folder / "images/reliability.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
