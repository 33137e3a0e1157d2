"""Threads, forks and signals: what surrounds a computation must neither hang it nor be hung by it."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from unshuffle import ShuffledRegressor, Transport, simulate, transport

pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.ConvergenceWarning")
rng = np.random.default_rng(3)
cost = rng.random((300, 200))  # large enough for several threads
sample = simulate("sensing", 400, dim_z=2, shuffle=0.3, snr=100, mean=1)


def fit():
    return ShuffledRegressor(method="robot", starts=2, n_jobs=2).fit(sample.z, sample.y).coef_


def solve():
    return transport(cost, 0.01).gradient()


@pytest.mark.parametrize("work", [fit, solve])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_child_that_fork_made_can_do_what_its_parent_did(work):
    expected = work()
    with get_context("fork").Pool(1) as pool:
        found = pool.apply_async(work).get(timeout=600)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(work(), expected)


def test_fits_side_by_side_are_those_one_after_the_other():
    expected = fit()
    with ThreadPoolExecutor(4) as pool:
        for found in [pool.submit(fit) for _ in range(8)]:
            np.testing.assert_array_equal(found.result(), expected)


def test_plans_of_one_solver_may_be_differentiated_by_many_threads():
    solver = Transport(0.05)
    plan = solver.solve(cost)
    expected = plan.gradient()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: plan.gradient() if k % 2 else solver.solve(cost[k:]).coupling.sum(), range(12)))
    for k in range(1, 12, 2):
        np.testing.assert_array_equal(found[k], expected)
    np.testing.assert_allclose(found[::2], 1)


LONG = """
import numpy as np
from unshuffle import ShuffledRegressor
rng = np.random.default_rng(0)
z = rng.normal(size=(3000, 3))
y = z @ rng.normal(size=(3, 2)) + 0.1 * rng.normal(size=(3000, 2))
print("begins", flush=True)
try:
    ShuffledRegressor(**{options}).fit_tables(y=y[rng.permutation(3000)], z=z)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("options", [{"method": "entropic"}, {"method": "robot", "starts": 4}, {"method": "am", "starts": 4}])
def test_ctrl_c_ends_a_long_fit(options):
    job = subprocess.Popen([sys.executable, "-c", LONG.replace("{options}", repr(options))], stdout=subprocess.PIPE, text=True)
    try:
        assert job.stdout.readline() == "begins\n"
        time.sleep(1)
        job.send_signal(signal.SIGINT)
        said, _ = job.communicate(timeout=600)
    finally:
        job.kill()
    assert said == "interrupted\n" and job.returncode == 0


def test_what_a_progress_function_raises_ends_the_fit():
    def fail(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ShuffledRegressor(method="robot", progress=fail).fit(sample.z, sample.y)


def test_a_progress_function_is_called_from_the_thread_that_fits():
    seen = set()
    progress = lambda done, total: seen.add(threading.get_ident())  # noqa: E731
    ShuffledRegressor(method="robot", progress=progress).fit(sample.z, sample.y)
    assert seen == {threading.get_ident()}
