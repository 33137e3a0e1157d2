import struct

import numpy as np
import pytest

import unshuffle


def fcs(events, names):
    """A small FCS 3.0 file of floats."""
    pairs = {"$MODE": "L", "$DATATYPE": "F", "$BYTEORD": "1,2,3,4", "$TOT": len(events), "$PAR": len(names),
             "$NEXTDATA": 0, "$BEGINANALYSIS": 0, "$ENDANALYSIS": 0, "$BEGINSTEXT": 0, "$ENDSTEXT": 0}
    for at, name in enumerate(names, 1):
        pairs |= {f"$P{at}N": name, f"$P{at}S": name.lower(), f"$P{at}B": 32, f"$P{at}R": 1024, f"$P{at}E": "0,0"}
    data = b"".join(struct.pack(f"<{len(names)}f", *event) for event in events)
    begin = 2000
    pairs |= {"$BEGINDATA": begin, "$ENDDATA": begin + len(data) - 1}
    text = ("/" + "/".join(f"{key}/{value}" for key, value in pairs.items()) + "/").encode()
    header = "FCS3.0    " + "".join(f"{n:8d}" for n in (58, 58 + len(text) - 1, begin, begin + len(data) - 1, 0, 0))
    return (header.encode() + text).ljust(begin, b" ") + data


def test_simulation_is_that_of_the_command_line():
    sample = unshuffle.simulate("linear", 50, dim_x=1, dim_z=2, noise=0, seed=3)
    assert sample.x.shape == (50, 1) and sample.z.shape == (50, 2) and sample.y.shape == (50,)
    linked = np.hstack([sample.x, sample.z[sample.permutation]])
    np.testing.assert_allclose(linked @ sample.coefficients, sample.y)
    np.testing.assert_allclose(np.hstack([sample.test_x, sample.test_z]) @ sample.coefficients, sample.test_y)
    assert np.array_equal(sample.y, unshuffle.simulate("linear", 50, dim_x=1, dim_z=2, noise=0, seed=3).y)


def test_simulation_does_not_copy_its_tables():
    sample = unshuffle.simulate("sensing", 10)
    z = sample.z
    assert z.base is not None and np.shares_memory(z, sample.z)
    del sample
    assert np.isfinite(z).all()


def test_simulation_refuses_in_words():
    with pytest.raises(ValueError, match="design = cubic must be sensing"):
        unshuffle.simulate("cubic")
    with pytest.raises(ValueError, match="snr = -1.* must be at least 0"):
        unshuffle.simulate("sensing", snr=-1)


def test_fcs_events_names_and_tables(tmp_path):
    path = tmp_path / "cells.fcs"
    events = np.array([[1, 2], [3, 4], [5, 600]], float)
    path.write_bytes(fcs(events, ["FSC-A", "FITC-A"]))
    file = unshuffle.read_fcs(path)
    assert np.array_equal(file.events, events)
    assert file.names == ["FSC-A", "FITC-A"] and file.labels == ["fsc-a", "fitc-a"]
    assert file.version == "FCS3.0" and file.keywords["$TOT"] == "3"
    table = file.table(["FITC-A=asinh:150"])
    assert np.array_equal(table["FSC-A"], [1, 3, 5])
    np.testing.assert_allclose(table["FITC-A"], np.arcsinh(events[:, 1] / 150))


def test_fcs_refuses_in_words(tmp_path):
    with pytest.raises(ValueError, match="absent.fcs"):
        unshuffle.read_fcs(tmp_path / "absent.fcs")
    broken = tmp_path / "broken.fcs"
    broken.write_bytes(b"FCS3.0 and nothing more")
    with pytest.raises(ValueError, match="broken.fcs"):
        unshuffle.read_fcs(str(broken))


def write_tracks(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{frame},{id},{left},10,20,40,1,-1,-1,-1\n" for frame, id, left in lines))


def test_tracking_scores(tmp_path):
    truth = [(frame, 1, 10 * frame) for frame in range(1, 11)]
    write_tracks(tmp_path / "truth" / "walk" / "gt" / "gt.txt", truth)
    write_tracks(tmp_path / "truth" / "run" / "gt" / "gt.txt", truth)
    write_tracks(tmp_path / "results" / "walk.txt", [(frame, 1 if frame < 6 else 2, left) for frame, _, left in truth])
    with pytest.warns(UserWarning, match="no results: run"):
        scores = unshuffle.evaluate_tracking(tmp_path / "truth", tmp_path / "results")
    assert list(scores) == ["walk", "COMBINED"]
    assert scores["walk"]["ids"] == 1 and isinstance(scores["walk"]["ids"], int)
    assert scores["walk"]["mota"] == pytest.approx(0.9) and scores["walk"]["idf1"] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="benchmark mot3"):
        unshuffle.evaluate_tracking(tmp_path / "truth", tmp_path / "results", "mot3")
    with pytest.raises(ValueError, match="no such file or folder"):
        unshuffle.evaluate_tracking(tmp_path / "nowhere", tmp_path / "results")
