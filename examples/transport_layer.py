"""The transport layer on its own: plan, potentials, warm starts, and the derivative of the transport cost."""

import numpy as np

from unshuffle import Ball, Transport, transport

rng = np.random.default_rng(0)
a, b = rng.normal(size=(2, 300, 2))
cost = ((a[:, None] - b[None]) ** 2).sum(-1)

plan = transport(cost, epsilon=0.01)
print(f"transport cost {plan.transport_cost:.6f}, value {plan.value:.6f}, marginal error {plan.marginal_error:.1e}")

solver = Transport(epsilon=0.1, relative=False)
direction = rng.normal(size=cost.shape)
for step in range(4):
    plan = solver.solve(cost + 0.01 * (3 - step) * direction)
    print(f"solve {step}: {plan.sinkhorn_steps} Sinkhorn and {plan.newton_steps} Newton steps")

slope = np.sum(plan.gradient() * direction)
ahead, behind = (solver.solve(cost + h * direction).transport_cost for h in (1e-5, -1e-5))
print(f"slope of the transport cost: {slope:.6f}, by differences {(ahead - behind) / 2e-5:.6f}")

few = transport(cost, epsilon=0.01, rows=Ball(spread=0.25), columns=Ball(spread=0.25))
kept = few.coupling.sum(1) * len(a)
print(f"{np.mean(kept < 0.5):.0%} of the rows keep less than half of their mass when 20 % may stay unmatched")
