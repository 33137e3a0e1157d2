import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; Debian: python3-torch")
pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy")

from unshuffle import Ball, ConvergenceWarning, KullbackLeibler, transport  # noqa: E402
from unshuffle.torch import transport_cost, transport_plan  # noqa: E402


def costs(*shape):
    return torch.rand(shape, dtype=torch.double, generator=torch.Generator().manual_seed(0)).requires_grad_()


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("policy", [None, Ball(0.3)])
@pytest.mark.parametrize("shape", [(5, 4), (2, 1, 3, 4)])
def test_gradients_agree_with_differences(relative, policy, shape):
    options = {"relative": relative, "tolerance": 1e-13}
    if policy:
        options |= {"rows": policy, "columns": policy}
    cost = costs(*shape)
    assert torch.autograd.gradcheck(lambda c: transport_cost(c, 0.1, **options), cost)
    assert torch.autograd.gradcheck(lambda c: transport_cost(c, 0.1, objective="entropic", **options), cost)
    assert torch.autograd.gradcheck(lambda c: transport_plan(c, 0.1, **options), cost)


def test_agrees_with_autograd_through_sinkhorn():
    cost = costs(6, 5)
    epsilon, v = 0.2, torch.zeros(5, dtype=torch.double)
    for _ in range(300):
        u = -torch.logsumexp(v - cost / epsilon, 1) - np.log(6)
        v = -torch.logsumexp(u[:, None] - cost / epsilon, 0) - np.log(5)
    unrolled = (cost * torch.exp(u[:, None] + v - cost / epsilon)).sum()
    (expected,) = torch.autograd.grad(unrolled, cost)
    ours = transport_cost(cost, epsilon, relative=False)
    (gradient,) = torch.autograd.grad(ours, cost)
    assert torch.allclose(ours, unrolled, atol=1e-10)
    assert torch.allclose(gradient, expected, atol=1e-8)


def test_same_plan_as_numpy():
    cost = costs(3, 6, 4)
    plan = transport_plan(cost, 0.05)
    expected = transport(np.array(cost.tolist()), 0.05).coupling
    assert torch.allclose(plan, torch.tensor(expected.tolist(), dtype=torch.double))


def test_keeps_type_shape_and_gradient_of_single_precision():
    cost = costs(2, 3, 4).detach().float().requires_grad_()
    weights = torch.tensor([0.2, 0.3, 0.5])
    value = transport_cost(cost, 0.1, row_weights=weights)
    assert value.dtype == torch.float32 and value.shape == (2,)
    value.sum().backward()
    assert cost.grad.dtype == torch.float32 and cost.grad.shape == cost.shape
    assert torch.allclose(transport_plan(cost, 0.1, row_weights=weights).sum(-1), weights.expand(2, 3))


def test_strided_costs():
    cost = costs(4, 6)
    assert torch.allclose(transport_plan(cost.T, 0.1), transport_plan(cost, 0.1).T)


@pytest.mark.parametrize("layer", [transport_cost, transport_plan])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_refuses_a_cost_that_changed_before_the_backward_pass(layer, dtype):
    leaf = costs(5, 4).detach().to(dtype).requires_grad_()
    cost = leaf * 1
    loss = layer(cost, 0.1).square().sum()
    cost.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_the_graph_may_be_kept_and_solved_beside_others():
    first, second = costs(5, 4), costs(2, 5, 4)
    loss, other = transport_cost(first, 0.1), transport_cost(second, 0.1).sum()
    (once,) = torch.autograd.grad(loss, first, retain_graph=True)
    torch.autograd.grad(other, second)
    (again,) = torch.autograd.grad(loss, first)
    (alone,) = torch.autograd.grad(transport_cost(first, 0.1), first)
    assert torch.equal(once, again) and torch.equal(once, alone)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, first)


LAYERS = [transport_cost, lambda *a, **k: transport_cost(*a, objective="entropic", **k), transport_plan]


@pytest.mark.parametrize("layer", LAYERS, ids=["cost", "value", "plan"])
@pytest.mark.parametrize("relative", [True, False])
def test_derivatives_in_weights_and_epsilon_and_second_ones_agree_with_differences(layer, relative):
    cost = costs(2, 3, 4)
    rows = torch.tensor([0.5, 0.3, 0.4], dtype=torch.double, requires_grad=True)
    columns = (0.3 + costs(2, 4).detach()).requires_grad_()
    epsilon = torch.tensor(0.2, dtype=torch.double, requires_grad=True)

    def solved(c, a, b, e):
        return layer(c, e, row_weights=a, column_weights=b, relative=relative, tolerance=1e-13)

    assert torch.autograd.gradcheck(solved, (cost, rows, columns, epsilon))
    assert torch.autograd.gradgradcheck(solved, (cost, rows, columns, epsilon))


