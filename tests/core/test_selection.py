"""The best epoch is a pure function of validation counts."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.core.selection import RULES, Counts, best_epoch


@st.composite
def histories(draw):
    """Counts of a few epochs; groups overlap freely, classes partition the examples."""
    epochs = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(0, 8), min_size=1, max_size=4))
    class_sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    hits = [[draw(st.integers(0, size)) for size in sizes] for _ in range(epochs)]
    class_hits = [[draw(st.integers(0, size)) for size in class_sizes] for _ in range(epochs)]
    return Counts(*map(np.array, (hits, sizes, class_hits, class_sizes)))


def _lowest(hits, sizes):
    return min((hit / size for hit, size in zip(hits, sizes, strict=True) if size), default=None)


def _scores(val, rule):
    if rule == "worst":
        return [_lowest(row, val.sizes) for row in val.hits]
    if rule == "worst_class":
        return [_lowest(row, val.class_sizes) for row in val.class_hits]
    if rule == "average":
        return [row.sum() / val.class_sizes.sum() for row in val.class_hits]
    return list(range(len(val.class_hits)))


@pytest.mark.parametrize("rule", ["worst", "average", "worst_class", "last"])
@given(val=histories())
@settings(deadline=None, max_examples=40)
def test_the_best_epoch_is_the_first_with_the_highest_score(rule, val):
    scores = _scores(val, rule)
    if None in scores:
        with pytest.raises(ValueError, match="No epoch has a validation score"):
            best_epoch(val, rule)
        return
    best = 0
    for epoch, score in enumerate(scores):
        if score > scores[best]:
            best = epoch
    assert best_epoch(val, rule) == best


@pytest.fixture
def val():
    """Three epochs in which every rule but one prefers another epoch."""
    return Counts(
        hits=np.array([[10, 1, 0], [8, 4, 0], [9, 2, 0]]),
        sizes=np.array([10, 4, 0]),
        class_hits=np.array([[7, 6], [8, 4], [10, 1]]),
        class_sizes=np.array([10, 6]),
    )


@pytest.mark.parametrize(("rule", "epoch"), [("worst", 1), ("average", 0), ("worst_class", 0), ("last", 2)])
def test_each_rule_prefers_its_own_epoch(val, rule, epoch):
    assert best_epoch(val, rule) == epoch


def test_every_rule_is_tested_here():
    assert set(RULES) == {"worst", "average", "worst_class", "last"}


def test_the_average_counts_every_example_once_even_where_groups_overlap(val):
    assert RULES["average"](val, 0) == 13 / 16


def test_counts_know_their_examples_and_epochs(val):
    assert (val.n, val.epochs, val.all_hits.tolist()) == (16, 3, [13, 12, 11])


def test_permuting_groups_leaves_the_choice_alone(val):
    order = [2, 0, 1]
    permuted = dataclasses.replace(val, hits=val.hits[:, order], sizes=val.sizes[order])
    assert best_epoch(permuted, "worst") == best_epoch(val, "worst")


def test_an_epoch_without_a_score_never_wins(monkeypatch, val):
    scores = [np.nan, -1.0, np.nan]
    monkeypatch.setattr("umix.core.selection.RULES", {"holes": lambda _, epoch: scores[epoch]})
    assert best_epoch(val, "holes") == 1


@pytest.mark.parametrize("groups", [0, 2], ids=["no groups", "empty groups"])
def test_worst_without_known_groups_is_an_error_and_average_is_not(val, groups):
    oblivious = dataclasses.replace(val, hits=np.zeros((3, groups), int), sizes=np.zeros(groups, int))
    with pytest.raises(ValueError, match="No epoch has a validation score under the rule 'worst', got 3 epochs"):
        best_epoch(oblivious, "worst")
    assert best_epoch(oblivious, "average") == 0


@pytest.mark.parametrize("rule", ["worst", "average", "worst_class", "last"])
def test_no_epochs_are_an_error(rule):
    with pytest.raises(ValueError, match=f"rule '{rule}', got 0 epochs"):
        best_epoch(Counts(np.zeros((0, 2)), np.ones(2), np.zeros((0, 2)), np.ones(2)), rule)


def test_a_single_epoch_is_the_best_one():
    zeros = np.zeros((1, 2), int)
    assert best_epoch(Counts(zeros, np.ones(2), zeros, np.ones(2)), "worst") == 0


def test_counts_and_rules_are_frozen(val):
    with pytest.raises(dataclasses.FrozenInstanceError):
        val.sizes = np.ones(3)
    with pytest.raises(TypeError):
        RULES["mine"] = RULES["last"]
