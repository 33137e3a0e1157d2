"""Writes small valid files for the fuzzers to start from. Usage: make_corpus.py FOLDER (makes FOLDER/csv, FOLDER/fcs, ...)"""

import json
import os
import re
import struct
import sys


def fcs(version, datatype, order, channels, data, extra=(), supplement=b"", offsets_in_header=True):
    """channels: (name, bits, range, amplification)."""
    keywords = [("$DATATYPE", datatype), ("$BYTEORD", order), ("$MODE", "L"), ("$NEXTDATA", "0"),
                ("$PAR", str(len(channels)))]
    for number, (name, bits, extent, amplification) in enumerate(channels, 1):
        keywords += [(f"$P{number}N", name), (f"$P{number}B", str(bits)), (f"$P{number}R", str(extent)),
                     (f"$P{number}E", amplification)]
    keywords += list(extra)
    event = sum(bits for _, bits, _, _ in channels) // 8
    keywords.append(("$TOT", str(len(data) // event)))

    def text(begin):
        end = begin + len(data)
        parts = keywords + [("$BEGINDATA", f"{begin:08}"), ("$ENDDATA", f"{end - 1:08}")]
        if supplement:
            parts += [("$BEGINSTEXT", f"{end:08}"), ("$ENDSTEXT", f"{end + len(supplement) - 1:08}")]
        return ("/" + "".join(f"{name}/{value}/" for name, value in parts)).encode("latin-1")

    begin = 58 + len(text(0))
    shown = (begin, begin + len(data) - 1) if offsets_in_header else (0, 0)
    header = f"{version}    {58:>8}{begin - 1:>8}{shown[0]:>8}{shown[1]:>8}{0:>8}{0:>8}".encode()
    return header + text(begin) + data + supplement


def fcs_files():
    little, big = "1,2,3,4", "4,3,2,1"
    floats = [("FSC-A", 32, 262144, "0,0"), ("FITC-A", 32, 262144, "0,0")]
    yield "float", fcs("FCS3.1", "F", little, floats, struct.pack("<6f", 1, 2, 3, -4, 5e5, 6),
                       [("$SPILLOVER", "2,FSC-A,FITC-A,1,0.1,0.2,1"), ("$P1S", "a//b")])
    yield "double", fcs("FCS3.0", "D", big, [("X", 64, 1024, "0,0")], struct.pack(">2d", 0.5, -7),
                        offsets_in_header=False)
    yield "integer", fcs("FCS2.0", "I", big, [("A", 16, 1024, "4,0"), ("B", 24, 16777216, "0,0"), ("C", 8, 256, "0,0")],
                         bytes(range(18)), [("$P2G", "8"), ("$COMP", "3,1,0,0,0,1,0,0,0,1")], b"/$P1S/label/")
    yield "empty_values", fcs("FCS3.0", "I", little, [("A", 8, 256, "0,0")], b"\1\2", [("$FIL", ""), ("$P1S", "")])
    yield "text_past_the_end", f"FCS3.1    {58:>8}{58:>8}{0:>8}{0:>8}{0:>8}{0:>8}".encode()


DIMENSION = '<gating:dimension {0}><data-type:fcs-dimension data-type:name="{1}"/></gating:dimension>'
COORDINATE = '<gating:coordinate data-type:value="{}"/>'


def document(body):
    return f"<gating:Gating-ML>{body}</gating:Gating-ML>".encode()


def gate_files():
    yield "rectangle", document(
        '<transforms:transformation transforms:id="L" transforms:boundMin="0"><transforms:logicle transforms:T="1024" '
        'transforms:W="0.5" transforms:M="4.5" transforms:A="0"/></transforms:transformation>'
        '<gating:RectangleGate gating:id="R" gating:parent_id="B">'
        + DIMENSION.format('gating:compensation-ref="FCS" gating:transformation-ref="L" gating:min="0.1"', "A")
        + '</gating:RectangleGate><gating:BooleanGate gating:id="B"><gating:not><gating:gateReference gating:ref="Q" '
        'gating:use-as-complement="true"/></gating:not></gating:BooleanGate><gating:RectangleGate gating:id="Q">'
        + DIMENSION.format('gating:compensation-ref="uncompensated" gating:max="5"', "C") + "</gating:RectangleGate>")
    yield "polygon", document(
        '<gating:PolygonGate gating:id="P">' + DIMENSION.format("", "A") + DIMENSION.format("", "B")
        + "".join(f"<gating:vertex>{COORDINATE.format(x)}{COORDINATE.format(y)}</gating:vertex>"
                  for x, y in [(0, 0), (10, 0), (10, 10)]) + "</gating:PolygonGate>")
    row = '<gating:row><gating:entry data-type:value="{}"/><gating:entry data-type:value="{}"/></gating:row>'
    yield "ellipsoid", document(
        '<gating:EllipsoidGate gating:id="E">' + DIMENSION.format("", "A") + DIMENSION.format("", "B")
        + f"<gating:mean>{COORDINATE.format(1)}{COORDINATE.format(2)}</gating:mean><gating:covarianceMatrix>"
        + row.format(4, 1) + row.format(1, 4)
        + '</gating:covarianceMatrix><gating:distanceSquare data-type:value="2"/></gating:EllipsoidGate>')
    yield "quadrant", document(
        '<gating:QuadrantGate gating:id="Q"><gating:divider gating:id="a"><data-type:fcs-dimension data-type:name="A"/>'
        '<gating:value>1</gating:value></gating:divider><gating:Quadrant gating:id="low"><gating:position '
        'gating:divider_ref="a" gating:location="0"/></gating:Quadrant></gating:QuadrantGate>')
    names = "".join(f'<data-type:fcs-dimension data-type:name="{name}"/>' for name in "AB")
    yield "ratio_and_matrix", document(
        '<transforms:transformation transforms:id="F"><transforms:fratio transforms:A="1" transforms:B="0" '
        f'transforms:C="0">{names}</transforms:fratio></transforms:transformation><transforms:spectrumMatrix '
        'transforms:id="M"><transforms:fluorochromes><data-type:fcs-dimension data-type:name="dye"/>'
        f"</transforms:fluorochromes><transforms:detectors>{names}</transforms:detectors><transforms:spectrum>"
        '<transforms:coefficient transforms:value="1"/><transforms:coefficient transforms:value="0.5"/>'
        "</transforms:spectrum></transforms:spectrumMatrix>"
        '<gating:RectangleGate gating:id="R"><gating:dimension gating:min="0.5"><data-type:new-dimension '
        'data-type:transformation-ref="F"/></gating:dimension>'
        + DIMENSION.format('gating:compensation-ref="M" gating:min="0"', "dye") + "</gating:RectangleGate>")


def csv_files():
    yield "numbers", b"a,b\n1,-2.5e3\n+4, 0.5 \n1e-400,.25\n"
    yield "text", b'\xef\xbb\xbfname,"the ""other"" one"\r\nx,"1\n2"\r\ny,3\r\n\r\n'


def npy(header, numbers, version=1):
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + numbers


def npy_files():
    yield "matrix", npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n", struct.pack("<4d", 1, 2, 3, 4))
    yield "columns", npy(b"{'descr': '>i4', 'fortran_order': True, 'shape': (3, 1)}", struct.pack(">3i", 1, -2, 3), 2)
    yield "vector", npy(b"{'shape': (2,), 'fortran_order': False, 'descr': '|u1'}", b"\1\2", 3)


def mot_files():
    yield "detections", b"1,-1,10.5,20,30,40,0.9,-1,-1,-1\n\n3,-1,10,20,0,40\n2,-1,1,2,3,4,1e3,5\n"
    yield "labels", b"1,1,10,20,30,40,1,1,0.5\n1,2,10,20,30,40,0,-1,1\n2,1,11,20,30,40\n"
    yield "seqinfo", b"[Sequence]\nname=A\nimDir=img1\nframeRate=25\nseqLength=3\nimWidth=640\nimHeight=480\nimExt=.jpg\n"


def json_files():
    fit = {"coefficients": {"z1": 2.5}, "intercept": 1, "model": "linear", "method": "robot", "objective_kind": "transport",
           "covariance": {"names": ["intercept", "z1"], "rows": [[1, 0.5], [0.5, 2]]}, "epsilon": {"value": 0.1},
           "noise_sd": 0.2, "one_table": False, "has_intercept": True, "model_state": [], "tolerance": 1e-9, "accuracy": 1e-9,
           "unmatched": 0.2, "rho1": None, "rho2": 0.1,
           "columns": {"response": ["y"], "x": [], "z": ["z1"], "weights": "", "groups": [["a", "b"]],
                       "soft_groups": [["a", "b", 0.5]]}}
    yield "fit", json.dumps(fit).encode()
    options = {"unmatched": 0.1, "rho1": -1.0, "objective": "entropic", "starts": 3, "start": [1, 2.5],
               "paper_settings": True, "batch": 5}
    told = {"method": "auto", "chosen": "robot-robust", "options": options,
            "intervals": {"intercept": [0.5, None], "z1": [2, 3]}}
    factors = [{"name": "y", "table": "responses"}, {"name": "C(r)", "table": "features", "levels": ["n", "s"], "reference": "n"},
               {"name": "bs(a, 3)", "table": "features", "numbers": [0, 1]}]
    columns = {**fit["columns"], "formula": {"text": "y ~ C(r):bs(a, 3) - 1", "others": [], "factors": factors}}
    yield "formula", json.dumps({**fit, "columns": columns}).encode()
    yield "options", json.dumps({**fit, **told}).encode()
    spline = {"coefficients": {"z1[1]": 1, "z1[2]": 2, "z1[3]": 3, "z1[4]": 4}, "model": "spline:1",
              "model_state": [3, -1, 0, 1, 0.25, 0.5, 0.25, 0.125], "covariance": None}
    yield "spline", json.dumps({**fit, **spline}).encode()
    yield "model", (b'{"format":"unshuffle motion model 1","hidden":0,"values":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,'
                    b'0,0,0,0,0,0],"camera":true,"objective":0.5}')
    yield "checkpoint", b'{"format":"unshuffle tracker training 1","belongs_to":"a video","epoch":1,"values":[0]}'


def checkpoint_files():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "CMakeLists.txt")) as file:
        version = re.search(r"project\(unshuffle VERSION ([0-9.]+)", file.read()).group(1)
    one, huge = "3ff0000000000000", "6ff0000000000000"
    for name, trace in [("starts", 7 * one), ("iterations-beyond-int", 7 * huge)]:
        start = json.dumps(["random", "gradient below its tolerance", True, 3, 4, False, 2 * one, 2 * one, trace])
        yield name, json.dumps({"format": "unshuffle checkpoint", "version": version, "fit": "0123456789abcdef",
                                "done": {"00": start, "01": 3 * one}}).encode()


def pickle_files():
    import collections
    import pickle
    yield "numbers", pickle.dumps(collections.OrderedDict(a=(1, 2.5, None, True), b=[1, [2, "x"], {"k": b"v"}]), protocol=2)
    yield "shared", pickle.dumps([(shared := ["one"]), shared, {"deep": [[[[shared]]]]}], protocol=2)
    yield "nested", b"\x80\x02)" + 70 * b"\x85" + b"."


def measurement_files():
    head = b"panel,x,run,method,quantity,value\n"
    yield "rho", head + "ρ₁ = ρ₂ = 0,0,0,plan,mass,0.5\nρ₁ = ρ₂ = 0.1,59,59,plan,mass,0.5\n".encode()
    yield "em", head + b"good,0,0,em,slope over truth,1\ngood,29,29,em,linked,0.5\npoor,0,0,em,slope over truth,1\n"
    yield "alignment", head + b"exact,0,29,,mass,1\nrobust,29,0,,mass,1\n"
    yield "landscape", head + b"a,0,0,,local_minima,3\nb,0,0,,local_minima,1\n"
    yield "conditioning", head + b"condition,2,0,bilevel,number,1\n"


def main(folder):
    for name, files in [("csv", csv_files()), ("npy", npy_files()), ("fcs", fcs_files()), ("gating_ml", gate_files()),
                        ("json", json_files()), ("mot", mot_files()), ("checkpoint", checkpoint_files()),
                        ("pickle", pickle_files()), ("measurements", measurement_files())]:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for file, content in files:
            with open(os.path.join(folder, name, file), "wb") as out:
                out.write(content)


main(sys.argv[1])
