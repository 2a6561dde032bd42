"""Weights that say little are reported."""

from collections.abc import Callable

import torch

from umix.core.weights import importance_weights
from umix.data.benchmarks.four_moons import FourMoons
from umix.methods.parts.uncertainty_weights import warn_about
from umix.methods.umix import UMIX
from umix.training.trainer import Trainer

Make = Callable[..., Trainer]


def warnings_of(run: Trainer, u: torch.Tensor, *, eta: float = 20.0, c: float = 1.0) -> list[str]:
    warn_about(importance_weights(u, eta=eta, c=c), run, u=u)
    return run.warnings


def test_weights_that_tell_examples_apart_are_not_warned_about(trainer: Make) -> None:
    assert warnings_of(trainer(), torch.linspace(0, 1, 50)) == []


def test_a_window_without_mistakes_is_reported(trainer: Make) -> None:
    (warning,) = warnings_of(trainer(), torch.zeros(50))
    assert warning == "No training example was ever wrong in the window: all weights are equal."


def test_more_than_half_always_wrong_is_reported_as_saturated(trainer: Make) -> None:
    (warning,) = warnings_of(trainer(), torch.tensor([1.0] * 3 + [0.5] * 2))
    assert "saturated" in warning
    assert "60%" in warning


def test_just_half_always_wrong_is_not_saturated(trainer: Make) -> None:
    assert warnings_of(trainer(), torch.tensor([1.0] * 3 + [0.0] * 3)) == []


def test_weights_that_rest_on_few_examples_are_reported_with_the_number(trainer: Make) -> None:
    u = torch.zeros(1000)
    u[:2] = 1.0
    (warning,) = warnings_of(trainer(), u, eta=1.0, c=1e-6)
    assert "2.0 equally weighted ones would do as well as these 1000" in warning


def test_equal_weights_that_were_asked_for_are_not_warned_about(trainer: Make) -> None:
    assert warnings_of(trainer(), torch.linspace(0, 1, 50), eta=0.0) == []


def test_umix_reports_a_window_without_mistakes(trainer: Make) -> None:
    separable = FourMoons(sizes=(60, 0, 0, 60), eval_size=10).load()
    run = trainer(task=separable, stages={"trajectory": {"epochs": 12, "lr": 0.1}})
    UMIX(start=10, length=2).train(run)
    assert not run.kept["uncertainty"].any()
    assert run.warnings[0].startswith("No training example was ever wrong")
