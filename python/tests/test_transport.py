from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from unshuffle import Ball, ConvergenceWarning, Exact, Free, KullbackLeibler, Sampled, Transport, transport

rng = np.random.default_rng(0)


def sinkhorn(cost, epsilon, a, b, iterations=5000):
    kernel = np.exp(-cost / epsilon)
    u = np.ones(len(a))
    for _ in range(iterations):
        v = b / (kernel.T @ u)
        u = a / (kernel @ v)
    return u[:, None] * kernel * v


def test_agrees_with_sinkhorn_iterations():
    cost = rng.random((7, 5))
    a, b = rng.random(7) + 0.1, rng.random(5) + 0.1
    plan = transport(cost, 0.1, relative=False, row_weights=a, column_weights=b)
    np.testing.assert_allclose(plan.coupling, sinkhorn(cost, 0.1, a / a.sum(), b / b.sum()), atol=1e-10)
    assert plan.transport_cost == pytest.approx((cost * plan.coupling).sum())
    assert plan.converged and plan.marginal_error < 1e-9
    weights = np.outer(a / a.sum(), b / b.sum())
    exponent = (plan.row_potential[:, None] + plan.column_potential - cost) / 0.1
    np.testing.assert_allclose(plan.coupling, weights * np.exp(exponent), rtol=1e-6)


def test_epsilon_is_relative_unless_told():
    cost = 30 * rng.random((4, 6))
    assert transport(cost, 0.1).epsilon == pytest.approx(0.1 * cost.max())
    assert transport(cost, 0.1, relative=False).epsilon == 0.1


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_layouts_and_batches_agree(shape):
    costs = rng.random((3, *shape))
    batch = transport(costs, 0.05)
    assert batch.coupling.shape == costs.shape and batch.row_potential.shape == (3, shape[0])
    assert batch.value.shape == (3,)
    for cost, coupling, value in zip(costs, batch.coupling, batch.value):
        for same in (cost, np.asfortranarray(cost), np.repeat(cost, 2, 0)[::2], cost.astype(np.float64)):
            plan = transport(same, 0.05)
            np.testing.assert_allclose(plan.coupling, coupling, atol=1e-12)
            assert plan.value == pytest.approx(value)


@pytest.mark.parametrize("rows, columns", [(Ball(0.3), Ball(0.2)), (KullbackLeibler(0.5), Free()), (Ball(0.3), Free()),
                                           (Sampled(), Exact()), (Sampled(0.7), Exact())])
def test_policies_belong_to_their_side(rows, columns):
    cost = rng.random((6, 4))
    plan = transport(cost, 0.1, rows=rows, columns=columns)
    turned = transport(cost.T, 0.1, rows=columns, columns=rows)
    np.testing.assert_allclose(plan.coupling, turned.coupling.T, atol=1e-9)


def test_sampled_sums_leave_rows_out():
    cost = rng.random((9, 6))
    cost[2] += 5
    plan = transport(cost, 0.02, relative=False, rows=Sampled())
    held = 6 * plan.coupling.sum(1)  # of one link
    assert held.max() < 1 + 1e-9 and held[2] < 1e-6 and held.sum() == pytest.approx(6)
    np.testing.assert_allclose(6 * plan.coupling.sum(0), 1, atol=1e-7)


def test_gradients_agree_with_differences():
    cost, direction = rng.random((2, 5, 6))
    solver = Transport(0.1, relative=False, tolerance=1e-13, warm_start=False)
    plan = solver.solve(cost)
    weights = plan.gradient()
    entropic = plan.gradient("entropic")
    cotangent = rng.random((5, 6))
    pulled = plan.pull_back(cotangent)
    np.testing.assert_array_equal(solver.weights(plan), weights)
    np.testing.assert_array_equal(solver.weights(plan, "entropic"), entropic)
    np.testing.assert_array_equal(solver.pull_back(plan, cotangent), pulled)
    h = 1e-5
    up, down = (solver.solve(cost + step * direction) for step in (h, -h))
    assert (weights * direction).sum() == pytest.approx((up.transport_cost - down.transport_cost) / (2 * h), rel=1e-6)
    assert (entropic * direction).sum() == pytest.approx((up.value - down.value) / (2 * h), rel=1e-6)
    change = ((up.coupling - down.coupling) * cotangent).sum() / (2 * h)
    assert (pulled * direction).sum() == pytest.approx(change, rel=1e-6)


