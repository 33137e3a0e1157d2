"""Files that the documents assume: two tables about people, and a short video of boxes. Also their code blocks."""

import random
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]


def blocks(document, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)


def blocks_with_output(document, language):
    """Every block with the text shown right below it, or nothing."""
    found = re.findall(rf"^```{language}\n(.*?)^```$(?:\n*^```text\n(.*?)^```$)?", document.read_text(), re.MULTILINE | re.DOTALL)
    assert [block for block, _ in found] == blocks(document, language)
    return found


def all_pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def languages(document):
    """Of the fenced blocks, in order; "" where none is named."""
    return re.findall(r"^ *```([a-z]*).*?^ *```$", document.read_text(), re.MULTILINE | re.DOTALL)


def commands(document):
    """Every command of the program in an indented block or a list of them, with continued lines joined."""
    text = document.read_text().replace("\\\n", " ")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^ {4,}(?:mpirun [^u]*)?(unshuffle [a-z-]+ .*)$", text, re.MULTILINE)


def write(folder):
    draw = random.Random(0)
    people, wages = ["age,years,town\n"], []
    for row in range(120):
        age, years, town = 20 + draw.gammavariate(2, 10), draw.expovariate(0.2), ("Bern", "Basel", "Zug")[row % 3]
        people.append(f"{age:.1f},{years:.1f},{town}\n")
        wages.append(f"{1000 + 30 * age + 110 * years + draw.gauss(0, 20):.0f},{town}\n")
    draw.shuffle(wages)
    (folder / "people.csv").write_text("".join(people))
    (folder / "wages.csv").write_text("".join(["wage,city\n", *wages]))

    video = folder / "MOT15" / "train" / "ETH-Sunnyday"
    for part in ("det", "gt"):
        lines = []
        for frame in range(1, 31):
            for person in range(4):
                identity = person + 1 if part == "gt" else -1
                lines.append(f"{frame},{identity},{40 + 120 * person + 3 * frame},{100 + frame},40,90,1,-1,-1,-1\n")
        (video / part).mkdir(parents=True)
        (video / part / f"{part}.txt").write_text("".join(lines))
    info = "[Sequence]\nname=ETH-Sunnyday\nseqLength=30\nframeRate=14\nimWidth=640\nimHeight=480\n"
    (video / "seqinfo.ini").write_text(info)
