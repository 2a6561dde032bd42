"""Groups predicted by nets: who predicts whom, what is refused, and resuming."""

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.core.judging import UseGroups
from umix.data.groups import Groups
from umix.data.inputs import Mapped
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.methods.parts import attribute_nets
from umix.methods.parts.attribute_nets import SelectedPredictions, predicted_groups
from umix.nets.mlp import MLP
from umix.nets.net import Net
from umix.training.fit_settings import FitSettings
from umix.training.progress import Silent
from umix.training.trainer import Trainer


def split(
    n: int, *, seed: int, share: float = 0.5, known: float = 1.0, signal: float = 4.0, cells: bool = True
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
        "train": split(300, seed=0, share=0.2, known=train, **more),
        "val": split(60, seed=1, known=val, **more),
        "test": split(20, seed=2, **more),
    }
    return Task("toy", splits, ("no", "yes"))


def trainer_of(data: Task, use_groups: UseGroups = "val", **more: object) -> Trainer:
    return Trainer(data, MLP(hidden=(8,)), FitSettings(epochs=2, lr=0.1), use_groups=use_groups, **more)


def predicted(trainer: Trainer, *, epochs: int = 4, threshold: float = 0.95) -> Tensor:
    return predicted_groups(trainer, user="ssa", epochs=epochs, threshold=threshold)


TRUE = split(300, seed=0, share=0.2).group


def test_validation_groups_tell_those_of_training_and_other_classes_have_probability_zero() -> None:
    data = task()
    run = trainer_of(data)
    p, y = predicted(run), data.splits["train"].y
    assert p.dtype == torch.float64
    torch.testing.assert_close(p.sum(1), torch.ones(300).double(), atol=1e-6, rtol=0)
    assert (p.argmax(1) == TRUE).double().mean() > 0.9
    assert (p[y == 0, 2:] == 0).all()
    assert (p[y == 1, :2] == 0).all()
    assert list(run.reports) == ["attribute-0", "attribute-1", "attribute-2"]
    said = run.decisions["spread"]
    assert (said["known"], said["estimated"], said["chance"]) == (60, 300, 0.5)
    assert said["accuracy"] > 0.9
    assert said["words"].startswith(
        "the groups of 300 training rows are predicted by nets that learned them from 60 known"
    )


def test_groups_without_attributes_are_told_as_well() -> None:
    p, y = predicted(trainer_of(task(cells=False))), task().splits["train"].y
    assert (p.argmax(1) == TRUE).double().mean() > 0.8
    assert (p[y == 0, 2:] == 0).all()


def test_known_training_rows_keep_their_group_and_are_used_only_where_groups_may_train() -> None:
    data = task(train=0.3)
    codes = data.splits["train"].some_groups
    p = predicted(trainer_of(data, "train"))
    assert (p[codes >= 0].max(1).values == 1).all()
    assert torch.equal(p[codes >= 0].argmax(1), codes[codes >= 0])
    assert torch.equal(predicted(trainer_of(data, "val")), predicted(trainer_of(task(), "val")))


def test_a_row_is_predicted_by_a_net_that_has_not_seen_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Tensor, Tensor]] = []
    run, fit = trainer_of(task()), attribute_nets.side_fit

    def side_fit(trainer: Trainer, stage: object, objective: object, **more: object) -> object:
        train, observer = more["train"], more["observer"]
        assert isinstance(train, Split)
        assert isinstance(observer, SelectedPredictions)
        seen.append((train.x, observer._fold.x))
        return fit(trainer, stage, objective, **more)

    monkeypatch.setattr(attribute_nets, "side_fit", side_fit)
    predicted(run, epochs=1)
    assert sum(len(fold) for _, fold in seen) == 300
    for trained, fold in seen:
        assert len(trained) == 200 + 30  # and half of the labelled rows
        assert not {tuple(row) for row in trained.tolist()} & {tuple(row) for row in fold.tolist()}


def test_a_group_column_among_the_inputs_that_is_blank_in_new_rows_does_not_mislead() -> None:
    data = task()
    val, train = data.splits["val"], data.splits["train"]
    given = replace(val, x=torch.cat([val.x, val.attribute[:, None].float()], dim=1))
    blank = replace(train, x=torch.cat([train.x, torch.full((300, 1), 0.5)], dim=1))
    test = replace(data.splits["test"], x=torch.zeros(20, 5))
    p = predicted(trainer_of(Task("toy", {"train": blank, "val": given, "test": test}, data.classes)))
    assert (p.argmax(1) == TRUE).double().mean() > 0.9


