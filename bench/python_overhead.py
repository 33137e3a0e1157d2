#!/usr/bin/env python3
"""Overhead of a fit from Python over the C++ library's own time, which every fit reports. Needs: pip install .

Prints a Markdown table; --check exits with 1 when it is 5 % or more for any method.
"""

import sys
import time

from unshuffle import ShuffledRegressor, simulate

ROWS = 100_000


def main():
    sample = simulate("sensing", ROWS, dim_z=5, shuffle=0.5, snr=100, mean=1, seed=0)
    print(f"n = {ROWS}, 5 features, half of the rows shuffled\n\n| method | C++ | Python | overhead |\n|---|---|---|---|")
    worst = 0.0
    for method in ("auto", "robot"):
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            model = ShuffledRegressor(method).fit(sample.z, sample.y)
            times.append((time.perf_counter() - begin, model.result_["seconds"]))
        taken, library = min(times)
        worst = max(worst, taken / library - 1)
        print(f"| {method} | {library:.3f} s | {taken:.3f} s | {100 * (taken / library - 1):.1f} % |")
    return 1 if "--check" in sys.argv and worst >= 0.05 else 0


if __name__ == "__main__":
    sys.exit(main())
