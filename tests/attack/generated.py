"""Generated tables and JSON files: what is right is read right, and what is wrong is refused in one line.

UNSHUFFLE_ATTACK=nightly draws a hundred times as many as CI does; UNSHUFFLE_ATTACK_SEED begins elsewhere.
Usage: generated.py PROGRAM
"""

import copy
import json
import os
import random
import unittest

from case import DOCUMENTED, NIGHTLY, Case

COUNT = 20_000 if NIGHTLY else 200
SEED = int(os.environ.get("UNSHUFFLE_ATTACK_SEED", "1"))


def least_squares(points):
    """Intercept and slope of y on z."""
    n = len(points)
    my, mz = sum(y for y, _ in points) / n, sum(z for _, z in points) / n
    slope = sum((y - my) * (z - mz) for y, z in points) / sum((z - mz) ** 2 for _, z in points)
    return my - slope * mz, slope


class CsvFile:
    """A table of two columns of numbers and sometimes one of text, written in one of many ways."""

    def __init__(self, draw):
        self.draw = draw
        self.points = [(draw.gauss(0, 1), draw.gauss(0, 3)) for _ in range(draw.choice((5, 8, 30, 200, 3000)))]
        self.names = draw.choice((("y", "z"), ("y one", "z two"), ("ÿ", "ż"), ('"y"', "z\n2"), ("+y", "=z")))
        self.line_end = draw.choice(("\n", "\r\n", "\r"))
        self.text = draw.random() < 0.3
        self.fault = draw.choice((None, None, "ragged", "letter", "two signs", "blank", "open quote", "infinite", "no header",
                                  "twice", "stray quote"))

    def number(self, value):
        draw = self.draw
        text = draw.choice((repr(value), f"{value:.17g}", f"{value:.17e}", f"{value:+.17g}"))
        text = draw.choice((text, text, f" {text}", f"{text} ", f'"{text}"'))
        return text

    def field(self, text):
        plain = not any(c in text for c in ',"\r\n\t') and text.strip() == text
        return text if plain and self.draw.random() < 0.7 else '"' + text.replace('"', '""') + '"'

    def lines(self):
        head = [self.field(name) for name in self.names] + (["note"] if self.text else [])
        yield head
        for y, z in self.points:
            yield [self.number(y), self.number(z)] + ([self.field(self.draw.choice(("a", "b,c", "-x", "ü")))] if self.text else [])

    def content(self):
        draw, rows = self.draw, [list(row) for row in self.lines()]
        at = draw.randrange(1, len(rows))
        wrong = {"letter": "1x", "two signs": "+-1", "infinite": draw.choice(("inf", "1e999", "-inf")),
                 "open quote": '"1', "stray quote": '1"2'}.get(self.fault)
        if wrong is not None:
            rows[at][draw.randrange(2)] = wrong
        elif self.fault == "ragged":
            rows[at] = rows[at][:-1] if draw.random() < 0.5 else rows[at] + ["1"]
        elif self.fault == "blank":
            rows.insert(at, [])
        elif self.fault == "no header":
            rows = [row[:2] for row in rows[1:]]
        elif self.fault == "twice":
            rows[0][1] = rows[0][0]
        made = self.line_end.join(",".join(row) for row in rows).encode()
        end = draw.choice(("", self.line_end, 3 * self.line_end)).encode()
        return draw.choice((b"", b"\xef\xbb\xbf")) + made + end


class Tables(Case):
    tried = 0

    def test_are_read_or_refused(self):
        for number in range(COUNT):
            draw = random.Random(f"csv {SEED} {number}")
            file = CsvFile(draw)
            self.write("t.csv", file.content())
            with self.subTest(seed=SEED, number=number, fault=file.fault):
                done = self.run_here("fit", "t.csv", "--response", file.names[0], "--z", file.names[1], "--method", "ls", "--json",
                                     *draw.choice(((), ("--threads", 1))))
                Tables.tried += 1
                if file.fault:
                    self.assertEqual(done.returncode, 3, (done.said, done.stdout[:300]))
                    self.assertEqual((done.said.count("\n"), done.stdout), (1, b""))
                    self.assertIn("t.csv", done.said)
                    continue
                self.assertIn(done.returncode, (0, 1), done.said)
                told = json.loads(done.stdout)
                self.assertEqual(told["responses"], len(file.points))
                intercept, slope = least_squares(file.points)
                self.assertAlmostEqual(told["intercept"], intercept, delta=1e-9)
                self.assertAlmostEqual(told["coefficients"][file.names[1]], slope, delta=1e-9)

    @classmethod
    def tearDownClass(cls):
        print(f"tables tried: {cls.tried}")


