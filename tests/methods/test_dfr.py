"""DFR: its halves, its refit against a known answer and against scikit-learn, and what it refuses."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from umix.bench.runs.execute import execute
from umix.bench.runs.load_net import load_net
from umix.bench.spec.run_spec import RunSpec
from umix.core.streams import stream
from umix.core.subsets import balanced_subset, stratified_split
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.groups import Groups
from umix.data.registry import TASKS
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.methods.dfr import DFR, refit
from umix.models.mlp import MLP
from umix.training.context import Context

Make = Callable[..., Context]


def blobs(n: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    angle = 2 * np.pi * y / n_classes
    core = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.concatenate([5 + 3 * core + rng.normal(size=(n, 2)), 0.01 * rng.normal(size=(n, 2))], axis=1), y


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_refit_head_predicts_what_scikit_learn_predicts(n_classes: int, penalty: str) -> None:
    z, y = blobs(90, n_classes)
    head, converged = refit(z, y, n_classes=n_classes, c=0.5, penalty=penalty, seed=0)
    solver = "lbfgs" if penalty == "l2" else "liblinear" if n_classes == 2 else "saga"
    scaler = StandardScaler().fit(z)
    model = LogisticRegression(C=0.5, l1_ratio=float(penalty == "l1"), solver=solver, max_iter=1000, random_state=0)
    expected = model.fit(scaler.transform(z), y).predict_proba(scaler.transform(z))
    logits = torch.from_numpy(z @ head[:, :-1].T + head[:, -1])
    np.testing.assert_allclose(logits.softmax(dim=1), expected, atol=1e-9)
    assert converged


def test_a_class_that_the_data_do_not_hold_is_never_predicted() -> None:
    z, y = blobs(60, 2)
    head, _ = refit(z, np.where(y == 1, 3, 0), n_classes=5, c=1.0, penalty="l1", seed=0)
    predicted = (1e3 * z @ head[:, :-1].T + head[:, -1]).argmax(axis=1)
    assert set(predicted) <= {0, 3}
    assert np.isfinite(head).all()


def test_features_that_never_vary_get_no_weight_and_do_no_harm() -> None:
    z, y = blobs(60, 2)
    head, _ = refit(np.column_stack([z, np.full(60, 0.1)]), y, n_classes=2, c=1.0, penalty="l1", seed=0)
    assert np.isfinite(head).all()
    assert (head[:, 4] == 0).all()


def test_one_class_alone_cannot_be_fitted() -> None:
    with pytest.raises(UserError, match="at least two classes"):
        refit(np.ones((4, 2)), np.zeros(4, dtype=int), n_classes=2, c=1.0, penalty="l1", seed=0)


@pytest.fixture(scope="module")
def spurious() -> Task:
    """The first input tells the label, the second, ten times as loud, only in training: there it agrees in 19 of 20."""

    def draw(cells: tuple[int, int, int, int], seed: int) -> Split:
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(4), cells)
        y, a = group // 2, group % 2
        x = np.stack([2 * y - 1, 10.0 * (2 * a - 1)], axis=1) + 0.3 * rng.normal(size=(len(y), 2))
        groups = Groups.from_ids(torch.from_numpy(group), [f"cell {g}" for g in range(4)])
        return Split(torch.from_numpy(x).float(), torch.from_numpy(y), groups)

    splits = {"train": draw((190, 10, 10, 190), 0), "val": draw((95, 10, 10, 95), 1), "test": draw((50,) * 4, 2)}
    return Task("spurious", splits, ("no", "yes"))


def test_the_last_layer_forgets_the_spurious_input(context: Make, spurious: Task) -> None:
    run = context(task=spurious, net=MLP(hidden=()), fit={"epochs": 1})
    result = DFR().train(run)
    head = result.net.head
    true, loud = (head.weight[1] - head.weight[0]).detach().abs()
    assert loud < 0.01 * true
    assert (result.history.counts("test").hits[0] >= 48).all()  # of 50 in every cell


def halves_of(run: Context, method: DFR) -> tuple[np.ndarray, np.ndarray]:
    group = run.task.splits["val"].group.numpy()
    return stratified_split(group, share=method.share, rng=stream(run.seed, "dfr", "half"))


def test_selection_sees_only_the_half_that_was_not_fitted(context: Make) -> None:
    run, method = context(), DFR()
    result = method.train(run)
    chosen, rest = halves_of(run, method)
    assert not set(chosen) & set(rest)
    unseen = run.task.splits["val"].rows(torch.from_numpy(rest))
    hits = result.net(unseen.x).argmax(dim=1) == unseen.y
    assert result.history.counts("val").hits.tolist() == [torch.bincount(unseen.group[hits], minlength=4).tolist()]
    assert result.history.counts("val").sizes.tolist() == [10] * 4
    assert result.history.counts("test").sizes.tolist() == run.task.splits["test"].groups.sizes.tolist()


def test_cross_fitted_logits_are_those_of_the_layer_that_was_fitted_to_the_other_part(context: Make) -> None:
    run, method = context(), DFR(repeats=2)
    logits = method.cross_fitted(context())
    net = method.train(run).net
    chosen, rest = halves_of(run, method)
    val = run.task.splits["val"]
    np.testing.assert_allclose(logits[rest], net(val.x[rest]).detach(), atol=1e-5)
    assert logits[chosen].isfinite().all()
    assert not torch.allclose(logits[chosen], net(val.x[chosen]).detach(), atol=0.1)


def test_the_head_is_the_mean_of_refits_on_balanced_subsets_of_the_half(context: Make) -> None:
    run, method = context(seed=3), DFR(repeats=3, c=0.3)
    net = method.train(run).net
    chosen, _ = halves_of(run, method)
    val = run.task.splits["val"]
    z = net.features(val.x[chosen]).detach().double().numpy()
    heads = []
    for repeat in range(3):
        rng = stream(3, "dfr", "subset", repeat)
        rows = balanced_subset(val.group.numpy()[chosen], rng=rng)
        scaler = StandardScaler().fit(z[rows])
        seed = int(rng.integers(2**31))
        model = LogisticRegression(C=0.3, l1_ratio=1.0, solver="liblinear", max_iter=1000, random_state=seed)
        model.fit(scaler.transform(z[rows]), val.y.numpy()[chosen][rows])
        heads.append(model.decision_function(scaler.transform(z)))
    logits = net(val.x[chosen]).detach()
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0], np.mean(heads, axis=0), atol=1e-4)


def test_one_balanced_subset_predicts_as_scikit_learn_on_the_half(context: Make) -> None:
    run, method = context(), DFR(repeats=1, penalty="l2")
    net = method.train(run).net
    chosen, _ = halves_of(run, method)
    val = run.task.splits["val"]
    z, y = net.features(val.x[chosen]).detach().double().numpy(), val.y.numpy()[chosen]
    rows = balanced_subset(val.group.numpy()[chosen], rng=stream(0, "dfr", "subset", 0))
    scaler = StandardScaler().fit(z[rows])
    model = LogisticRegression(max_iter=1000).fit(scaler.transform(z[rows]), y[rows])
    assert net(val.x[chosen]).argmax(dim=1).tolist() == model.predict(scaler.transform(z)).tolist()


def test_a_group_that_validation_misses_is_reported_and_left_out(context: Make, moons: Task) -> None:
    val = moons.splits["val"]
    partial = Task(moons.name, {**moons.splits, "val": val.rows(torch.nonzero(val.group != 2)[:, 0])}, moons.classes)
    result = DFR().train(context(task=partial))
    assert result.warnings[0].startswith("Validation has no example of moon 2")
    assert result.history.counts("val").sizes.tolist() == [10, 10, 0, 10]


def test_a_fit_that_does_not_converge_is_reported(context: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("umix.methods.dfr._ITERATIONS", 1)
    result = DFR(repeats=2).train(context())
    assert result.warnings == ("2 of 2 logistic regressions did not converge; try a smaller c.",)


SMALL = {"sizes": [40, 8, 8, 40], "eval_size": 10, "epochs": 2, "hidden": [8]}


def test_a_finished_run_gives_back_the_refit_net(tmp_path: Path) -> None:
    record = execute(RunSpec(task="four_moons", method="dfr", settings=SMALL), out=tmp_path)
    net, x = load_net(record), FourMoons(sizes=(40, 8, 8, 40), eval_size=10).load().splits["test"]
    hits = (net(x.x).argmax(dim=1) == x.y).float() @ x.member_float
    assert hits.tolist() == record.counts["test"].hits[0].tolist()
    assert record.counts["val"].sizes.tolist() == [5] * 4


def test_validation_groups_that_overlap_are_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Overlapping(FourMoons):
        def load(self, root: Path | None = None) -> Task:
            task = FourMoons(sizes=(20, 5, 5, 20), eval_size=10).load()
            val = task.splits["val"]
            both = replace(val, groups=Groups(torch.ones_like(val.member), val.groups.names))
            return Task(task.name, {**task.splits, "val": both}, task.classes)

    monkeypatch.setitem(TASKS.own, "four_moons", Overlapping)
    with pytest.raises(UserError, match="exactly one of the groups"):
        execute(RunSpec(task="four_moons", method="dfr"), out=tmp_path)
    assert list(tmp_path.iterdir()) == []
    execute(RunSpec(task="four_moons", method="erm", settings={"epochs": 1}), out=tmp_path)


def test_validation_that_leaves_nothing_for_selection_is_refused(context: Make, moons: Task) -> None:
    val = moons.splits["val"]
    one_each = torch.stack([torch.nonzero(val.group == g)[0, 0] for g in range(4)])
    task = Task(moons.name, {**moons.splits, "val": val.rows(one_each)}, moons.classes)
    with pytest.raises(UserError, match=r"two examples of a group, .* got 4 examples"):
        DFR().train(context(task=task))
