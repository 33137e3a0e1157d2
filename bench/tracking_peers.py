#!/usr/bin/env python3
"""Compares `unshuffle track` with other trackers that use boxes only, all of them with their own defaults.

Usage: bench/tracking_peers.py [--data FOLDER] [--work FOLDER] [--out FILE] [--only NAME...]

FOLDER (../shared/data/mot) holds MOTChallenge sequences with ground truth; they are not part of the project. Every peer
is installed from PyPI into a virtual environment of its own below --work (build/peers) the first time; one that cannot
be installed is named and left out. Every tracker reads the same detections and is scored by `unshuffle evaluate`.

Detectors of MOT15 give scores up to 120, and peers expect 0 to 1. So each peer runs twice: with the scores as they are,
and with those of a file divided by the largest. Frames/s is the tracker alone, on one core, without reading files.

The page has the combined scores of all sequences. --out also writes them to a file, which scripts/tracking.py includes.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/release/unshuffle"
PEERS = {  # tracker: package and the least version that was tried
    "SORT": "trackers>=2.6", "ByteTrack": "trackers>=2.6", "OC-SORT": "trackers>=2.6", "C-BIoU": "trackers>=2.6",
    "BoT-SORT": "trackers>=2.6", "norfair": "norfair>=2.2", "motpy": "motpy>=0.0.10"}
CLASSES = {"SORT": "SORTTracker", "ByteTrack": "ByteTrackTracker", "OC-SORT": "OCSORTTracker", "C-BIoU": "CBIoUTracker",
           "BoT-SORT": "BoTSORTTracker"}
OURS = {"unshuffle": [], "unshuffle --adapt": ["--adapt"], "unshuffle --tracker sort": ["--tracker", "sort"]}


def sequences(data):
    return sorted(folder for folder in pathlib.Path(data).iterdir()
                  if (folder / "det/det.txt").exists() and (folder / "gt/gt.txt").exists())


def read_setting(folder, key):
    for line in (folder / "seqinfo.ini").read_text().splitlines():
        name, _, value = line.partition("=")
        if name.strip() == key:
            return value.strip()
    return None


def read_frames(folder, scaled):
    """Rows of left, top, right, bottom, score for each frame."""
    frames = [[] for _ in range(int(read_setting(folder, "seqLength")))]
    for line in (folder / "det/det.txt").read_text().splitlines():
        values = [float(cell) for cell in line.split(",")]
        left, top, width, height, score = values[2:7]
        if width > 0 and height > 0:
            frames[int(values[0]) - 1].append([left, top, left + width, top + height, score])
    largest = max((row[4] for rows in frames for row in rows), default=1)
    if scaled and largest > 1:
        frames = [[row[:4] + [max(row[4], 0) / largest] for row in rows] for rows in frames]
    return frames


# The three below run inside the peer's environment. Each makes a function from the rows of a frame to rows of id, left,
# top, right, bottom.

def roboflow(name, frame_rate):
    import numpy
    import supervision
    import trackers
    # Camera compensation of BoT-SORT needs pictures, which this comparison is without.
    options = {"enable_cmc": False} if name == "BoT-SORT" else {}
    tracker = getattr(trackers, CLASSES[name])(frame_rate=frame_rate, **options)

    def step(rows):
        table = numpy.array(rows, dtype=float).reshape(-1, 5)
        detections = supervision.Detections(xyxy=table[:, :4], confidence=table[:, 4],
                                            class_id=numpy.zeros(len(table), dtype=int))
        found = tracker.update(detections)
        return [[int(track), *box] for track, box in zip(found.tracker_id, found.xyxy) if track >= 0]
    return step


def norfair_tracker(_name, _frame_rate):
    import norfair
    import numpy
    tracker = norfair.Tracker(distance_function="iou", distance_threshold=0.7)  # both are required; from its examples

    def step(rows):
        detections = [norfair.Detection(points=numpy.array([row[:2], row[2:4]]), scores=numpy.array([row[4]] * 2))
                      for row in rows]
        return [[track.id, *track.estimate.ravel()] for track in tracker.update(detections=detections)
                if track.live_points.any()]
    return step


def motpy_tracker(_name, frame_rate):
    import motpy
    tracker = motpy.MultiObjectTracker(dt=1 / frame_rate)
    ids = {}

    def step(rows):
        tracker.step(detections=[motpy.Detection(box=row[:4], score=row[4]) for row in rows])
        return [[ids.setdefault(track.id, len(ids) + 1), *track.box] for track in tracker.active_tracks()]
    return step


def run_inside(name, data, out, scaled):
    """Tracks all sequences, writes result files and prints frames and seconds."""
    make = {"norfair": norfair_tracker, "motpy": motpy_tracker}.get(name, roboflow)
    frames_done, seconds = 0, 0.0
    for folder in sequences(data):
        frames = read_frames(folder, scaled)
        step = make(name, float(read_setting(folder, "frameRate") or 30))
        begin = time.perf_counter()
        found = [step(rows) for rows in frames]
        seconds += time.perf_counter() - begin
        frames_done += len(frames)
        lines = [f"{number},{track},{left:.2f},{top:.2f},{right - left:.2f},{bottom - top:.2f},-1,-1,-1,-1\n"
                 for number, rows in enumerate(found, 1)
                 for track, left, top, right, bottom in rows if right > left and bottom > top]
        (pathlib.Path(out) / f"{folder.name}.txt").write_text("".join(lines))
    print(json.dumps({"frames": frames_done, "seconds": seconds}))


def environment(package, work):
    """The interpreter of the package's environment; None when it cannot be installed."""
    folder = work / package.split(">")[0]
    python = folder / "bin/python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", package], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{package} cannot be installed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
        (folder / "installed").touch()
    return python


