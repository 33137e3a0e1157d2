#!/usr/bin/env python3
"""Measures what each part of the tracker is worth and writes docs/results/tracking.md.

Usage: scripts/tracking.py [--data FOLDER] [--from CSV]
FOLDER (../shared/data/mot) holds MOTChallenge sequences with ground truth; they are not part of the project. Runs
build/release/bench_tracking_ablation, which takes some ten minutes on one core, and keeps every single run in
docs/results/tracking_ablation.csv and, of the defaults, in tracking_defaults.csv. With --from the page is written from
such files, and nothing is measured; with --defaults only the defaults are, in a minute. The table of other trackers is
docs/results/tracking_peers.txt, which bench/tracking_peers.py --out writes.
"""

import argparse
import csv
import pathlib
import subprocess
import tempfile
from collections import defaultdict

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs/results/tracking_ablation.csv"
DEFAULTS = ROOT / "docs/results/tracking_defaults.csv"
PEERS = ROOT / "docs/results/tracking_peers.txt"
MOVING = ["ETH-Sunnyday", "ETH-Bahnhof", "ADL-Rundle-6", "KITTI-17", "MOT17-05-FRCNN", "MOT17-10-FRCNN"]
STATIC = ["TUD-Campus", "PETS09-S2L1", "MOT20-01", "MOT17-02-FRCNN", "MOT17-04-FRCNN"]
TERMS = [("untrained: identity", "identity", 0), ("constant velocity", "constant velocity", 0),
         ("identity, camera", "identity + camera", 0), ("constant velocity, camera", "constant velocity + camera", 0),
         ("**trained, camera**", "trained + camera", 1), ("same, seed 2", "trained + camera", 2),
         ("same, seed 3", "trained + camera", 3), ("seed 1, place zeroed", "trained + camera; without place", 1),
         ("seed 1, last step zeroed", "trained + camera; without last step", 1),
         ("seed 1, mean step zeroed", "trained + camera; without mean step", 1),
         ("trained without camera", "trained without camera", 1),
         ("trained with 8 tanh units, camera", "trained mlp:8 + camera", 1),
         ("trained with true links, camera", "trained with true links + camera", 1)]
WAYS = [("untrained", "identity", 0), ("constant velocity", "constant velocity", 0), ("trained, camera", "trained + camera", 1)]


def measure_defaults(data):
    subprocess.run([ROOT / "build/release/bench_tracking_ablation", "defaults", data, DEFAULTS], check=True)


def measure(data):
    measure_defaults(data)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("terms", "training", "gates"):
            part = pathlib.Path(folder) / f"{kind}.csv"
            subprocess.run([ROOT / "build/release/bench_tracking_ablation", kind, data, part], check=True)
            lines += part.read_text().splitlines()[bool(lines):]
    KEPT.write_text("\n".join(lines) + "\n")


class Runs:
    def __init__(self, path):
        self.runs = {(row["variant"], int(row["seed"]), row["sequence"]): row for row in csv.DictReader(path.open())}

    def values(self, variant, seed, sequences, key):
        return [float(self.runs[variant, seed, name][key]) for name in sequences]

    def mean(self, variant, seed, sequences, key):
        values = self.values(variant, seed, sequences, key)
        return f"{100 * sum(values) / len(values):.1f}"

    def total(self, variant, seed, sequences, key):
        return f"{sum(self.values(variant, seed, sequences, key)):.0f}"

    def summary(self, variant, seed, sequences):
        return [self.mean(variant, seed, sequences, "hota"), self.mean(variant, seed, sequences, "idf1"),
                self.total(variant, seed, sequences, "ids"), self.mean(variant, seed, sequences, "mota"),
                self.total(variant, seed, sequences, "fp"), self.total(variant, seed, sequences, "fn")]

    def short(self, variant, seed, sequences):
        return " / ".join([self.mean(variant, seed, sequences, "idf1"), self.total(variant, seed, sequences, "ids"),
                           self.mean(variant, seed, sequences, "mota")])


def table(heads, rows):
    return ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)] + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def all_scores(row, reference=None):
    cells = [100 * float(row[key]) for key in ("hota", "idf1", "mota")]
    if reference is None:
        return [f"{cell:.1f}" for cell in cells] + [row["ids"]]
    before = [100 * float(reference[key]) for key in ("hota", "idf1", "mota")]
    return [f"{cell - old:+.1f}" for cell, old in zip(cells, before)] + [f"{int(row['ids']) - int(reference['ids']):+d}"]


def defaults_page():
    rows = list(csv.DictReader(DEFAULTS.open()))
    combined = {row["variant"]: row for row in rows if row["sequence"] == "COMBINED"}
    usual = {row["sequence"]: row for row in rows if row["variant"] == "defaults"}
    heads = ["HOTA", "IDF1", "MOTA", "IDs"]
    lines = ["## Defaults, one change at a time", "",
             "Constant velocity, no camera, all eleven videos combined ([every run](tracking_defaults.csv)). The first row has",
             "the scores of the defaults, the others the difference that one change makes.", ""]
    lines += table([""] + heads, [["**defaults**"] + all_scores(combined["defaults"])] +
                   [[name] + all_scores(row, combined["defaults"]) for name, row in combined.items()
                    if name != "defaults" and not name.startswith("chosen")])
    lines += ["Overlap of boxes widened by a fifth of their size on every side, matching lost tracks after the others, weighing",
              "pairs by trust, damping the velocity of lost tracks and leaving out tracks of low mean trust were tried while the",
              "defaults were chosen; none of them gained, and the program is without them.", "",
              "## Chosen without the video", "",
              "The defaults were chosen on these eleven videos, by their combined and their mean scores, among some 330 settings, most",
              "of them drawn at random. How much such a choice flatters: for each video, of the variants above the one with the",
              "highest mean of HOTA, IDF1 and MOTA on the ten others.", ""]
    lines += table(["sequence", "chosen on the others"] + heads + ["defaults: HOTA", "IDF1", "MOTA", "IDs"],
                   [[row["sequence"], row["variant"].removeprefix("chosen on the others: ")] + all_scores(row) +
                    all_scores(usual[row["sequence"]]) for row in rows if row["variant"].startswith("chosen on the others: ")] +
                   [["**combined**", ""] + all_scores(combined["chosen on the others"]) + all_scores(combined["defaults"])])
    if PEERS.exists():
        lines += ["## Beside other trackers", "",
                  "`bench/tracking_peers.py`: boxes only, every tracker with its own defaults, scored by `unshuffle evaluate`, all",
                  "videos combined. Detectors of MOT15 give scores up to 120 where the others expect 0 to 1, so these run with the",
                  "scores as they are and with those of a file divided by the largest. Part of the distance is MOT20-01, whose detector",
                  "gives most true boxes the score 0; trackers with a fixed threshold leave them out. Frames/s is wall-clock time on",
                  "one core of a machine that had much other work to do, so compare orders of magnitude only.", "", *PEERS.read_text().splitlines(), ""]
    return lines


