"""torch's optimisers without the wrappers of their methods: the same numbers, and torch's compiler is not imported."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from umix.training.plain_optimizer import plain

KINDS = {
    "sgd": (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    "adam": (torch.optim.Adam, {}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
}


def stepped(make: Callable[..., torch.optim.Optimizer], options: dict[str, Any], steps: int, *, halfway: bool) -> Any:
    """A layer after so many steps, and the state of its optimiser; ``halfway`` it goes on from a state that was kept."""
    torch.manual_seed(0)
    net, x = nn.Linear(3, 2), torch.randn(8, 3)
    optimizer = make(net.parameters(), 0.1, fused=True, **options)
    for step in range(steps):
        if halfway and step == steps // 2:
            kept = optimizer.state_dict()
            optimizer = make(net.parameters(), 0.7, fused=True, **options)
            optimizer.load_state_dict(kept)
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    return net.state_dict(), optimizer.state_dict()


@pytest.mark.parametrize("halfway", [False, True], ids=["in one go", "resumed"])
@pytest.mark.parametrize("name", KINDS)
def test_a_plain_optimiser_does_what_that_of_torch_does_bit_by_bit(name: str, halfway: bool) -> None:
    kind, options = KINDS[name]
    (net, state), (expected, of_torch) = (stepped(make, options, 6, halfway=halfway) for make in (plain(kind), kind))
    assert all(torch.equal(net[key], expected[key]) for key in expected)
    assert state["param_groups"] == of_torch["param_groups"]
    for place, values in of_torch["state"].items():
        assert all(torch.equal(state["state"][place][key], value) for key, value in values.items())


def test_the_optimisers_of_torch_stay_as_they_are() -> None:
    before = torch.optim.SGD.step
    plain(torch.optim.SGD)([nn.Parameter(torch.zeros(1))], 0.1)
    assert torch.optim.SGD.step is before


def test_a_step_keeps_no_graph_and_leaves_gradients_switched_on() -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer = plain(torch.optim.SGD)([weight], 0.1)
    weight.square().sum().backward()
    optimizer.step()
    assert weight.is_leaf
    assert torch.is_grad_enabled()
