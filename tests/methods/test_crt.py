"""cRT: a new last layer on the features of ERM."""

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from torch import Tensor

from umix.data.samplers import Balanced, Sampler
from umix.methods.crt import CRT
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.last_layer import fit_last_layer, linear_head
from umix.training.objective import MeanRisk, Objective
from umix.training.stage import ErmStage

Make = Callable[..., Context]


def layer(run: Context, objective: Objective, sampler: Sampler | None) -> Tensor:
    """The last layer that this objective and sampler train on ERM's features."""
    net, train = run.reference(ErmStage("reference", 4)), run.splits["train"]
    settings = FitSettings(epochs=2, lr=0.2, batch_size=32, schedule="cosine", weight_decay=5e-4)
    return linear_head(
        fit_last_layer(run, net, train, objective, settings=settings, sampler=sampler, new=True).net
    ).weight


def test_by_group_all_groups_occur_as_often(context: Make) -> None:
    found = CRT(layer_epochs=2, layer_lr=0.2, by="group").train(context(groups=True)).net
    run = context(groups=True)
    assert torch.equal(linear_head(found).weight, layer(run, MeanRisk(), Balanced(run.splits["train"].group)))


@pytest.mark.parametrize("by", ["class", "group"])
def test_weights_are_inverse_sizes_with_mean_one_in_shuffled_batches(
    context: Make, by: Literal["class", "group"]
) -> None:
    found = CRT(layer_epochs=2, layer_lr=0.2, by=by, balance="weights").train(context(groups=True)).net
    run = context(groups=True)
    unit = run.splits["train"].y if by == "class" else run.splits["train"].group
    weights = (1 / unit.bincount())[unit]
    expected = layer(run, BatchRisk(weights=weights / weights.mean()), None)
    torch.testing.assert_close(linear_head(found).weight, expected)


def test_only_by_group_needs_groups() -> None:
    assert CRT(by="group").needs_groups
    assert not CRT().needs_groups


def test_a_new_layer_is_trained_on_the_training_rows_with_all_classes_as_often(context: Make) -> None:
    chosen, other = CRT(layer_epochs=2, layer_lr=0.2, decay=0.01), context()
    run = context()
    result = chosen.train(run)
    erm, train = other.reference(ErmStage("reference", 4)), other.splits["train"]
    body = [parameter.clone() for parameter in erm.body.parameters()]
    settings = FitSettings(epochs=2, lr=0.2, batch_size=32, schedule="cosine", weight_decay=0.01)
    expected = fit_last_layer(other, erm, train, MeanRisk(), settings=settings, sampler=Balanced(train.y), new=True).net
    assert torch.equal(linear_head(result.net).weight, linear_head(expected).weight)
    assert all(torch.equal(a, b) for a, b in zip(result.net.body.parameters(), body, strict=True))
    assert result.history.counts("val").n == len(run.splits["val"])  # all of validation is for selection
