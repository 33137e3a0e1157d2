"""A folder of files as other programs write them: what the program says about each, and that it fits the same numbers.

Usage: messy.py PROGRAM
"""

import datetime
import gzip
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM = os.path.abspath(sys.argv.pop(1))
ROWS = 60


def people(seed=1):
    """Linked rows: wage = 3 + 2 age + 1500 (south) + 800 (west) + 500 (member), without noise."""
    draw = random.Random(seed)
    rows = []
    for _ in range(ROWS):
        age, region = draw.randrange(2000, 6500) / 100, draw.choice(["north", "north", "south", "west"])
        member = draw.random() < 0.4
        wage = 3 + 2 * age + {"north": 0, "south": 1500, "west": 800}[region] + 500 * member
        rows.append({"wage": wage, "age": age, "region": region, "member": member})
    return rows


TRUTH = {"age": 2, "region[T.south]": 1500, "region[T.west]": 800, "member": 500}


def plain(value):
    return ("TRUE" if value else "FALSE") if isinstance(value, bool) else f"{value:.2f}" if isinstance(value, float) else value


def table(rows, separator=",", cell=plain, end="\n", names=None):
    names = names or list(rows[0])
    lines = [separator.join(names)] + [separator.join(cell(row[name]) for name in names) for row in rows]
    return "".join(line + end for line in lines)


def comma(value):
    return plain(value).replace(".", ",")


def german(value):
    if not isinstance(value, float):
        return plain(value)
    return f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


def thousands(separator):
    def cell(value):
        text = f"{value:,.2f}".replace(",", separator) if isinstance(value, float) else plain(value)
        return f'"{text}"' if "," in text else text
    return cell


def with_index(rows, first=0):
    return [{"": str(first + at), **row} for at, row in enumerate(rows)]


def r_table(rows):
    """As write.table(rows) does."""
    quoted = lambda v: f'"{v}"' if isinstance(v, str) else plain(v)
    lines = [" ".join(f'"{name}"' for name in rows[0])]
    lines += [" ".join([f'"{at + 1}"', *(quoted(value) for value in row.values())]) for at, row in enumerate(rows)]
    return "\n".join(lines) + "\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, content):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return name

    def run_here(self, *arguments, stdin=None):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, input=stdin, capture_output=True, timeout=600)

    def said(self, done):
        return done.stderr.decode()

    def fit(self, *arguments, stdin=None):
        """The fit as JSON and the notes."""
        done = self.run_here("fit", *arguments, "--json", stdin=stdin)
        self.assertIn(done.returncode, (0, 1), self.said(done))
        return json.loads(done.stdout), self.said(done)

    def refuse(self, *arguments, says, code=3):
        done = self.run_here(*arguments)
        self.assertEqual(done.returncode, code, self.said(done))
        self.assertEqual(done.stdout, b"")
        self.assertIn(says, self.said(done))


