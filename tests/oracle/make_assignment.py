"""Writes tests/data/assignment.txt: dense costs and the optimal totals found by scipy.optimize.linear_sum_assignment.

Usage: python make_assignment.py > ../data/assignment.txt
Every case: rows columns, then the cost row by row, then the optimal total.
"""
import numpy as np
from scipy.optimize import linear_sum_assignment

rng = np.random.default_rng(20240501)
cases = []
for rows, columns in [(1, 1), (5, 5), (8, 12), (12, 8), (30, 30), (40, 55)]:
    cases.append(rng.normal(size=(rows, columns)))
    cases.append(rng.integers(0, 4, size=(rows, columns)).astype(float))  # many ties
print(len(cases))
for cost in cases:
    row, column = linear_sum_assignment(cost)
    print(*cost.shape)
    for line in cost:
        print(*(repr(float(v)) for v in line))
    print(repr(float(cost[row, column].sum())))
