"""Runs the shell and C++ examples of the README and the tutorials unchanged.

Usage: run.py PROGRAM CMAKE BUILD_FOLDER COMPILER
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import fixtures

PROGRAM, CMAKE, BUILD, COMPILER = (sys.argv.pop(1) for _ in range(4))


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Documents(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def test_shell_examples(self):
        path = f"{os.path.dirname(os.path.abspath(PROGRAM))}:{os.environ['PATH']}"
        seen = 0
        for document in fixtures.DOCUMENTS:
            place = self.folder / document.stem
            place.mkdir()
            fixtures.write(place)
            for block in fixtures.blocks(document, "sh"):
                with self.subTest(document=document.name, block=block):
                    run("bash", "-euc", block, cwd=place, env={**os.environ, "PATH": path})
                    seen += 1
        self.assertGreaterEqual(seen, 9)

    def test_cpp_examples(self):
        prefix = self.folder / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", str(prefix))
        found = str(next(prefix.rglob("unshuffle.pc")).parent)
        flags = run("pkg-config", "--cflags", "--libs", "unshuffle", env={**os.environ, "PKG_CONFIG_PATH": found}).split()
        (block,) = fixtures.blocks(fixtures.ROOT / "README.md", "cpp")
        source = self.folder / "example.cpp"
        source.write_text(block)
        run(COMPILER, "-std=c++20", "-O1", str(source), "-o", str(self.folder / "example"), *flags)
        self.assertIn("Regression with lost row links", run(str(self.folder / "example")))

    def test_the_page_of_options_is_what_the_program_says(self):
        page = fixtures.ROOT / "docs" / "options.md"
        self.assertEqual(page.read_text(), run(PROGRAM, "info", "--describe", "options"))

    def test_the_rules_of_auto_are_what_the_program_says(self):
        page = (fixtures.ROOT / "docs" / "methods" / "auto.md").read_text()
        self.assertIn("<!-- auto -->\n" + run(PROGRAM, "info", "--describe", "auto") + "<!-- end -->", page)

    def test_links_lead_somewhere(self):
        for document in [fixtures.ROOT / "README.md", *fixtures.ROOT.glob("docs/**/*.md")]:
            for target in fixtures.re.findall(r"\]\(([^)#]+)\)", document.read_text()):
                if "://" not in target:
                    with self.subTest(document=document.name, target=target):
                        self.assertTrue((document.parent / target).exists())


if __name__ == "__main__":
    unittest.main()
