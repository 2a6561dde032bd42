"""Counts of every epoch and the weights kept."""

from collections.abc import Callable

import numpy as np
import pytest
from torch import Tensor

from umix.core.selection import Counts
from umix.data.batch import Batch
from umix.nets.net import Net
from umix.train.history import collapsed_epochs, scored_rules
from umix.train.objective import Objective, State
from umix.train.trainer import Trainer

Make = Callable[..., Trainer]


def counts(class_hits: list[list[int]], class_sizes: list[int]) -> Counts:
    hits, sizes = np.array(class_hits), np.array(class_sizes)
    return Counts(hits=np.zeros((len(hits), 0)), sizes=np.zeros(0), class_hits=hits, class_sizes=sizes)


@pytest.mark.parametrize(
    ("hits", "sizes", "expected"),
    [
        ([[10, 0]], [10, 10], 1),
        ([[0, 10]], [10, 10], 1),
        ([[9, 0]], [10, 10], 0),
        ([[10, 1]], [10, 10], 0),
        ([[10, 0]], [10, 0], 0),
        ([[0, 0]], [10, 10], 0),
        ([[10, 0], [8, 8], [0, 10]], [10, 10], 2),
    ],
)
def test_collapse_is_all_of_one_class_and_none_of_the_others(
    hits: list[list[int]], sizes: list[int], expected: int
) -> None:
    assert collapsed_epochs(counts(hits, sizes)) == expected


def test_a_collapsed_net_is_reported(trainer: Make) -> None:
    class FirstClassOnly(Objective):
        def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
            return -net(batch.x)[:, 0].mean() + net(batch.x)[:, 1].mean(), state

    run = trainer(fit={"lr": 0.5, "epochs": 3})
    run.fit(FirstClassOnly())
    assert any("predicted a single class" in warning for warning in run.warnings)


def test_without_groups_there_is_no_worst_group_to_select_by() -> None:
    assert scored_rules(counts([[3, 4]], [10, 10])) == ["average", "worst_class", "last"]
