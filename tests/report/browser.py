"""Reports as a browser shows them, headless. Usage: browser.py PROGRAM; exits with 77 when there is no Chromium."""

import html
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
