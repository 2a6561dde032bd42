"""PG-DRO: the soft group risks of GroupDRO, with p as it was estimated."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from umix.core.weights import soft_sizes
from umix.data.groups import Groups
from umix.data.samplers import Balanced, Shuffled
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.group_dro import GroupDRO, WorstGroupRisk
from umix.methods.parts.attribute_nets import predicted_groups
from umix.methods.parts.spread_groups import spread_groups
from umix.methods.pg_dro import PGDRO
from umix.models.net import Net
from umix.training.context import Context

Make = Callable[..., Context]


def parameters(net: Net) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def test_where_all_groups_are_known_it_is_group_dro(context: Make) -> None:
    net = PGDRO(step_size=0.3, adjustment=1.0).train(context()).net
    known = GroupDRO(step_size=0.3, adjustment=1.0).train(context(groups=True)).net
    assert torch.equal(parameters(net), parameters(known))


@pytest.mark.parametrize("batches", ["balanced", "shuffled"])
@pytest.mark.parametrize("estimate", ["regression", "net"])
def test_it_minimises_the_worst_soft_group_with_p_as_it_was_estimated(
    context: Make, estimate: str, batches: str
) -> None:
    other = context(use_groups="val")
    method = PGDRO(estimate=estimate, batches=batches, attribute_epochs=2, step_size=0.3, adjustment=1.0)
    result = method.train(context(use_groups="val"))
    p = (
        predicted_groups(other, user="pg_dro", epochs=2, threshold=0.95).p
        if estimate == "net"
        else spread_groups(other, user="pg_dro")[0]
    )
    assert float((p * (1 - p)).sum()) > 0  # soft
    assert torch.equal(result.per_example["predicted_group"], p.argmax(1))
    risk = WorstGroupRisk(step_size=0.3, adjustment=1.0, sizes=soft_sizes(p).float(), p=p.float())
    sampler = Balanced(p.argmax(1)) if batches == "balanced" else Shuffled()
    assert torch.equal(parameters(result.net), parameters(other.fit(risk, sampler=sampler).net))


def test_one_known_group_per_row_gives_the_risk_of_group_dro_in_shuffled_batches(context: Make) -> None:
    net = PGDRO(batches="shuffled", step_size=0.3).train(context()).net
    other = context(groups=True)
    group = other.splits["train"].group
    p = torch.nn.functional.one_hot(group, 4).float()
    soft = other.fit(WorstGroupRisk(step_size=0.3, adjustment=0.0, sizes=p.sum(0), p=p))
    torch.testing.assert_close(parameters(net), parameters(soft.net), atol=1e-5, rtol=0)


@pytest.mark.parametrize("estimate", ["regression", "net"])
def test_no_known_group_is_refused_with_its_name(context: Make, moons: Task, estimate: str) -> None:
    blank = {
        name: replace(part, groups=Groups.from_ids(torch.full((len(part),), -1), part.groups.names))
        for name, part in moons.splits.items()
    }
    with pytest.raises(UserError, match=r"^pg_dro needs rows whose groups are known"):
        PGDRO(estimate=estimate).train(context(task=Task("blank", blank, moons.classes)))
