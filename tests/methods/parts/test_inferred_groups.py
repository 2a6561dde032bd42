"""Training on inferred groups: with GroupDRO, and with UMIX's weights and mixup."""

from collections.abc import Callable
from typing import ClassVar

import pytest
import torch

from umix.core.weights import importance_weights, normalized
from umix.data.samplers import Balanced
from umix.data.task import Task
from umix.errors import UserError
from umix.methods import method
from umix.methods.parts.inferred_groups import InferredGroups, InfersGroups
from umix.methods.parts.worst_group_risk import WorstGroupRisk
from umix.models.net import Net
from umix.training.context import Context
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import MeanRisk
from umix.training.train_result import Notes

Make = Callable[..., Context]


class Given(InfersGroups):
    """Three cells of which the last is empty; the reference is wrong on every fourth example."""

    name: ClassVar[str] = "given"
    paper: ClassVar[str] = "none"

    def infer(self, context: Context) -> InferredGroups:
        index = torch.arange(len(context.splits["train"]))
        return InferredGroups((index % 3 == 0).long(), 3, index % 4 == 0, Notes())


def parameters(net: Net) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_the_error_rate_of_an_example_is_that_of_its_cell() -> None:
    groups = InferredGroups(torch.tensor([0, 2, 0, 2, 2]), 4, torch.tensor([True, False, False, False, True]), Notes())
    torch.testing.assert_close(groups.error_rate, torch.tensor([1 / 2, 1 / 3, 1 / 2, 1 / 3, 1 / 3]))
    assert groups.sizes.tolist() == [2, 0, 3, 0]


def test_group_dro_follows_on_the_cells(context: Make) -> None:
    net = Given(step_size=0.3, adjustment=1.0).train(context()).net
    run = context()
    groups = Given().infer(run)
    objective = WorstGroupRisk(step_size=0.3, adjustment=1.0, sizes=groups.sizes, group=groups.cell)
    assert torch.equal(parameters(net), parameters(run.fit(objective, sampler=Balanced(groups.cell)).net))


def test_umix_follows_with_the_error_rates_of_the_cells(context: Make) -> None:
    other = context()
    result = Given(then="umix", eta=5.0, sigma=1.0, alpha=0.3).train(context())
    groups = Given().infer(other)
    rate = torch.tensor([float(groups.wrong[groups.cell == c].float().mean()) for c in (0, 1)])[groups.cell]
    weights = normalized(importance_weights(rate, eta=5.0))
    expected = other.fit(MixupRisk(weights=weights, sigma=1.0, alpha=0.3)).net
    torch.testing.assert_close(parameters(result.net), parameters(expected))
    torch.testing.assert_close(result.per_example["weight"], weights)
    torch.testing.assert_close(result.per_example["uncertainty"], rate)


def test_weights_may_also_be_divided_by_the_size_of_the_class(context: Make, moons: Task) -> None:
    splits = {**moons.splits, "train": moons.splits["train"].rows(torch.arange(90))}
    task = Task("uneven", splits, moons.classes)
    results = [
        Given(then="umix", eta=5.0, class_balance=balance).train(context(task=task)) for balance in (False, True)
    ]
    y = splits["train"].y
    assert int((y == 0).sum()) != int((y == 1).sum())
    expected = results[0].per_example["weight"] / torch.bincount(y)[y]
    torch.testing.assert_close(results[1].per_example["weight"], expected / expected.mean())


def test_umix_without_eta_and_mixing_is_erm(context: Make) -> None:
    net = Given(then="umix", eta=0.0, sigma=0.0).train(context()).net
    torch.testing.assert_close(parameters(net), parameters(context().fit(MeanRisk()).net))


def test_weights_that_are_all_equal_or_rest_on_few_examples_are_reported(context: Make) -> None:
    def warnings_of(wrong: torch.Tensor, eta: float) -> str:
        groups = InferredGroups(wrong.long(), 2, wrong, Notes())
        return " ".join(Given(then="umix", eta=eta).train_on(groups, context()).warnings)

    one = torch.arange(140) == 3
    assert "no training example wrong, so all weights are equal" in warnings_of(one & False, 3.0)
    assert "The weights favour few examples" in warnings_of(one, 1e4)
    assert "weights" not in warnings_of(one, 3.0)


@pytest.mark.parametrize("name", ["eiil", "george", "xrm"])
def test_settings_of_umix_are_refused_without_it(name: str) -> None:
    with pytest.raises(UserError, match=rf"^{name}\.eta must be used with then=umix, got then=group_dro\.$"):
        method(name, eta=7.0)
    assert method(name, eta=7.0, then="umix").then == "umix"  # type: ignore[attr-defined]
