"""Names and cells that are meant to do harm: in pages, paths, terminals, spreadsheets, matrices.

Usage: names.py PROGRAM
"""

import base64
import csv
import hashlib
import html.parser
import json
import os
import random
import shutil
import subprocess
import unittest

from case import Case

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")

SEEDS = ["/*data*/", "<!--summary-->", "<!--<script>", "</script>", "<script>alert(1)</script>", "-->", "]]>", "<![CDATA[",
         "/*data*/<img src=x onerror=alert(1)>", "</noscript><img src=x onerror=alert(1)>", "</pre></noscript>", "\u2028", "\u2029",
         "\u202egnp.exe", "'\"><svg onload=alert(1)>", "${alert(1)}", "`${1}`", "{{7*7}}", "\\u003cscript\\u003e", "\\", "\\\"",
         "&lt;script&gt;", "&#x3c;", "__proto__", "constructor", "toString", "javascript:alert(1)", "a\tb", "a\nb", "\x1b[31mred",
         "\x7f", "%s%n", "\0", "NaN", "null", "𝒛", "ﬀ", "a" * 500, " ", "=1+1", "data:text/html;<script>"]


def hostile_names(count=200):
    draw = random.Random(11)
    names = [name for name in SEEDS if "\0" not in name and name.strip()]
    while len(names) < count:
        name = "".join(draw.sample(SEEDS, 3)).replace("\0", "")
        if name not in names:
            names.append(name)
    return names[:count]


