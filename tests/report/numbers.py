"""The contents of a report, without a browser. Usage: numbers.py PROGRAM"""

import os
import re
import sys
import tempfile
import unittest

import pages

PROGRAM = os.path.abspath(sys.argv.pop(1))


class Numbers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        pages.make(PROGRAM, cls.folder.name)

    def each(self):
        for name in pages.FITS:
            with self.subTest(name):
                yield name, *pages.read(self.folder.name, name)

    def test_the_page_holds_the_fit_as_the_json_file_does(self):
        for _, _, data, fit in self.each():
            self.assertEqual(data["fit"], fit)

    def test_nothing_is_fetched(self):
        for _, page, _, _ in self.each():
            self.assertEqual(re.findall(r"""(?:src|href)=["'](?!data:)""", page), [])
            self.assertEqual(set(re.findall(r"https?://[^\"']*", page)), {"http://www.w3.org/2000/svg"})

    def test_distributions_are_shares(self):
        for name, _, data, fit in self.each():
            self.assertEqual([d["response"] for d in data["distributions"]], fit["columns"]["response"])
            for shown in data["distributions"]:
                self.assertAlmostEqual(sum(shown["observed"]), 1)
                self.assertAlmostEqual(sum(shown["predicted"]), 1)

    def test_rows_of_the_correspondence_sum_to_their_mass(self):
        for _, _, data, _ in self.each():
            shown = data["correspondence"]
            for line, mass in zip(shown["share"], shown["row_mass"]):
                self.assertAlmostEqual(sum(line), mass, places=5)

    def test_a_good_fit_has_its_correspondence_on_the_diagonal(self):
        _, data, _ = pages.read(self.folder.name, "mixture")
        share = data["correspondence"]["share"]
        places = [sum(k * value for k, value in enumerate(line)) / sum(line) for line in share]
        self.assertLess(max(abs(place - k) for k, place in enumerate(places)), 12)

    def test_the_answer_lies_in_a_valley_of_the_landscape(self):
        _, data, _ = pages.read(self.folder.name, "mixture")
        shown = data["landscape"]
        middle = len(shown["offset"]) // 2
        self.assertEqual(shown["offset"][middle], 0)
        self.assertLess(shown["objective"][middle], shown["objective"][0])
        self.assertLess(shown["objective"][middle], shown["objective"][-1])

    def test_descents_end_where_the_starts_did(self):
        _, data, _ = pages.read(self.folder.name, "robust")
        self.assertEqual(len(data["descents"]), 3)
        lasts = sorted(line["points"][-1][1] for line in data["descents"])
        for last, end in zip(lasts, sorted(end["objective"] for end in data["ends"])):
            self.assertAlmostEqual(last, end, delta=1e-6 * abs(end))

    def test_unmatched_rows_are_counted(self):
        _, data, _ = pages.read(self.folder.name, "robust")
        self.assertGreater(data["unmatched"]["responses"], 0)
        self.assertLess(min(data["correspondence"]["row_mass"]), 0.5)

    def test_calibration_counts_every_pair_once_when_the_truth_is_known(self):
        _, data, _ = pages.read(self.folder.name, "mixture")
        self.assertEqual(sum(part["pairs"] for part in data["calibration"]), 120)
        for part in data["calibration"]:
            self.assertTrue(part["from"] <= part["mean_probability"] <= part["to"])
            self.assertLessEqual(part["right"], part["pairs"])
        self.assertEqual(pages.read(self.folder.name, "robust")[1]["calibration"], [])


if __name__ == "__main__":
    unittest.main()