@pytest.mark.parametrize("shape", [(5, 6), (6, 4), (3, 4, 5)])
def test_a_plan_stays_right_whatever_its_solver_does_next(shape):
    first, second = rng.random((2, *shape))
    cotangent = rng.random(shape)
    alone = transport(first, 0.1)
    expected = [alone.gradient(), alone.gradient("entropic"), alone.pull_back(cotangent), alone.coupling]
    solver = Transport(0.1)
    plan = solver.solve(first)
    other = solver.solve(second)
    solver.solve(rng.random((2, 3)))
    for weights, pull_back in ((solver.weights, solver.pull_back), (Transport().weights, Transport().pull_back)):
        found = [weights(plan), weights(plan, "entropic"), pull_back(plan, cotangent), plan.coupling]
        np.testing.assert_array_equal(found, expected)
    del solver
    np.testing.assert_array_equal(plan.gradient(), expected[0])
    assert np.abs(other.gradient() - expected[0]).max() > 1e-6


def test_a_solver_may_be_shared_by_threads():
    costs = rng.random((24, 30, 20))
    solver = Transport(0.05, warm_start=False)
    expected = [transport(cost, 0.05).gradient() for cost in costs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda cost: solver.weights(solver.solve(cost)), costs))
    np.testing.assert_array_equal(found, expected)


def test_refuses_a_cotangent_of_another_shape_and_an_unknown_objective():
    plan = transport(rng.random((3, 4)))
    with pytest.raises(ValueError, match="shape of the cost"):
        plan.pull_back(np.ones((4, 3)))
    with pytest.raises(ValueError, match="objective = else"):
        plan.gradient("else")


def test_warm_starts_save_steps():
    cost = rng.random((40, 40))
    solver = Transport(0.001)
    first = solver.solve(cost)
    again = solver.solve(cost + 1e-9)
    assert again.newton_steps + again.sinkhorn_steps < first.newton_steps + first.sinkhorn_steps
    np.testing.assert_allclose(again.coupling, first.coupling, atol=1e-6)


@pytest.mark.parametrize(
    "cost, options, sentence",
    [
        (np.ones(3), {}, "cost has 1 dimensions"),
        (np.ones((0, 3)), {}, "cost is 0x3"),
        (np.array([[0, 1], [2, np.nan]]), {}, r"cost\[1, 1\] is nan; finite numbers were expected"),
        (np.array([[[0, 1, 2]] * 2, [[3, 4, 5], [6, np.inf, 8]]]), {}, r"cost\[1, 1, 1\] is inf"),
        (np.ma.masked_greater([[0.0, 1.0], [2.0, 9.0]], 5), {}, "cost is a masked array with masked entries"),
        (np.ones((2, 3)), {"row_weights": np.ma.array([1.0, 2.0], mask=[0, 1])}, "row weights is a masked array"),
        (np.ones((2, 3)), {"epsilon": 0}, "epsilon = 0 must be finite and > 0"),
        (np.ones((2, 3)), {"row_weights": np.ones(3)}, "row weights has 3 entries; the cost asks for 2"),
        (np.ones((2, 3)), {"column_weights": -np.ones(3)}, "column weights must be finite and >= 0"),
        (np.ones((2, 3)), {"rows": Ball(-1)}, "spread"),
    ],
)
def test_refuses_in_words(cost, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        transport(cost, **options)


def test_warns_when_it_did_not_converge():
    with pytest.warns(ConvergenceWarning, match="was asked for"):
        transport(rng.random((31, 37)), 1e-3, tolerance=1e-30)  # rounding alone is more


def test_a_mask_that_covers_nothing_is_none():
    cost = rng.random((3, 4))
    np.testing.assert_array_equal(transport(np.ma.array(cost), 0.1).coupling, transport(cost, 0.1).coupling)


def test_refuses_what_is_no_array():
    with pytest.raises(TypeError, match="cost must be an array of numbers; a str was given"):
        Transport().solve("cost")


def test_sparse_plans_keep_nearly_all_mass():
    cost = np.random.default_rng(26).uniform(size=(3, 20, 30))
    for plan, wanted in ((Transport(1e-2).solve(cost[0]), cost[:1]), (Transport(1e-2).solve(cost), cost)):
        sparse = plan.sparse()
        triplets = sparse if isinstance(sparse, list) else [sparse]
        couplings = plan.coupling if plan.coupling.ndim == 3 else plan.coupling[None]
        assert len(triplets) == len(wanted)
        for (rows, columns, mass), coupling in zip(triplets, couplings):
            again = np.zeros_like(coupling)
            again[rows, columns] = mass
            np.testing.assert_array_equal(again[again > 0], coupling[again > 0])
            assert 0 <= (coupling - again).sum() <= 1e-9 + 1e-15
            assert len(mass) < coupling.size
    with pytest.raises(ValueError, match="left_out = 2.0 must be a share|left_out = 2 must be a share"):
        Transport(1e-2).solve(cost[0]).sparse(2)
