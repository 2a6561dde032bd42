"""EVaLS: its rows, who chooses k, and what it refuses."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from umix import RunSpec, execute
from umix.core.evaluation import EVERY_GROUP, Evaluation
from umix.core.selection import best_epoch
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.methods.evals import EVaLS, counts_of
from umix.methods.parts.layer_fit import parts_of_validation
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.stage import ErmStage

Make = Callable[..., Context]


@pytest.fixture(scope="module")
def spurious() -> Task:
    """The first input tells the label; the second, ten times as loud, agrees with it in 19 of 20 rows of train and val."""

    def draw(cells: tuple[int, int, int, int], seed: int) -> Split:
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(4), cells)
        y, a = group // 2, group % 2
        x = np.stack([2 * y - 1, 10.0 * (2 * a - 1)], axis=1) + 0.3 * rng.normal(size=(len(y), 2))
        groups = Groups.from_ids(torch.from_numpy(group), [f"cell {g}" for g in range(4)])
        return Split(torch.from_numpy(x).float(), torch.from_numpy(y), groups)

    splits = {"train": draw((190, 10, 10, 190), 0), "val": draw((190, 20, 20, 190), 1), "test": draw((50,) * 4, 2)}
    return Task("spurious", splits, ("no", "yes"))


def without_groups(task: Task) -> Task:
    blank = {name: replace(split, groups=Groups(split.member[:, :0], ())) for name, split in task.splits.items()}
    return replace(task, splits=blank)


def test_the_layer_is_a_logistic_regression_on_the_rows_of_extreme_losses(context: Make) -> None:
    other = context()
    result = EVaLS(k=6, penalty="l2").train(context())
    erm = other.reference(ErmStage("reference", 4))
    held_out, rest, _ = parts_of_validation(other, 0.5)
    losses = torch.nn.functional.cross_entropy(erm(held_out.x).detach(), held_out.y, reduction="none").numpy()
    y, z = held_out.y.numpy(), erm.features(held_out.x).detach().double().numpy()
    rows = []
    for label in (0, 1):
        ranked = np.flatnonzero(y == label)[np.argsort(losses[y == label])]
        rows += [*ranked[:6], *ranked[-6:]]
    rows = np.sort(rows)
    scaler = StandardScaler().fit(z[rows])
    model = LogisticRegression(max_iter=1000).fit(scaler.transform(z[rows]), y[rows])
    logits = result.net(held_out.x).detach().double().numpy()
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0], model.decision_function(scaler.transform(z)), atol=1e-3)
    assert result.history.counts("val").n == len(rest) == 40
    assert result.choices == {}


@pytest.mark.parametrize("groups", [True, False], ids=["groups choose", "environments choose"])
def test_the_last_layer_forgets_the_spurious_input(context: Make, spurious: Task, groups: bool) -> None:
    run = context(task=spurious if groups else without_groups(spurious), net=MLP(hidden=()), fit={"epochs": 1})
    result = EVaLS().train(run)
    test = spurious.splits["test"]
    hits = (result.net(test.x).argmax(1) == test.y).float() @ test.member_float
    assert (hits >= 45).all()  # of 50 in every cell; ERM hits none of two
    assert result.choices["k"] in (5, 10, 20, 40)
    what = "known group" if groups else "cell of class and inferred environment"
    assert f"by the worst {what}" in result.choices["reason"]
    assert [one["candidate"] for one in result.choices["candidates"]] == ["k=0", "k=5", "k=10", "k=20", "k=40", "k=52"]


def test_groups_that_may_only_be_reported_do_not_choose(context: Make, spurious: Task) -> None:
    given = {"net": MLP(hidden=()), "fit": {"epochs": 1}}
    hidden = EVaLS().train(context(task=spurious, evaluation=Evaluation(choose=False), **given))
    absent = EVaLS().train(context(task=without_groups(spurious), **given))
    assert torch.equal(hidden.net.head.weight, absent.net.head.weight)
    assert hidden.choices == absent.choices


def test_a_k_beyond_half_of_the_smallest_class_is_lowered_for_all_classes(context: Make, spurious: Task) -> None:
    val = spurious.splits["val"]
    few = val.rows(torch.cat([torch.nonzero(val.y == 0)[:, 0], torch.nonzero(val.y == 1)[:24, 0]]))
    task = replace(spurious, splits={**spurious.splits, "val": few})
    heads = [EVaLS(k=k).train(context(task=task, net=MLP(hidden=()))).net.head.weight for k in (6, 500)]
    assert torch.equal(*heads)  # 12 rows of the small class are in the first part


def test_the_counts_of_candidates_choose_as_those_of_epochs_do() -> None:
    y, groups = torch.tensor([0, 0, 1, 1]), Groups.from_ids(torch.tensor([0, 1, 2, 2]), ["a", "b", "c"])
    right = torch.tensor([[1, 0, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]]).bool()
    counts = counts_of(list(right), y, groups, n_classes=2, evaluation=replace(EVERY_GROUP, choose=False))
    assert counts.hits.tolist() == [[1, 0, 2], [1, 1, 1], [1, 1, 0]]
    assert counts.class_hits.tolist() == [[1, 2], [2, 1], [2, 0]]
    assert counts.composition.tolist() == [[1, 0], [1, 0], [0, 2]]
    assert best_epoch(counts, "worst") == 1


@pytest.mark.parametrize("groups", [True, False], ids=["groups choose", "environments choose"])
def test_where_labels_are_noise_the_layer_of_erm_stays(
    context: Make, spurious: Task, groups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noisy(split: Split) -> Split:
        flipped = torch.arange(len(split)) % 5 == 0
        noise = torch.from_numpy(np.random.default_rng(len(split)).normal(size=(len(split), 8))).float()
        return replace(split, x=torch.cat([split.x[:, :1], noise], dim=1), y=torch.where(flipped, 1 - split.y, split.y))

    task = replace(spurious, splits={name: noisy(split) for name, split in spurious.splits.items()})
    given = {"net": MLP(hidden=()), "fit": {"epochs": 20}, "task": task if groups else without_groups(task)}
    monkeypatch.setattr("umix.methods.evals._TRIED", (0, 5, 10))
    result, other = EVaLS().train(context(**given)), context(**given)
    kept = result.net.head.weight
    assert result.choices["k"] == 0
    assert torch.equal(kept, other.reference(ErmStage("reference", 20)).head.weight)
    noise = any("looks like noise" in one for one in result.warnings)
    assert noise != groups  # where groups choose, the average may fall
    assert torch.equal(kept, EVaLS(k=0).train(context(**given)).net.head.weight)


def test_one_class_alone_is_refused(context: Make, moons: Task) -> None:
    val = moons.splits["val"]
    only = replace(moons, splits={**moons.splits, "val": val.rows(torch.nonzero(val.y == 0)[:, 0])})
    with pytest.raises(UserError, match="two classes in validation"):
        EVaLS().train(context(task=only))


def test_a_regression_that_does_not_converge_is_reported(context: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("umix.methods.dfr._ITERATIONS", 1)
    result = EVaLS(k=3).train(context())
    assert result.warnings[0].startswith("1 of 1 logistic regressions did not converge")


def test_a_run_says_which_k_it_chose(tmp_path: Path) -> None:
    settings = {"sizes": [40, 8, 8, 40], "eval_size": 20, "epochs": 2, "use_groups": "test"}
    record = execute(RunSpec(task="four_moons", method="evals", settings=settings), out=tmp_path)
    assert record.choices["k"] in (0, 5, 10, 20)
    assert record.group_use == "none"
    again = execute(RunSpec(task="four_moons", method="evals", settings=settings), out=tmp_path)
    assert again.choices == record.choices
