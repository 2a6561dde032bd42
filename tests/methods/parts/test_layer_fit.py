"""Rows that are kept apart to train a last layer."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from umix.data.groups import Groups
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.parts.layer_fit import divided, parts_of_validation
from umix.training.context import Context

Make = Callable[..., Context]


def with_val(task: Task, rows: torch.Tensor) -> Task:
    return replace(task, splits={**task.splits, "val": task.splits["val"].rows(rows)})


def test_every_class_is_divided_in_the_share() -> None:
    y = torch.tensor([0] * 40 + [1] * 10 + [2])
    first, rest = divided(y, share=0.8, seed=0, what="reference")
    assert y[first].bincount().tolist() == [32, 8, 1]
    assert y[rest].bincount().tolist() == [8, 2]
    assert sorted([*first.tolist(), *rest.tolist()]) == list(range(51))
    assert first.tolist() != divided(y, share=0.8, seed=1, what="reference")[0].tolist()


def test_the_parts_of_validation_do_not_overlap_and_do_not_depend_on_groups(context: Make, moons: Task) -> None:
    run = context()
    first, rest, _ = parts_of_validation(run, 0.25)
    assert (len(first), len(rest)) == (20, 60)
    assert not {tuple(x) for x in first.x.tolist()} & {tuple(x) for x in rest.x.tolist()}
    splits = {name: replace(split, groups=Groups(split.member[:, :0], ())) for name, split in moons.splits.items()}
    assert torch.equal(parts_of_validation(context(task=replace(moons, splits=splits)), 0.25)[0].x, first.x)


@pytest.mark.parametrize("rows", [[], [0], [0, 79]], ids=["none", "one", "one of each class"])
def test_validation_that_cannot_be_divided_is_refused(context: Make, moons: Task, rows: list[int]) -> None:
    with pytest.raises(UserError, match=rf"two examples of a class, .* got {len(rows)} examples"):
        parts_of_validation(context(task=with_val(moons, torch.tensor(rows, dtype=torch.int64))), 0.5)


def test_one_class_alone_cannot_train_a_last_layer(context: Make, moons: Task) -> None:
    rows = torch.nonzero(moons.splits["val"].y == 0)[:, 0]
    with pytest.raises(UserError, match="two classes in validation, got only no"):
        parts_of_validation(context(task=replace(with_val(moons, rows), classes=("no", "yes"))), 0.5)


def test_a_class_that_the_last_layer_does_not_see_is_named(context: Make, moons: Task) -> None:
    train = replace(moons.splits["train"], y=moons.splits["train"].y.index_fill(0, torch.tensor([0]), 2))
    run = context(task=replace(moons, splits={**moons.splits, "train": train}, classes=("no", "yes", "rare")))
    _, _, notes = parts_of_validation(run, 0.5)
    assert notes.warnings == ("Validation has no row of rare: the last layer is trained without it.",)
