"""Transport as a layer of a network: any cost matrix in, plan or transport cost out, exact gradients back.

Nothing is unrolled: the backward pass is one linear solve at the solution, whatever the number of steps that led there.
"""

from __future__ import annotations

import warnings

import torch
from torch.autograd.function import once_differentiable

from ._core import KullbackLeibler, Transport
from ._warnings import ConvergenceWarning

__all__ = ["transport_cost", "transport_plan"]


def transport_cost(cost, epsilon=1e-2, *, row_weights=None, column_weights=None, objective="transport", **options):
    """<cost, plan> of a cost (n×m) or of each of a batch (...×n×m).

    objective="entropic" gives the optimal value of the smoothed problem instead. epsilon is relative to the largest
    \\|cost\\| of each matrix unless relative=False, and the gradient counts that in. The options are those of
    ``unshuffle.Transport``.
    """
    return _TransportCost.apply(cost, _weights(row_weights), _weights(column_weights), objective, {"epsilon": epsilon, **options})


def transport_plan(cost, epsilon=1e-2, *, row_weights=None, column_weights=None, **options):
    """The plan of a cost (n×m) or of each of a batch (...×n×m); each sums to one. As for ``transport_cost``."""
    return _TransportPlan.apply(cost, _weights(row_weights), _weights(column_weights), {"epsilon": epsilon, **options})


def _weights(weights):
    return None if weights is None else torch.as_tensor(weights).detach().cpu().double().contiguous()


class _Solution:
    """Solvers and plans of all matrices of a tensor."""

    def __init__(self, cost, row_weights, column_weights, options):
        if cost.dim() < 2:
            raise ValueError(f"cost has {cost.dim()} dimensions; rows × columns, after any others, was expected")
        self.like = cost
        self.matrices = cost.detach().cpu().double().contiguous().reshape(-1, *cost.shape[-2:])
        self.options = options
        self.solver = Transport(warm_start=False, **options)
        self.plan = self.solver.solve(self.matrices, row_weights, column_weights)
        if not self.plan.converged:
            warnings.warn(self.plan.message, ConvergenceWarning, stacklevel=4)

    def tensor(self, numbers, shape):
        return torch.from_dlpack(numbers).reshape(shape).to(self.like)

    def with_epsilon(self, gradient, of_epsilon):
        """Adds what moves through a relative epsilon, the largest \\|cost\\| times a constant."""
        if not self.options.get("relative", True):
            return gradient
        if any(isinstance(self.options.get(side), KullbackLeibler) for side in ("rows", "columns")):
            raise ValueError("KullbackLeibler has a strength in the unit of the cost: its gradient needs relative=False")
        flat = self.matrices.flatten(1)
        largest = flat.abs().argmax(1, keepdim=True)
        sign = flat.gather(1, largest).sign()
        gradient.flatten(1).scatter_add_(1, largest, self.options["epsilon"] * sign * of_epsilon.reshape(-1, 1))
        return gradient


class _TransportCost(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cost, row_weights, column_weights, objective, options):
        solution = _Solution(cost, row_weights, column_weights, options)
        if objective not in ("transport", "entropic"):
            raise ValueError(f"objective = {objective} must be transport or entropic")
        ctx.solution, ctx.objective = solution, objective
        values = solution.plan.transport_cost if objective == "transport" else solution.plan.value
        return solution.tensor(values, cost.shape[:-2])

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        solution = ctx.solution
        gradient = torch.from_dlpack(solution.solver.weights(solution.plan, ctx.objective))
        values = torch.from_dlpack(solution.plan.transport_cost if ctx.objective == "transport" else solution.plan.value)
        # cost/epsilon determines the plan: both objectives are homogeneous of degree one in (cost, epsilon) together.
        epsilon = torch.from_dlpack(solution.plan.epsilon)
        of_epsilon = (values - (gradient * solution.matrices).sum((1, 2))) / epsilon
        gradient = solution.with_epsilon(gradient, of_epsilon)
        gradient = gradient.reshape(solution.like.shape).to(solution.like)
        return upstream[..., None, None] * gradient, None, None, None, None


class _TransportPlan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cost, row_weights, column_weights, options):
        ctx.solution = _Solution(cost, row_weights, column_weights, options)
        return ctx.solution.tensor(ctx.solution.plan.coupling, cost.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        solution = ctx.solution
        cotangent = upstream.detach().cpu().double().contiguous().reshape(solution.matrices.shape)
        gradient = torch.from_dlpack(solution.solver.pull_back(solution.plan, cotangent))
        # The plan does not change when cost and epsilon grow by the same factor.
        of_epsilon = -(gradient * solution.matrices).sum((1, 2)) / torch.from_dlpack(solution.plan.epsilon)
        gradient = solution.with_epsilon(gradient, of_epsilon)
        return gradient.reshape(solution.like.shape).to(solution.like), None, None, None
