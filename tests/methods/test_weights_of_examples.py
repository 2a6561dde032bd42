"""What examples count for: weight k is as k copies of the row, in every method that takes weights; the others refuse."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.core.losses import focal
from umix.core.risks import cvar
from umix.core.weights import class_means, effective_number, inverse_frequency, normalized
from umix.data.batch import Batch
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.loader import batches
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.parts.offset_risk import OffsetRisk
from umix.methods.registry import METHODS, method
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import MeanRisk, Objective

N = 24
COPIES = torch.tensor([0, 1, 2, 5] * 6)
WEIGHT = COPIES / COPIES.double().mean()
ROWS = torch.repeat_interleave(torch.arange(N), COPIES)


def net() -> Net:
    return MLP(hidden=(5,)).build(torch.zeros(3), 3).double()


def batch(rows: Tensor, weight: Tensor | None = None) -> Batch:
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(N, 3)))
    return Batch(x[rows], (torch.arange(N) % 3)[rows], rows, weight=weight)


def gradient(objective: Objective, net: Net, batch: Batch) -> Tensor:
    net.zero_grad()
    objective.risk(net, batch, {}, np.random.default_rng(0))[0].backward()
    return torch.cat([parameter.grad.flatten() for parameter in net.parameters()])


OWN = torch.linspace(0.5, 2, N, dtype=torch.float64)
OBJECTIVES = {
    "mean": MeanRisk(),
    "focal": BatchRisk(loss=partial(focal, gamma=2.0)),
    "weighted": BatchRisk(weights=OWN),
    "offset": OffsetRisk(offset=torch.tensor([-1.0, 0.0, 2.0]), scale=3.0, weights=OWN),
    "mixup, unmixed": MixupRisk(weights=OWN, sigma=0.0, alpha=1.0),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_gradient_of_whole_weights_is_that_of_repeated_rows(name: str) -> None:
    objective, model = OBJECTIVES[name], net()
    weighted = gradient(objective, model, batch(torch.arange(N), WEIGHT))
    repeated = gradient(objective, model, batch(ROWS))
    assert objective.takes_weights
    assert weighted.numpy() == pytest.approx(repeated.numpy(), rel=1e-12, abs=1e-15)
    assert not torch.allclose(weighted, gradient(objective, model, batch(torch.arange(N))))


def test_a_mixed_pair_costs_each_part_by_its_own_weight() -> None:
    pair, model = torch.arange(N).flip(0), net()
    mixup = MixupRisk(weights=OWN, sigma=1.0, alpha=1.0, pairing=lambda batch, rng: pair.numpy())
    weighted = gradient(mixup, model, batch(torch.arange(N), WEIGHT))
    as_own = gradient(replace(mixup, weights=OWN * WEIGHT), model, batch(torch.arange(N)))
    assert weighted.numpy() == pytest.approx(as_own.numpy(), rel=1e-12)


@pytest.mark.parametrize(
    "scheme", [inverse_frequency, partial(effective_number, beta=0.9)], ids=["inverse", "effective"]
)
def test_class_weights_count_copies(scheme: object) -> None:
    ids = torch.arange(N) % 3
    weighted = scheme(ids, sample_weight=COPIES)  # type: ignore[operator]
    assert weighted[ROWS].tolist() == pytest.approx(scheme(ids[ROWS]).tolist(), rel=1e-6)  # type: ignore[operator]


def test_normalised_weights_have_mean_one_over_copies() -> None:
    assert normalized(OWN, sample_weight=COPIES)[ROWS].tolist() == pytest.approx(
        normalized(OWN[ROWS]).tolist(), rel=1e-12
    )


def test_a_class_that_counts_for_nothing_weighs_nothing() -> None:
    weights = inverse_frequency(torch.tensor([0, 0, 1]), sample_weight=torch.tensor([1.0, 1.0, 0.0]))
    assert weights.tolist() == [1, 1, 0]


def moons(weight: Tensor | None) -> Task:
    task = FourMoons(sizes=(20, 4, 4, 20), eval_size=10).load()
    return replace(task, splits={**task.splits, "train": replace(task.splits["train"], weight=weight)})


#: Refused in the plan: what they minimise takes weights, but other parts of them do not.
REFUSED = (
    "lisa",
    "lisa_umix",
    "dfr",
    "afr",
    "self",
    "cb_last_layer",
    "crt",
    "evals",
    "spare",
    "pde",
    "domainmix",
    "suby",
    "subg",
    "dpe",
)


def train(name: str, weight: Tensor | None) -> Net:
    chosen = method(name, **({"length": 2} if "length" in METHODS[name].model_fields else {}))
    context = Context(moons(weight), MLP(hidden=(4,)), FitSettings(epochs=2, lr=0.05), groups=chosen.needs_groups)
    return chosen.train(context).net


@pytest.mark.parametrize("name", METHODS)
def test_every_method_uses_weights_or_says_that_it_cannot(name: str) -> None:
    weight = torch.linspace(0, 2, 48)
    if METHODS[name].takes_weights:
        weighted, plain = (train(name, given).head.weight for given in (weight, None))
        assert not torch.equal(weighted, plain)
    elif name not in REFUSED:
        with pytest.raises(UserError, match="must weigh examples to train with weights, but it does not"):
            train(name, weight)


def test_a_risk_of_the_batch_that_is_no_mean_takes_no_weights() -> None:
    assert not BatchRisk(risk_of=partial(cvar, alpha=0.5)).takes_weights


def test_weights_travel_with_the_rows_and_decide_the_fingerprint() -> None:
    weight = torch.linspace(0, 2, 48)
    split, plain = moons(weight).splits["train"], moons(None).splits["train"]
    order = torch.tensor([5, 3, 40])
    (found,) = batches(split, order, batch_size=3)
    assert torch.equal(found.weight, weight[order])
    assert torch.equal(split.rows(order).weight, weight[order])
    assert next(batches(plain, order, batch_size=3)).weight is None
    assert len({split.fingerprint, plain.fingerprint, moons(weight.flip(0)).splits["train"].fingerprint}) == 3
    with pytest.raises(ValueError, match="same examples"):
        replace(split, weight=weight[:3])


def test_mean_uncertainties_of_classes_count_copies() -> None:
    u, y = torch.linspace(0, 1, N), torch.arange(N) % 3
    assert class_means(u, y, sample_weight=COPIES)[ROWS].tolist() == pytest.approx(
        class_means(u[ROWS], y[ROWS]).tolist()
    )
    assert class_means(u, y, sample_weight=torch.zeros(N)).tolist() == [0.0] * N
