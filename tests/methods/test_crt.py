"""cRT: a new last layer on the features of ERM."""

from collections.abc import Callable

import torch

from umix.data.samplers import Balanced
from umix.methods.crt import CRT
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.last_layer import fit_last_layer, linear_head
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage

Make = Callable[..., Context]


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
