"""Design matrices of formulaic for a table of numbers, categories and truth values.

Writes tests/data/formula.json: the table as CSV, and of every formula the names of its columns and the columns.
Usage: make_formula.py > tests/data/formula.json   (formulaic 1.2, pandas)
"""

import json
import random

import formulaic
import numpy as np
import pandas as pd

ROWS = 14
FORMULAS = """
y ~ a + b
y ~ a * b
y ~ region
y ~ region - 1
y ~ 0 + region
y ~ C(region)
y ~ C(code)
y ~ a:region
y ~ region:a
y ~ a * region
y ~ region:sex
y ~ region * sex
y ~ region * sex - 1
y ~ 0 + a:region
y ~ member
y ~ member:a
y ~ C(member)
y ~ log(a)
y ~ np.log(a) + np.sqrt(b)
y ~ I(a**2)
y ~ I(a ** 2) + I( a+b )
y ~ {a + b}
y ~ (a + b)**2
y ~ (a + b)^2
y ~ (a + b + region)**2
y ~ (a + b + region)**3 - a:b:region
y ~ a/region
y ~ region/a
y ~ (a + b)/region
y ~ a %in% region
y ~ bs(a, 5)
y ~ bs(a, df=4) + region
y ~ bs(b, df=3)
y ~ bs(a, knots=[3., 5])
y ~ bs(log(a), 4):sex
y ~ `odd name`
y ~ `odd name`:region + log(`odd name`)
y ~ a - 1 + b
y ~ a*b - a
y ~ a + a
y ~ b + a:b + a
y ~ a:b + b:a
y ~ -1 + a
y ~ 0 + 1 + a
y ~ exp(a/10) + log10(b) + log2(b)
y ~ abs(a - b)
y ~ center(a) + scale(b)
y ~ poly(a, 3)
y ~ poly(a, 2, raw=True):sex
y ~ C(region, Treatment('south'))
y ~ C(region, contr.treatment("west")) * a
y ~ C(region, contr.treatment(base='south')) - 1
y ~ C(region, levels=["west", "north", "south"])
y ~ I(a*b):region
y ~ a:a + b
y ~ a**2
y ~ log(a + 1)
y ~ a:region + region
y ~ region:sex + region
y ~ region:sex + a
y ~ 0 + region + sex
y ~ 0 + a + region
log(y) ~ a
y + b ~ a
y ~ (a + b):region
y ~ (a + b) * region
y ~ C(region) * C(sex) * a
y ~ region:sex:a
y ~ (region + sex):a
y ~ region:(a + b)
y ~ 0 + region:sex
y ~ 0 + sex:region + a:region
y ~ a + I(a > 3)
y ~ C(a > 3) + b
y ~ C(region):log(a)
y ~ I(-a + b*2) + I((a + b)/(a - 20))
y ~ I(2*(a - (b - 1))) + I(a**-1) + I(-a**2)
y ~ a - (a + b) + region
y ~ C( code ):C(member)
y ~ sex + sex:region:code
y ~ .
y ~ . - a
y ~ .^2
""".strip().splitlines()


def table():
    draw = random.Random(5)
    regions = ["north", "south", "west"]
    return pd.DataFrame({
        "y": [round(draw.uniform(1, 9), 3) for _ in range(ROWS)],
        "a": [round(draw.uniform(1, 8), 2) for _ in range(ROWS)],
        "b": [round(draw.uniform(1, 8), 2) for _ in range(ROWS)],
        "region": [regions[(at * 5 + at // 4) % 3] for at in range(ROWS)],
        "sex": ["male" if draw.random() < 0.5 else "female" for _ in range(ROWS)],
        "member": [draw.random() < 0.5 for _ in range(ROWS)],
        "code": [draw.choice([1, 2, 10]) for _ in range(ROWS)],
        "odd name": [round(draw.uniform(1, 8), 2) for _ in range(ROWS)],
    })


def columns(matrix):
    return {name: [float(value) for value in matrix[name]] for name in matrix.columns}


def main():
    rows = table()
    made = []
    for formula in FORMULAS:
        matrix = formulaic.model_matrix(formula, rows)
        features = columns(matrix.rhs)
        intercept = features.pop("Intercept", None)
        made.append({"formula": formula, "intercept": intercept is not None, "response": columns(matrix.lhs), "features": features})
    print(json.dumps({"formulaic": formulaic.__version__, "table": rows.to_csv(index=False), "formulas": made}, indent=None))


if __name__ == "__main__":
    np.seterr(all="raise")
    main()
