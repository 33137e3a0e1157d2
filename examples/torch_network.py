"""A small network f(x, z) trained end to end although the links between (x, y) and z are lost within households."""

import torch

from unshuffle.torch import transport_cost

torch.manual_seed(0)
households, members = 200, 4


def truth(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return torch.sin(3 * x) + torch.exp(z) * (1 + 0.5 * x)


def draw() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x, z = 2 * torch.rand(2, households, members, 1) - 1
    return x, z, truth(x, z)


x, z, y = draw()
y = y + 0.05 * torch.randn_like(y)
shuffled = torch.rand(households, members).argsort(1)[..., None]
z = z.gather(1, shuffled)
test_x, test_z, test_y = draw()

network = torch.nn.Sequential(
    torch.nn.Linear(2, 24), torch.nn.Tanh(), torch.nn.Linear(24, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1)
)
optimiser = torch.optim.Adam(network.parameters(), lr=0.01)


def test_error() -> float:
    with torch.no_grad():
        predicted = network(torch.cat([test_x, test_z], -1))
    return float(((predicted - test_y) ** 2).mean() / test_y.var())


def all_pairs() -> torch.Tensor:
    """f(x_i, z_j) of every pair in every household: households × members × members."""
    left = x[:, :, None].expand(-1, -1, members, -1)
    right = z[:, None].expand(-1, members, -1, -1)
    return network(torch.cat([left, right], -1))[..., 0]


before = test_error()
for step in range(201):
    cost = (y - all_pairs()) ** 2
    epsilon = max(0.05, 3 * 0.98**step)  # from a soft matching to a sharp one
    loss = transport_cost(cost, epsilon=epsilon, relative=False).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 50 == 0:
        print(f"step {step}: transport cost {loss.item():.4f}, relative test error {test_error():.3f}")
print(f"relative test error {before:.2f} -> {test_error():.2f}")
