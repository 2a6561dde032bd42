"""The best epoch is a pure function of validation counts."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umix.core.epoch_counts import Counts
from umix.core.evaluation import Evaluation
from umix.core.selection import ORACLE, RULES, Choice, best_epoch, oracle_choice


@st.composite
def histories(draw):
    """Counts of a few epochs; groups overlap freely, classes partition the examples."""
    epochs = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(0, 8), min_size=1, max_size=4))
    class_sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    hits = [[draw(st.integers(0, size)) for size in sizes] for _ in range(epochs)]
    class_hits = [[draw(st.integers(0, size)) for size in class_sizes] for _ in range(epochs)]
    fifths = [[draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])) for _ in range(5)] for _ in range(epochs)]
    tail = draw(st.lists(st.floats(0, 9), min_size=epochs, max_size=epochs))
    return Counts(*map(np.array, (hits, sizes, class_hits, class_sizes, fifths, tail)))


def _lowest(hits, sizes):
    return min((hit / size for hit, size in zip(hits, sizes, strict=True) if size), default=None)


def _scores(val, rule):
    if rule == "worst":
        return [_lowest(row, val.sizes) for row in val.hits]
    if rule == "worst_class":
        return [_lowest(row, val.class_sizes) for row in val.class_hits]
    if rule == "balanced":
        worst, average = _scores(val, "worst_class"), _scores(val, "average")
        return [0.4 * low + 0.6 * mean for low, mean in zip(worst, average, strict=True)]
    if rule == "worst_recall":  # the classes of these groups are not known
        return [None] if val.sizes.any() else _scores(val, "worst_class")
    if rule == "average":
        return [row.sum() / val.class_sizes.sum() for row in val.class_hits]
    if rule == "cvar":
        return (-val.tail_losses).tolist()
    if rule == "class_difference":
        return [_class_score(row, val.class_sizes) for row in val.class_hits]
    if rule == "uncertainty_quintile":
        return [min(row) for row in val.quintile_rates]
    return list(range(len(val.class_hits)))


def _class_score(hits, sizes):
    """The mean difference between two classes, negated, then the average: exact fractions."""
    rates = [Fraction(int(hit), int(size)) for hit, size in zip(hits, sizes, strict=True)]
    pairs = list(itertools.combinations(rates, 2))
    if not pairs:
        return None
    return -sum(abs(a - b) for a, b in pairs) / len(pairs), Fraction(int(hits.sum()), int(sizes.sum()))


@pytest.mark.parametrize("rule", list(RULES))
@given(val=histories())
@settings(deadline=None, max_examples=40)
def test_the_best_epoch_is_the_first_with_the_highest_score(rule, val):
    scores = _scores(val, rule)
    if None in scores:
        with pytest.raises(ValueError, match="No epoch has a validation score"):
            best_epoch(val, rule)
        return
    known = [group for group, size in enumerate(val.sizes) if size]
    keys = []
    for epoch, score in enumerate(scores):
        rates = [Fraction(int(val.hits[epoch, g]), int(val.sizes[g])) for g in known]
        mean = sum(rates) / len(rates) if rates else 0
        keys.append((score[0] if isinstance(score, tuple) else score, mean, Fraction(int(val.class_hits[epoch].sum()))))
    assert best_epoch(val, rule) == keys.index(max(keys))


@pytest.fixture
def val():
    """Three epochs in which every rule but one prefers another epoch."""
    return Counts(
        hits=np.array([[10, 1, 0], [8, 4, 0], [9, 2, 0]]),
        sizes=np.array([10, 4, 0]),
        class_hits=np.array([[7, 6], [8, 4], [10, 1]]),
        class_sizes=np.array([10, 6]),
        quintile_rates=np.array([[1, 1, 1, 1, 0.0], [0.9, 0.9, 0.8, 0.7, 0.6], [1, 1, 1, 1, 0.2]]),
        tail_losses=np.array([np.nan, 2.0, 1.5]),
    )


@pytest.mark.parametrize(
    ("rule", "epoch"),
    [
        ("worst", 1),
        ("average", 0),
        ("worst_class", 0),
        ("balanced", 0),
        ("class_difference", 1),
        ("uncertainty_quintile", 1),
        ("cvar", 2),
        ("last", 2),
    ],
)
def test_each_rule_prefers_its_own_epoch(val, rule, epoch):
    assert best_epoch(val, rule) == epoch


def test_the_oracle_is_no_rule():
    assert ORACLE not in RULES


def test_the_oracle_looks_at_the_worst_group_of_test_or_class_without_groups(val):
    assert oracle_choice(val) == Choice(1)
    assert oracle_choice(dataclasses.replace(val, hits=np.zeros((3, 0), int), sizes=np.zeros(0, int))) == Choice(0)


def test_of_equal_class_differences_the_higher_average_wins_and_then_the_first():
    rows = np.array([[0, 0], [3, 2], [6, 5], [6, 5], [1, 0]])  # 0, .1, .1, .1 and .1 apart
    counts = Counts(np.zeros((4, 0)), np.zeros(0), rows[1:], np.array([10, 10]))
    assert best_epoch(counts, "class_difference") == 1


def test_a_split_without_uncertainty_or_losses_has_no_score_under_their_rules(val):
    bare = Counts(val.hits, val.sizes, val.class_hits, val.class_sizes)
    for rule in ("uncertainty_quintile", "cvar"):
        assert np.isnan(RULES[rule](bare)).tolist() == [True] * 3


def test_the_average_counts_every_example_once_even_where_groups_overlap(val):
    assert RULES["average"](val)[0] == 13 / 16


def test_an_epoch_without_a_score_never_wins(monkeypatch, val):
    scores = np.array([np.nan, -1.0, np.nan])
    monkeypatch.setattr("umix.core.selection.RULES", {"holes": lambda _: scores})
    assert best_epoch(val, "holes") == 1


@pytest.mark.parametrize("groups", [0, 2], ids=["no groups", "empty groups"])
def test_worst_without_known_groups_is_an_error_and_average_is_not(val, groups):
    oblivious = dataclasses.replace(val, hits=np.zeros((3, groups), int), sizes=np.zeros(groups, int))
    with pytest.raises(ValueError, match="No epoch has a validation score under the rule 'worst', got 3 epochs"):
        best_epoch(oblivious, "worst")
    assert best_epoch(oblivious, "average") == 0


@pytest.mark.parametrize("rule", list(RULES))
def test_no_epochs_are_an_error(rule):
    with pytest.raises(ValueError, match=f"rule '{rule}', got 0 epochs"):
        best_epoch(Counts(np.zeros((0, 2)), np.ones(2), np.zeros((0, 2)), np.ones(2)), rule)


def test_class_difference_is_the_mean_over_all_pairs_of_classes() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 30, 7)
    hits = rng.integers(0, sizes + 1, (4, 7))
    val = Counts(hits=np.zeros((4, 0)), sizes=np.zeros(0), class_hits=hits, class_sizes=sizes)
    rates = hits / sizes
    expected = [-np.mean([abs(a - b) for i, a in enumerate(row) for b in row[:i]]) for row in rates]
    assert RULES["class_difference"](val) == pytest.approx(expected, abs=1e-11)


def test_in_the_balanced_score_a_point_of_the_average_is_worth_one_and_a_half_of_the_worst_class():
    rng = np.random.default_rng(0)
    y, correct = rng.integers(3, size=200), rng.random((4, 200)) < 0.6
    hits = np.array([[(row & (y == c)).sum() for c in range(4)] for row in correct])  # class 3 has no examples
    sizes = np.bincount(y, minlength=4)
    scores = RULES["balanced"](Counts(hits[:, :0], sizes[:0], hits, sizes))
    for score, row in zip(scores, correct, strict=True):
        rates = [row[y == c].mean() for c in range(3)]
        np.testing.assert_allclose(score, (min(rates) + 1.5 * row.mean()) / 2.5)


def test_a_split_without_examples_has_no_balanced_score():
    hits, sizes = np.array([[0, 0]]), np.array([0, 0])
    assert np.isnan(RULES["balanced"](Counts(hits[:, :0], sizes[:0], hits, sizes))).all()


@pytest.mark.parametrize("rule", ["worst", "balanced", "worst_class"])
def test_a_class_of_a_single_example_does_not_choose(rule):
    """Else biases that get this one right and all others wrong would win."""
    hits, sizes = np.array([[40, 45, 0], [10, 10, 1]]), np.array([50, 50, 1])
    val = Counts(hits, sizes, hits, sizes, evaluation=Evaluation(), composition=np.diag(sizes))
    assert best_epoch(val, rule) == 0
    assert best_epoch(dataclasses.replace(val, class_sizes=np.array([0, 0, 1])), "worst_class") == 1