def test_lazy_inputs_are_predicted_as_tensors_are() -> None:
    data = task()
    lazy = {name: replace(part, x=Mapped(part.x, str(float(part.x.sum())))) for name, part in data.splits.items()}
    found = predicted(trainer_of(Task("toy", lazy, data.classes)), epochs=1)
    torch.testing.assert_close(found, predicted(trainer_of(data), epochs=1))


def test_the_epoch_with_the_best_worst_group_is_kept() -> None:
    held = split(30, seed=3)
    attribute = held.attribute
    assert attribute is not None
    fold = split(10, seed=4)
    observer = SelectedPredictions(held, attribute, held.group, fold, torch.ones(2, 2).bool(), batch_size=8)

    def always(value: float) -> Net:
        net = MLP(hidden=()).build(torch.zeros(4), 2)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.zero_()
            net.head.weight[1, 1], net.head.bias[1] = value, -2 * value
        return net

    for epoch, net in enumerate((always(0.0), always(1.0), always(-1.0))):
        observer.observe(net, epoch)
    good = torch.softmax(always(1.0)(fold.x), dim=1).detach()
    torch.testing.assert_close(observer.p, good)
    again = SelectedPredictions(held, attribute, held.group, fold, torch.ones(2, 2).bool(), batch_size=8)
    again.restore(3, observer.tensors())
    again.observe(always(0.0), 3)
    assert torch.equal(again.p, observer.p)


class Stopped(Exception):  # noqa: N818 — simulates a killed process
    pass


class Stopper(Silent):
    def __init__(self, epochs: int) -> None:
        self.left = epochs

    def advance(self, steps: int) -> None:
        if not self.left:
            raise Stopped
        self.left -= 1


def test_a_killed_prediction_goes_on_where_it_was_and_a_finished_one_is_not_trained_again(tmp_path: Path) -> None:
    expected = predicted(trainer_of(task()))
    for epochs in (2, 5):
        cache = tmp_path / str(epochs)
        with contextlib.suppress(Stopped):
            predicted(trainer_of(task(), cache=cache, progress=Stopper(epochs)))
        assert torch.equal(predicted(trainer_of(task(), cache=cache)), expected)
    again = trainer_of(task(), cache=cache)
    assert torch.equal(predicted(again), expected)
    assert all(report.reused for report in again.reports.values())
    other = trainer_of(task(), cache=cache)
    predicted(other, threshold=0.8)
    assert not any(report.reused for report in other.reports.values())


def test_the_stage_has_fit_settings_of_its_own() -> None:
    run = trainer_of(task(), stages={"attribute": {"epochs": 1}})
    predicted(run, epochs=5)
    assert [report.epochs for report in run.reports.values()] == [1, 1, 1]


@pytest.mark.parametrize(
    ("data", "use", "message"),
    [
        (task(val=0.0), "train", "ssa needs rows whose groups are known and may be used, but there are none"),
        (task(), "test", "ssa needs rows whose groups are known and may be used, but there are none"),
        (task(signal=0.0), "val", r"ssa must tell the groups of a class apart, .* no better than chance"),
    ],
    ids=["nothing known", "only reported", "noise"],
)
def test_what_cannot_be_predicted_is_refused(data: Task, use: UseGroups, message: str) -> None:
    with pytest.raises(UserError, match=message):
        predicted(trainer_of(data, use), epochs=1)


def test_a_group_column_among_the_inputs_does_not_answer_where_it_is_filled_but_may_not_be_used() -> None:
    """Nothing else tells the attribute, and most training rows have a blank there."""
    data = task(train=0.3, signal=0.0)

    def with_column(one: Split) -> Split:
        return replace(one, x=torch.cat([one.x, 4 * one.attribute[:, None].float()], dim=1))

    data = replace(data, splits={name: with_column(one) for name, one in data.splits.items()})
    with pytest.raises(UserError, match="no better than chance"):
        predicted(trainer_of(data, "val"))


def test_one_row_without_a_group_is_predicted_as_others_are() -> None:
    data = task()
    train = data.splits["train"]
    ids = TRUE.index_fill(0, torch.tensor([7]), -1)
    groups = Groups.from_ids(ids, train.groups.names)
    p = predicted(trainer_of(replace(data, splits={**data.splits, "train": replace(train, groups=groups)}), "train"))
    assert int(p[7].argmax()) == int(TRUE[7])