class Files(Case):
    def same_fit(self, name, content, says):
        """The file is read and its fit has the coefficients that the rows were made with."""
        with self.subTest(file=name):
            self.write(name, content)
            fit, said = self.fit(name, "--response", "wage", "--method", "ls")
            self.assertEqual(list(fit["coefficients"]), list(TRUTH))
            for key, value in TRUTH.items():
                self.assertAlmostEqual(fit["coefficients"][key], value, delta=1e-6)
            self.assertEqual(fit["responses"], ROWS)
            first = said.splitlines()[0]
            if says is None:
                self.assertNotIn(f"{ROWS} rows", said)
            else:
                self.assertRegex(first, f"^unshuffle: note: {re.escape(name)}: {re.escape(says)}, {ROWS} rows × [45]$")

    def test_every_file_is_read_and_what_is_unusual_said(self):
        rows = people()
        text = table(rows)
        member = lambda yes, no: table([{**row, "member": yes if row["member"] else no} for row in rows])
        money = lambda form: lambda v: f'"{form.format(v)}"' if isinstance(v, float) else plain(v)
        cases = [
                ("plain.csv", text, None),
                ("windows.csv", table(rows, end="\r\n"), None),
                ("mark.csv", b"\xef\xbb\xbf" + text.encode(), None),
                ("quoted.csv", table(rows, cell=lambda v: f'"{plain(v)}"'), None),
                ("no_last_line_end.csv", text[:-1], None),
                ("semicolon.csv", table(rows, ";"), "semicolon-separated"),
                ("excel.csv", table(rows, ";", comma), "semicolon-separated, decimal commas"),
                ("german.csv", table(rows, ";", german, "\r\n"), "semicolon-separated, decimal commas"),
                ("hint.csv", "sep=;\n" + table(rows, ";"), "semicolon-separated"),
                ("tabs.tsv", table(rows, "\t"), "tab-separated"),
                ("commas.tsv", table(rows, "\t", comma), "tab-separated, decimal commas"),
                ("bars.txt", table(rows, "|"), "separated by |"),
                ("quoted_commas.csv", table(rows, ",", lambda v: f'"{comma(v)}"'), "decimal commas"),
                ("thousands.csv", table(rows, ",", thousands(",")), "commas between thousands"),
                ("swiss.csv", table(rows, ",", thousands("'")), "apostrophes between thousands"),
                ("french.csv", table(rows, ";", lambda v: thousands("\u00a0")(v).replace(".", ",").strip('"')),
                 "semicolon-separated, decimal commas"),
                ("utf16.csv", text.encode("utf-16"), "UTF-16"),
                ("utf16be.txt", table(rows, "\t").encode("utf-16-be"), "UTF-16, tab-separated"),
                ("comments.csv", "# made by a program\n# in 2024\n" + text, "2 comment lines skipped"),
                ("remarks.csv", text.replace("\n", "\n# a remark, with a comma\n", 3), "3 comment lines skipped"),
                ("pandas.csv", table(with_index(rows)), "unnamed index column left out"),
                ("r.csv", table(with_index(rows, 1), cell=lambda v: f'"{plain(v)}"').replace('"",', ',', 1),
                 "unnamed index column left out"),
                ("r_table.csv", table(with_index(rows, 1), cell=lambda v: f'"{plain(v)}"').replace(",wage", "wage", 1),
                 "unnamed index column left out"),
                ("trailing.csv", text.replace("\n", ",\n"), "empty column 5 left out"),
                ("packed.csv.gz", gzip.compress(text.encode()), "gzip"),
                ("packed.tsv.gz", gzip.compress(table(rows, "\t").encode()), "gzip, tab-separated"),
                ("packed_excel.csv.gz", gzip.compress(table(rows, ";", comma).encode("utf-16")),
                 "gzip, UTF-16, semicolon-separated, decimal commas"),
                ("words.csv", table([{**row, "member": "yes" if row["member"] else "No"} for row in rows]), None),
                ("deutsch.csv", member("wahr", "falsch"), None),
                ("excel_deutsch.csv", member("WAHR", "FALSCH"), None),
                ("ja_nein.csv", member("ja", "nein"), None),
                ("francais.csv", member("VRAI", "FAUX"), None),
                ("oui_non.csv", member("oui", "non"), None),
                ("espanol.csv", member("sí", "no"), None),
                ("dollars.csv", table(rows, cell=money("${:,.2f}")), 'commas between thousands, "wage" and "age" in $'),
                ("accounting.csv", table(rows, cell=money("$ {:,.2f} ")), 'commas between thousands, "wage" and "age" in $'),
                ("euros.csv", table(rows, ";", lambda v: german(v) + (" €" if isinstance(v, float) else "")),
                 'semicolon-separated, decimal commas, "wage" and "age" in €'),
                ("percent.csv", table([{**row, "age": f"{row['age']:.2f} %"} for row in rows]), '"age" in %'),
                ("aligned.txt", "\n".join("".join(cell.ljust(12) for cell in line.split(",")) for line in text.splitlines()),
                 "separated by spaces"),
                ("r_write_table.txt", r_table(rows), "separated by spaces, unnamed index column left out"),
                ("mac.csv", table(rows, end="\r"), None),
                ("total.csv", text + "9999.99,77.77,Total,\n", 'a last row of totals ("Total") left out'),
                ("total_of_numbers.csv", table([{"id": str(at + 1), **row} for at, row in enumerate(rows)])
                 + "Grand total:,9999.99,77.77,,\n", 'a last row of totals ("Grand total:") left out'),
                ("hash_note.csv", text.replace("\n", "\n# summe\n", 1), "1 comment line skipped"),
        ]
        self.assertGreaterEqual(len(cases), 40)
        for name, content, says in cases:
            self.same_fit(name, content, says)

    def test_standard_input_is_a_table(self):
        fit, said = self.fit("-", "--response", "wage", "--method", "ls", stdin=table(people(), "\t").encode())
        self.assertAlmostEqual(fit["coefficients"]["age"], 2, delta=1e-6)
        self.assertIn(f"standard input: tab-separated, {ROWS} rows × 4", said)

    def test_latin1_levels_are_those_of_a_utf8_file(self):
        rows = [{**row, "region": row["region"].replace("south", "Köln")} for row in people()]
        self.write("latin.csv", table(rows).encode("latin-1"))
        fit, said = self.fit("latin.csv", "--response", "wage", "--method", "ls")
        self.assertIn("latin.csv: Latin-1, ", said)
        self.assertAlmostEqual(fit["coefficients"]["region[T.Köln]"], 1500, delta=1e-6)

    def test_groups_match_across_encodings(self):
        rows = [{"wage": row["wage"], "town": row["region"].replace("south", "Köln")} for row in people()]
        right = [{"age": row["age"], "town": row["region"].replace("south", "Köln")} for row in people()]
        self.write("wages.csv", table(rows).encode("latin-1"))
        self.write("people.csv", table(right).encode())
        _, said = self.fit("wages.csv", "people.csv", "--response", "wage", "--group", "town", "--method", "ls",
                           "--hint", "rows")
        self.assertNotIn("of a group that", said)

    def test_what_cannot_be_read_is_named(self):
        workbook = io.BytesIO()
        with zipfile.ZipFile(workbook, "w") as file:
            file.writestr("xl/workbook.xml", "<workbook/>")
        for name, content, says in (
                ("people.xlsx", workbook.getvalue(), "people.xlsx is an Excel workbook; save it as CSV"),
                ("people.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "people.xls is an old Excel workbook; save it as CSV"),
                ("people.parquet", b"PAR1\x15\x04", "people.parquet is a Parquet file; read it in Python"),
                ("people.arrow", b"ARROW1\0\0", "people.arrow is an Arrow file"),
                ("people.rds", gzip.compress(b"X\n\0\0\0\3\0"), "people.rds is an R object; save it with write.csv"),
                ("people.sav", b"$FL2@(#) SPSS DATA FILE", "people.sav is an SPSS file; save it as CSV"),
                ("people.dta", b"<stata_dta><header>", "people.dta is a Stata file; save it as CSV"),
                ("old.dta", b"s\2\1\0\4\0", "old.dta is a Stata file"),
                ("people.sas7bdat", b"\0" * 12 + b"\xc2\xea\x81\x60\xb3", "people.sas7bdat is a SAS table"),
                ("people.mat", b"MATLAB 5.0 MAT-file", "people.mat is a MATLAB file"),
                ("people.RData", gzip.compress(b"RDX3\nX\n"), "people.RData is an R workspace"),
                ("people.json", b'[{"wage": 1}]', "people.json is JSON; save it as CSV"),
                ("people.xml", b'<?xml version="1.0"?>', "people.xml is XML"),
                ("people.db", b"SQLite format 3\0", "people.db is an SQLite database"),
                ("people.csv.bz2", b"BZh91AY&SY", "people.csv.bz2 is compressed with bzip2; decompress it first"),
                ("cut.csv.gz", gzip.compress(table(people()).encode())[:-30], "cut.csv.gz: the gzip data is damaged"),
                ("ambiguous.csv", 'wage,age\n"1,234",1\n"2,345",2\n"2,345",3\n',
                 'ambiguous.csv:2: column "wage" holds "1,234"; a number was expected'),
        ):
            with self.subTest(file=name):
                self.write(name, content)
                self.refuse("fit", name, "--response", "wage", says=says)

    def test_streams_take_other_separators_and_refuse_what_they_cannot_cut(self):
        rows = [{"wage": row["wage"], "age": row["age"], "height": row["age"] ** 0.5} for row in people()]
        self.write("plain.csv", table(rows))
        self.write("excel.csv", table(rows, ";", comma))
        fits = [self.fit(name, "--response", "wage", "--stream")[0] for name in ("plain.csv", "excel.csv")]
        self.assertEqual(fits[0]["coefficients"], fits[1]["coefficients"])
        self.write("packed.csv.gz", gzip.compress(table(rows).encode()))
        self.refuse("fit", "packed.csv.gz", "--response", "wage", "--stream", says="packed.csv.gz: is compressed")


class MissingCells(Case):
    def rows(self, word="NA"):
        rows = people()
        for at in (3, 17, 40):
            rows[at]["age"] = word
        rows[5]["member"] = word
        return rows

    def test_rows_with_missing_cells_are_dropped_and_said(self):
        for word in ("NA", "NaN", "", "null", ".", "N/A", "#N/A", "None", "?", "n/a"):
            with self.subTest(word=word):
                self.write("people.csv", table(self.rows(word)))
                fit, said = self.fit("people.csv", "--response", "wage", "--method", "ls")
                self.assertIn("4 of 60 rows of people.csv dropped (age: 3, member: 1), responses and features alike", said)
                self.assertEqual((fit["responses"], fit["features"]), (56, 56))
                for key, value in TRUTH.items():
                    self.assertAlmostEqual(fit["coefficients"][key], value, delta=1e-6)

    def test_an_error_lists_every_column(self):
        self.write("people.csv", table(self.rows()))
        self.refuse("fit", "people.csv", "--response", "wage", "--missing", "error",
                    says="cells are missing in 4 of 60 rows of people.csv (age: 3, member: 1); fill them in, or use --missing")

    def test_an_indicator_keeps_the_rows(self):
        self.write("people.csv", table(self.rows()))
        fit, said = self.fit("people.csv", "--response", "wage", "--method", "ls", "--missing", "indicator", "--out",
                             "fit.json")
        self.assertIn("people.csv: missing cells filled with the mean of their column", said)
        self.assertEqual(fit["responses"], 60)
        self.assertEqual(list(fit["coefficients"]), ["age", "age[missing]", "region[T.south]", "region[T.west]", "member",
                                                     "member[missing]"])
        predictions = self.run_here("predict", "fit.json", "people.csv")
        self.assertEqual(predictions.returncode, 0, self.said(predictions))
        self.assertEqual(predictions.stdout.count(b"\n"), 61)

    def two_tables(self):
        rows = self.rows()
        self.write("wages.csv", table([{"wage": row["wage"]} for row in rows]))
        self.write("people.csv", table([{key: row[key] for key in ("age", "region", "member")} for row in rows]))

    def test_of_two_tables_the_other_keeps_its_rows(self):
        self.two_tables()
        fit, said = self.fit("wages.csv", "people.csv", "--response", "wage", "--method", "robot", "--starts", 1,
                             "--pairs", "pairs.csv")
        self.assertIn("4 of 60 rows of people.csv dropped (age: 3, member: 1); their partners in wages.csv stay", said)
        self.assertIn("60 responses and 56 features are fitted", said)
        self.assertEqual((fit["responses"], fit["features"]), (60, 56))
        with open(os.path.join(self.folder, "pairs.csv")) as file:
            features = [line.split(",")[1] for line in file][1:]
        # Pairs count the rows of the file; those dropped are among the unmatched.
        self.assertEqual(sorted(int(row) for row in features if row), list(range(60)))

    def test_tables_in_order_lose_the_row_on_both_sides(self):
        self.two_tables()
        fit, said = self.fit("wages.csv", "people.csv", "--response", "wage", "--method", "ls", "--hint", "rows", "--out",
                             "fit.json", "--pairs", "pairs.csv")
        self.assertIn("and with them the same rows of wages.csv", said)
        self.assertEqual((fit["responses"], fit["features"]), (56, 56))
        for key, value in TRUTH.items():
            self.assertAlmostEqual(fit["coefficients"][key], value, delta=1e-6)
        done = self.run_here("match", "fit.json", "wages.csv", "people.csv", "--out", "matched.csv", "--join", "left")
        self.assertEqual(done.returncode, 0, self.said(done))
        with open(os.path.join(self.folder, "matched.csv")) as file:
            self.assertEqual(len(file.readlines()), 61)

    def test_known_pairs_count_the_rows_of_the_file(self):
        self.two_tables()
        known = "response_row,feature_row\n" + "".join(f"{row},{row}\n" for row in range(60))
        self.write("known.csv", known)
        fit, _ = self.fit("wages.csv", "people.csv", "--response", "wage", "--method", "oracle", "--known", "known.csv")
        for key, value in TRUTH.items():
            self.assertAlmostEqual(fit["coefficients"][key], value, delta=1e-6)

    def test_a_stray_text_is_no_missing_cell(self):
        rows = people()
        rows[7]["age"] = "41 years"
        self.write("people.csv", table(rows))
        self.refuse("fit", "people.csv", "--response", "wage",
                    says='people.csv:9: column "age" holds "41 years"; a number was expected')

    def test_a_table_without_a_complete_row_is_refused(self):
        rows = [{**row, "age": "NA" if at % 2 else row["age"], "height": row["age"] if at % 2 else "NA"}
                for at, row in enumerate(people())]
        self.write("people.csv", table(rows))
        self.refuse("fit", "people.csv", "--response", "wage",
                    says="people.csv: every row has a missing cell (age: 30, height: 30); use --missing indicator")


class Categories(Case):
    def test_the_reference_is_the_most_frequent_level_and_said(self):
        self.write("people.csv", table(people()))
        _, said = self.fit("people.csv", "--response", "wage", "--method", "ls")
        self.assertIn('people.csv: column "region" is a category of 3 levels; reference north, against which south, west '
                      "have coefficients", said)

    def test_predict_reads_the_raw_table_and_names_an_unseen_level(self):
        rows = people()
        self.write("people.csv", table(rows))
        fit, _ = self.fit("people.csv", "--response", "wage", "--method", "ls", "--out", "fit.json")
        self.assertEqual(fit["columns"]["codes"][0]["levels"], ["north", "south", "west"])
        self.assertEqual(fit["columns"]["codes"][0]["reference"], "north")
        done = self.run_here("predict", "fit.json", "people.csv")
        predicted = [float(line) for line in done.stdout.split()[1:]]
        for row, wage in zip(rows, predicted):
            self.assertAlmostEqual(wage, row["wage"], delta=1e-6)
        # Levels keep their meaning in a table in which they are not all there.
        self.write("west.csv", table([row for row in rows if row["region"] == "west"]))
        done = self.run_here("predict", "fit.json", "west.csv")
        self.assertAlmostEqual(float(done.stdout.split()[1]), next(r for r in rows if r["region"] == "west")["wage"], delta=1e-6)
        rows[1]["region"] = "east"
        self.write("east.csv", table(rows))
        self.refuse("predict", "fit.json", "east.csv",
                    says='east.csv, row 2: column "region" holds "east"; the fit knows the levels north, south, west only')
        rows[1]["region"] = "NA"
        self.write("gap.csv", table(rows))
        self.refuse("predict", "fit.json", "gap.csv", says='gap.csv, row 2: column "region" is missing')

    def test_ids_and_columns_of_many_levels_are_left_out_unless_named(self):
        rows = [{"id": str(at + 1), "name": f"p{at}", "street": f"s{at // 2 % 52}", **row} for at, row in enumerate(people() * 2)]
        for at, row in enumerate(rows):
            row["id"], row["name"] = str(at + 1), f"p{at}"
        self.write("people.csv", table(rows))
        fit, said = self.fit("people.csv", "--response", "wage", "--method", "ls")
        self.assertIn('column "id" looks like a row number: left out; name it with --z to use it', said)
        self.assertIn('column "name" has another text in every row: left out', said)
        self.assertIn('column "street" has 52 levels: left out; name it with --z to use it', said)
        self.assertEqual(list(fit["coefficients"]), list(TRUTH))
        fit, _ = self.fit("people.csv", "--response", "wage", "--method", "ls", "--z", "id,age")
        self.assertEqual(list(fit["coefficients"]), ["id", "age"])

    def test_a_response_of_truth_values_is_0_and_1(self):
        self.write("people.csv", table(people(), names=["member", "age"]))
        fit, _ = self.fit("people.csv", "--response", "member", "--method", "ls")
        self.assertLess(abs(fit["intercept"]), 2)

    def test_compare_codes_the_test_table_alike(self):
        self.write("people.csv", table(people()))
        done = self.run_here("compare", "people.csv", "--response", "wage", "--methods", "ls", "--test", "people.csv", "--json")
        self.assertEqual(done.returncode, 0, self.said(done))
        self.assertLess(json.loads(done.stdout)["methods"][0]["test_error"], 1e-12)


class Formulas(Case):
    def two_tables(self):
        rows = people()
        self.write("wages.csv", table(rows, ";", comma, names=["wage", "member"]))
        self.write("people.csv", table(rows, names=["age", "region"]))
        return rows

    def test_a_formula_stands_before_the_files(self):
        rows = self.two_tables()
        fit, said = self.fit("wage ~ member + age + C(region)", "wages.csv", "people.csv", "--method", "ls", "--out", "fit.json")
        self.assertEqual(fit["columns"]["response"], ["wage"])
        self.assertEqual(fit["columns"]["x"], ["member"])
        self.assertEqual(fit["columns"]["z"], ["age", "C(region)[T.south]", "C(region)[T.west]"])
        self.assertIn("people.csv: C(region) is a category of 3 levels; reference north", said)
        for name, value in TRUTH.items():
            name = name.replace("region", "C(region)")
            self.assertAlmostEqual(fit["coefficients"][name], value, delta=1e-6)
        # Raw tables are enough for what follows.
        self.write("both.csv", table(rows))
        predicted = self.run_here("predict", "fit.json", "both.csv")
        self.assertEqual(predicted.returncode, 0, self.said(predicted))
        for row, wage in zip(rows, predicted.stdout.split()[1:]):
            self.assertAlmostEqual(float(wage), row["wage"], delta=1e-6)
        matched = self.run_here("match", "fit.json", "wages.csv", "people.csv")
        self.assertEqual(matched.returncode, 0, self.said(matched))
        rows[2]["region"] = "east"
        self.write("east.csv", table(rows))
        self.refuse("predict", "fit.json", "east.csv",
                    says="east.csv, row 3: region = east; the levels of C(region) are north, south, west")

    def test_an_option_gives_the_same(self):
        self.two_tables()
        before, _ = self.fit("wage ~ age - 1", "wages.csv", "people.csv", "--method", "ls")
        option, _ = self.fit("wages.csv", "people.csv", "--formula", "wage ~ age - 1", "--method", "ls")
        self.assertEqual(before["coefficients"], option["coefficients"])
        self.assertEqual(before["intercept"], 0)

    def test_missing_cells_of_columns_in_the_formula_count(self):
        rows = people()
        rows[4]["age"] = rows[9]["region"] = "NA"
        self.write("people.csv", table(rows))
        fit, said = self.fit("wage ~ region", "people.csv", "--method", "ls")
        self.assertIn("1 of 60 rows of people.csv dropped (region: 1)", said)
        self.assertEqual(fit["responses"], 59)

    def test_a_response_may_be_transformed_and_compared(self):
        self.write("people.csv", table(people()))
        done = self.run_here("compare", "log(wage) ~ log(age) + region", "people.csv", "--methods", "ls", "--test", "people.csv",
                             "--json")
        self.assertEqual(done.returncode, 0, self.said(done))
        self.assertLess(json.loads(done.stdout)["methods"][0]["test_error"], 1)

    def test_mistakes_are_shown_where_they_are(self):
        self.two_tables()
        done = self.run_here("fit", "wage ~ age + + C region", "wages.csv", "people.csv")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.said(done).splitlines()[1:], ["    wage ~ age + + C region", "                 ^"])
        for arguments, says in (
                (("wage ~ age", "wages.csv", "people.csv", "--response", "wage"), "leave out --response, --x and --z"),
                (("wage ~ age", "wages.csv", "people.csv", "--no-intercept"), "--no-intercept: write - 1 in the formula"),
                (("wage ~ age",), "RESPONSES is required after the formula"),
                (("wages.csv", "people.csv"), "--response is required, or a formula such as 'wage ~ age + region'"),
                (("wages.csv", "people.csv", "more.csv", "--response", "wage"), "more.csv: two tables were expected"),
                (("wage ~ age", "wages.csv", "people.csv", "--missing", "indicator"), "--missing indicator does not go"),
                (("wage ~ age", "wages.csv", "people.csv", "--stream"), "a formula: not with tables in pieces"),
        ):
            with self.subTest(arguments=arguments):
                self.refuse("fit", *arguments, says=says, code=2)
        self.refuse("fit", "age ~ wage", "wages.csv", "people.csv",
                    says='formula: the response "age" is in people.csv; give that table first')


