#!/usr/bin/env python3
"""The dense transport solver beside POT, regot and OTT-JAX: one table of processor times, on one thread each.

    cmake --build --preset release --target bench_transport_peers
    python3 bench/transport_peers.py [--quick] [--no-ott] [--budget SECONDS]

Makes a virtual environment in build/peers and installs POT, regot (where PyPI has it compiled) and OTT-JAX there. Every program gets the same cost matrices
(uniform numbers, and squared distances between normal points in R², R³ and R¹⁰, divided by the largest) and must reach
a marginal error, Σ|sums - weights| over rows and columns, of 1e-6. `with gradient`: of the transport cost <C, Γ> with
respect to C, differentiated through the plan; POT and regot have none. `fails`: the error was not reached within the budget.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "peers"
ERROR = 1e-6
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
              "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


def inside_environment(arguments):
    """Runs this script again by the environment's Python, where the other programs are."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "numpy", "scipy", "POT"], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "regot"], check=False)
    if not arguments.no_ott and subprocess.run([str(python), "-c", "import ott"], capture_output=True).returncode != 0:
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "ott-jax"], check=False)
    code = subprocess.run([str(python), __file__, "--inside", *sys.argv[1:]], env={**os.environ, **ONE_THREAD})
    sys.exit(code.returncode)


def cost_matrix(kind, n, generator):
    import numpy as np

    if kind == "uniform":
        return generator.random((n, n))
    dimension = int(kind[1:])
    x, y = generator.standard_normal((n, dimension)), 0.8 * generator.standard_normal((n, dimension)) + 0.3
    cost = (x**2).sum(1)[:, None] + (y**2).sum(1)[None, :] - 2 * x @ y.T
    cost = np.maximum(cost, 0)
    return cost / cost.max()


def marginal_error(plan):
    import numpy as np

    n, m = plan.shape
    return np.abs(plan.sum(1) - 1 / n).sum() + np.abs(plan.sum(0) - 1 / m).sum()


def unshuffle(program, path, cost, epsilon, repeats):
    """Seconds of the solve and of the solve with gradient."""
    n, m = cost.shape
    line = subprocess.run([program, path, str(n), str(m), str(epsilon), str(ERROR), str(repeats)], check=True,
                          capture_output=True, text=True).stdout.split()
    return (float(line[4]), float(line[5])) if float(line[0]) <= ERROR else (None, None)


def least_seconds(repeats, work):
    """Of processor time; the answer is that of the last run."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        answer = work()
        times.append(time.process_time() - begin)
    return min(times), answer


def pot(method, cost, epsilon, repeats, budget):
    """POT measures its error otherwise, so its threshold is lowered until ours is reached; that run is timed."""
    import numpy as np
    import ot

    n = cost.shape[0]
    weights = np.full(n, 1 / n)
    passes = 40 if method == "sinkhorn_log" else 4  # of memory, about a nanosecond for an entry each
    most = max(10, int(budget / (passes * 1e-9 * n * n)))
    begin = time.process_time()
    for threshold in (1e-6, 3e-7, 1e-7, 3e-8, 1e-8):
        def solve():
            return ot.sinkhorn(weights, weights, cost, epsilon, method=method, numItermax=most, stopThr=threshold)
        seconds, plan = least_seconds(1, solve)
        if np.isfinite(plan).all() and marginal_error(plan) <= ERROR:
            return min(seconds, least_seconds(repeats, solve)[0])
        if time.process_time() - begin > budget:
            break
    return None


def regot(method, cost, epsilon, repeats, budget):
    """Its tolerance is for a gradient in another norm, so it is lowered as POT's is."""
    import numpy as np
    import regot as library

    n = cost.shape[0]
    weights = np.full(n, 1 / n)
    costs, most = np.asfortranarray(cost), max(10, int(budget / (20e-9 * n * n)))
    begin = time.process_time()
    for tolerance in (1e-6, 1e-7, 1e-8):
        def solve():
            return np.asarray(getattr(library, method)(costs, weights, weights, epsilon, tol=tolerance, max_iter=most).plan)
        seconds, plan = least_seconds(1, solve)
        if np.isfinite(plan).all() and marginal_error(plan) <= ERROR:
            return min(seconds, least_seconds(repeats - 1, solve)[0]) if repeats > 1 else seconds
        if time.process_time() - begin > budget:
            break
    return None


