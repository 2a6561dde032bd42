"""Focal loss: what it is without its parts, and its class weights."""

from collections.abc import Callable

import pytest
import torch

from umix.data.benchmarks.four_moons import FourMoons
from umix.data.task import Task
from umix.methods.erm import ERM
from umix.methods.focal import Focal
from umix.methods.reweight import Reweight
from umix.models.net import Net
from umix.training.context import Context

Make = Callable[..., Context]


@pytest.fixture(scope="module")
def unbalanced() -> Task:
    return FourMoons(sizes=(60, 4, 10, 20), eval_size=10).load()


def same(first: Net, second: Net) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_gamma_zero_without_class_weights_is_erm(context: Make) -> None:
    assert same(Focal(gamma=0).train(context()).net, ERM().train(context()).net)


@pytest.mark.parametrize("scheme", ["inverse", "effective"])
def test_gamma_zero_with_class_weights_is_reweighting_by_class(context: Make, unbalanced: Task, scheme: str) -> None:
    focal = Focal(gamma=0, class_balance=scheme, beta=0.9).train(context(task=unbalanced)).net
    assert same(focal, Reweight(by="class", scheme=scheme, beta=0.9).train(context(task=unbalanced)).net)


def test_beta_zero_weighs_all_classes_alike(context: Make, unbalanced: Task) -> None:
    effective = Focal(class_balance="effective", beta=0).train(context(task=unbalanced)).net
    assert same(effective, Focal().train(context(task=unbalanced)).net)
