"""SPARE's recipe: an early net, clusters of its outputs, draws in proportion to powers of cluster sizes."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from umix.core.clusters import clusters_within
from umix.core.weights import inverse_frequency
from umix.data.samplers import Weighted
from umix.methods.reweight import Resample
from umix.methods.spare import SPARE
from umix.models.net import Net
from umix.training.context import Context
from umix.training.objective import MeanRisk

Make = Callable[..., Context]


def parameters(net: Net) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


@pytest.mark.parametrize("settings", [{"clusters": 1}, {"power": 0.0}, {"clusters": 1, "power": 2.0}])
def test_one_cluster_per_class_or_power_zero_is_class_balanced_sampling(
    context: Make, settings: dict[str, float]
) -> None:
    result = SPARE(**settings).train(context())
    torch.testing.assert_close(parameters(result.net), parameters(Resample().train(context()).net))
    assert ("Every class is one cluster" in " ".join(result.warnings)) == ("clusters" in settings)


def test_with_power_one_the_clusters_of_a_class_are_drawn_as_often(context: Make) -> None:
    result = SPARE(power=1.0, clusters=2).train(context())
    cluster = result.per_example["environment"]
    assert cluster.unique().tolist() == [0, 1, 2, 3]
    expected = inverse_frequency(cluster)  # two in every class: all clusters are drawn as often
    torch.testing.assert_close(result.per_example["weight"], expected)
    resampled = context().fit(MeanRisk(), sampler=Weighted(expected))
    torch.testing.assert_close(parameters(result.net), parameters(resampled.net))


def test_the_weights_are_the_formula_with_a_power_for_each_class(context: Make) -> None:
    run = context(fit={"lr": 0.3})
    result = SPARE(reference_epochs=2, power="auto").train(run)
    cluster, y = result.per_example["environment"].tolist(), run.task.splits["train"].y.tolist()
    power = result.choices["power"]["by class"]
    raw = [cluster.count(k) ** -power[c] for k, c in zip(cluster, y, strict=True)]
    total = [sum(w for w, label in zip(raw, y, strict=True) if label == c) for c in (0, 1)]
    expected = np.array([w / total[c] for w, c in zip(raw, y, strict=True)])
    np.testing.assert_allclose(result.per_example["weight"], expected / expected.mean(), rtol=1e-6)


def test_clusters_far_apart_have_power_one_and_others_two() -> None:
    y = torch.tensor([0] * 20 + [1] * 20)
    z = torch.cat(
        [
            torch.tensor([[5.0, 0.0]] * 15 + [[-5.0, 0.0]] * 5),
            torch.from_numpy(np.random.default_rng(0).standard_normal((20, 2))).float(),
        ]
    )

    found = clusters_within(
        z.double().softmax(1).numpy(),
        y.numpy(),
        n_classes=2,
        sizes=range(2, 5),
        kind="kmeans",
        average="examples",
        rng=np.random.default_rng(0),
    )
    power, choices = SPARE(power="auto")._powers(found)
    assert power.tolist() == [1, 2]
    assert "2 in 1 of 2 classes" in choices["power"]["words"]
    power, choices = SPARE(power=0.5)._powers(found)
    assert power.tolist() == [0.5, 0.5]
    assert choices == {}
