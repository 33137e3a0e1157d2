"""The .deb as installed by a user, the manual page and the completions.

Usage: run.py PROGRAM CPACK BUILD_FOLDER CMAKELISTS
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM, CPACK, BUILD, CMAKELISTS = (os.path.abspath(sys.argv.pop(1)) for _ in range(4))
VERSION = re.search(r"project\(unshuffle VERSION ([0-9.]+)", Path(CMAKELISTS).read_text()).group(1)


ZSH_THAT_TYPES = """
zmodload zsh/zpty
zpty typed zsh -f -i
zpty -w typed 'source ready.zsh'
zpty -w -n typed "$1"$'\\t'
while zpty -r typed echoed; do :; done
"""
ZSH_THAT_NOTES_OFFERS = """
fpath=($PWD $fpath)
autoload -U compinit && compinit -u -D
offered=()
compadd() {
  local -a found
  builtin compadd -O found "$@"
  offered+=($found)
  builtin compadd "$@"
}
finish() { print -rl -- $offered > offered; exit }
comppostfuncs=(finish)
"""


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def commands():
    listed = output(PROGRAM, "--help").split("Subcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)


class Described(unittest.TestCase):
    def test_the_manual_has_every_command_and_option(self):
        page = output(PROGRAM, "info", "--describe", "man").replace("\\-", "-")
        self.assertIn(f"unshuffle {VERSION}", page)
        self.assertGreater(len(commands()), 8)
        for command in commands():
            section = page.split(f".SS \\&unshuffle {command}\n")[1].split(".SS")[0]
            for option in re.findall(r"^  (--[a-z0-9-]+)", output(PROGRAM, command, "--help"), re.MULTILINE):
                self.assertIn(option, section)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_the_manual_is_sound_troff(self):
        page = output(PROGRAM, "info", "--describe", "man")
        done = subprocess.run(["groff", "-k", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertIn("3 bad data; 4 out of memory", done.stdout)

    def complete(self, *words):
        script = output(PROGRAM, "info", "--describe", "bash")
        line = " ".join(f"'{word}'" for word in words)
        script += f"\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _unshuffle; echo \"${{COMPREPLY[@]}}\""
        return output("bash", "-c", script).split()

    def test_bash_completes_commands_options_and_words(self):
        self.assertEqual(self.complete("unshuffle", "fi"), ["fit"])
        self.assertEqual(self.complete("unshuffle", ""), [*commands(), "--help", "--version"])
        self.assertEqual(self.complete("unshuffle", "fit", "--unm"), ["--unmatched"])
        self.assertEqual(self.complete("unshuffle", "fit", "--hint", "r"), ["rows"])
        self.assertIn("entropic", self.complete("unshuffle", "fit", "y.csv", "--method", ""))
        self.assertEqual(self.complete("unshuffle", "fit", "some"), [])

    def test_bash_completes_names_of_columns_from_the_files_on_the_line(self):
        with tempfile.TemporaryDirectory() as folder:
            wages, people = Path(folder, "wages.csv"), Path(folder, "people.csv")
            wages.write_text("wage;city\n1,5;Bonn\n2,5;Rome\n")
            people.write_text("age,years of work\n" + "31,2\n" * 20_000)  # more than is looked at
            line = [PROGRAM, "fit", str(wages), str(people)]
            self.assertEqual(self.complete(*line, "--response", "w"), ["wage"])
            self.assertEqual(self.complete(*line, "--z", "ag"), ["age"])
            self.assertEqual(self.complete(*line, "--z", "age,ye"), ["age,years\\", "of\\", "work"])
            self.assertEqual(self.complete(*line, "--group", "ci"), ["city"])

    def zsh_offers(self, line):
        """What an interactive zsh offers for a line and a press of the tab key."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "_unshuffle").write_text(output(PROGRAM, "info", "--describe", "zsh"))
            Path(folder, "ready.zsh").write_text(ZSH_THAT_NOTES_OFFERS)
            Path(folder, "some.csv").touch()
            output("zsh", "-f", "-c", ZSH_THAT_TYPES, "zsh", line, cwd=folder, timeout=600)
            return sorted(set(Path(folder, "offered").read_text().split()))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed: its completions are not tested")
    def test_zsh_completes_commands_options_words_and_files(self):
        self.assertEqual(self.zsh_offers("unshuffle "), sorted(commands()))
        self.assertEqual(self.zsh_offers("unshuffle --"), ["--help", "--version"])
        self.assertEqual(self.zsh_offers("unshuffle fit --unm"), ["--unmatched"])
        self.assertEqual(self.zsh_offers("unshuffle fit --hint r"), ["rows"])
        self.assertIn("entropic", self.zsh_offers("unshuffle fit y.csv --method "))
        self.assertEqual(self.zsh_offers("unshuffle fit so"), ["some.csv"])
        self.assertEqual(self.zsh_offers("unshuffle fit --robust --robu"), [])
        self.assertEqual(self.zsh_offers("unshuffle fit --transform log --transf"), ["--transform"])


@unittest.skipUnless(shutil.which("dpkg-deb"), "dpkg-deb is not installed")
class Package(unittest.TestCase):
    def test_holds_a_program_that_runs_and_all_that_belongs_to_it(self):
        with tempfile.TemporaryDirectory() as folder:
            output(CPACK, "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-G", "DEB", "-B", folder, cwd=folder)
            package = next(Path(folder).glob("unshuffle_*.deb"))
            fields = output("dpkg-deb", "--field", package)
            self.assertIn(f"Version: {VERSION}\n", fields)
            self.assertIn("libopenblas0", fields)
            self.assertIn("libopenblas-dev", fields)  # what unshuffle.pc names
            output("dpkg-deb", "--extract", package, "root", cwd=folder)
            usr = Path(folder, "root", "usr")
            for part in ("include/unshuffle/unshuffle.hpp", "share/man/man1/unshuffle.1",
                         "share/bash-completion/completions/unshuffle", "share/zsh/vendor-completions/_unshuffle"):
                self.assertTrue((usr / part).stat().st_size > 0, part)
            notices = (usr / "share/doc/unshuffle/copyright").read_text()
            for name in ("unshuffle", "Eigen", "nlohmann-json", "Boost.Math", "CLI11"):
                self.assertRegex(notices, f"(?m)^{name}(, compiled into this software)?$")
            self.assertIn("Mozilla Public License", notices)
            for pattern in ("libunshuffle.*", "unshuffleConfig.cmake", "unshuffle.pc"):
                self.assertTrue(list((usr / "lib").rglob(pattern)), pattern)
            # Whoever installs it has no files of the machine it was made on.
            for_linkers = next((usr / "lib").rglob("unshuffle.pc")).read_text()
            self.assertIn("-lopenblas", for_linkers)
            self.assertNotIn(".so", for_linkers)
            self.assertEqual(output(usr / "bin" / "unshuffle", "--version").strip(), VERSION)
            output(usr / "bin" / "unshuffle", "simulate", "sensing", "--n", "50", "--out", "sample", cwd=folder)
            output(usr / "bin" / "unshuffle", "fit", "sample/responses.csv", "sample/features.csv", "--response", "y",
                   "--method", "ls", cwd=folder)


if __name__ == "__main__":
    unittest.main()
