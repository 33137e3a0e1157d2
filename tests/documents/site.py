"""Checks the built site: links and anchors lead somewhere, and search works from disk in a browser if there is one.

Usage: site.py FOLDER
"""

import html.parser
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(sys.argv[1]).resolve()
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
# Types a word into the search box and puts what was found into the title.
SEARCH = """<script>addEventListener("load", () => setTimeout(() => {
  const box = document.querySelector("[data-md-component=search-query]");
  document.querySelector("#__search").click();
  box.focus(); box.value = "WORD"; box.dispatchEvent(new Event("input", {bubbles: true}));
  box.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
  const wait = setInterval(() => {
    const found = [...document.querySelectorAll(".md-search-result__link")].map(link => link.getAttribute("href"));
    if (found.length) { clearInterval(wait); document.title = "FOUND " + found.slice(0, 5).join(" "); }
  }, 200);
}, 1000));</script>"""


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        self.links += [given[key] for key in ("href", "src") if given.get(key) and tag != "link"]


def broken_links():
    pages = {path: Page(path) for path in SITE.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{path.relative_to(SITE)}: {link} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path.relative_to(SITE)}: {link} names no anchor"


def search(word):
    """The first pages found from disk."""
    with tempfile.TemporaryDirectory() as folder:
        page = SITE / "search-check.html"
        page.write_text((SITE / "index.html").read_text().replace("</body>", SEARCH.replace("WORD", word) + "</body>"))
        try:
            options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom",
                       "--allow-file-access-from-files", "--virtual-time-budget=60000"]
            done = subprocess.run([BROWSER, *options, page.as_uri()], capture_output=True, text=True, timeout=300)
        finally:
            os.remove(page)
    title = done.stdout.partition("<title>FOUND ")[2].partition("</title>")[0]
    return title.split()


broken = sorted(set(broken_links()))
print(*broken, sep="\n")
if broken:
    sys.exit(f"{len(broken)} broken links")
if BROWSER is None:
    print("No Chromium: search was not tried.")
else:
    found = search("identifiable")
    if not any("believing" in link for link in found):
        sys.exit(f'searching for "identifiable" found {found}; believing.html was expected among them')
print("The site: links lead somewhere" + ("" if BROWSER is None else ", and search works from disk") + ".")
