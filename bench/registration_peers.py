#!/usr/bin/env python3
"""Rigid registration beside coherent point drift (pycpd): success rates and processor time.

    python3 bench/registration_peers.py [--points 100] [--sets 5] [--program build/release/unshuffle]

Makes a virtual environment in build/registration-peers and installs pycpd there. A set is drawn from six Gaussian clumps
or one; it is turned by the angle about a random axis, moved, given noise of 2 % of its standard deviation and shuffled, and
a share of the responses is then replaced by uniform points of the box around them. pycpd gets that share as its w, at
least 0.01; unshuffle is told nothing. Success: the rotation found is within 5 degrees of the true one.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "registration-peers"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
ANGLES, OUTLIERS = (0, 45, 90, 135, 180), (0.0, 0.1, 0.3, 0.5)
NOISE, CLOSE = 0.02, 5.0


def inside_environment():
    """Runs this script again by the environment's Python."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "numpy", "scipy", "pycpd"], check=True)
    sys.exit(subprocess.run([str(python), __file__, "--inside", *sys.argv[1:]], env={**os.environ, **ONE_THREAD}).returncode)


def rotation(vector):
    from scipy.spatial.transform import Rotation
    return Rotation.from_rotvec(vector).as_matrix()


def drawn(n, degrees, outliers, seed):
    """Features, responses and the true rotation."""
    import numpy as np
    random = np.random.default_rng(seed)
    clumps = random.normal(size=(6, 3))
    z = random.normal(size=(n, 3)) if seed % 2 else 0.4 * random.normal(size=(n, 3)) + clumps[random.integers(6, size=n)]
    axis = random.normal(size=3)
    truth = rotation(np.radians(degrees) * axis / np.linalg.norm(axis))
    y = z @ truth.T + random.normal(size=3) + NOISE * z.std() * random.normal(size=(n, 3))
    strangers = round(outliers * n)
    low, high = y.min(axis=0), y.max(axis=0)
    y[n - strangers:] = random.uniform(low, high, size=(strangers, 3))
    return z, y[random.permutation(n)], truth


def by_unshuffle(program, z, y, _):
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        for name, table, columns in (("y", y, "y1,y2,y3"), ("z", z, "z1,z2,z3")):
            np.savetxt(f"{folder}/{name}.csv", table, delimiter=",", header=columns, comments="")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "fit", "y.csv", "z.csv", "--response", "y1,y2,y3", "--model", "rigid", "--out", "fit.json"],
                       cwd=folder, check=False, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        fit = json.loads(pathlib.Path(f"{folder}/fit.json").read_text())
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return rotation([value for name, value in fit["coefficients"].items() if name.startswith("turn:")]), seconds


def by_pycpd(_, z, y, outliers):
    import pycpd
    begin = time.process_time()
    _, (_, turn, _) = pycpd.RigidRegistration(X=y, Y=z, w=max(outliers, 0.01), scale=False, max_iterations=200).register()
    return turn.T, time.process_time() - begin


def compare(options):
    import numpy as np
    methods = {"unshuffle": by_unshuffle, "pycpd": by_pycpd}
    print(f"{options.points} points, {options.sets} sets a cell: successes, and processor seconds of one registration\n")
    print("| outliers | degrees | " + " | ".join(methods) + " |\n|---|---|" + "---|" * len(methods))
    for outliers in OUTLIERS:
        for degrees in ANGLES:
            cells = []
            for method in methods.values():
                good, seconds = 0, 0.0
                for k in range(options.sets):
                    z, y, truth = drawn(options.points, degrees, outliers, seed=1000 * degrees + k)
                    found, took = method(options.program, z, y, outliers)
                    off = np.degrees(np.arccos(np.clip((np.trace(found @ truth.T) - 1) / 2, -1, 1)))
                    good += off < CLOSE
                    seconds += took
                cells.append(f"{good}/{options.sets}, {seconds / options.sets:.2f} s")
            print(f"| {100 * outliers:.0f} % | {degrees} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--program", default=str(ROOT / "build/release/unshuffle"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        inside_environment()
    compare(options)


if __name__ == "__main__":
    main()
