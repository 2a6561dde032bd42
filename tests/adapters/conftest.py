"""What an adapter must be given to do the same as a run of umix: its nets, the order of its examples, and what came out."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from umix.core.streams import stream
from umix.data.samplers import Shuffled
from umix.data.task import Task
from umix.methods.umix import UMIX
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.fit_settings import FitSettings


class SameRun:
    """A run of UMIX on ``task`` with a small MLP: ``weights`` of its first stage and ``net`` of its second."""

    batch_size, epochs, lr, eta, sigma, alpha = 32, 3, 0.05, 3.0, 0.5, 0.5

    def __init__(self, task: Task, *, mixing: str = "input") -> None:
        settings = FitSettings(epochs=self.epochs, lr=self.lr, batch_size=self.batch_size)
        self.context = Context(task, MLP(hidden=(16,)), settings, seed=0)
        self.train = task.splits["train"]
        method = UMIX(eta=self.eta, sigma=self.sigma, alpha=self.alpha, length=self.epochs, mixing=mixing)  # type: ignore[arg-type]
        result = method.train(self.context)
        self.net = result.net
        self.weights: Tensor = result.per_example["weight"]

    def first_net(self, stage: str) -> nn.Module:
        """The net of the ``stage`` before its first step: ``trajectory`` or ``fit``."""
        return self.context.fresh_net(stage)

    def order(self, stage: str, epoch: int) -> list[int]:
        """The examples in the order in which the ``stage`` visits them."""
        return Shuffled().draw(self.train, stream(0, stage, "order", epoch)).tolist()

    def batches(self, stage: str, epoch: int) -> Iterator[list[int]]:
        order = self.order(stage, epoch)
        return (order[start : start + self.batch_size] for start in range(0, len(order), self.batch_size))

    def optimizer(self, net: nn.Module) -> torch.optim.Optimizer:
        """The optimiser of both stages."""
        return torch.optim.SGD(net.parameters(), lr=self.lr, momentum=0.9)


@pytest.fixture(scope="session")
def same_run(moons: Task) -> Callable[..., SameRun]:
    """Makes runs of UMIX that adapters are compared with; ``mixing`` is what is mixed."""
    made: dict[str, SameRun] = {}

    def make(mixing: str = "input") -> SameRun:
        if mixing not in made:
            made[mixing] = SameRun(moons, mixing=mixing)
        return made[mixing]

    return make
