"""Thresholds: class biases, their hits, and the choice of epoch and threshold together."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from umix.core.epoch_counts import Counts
from umix.core.evaluation import Evaluation
from umix.core.selection import Choice, best_choice, best_epoch, choice_score, oracle_choice
from umix.core.thresholds import candidate_biases, hits_by_threshold, predicted_classes


def drawn(n_classes: int, n: int = 300, n_groups: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(n_classes)
    logits = torch.from_numpy(3 * rng.standard_normal((n, n_classes))).float()
    logits[:20] = 0.0  # ties
    return logits, torch.from_numpy(rng.integers(0, n_classes, n)), torch.from_numpy(rng.random((n, n_groups)) < 0.4)


@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_hits_of_every_decision_are_those_of_deciding_each_example(n_classes):
    logits, y, member = drawn(n_classes)
    biases = torch.from_numpy(candidate_biases(np.arange(1, n_classes + 1))).float()
    found = hits_by_threshold(logits, y, member.nonzero(as_tuple=True), biases, n_groups=4)
    assert found.shape == (len(biases), 4 + n_classes)
    for threshold, bias in enumerate(biases):
        correct = (predicted_classes(logits, bias) == y).numpy()
        assert found[threshold, :4].tolist() == (correct[:, None] & member.numpy()).sum(axis=0).tolist()
        assert found[threshold, 4:].tolist() == np.bincount(y.numpy()[correct], minlength=n_classes).tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_hits_of_several_nets_are_those_of_each(n_classes):
    logits, y, member = drawn(n_classes)
    biases = torch.from_numpy(candidate_biases(np.arange(1, n_classes + 1))).float()
    several, pairs = torch.stack([logits, -logits, 2 * logits]), member.nonzero(as_tuple=True)
    found = hits_by_threshold(several, y, pairs, biases, n_groups=4)
    assert found.equal(torch.stack([hits_by_threshold(one, y, pairs, biases, n_groups=4) for one in several]))


@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_the_first_decision_is_argmax(n_classes):
    logits, _, _ = drawn(n_classes)
    bias = torch.from_numpy(candidate_biases(np.ones(n_classes)))[0].float()
    assert predicted_classes(logits, bias).equal(logits.argmax(dim=1))


def test_biases_of_two_classes_are_thresholds_of_the_odds_on_both_sides():
    biases = candidate_biases([99, 1])
    assert_allclose(np.sort(biases[:, 1]), -np.sort(-biases[:, 1])[::-1])
    p = torch.tensor([0.2, 0.4])
    logits = torch.stack([torch.log(1 - p), torch.log(p)], dim=1)
    assert predicted_classes(logits, torch.tensor([0.0, float(np.log(0.7 / 0.3))])).tolist() == [
        0,
        1,
    ]  # a threshold of 0.3


@pytest.mark.parametrize("sizes", [[99, 1], [70, 20, 10], [1, 1, 1], [500, 300, 10, 10, 1]])
def test_biases_come_in_the_order_of_their_size_and_argmax_is_the_first(sizes: list[int]) -> None:
    biases = candidate_biases(sizes)
    widest = biases.max(axis=1) - biases.min(axis=1)  # how much a difference of two logits is changed at most
    assert widest[0] == 0
    assert (widest[1:] > 0).all()
    assert (np.diff(widest) >= -1e-12).all()


def test_of_thresholds_that_are_equally_good_the_smallest_biases_win() -> None:
    biases = candidate_biases([80, 10, 10])
    hits = np.tile([50, 30, 20], (1, len(biases), 1))
    hits[:, 0] = [55, 25, 10]  # argmax is worse than all others, which are alike
    sizes = np.array([100, 60, 40])
    val = Counts(
        hits[:, 0, :0], sizes[:0], hits[:, 0], sizes, biases=biases, threshold_hits=hits, evaluation=Evaluation()
    )
    chosen = biases[best_choice(val, "worst_class").threshold]
    assert np.ptp(chosen) == np.ptp(biases[1:], axis=1).min()


def test_taking_the_whole_prior_away_is_post_hoc_logit_adjustment():
    sizes = np.array([70.0, 20.0, 10.0])
    whole = -np.log(sizes / sizes.sum())
    assert any(np.allclose(bias - bias.mean(), whole - whole.mean()) for bias in candidate_biases(sizes))


def test_a_single_class_or_no_example_has_argmax_only():
    assert candidate_biases([5]).tolist() == [[0.0]]
    none = torch.zeros(0, dtype=torch.int64)
    assert hits_by_threshold(torch.zeros(0, 2), none, (none, none), torch.zeros(1, 2), n_groups=3).tolist() == [[0] * 5]


def counted(hits: list[list[list[int]]], sizes: list[int]) -> Counts:
    """Counts without groups of epochs × thresholds × classes."""
    array, size = np.array(hits), np.array(sizes)
    biases = np.zeros((array.shape[1], len(sizes)))
    return Counts(
        array[:, 0, :0], size[:0], array[:, 0], size, biases=biases, threshold_hits=array, evaluation=Evaluation()
    )


def test_epoch_and_decision_are_chosen_together():
    val = counted([[[90, 10], [80, 50]], [[85, 40], [70, 60]]], [100, 100])
    assert best_epoch(val, "worst_class") == 1
    assert best_choice(val, "worst_class") == Choice(1, 1)
    assert best_choice(val, "average") == Choice(0, 1)
    assert best_choice(val, "worst_class", "off") == Choice(1, 0)


def test_of_equal_choices_the_smallest_biases_win_then_the_earlier_epoch():
    val = counted([[[50, 50], [50, 50]], [[50, 50], [50, 50]]], [100, 100])
    assert best_choice(val, "worst_class") == Choice(0, 0)


@pytest.mark.parametrize("rule", ["last", "cvar"])
def test_rules_that_biases_do_not_change_decide_by_argmax(rule):
    val = counted([[[1, 0], [9, 9]], [[2, 0], [9, 9]]], [10, 10])
    val = Counts(
        val.hits, val.sizes, val.class_hits, val.class_sizes, tail_losses=np.array([2.0, 1.0]),
        biases=val.biases, threshold_hits=val.threshold_hits,
    )  # fmt: skip
    assert best_choice(val, rule) == Choice(1, 0)


def test_runs_that_counted_no_thresholds_choose_the_epoch_alone():
    hits, sizes = np.array([[1, 2], [3, 3]]), np.array([5, 5])
    assert best_choice(Counts(hits[:, :0], sizes[:0], hits, sizes), "worst_class") == Choice(1)


def test_counts_under_one_decision_are_its_columns():
    val = counted([[[90, 10], [80, 50]], [[85, 40], [70, 60]]], [100, 100])
    assert val.at_threshold(1).class_hits.tolist() == [[80, 50], [70, 60]]
    assert val.at_threshold(0) is val


def test_a_margin_that_is_not_a_number_exceeds_no_threshold():
    logits, y = torch.tensor([[torch.nan, 0.0], [torch.inf, torch.inf], [0.0, torch.inf]]), torch.tensor([0, 0, 1])
    none = (torch.zeros(0, dtype=torch.int64),) * 2
    biases = torch.from_numpy(candidate_biases([1, 1]))
    assert [predicted_classes(logits, bias).tolist() for bias in biases] == [[0, 0, 1]] * len(biases)
    assert hits_by_threshold(logits, y, none, biases, n_groups=0).tolist() == [[2, 1]] * len(biases)


def test_an_oracle_chooses_among_thresholds_too():
    test = counted([[[90, 10], [60, 55]], [[80, 20], [50, 58]]], [100, 100])
    assert oracle_choice(test) == Choice(1)
    assert oracle_choice(test, "tuned") == Choice(0, 1)
    assert choice_score(test, "worst_class", Choice(0, 1)) == 0.55


def test_some_epochs_alone_are_counted_as_among_all():
    val = counted([[[90, 10], [60, 55]], [[80, 20], [50, 58]], [[70, 30], [60, 59]]], [100, 100])
    few = val.only([0, 2])
    assert few.epochs == 2
    assert few.class_hits.tolist() == [[90, 10], [70, 30]]
    assert best_choice(few, "worst_class") == Choice(1, 1)
    assert best_choice(val, "worst_class") == Choice(2, 1)
