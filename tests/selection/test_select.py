"""Selections: what auto leaves open is chosen on validation, and the winner is the same as a run with its settings."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from umix import RunSpec, execute, method
from umix.core.epoch_counts import Counts
from umix.core.evaluation import Evaluation
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.models.mlp import MLP, Linear
from umix.selection.halving import SELECTION
from umix.selection.select import Candidate, limited_cost, select, worst_rates
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.fit_settings import FitSettings
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import MeanRisk
from umix.training.stage import ErmStage

AUTO = {"umix.eta": "auto", "umix.pool": "auto", "umix.length": "auto"}


def noise(n=400, *, seed=0):
    """Labels that x says nothing of, seven in ten of them 0."""
    rng = np.random.default_rng(seed)
    splits = {}
    for name in ("train", "val", "test"):
        y = torch.from_numpy((rng.random(n) < 0.3).astype(np.int64))
        splits[name] = Split(torch.from_numpy(rng.normal(size=(n, 5))).float(), y, Groups(torch.zeros(n, 0).bool(), ()))
    return Task("noise", splits, ("0", "1"))


def shortcut(n=1200, *, seed=0, agreement=0.95, noisy=0.0):
    """The class depends on a faint feature; a loud one agrees with it in most examples. Groups: class × loud feature."""
    rng = np.random.default_rng(seed)
    splits = {}
    for name in ("train", "val", "test"):
        y = rng.integers(0, 2, n)
        place = np.where(rng.random(n) < agreement, y, 1 - y)
        x = rng.normal(size=(n, 6))
        x[:, 0] += 1.5 * (2 * y - 1)
        x[:, 1] += 4.0 * (2 * place - 1)
        y = np.where(rng.random(n) < noisy, 1 - y, y)
        groups = Groups.cells(torch.from_numpy(y), torch.from_numpy(place), labels=["0", "1"], attributes=["a", "b"])
        splits[name] = Split(torch.from_numpy(x).float(), torch.from_numpy(y), groups)
    return Task("shortcut", splits, ("0", "1"))


def context_on(task, net=None, **options):
    settings = FitSettings(epochs=options.pop("epochs", 4), batch_size=64, lr=0.01, optimizer="adamw")
    return Context(task, net or MLP(hidden=(8,)), settings, **options)


@pytest.mark.parametrize("net", ["mlp", "linear"])
def test_an_auto_run_is_the_run_with_the_chosen_settings(tmp_path, net):
    given = {"fit.epochs": 6, "net.name": net}
    auto = execute(RunSpec(task="four_moons", method="umix", settings=AUTO | given), out=tmp_path)
    chosen = {
        f"umix.{name}": auto.choices[name]
        for name in ("eta", "pool", "power", "start", "length")
        if name in auto.choices
    }
    fixed = RunSpec(task="four_moons", method="umix", settings=given | chosen | {"trajectory.epochs": 6})
    again = execute(fixed, out=tmp_path)
    assert auto.split_counts == again.split_counts
    assert again.choices == {}
    assert len(auto.choices["candidates"]) == (16 if net == "mlp" else 31)  # windows of 2, 5 and 6 epochs
    for file in auto.directory.glob("weights/epoch-*"):
        assert file.read_bytes() == (again.directory / "weights" / file.name).read_bytes()


def test_selections_are_shared_and_a_second_run_trains_none_of_it_again(tmp_path):
    settings = AUTO | {"fit.epochs": 3}
    first = execute(RunSpec(task="four_moons", method="umix", settings=settings), out=tmp_path)
    again = execute(RunSpec(task="four_moons", method="umix", settings=settings | {"umix.budget": 1.0}), out=tmp_path)
    assert not first.stages[SELECTION].reused
    assert again.stages[SELECTION].reused


def test_a_budget_that_every_candidate_breaks_trains_the_first_with_a_warning():
    context = limited_cost(context_on(noise()), 2.0, budget=0.1)  # nothing reaches it
    made = [Candidate(name, "erm", {}, MeanRisk()) for name in ("first", "second")]
    selection = select(context, made, content="test")
    assert selection.winner.name == "first"
    assert len(selection.warnings) == 1
    assert "looks like noise" in selection.warnings[0]


def test_without_groups_no_candidate_wins_that_gives_away_a_point_of_the_mean_of_the_classes():
    """Labels of two equal classes, a fifth of them noise: whoever learns the noise is right about it and wrong elsewhere."""
    task = shortcut(noisy=0.2, agreement=0.5)
    context = context_on(task, use_groups="test", evaluation=Evaluation(choose=False), epochs=8)
    x, y = task.splits["train"].x, task.splits["train"].y
    noise = torch.where((x[:, 0] > 0).long() != y, 8.0, 1.0)
    made = [
        Candidate("plain", "umix", {}, MixupRisk(weights=torch.ones(len(y)), sigma=0.5, alpha=0.5)),
        Candidate("noise", "umix", {}, BatchRisk(weights=noise), weights=noise),
    ]
    selection = select(context, made, content="test")
    scores = {one.name: one.score for one in selection.results}
    assert selection.winner.name == "plain"
    assert np.isnan(scores["noise"])
    assert not np.isnan(scores["plain"])
    assert selection.context.evaluation.class_floor > 0.7


def test_erm_and_class_reweighting_are_candidates_where_no_groups_choose_and_only_there():
    made = [Candidate(name, "erm", {}, MeanRisk()) for name in ("first", "second")]
    without, known = (
        select(context_on(shortcut(300), evaluation=evaluation), made, content="test")
        for evaluation in (Evaluation(choose=False), Evaluation())
    )
    assert (without.context.evaluation.class_floor is not None, known.context.evaluation.class_floor) == (True, None)


def test_selections_never_see_test_examples():
    task = noise()
    poisoned = Split(torch.full((400, 5), torch.nan), task.splits["test"].y, task.splits["test"].groups)
    outcomes = []
    for splits in (task.splits, {**task.splits, "test": poisoned}):
        context = context_on(Task("noise", splits, task.classes), epochs=2)
        result = method("umix", eta="auto", pool="auto", length="auto", budget=0.5).train(context)
        outcomes.append(result.choices)
    assert outcomes[0] == outcomes[1]


def test_groups_that_may_not_choose_do_not():
    task, other = shortcut(300), shortcut(300, seed=1)
    mixed = {**task.splits, "val": Split(task.splits["val"].x, task.splits["val"].y, other.splits["val"].groups)}
    outcomes = []
    for splits in (task.splits, mixed):
        context = context_on(Task("shortcut", splits, task.classes), evaluation=Evaluation(choose=False), epochs=2)
        outcomes.append(method("umix", eta="auto", pool="auto", length="auto").train(context).choices)
    assert outcomes[0] == outcomes[1]
    assert "(two fifths the worst class, three fifths the average)" in outcomes[0]["reason"]


def test_known_validation_groups_choose_a_net_that_is_better_in_the_worst_group():
    task = shortcut()
    worst = {}
    for name, given in {"erm": {}, "umix": {"eta": "auto", "pool": "auto", "length": "auto"}}.items():
        context = context_on(task, Linear(), epochs=12)
        test = method(name, **given).train(context).history.counts("test")
        worst[name] = (test.hits[-1] / test.sizes).min()
    assert worst["umix"] > worst["erm"] + 0.05


def test_where_labels_are_noise_the_rule_without_groups_stays_near_erm():
    task = shortcut(noisy=0.35)
    averages = {}
    for name, given in {"erm": {}, "umix": {"eta": "auto", "pool": "auto", "length": "auto"}}.items():
        context = context_on(task, Linear(), epochs=12, evaluation=Evaluation(choose=False))
        test = method(name, **given).train(context).history.counts("test")
        averages[name] = (test.all_hits / test.n).max()
    assert averages["umix"] > averages["erm"] - 0.03


def test_only_what_is_auto_is_tried():
    result = method("umix", eta="auto", pool="class", length=2, budget=1.0).train(context_on(noise()))
    names = [one["candidate"] for one in result.choices["candidates"]]
    assert names
    assert all("pool=class" in name or "eta=0" in name for name in names)
    assert all("length=2" in name for name in names)


def test_fixed_settings_are_trained_without_a_selection():
    context = context_on(noise())
    result = method("umix", eta=3.0, length=2).train(context)
    assert list(context.journal.reports) == ["trajectory", "fit"]
    assert result.choices == {}


def test_stacked_nets_rank_candidates_as_nets_of_their_own_do():
    """The same candidates, once stacked and once alone because their mixing cannot be stacked."""
    task, n = shortcut(), 1200
    group = task.splits["train"].group
    weights = {"equal": torch.ones(n), "balanced": (1 / torch.bincount(group).float())[group] * n / 4}
    scores = []
    for per_example in (False, True):
        made = [
            Candidate(name, "umix", {}, MixupRisk(weights=w, sigma=0.0, alpha=1.0, per_example=per_example))
            for name, w in weights.items()
        ]
        context = context_on(task, Linear(), epochs=8)
        selection = select(context, made, content="test")
        assert selection.winner.name == "balanced"
        scores.append({one.name: one.score for one in selection.results})
    assert scores[0] == pytest.approx(scores[1], abs=0.02)


def test_objectives_that_cannot_be_stacked_run_alone():
    task = shortcut(n=200)
    cubed = BatchRisk(loss=lambda logits, y: torch.nn.functional.cross_entropy(logits, y, reduction="none") ** 3)
    made = [Candidate("erm", "erm", {}, MeanRisk()), Candidate("cubed", "erm", {}, cubed)]
    context = context_on(task, Linear())
    selection = select(context, made, content="test")
    assert {one.name for one in selection.results} == {"erm", "cubed"}


def test_the_floor_of_a_selection_holds_for_the_final_choice_too():
    context = context_on(shortcut(300), evaluation=Evaluation(choose=False))
    result = method("umix", eta="auto", pool="auto", length="auto", budget=0.02).train(context)
    erm = context_on(shortcut(300))
    best = max(erm.trajectory(ErmStage("trajectory", 4, record="online")).val_rates())
    assert result.history.counts("val").evaluation.floor == pytest.approx(best - 0.02)


def test_an_ensemble_has_no_window_to_find():
    with pytest.raises(UserError, match="length must be a number of models"):
        method("umix", uncertainty="ensemble", length="auto").train(context_on(noise()))


def counts_of_three_epochs() -> Counts:
    """Two classes of 60; group 2 of 5 examples is too small to judge."""
    hits, sizes = np.array([[50, 40, 0], [30, 50, 5], [45, 45, 1]]), np.array([60, 55, 5])
    class_hits = np.stack([hits[:, 0], hits[:, 1:].sum(axis=1)], axis=1)
    composition = np.array([[60, 0], [0, 55], [0, 5]])
    return Counts(hits, sizes, class_hits, np.array([60, 60]), composition=composition, evaluation=Evaluation())


def test_worst_rates_are_raw_rates_of_large_groups_or_of_classes():
    counts = counts_of_three_epochs()
    assert worst_rates(counts, "worst") == pytest.approx((counts.hits / counts.sizes)[:, :2].min(axis=1))
    large = replace(counts, hits=counts.hits[:, :2], sizes=counts.sizes[:2], composition=counts.composition[:2])
    assert worst_rates(large, "worst") == pytest.approx((large.hits / large.sizes).min(axis=1))
    assert worst_rates(counts, "worst_class") == pytest.approx([40 / 60, 30 / 60, 45 / 60])


def test_no_result_lies_beyond_the_frontier():
    context = context_on(shortcut(600, agreement=0.9), epochs=5)
    candidates = [
        Candidate(f"umix eta={eta}", "umix", {}, MixupRisk(weights=torch.linspace(1, eta, 600), sigma=0.5, alpha=0.5))
        for eta in (1, 3, 9)
    ]
    selection = select(context, candidates, content="frontier")
    for one in selection.results:
        beaten = [
            point.worst >= one.worst - 1e-9 and point.average >= one.average - 1e-9 for point in selection.frontier
        ]
        assert any(beaten)


def test_of_equal_candidates_the_first_is_on_the_frontier():
    context = context_on(shortcut(600, agreement=0.9), epochs=2)
    candidates = [Candidate(f"umix {number}", "umix", {}, MeanRisk()) for number in range(6)]
    selection = select(context, candidates, content="equal")
    assert {point.name for point in selection.frontier} == {"umix 0"}
