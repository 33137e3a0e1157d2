"""Runs the notebooks of docs/notebooks in this Python: notebooks.py [--write] [NAME]...

--write keeps what they print and draw in the files, for the site. Nothing of Jupyter is needed.
"""

import ast
import base64
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"


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


def run(path, write):
    notebook = json.loads(path.read_text())
    namespace = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = run_cell("".join(cell["source"]), namespace)
    if write:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


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
