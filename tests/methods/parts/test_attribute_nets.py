"""Groups predicted by nets: who predicts whom, what is refused, and resuming."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.core.evaluation import UseGroups
from umix.data.batch import Batch
from umix.data.groups import Groups
from umix.data.inputs import Mapped
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.methods.parts import attribute_nets
from umix.methods.parts.attribute_nets import AttributeRisk, SelectedPredictions, predicted_groups
from umix.models.mlp import MLP
from umix.models.net import Net
from umix.training.context import Context
from umix.training.fit_settings import FitSettings


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


def context_of(data: Task, use_groups: UseGroups = "val", **more: object) -> Context:
    return Context(data, MLP(hidden=(8,)), FitSettings(epochs=2, lr=0.1), use_groups=use_groups, **more)


def predicted(context: Context, *, epochs: int = 4, threshold: float = 0.95) -> Tensor:
    return predicted_groups(context, user="ssa", epochs=epochs, threshold=threshold).p


TRUE = split(300, seed=0, share=0.2).group


def test_validation_groups_tell_those_of_training_and_other_classes_have_probability_zero() -> None:
    data = task()
    run = context_of(data)
    found = predicted_groups(run, user="ssa", epochs=4, threshold=0.95)
    p, y = found.p, data.splits["train"].y
    assert p.dtype == torch.float64
    torch.testing.assert_close(p.sum(1), torch.ones(300).double(), atol=1e-6, rtol=0)
    assert (p.argmax(1) == TRUE).double().mean() > 0.9
    assert (p[y == 0, 2:] == 0).all()
    assert (p[y == 1, :2] == 0).all()
    assert list(run.journal.reports) == ["attribute-0", "attribute-1", "attribute-2"]
    said = found.notes.choices["spread"]
    assert (said["known"], said["estimated"], said["chance"]) == (60, 300, 0.5)
    assert said["accuracy"] > 0.9
    assert said["words"].startswith("the groups of 300 training rows are guessed by nets from 60 known")


def test_groups_without_attributes_are_told_as_well() -> None:
    p, y = predicted(context_of(task(cells=False))), task().splits["train"].y
    assert (p.argmax(1) == TRUE).double().mean() > 0.8
    assert (p[y == 0, 2:] == 0).all()


def test_known_training_rows_keep_their_group_and_are_used_only_where_groups_may_train() -> None:
    data = task(train=0.3)
    codes = data.splits["train"].some_groups
    p = predicted(context_of(data, "train"))
    assert (p[codes >= 0].max(1).values == 1).all()
    assert torch.equal(p[codes >= 0].argmax(1), codes[codes >= 0])
    assert torch.equal(predicted(context_of(data, "val")), predicted(context_of(task(), "val")))


def test_a_row_is_predicted_by_a_net_that_has_not_seen_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Tensor, Tensor]] = []
    run, fit = context_of(task()), attribute_nets.side_fit

    def side_fit(context: Context, stage: object, objective: object, **more: object) -> object:
        train, observer = more["train"], more["observer"]
        assert isinstance(train, Split)
        assert isinstance(observer, SelectedPredictions)
        seen.append((train.x, observer._fold.x))
        return fit(context, stage, objective, **more)

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
    p = predicted(context_of(Task("toy", {"train": blank, "val": given, "test": test}, data.classes)))
    assert (p.argmax(1) == TRUE).double().mean() > 0.9


def test_lazy_inputs_are_predicted_as_tensors_are() -> None:
    data = task()
    lazy = {name: replace(part, x=Mapped(part.x, str(float(part.x.sum())))) for name, part in data.splits.items()}
    found = predicted(context_of(Task("toy", lazy, data.classes)), epochs=1)
    torch.testing.assert_close(found, predicted(context_of(data), epochs=1))


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
        predicted(context_of(data, use), epochs=1)


def test_a_group_column_among_the_inputs_does_not_answer_where_it_is_filled_but_may_not_be_used() -> None:
    """Nothing else tells the attribute, and most training rows have a blank there."""
    data = task(train=0.3, signal=0.0)

    def with_column(one: Split) -> Split:
        return replace(one, x=torch.cat([one.x, 4 * one.attribute[:, None].float()], dim=1))

    data = replace(data, splits={name: with_column(one) for name, one in data.splits.items()})
    with pytest.raises(UserError, match="no better than chance"):
        predicted(context_of(data, "val"))


def test_one_row_without_a_group_is_predicted_as_others_are() -> None:
    data = task()
    train = data.splits["train"]
    ids = TRUE.index_fill(0, torch.tensor([7]), -1)
    groups = Groups.from_ids(ids, train.groups.names)
    p = predicted(context_of(replace(data, splits={**data.splits, "train": replace(train, groups=groups)}), "train"))
    assert int(p[7].argmax()) == int(TRUE[7])


def test_the_risk_is_that_of_labelled_rows_and_of_sure_pseudo_labels() -> None:
    rng, n = np.random.default_rng(0), 40
    x, y = torch.from_numpy(rng.normal(size=(n, 3))), torch.from_numpy(rng.integers(2, size=n))
    target = torch.from_numpy(np.where(np.arange(n) < 12, rng.integers(3, size=n), -1))
    labelled = torch.tensor([[3, 1, 2], [2, 2, 2]])
    objective = AttributeRisk(y=y, target=target, labelled=labelled, threshold=0.6, steps=2)
    net = MLP(hidden=()).build(torch.zeros(3), 3).double()
    with torch.no_grad():
        net.head.weight.copy_(torch.from_numpy(2 * rng.normal(size=(3, 3))))  # so that some predictions are sure
    state = {name: tensor.double() for name, tensor in objective.init(4).items()}
    logits = net(x).detach().numpy()
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    taken_anything = 0
    for step, rows in enumerate(np.array_split(rng.permutation(n), 2) * 2):
        index = torch.from_numpy(rows)
        risk, state = objective.risk(net, Batch(x[index], y[index], index, step), state, rng)
        limits = np.full((2, 3), np.inf)
        if step >= 2:
            free = np.arange(n) >= 12
            goal = 1 + int((p[free & (y.numpy() == 0), 1] >= 0.6).sum())
            for c in range(2):
                for a in range(3):
                    ordered = np.sort(p[free & (y.numpy() == c), a])[::-1]
                    k = goal - int(labelled[c, a])
                    if k > 0:
                        limits[c, a] = ordered[min(k, len(ordered)) - 1]
            limits[0, 1] = 0.6
        supervised = np.mean([-np.log(p[i, target[i]]) for i in rows if i < 12])
        others = [i for i in rows if i >= 12]
        sure = [i for i in others if p[i].max() >= limits[y[i], p[i].argmax()]]
        taken_anything += len(sure)
        expected = supervised + sum(-np.log(p[i].max()) for i in sure) / len(others)
        assert risk.item() == pytest.approx(expected, rel=1e-6)
    assert taken_anything > 0


def test_above_one_the_threshold_leaves_supervised_training() -> None:
    x, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(6, dtype=torch.int64)
    net = MLP(hidden=()).build(torch.zeros(3), 2)
    target = torch.tensor([0, 1, -1, -1, -1, -1])
    objective = AttributeRisk(y=y, target=target, labelled=torch.tensor([[1, 1]]), threshold=1.5, steps=1)
    state, rng = objective.init(2), np.random.default_rng(0)
    for step in range(3):
        risk, state = objective.risk(net, Batch(x, y, torch.arange(6), step), state, rng)
    expected = torch.nn.functional.cross_entropy(net(x[:2]), target[:2])
    assert risk.item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("rows", [[0], [4], []], ids=["labelled", "not labelled", "empty"])
def test_the_risk_of_a_batch_with_one_kind_of_rows_is_finite(rows: list[int]) -> None:
    y = torch.zeros(6, dtype=torch.int64)
    objective = AttributeRisk(
        y=y, target=torch.tensor([0, 1, -1, -1, -1, -1]), labelled=torch.tensor([[1, 1]]), threshold=0.5, steps=1
    )
    net, index = MLP(hidden=()).build(torch.zeros(3), 2), torch.tensor(rows, dtype=torch.int64)
    batch = Batch(torch.zeros(len(rows), 3), y[index], index, 1)
    risk, _ = objective.risk(net, batch, objective.init(2), np.random.default_rng(0))
    risk.backward()
    assert torch.isfinite(risk)