def page(runs):
    lines = ["# The tracker, measured", "", "Made by `scripts/tracking.py`. Ground truth is used for scores only.", ""]
    lines += defaults_page()
    lines += ["## Before scores were calibrated", "",
             "The tables from here on were measured with earlier defaults (gates 0.5, every detection alike, smoothing",
             "0.2, death 30, longest gap 15, training from the identity) and have not been repeated; they compare models under",
             "equal conditions.", "",
             "[Every single run](tracking_ablation.csv). Detections only: every model is trained on",
             "the detections of the very video it is scored on; the ground truth scores, and gives the row with true links.",
             f"Moving cameras: {', '.join(MOVING)}. Static: {', '.join(STATIC)}. HOTA, IDF1 and MOTA are means over sequences,",
             "identity switches (IDs), false positives (FP) and misses (FN) are sums.", "", "## Each term", ""]
    heads = ["HOTA", "IDF1", "IDs", "MOTA", "FP", "FN"]
    for title, sequences in (("moving", MOVING), ("static", STATIC)):
        lines += table([title] + heads, [[name] + runs.summary(variant, seed, sequences) for name, variant, seed in TERMS])
    lines += ["## Each sequence", "", "IDF1 / IDs / MOTA.", ""]
    lines += table(["sequence"] + [name for name, _, _ in WAYS],
                   [[name] + [runs.short(variant, seed, [name]) for _, variant, seed in WAYS] for name in MOVING + STATIC])
    lines += ["## Training on corrupted detections", "",
              "20 % of the detections taken away and as many false ones put anywhere in the image, three draws, for training;",
              "tracking is on the clean ones. Means over the draws.", ""]
    wins = defaultdict(int)
    rows = []
    for name in MOVING + STATIC:
        means = {}
        for kind in ("robust", "exact"):
            values = [runs.values(f"trained on corrupted; {kind}", draw, [name], "idf1")[0] for draw in (1, 2, 3)]
            means[kind] = 100 * sum(values) / 3
        wins["robust" if means["robust"] > means["exact"] else "exact"] += 1
        rows.append([name, f"{means['robust']:.1f}", f"{means['exact']:.1f}"])
    for title, sequences in (("moving", MOVING), ("static", STATIC)):
        cells = []
        for kind in ("robust", "exact"):
            values = [value for draw in (1, 2, 3)
                      for value in runs.values(f"trained on corrupted; {kind}", draw, sequences, "idf1")]
            cells.append(f"**{100 * sum(values) / len(values):.1f}**")
        rows.append([f"**mean, {title}**", *cells])
    lines += table(["IDF1", "robust marginals", "exact marginals"], rows)
    lines += [f"Robust is ahead on {wins['robust']} of {len(MOVING + STATIC)} sequences.", "", "## Other gates", "",
              "Moving cameras, IDF1 / IDs / MOTA.", ""]
    lines += table(["`--least-overlap` and `--recovery-overlap`"] + [name for name, _, _ in WAYS],
                   [[label] + [runs.short(f"{gate}; {variant}", seed, MOVING) for _, variant, seed in WAYS]
                    for label, gate in (("0.5 (default)", "gate 0.5"), ("0.4", "gate 0.4"), ("0.3", "gate 0.3"),
                                        ("0.3, `--death 10`", "gate 0.3 death 10"))])
    lines += ["## False detections", "",
              "Moving cameras, IDF1 / IDs / MOTA, when `--min-confidence` leaves out the least confident detections of every video",
              "(the model is trained on all of them). With all detections constant velocity has the higher MOTA, as its lost tracks",
              "drift away from false detections that better predictions find again.", ""]
    lines += table(["left out"] + [name for name, _, _ in WAYS],
                   [["none"] + [runs.short(f"gate 0.5; {variant}", seed, MOVING) for _, variant, seed in WAYS]] +
                   [[f"{100 * share:.0f} %"] + [runs.short(f"least confident {share} left out; {variant}", seed, MOVING)
                                                for _, variant, seed in WAYS] for share in (0.1, 0.2, 0.3, 0.4)])
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=ROOT.parent / "shared/data/mot")
    parser.add_argument("--from", dest="kept", type=pathlib.Path)
    parser.add_argument("--defaults", action="store_true")
    options = parser.parse_args()
    if options.defaults:
        measure_defaults(options.data)
    elif options.kept is None:
        measure(options.data)
    (ROOT / "docs/results/tracking.md").write_text(page(Runs(options.kept or KEPT)))


if __name__ == "__main__":
    main()
