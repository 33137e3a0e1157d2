"""mkdocs hook: the notebooks of docs/notebooks as pages, with what they printed and drew when they were last run."""

import json
from pathlib import Path

from mkdocs.structure.files import File

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"


def output(cell_output):
    if cell_output["output_type"] == "stream":
        return "```text\n" + "".join(cell_output["text"]).rstrip() + "\n```"
    data = cell_output["data"]
    if "image/png" in data:
        return f'<img alt="What the cell above draws" src="data:image/png;base64,{data["image/png"]}">'
    return "```text\n" + "".join(data["text/plain"]).rstrip() + "\n```"


def page(notebook):
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [output(one) for one in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def on_files(files, config):
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        content = page(json.loads(path.read_text()))
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=content))
    return files