class Wages(Case):
    """The sample that the documents begin with."""

    def setUp(self):
        super().setUp()
        done = self.run_here("simulate", "wages", "--n", 300, "--out", "demo")
        self.assertEqual(done.returncode, 0, self.said(done))

    def read(self, name):
        with open(os.path.join(self.folder, "demo", name)) as file:
            return file.read()

    def test_tables_are_messy_and_the_truth_is_known(self):
        wages, people = self.read("wages.csv").splitlines(), self.read("people.csv").splitlines()
        self.assertEqual((len(wages), len(people)), (301, 331))
        self.assertEqual((wages[0], people[0]), ("wage,city", "age,years,training,night,town"))
        self.assertIn("NA,", "\n".join(people))
        truth = json.loads(self.read("truth.json"))
        cities = [line.split(",")[1] for line in wages[1:]]
        towns = [line.split(",")[4] for line in people[1:]]
        self.assertEqual(cities, [towns[row] for row in truth["permutation"]])

    def test_the_oracle_finds_the_coefficients(self):
        fit, said = self.fit("demo/wages.csv", "demo/people.csv", "--response", "wage", "--group", "city=town", "--method", "oracle",
                             "--truth", "demo/truth.json")
        truth = json.loads(self.read("truth.json"))["coefficients"]
        self.assertEqual(set(fit["coefficients"]), set(truth))
        for name, value in truth.items():
            self.assertAlmostEqual(fit["coefficients"][name], value, delta=abs(value) / 10)
        self.assertIn('column "training" is a category of 3 levels; reference apprenticeship', said)

    def test_options_of_other_designs_are_refused(self):
        self.refuse("simulate", "wages", "--dim-z", 3, "--out", "x", says="--dim-z cannot be used with the design wages", code=2)
        self.refuse("simulate", "wages", "--n", 3, "--out", "x", says="n = 3 must be at least 20", code=2)