HOSTILE = [None, True, -1, 0, 1.7e308, -1.7e308, 5e-324, 10 ** 40, "", "x", "\u2028", "\ud800", [], {}, [[]], {"": None}, [None] * 3,
           "intercept", "spline:99999999999", "linear\0", -0.0, 1e-300, "../../x", 2 ** 63, [1, "two"], {"value": -1}]


def places(value, path=()):
    yield path
    for key, inside in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inside, (*path, key))


def mutated(original, draw):
    value = copy.deepcopy(original)
    for _ in range(draw.choice((1, 1, 2, 5))):
        path = draw.choice(list(places(value)))
        if not path:
            continue
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        act = draw.randrange(4)
        if act == 0:
            del holder[path[-1]]
        elif act == 1 and isinstance(holder, dict):
            holder[draw.choice(("", "z", "intercept", "\u0000", "y:intercept"))] = copy.deepcopy(draw.choice(HOSTILE))
        elif act == 2 and isinstance(holder[path[-1]], (int, float)) and not isinstance(holder[path[-1]], bool):
            holder[path[-1]] = holder[path[-1]] * draw.choice((-1, 1e300, 1e-300, 0))
        else:
            holder[path[-1]] = copy.deepcopy(draw.choice(HOSTILE))
    return value


def as_bytes(value, draw):
    text = json.dumps(value, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")
    act = draw.randrange(8)
    if act == 0:
        return text[:draw.randrange(len(text) + 1)]
    if act == 1:
        bits = bytearray(text)
        for _ in range(draw.choice((1, 8))):
            bits[draw.randrange(len(bits))] ^= 1 << draw.randrange(8)
        return bytes(bits)
    if act == 2:
        at = draw.randrange(len(text))
        return text[:at] + draw.choice((b"[" * 100_000, b"NaN", b"Infinity", b"\xff\xfe", b"/*x*/", b"1e99999", b"\0")) + text[at:]
    return text


class Fits(Case):
    tried = 0

    def test_are_used_or_refused(self):
        self.tables()
        self.succeed("fit", "y.csv", "z.csv", "--response", "y", "--hint", "rows", "--out", "fit.json", "--quiet")
        self.succeed("train-tracker", self.video(), "--epochs", 1, "--quiet", "--out", "m.json")
        fit, model = json.loads(self.read("fit.json")), json.loads(self.read("m.json"))
        commands = ((fit, ("predict", "f.json", "z.csv", "--intervals")), (fit, ("predict", "f.json", "z.csv")),
                    (fit, ("match", "f.json", "y.csv", "z.csv", "--out", "pairs.csv", "--quiet")),
                    (fit, ("gradient", "y.csv", "z.csv", "--response", "y", "--at", "f.json", "--repeat", 1, "--json")),
                    (fit, ("fit", "y.csv", "z.csv", "--response", "y", "--method", "robot", "--start", "f.json", "--json")),
                    (model, ("track", "Walk", "--model", "f.json", "--out", "tracks", "--quiet")))
        for number in range(COUNT):
            draw = random.Random(f"json {SEED} {number}")
            original, command = draw.choice(commands)
            self.write("f.json", as_bytes(mutated(original, draw), draw))
            with self.subTest(seed=SEED, number=number, command=command[0]):
                done = self.run_here(*command)
                Fits.tried += 1
                self.assertIn(done.returncode, DOCUMENTED, done.said)
                if done.returncode > 1:
                    self.assertEqual(done.said.count("\n"), 1, done.said)
                    self.assertNotIn("nlohmann", done.said)
                    self.assertNotIn("json.exception", done.said)
                elif done.stdout and command[0] in ("gradient", "fit"):
                    json.loads(done.stdout)
                elif command[0] == "predict":
                    self.assertNotIn(b"nan", done.stdout)

    @classmethod
    def tearDownClass(cls):
        print(f"JSON files tried: {cls.tried}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
