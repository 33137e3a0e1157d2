"""What the published ONNX files of NanoTrack answer on a hundred pairs of crops. Makes ../data/nanotrack_v2.npy and
../data/nanotrack_v3.npy: a row per pair, every 37th number of the two outputs, beginning with number (pair mod 37).

Usage: pip install onnx onnxruntime numpy; python3 make_nanotrack.py FOLDER_WITH_WEIGHTS
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

DATA = Path(__file__).resolve().parent.parent / "data"
PAIRS, STEP = 100, 37


def crop(side, pair, phase):
    """Two waves and a bright rectangle, in whole numbers from 0 to 255."""
    y, x = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    planes = []
    for channel in range(3):
        plane = 127.5 + 60 * np.sin((0.03 + 0.002 * pair) * x + 0.05 * y + channel + phase)
        plane += 40 * np.sin(0.11 * x - (0.02 + 0.001 * pair) * y + 2 * channel)
        planes.append(plane)
    picture = np.array(planes)
    middle, half = side // 2 + (pair % 11) - 5, 12 + pair % 17
    picture[:, middle - 2 * half:middle + 2 * half, middle - half:middle + half] += 25
    return np.floor(np.clip(picture, 0, 255) + 0.5).astype(np.float32)


def session(path, sides=None):
    model = onnx.load(str(path))
    if sides:
        for value, shape in ((model.graph.input[0], (1, 3, sides, sides)),):
            for dimension, size in zip(value.type.tensor_type.shape.dim, shape):
                dimension.dim_value = size
        for dimension in model.graph.output[0].type.tensor_type.shape.dim:
            dimension.ClearField("dim_value")
            dimension.dim_param = "any"
        del model.graph.value_info[:]
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def run(model, *inputs):
    return model.run(None, {slot.name: value for slot, value in zip(model.get_inputs(), inputs)})


for version in (2, 3):
    folder = Path(sys.argv[1])
    target = session(folder / f"nanotrackv{version}_backbone.onnx", 127)
    search = session(folder / f"nanotrackv{version}_backbone.onnx")
    head = session(folder / f"nanotrackv{version}_head.onnx")
    rows = []
    for pair in range(PAIRS):
        z = run(target, crop(127, pair, 0.0)[None])[0]
        x = run(search, crop(255, pair, 0.3)[None])[0]
        answer = np.concatenate([part.ravel() for part in run(head, z, x)])
        rows.append(answer[pair % STEP::STEP][: len(answer) // STEP])
    table = np.array(rows, dtype=np.float32)
    np.save(DATA / f"nanotrack_v{version}.npy", table)
    print(version, z.shape, x.shape, table.shape, float(np.abs(table).max()), table[:2, :4])
