"""Scores of SORT's results by two independent evaluators, for tests/unit/tracking_scores.cpp.

Usage: make_tracking.py PROGRAM DATA tests/data/tracking_scores.json

PROGRAM is unshuffle; DATA holds MOTChallenge sequence folders. CLEAR MOT comes from py-motmetrics, identity scores and
HOTA from TrackEval, and so does the choice of boxes that count. Needs motmetrics and trackeval from PyPI.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import motmetrics
import numpy as np
import trackeval

# TrackEval still uses names that numpy has dropped.
np.float, np.int, np.bool = float, int, bool


def benchmark_of(name):
    return name[:5] if name.startswith("MOT") else "MOT15"


def prepared(data, results, name):
    dataset = trackeval.datasets.MotChallenge2DBox({
        "GT_FOLDER": str(data), "TRACKERS_FOLDER": str(results), "TRACKERS_TO_EVAL": ["sort"],
        "BENCHMARK": benchmark_of(name), "SEQ_INFO": {name: None}, "SKIP_SPLIT_FOL": True, "PRINT_CONFIG": False})
    return dataset.get_preprocessed_seq_data(dataset.get_raw_seq_data("sort", name), "pedestrian")


def clear(frames):
    accumulator = motmetrics.MOTAccumulator(auto_id=True)
    for truth, found, similarity in zip(frames["gt_ids"], frames["tracker_ids"], frames["similarity_scores"]):
        distance = np.where(similarity < 0.5 - np.finfo(float).eps, np.nan, 1 - similarity)
        accumulator.update(truth, found, distance)
    names = ["mota", "motp", "recall", "precision", "num_unique_objects", "mostly_tracked", "partially_tracked",
             "mostly_lost", "num_false_positives", "num_misses", "num_switches", "num_fragmentations"]
    row = motmetrics.metrics.create().compute(accumulator, metrics=names).iloc[0]
    keys = ["mota", "motp_distance", "recall", "precision", "gt", "mt", "pt", "ml", "fp", "fn", "ids", "fm"]
    return {key: float(row[name]) for key, name in zip(keys, names)}


def scores(data, results, name):
    frames = prepared(data, results, name)
    out = clear(frames)
    hota = trackeval.metrics.HOTA().eval_sequence(frames)
    out |= {key: float(np.mean(hota[field])) for key, field in [
        ("hota", "HOTA"), ("det_a", "DetA"), ("ass_a", "AssA"), ("loc_a", "LocA"), ("det_recall", "DetRe"),
        ("det_precision", "DetPr"), ("ass_recall", "AssRe"), ("ass_precision", "AssPr")]}
    identity = trackeval.metrics.Identity({"PRINT_CONFIG": False}).eval_sequence(frames)
    out |= {key: float(identity[field]) for key, field in [("idf1", "IDF1"), ("idp", "IDP"), ("idr", "IDR")]}
    return out


def main():
    program, data = sys.argv[1], pathlib.Path(sys.argv[2])
    names = sorted(folder.name for folder in data.iterdir() if (folder / "gt" / "gt.txt").exists())
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "track", *[data / name for name in names], "--tracker", "sort", "--quiet", "--out",
                        pathlib.Path(folder) / "sort" / "data"], check=True)
        result = {name: scores(data, folder, name) for name in names}
    # TrackEval talks on standard output, so the numbers go to a file.
    pathlib.Path(sys.argv[3]).write_text(json.dumps(result, indent=1) + "\n")


main()
