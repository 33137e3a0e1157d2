"""mkdocs hook: a page per room of the C++ library, made from the headers by doxygen, and Python's sources with their stub."""

import html
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
HEADERS = ROOT / "include" / "unshuffle"
DOXYFILE = f"""
INPUT={HEADERS}
RECURSIVE=YES
GENERATE_HTML=NO
GENERATE_LATEX=NO
GENERATE_XML=YES
XML_PROGRAMLISTING=NO
EXTRACT_ALL=YES
EXTRACT_PRIV_VIRTUAL=NO
QUIET=YES
WARNINGS=NO
MACRO_EXPANSION=YES
EXPAND_ONLY_PREDEF=YES
PREDEFINED=UNSHUFFLE_EXPORT=
INPUT_FILTER="sed -E ':a; s#(///<?.*[^/])<#\\1\\&lt;#; ta'"
"""
ROOMS = {
    "fitted": "Fit, predict, match",
    "estimators": "Methods and results",
    "model": "Models",
    "families": "Families of responses",
    "transport": "Transport",
    "tables": "Tables and problems",
    "links": "Links between rows",
    "objective": "Objective and gradient",
    "report": "Reports and JSON",
    "large": "Large tables",
    "verdict": "Verdict",
    "likelihood": "Other assumptions",
    "starts": "Starts",
    "optimise": "Optimisers",
    "core": "Errors, threads, processes",
    "cytometry": "Flow cytometry",
    "tracking": "Tracking",
    "pixels": "Pictures",
}


def text_of(element):
    return "" if element is None else " ".join("".join(element.itertext()).split())


def plain_description(node):
    found = [text_of(node.find(kind)) for kind in ("briefdescription", "detaileddescription")]
    return " ".join(part for part in found if part)


def description(node):
    """Comments are plain text: what looks like markup is escaped."""
    return re.sub(r"([*_<>|`$\\])", r"\\\1", plain_description(node))


def signature(member):
    templates = [text_of(p.find("type")) + " " + text_of(p.find("declname")) for p in member.findall("templateparamlist/param")]
    prefix = f"template <{', '.join(part.strip() for part in templates)}> " if templates else ""
    value = text_of(member.find("initializer"))
    whole = text_of(member.find("definition")).replace("unshuffle::", "") + text_of(member.find("argsstring"))
    whole = re.sub(r"\[\[\w+\]\] ?", "", whole)
    return prefix + whole.replace("unshuffle::", "") + (f" {value}" if value and len(value) < 60 else "")


def wrapped(declaration):
    """A long declaration with a parameter per line."""
    name, bracket, rest = declaration.partition("(")
    if len(declaration) <= 70 or not bracket or rest.startswith(")"):
        return declaration
    parts, depth = [""], 0
    for sign in rest:
        if sign == "," and depth == 0:
            parts[-1] += ","
            parts.append("")
            continue
        depth += (sign in "(<{[") - (sign in ")>}]")
        parts[-1] += sign
    return "\n    ".join([name + bracket, *(part.strip() for part in parts)])


def enumeration(member):
    values = [f"- `{text_of(v.find('name'))}` {description(v)}" for v in member.findall("enumvalue")]
    return [f"### `enum {text_of(member.find('name'))}` {{ #{member.get('id')} }}", description(member), "\n".join(values)]


def free_function(member, first):
    """Overloads share the heading of the first one."""
    heading = f"### `{text_of(member.find('name'))}` {{ #{member.get('id')} }}" if first else ""
    return [heading, f"```cpp\n{wrapped(signature(member))}\n```", description(member)]


def compound(node):
    name = text_of(node.find("compoundname")).replace("unshuffle::", "")
    lines = [f"### `{node.get('kind')} {name}` {{ #{node.get('id')} }}", description(node)]
    rows = []
    for member in node.iter("memberdef"):
        if member.get("prot") != "public" or member.get("kind") not in ("function", "variable", "enum"):
            continue
        if text_of(member.find("name")) == "describe":  # how options explain themselves to flags and pages
            continue
        declared = signature(member).replace(f"{name}::", "")
        if member.get("kind") == "enum":
            declared = "enum " + text_of(member.find("name")) + " { " + ", ".join(text_of(v.find("name")) for v in member.findall("enumvalue")) + " }"
        rows.append(f"<dt><code>{html.escape(declared)}</code></dt><dd>{html.escape(plain_description(member))}</dd>")
    if rows:
        lines.append('<dl class="members">\n' + "\n".join(rows) + "\n</dl>")
    return lines


def room_of(node):
    location = node.find("location")
    path = Path(location.get("file")) if location is not None else None
    if path is None or HEADERS not in path.parents or path.parent == HEADERS:
        return None
    return path.relative_to(HEADERS).parts[0]


def describe_headers(folder):
    """Markdown of every declaration, by room and header."""
    (folder / "Doxyfile").write_text(DOXYFILE)
    subprocess.run(["doxygen", "Doxyfile"], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = defaultdict(lambda: defaultdict(list))
    named = set()

    def add(node, lines):
        room = room_of(node)
        if room is not None:
            header = Path(node.find("location").get("file")).name
            found[room][header].append("\n\n".join(line for line in lines if line))

    for path in sorted((folder / "xml").glob("*.xml")):
        for node in ElementTree.parse(path).getroot().iter("compounddef"):
            if node.get("kind") in ("class", "struct") and node.get("prot") != "private":
                add(node, compound(node))
            if node.get("kind") == "namespace":
                for member in node.iter("memberdef"):
                    if member.get("kind") == "enum":
                        add(member, enumeration(member))
                    elif member.get("kind") == "function":
                        name = (member.find("location").get("file"), text_of(member.find("name")))
                        add(member, free_function(member, name not in named))
                        named.add(name)
    return found


def pages():
    if shutil.which("doxygen") is None:
        raise PluginError("doxygen is not installed; ./scripts/install-dependencies.sh --all installs it")
    with tempfile.TemporaryDirectory() as folder:
        found = describe_headers(Path(folder))
    missing = set(found) - set(ROOMS)
    if missing:
        raise PluginError(f"scripts/site_reference.py has no title for {', '.join(sorted(missing))}")
    for room, title in ROOMS.items():
        parts = [f"# {title}\n\nHeaders in `unshuffle/{room}/`."]
        for header, blocks in sorted(found[room].items()):
            parts.append(f"## {header}\n\n`#include <unshuffle/{room}/{header}>`")
            parts += blocks
        yield room, "\n\n".join(parts) + "\n"


def on_files(files, config):
    for room, content in pages():
        files.append(File.generated(config, f"reference/cpp/{room}.md", content=content))
    return files


def on_page_markdown(markdown, page, **_):
    if page.file.src_uri != "reference/cpp.md":
        return markdown
    links = [f"| [`{room}`](cpp/{room}.md) | {title} |" for room, title in ROOMS.items()]
    return markdown + "\n| headers | contents |\n|---|---|\n" + "\n".join(links) + "\n"
