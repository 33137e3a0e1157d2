"""Reports as a browser shows them, headless. Usage: browser.py PROGRAM; exits with 77 when there is no Chromium."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import pages

PROGRAM = os.path.abspath(sys.argv.pop(1))
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def browse(folder, name, *options):
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
               f"--user-data-dir={folder}/profile", *options, f"file://{folder}/{name}.html"]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200)


MEASURE = """
addEventListener("load", () => {
  const faults = [], box = one => one.getBoundingClientRect();
  const within = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")], boxes = texts.map(box), name = svg.getAttribute("aria-label");
    texts.forEach((text, k) => {
      if (!within(boxes[k], box(svg))) faults.push(`${name}: "${text.textContent}" is cut`);
      for (let j = 0; j < k; ++j) {
        const wide = Math.min(boxes[j].right, boxes[k].right) - Math.max(boxes[j].left, boxes[k].left);
        const high = Math.min(boxes[j].bottom, boxes[k].bottom) - Math.max(boxes[j].top, boxes[k].top);
        if (wide > 1 && high > 3) faults.push(`${name}: "${texts[j].textContent}" and "${text.textContent}" overlap`);
      }
    });
  }
  for (const cell of document.querySelectorAll("#coefficients th, #coefficients td"))
    if (box(cell).right > box(document.getElementById("coefficients")).right) faults.push(`cell ${cell.textContent} is cut`);
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is wider than the screen");
  parent.postMessage(faults, "*");
});
"""
OUTSIDE = """<!DOCTYPE html><body><pre id="faults">["not measured"]</pre><script>
addEventListener("message", event => {{ document.getElementById("faults").textContent = JSON.stringify(event.data); }});
</script><iframe src="inside.html" style="border:0;width:{width}px;height:2000px"></iframe></body>"""


def short(value):
    """As the page rounds: six digits, without trailing zeros."""
    return "–" if value is None else f"{value:.6g}"


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        pages.make(PROGRAM, cls.folder.name)
        cls.shown = {name: browse(cls.folder.name, name, "--dump-dom") for name in pages.FITS}

    def test_is_drawn_without_console_errors(self):
        for name, done in self.shown.items():
            with self.subTest(name):
                self.assertIn('data-ready="yes"', done.stdout)
                self.assertNotIn("CONSOLE", done.stderr)

    def test_every_section_is_there_and_labelled(self):
        for name, done in self.shown.items():
            with self.subTest(name):
                for part in ("coefficients", "distribution0", "correspondence", "starts", "landscape", "settings"):
                    self.assertIn(f'<section id="{part}"', done.stdout)
                self.assertEqual('id="calibration"' in done.stdout, name == "mixture")
                self.assertNotIn("NaN", done.stdout.split('id="main"')[1].split("<script")[0])
                for picture in re.findall(r"<svg[^>]*>", done.stdout):
                    self.assertIn("aria-label=", picture)

    def test_the_coefficients_shown_are_those_of_the_json(self):
        for name, done in self.shown.items():
            with self.subTest(name):
                _, data, fit = pages.read(self.folder.name, name)
                body = done.stdout.split('<section id="coefficients"')[1].split("</section>")[0].split("<tbody>")[1]
                rows = re.findall(r"<tr><td>(.*?)</td><td data-value=\"(.*?)\">(.*?)</td><td data-value=\"(.*?)\">", body)
                self.assertEqual([html.unescape(row[0]) for row in rows], data["names"])
                for (label, value, text, error), expected in zip(rows, data["parameters"]):
                    self.assertEqual(float(value), expected)
                    self.assertEqual(float(text), float(short(expected)))
                    said = fit["std_errors"][html.unescape(label)]
                    self.assertEqual(None if error == "null" else float(error), said)

    def test_no_label_is_cut_or_covered_on_a_desk_or_a_phone(self):
        for name in pages.FITS:
            for width in (1280, 390):
                with self.subTest(name, width=width):
                    self.assertEqual(self.faults(name, width), [])

    def faults(self, name, width):
        """What stands outside its picture, on another label or beyond the screen, in a frame as wide as the screen."""
        page, _, _ = pages.read(self.folder.name, name)
        page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page, count=1)
        for file, content in (("inside", page.replace("</body>", f"<script>{MEASURE}</script></body>")),
                              ("outside", OUTSIDE.format(width=width))):
            with open(f"{self.folder.name}/{file}.html", "w") as made:
                made.write(content)
        shown = browse(self.folder.name, "outside", "--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom")
        return json.loads(html.unescape(re.search(r'<pre id="faults">(.*?)</pre>', shown.stdout, re.S).group(1)))

    def test_the_page_says_what_was_fitted_in_words(self):
        page = self.shown["mixture"].stdout
        self.assertIn(">y by z1, z2, z3 (responses.csv and features.csv)</h1>", page)
        self.assertRegex(page, r'id="quote">y: one more unit of z[123]: [+-][0-9.]+ \(95 % interval [-0-9.]+ to [-0-9.]+\)\.<')
        for name, done in self.shown.items():
            with self.subTest(name):
                settings = done.stdout.split('<section id="settings"')[1].split("</section>")[0]
                self.assertNotRegex(html.unescape(settings), r'[{\[]"')
                verdict = done.stdout.split('id="verdict"')[1].split("<noscript")[0]
                self.assertLessEqual(len(re.findall("onverged", verdict)), 1)

    def test_the_verdict_comes_first(self):
        page = self.shown["mixture"].stdout
        self.assertIn("The data identifies the coefficients.", page.split('id="main"')[0])

    def test_can_be_photographed_in_light_and_dark(self):
        sizes = []
        for scheme in ("0", "1"):
            picture = f"{self.folder.name}/shot{scheme}.png"
            browse(self.folder.name, "mixture", f"--blink-settings=preferredColorScheme={scheme}",
                   "--window-size=1000,1600", f"--screenshot={picture}")
            sizes.append(os.path.getsize(picture))
        self.assertGreater(min(sizes), 50_000)
        self.assertNotEqual(sizes[0], sizes[1])


if __name__ == "__main__":
    if BROWSER is None:
        print("skipped: no Chromium (Debian package chromium)")
        sys.exit(77)
    unittest.main()