def ott(cost, epsilon, repeats, budget):
    """Seconds of the solve and of the solve with gradient, compiled before."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from ott.geometry import geometry
    from ott.solvers.linear import implicit_differentiation, sinkhorn
    from ott.problems.linear import linear_problem

    jax.config.update("jax_enable_x64", True)
    n = cost.shape[0]
    most = max(10, int(budget / (20e-9 * n * n)))
    solver = sinkhorn.Sinkhorn(threshold=ERROR, max_iterations=most, lse_mode=epsilon < 5e-3,
                               implicit_diff=implicit_differentiation.ImplicitDiff())

    def transport_cost(c):
        out = solver(linear_problem.LinearProblem(geometry.Geometry(cost_matrix=c, epsilon=epsilon)))
        return jnp.sum(out.matrix * c), out.matrix

    device = jnp.asarray(cost)
    forward, both = jax.jit(transport_cost), jax.jit(jax.value_and_grad(transport_cost, has_aux=True))
    plan = np.asarray(forward(device)[1])
    if not (np.isfinite(plan).all() and marginal_error(plan) <= 1.01 * ERROR):
        return None, None
    solve = least_seconds(repeats, lambda: forward(device)[0].block_until_ready())[0]
    jax.block_until_ready(both(device))
    return solve, least_seconds(repeats, lambda: jax.block_until_ready(both(device)))[0]


def text(seconds):
    if seconds is None:
        return "fails"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def main(arguments):
    import numpy as np

    warnings.filterwarnings("ignore")
    with_ott = not arguments.no_ott
    if with_ott:
        try:
            import ott as _  # noqa: F401
        except ImportError:
            with_ott = False
    try:
        import regot as library
        peers = [m for m in ("sinkhorn_lbfgs_dual", "sinkhorn_splr", "sinkhorn_ssns") if hasattr(library, m)]
    except ImportError:
        peers = []
    programs = [p for p in (arguments.program, arguments.earlier) if p]
    names = ["unshuffle", "with gradient"] + (["earlier", "with gradient"] if arguments.earlier else [])
    names += ["POT sinkhorn", "POT sinkhorn_log", *(f"regot {m.removeprefix('sinkhorn_')}" for m in peers)] + (["OTT-JAX", "with gradient"] if with_ott else [])
    print("| cost | n = m | ε / max C | " + " | ".join(names) + " |\n" + "|---" * (3 + len(names)) + "|", flush=True)
    generator = np.random.default_rng(1)
    for n in [100, 300] if arguments.quick else arguments.sizes:
        repeats = 20 if n <= 300 else 3
        for kind in ("uniform", "R2", "R3", "R10"):
            cost = cost_matrix(kind, n, generator)
            with tempfile.NamedTemporaryFile() as file:
                file.write(cost.tobytes(order="F"))
                file.flush()
                for epsilon in (1e-1, 1e-2, 1e-3, 1e-4):
                    cells = [t for program in programs for t in unshuffle(program, file.name, cost, epsilon, repeats)]
                    cells += [pot(m, cost, epsilon, 1 if n > 300 else 3, arguments.budget)
                              for m in ("sinkhorn", "sinkhorn_log")]
                    cells += [regot(m, cost, epsilon, 1 if n > 300 else 3, arguments.budget) for m in peers]
                    if with_ott:
                        cells += ott(cost, epsilon, 2, arguments.budget)
                    print(f"| {kind} | {n} | {epsilon:.0e} | " + " | ".join(text(t) for t in cells) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bench_transport_peers"))
    parser.add_argument("--earlier", help="bench_transport_peers of another build, to set beside this one")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000, 2000])
    parser.add_argument("--quick", action="store_true", help="n = 100 and 300 only")
    parser.add_argument("--no-ott", action="store_true", help="without OTT-JAX")
    parser.add_argument("--budget", type=float, default=20, help="processor seconds for a cell of another program")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    main(chosen) if chosen.inside else inside_environment(chosen)