class Honest(Case):
    def test_a_total_at_the_end_is_no_row(self):
        rows = people()
        total = ",".join([f"{sum(row['wage'] for row in rows):.2f}", f"{sum(row['age'] for row in rows):.2f}", "Total", ""])
        self.write("people.csv", table(rows) + total + "\n")
        fit, said = self.fit("people.csv", "--response", "wage", "--method", "ls")
        self.assertIn('people.csv: a last row of totals ("Total") left out, 60 rows × 4', said)
        self.assertEqual(fit["responses"], ROWS)
        self.assertEqual(list(fit["coefficients"]), list(TRUTH))
        for key, value in TRUTH.items():
            self.assertAlmostEqual(fit["coefficients"][key], value, delta=1e-6)

    def test_files_that_are_replaced_are_named(self):
        self.write("people.csv", table(people()))
        _, said = self.fit("people.csv", "--response", "wage", "--method", "ls", "--out", "fit.json")
        self.assertNotIn("replaced", said)
        _, said = self.fit("people.csv", "--response", "wage", "--method", "ls", "--out", "fit.json")
        self.assertIn("note: fit.json exists and will be replaced (--out)", said)

    def test_what_follows_from_a_fit_that_is_not_identifiable_says_so(self):
        rows = people()
        draw = random.Random(2)
        self.write("wages.csv", table([{"wage": draw.gauss(0, 1)} for _ in rows]))
        self.write("people.csv", table([{"age": draw.gauss(0, 1), "height": draw.gauss(0, 1)} for _ in rows], cell=str))
        fit, _ = self.fit("wages.csv", "people.csv", "--response", "wage", "--hint", "none", "--out", "fit.json")
        self.assertEqual(fit["identifiable"]["verdict"], "not identifiable")
        for command in (("predict", "fit.json", "people.csv"), ("match", "fit.json", "wages.csv", "people.csv")):
            done = self.run_here(*command)
            self.assertEqual(done.returncode, 0, self.said(done))
            self.assertIn("note: fit.json is not identifiable: ", self.said(done))

    def test_compare_without_a_truth_shows_the_answers(self):
        self.write("people.csv", table(people()))
        done = self.run_here("compare", "people.csv", "--response", "wage", "--methods", "ls,mixture")
        said = done.stdout.decode()
        self.assertIn("\nls: not assessed\n", said)
        self.assertRegex(said, r"\nmixture: (weakly )?identified\n")
        self.assertRegex(said, r"\n  age  +2 +[0-9.]+ to [0-9.]+\n")


