#!/usr/bin/env python3
"""Writes tests/data/npy.json: arrays as NumPy saves them, as hexadecimal bytes, with the numbers they hold.

Usage: python tests/oracle/make_npy.py (needs numpy)
"""
import io
import json
import pathlib

import numpy


def entry(array, version=None):
    out = io.BytesIO()
    numpy.lib.format.write_array(out, array, version=version)
    return {"type": array.dtype.str, "bytes": out.getvalue().hex(),
            "rows": numpy.atleast_2d(array.T).T.astype(float).tolist()}


def arrays():
    plain = numpy.array([[0.1, -2.5e300], [3, 4], [5e-324, 6]])
    yield entry(plain)
    yield entry(plain, version=(2, 0))
    yield entry(plain, version=(3, 0))
    yield entry(numpy.asfortranarray(plain))
    yield entry(numpy.array([1.5, -2.25]))
    yield entry(numpy.array([[True, False]]))
    for kind in "f4 f8 i1 i2 i4 i8 u1 u2 u4 u8".split():
        for order in "<>":
            yield entry(numpy.array([[1, 100], [120, 3], [77, 0]], dtype=order + kind))
    yield entry(numpy.array([-(2**53), 2**53, -128], dtype=">i8"))


target = pathlib.Path(__file__).parent.parent / "data/npy.json"
target.write_text(json.dumps({"numpy": numpy.__version__, "arrays": list(arrays())}, indent=1) + "\n")
