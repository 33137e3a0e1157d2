"""Transport as a layer of a network: any cost matrix in, plan or transport cost out, exact gradients back.

Nothing is unrolled: the backward pass is one linear solve at the solution, whatever the number of steps that led there.
"""

from __future__ import annotations

from typing import Any

import warnings

import torch

from ._core import Exact, KullbackLeibler, Transport
from ._warnings import ConvergenceWarning

__all__ = ["transport_cost", "transport_plan"]


def transport_cost(cost: Any, epsilon: Any = 1e-2, *, row_weights: Any = None, column_weights: Any = None, objective: Any = "transport", **options: Any) -> Any:
    """<cost, plan> of a cost (n×m) or of each of a batch (...×n×m).

    A cost of inf forbids a pair. Weights are one for every row (n), or those of each matrix (...×n); columns likewise.
    objective="entropic" gives the optimal value of the smoothed problem instead. epsilon is relative to the largest
    \\|cost\\| of each matrix unless relative=False, and the gradient counts that in. The options are those of
    ``unshuffle.Transport``.

    Costs have gradients of every policy. Weights and epsilon, as tensors, have them where sums are exact (the default); there
    gradients may be differentiated once more.
    """
    if objective not in ("transport", "entropic"):
        raise ValueError(f"objective = {objective} must be transport or entropic")
    return _solved(cost, epsilon, row_weights, column_weights, objective, options)


def transport_plan(cost: Any, epsilon: Any = 1e-2, *, row_weights: Any = None, column_weights: Any = None, **options: Any) -> Any:
    """The plan of a cost (n×m) or of each of a batch (...×n×m); each sums to one. As for ``transport_cost``."""
    return _solved(cost, epsilon, row_weights, column_weights, "plan", options)


def _solved(cost: Any, epsilon: Any, row_weights: Any, column_weights: Any, result: str, options: Any) -> Any:
    if any(torch._C._functorch.is_batchedtensor(one) for one in (cost, epsilon, row_weights, column_weights) if torch.is_tensor(one)):
        raise TypeError("vmap: leading axes are a batch already; call the layer with the whole tensor")
    epsilon = epsilon if torch.is_tensor(epsilon) else torch.tensor(float(epsilon), dtype=torch.double)
    weights = [None if one is None else torch.as_tensor(one) for one in (row_weights, column_weights)]
    if any(one is not None and one.requires_grad for one in (epsilon, *weights)) and not _is_exact(options):
        raise ValueError("gradients in weights and epsilon need exact sums: leave rows and columns out, or detach them")
    return _Layer.apply(cost, *weights, epsilon, result, options)


def _is_exact(options: Any) -> bool:
    return all(isinstance(options.get(side, Exact()), Exact) for side in ("rows", "columns"))


def _matrices(tensor: Any) -> Any:
    """All matrices of a tensor, one after another."""
    return tensor.detach().cpu().double().contiguous().reshape(-1, *tensor.shape[-2:])


def _require_usable(cost: Any) -> None:
    if cost.dim() < 2:
        raise ValueError(f"cost has {cost.dim()} dimensions; rows × columns, after any others, was expected")
    if not cost.is_floating_point():
        raise TypeError(f"cost has the type {cost.dtype}, which holds neither a plan nor a gradient; use cost.double()")
    wrong = torch.isnan(cost) | (cost == -torch.inf)
    if wrong.any():
        cell = wrong.nonzero()[0].tolist()
        raise ValueError(f"cost{cell} is {cost[tuple(cell)].item()}; finite numbers, or inf for a forbidden pair, were expected")
    for axis, line in ((-1, "row"), (-2, "column")):
        closed = torch.isinf(cost).all(axis)
        if closed.any():
            raise ValueError(f"cost: every pair of {line} {closed.nonzero()[0].tolist()} is forbidden, so it has no partner")


def _weights_of(weights: Any, batch: Any) -> Any:
    """For one matrix after another, or the same for all."""
    if weights is None:
        return None
    weights = weights.detach().cpu().double()
    return weights.contiguous() if weights.dim() < 2 else weights.expand(*batch, weights.shape[-1]).reshape(-1, weights.shape[-1]).contiguous()


