"""GEORGE's recipe: an ERM net, clusters of its features within classes, GroupDRO."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from umix.core.weights import class_means, importance_weights, normalized
from umix.data.samplers import Balanced
from umix.data.task import Split, Task
from umix.methods.george import GEORGE, hardness
from umix.methods.group_dro import GroupDRO
from umix.methods.parts.worst_group_risk import WorstGroupRisk
from umix.models.mlp import Linear
from umix.models.net import Net
from umix.training.context import Context
from umix.training.mixup_risk import MixupRisk
from umix.training.stage import ErmStage

Make = Callable[..., Context]


def parameters(net: Net) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


@pytest.fixture(scope="module")
def apart(moons: Task) -> Task:
    """The task with inputs that are their group's corner of a large square and a little noise."""
    rng = torch.Generator().manual_seed(0)
    corners = torch.tensor([[-6.0, 0.0], [6.0, 0.0], [-6.0, 9.0], [6.0, 9.0]])
    splits = {
        name: replace(split, x=corners[split.group] + 0.1 * torch.randn(len(split), 2, generator=rng))
        for name, split in moons.splits.items()
    }
    return Task("apart", splits, moons.classes)


def test_one_cluster_per_class_is_group_dro_over_classes(context: Make) -> None:
    run = context()
    result = GEORGE(clusters=1, step_size=0.3, adjustment=2.0).train(run)
    y = run.task.splits["train"].y
    objective = WorstGroupRisk(step_size=0.3, adjustment=2.0, sizes=torch.bincount(y), group=y)
    assert torch.equal(parameters(result.net), parameters(context().fit(objective, sampler=Balanced(y)).net))
    assert any("the groups are the classes alone" in warning for warning in result.warnings)


@pytest.mark.parametrize("kind", ["gmm", "kmeans"])
def test_clusters_that_are_the_groups_give_group_dro(context: Make, apart: Task, kind: str) -> None:
    inferred = GEORGE(kind=kind, step_size=0.3).train(context(task=apart, net=Linear()))
    cluster = inferred.per_example["environment"]
    assert torch.equal(groups_by_size(apart)[apart.splits["train"].group], cluster)
    known = GroupDRO(step_size=0.3).train(context(task=apart, net=Linear(), groups=True))
    # Clusters are numbered by size, and the order of groups decides whose turn is when: compare what both have learned.
    rates = [float(one.history.counts("val").all_hits[-1]) for one in (inferred, known)]
    assert rates[0] == pytest.approx(rates[1], abs=1)
    assert inferred.net.head.weight.shape == known.net.head.weight.shape
    objective = WorstGroupRisk(step_size=0.3, adjustment=0.0, sizes=torch.bincount(cluster), group=cluster)
    expected = context(task=apart, net=Linear()).fit(objective, sampler=Balanced(cluster))
    assert torch.equal(parameters(inferred.net), parameters(expected.net))


def test_the_length_of_features_does_not_matter(context: Make, apart: Task) -> None:
    def longer(split: Split) -> Split:
        assert isinstance(split.x, torch.Tensor)
        return replace(split, x=split.x * torch.linspace(1, 5, len(split))[:, None])

    task = Task("longer", {name: longer(split) for name, split in apart.splits.items()}, apart.classes)
    clusters = [
        GEORGE(clusters=2, reference_epochs=1).infer(context(task=one, net=Linear())).cell for one in (apart, task)
    ]
    assert torch.equal(*clusters)


def groups_by_size(task: Task) -> torch.Tensor:
    """The number of the cluster that each group is: class by class, the larger group first."""
    sizes, y_of = torch.bincount(task.splits["train"].group), torch.tensor([0, 0, 1, 1])
    y_of[task.splits["train"].group] = task.splits["train"].y
    order = sorted(range(4), key=lambda g: (int(y_of[g]), -int(sizes[g])))
    place = torch.empty(4, dtype=torch.int64)
    place[torch.tensor(order)] = torch.arange(4)
    return place


def test_umix_follows_with_the_error_rates_of_the_clusters(context: Make) -> None:
    other = context()
    result = GEORGE(then="umix", eta=9.0, by="hardness", reference_epochs=2).train(context())
    y, cluster = other.task.splits["train"].y, result.per_example["environment"]
    wrong = other.logits(other.reference(ErmStage("reference", 2)), "train").argmax(1) != y
    u = class_means(wrong.float(), cluster)
    assert len(u.unique()) > 1
    objective = MixupRisk(weights=normalized(importance_weights(u, eta=9.0)), sigma=0.5, alpha=0.5)
    assert torch.equal(parameters(result.net), parameters(other.fit(objective).net))


def test_two_clusters_by_hardness_are_the_harder_and_the_easier_examples_of_a_class(context: Make) -> None:
    other = context()
    result = GEORGE(by="hardness", kind="kmeans", clusters=2).train(context())
    y, cluster = other.task.splits["train"].y, result.per_example["environment"]
    hard = hardness(other.logits(other.reference(ErmStage("reference", 4)), "train"), y)
    for c in (0, 1):
        first, second = (hard[cluster == 2 * c + k] for k in (0, 1))
        assert min(first.max(), second.max()) < max(first.min(), second.min())


def test_hardness_is_above_zero_where_the_classifier_is_wrong() -> None:
    rng = np.random.default_rng(0)
    logits, y = torch.from_numpy(rng.standard_normal((300, 4))), torch.from_numpy(rng.integers(4, size=300))
    expected = [max(float(z[k]) for k in range(4) if k != c) - float(z[c]) for z, c in zip(logits, y, strict=True)]
    np.testing.assert_allclose(hardness(logits, y), expected, rtol=1e-12)
    assert torch.equal(hardness(logits, y) > 0, logits.argmax(1) != y)
    assert hardness(torch.ones(3, 1), torch.zeros(3, dtype=torch.int64)).tolist() == [0, 0, 0]
