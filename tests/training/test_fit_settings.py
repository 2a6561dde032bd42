"""Optimisers and learning rates."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from umix.errors import UserError
from umix.training.fit_settings import FitSettings


@pytest.mark.parametrize(
    ("name", "kind"), [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_optimizers_take_the_settings(name: str, kind: type) -> None:
    optimizer = FitSettings(optimizer=name, lr=0.3, weight_decay=0.2).make_optimizer(torch.nn.Linear(2, 2))
    assert isinstance(optimizer, kind)
    assert (optimizer.defaults["lr"], optimizer.defaults["weight_decay"]) == (0.3, 0.2)


def test_frozen_parameters_are_not_optimised() -> None:
    net = torch.nn.Linear(2, 2)
    net.bias.requires_grad_(False)
    assert len(FitSettings().make_optimizer(net).param_groups[0]["params"]) == 1


def test_cosine_course_goes_from_the_rate_to_zero_over_all_epochs() -> None:
    settings = FitSettings(lr=0.2, epochs=3, schedule="cosine")
    course = [settings.lr_course(12)(step) for step in range(12)]
    assert course == pytest.approx([0.1 * (1 + math.cos(math.pi * t / 12)) for t in range(12)])


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_the_rate_is_multiplied_from_the_given_steps_on(schedule: str) -> None:
    settings = FitSettings(lr=0.2, schedule=schedule)
    plain, slowed = settings.lr_course(8), settings.lr_course(8, ((3, 0.5), (6, 0.1)))
    assert slowed is not None
    factors = [1, 1, 1, 0.5, 0.5, 0.5, 0.05, 0.05]
    expected = [factor * (0.2 if plain is None else plain(step)) for step, factor in enumerate(factors)]
    assert [slowed(step) for step in range(8)] == pytest.approx(expected, rel=1e-12)


def test_a_constant_rate_that_never_slows_costs_nothing() -> None:
    assert FitSettings().lr_course(8) is None


@pytest.mark.parametrize("bad", [{"lr": 0}, {"epochs": 0}, {"batch_size": 0}, {"momentum": 1}, {"lr": float("nan")}])
def test_illegal_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UserError, match=rf"fit\.{next(iter(bad))} must be"):
        FitSettings(**bad)


def test_fused_sgd_is_the_textbook_update() -> None:
    settings = FitSettings(optimizer="sgd", lr=0.1, momentum=0.9, weight_decay=0.01)
    net = torch.nn.Linear(3, 1, bias=False).double()
    optimizer = settings.make_optimizer(net)
    w, velocity = net.weight.detach().numpy().copy(), 0.0
    for k in range(5):
        x = torch.tensor([[0.1, 0.1 * k, 0.2]], dtype=torch.float64)
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
        gradient = 2 * (w @ x.numpy().T) * x.numpy() + 0.01 * w
        velocity = 0.9 * velocity + gradient
        w = w - 0.1 * velocity
    torch.testing.assert_close(net.weight.detach(), torch.from_numpy(w))


def stepped(make: Callable[[nn.Module], torch.optim.Optimizer]) -> dict[str, torch.Tensor]:
    """A layer after six steps; after the third the optimiser goes on from a state that was kept."""
    torch.manual_seed(0)
    net, x = nn.Linear(3, 2), torch.randn(8, 3)
    optimizer = make(net)
    for step in range(6):
        if step == 3:
            kept = optimizer.state_dict()
            optimizer = make(net)
            optimizer.load_state_dict(kept)
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    return net.state_dict()


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("sgd", torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
        ("adam", torch.optim.Adam, {}),
        ("adamw", torch.optim.AdamW, {"weight_decay": 0.1}),
    ],
)
def test_an_optimiser_does_what_that_of_torch_does_bit_by_bit(name: Any, kind: type, options: dict[str, Any]) -> None:
    settings = FitSettings(optimizer=name, lr=0.1, **options)
    ours = stepped(settings.make_optimizer)
    theirs = stepped(lambda net: kind(net.parameters(), 0.1, fused=True, **options))
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
