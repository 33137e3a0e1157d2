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


def run(*command, good=(0,), **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, **options)
    if done.returncode not in good:
        raise AssertionError(f"{command}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Documents(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def test_shell_examples(self):
        path = f"{os.path.dirname(os.path.abspath(PROGRAM))}:{os.environ['PATH']}"
        seen = compared = 0
        for document in fixtures.DOCUMENTS:
            place = self.folder / document.stem
            place.mkdir()
            fixtures.write(place, rows=30 if document == fixtures.RECIPES else 120)
            fixtures.write_for_recipes(place)
            # Recipes are not about the tables here, which need not identify the answer: exit code 1.
            good = (0, 1) if document == fixtures.RECIPES else (0,)
            for block, shown in fixtures.blocks_with_output(document, "sh"):
                with self.subTest(document=document.name, block=block):
                    printed = run("bash", "-euc", block, good=good, cwd=place, env={**os.environ, "PATH": path})
                    self.assertTrue(fixtures.shows(printed, shown), f"shown:\n{shown}\nprinted:\n{printed}")
                    seen += 1
                    compared += bool(shown)
        self.assertGreaterEqual(seen, 27)
        self.assertGreaterEqual(compared, 3)

    def test_cpp_examples(self):
        prefix = self.folder / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", str(prefix))
        found = str(next(prefix.rglob("unshuffle.pc")).parent)
        flags = run("pkg-config", "--cflags", "--libs", "unshuffle", env={**os.environ, "PKG_CONFIG_PATH": found}).split()
        sources = []
        for document in fixtures.all_pages():
            for at, block in enumerate(fixtures.blocks(document, "cpp")):
                source = self.folder / f"{document.stem}-{at}.cpp"
                if "int main" not in block:  # a part of a program, which is compiled but has nothing to run on
                    included = "".join(fixtures.re.findall(r"^#include.*\n", block, fixtures.re.MULTILINE))
                    body = fixtures.re.sub(r"^#include.*\n", "", block, flags=fixtures.re.MULTILINE)
                    block = f"#include <cmath>\n#include <unshuffle/unshuffle.hpp>\n{included}void part() {{\n{body}\n}}\n"
                source.write_text(block)
                sources.append(source)
        self.assertGreaterEqual(len(sources), 5)
        for source in sources:
            with self.subTest(source=source.name):
                if "void part()" in source.read_text():
                    run(COMPILER, "-fsyntax-only", str(source), *flags)
                    continue
                program = source.with_suffix("")
                run(COMPILER, "-O0", str(source), "-o", str(program), *flags)
                printed = run(str(program), cwd=self.folder)
                if "summary()" in source.read_text():
                    self.assertIn("Regression with lost row links", printed)

    def test_every_block_is_run_or_is_output(self):
        """Shell, Python and C++ are run here and in Python's tests; cmake is what tests/consumer builds."""
        run_here = {"sh": set(fixtures.DOCUMENTS), "python": set(fixtures.DOCUMENTS), "cpp": set(fixtures.all_pages())}
        for document in fixtures.all_pages():
            if "notebooks" in document.parts:  # run from their sources
                continue
            for language in fixtures.languages(document):
                with self.subTest(document=document.name, language=language):
                    if language in run_here:
                        self.assertIn(document, run_here[language])
                    else:
                        self.assertIn(language, {"text", "json", "cmake"})

    def test_commands_name_options_that_exist(self):
        helps, seen = {}, 0
        for document in fixtures.all_pages():
            for line in fixtures.commands(document):
                words = line.split("#")[0].split()
                command = words[1]
                if command not in helps:
                    short = run(PROGRAM, command, "--help")
                    helps[command] = run(PROGRAM, command, "--help-all") if "--help-all" in short else short
                for option in (word.split("=")[0] for word in words if word.startswith("--")):
                    with self.subTest(document=document.name, command=line, option=option):
                        self.assertRegex(helps[command], rf"(?m)(^ *|,){option}\b")
                seen += 1
        self.assertGreater(seen, 30)

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
                        path = document.parent / target
                        made_of = path.with_suffix(".ipynb")  # pages of the site that are made of notebooks
                        self.assertTrue(path.exists() or made_of.exists())


if __name__ == "__main__":
    unittest.main()
