"""Transport as a layer of a network: any cost matrix in, plan or transport cost out, exact gradients back.

Nothing is unrolled: the backward pass is one linear solve at the solution, whatever the number of steps that led there.
"""

from __future__ import annotations

from typing import Any

import warnings

import torch
from torch.autograd.function import once_differentiable

from ._core import KullbackLeibler, Transport
from ._warnings import ConvergenceWarning

__all__ = ["transport_cost", "transport_plan"]


def transport_cost(cost: Any, epsilon: Any = 1e-2, *, row_weights: Any = None, column_weights: Any = None, objective: Any = "transport", **options: Any) -> Any:
    """<cost, plan> of a cost (n×m) or of each of a batch (...×n×m).

    objective="entropic" gives the optimal value of the smoothed problem instead. epsilon is relative to the largest
    \\|cost\\| of each matrix unless relative=False, and the gradient counts that in. The options are those of
    ``unshuffle.Transport``.
    """
    return _TransportCost.apply(cost, _weights(row_weights), _weights(column_weights), objective, {"epsilon": epsilon, **options})


def transport_plan(cost: Any, epsilon: Any = 1e-2, *, row_weights: Any = None, column_weights: Any = None, **options: Any) -> Any:
    """The plan of a cost (n×m) or of each of a batch (...×n×m); each sums to one. As for ``transport_cost``."""
    return _TransportPlan.apply(cost, _weights(row_weights), _weights(column_weights), {"epsilon": epsilon, **options})


def _weights(weights: Any) -> Any:
    return None if weights is None else torch.as_tensor(weights).detach().cpu().double().contiguous()


def _matrices(tensor: Any) -> Any:
    """All matrices of a tensor, one after another."""
    return tensor.detach().cpu().double().contiguous().reshape(-1, *tensor.shape[-2:])


def _solve(ctx: Any, cost: Any, row_weights: Any, column_weights: Any, options: Any) -> Any:
    """The plan of all matrices of a cost. The backward pass reads the cost too: saved_tensors raises when it was changed."""
    if cost.dim() < 2:
        raise ValueError(f"cost has {cost.dim()} dimensions; rows × columns, after any others, was expected")
    if not cost.is_floating_point():
        raise TypeError(f"cost has the type {cost.dtype}, which holds neither a plan nor a gradient; use cost.double()")
    finite = torch.isfinite(cost)
    if not finite.all():
        cell = (~finite).nonzero()[0].tolist()
        raise ValueError(f"cost{cell} is {cost[tuple(cell)].item()}; finite numbers were expected")
    ctx.save_for_backward(cost)
    ctx.options = options
    ctx.plan = Transport(warm_start=False, **options).solve(_matrices(cost), row_weights, column_weights)
    if not ctx.plan.converged:
        warnings.warn(ctx.plan.message, ConvergenceWarning, stacklevel=4)
    return ctx.plan


def _with_epsilon(gradient: Any, of_epsilon: Any, matrices: Any, options: Any) -> Any:
    """Adds the derivative through a relative epsilon, the largest \\|cost\\| times a constant."""
    if not options.get("relative", True):
        return gradient
    if any(isinstance(options.get(side), KullbackLeibler) for side in ("rows", "columns")):
        raise ValueError("KullbackLeibler has a strength in the unit of the cost: its gradient needs relative=False")
    flat = matrices.flatten(1)
    largest = flat.abs().argmax(1, keepdim=True)
    sign = flat.gather(1, largest).sign()
    gradient.flatten(1).scatter_add_(1, largest, options["epsilon"] * sign * of_epsilon.reshape(-1, 1))
    return gradient


def _values(plan: Any, objective: Any) -> Any:
    return torch.from_dlpack(plan.transport_cost if objective == "transport" else plan.value)


class _TransportCost(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cost: Any, row_weights: Any, column_weights: Any, objective: Any, options: Any) -> Any:
        plan = _solve(ctx, cost, row_weights, column_weights, options)
        if objective not in ("transport", "entropic"):
            raise ValueError(f"objective = {objective} must be transport or entropic")
        ctx.objective = objective
        return _values(plan, objective).reshape(cost.shape[:-2]).to(cost)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, upstream: Any) -> Any:
        (cost,) = ctx.saved_tensors
        matrices = _matrices(cost)
        gradient = torch.from_dlpack(ctx.plan.gradient(ctx.objective))
        # cost/epsilon determines the plan: both objectives are homogeneous of degree one in (cost, epsilon) together.
        values, epsilon = _values(ctx.plan, ctx.objective), torch.from_dlpack(ctx.plan.epsilon)
        of_epsilon = (values - (gradient * matrices).sum((1, 2))) / epsilon
        gradient = _with_epsilon(gradient, of_epsilon, matrices, ctx.options)
        return upstream[..., None, None] * gradient.reshape(cost.shape).to(cost), None, None, None, None


class _TransportPlan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cost: Any, row_weights: Any, column_weights: Any, options: Any) -> Any:
        plan = _solve(ctx, cost, row_weights, column_weights, options)
        return torch.from_dlpack(plan.coupling).reshape(cost.shape).to(cost)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, upstream: Any) -> Any:
        (cost,) = ctx.saved_tensors
        matrices = _matrices(cost)
        gradient = torch.from_dlpack(ctx.plan.pull_back(_matrices(upstream)))
        # The plan does not change when cost and epsilon grow by the same factor.
        of_epsilon = -(gradient * matrices).sum((1, 2)) / torch.from_dlpack(ctx.plan.epsilon)
        gradient = _with_epsilon(gradient, of_epsilon, matrices, ctx.options)
        return gradient.reshape(cost.shape).to(cost), None, None, None
