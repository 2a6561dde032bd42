"""Focal loss: what it is without its parts, and its class weights."""

from collections.abc import Callable

import pytest
import torch

from umix.data.benchmarks.four_moons import FourMoons
from umix.data.task import Task
from umix.methods.erm import ERM
from umix.methods.focal import Focal
from umix.methods.reweight import Reweight
from umix.nets.net import Net
from umix.training.trainer import Trainer

Make = Callable[..., Trainer]


@pytest.fixture(scope="module")
def unbalanced() -> Task:
    return FourMoons(sizes=(60, 4, 10, 20), eval_size=10).load()


def same(first: Net, second: Net) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_gamma_zero_without_class_weights_is_erm(trainer: Make) -> None:
    assert same(Focal(gamma=0).train(trainer()), ERM().train(trainer()))


@pytest.mark.parametrize("scheme", ["inverse", "effective"])
def test_gamma_zero_with_class_weights_is_reweighting_by_class(trainer: Make, unbalanced: Task, scheme: str) -> None:
    focal = Focal(gamma=0, class_balance=scheme, beta=0.9).train(trainer(task=unbalanced))
    assert same(focal, Reweight(by="class", scheme=scheme, beta=0.9).train(trainer(task=unbalanced)))


def test_beta_zero_weighs_all_classes_alike(trainer: Make, unbalanced: Task) -> None:
    effective = Focal(class_balance="effective", beta=0).train(trainer(task=unbalanced))
    assert same(effective, Focal().train(trainer(task=unbalanced)))
