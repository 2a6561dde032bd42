"""Counts of every epoch."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from umix.core.calibration import fitted_calibration
from umix.core.epoch_counts import Counts
from umix.core.selection import RULES
from umix.core.thresholds import predicted_classes
from umix.data.batch import Batch
from umix.data.registry import load_task
from umix.models.net import Net
from umix.training import history
from umix.training.best_weights import scored_rules, selected_epochs
from umix.training.context import Context
from umix.training.history import HeldOutUncertainty, fit_warnings
from umix.training.objective import MeanRisk, Objective, State
from umix.training.train_result import TrainResult

Make = Callable[..., Context]


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
    assert (counts(hits, sizes).collapsed >= 0).sum() == expected


def test_a_collapsed_net_is_reported(context: Make) -> None:
    class FirstClassOnly(Objective):
        def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
            return -net(batch.x)[:, 0].mean() + net(batch.x)[:, 1].mean(), state

    result = context(fit={"lr": 0.5, "epochs": 3}).fit(FirstClassOnly())
    assert any("predicts a single class" in warning for warning in result.warnings)


def test_an_epoch_with_a_single_class_is_no_matter_if_another_is_selected() -> None:
    net = torch.nn.Linear(1, 1)
    assert fit_warnings(net, counts([[10, 0], [8, 8]], [10, 10])) == ()
    assert fit_warnings(net, counts([[10, 0], [0, 10]], [10, 10])) == (
        "The selected model predicts a single class for every validation row.",
    )


def watched(context: Make, uncertainty: Tensor | None) -> tuple[Context, TrainResult]:
    run = context()
    return run, run.fit(MeanRisk(), uncertainty=HeldOutUncertainty(val=uncertainty))


def test_the_tail_loss_is_the_mean_of_the_largest_fifth_of_the_losses_on_validation(context: Make) -> None:
    run, result = watched(context, None)
    val = run.splits["val"]
    losses = np.sort(
        torch.nn.functional.cross_entropy(result.net(val.x), val.y, reduction="none").detach().double().numpy()
    )
    assert len(losses) % 5 == 0
    assert result.history.counts("val").tail_losses[-1] == pytest.approx(losses[-len(losses) // 5 :].mean(), rel=1e-6)
    assert len(result.history.counts("test").tail_losses) == 0


def test_logits_are_kept_of_the_epochs_that_a_rule_selects_and_calibrate_these(
    context: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_WAITING", 1)  # after every epoch it is decided which are kept
    task = load_task("four_moons", sizes=(40, 10, 10, 40), eval_size=100)
    result = context(task=task, fit={"epochs": 12}).fit(MeanRisk())
    val = task.splits["val"]
    newest = fitted_calibration(result.net(val.x).detach().numpy(), val.y.numpy())
    fitted = result.history.calibration(11)
    assert newest is not None
    assert fitted is not None
    assert [fitted.scale, *fitted.biases] == pytest.approx([newest.scale, *newest.biases], rel=1e-3, abs=1e-3)
    kept = {int(name.rpartition("/")[2]) for name in result.history.tensors() if name.startswith("val/logits/")}
    assert kept == selected_epochs(result.history.counts("val")) | {11}


def test_validation_is_counted_by_fifths_of_uncertainty_lowest_first(context: Make) -> None:
    n = len(context().splits["val"])
    uncertainty = torch.randperm(n, generator=torch.Generator().manual_seed(0)) / n
    run, result = watched(context, uncertainty)
    val, found = run.splits["val"], result.history.counts("val")
    in_order = (result.net(val.x).argmax(dim=1) == val.y)[uncertainty.argsort()].double()
    assert n % 5 == 0
    assert found.quintile_rates[-1] == pytest.approx(in_order.view(5, n // 5).mean(dim=1).numpy())
    assert len(result.history.counts("test").quintile_rates) == 0


def test_a_method_without_a_first_stage_has_no_quintiles_and_every_other_rule(context: Make) -> None:
    _, result = watched(context, None)
    assert set(RULES) - set(scored_rules(result.history.counts("val"))) == {"uncertainty_quintile"}


def test_a_diverged_net_has_no_tail_loss(context: Make) -> None:
    class Diverged(Objective):
        def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
            return net(batch.x).mean() * torch.nan, state

    result = context().fit(Diverged())
    assert np.isnan(result.history.counts("val").tail_losses).all()


def test_test_examples_are_counted_by_fifths_where_their_uncertainty_is_known(context: Make) -> None:
    run = context()
    test = run.splits["test"]
    uncertainty = torch.arange(len(test)).flip(0) / len(test)
    result = run.fit(MeanRisk(), uncertainty=HeldOutUncertainty(test=uncertainty))
    found = result.history.counts("test").quintile_rates
    in_order = (result.net(test.x).argmax(dim=1) == test.y).flip(0).double()
    assert found[-1] == pytest.approx(in_order.view(5, -1).mean(dim=1).numpy())
    assert len(result.history.counts("val").quintile_rates) == 0


def test_fifths_of_test_are_counted_under_every_decision_and_kept_in_the_checkpoint(context: Make) -> None:
    run = context(fit={"epochs": 2})
    test = run.splits["test"]
    known = HeldOutUncertainty(test=torch.arange(len(test)) / len(test))
    result = run.fit(MeanRisk(), uncertainty=known)
    counts, logits = result.history.counts("test"), run.logits(result.net, "test")
    assert counts.at_threshold(0).quintile_rates.tolist() == counts.quintile_rates.tolist()
    for threshold, bias in enumerate(counts.biases):
        correct = (predicted_classes(logits, torch.from_numpy(bias)) == test.y).double()
        found = counts.only([1]).at_threshold(threshold).quintile_rates
        assert found[0] == pytest.approx(correct.view(5, -1).mean(dim=1).numpy())
    again = run.new_history(2, uncertainty=known)
    again.restore(2, result.history.tensors())
    assert np.array_equal(again.counts("test").threshold_quintiles, counts.threshold_quintiles)


def test_hits_of_every_decision_are_counted_after_every_epoch_and_kept_in_the_checkpoint(context: Make) -> None:
    run = context(fit={"epochs": 3})
    result = run.fit(MeanRisk())
    for name in ("val", "test"):
        counts, split = result.history.counts(name), run.splits[name]
        assert counts.threshold_hits.shape == (3, len(counts.biases), len(counts.sizes) + 2)
        assert np.array_equal(counts.threshold_hits[:, 0], np.hstack([counts.hits, counts.class_hits]))
        logits = run.logits(result.net, name)
        for threshold, bias in enumerate(counts.biases):
            correct = (predicted_classes(logits, torch.from_numpy(bias)) == split.y).numpy()
            expected = correct @ split.member.numpy().astype(int)
            assert counts.threshold_hits[-1, threshold, : len(expected)].tolist() == expected.tolist()
    again = context(fit={"epochs": 3}).new_history(3)
    again.restore(3, result.history.tensors())
    assert np.array_equal(again.counts("val").threshold_hits, result.history.counts("val").threshold_hits)


def test_a_task_with_very_many_groups_and_classes_is_decided_by_argmax(
    context: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_MOST_COUNTED", 100)
    result = context(fit={"epochs": 2}).fit(MeanRisk())
    assert not result.history.counts("val").has_thresholds
    assert not any("threshold" in name for name in result.history.tensors())