class Page(html.parser.HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.scripts, self.comments, self.in_script = [], [], [], [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += [(tag, *pair) for pair in attributes]
        self.in_script = tag == "script"
        if self.in_script:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.in_script = False

    def handle_data(self, data):
        if self.in_script:
            self.scripts[-1] += data

    def handle_comment(self, data):
        self.comments.append(data)


class Reports(Case):
    """Two hundred hostile names of columns, twenty to a table."""

    def reports(self):
        draw = random.Random(2)
        names = hostile_names()
        for k in range(0, len(names), 20):
            some = names[k:k + 20]
            with open(self.path("t.csv"), "w", newline="") as file:
                out = csv.writer(file, quoting=csv.QUOTE_ALL)
                out.writerow(some)
                out.writerows([[draw.gauss(0, 1) for _ in some] for _ in range(60)])
            done = self.run_here("fit", "t.csv", "--response", some[0], "--method", "ls", "--quiet",
                                 "--report", f"{k}.html", "--out", f"{k}.json")
            self.assertIn(done.returncode, (0, 1), done.said)
            yield some, f"{k}.html"

    def test_stay_names(self):
        tags = policy = None
        for names, file in self.reports():
            text = self.read(file).decode()
            page = Page(text)
            self.assertEqual(len(page.scripts), 2)
            data = json.loads(page.scripts[0])
            self.assertEqual(set(data["names"]) - {"intercept"}, set(names[1:]))
            self.assertEqual(data["distributions"][0]["response"], names[0])
            self.assertNotIn("<", page.scripts[0])
            self.assertTrue(page.scripts[0].isascii())
            tags = tags or page.elements
            self.assertEqual(page.elements, tags)  # no name became an element
            self.assertEqual(page.comments, [])
            policies = [value for tag, key, value in page.attributes if tag == "meta" and key == "content" and "script-src" in value]
            digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
            self.assertEqual(len(policies), 1)
            self.assertIn(f"script-src 'sha256-{digest}'", policies[0])
            self.assertIn("default-src 'none'", policies[0])
            self.assertEqual([entry for entry in page.attributes if entry[1].startswith("on")], [])
            self.assertEqual(policy or policies, policies)
            policy = policies

    @unittest.skipIf(BROWSER is None, "no Chromium (Debian package chromium)")
    def test_are_shown_by_a_browser(self):
        for names, file in self.reports():
            done = subprocess.run([BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                                   f"--user-data-dir={self.folder}/profile", "--dump-dom", f"file://{self.folder}/{file}"],
                                  capture_output=True, text=True, timeout=900)
            self.assertIn('data-ready="yes"', done.stdout, file)
            self.assertNotIn("CONSOLE", done.stderr)
            shown = Page(done.stdout)
            self.assertNotIn("img", shown.elements)
            self.assertEqual(len(shown.scripts), 2)


class Paths(Case):
    def test_the_name_of_a_video_leads_nowhere(self):
        self.write("victim/notes.txt", "mine")
        for name in ("../victim/notes", os.path.join(self.folder, "victim/notes"), "..", ".", "", "a/../../victim/notes", "x" * 300,
                     "..\\victim\\notes", "a\tb", "/"):
            self.video("Walk")
            info = self.read("Walk/seqinfo.ini").replace(b"name=Walk", b"name=" + name.encode())
            self.write("Walk/seqinfo.ini", info)
            shutil.rmtree(self.path("tracks"), ignore_errors=True)
            self.succeed("track", "Walk", "--tracker", "sort", "--out", "tracks", "--quiet")
            written = [os.path.join(at, file) for at, _, files in os.walk(self.path("tracks")) for file in files]
            self.assertEqual(len(written), 1, name)
            self.assertEqual(os.path.dirname(written[0]), self.path("tracks"))
            self.assertEqual(sorted(os.listdir(self.folder)), ["Walk", "tracks", "victim"])
            self.assertEqual(self.read("victim/notes.txt"), b"mine")

    def test_results_are_found_by_the_same_name(self):
        self.video("Walk")
        self.write("Walk/seqinfo.ini", self.read("Walk/seqinfo.ini").replace(b"name=Walk", b"name=../a"))
        self.write("Walk/gt/gt.txt", "".join(f"{frame},1,{60 + 3 * frame},100,40,100,1,1,1\n" for frame in range(1, 13)))
        self.succeed("track", "Walk", "--tracker", "sort", "--out", "tracks", "--quiet")
        told = json.loads(self.succeed("evaluate", "--gt", "Walk", "--results", "tracks", "--json"))
        self.assertIn("../a", told)

    def test_names_that_become_one_file_are_told(self):
        for folder, name in (("A", "x/y"), ("B", "x_y")):
            self.video(folder)
            self.write(f"{folder}/seqinfo.ini", self.read(f"{folder}/seqinfo.ini").replace(f"name={folder}".encode(), f"name={name}".encode()))
        self.refuse("track", "A", "B", "--tracker", "sort", "--out", "t", code=2, says="are both named")

    def test_a_folder_whose_name_is_latin1_loses_no_model(self):
        self.video("Walk")
        info = self.read("Walk/seqinfo.ini").replace(b"name=Walk\n", b"")
        self.write("Walk/seqinfo.ini", info)
        folder = os.path.join(self.folder.encode(), b"Caf\xe9")
        os.rename(self.path("Walk"), folder)
        train = ("train-tracker", folder, "--epochs", 2, "--quiet", "--out", "m.json", "--checkpoint", "c", "--resume")
        self.succeed(*train)
        self.succeed(*train)
        self.assertEqual(json.loads(self.read("m.json"))["trained_on"], ["Café"])
        self.succeed("track", folder, "--model", "m.json", "--out", "t", "--quiet")
        self.assertEqual(os.listdir(self.path("t")), ["Café.txt"])

    def test_components_are_not_taken_from_beside_the_program(self):
        program = shutil.copy(__import__("case").PROGRAM, self.path("unshuffle"))
        self.write("unshuffle_torch.so", "not a library")
        done = subprocess.run([program, "info", "--json"], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest("the program does not run elsewhere")
        self.assertNotIn(self.folder, done.stdout)
        trained = subprocess.run([program, "train-tracker", self.video(), "--model", "siamese", "--out", "m.pt"], cwd=self.folder,
                                 capture_output=True, text=True)
        self.assertNotIn(self.path("unshuffle_torch.so"), trained.stderr)


class Terminals(Case):
    def test_escape_codes_are_shown_not_sent(self):
        name = "z\x1b[2J\x07\x9b"
        y, z = self.tables()
        self.write(z, name + "\n" + self.read(z).decode().split("\n", 1)[1])
        done = self.run_here("fit", y, z, "--response", "y", "--hint", "rows", "--method", "ls")
        self.assertEqual(done.returncode, 0, done.said)
        self.assertNotIn(b"\x1b", done.stdout)
        self.assertNotIn(b"\xc2\x9b", done.stdout)
        self.assertIn(b"z\\x1b[2J", done.stdout)
        self.refuse("fit", y, z, "--response", "no\x1b[2J", code=3, says="\\x1b[2J")
        self.write("x\x1b[31m.csv", "a\n")
        self.refuse("fit", "x\x1b[31m.csv", z, "--response", "a", code=3, says="x\\x1b[31m.csv: ")

    def test_umlauts_are_not_escaped(self):
        self.refuse("fit", "größe.csv", "z.csv", "--response", "y", code=3, says="größe.csv: cannot be opened")


class Spreadsheets(Case):
    CELLS = ["=1+1", "+cmd", "-x", "@sum", "-1.5", "+2", "plain", "1e3", "=", ""]

    def joined(self, *options):
        draw = random.Random(1)
        with open(self.path("y.csv"), "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["y", "=note"])
            out.writerows([[k + draw.gauss(0, 0.01), cell] for k, cell in enumerate(self.CELLS)])
        self.write("z.csv", "z\n" + "".join(f"{k}\n" for k in range(len(self.CELLS))))
        self.write("only.csv", "y\n" + "".join(f"{k + draw.gauss(0, 0.01)}\n" for k in range(len(self.CELLS))))
        self.succeed("fit", "only.csv", "z.csv", "--response", "y", "--hint", "rows", "--method", "ls", "--out", "fit.json", "--quiet")
        self.succeed("match", "fit.json", "y.csv", "z.csv", "--join", "left", "--out", "joined.csv", "--quiet", *options)
        with open(self.path("joined.csv"), newline="") as file:
            head, *rows = csv.reader(file)
        return head, [row[1] for row in rows]

    def test_cells_are_as_they_were_unless_asked(self):
        self.assertEqual(self.joined()[1], self.CELLS)

    def test_formulas_become_text_and_numbers_stay(self):
        head, cells = self.joined("--spreadsheet-safe")
        self.assertEqual(head[1], "'=note")
        self.assertEqual(cells, ["'=1+1", "'+cmd", "'-x", "'@sum", "-1.5", "+2", "plain", "1e3", "'=", ""])


class Measurements(Case):
    """What `reproduce --from` reads are numbers of anyone."""

    HEAD = "panel,x,run,method,quantity,value\n"

    def judged(self, name, rows, says):
        self.write(f"from/{name}.csv", self.HEAD + rows)
        self.refuse("reproduce", name, "--from", "from", "--out", "out", code=3, says=f"from/{name}.csv: {says}")

    def test_no_index_is_believed(self):
        for x, run in ((0, 5000), (0, -1000), (5000, 0), (-1, 0), (0.5, 0), (1e300, 0), (0, 60)):
            cell = f"{x},{run}"
            self.judged("rho", f"p,{cell},plan,mass,1\n", "panel p: x = ")
            self.judged("em-correspondence", f"good,0,0,em,slope over truth,1\ngood,{cell},em,linked,1\n", "panel good: x = ")
            self.judged("alignment", f"exact,{cell},,mass,1\n", "panel exact: x = ")
        for run in ("1e300", "0.5", "-1e300"):
            self.judged("rho", f"p,0,{run},plan,mass,1\n", "row 1: run = ")

    def test_nothing_is_taken_that_is_not_there(self):
        self.judged("landscape", "a,0,0,,local_minima,1\na,1,0,,local_minima,1\n", "two kinds of smoothing")
        self.judged("conditioning", "a,2,0,bilevel,number,1\na,3,0,bilevel,number,1\n", 'no measurement of panel "", method "bilevel, ')
        self.judged("em-correspondence", "good,0,0,em,linked,1\n", 'no measurement of panel "good"')
        self.judged("autodiff", "cost,1,0,x,seconds,1\n", 'no measurement of panel "accuracy"')


if __name__ == "__main__":
    unittest.main(verbosity=2)