class Help(Case):
    def test_the_first_options_fit_on_a_screen_and_all_are_there_on_request(self):
        short = self.run_here("fit", "--help").stdout.decode()
        everything = self.run_here("fit", "--help-all").stdout.decode()
        self.assertIn("Options that most people need:", short)
        self.assertIn("more options: unshuffle fit --help-all", short)
        self.assertNotIn("--em-chains", short)
        for name in ("--em-chains", "--formula", "--known", "--stream"):
            self.assertIn(name, everything)
        self.assertLess(len(short.splitlines()), len(everything.splitlines()) / 2)


class Looks(Case):
    def test_info_shows_form_columns_and_what_is_missing(self):
        rows = people()
        text = table(rows, ";", comma).replace(";north;", ";;", 2)
        done = self.run_here("info", self.write("people.csv", text))
        self.assertEqual(done.returncode, 0, self.said(done))
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[0], f"people.csv: semicolon-separated, decimal commas, {ROWS} rows, 4 columns")
        ages = [row["age"] for row in rows]
        self.assertIn(f"{min(ages):g} .. {max(ages):g}", lines[2])
        self.assertTrue(lines[3].startswith("  region") and lines[3].endswith("; 2 missing"), lines[3])
        self.assertIn("true or false", lines[4])

    def test_info_names_a_stray_cell(self):
        self.write("t.csv", "age,city\n31,Rome\n41 years,Bonn\nNA,Rome\n")
        done = json.loads(self.run_here("info", "t.csv", "--json").stdout)
        age, city = done["columns"]
        self.assertEqual((age["kind"], age["missing"], age["low"]), ("number", 1, 31))
        self.assertEqual(age["stray"], '"41 years" in row 2')
        self.assertEqual((city["kind"], city["distinct"], city["frequent"]), ("text", 2, ["Rome", "Bonn"]))