def score(data, results):
    out = subprocess.run([PROGRAM, "evaluate", "--gt", data, "--results", results, "--json"], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out)


def run_peer(name, scaled, data, work):
    python = environment(PEERS[name], work)
    if python is None:
        return None
    out = work / "results" / (name + ("-scaled" if scaled else ""))
    out.mkdir(parents=True, exist_ok=True)
    one_core = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    done = subprocess.run([python, __file__, "--inside", name, "--data", data, "--out", out] + ["--scaled"] * scaled,
                          capture_output=True, text=True, env=one_core)
    if done.returncode != 0:
        print(f"{name} fails: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    taken = json.loads(done.stdout.splitlines()[-1])
    return score(data, out), taken["frames"] / taken["seconds"]


def run_ours(options, data, work):
    out = work / "results" / ("unshuffle" + "".join(options))
    done = subprocess.run([PROGRAM, "track", *sequences(data), "--out", out, "--threads", "1", *options], check=True,
                          capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if "frames/s" in line]
    frames = [float(line.split(": ")[1].split(" frames")[0]) for line in lines]
    rates = [float(line.split(", ")[3].split(" frames/s")[0]) for line in lines]
    return score(data, out), sum(frames) / sum(count / max(rate, 1) for count, rate in zip(frames, rates))


def row(name, measured):
    scores, rate = measured
    total = scores["COMBINED"]
    cells = [f"{100 * total[key]:.1f}" for key in ("hota", "idf1", "mota")] + [str(total["ids"]), f"{rate:,.0f}"]
    return "| " + " | ".join([name] + cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared/data/mot")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/peers")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", help="names as in the table, unshuffle among them")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--scaled", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_inside(options.inside, options.data, options.out, options.scaled)
        return
    lines = ["| tracker, its own defaults | HOTA | IDF1 | MOTA | IDs | frames/s |", "|" + "---|" * 6]
    for name, chosen in OURS.items():
        if options.only and name not in options.only:
            continue
        lines.append(row(f"`{name}`", run_ours(chosen, options.data, options.work)))
        print(lines[-1], flush=True)
    for name, package in PEERS.items():
        if options.only and name not in options.only:
            continue
        for scaled in (False, True):
            measured = run_peer(name, scaled, options.data, options.work)
            if measured is None:
                continue
            lines.append(row(f"{name} ({package.split('>')[0]}{', scores scaled' if scaled else ''})", measured))
            print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
