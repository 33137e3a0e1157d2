"""Calls of the Python package with arguments drawn at random: each returns finite numbers of the right shape, or raises
ValueError or TypeError with a sentence. In threads, and in children that fork() made, answers are the same.

Usage: python.py
UNSHUFFLE_ATTACKS sets the number of calls, 400 when it is not set; UNSHUFFLE_SEED draws others.
"""

import multiprocessing
import os
import random
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import unshuffle

CALLS = int(os.environ.get("UNSHUFFLE_ATTACKS", "400"))
SEED = int(os.environ.get("UNSHUFFLE_SEED", "1"))
ODD = (np.nan, np.inf, -np.inf, 0.0, 1e308, -1e308, 1e-308, 5e-324)


def array(rng, draw, shape):
    """Numbers in one of many guises."""
    values = np.asarray(rng.normal(size=shape))
    if draw.random() < 0.2 and values.size:
        values.flat[draw.randrange(values.size)] = draw.choice(ODD)
    guise = draw.randrange(8) if values.ndim else 7
    if guise == 0:
        return values.astype(np.float32)
    if guise == 1:
        return np.asfortranarray(values)
    if guise == 2:
        return (100 * values).clip(-1e9, 1e9).astype(int) if np.isfinite(values).all() else values
    if guise == 3:
        return np.ma.array(values, mask=rng.random(shape) < 0.1)
    if guise == 4:
        return values[::-1]
    if guise == 5:
        return np.repeat(values, 2, 0)[::2]
    return values


def sizes(draw, many=3):
    return [draw.choice([0, 1, 2, 3, 7, 20]) for _ in range(many)]


def solve(rng, draw):
    k, n, m = sizes(draw)
    shape = draw.choice([(n, m), (k, n, m), (n,), ()])
    options = draw.choice([{}, {"rows": unshuffle.Ball(draw.choice([0.1, -1, np.nan]))}, {"columns": unshuffle.Free()},
                           {"row_weights": array(rng, draw, draw.choice([n, m]))}, {"relative": False}, {"max_iterations": 0}])
    plan = unshuffle.transport(array(rng, draw, shape), draw.choice([0.01, 1.0, 1e-6, 0, -1, np.nan]), **options)
    found = [plan.coupling, plan.gradient(), plan.row_potential]
    if plan.converged and not all(np.isfinite(each).all() for each in found):
        return f"a plan of {shape} that converged is not finite"
    return "" if plan.coupling.shape == shape else f"the plan of {shape} has the shape {plan.coupling.shape}"


def fit(rng, draw):
    n, m, columns = (max(size, draw.choice([0, 30])) for size in sizes(draw))
    columns = min(columns, 4)
    options = draw.choice([{}, {"method": "robot", "starts": 1}, {"method": "ls"}, {"start": [1.0, 2.0]}, {"threads": draw.choice([1, 2, -1])},
                           {"method": "nobody"}, {"random_state": 3}, {"max_iter": draw.choice([1, -1])}, {"noise_sd": np.nan}])
    model = unshuffle.ShuffledRegressor(**options)
    if draw.random() < 0.5:
        model.fit(array(rng, draw, (n, columns)), array(rng, draw, n))
    else:
        extra = draw.choice([{}, {"known": [(draw.choice([0, 0.5, -1, 99]), 0)]}, {"groups": (rng.integers(0, 3, n), rng.integers(0, 3, m))},
                             {"response_weights": array(rng, draw, n)}, {"prior": [(0, 0, draw.choice([2.0, -1.0, np.nan]))]}])
        model.fit_tables(y=array(rng, draw, n), z=array(rng, draw, (m, columns)), **extra)
    return "" if np.isfinite(model.coef_).all() else f"coefficients of {options} are not finite"


def complaint_of(number):
    draw, rng = random.Random(number), np.random.default_rng(number)
    attack = draw.choice([solve, solve, fit])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            said = attack(rng, draw)
        except (ValueError, TypeError) as error:
            said = "" if len(str(error)) > 10 else f"{error!r} says nothing"
        except Exception as error:  # noqa: BLE001
            said = f"{type(error).__name__}: {error}"
    return f"{number}: {attack.__name__}: {said}" if said else ""


def answer(number):
    """Of a fit that must be the same wherever it is made."""
    sample = unshuffle.simulate("sensing", 200, dim_z=2, shuffle=0.3, snr=50, mean=1, seed=number)
    cost = np.random.default_rng(number).random((60, 40))
    fitted = unshuffle.ShuffledRegressor("robot", starts=2).fit(sample.z, sample.y)
    return (*fitted.coef_, *unshuffle.transport(cost, 0.01).gradient().ravel()[:5])


def main():
    complaints = [said for said in map(complaint_of, range(10**6 * SEED, 10**6 * SEED + CALLS)) if said]
    numbers = range(1, 2 + CALLS // 100)
    expected = [answer(number) for number in numbers]
    with ThreadPoolExecutor(4) as pool:
        if list(pool.map(answer, numbers)) != expected:
            complaints.append("threads have other answers")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        if pool.map_async(answer, numbers).get(timeout=600) != expected:
            complaints.append("children have other answers")
    print("\n".join([*complaints, f"{CALLS} calls, {len(numbers)} fits in threads and children, {len(complaints)} went wrong"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
