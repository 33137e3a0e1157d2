"""Writes tests/data/cytometry_oracle.json: scales by FlowUtils, channel means of real FCS files by FlowIO.

Needs flowutils and flowio of PyPI, and the FCS files beside the project. Usage: make_cytometry.py SHARED_DATA OUT.json
"""

import json
import os
import sys

import flowio
import numpy as np
from flowutils import transforms

VALUES = [-1e5, -5000.0, -150.0, -20.0, -1.0, -1e-3, 0.0, 1e-6, 1e-3, 0.5, 1.0, 7.0, 42.0, 100.0, 999.0, 1e4, 262144.0, 1e6]
PARAMETERS = [(262144, 0.5, 4.5, 0), (1000, 1, 4, 0), (10000, 0.5, 4.5, 1), (262144, 1.5, 4.5, -0.5), (262144, 0, 4.5, 0),
              (1024, 2, 4, 0)]


def scales():
    rows = []
    column = np.array(VALUES).reshape(-1, 1)
    for t, w, m, a in PARAMETERS:
        rows.append(dict(scale="logicle", t=t, w=w, m=m, a=a, y=transforms.logicle(column, [0], t, m, w, a)[:, 0].tolist()))
        if w > 0:
            rows.append(dict(scale="hyperlog", t=t, w=w, m=m, a=a,
                             y=transforms.hyperlog(column, [0], t, m, w, a)[:, 0].tolist()))
    for t, m, a in [(1000, 4, 1), (262144, 4.5, 0)]:
        rows.append(dict(scale="fasinh", t=t, m=m, a=a, y=transforms.asinh(column, [0], t, m, a)[:, 0].tolist()))
    return dict(x=VALUES, rows=rows)


def channel_means(path):
    file = flowio.FlowData(path, ignore_offset_error=True)
    events = np.asarray(file.as_array(preprocess=True))
    means = {}
    for number in range(1, file.channel_count + 1):
        name = file.channels[number]["pnn"]
        if name.lower() != "time":  # FlowIO applies the time step there, which is no gain.
            means[name] = float(events[:, number - 1].mean())
    return dict(events=int(file.event_count), means=means)


def means_of_24_bit_file(path):
    """FlowIO does not read three-byte numbers; this file is big-endian with FL1 to FL3 on four decades from 1."""
    with open(path, "rb") as file:
        content = file.read()
    begin, end = int(content[26:34]), int(content[34:42])
    parts = np.frombuffer(content[begin:end + 1], dtype=np.uint8).reshape(-1, 8, 3).astype(float)
    events = parts[..., 0] * 65536 + parts[..., 1] * 256 + parts[..., 2]
    events[:, 3:6] = 10 ** (4 * events[:, 3:6] / 1024)
    names = ["TIME", "FSC", "SSC", "FL1", "FL2", "FL3", "FSCW", "FSCA"]
    return dict(events=len(events), means=dict(zip(names, events.mean(axis=0).tolist())))


def main(shared, out):
    folder = os.path.join(shared, "cytometry")
    files = {}
    for name in sorted(os.listdir(folder)) + ["gating/data1.fcs"]:
        if name == "sample001.fcs":
            files[name] = means_of_24_bit_file(os.path.join(folder, name))
        elif name.endswith(".fcs"):
            files[name] = channel_means(os.path.join(folder, name))
    with open(out, "w") as file:
        json.dump(dict(scales=scales(), files=files), file, indent=1)
        file.write("\n")


main(*sys.argv[1:])
