"""Every method keeps the contract; and the contract catches methods that do not."""

from collections.abc import Callable
from typing import ClassVar, final

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.data.batch import Batch
from umix.methods.method import Method
from umix.methods.registry import METHODS
from umix.methods.umix import UMIX
from umix.nets.net import Net
from umix.testing import (
    CHECKS,
    ContractError,
    check_finite_on_hostile_batches,
    check_global_random_state_untouched,
    check_groups_untouched_unless_declared,
    check_method,
    check_picklable,
    check_resume,
    check_same_seed_same_net,
    check_stages_are_described,
)
from umix.training.objective import MeanRisk, Objective, State
from umix.training.stage import ErmStage
from umix.training.trainer import Trainer

#: Settings that keep a method's stages short on the small task; everything else is its default.
SHORT = {
    "umix": {"length": 3},
    **{name: {"layer_epochs": 3} for name in ("afr", "self", "cb_last_layer", "crt")},
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_method_keeps_the_contract(name: str, check: Callable[[Method], None]) -> None:
    check(METHODS[name](**SHORT.get(name, {})))


@pytest.mark.parametrize(
    "settings",
    [
        {"mixing": "features"},
        {"per_example": True, "sigma": 1.0},
        {"record": "epoch_end"},
        {"uncertainty": "ensemble"},
    ],
    ids=["features", "per_example", "epoch_end", "ensemble"],
)
def test_every_kind_of_umix_keeps_the_contract(settings: dict[str, object]) -> None:
    check_method(UMIX(length=2, **settings))


class GlobalNoise(Objective):
    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        return net(batch.x + float(np.random.rand())).square().mean(), state


class Drifts(Objective):
    """Counts batches outside of its state, so a resumed run forgets the count."""

    def __init__(self) -> None:
        self.count = 0

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        self.count += 1
        return torch.nn.functional.cross_entropy(net(batch.x), batch.y) * self.count, state


class Explodes(Objective):
    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        return (net(batch.x).var(dim=0, correction=0) ** -1).sum(), state


def broken(objective: Callable[[], Objective], label: str) -> type[Method]:
    @final
    class Broken(Method):
        name: ClassVar[str] = label
        paper: ClassVar[str] = "none"

        def train(self, trainer: Trainer) -> Net:
            return trainer.fit(objective())

    return Broken


class PeeksAtGroups(Method):
    name: ClassVar[str] = "peeks"
    paper: ClassVar[str] = "none"

    def train(self, trainer: Trainer) -> Net:
        size = float(trainer.task.splits["train"].groups.sizes[0])
        trainer.seed = int(size)
        return trainer.fit(MeanRisk())


class HidesItsStage(Method):
    name: ClassVar[str] = "hides"
    paper: ClassVar[str] = "none"

    def train(self, trainer: Trainer) -> Net:
        trainer.reference(ErmStage("reference", 1))
        return trainer.fit(MeanRisk())


class DoesNotListItsStage(Method):
    name: ClassVar[str] = "unlisted"
    paper: ClassVar[str] = "none"

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),)

    def train(self, trainer: Trainer) -> Net:
        trainer.reference(*self.erm_stages(trainer.settings.epochs))
        return trainer.fit(MeanRisk())


@pytest.mark.parametrize(
    ("method", "check", "complaint"),
    [
        (broken(GlobalNoise, "noise")(), check_global_random_state_untouched, "global generators"),
        (broken(GlobalNoise, "noise")(), check_same_seed_same_net, "same net for the same seed"),
        (broken(Drifts, "drifts")(), check_resume, "when resumed after 1 epochs"),
        (broken(Explodes, "explodes")(), check_finite_on_hostile_batches, "finite on batches of one example"),
        (PeeksAtGroups(), check_groups_untouched_unless_declared, "without declaring needs_groups"),
        (broken(Drifts, "local")(), check_picklable, "pickl"),
        (HidesItsStage(), check_stages_are_described, r"must name \['reference'\] in its class variable stages"),
        (DoesNotListItsStage(), check_stages_are_described, "must name {'reference'} in its class variable stages"),
    ],
    ids=[
        "global noise",
        "unseeded",
        "forgets on resume",
        "explodes",
        "peeks at groups",
        "not picklable",
        "hides a stage",
        "unlisted",
    ],
)
def test_the_contract_catches_a_broken_method(method: Method, check: Callable[[Method], None], complaint: str) -> None:
    with pytest.raises(ContractError, match=complaint):
        check(method)