class Dates(Case):
    def rows(self, write):
        """Hired on a day that explains the wage: 2 a day since 2020-01-01."""
        draw = random.Random(4)
        days = [draw.randrange(0, 700) for _ in range(40)]
        day = lambda at: datetime.date(2020, 1, 1) + datetime.timedelta(at)
        return [{"wage": 2.0 * at, "hired": write(day(at)), "age": float(at % 7)} for at in days]

    def test_dates_are_numbers_on_request(self):
        for write, order in ((datetime.date.isoformat, "year-first"), (lambda d: f"{d.isoformat()}T00:00:00Z", "year-first"),
                             (lambda d: f"{d.day}.{d.month}.{d.year}", "day-first"), (lambda d: f"{d.day}/{d.month}/{d.year}", "day-first"),
                             (lambda d: f"{d.month}/{d.day}/{d.year}", "month-first"), (lambda d: f"{d:%m/%d/%y}", "month-first")):
            with self.subTest(order=order):
                self.write("people.csv", table(self.rows(write)))
                _, said = self.fit("people.csv", "--response", "wage", "--method", "ls")
                self.assertRegex(said, 'column "hired" holds dates such as .*: left out; name it with --z to use it in days since 1970')
                fit, said = self.fit("people.csv", "--response", "wage", "--method", "ls", "--z", "hired,age", "--out", "fit.json")
                self.assertIn(f'column "hired" holds dates, {order}: days since 1970-01-01', said)
                self.assertAlmostEqual(fit["coefficients"]["hired"], 2, delta=1e-6)
                self.assertEqual(self.run_here("predict", "fit.json", "people.csv").returncode, 0)
                formula, _ = self.fit("wage ~ hired", "people.csv", "--method", "ls")
                self.assertAlmostEqual(formula["coefficients"]["hired"], 2, delta=1e-6)

    def test_dates_that_may_be_read_in_two_ways_are_asked_about(self):
        rows = [{"wage": float(k), "hired": f"{1 + k % 12}/{1 + k // 12}/2024", "age": float(k % 7)} for k in range(30)]
        self.write("people.csv", table(rows))
        self.refuse("fit", "people.csv", "--response", "wage", "--z", "hired",
                    says='column "hired" holds dates such as 1/1/2024, of which no cell tells day and month apart; say --dates')
        fits = [self.fit("people.csv", "--response", "wage", "--z", "hired", "--method", "ls", "--dates", order)[0]
                for order in ("day-first", "month-first")]
        self.assertNotEqual(fits[0]["coefficients"], fits[1]["coefficients"])

    def test_info_shows_their_range(self):
        self.write("people.csv", "hired\n2024-02-29\n2023-12-31\nNA\n")
        said = self.run_here("info", "people.csv").stdout.decode()
        self.assertIn("date           2023-12-31 .. 2024-02-29, 2 distinct; 1 missing", said)