def _largest(matrices: Any) -> Any:
    """The largest |cost| of each matrix among pairs that are not forbidden; by its place, so that it has a derivative."""
    flat = torch.where(torch.isinf(matrices), torch.zeros_like(matrices), matrices).flatten(1)
    return flat.gather(1, flat.detach().abs().argmax(1, keepdim=True)).abs().squeeze(1)


def _solve(cost: Any, row_weights: Any, column_weights: Any, epsilon: float, options: Any) -> Any:
    matrices, batch = _matrices(cost), cost.shape[:-2]
    weights = [_weights_of(one, batch) for one in (row_weights, column_weights)]
    forbidden = torch.isinf(matrices)
    if not forbidden.any():
        plan = Transport(epsilon, warm_start=False, **options).solve(matrices, *weights)
    else:
        # Far enough above the other costs that nothing goes there: e^-2000 is 0.
        largest = _largest(matrices)
        scale = float(largest.max()) or 1.0
        smoothing = epsilon * scale if options.get("relative", True) else epsilon
        if options.get("relative", True) and float(largest.min()) != float(largest.max()):
            raise ValueError("forbidden pairs in a batch need relative=False: epsilon is of each matrix")
        finite = torch.where(forbidden, torch.full_like(matrices, 10 * scale + 2000 * smoothing), matrices)
        plan = Transport(smoothing, warm_start=False, **{**options, "relative": False}).solve(finite, *weights)
        if float(torch.from_dlpack(plan.coupling)[forbidden].sum()) > 1e-9:
            raise ValueError("cost: no plan with these sums avoids the forbidden pairs")
    if not plan.converged:
        warnings.warn(plan.message, ConvergenceWarning, stacklevel=5)
    return plan


def _of_plan(plan: Any, result: str) -> Any:
    if result == "plan":
        return torch.from_dlpack(plan.coupling)
    return torch.as_tensor(plan.transport_cost if result == "transport" else plan.value, dtype=torch.double).reshape(-1)


def _with_epsilon(gradient: Any, of_epsilon: Any, matrices: Any, epsilon: float, options: Any) -> Any:
    """Adds the derivative through a relative epsilon, the largest \\|cost\\| times a constant."""
    if not options.get("relative", True):
        return gradient
    if any(isinstance(options.get(side), KullbackLeibler) for side in ("rows", "columns")):
        raise ValueError("KullbackLeibler has a strength in the unit of the cost: its gradient needs relative=False")
    flat = torch.where(torch.isinf(matrices), torch.zeros_like(matrices), matrices).flatten(1)
    largest = flat.abs().argmax(1, keepdim=True)
    sign = flat.gather(1, largest).sign()
    gradient.flatten(1).scatter_add_(1, largest, epsilon * sign * of_epsilon.reshape(-1, 1))
    return gradient


# A plan with exact sums is P = exp(-C/ε + u + v) for the u, v that give it the sums a and b. From the plan found, two steps
# of Newton on the sums lead nowhere, but their derivatives are those of u and v: one step has the first ones, two have the
# second ones. All of it is plain operations of torch, so it may be differentiated again.
def _smooth(plan: Any, cost: Any, row_weights: Any, column_weights: Any, epsilon: Any, result: str, options: Any) -> Any:
    matrices = cost.cpu().double().reshape(-1, *cost.shape[-2:])
    batch, (rows, columns) = cost.shape[:-2], cost.shape[-2:]
    found = torch.from_dlpack(plan.coupling).reshape(matrices.shape)
    open_pairs = torch.isfinite(matrices)
    matrices = torch.where(open_pairs, matrices, torch.zeros_like(matrices))
    smoothing = epsilon.cpu().double() * (_largest(matrices) if options.get("relative", True) else torch.ones(len(matrices), dtype=torch.double))
    a, b = (_normalised(one, size, batch, len(matrices)) for one, size in ((row_weights, rows), (column_weights, columns)))
    scaled = matrices / smoothing[:, None, None]
    moved = scaled.detach() - scaled
    null = torch.cat([torch.ones(rows, dtype=torch.double), -torch.ones(columns, dtype=torch.double)])
    u, v = torch.zeros_like(a), torch.zeros_like(b)
    for _ in range(2):
        now = found * torch.exp(moved + u[:, :, None] + v[:, None, :])
        sums = torch.cat([now.sum(2), now.sum(1)], 1)
        jacobian = torch.diag_embed(sums + (sums.detach() == 0) + 1e-14) + null[:, None] * null / len(null) ** 2
        jacobian = jacobian + torch.cat([torch.nn.functional.pad(now, (rows, 0)), torch.nn.functional.pad(now.mT, (0, columns))], 1)
        step = torch.linalg.solve(jacobian, sums - torch.cat([a, b], 1))
        u, v = u - step[:, :rows], v - step[:, rows:]
    now = found * torch.exp(moved + u[:, :, None] + v[:, None, :])
    if result == "plan":
        return now.reshape(cost.shape)
    value = (now * matrices).sum((1, 2))
    if result == "entropic":
        independent = a[:, :, None] * b[:, None, :]
        ratio = torch.where(now > 0, now / torch.where(independent > 0, independent, torch.ones_like(independent)), torch.ones_like(now))
        value = value + smoothing * ((now * ratio.log()).sum((1, 2)) - 1)
    return value.reshape(batch)


