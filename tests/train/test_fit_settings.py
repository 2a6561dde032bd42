"""Optimisers and learning rates."""

import math

import pytest
import torch

from umix.errors import UserError
from umix.train.fit_settings import FitSettings


@pytest.mark.parametrize(
    ("name", "kind"), [("sgd", torch.optim.SGD), ("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_optimizers_take_the_settings(name: str, kind: type) -> None:
    optimizer = FitSettings(optimizer=name, lr=0.3, weight_decay=0.2).make_optimizer(torch.nn.Linear(2, 2))
    assert type(optimizer) is kind
    assert (optimizer.defaults["lr"], optimizer.defaults["weight_decay"]) == (0.3, 0.2)


def test_frozen_parameters_are_not_optimised() -> None:
    net = torch.nn.Linear(2, 2)
    net.bias.requires_grad_(False)
    assert len(FitSettings().make_optimizer(net).param_groups[0]["params"]) == 1


def test_cosine_course_goes_from_the_rate_to_zero_over_all_epochs() -> None:
    settings = FitSettings(lr=0.2, epochs=3, schedule="cosine")
    course = [settings.lr_course(12)(step) for step in range(12)]
    assert course == pytest.approx([0.1 * (1 + math.cos(math.pi * t / 12)) for t in range(12)])


@pytest.mark.parametrize("bad", [{"lr": 0}, {"epochs": 0}, {"batch_size": 0}, {"momentum": 1}, {"lr": float("nan")}])
def test_illegal_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UserError, match=rf"FitSettings\.{next(iter(bad))} must be"):
        FitSettings(**bad)
