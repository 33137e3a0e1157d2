"""Runs the notebooks of docs/notebooks in this Python: notebooks.py [--write] [NAME]...

What they print must be what the files hold, except for times, counts of steps and the last digits of numbers. --write stores
what they print and draw in the files instead, for the site. Jupyter is not needed.
"""

import ast
import base64
import contextlib
import io
import json
import math
import re
import sys
import tempfile
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
# Lines of a summary that depend on the processor: how the search went, and how long it took.
UNSTABLE = ("Epsilon", "Objective", "Convergence", "Marginal error", "Starts", "Time, memory")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def pictures():
    """What a cell has drawn, as PNG."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    drawn = []
    for number in plt.get_fignums():
        data = io.BytesIO()
        plt.figure(number).savefig(data, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        drawn.append(base64.b64encode(data.getvalue()).decode())
    plt.close("all")
    return drawn


def run_cell(source, namespace):
    """The outputs of a cell in the notebook format; its last expression is shown as Jupyter does."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    shown = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
    outputs = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
    if shown is not None and not pictures_pending():
        outputs.append(display("text/plain", repr(shown).splitlines(True)))
    outputs += [display("image/png", picture) for picture in pictures()]
    return outputs


def pictures_pending():
    return "matplotlib.pyplot" in sys.modules and bool(sys.modules["matplotlib.pyplot"].get_fignums())


def display(kind, data):
    return {"output_type": "display_data", "metadata": {}, "data": {kind: data}}


def stable_lines(notebook):
    """What the cells print, each line as its words and its numbers."""
    streams = [output for cell in notebook["cells"] for output in cell.get("outputs", []) if output["output_type"] == "stream"]
    lines = [line for stream in streams for line in "".join(stream["text"]).splitlines() if not line.startswith(UNSTABLE)]
    return [(" ".join(NUMBER.sub("#", line).split()), [float(number) for number in NUMBER.findall(line)]) for line in lines]


def difference(stored, fresh):
    """The first line in which two runs differ, or None."""
    if len(stored) != len(fresh):
        return f"{len(fresh)} lines are printed, {len(stored)} are stored"
    for before, now in zip(stored, fresh):
        close = all(math.isclose(a, b, rel_tol=0.03, abs_tol=0.005) for a, b in zip(before[1], now[1]))
        if before[0] != now[0] or not close:
            return f"printed is {now}, stored is {before}"
    return None


def run(path, write):
    notebook = json.loads(path.read_text())
    stored = stable_lines(notebook)
    namespace = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = run_cell("".join(cell["source"]), namespace)
    if write:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    elif differs := difference(stored, stable_lines(notebook)):
        sys.exit(f"{path.name}: {differs}; if that is right, store it by {sys.argv[0]} --write {path.stem}")


def main(arguments):
    with contextlib.suppress(ImportError):
        import matplotlib

        matplotlib.use("Agg")
    write = "--write" in arguments
    chosen = [argument for argument in arguments if argument != "--write"]
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not chosen or path.stem in chosen:
            run(path, write)
            print(f"{path.name}: ran")


if __name__ == "__main__":
    main(sys.argv[1:])
