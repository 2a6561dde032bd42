"""Data that many tests share."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from umix.data.four_moons import FourMoons
from umix.data.task import Task
from umix.nets.mlp import MLP
from umix.train.fit_settings import FitSettings
from umix.train.trainer import Trainer

# The same examples in every run: a suite that fails now and then teaches people to ignore it.
settings.register_profile("umix", derandomize=True, deadline=None)
settings.load_profile("umix")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def moons() -> Task:
    return FourMoons(sizes=(60, 10, 10, 60), eval_size=20).load()


@pytest.fixture
def trainer(moons: Task) -> Callable[..., Trainer]:
    """Makes trainers that differ only in what a test says."""

    def make(**changes: object) -> Trainer:
        directory = changes.get("directory")
        if isinstance(directory, Path):
            changes.setdefault("cache", directory / "stages")
        settings = FitSettings(**{"epochs": 4, "lr": 0.05, "batch_size": 32, **changes.pop("fit", {})})
        return Trainer(**{"task": moons, "net": MLP(hidden=(16,)), "settings": settings, **changes})

    return make
