"""Known groups spread: which rows are used, what is estimated, what is refused, and what is said."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.core.evaluation import UseGroups
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.methods.parts.example_vectors import one_hot_columns
from umix.methods.parts.soft_groups import estimated_groups, known_groups
from umix.methods.parts.spread_groups import spread_groups
from umix.models.cnn import CNN
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.fit_settings import FitSettings


def split(
    n: int, *, seed: int, share: float = 0.5, known: float = 1.0, signal: float = 3.0, cells: bool = True
) -> Split:
    """Two classes; the attribute shifts the second input by ``signal``; a share ``known`` of the groups is known."""
    rng = np.random.default_rng(seed)
    y, a = rng.integers(2, size=n), (rng.random(n) < share).astype(np.int64)
    x = rng.normal(size=(n, 4)) + np.stack([2 * y, signal * a, 0 * y, 0 * y], axis=1)
    seen = torch.from_numpy(np.where(rng.random(n) < known, a, -1))
    labels = torch.from_numpy(y)
    groups = Groups.cells(labels, seen, labels=["no", "yes"], attributes=["a", "b"])
    if not cells:
        groups = Groups.from_ids(groups.codes, ["one", "two", "three", "four"])
    return Split(torch.from_numpy(x).float(), labels, groups)


def task(*, val: float = 1.0, train: float = 0.0, **more: object) -> Task:
    splits = {
        "train": split(600, seed=0, share=0.2, known=train, **more),
        "val": split(300, seed=1, known=val, **more),
        "test": split(60, seed=2, **more),
    }
    return Task("toy", splits, ("no", "yes"))


def context_of(data: Task, use_groups: UseGroups = "train") -> Context:
    return Context(data, MLP(hidden=(4,)), FitSettings(epochs=2), use_groups=use_groups)


def spread(data: Task, use_groups: UseGroups = "train") -> Tensor:
    return spread_groups(context_of(data, use_groups))[0]


def true_groups(n: int = 600) -> Tensor:
    return split(n, seed=0, share=0.2).group


def test_validation_groups_tell_those_of_training() -> None:
    p = spread(task(), "val")
    assert p.sum(1).tolist() == pytest.approx([1.0] * 600)
    assert (p.argmax(1) == true_groups()).double().mean() > 0.93
    sizes = torch.bincount(true_groups(), minlength=4).double()
    torch.testing.assert_close(p.sum(0), sizes, atol=15, rtol=0)


def test_groups_of_other_classes_have_probability_zero() -> None:
    data = task()
    p, y = spread(data), data.splits["train"].y
    assert (p[y == 0, 2:] == 0).all()
    assert (p[y == 1, :2] == 0).all()


def test_groups_without_attributes_are_told_as_well() -> None:
    cells, ids = spread(task()), spread(task(cells=False))
    assert (cells.argmax(1) == ids.argmax(1)).double().mean() > 0.97
    y = task().splits["train"].y
    assert (ids[y == 0, 2:] == 0).all()


def test_known_training_rows_keep_their_group_and_tell_others_only_where_groups_may_train() -> None:
    data = task(train=0.3)
    codes = data.splits["train"].some_groups
    p = spread(data, "train")
    known = codes >= 0
    assert torch.equal(p[known].argmax(1), codes[known])
    assert (p[known].max(1).values == 1).all()
    assert torch.equal(spread(data, "val"), spread(task(), "val"))


def test_training_rows_alone_suffice() -> None:
    p = spread(task(val=0.0, train=0.3))
    assert (p.argmax(1) == true_groups()).double().mean() > 0.93


def test_inputs_that_the_known_rows_do_not_span_change_nothing() -> None:
    """40 known rows of 60 inputs: the regression is fitted in their span."""
    data = task()
    wide = {
        name: replace(part, x=torch.cat([part.x, torch.zeros(len(part), 56)], dim=1))
        for name, part in data.splits.items()
    }
    few = torch.arange(40)
    narrow = Task("toy", {**data.splits, "val": data.splits["val"].rows(few)}, data.classes)
    padded = Task("toy", {**wide, "val": wide["val"].rows(few)}, data.classes)
    torch.testing.assert_close(spread(padded), spread(narrow), atol=0.02, rtol=0)


def three_values(known: Tensor) -> Task:
    """Two classes and the attributes a, b and c, which has an input of its own; ``known`` rows of validation have a group."""

    def part(n: int, *, seed: int, known: Tensor | None = None) -> Split:
        rng = np.random.default_rng(seed)
        y, a = rng.integers(2, size=n), rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
        x = rng.normal(size=(n, 4)) + 6 * np.eye(4)[a]
        seen, labels = torch.from_numpy(a), torch.from_numpy(y)
        if known is not None:
            seen = torch.where(known[labels, seen], seen, -1)
        return Split(
            torch.from_numpy(x).float(),
            labels,
            Groups.cells(labels, seen, labels=["no", "yes"], attributes=["a", "b", "c"]),
        )

    return Task(
        "toy",
        {"train": part(600, seed=0), "val": part(300, seed=1, known=known), "test": part(60, seed=2)},
        ("no", "yes"),
    )


@pytest.mark.parametrize("unknown", [(0, 2), (1, 2), (0, 0)])
def test_an_attribute_that_is_known_in_one_class_only_is_found_in_the_others(unknown: tuple[int, int]) -> None:
    """Else a minority would be weighed up in one class alone, and models would learn that it means this class."""
    known = torch.ones(2, 3, dtype=torch.bool)
    known[unknown] = False
    data = three_values(known)
    p = spread(data, "val")
    assert p.sum(1).tolist() == pytest.approx([1.0] * len(p))
    assert (p.argmax(1) == data.splits["train"].some_groups).double().mean() > 0.95


def test_where_all_training_groups_are_known_nothing_is_estimated() -> None:
    run = context_of(task(train=1.0))
    found, known = estimated_groups(run), known_groups(run)
    assert torch.equal(found.p, known.p)
    assert found.ids is not None
    assert torch.equal(found.ids, true_groups())
    assert not found.notes.choices


def test_the_run_says_how_well_groups_are_told() -> None:
    _, notes = spread_groups(context_of(task(), "val"))
    said = notes.choices["spread"]
    assert said["known"] == 300
    assert said["estimated"] == 600
    assert said["log_loss"] < 0.3 < said["chance"]
    assert said["words"].startswith("the groups of 600 training rows are guessed from 300 known ones, with ")
    assert not notes.warnings


def test_images_are_represented_by_the_features_of_an_erm_net() -> None:
    def images(part: Split) -> Split:
        pattern = torch.zeros(len(part), 1, 8, 8)
        pattern[:, 0, :4] = part.x[:, :1, None]
        pattern[:, 0, 4:] = part.x[:, 1:2, None]
        return replace(part, x=pattern)

    data = task()
    shown = Task("toy", {name: images(part) for name, part in data.splits.items()}, data.classes)
    run = Context(shown, CNN(channels=(8,)), FitSettings(epochs=2, lr=0.05), use_groups="val")
    p, _ = spread_groups(run)
    assert list(run.journal.reports) == ["reference"]
    assert (p.argmax(1) == true_groups()).double().mean() > 0.8


@pytest.mark.parametrize(
    ("data", "use", "message"),
    [
        (task(val=0.0), "train", "needs rows whose groups are known and may be used, but there are none"),
        (task(), "test", "needs rows whose groups are known and may be used, but there are none"),
        (task(val=0.0, train=0.5), "val", "needs rows whose groups are known and may be used, but there are none"),
        (task(signal=0.0), "val", r"no better than chance: log loss 0\.\d+ on held-out rows, 0\.\d+ by chance"),
    ],
    ids=["nothing known", "only reported", "only training known", "noise"],
)
def test_what_cannot_be_estimated_is_refused(data: Task, use: UseGroups, message: str) -> None:
    with pytest.raises(UserError, match=message):
        spread(data, use)


def test_one_known_group_per_class_and_classes_without_a_known_group_are_refused() -> None:
    data = task()
    val = data.splits["val"]
    one = val.rows((val.attribute == 0).nonzero(as_tuple=True)[0])
    with pytest.raises(UserError, match="must know rows of two groups of one class"):
        spread(Task("toy", {**data.splits, "val": one}, data.classes))
    no = val.rows((val.y == 0).nonzero(as_tuple=True)[0])
    with pytest.raises(UserError, match="there is no known one of yes"):
        spread(Task("toy", {**data.splits, "val": no}, data.classes))


def test_a_group_column_among_the_inputs_does_not_answer_where_it_is_filled_but_may_not_be_used() -> None:
    """Nothing else tells the attribute, and most training rows have a blank there."""
    data = task(train=0.3, signal=0.0)

    def with_column(one: Split) -> Split:
        return replace(one, x=torch.cat([one.x, one.attribute[:, None].float()], dim=1))

    data = replace(data, splits={name: with_column(one) for name, one in data.splits.items()})
    with pytest.raises(UserError, match="no better than chance"):
        spread(data, "val")


def test_one_row_without_a_group_is_estimated_as_others_are() -> None:
    data = task(train=1.0)
    train = data.splits["train"]
    groups = replace(train.groups.known_for(torch.arange(len(train)) != 7), attribute=None)
    data = replace(data, splits={**data.splits, "train": replace(train, groups=groups)})
    p = spread(data)
    assert int(p[7].argmax()) == int(true_groups()[7])


def test_columns_are_those_of_a_loop_over_cells() -> None:
    rng = np.random.default_rng(0)
    categories = (0, 3, 0, 1)
    x = np.stack([rng.integers(0, count, 50) if count else rng.normal(size=50) for count in categories], axis=1)
    x[rng.random(x.shape) < 0.2] = np.nan
    expected = []
    for row in x:
        cells: list[float] = []
        for value, count in zip(row, categories, strict=True):
            if count:
                cells += [float(value == code) for code in range(count)]
            else:
                cells += [0.0, 1.0] if math.isnan(value) else [value, 0.0]
        expected.append(cells)
    found = one_hot_columns(torch.from_numpy(x).float(), categories)
    np.testing.assert_allclose(found.numpy(), np.array(expected), rtol=1e-6)
