"""Files that the documents assume: two tables about people, and a short video of boxes. Also their code blocks."""

import random
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "how-to.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "index.md", RECIPES, *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


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


def shows(printed, shown):
    """Whether the lines shown stand in what is printed one below the other, up to the last digits of their numbers."""

    def parsed(line):
        return " ".join(NUMBER.sub("#", line).split()), [float(number) for number in NUMBER.findall(line)]

    def agree(one, other):
        close = all(abs(a - b) <= 0.02 * abs(a) + 1e-3 for a, b in zip(one[1], other[1]))
        return one[0] == other[0] and close

    wanted, lines = [[parsed(line) for line in text.splitlines()] for text in (shown, printed)]
    places = range(len(lines) - len(wanted) + 1)
    return any(all(agree(a, b) for a, b in zip(wanted, lines[at:])) for at in places)


def write_for_recipes(folder):
    """What the recipes name beside the tables of `write`."""
    draw = random.Random(1)
    rows = [(draw.gauss(1, 1), draw.expovariate(1)) for _ in range(200)]
    responses = [f"{2 * a - b + draw.gauss(0, 0.1):.4f}" for a, b in rows]
    table = [f"{y},{a:.4f},{b:.4f}\n" for y, (a, b) in zip(responses, rows)]
    (folder / "table.csv").write_text("".join(["y,a,b\n", *table]))
    for part in range(2):
        half = slice(100 * part, 100 * part + 100)
        (folder / f"responses-{part}.csv").write_text("y\n" + "\n".join(responses[half]) + "\n")
        (folder / f"features-{part}.csv").write_text("a,b\n" + "".join(f"{a:.4f},{b:.4f}\n" for a, b in rows[half]))
    (folder / "pairs.csv").write_text("response_row,feature_row\n0,3\n5,1\n")
    (folder / "scores.csv").write_text("response_row,feature_row,weight\n0,3,20\n5,1,8\n")


def write(folder, rows=120):
    draw = random.Random(0)
    people, wages = ["age,years,town\n"], []
    for row in range(rows):
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
