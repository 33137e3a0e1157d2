#!/usr/bin/env python3
"""transport_cost against autograd through Sinkhorn iterations in torch, forward and backward, time and memory.

Needs the package (pip install .) and torch. Prints a Markdown table; --check exits with 1 when the implicit gradient is
less than 20 times faster or takes more than a fiftieth of the memory. Each way runs in a process of its own, whose peak
resident memory above that before the run is what the way itself needs.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time
import warnings

warnings.filterwarnings("ignore")
SIZE, ITERATIONS, EPSILON = 512, 200, 0.01


def problem(torch):
    torch.manual_seed(0)
    a, b = torch.randn(2, SIZE, 2, dtype=torch.double)
    cost = ((a[:, None] - b[None]) ** 2).sum(-1)
    return (cost / cost.max()).requires_grad_()


def implicit(cost):
    from unshuffle.torch import transport_cost

    return transport_cost(cost, EPSILON, relative=False)


def unrolled(cost):
    import torch

    v = cost.new_zeros(SIZE)
    scaled = cost / EPSILON
    for _ in range(ITERATIONS):
        u = -torch.logsumexp(v - scaled, 1) - math.log(SIZE)
        v = -torch.logsumexp(u[:, None] - scaled, 0) - math.log(SIZE)
    return (cost * torch.exp(u[:, None] + v - scaled)).sum()


def measure(way):
    import torch

    cost = problem(torch)
    small = torch.rand(8, 8, dtype=torch.double, requires_grad=True)
    implicit(small).backward()  # what any first call loads is not counted
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    repeats, forward, backward = (20 if way is implicit else 3), [], []
    for _ in range(repeats):
        cost.grad = None
        begin = time.perf_counter()
        loss = way(cost)
        middle = time.perf_counter()
        loss.backward()
        backward.append(time.perf_counter() - middle)
        forward.append(middle - begin)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    median = lambda times: sorted(times)[len(times) // 2]  # noqa: E731
    return {"forward": median(forward), "backward": median(backward), "memory_mb": memory / 1024,
            "loss": loss.item(), "gradient": cost.grad.flatten()[:5].tolist()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--way", choices=["implicit", "unrolled"])
    arguments = parser.parse_args()
    if arguments.way:
        print(json.dumps(measure(globals()[arguments.way])))
        return 0
    ways = {}
    for way in ("unrolled", "implicit"):
        done = subprocess.run([sys.executable, __file__, "--way", way], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=True)
        ways[way] = json.loads(done.stdout)
    slow, fast = ways["unrolled"], ways["implicit"]
    print(f"{SIZE}×{SIZE} squared distances, ε = {EPSILON} of the largest, double precision, {ITERATIONS} iterations unrolled\n")
    print("| | autograd through Sinkhorn | transport_cost | ratio |\n|---|---|---|---|")
    for name in ("forward", "backward"):
        print(f"| {name} | {1e3 * slow[name]:.0f} ms | {1e3 * fast[name]:.1f} ms | {slow[name] / fast[name]:.0f} |")
    print(f"| memory | {slow['memory_mb']:.0f} MB | {fast['memory_mb']:.1f} MB | {slow['memory_mb'] / fast['memory_mb']:.0f} |")
    enough = slow["backward"] >= 20 * fast["backward"] and slow["memory_mb"] >= 50 * fast["memory_mb"]
    return 0 if enough or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
