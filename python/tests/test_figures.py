"""The script that draws the figures of `unshuffle reproduce`, on small CSV files."""

import csv
import importlib.util
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

SCRIPT = Path(__file__).parents[2] / "apps" / "unshuffle" / "reproduce" / "figures.py"
specification = importlib.util.spec_from_file_location("figures", SCRIPT)
figures = importlib.util.module_from_spec(specification)
sys.modules["figures"] = figures
specification.loader.exec_module(figures)

METHODS = ("oracle", "ls", "robot")
RUNS = 3


def write(folder, name, rows):
    with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["panel", "x", "run", "method", "quantity", "value"])
        writer.writerows(rows)


def rows_of(panel, settings, methods=METHODS):
    """One value per setting, run and method, as a panel of lines or categories has them."""
    return [(panel.panel, x, run, method, panel.quantity, 0.1 * (place + 1) * (1 + 0.1 * run) / (x + 1))
            for x in settings for run in range(RUNS) for place, method in enumerate(methods)]


def matrix_of(panel, cells):
    return [(panel.panel, i, j, "plan", panel.quantity, 1 / (1 + abs(i - j)))
            for i in range(cells) for j in range(cells)]


def three_points():
    return [("points", k, 0, "", name, k + shift)
            for k in range(3) for shift, name in enumerate(("u1", "u2", "v1", "v2"))]


def rows_for(panel):
    """Rows that suit a panel of any kind."""
    if panel.kind == "heat":
        return matrix_of(panel, 5)
    if panel.kind == "links":
        return matrix_of(panel, 3) + three_points()
    if panel.kind == "curve":
        curve = [(panel.panel, x, 0, "", panel.quantity, (x - 5) ** 2) for x in range(11)]
        return curve + [(panel.panel, 0, 0, "", "local_minima", 4)]
    names = ["all sequences", "Walk", "Stroll"] if panel.left_out else [panel.panel]
    return [(name, *row[1:]) for name in names for row in rows_of(panel, (1, 2))]


def drawn(folder, *options):
    done = subprocess.run([sys.executable, SCRIPT, folder, *options], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return done.stdout


def texts(path):
    return ["".join(element.itertext()) for element in ElementTree.parse(path).iter() if element.tag.endswith("}text")]


def draw(name, rows, folder):
    write(folder, name, rows)
    return figures.draw(figures.FIGURES[name], figures.read(folder / f"{name}.csv"))


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All figures, drawn once."""
    folder = tmp_path_factory.mktemp("figures")
    for name, figure in figures.FIGURES.items():
        settings = [("setting", 0, 0, "", "rows", 70)]
        unique = {panel.panel + panel.quantity: panel for panel in figure.panels}
        write(folder, name, [row for panel in unique.values() for row in rows_for(panel)] + settings)
    return folder, drawn(folder)


@pytest.mark.parametrize("name", figures.FIGURES)
def test_every_figure_has_its_title_and_labels(name, everything):
    folder, said = everything
    assert name in said
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    figure, words = figures.FIGURES[name], texts(folder / f"{name}.svg")
    assert figure.title.format(rows=70) in words
    for panel in figure.panels:
        for label in (panel.title, panel.x, panel.y, *panel.names):
            assert not label or label in words, label
    if figure.panels[0].kind in ("lines", "categories", "percentiles"):
        for method in METHODS:
            assert words.count(method) == 1  # one legend
    if figure.scale:
        assert figure.scale in words


def test_the_same_numbers_give_the_same_file(everything, tmp_path):
    folder, _ = everything
    (tmp_path / "sensing.csv").write_bytes((folder / "sensing.csv").read_bytes())
    drawn(tmp_path, "--formats", "svg")
    assert (tmp_path / "sensing.svg").read_bytes() == (folder / "sensing.svg").read_bytes()
    assert not (tmp_path / "sensing.png").exists()


def test_lines_are_means_and_bands_the_middle_half(tmp_path):
    panel = figures.FIGURES["ransac"].panels[0]
    values = {25: (1, 2, 6), 75: (2, 4, 9)}
    rows = [(panel.panel, x, run, "rs", panel.quantity, value) for x, runs in values.items()
            for run, value in enumerate(runs)]
    axes = draw("ransac", rows + [(panel.panel, 25, 0, "robot", panel.quantity, 1)], tmp_path).axes
    assert len(axes) == 1  # the other panel has no rows
    by_name = {line.get_label(): line for line in axes[0].lines}
    assert by_name["rs"].get_xydata().tolist() == [[25, 3], [75, 5]]
    band = axes[0].collections[0].get_paths()[0].vertices.tolist()
    for corner in ([25, 1.5], [25, 4], [75, 3], [75, 6.5]):
        assert corner in band
    assert by_name["robot"].get_xydata().tolist() == [[25, 1]]


def test_percentiles_are_in_order_within_every_run(tmp_path):
    rows = [("start", start, run, "am", "residual", value) for run, values in enumerate([(3, 1), (5, 7)])
            for start, value in enumerate(values)]
    axes = draw("initialisation", rows, tmp_path).axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[50, 3], [100, 5]]


def test_sums_over_sequences_are_no_category(tmp_path):
    rows = [(name, x, 0, "SORT", quantity, 10 + x) for x, name in enumerate(("Walk", "Stroll", "all sequences"))
            for quantity in ("IDF1", "IDS")]
    axes = draw("mot", rows, tmp_path).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Walk", "Stroll"]


def test_cells_of_a_heat_map_stand_in_their_places(tmp_path):
    panel = figures.FIGURES["rho"].panels[0]
    image = draw("rho", [(panel.panel, 40, 7, "plan", "mass", 0.5)], tmp_path).axes[0].images[0]
    cells = image.get_array()
    assert cells.shape == (60, 60) and cells[40, 7] == 0.5 and cells.sum() == 0.5
    assert image.get_extent() == [0, 1, 0, 2]


def test_only_links_with_mass_are_drawn(tmp_path):
    plan = [("exact", i, j, "", "mass", 0.3 if i == j else 0.001) for i in range(3) for j in range(3)]
    axes = draw("alignment", plan + three_points(), tmp_path).axes[0]
    assert len(axes.lines) == 3 + 2  # links, and two sets of points


def test_methods_of_one_figure_can_be_told_apart():
    styles = [figures.STYLES[method] for method in ("oracle", "ls", "am", "em", "rr", "rs", "robot", "robot-paper")]
    assert len({style[:3] for style in styles}) == len({style[1] for style in styles}) == len(styles)


@pytest.mark.parametrize("content, says", [
    ("panel,x,run,method,quantity\n", "rho.csv: there is no column value"),
    ("panel,x,run,method,quantity,value\na,1,0,m,q,1\na,1,0,m,q,many\n", "rho.csv: line 3: x, run and value must be"),
    ("panel,x,run,method,quantity,value\nother,1,0,m,q,1\n", "rho.csv: has no rows"),
    (None, "none of sensing.csv"),
])
def test_what_cannot_be_drawn(content, says, tmp_path):
    if content is not None:
        (tmp_path / "rho.csv").write_text(content)
    # matplotlib warns when a system package of it stands beside; that is not the script's message.
    done = subprocess.run([sys.executable, "-W", "ignore", SCRIPT, tmp_path], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert re.match("figures.py: ", done.stderr) and says in done.stderr, done.stderr