class Suggestions(Case):
    def test_columns_and_levels_are_suggested_too(self):
        rows = people()
        self.write("people.csv", table(rows))
        self.refuse("fit", "people.csv", "--response", "wgae", says='there is no column "wgae"; did you mean wage?')
        self.refuse("fit", "people.csv", "--response", "Wage", says="did you mean wage?")
        self.refuse("fit", "wage ~ agee", "people.csv", says='there is no column "agee"; did you mean age?')
        self.fit("people.csv", "--response", "wage", "--method", "ls", "--out", "fit.json")
        rows[0]["region"] = "sotuh"
        self.write("slip.csv", table(rows))
        self.refuse("predict", "fit.json", "slip.csv", says="the fit knows the levels north, south, west only; did you mean south?")

    def test_slips_are_answered_with_the_nearest_word(self):
        for arguments, says in (
                (("fit", "a.csv", "--reponse", "y"), "unknown option --reponse; did you mean --response? (see unshuffle fit --help)"),
                (("fit", "a.csv", "--no-intecept"), "did you mean --no-intercept?"),
                (("fti", "a.csv"), "unknown command fti; did you mean fit? (see unshuffle --help)"),
                (("preditc",), "did you mean predict?"),
                (("match", "--joni=left"), "unknown option --joni; did you mean --join? (see unshuffle match --help)"),
        ):
            with self.subTest(arguments=arguments):
                self.refuse(*arguments, says=says, code=2)

    def test_nothing_is_suggested_from_afar(self):
        self.refuse("fit", "--frobnicate", says="unknown option --frobnicate (see unshuffle fit --help)", code=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