def test_twice_differentiated_as_autograd_through_sinkhorn():
    cost, epsilon = costs(4, 4), 0.3

    def unrolled(c):
        v = torch.zeros(4, dtype=torch.double)
        for _ in range(300):
            u = -torch.logsumexp(v - c / epsilon, 1) - np.log(4)
            v = -torch.logsumexp(u[:, None] - c / epsilon, 0) - np.log(4)
        return (c * torch.exp(u[:, None] + v - c / epsilon)).sum()

    ours = torch.autograd.functional.hessian(lambda c: transport_cost(c, epsilon, relative=False, tolerance=1e-13), cost)
    assert torch.allclose(ours, torch.autograd.functional.hessian(unrolled, cost), atol=1e-7)


def test_batched_weights_are_those_of_each_matrix():
    cost, weights = costs(3, 4, 5).detach(), 0.2 + torch.rand(3, 4, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    together = transport_plan(cost, 0.1, row_weights=weights)
    for k in range(3):
        assert torch.equal(together[k], transport_plan(cost[k], 0.1, row_weights=weights[k]))
    with pytest.raises(ValueError, match="row weights"):
        transport(np.array(cost.tolist()), 0.1, row_weights=np.array(weights[:2].tolist()))


def test_infinite_costs_forbid_pairs():
    cost = costs(4, 4).detach()
    cost[0, 1] = cost[2, 3] = torch.inf
    cost.requires_grad_()
    plan = transport_plan(cost, 0.1, tolerance=1e-13)
    assert plan[0, 1] == plan[2, 3] == 0
    assert torch.allclose(plan.sum(1), torch.full((4,), 0.25, dtype=torch.double))
    dear = torch.where(torch.isinf(cost), torch.full_like(cost, 50.0), cost)  # e^-500 is 0 as well
    smoothing = 0.1 * float(cost[torch.isfinite(cost)].max())
    assert torch.allclose(plan, transport_plan(dear, smoothing, relative=False, tolerance=1e-13), atol=1e-10)
    (gradient,) = torch.autograd.grad(transport_cost(cost, 0.1, relative=False), cost)
    assert gradient[0, 1] == gradient[2, 3] == 0 and torch.isfinite(gradient).all()
    closed = costs(3, 3).detach()
    closed[1] = torch.inf
    with pytest.raises(ValueError, match=r"every pair of row \[1\] is forbidden"):
        transport_plan(closed)
    crowded = torch.full((3, 3), torch.inf, dtype=torch.double)
    crowded[:, 0] = crowded[0] = 1.0  # rows 1 and 2 have column 0 only
    with pytest.raises(ValueError, match="no plan with these sums avoids the forbidden pairs"):
        transport_plan(crowded, 0.1)


def test_refuses_vmap_in_words():
    vmap = torch.vmap if hasattr(torch, "vmap") else pytest.importorskip("functorch").vmap
    with pytest.raises(TypeError, match="leading axes are a batch already"):
        vmap(lambda c: transport_cost(c, 0.1))(costs(2, 3, 4).detach())


@pytest.mark.parametrize("layer", [transport_cost, transport_plan])
def test_refuses_derivatives_it_does_not_have(layer):
    cost, policy = costs(4, 3), {"rows": Ball(0.3), "columns": Ball(0.3)}
    (gradient,) = torch.autograd.grad(layer(cost, 0.1).square().sum(), cost, create_graph=True)
    gradient.square().sum().backward()
    with pytest.raises(RuntimeError, match="second derivatives need exact sums"):
        torch.autograd.grad(layer(cost, 0.1, **policy).square().sum(), cost, create_graph=True)
    with pytest.raises(ValueError, match="gradients in weights and epsilon need exact sums"):
        layer(cost, torch.tensor(0.1, dtype=torch.double, requires_grad=True), **policy)


def test_refuses_in_words():
    with pytest.raises(ValueError, match="cost has 1 dimensions"):
        transport_cost(costs(3))
    with pytest.raises(ValueError, match="objective = else"):
        transport_cost(costs(3, 3), objective="else")
    with pytest.raises(ValueError, match="epsilon = -1"):
        transport_plan(costs(3, 3), -1)
    with pytest.raises(TypeError, match="cost has the type torch.int64"):
        transport_cost(torch.ones(3, 3, dtype=torch.int64))
    cost = torch.ones(2, 1, 3, 4)
    cost[1, 0, 2, 3] = float("nan")
    with pytest.raises(ValueError, match=r"cost\[1, 0, 2, 3\] is nan"):
        transport_plan(cost)
    with pytest.raises(ValueError, match="relative=False"):
        transport_cost(costs(3, 3), 0.1, rows=KullbackLeibler()).backward()


def test_warns_when_it_did_not_converge():
    with pytest.warns(ConvergenceWarning):
        transport_cost(costs(31, 37), 1e-3, tolerance=1e-30)  # rounding alone is more