def _normalised(weights: Any, size: int, batch: Any, count: int) -> Any:
    if weights is None:
        return torch.full((count, size), 1 / size, dtype=torch.double)
    weights = weights.cpu().double().expand(*batch, size).reshape(-1, size)
    return weights / weights.sum(1, keepdim=True)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cost: Any, row_weights: Any, column_weights: Any, epsilon: Any, result: str, options: Any) -> Any:
        _require_usable(cost)
        ctx.save_for_backward(cost, row_weights, column_weights, epsilon)  # reading them raises if they were changed
        ctx.result, ctx.options = result, options
        ctx.plan = _solve(cost, row_weights, column_weights, float(epsilon), options)
        made = _of_plan(ctx.plan, result)
        if result == "plan":
            return made.reshape(cost.shape).to(cost).masked_fill(torch.isinf(cost), 0)
        return made.reshape(cost.shape[:-2]).to(cost)

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        cost, row_weights, column_weights, epsilon = ctx.saved_tensors
        again = torch.is_grad_enabled()
        if not again and not any(ctx.needs_input_grad[1:4]):
            return _gradient(ctx, cost, float(epsilon), upstream), None, None, None, None, None
        if not _is_exact(ctx.options):
            raise RuntimeError("second derivatives need exact sums: leave rows and columns out")
        inputs = (cost, row_weights, column_weights, epsilon)
        wanted = [one for one, needed in zip(inputs, ctx.needs_input_grad) if needed]
        with torch.enable_grad():
            value = _smooth(ctx.plan, *inputs, ctx.result, ctx.options).to(upstream)
            found = iter(torch.autograd.grad(value, wanted, upstream, create_graph=again))
        return (*(next(found) if needed else None for needed in ctx.needs_input_grad[:4]), None, None)


def _gradient(ctx: Any, cost: Any, epsilon: float, upstream: Any) -> Any:
    """That of the cost alone, by the solver."""
    matrices = _matrices(cost)
    finite = torch.where(torch.isinf(matrices), torch.zeros_like(matrices), matrices)
    of_plan = torch.as_tensor(ctx.plan.epsilon, dtype=torch.double).reshape(-1)
    if ctx.result == "plan":
        gradient = torch.from_dlpack(ctx.plan.pull_back(_matrices(upstream)))
        # The plan does not change when cost and epsilon grow by the same factor.
        of_epsilon = -(gradient * finite).sum((1, 2)) / of_plan
    else:
        gradient = torch.from_dlpack(ctx.plan.gradient(ctx.result))
        # cost/epsilon determines the plan: both objectives are homogeneous of degree one in (cost, epsilon) together.
        of_epsilon = (_of_plan(ctx.plan, ctx.result) - (gradient * finite).sum((1, 2))) / of_plan
    gradient = _with_epsilon(gradient, of_epsilon, matrices, epsilon, ctx.options)
    gradient = torch.where(torch.isinf(matrices), torch.zeros_like(gradient), gradient).reshape(cost.shape).to(cost)
    return gradient if ctx.result == "plan" else upstream[..., None, None] * gradient
