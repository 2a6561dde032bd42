"""Groups that are large enough, shrunk rates and the worst group, by hand and by brute force."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from umix.core.epoch_counts import Counts
from umix.core.judging import EVERY_GROUP, Judging, class_targets, judged_units, shrunk_rates, worst_unit
from umix.core.rates import worst
from umix.core.selection import best_epoch

COUNTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=8)


@given(COUNTS)
def test_judging_every_group_is_the_lowest_rate_of_a_group_with_examples(pairs):
    sizes = np.array([max(pair) for pair in pairs])
    hits = np.array([min(pair) for pair in pairs])
    units = judged_units(hits, sizes, [hits.sum()], [sizes.sum()], judging=EVERY_GROUP)
    np.testing.assert_equal(worst_unit(units).rate, worst(hits, sizes))


@given(COUNTS, st.integers(1, 70))
def test_a_group_that_is_too_small_is_never_the_worst(pairs, least):
    sizes = np.array([max(pair) for pair in pairs])
    hits = np.array([min(pair) for pair in pairs])
    found = worst_unit(
        judged_units(hits, sizes, [hits.sum()], [sizes.sum()], judging=Judging(min_group=least, prior=0.0))
    )
    if found.level == "groups" and found.index is not None:
        assert found.size >= least
        assert found.n_judged + found.n_too_small == (sizes > 0).sum()
    elif sizes.any():
        assert (sizes < least).all()


def test_margins_and_then_classes_stand_in_where_no_group_is_large_enough():
    # Groups: class no × {f, m}, class yes × {f, m}; margins unite columns that a table may have beside them.
    sizes, hits = np.array([12, 14, 13, 11]), np.array([6, 7, 12, 10])
    margins = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    classes = {"class_hits": [13, 22], "class_sizes": [26, 24]}
    judging = Judging(min_group=20, prior=0.0)
    units = judged_units(hits, sizes, **classes, margins=margins, judging=judging)
    assert (units.level, units.sizes[4:6].tolist(), units.hits[4:6].tolist()) == ("margins", [26, 24], [13, 22])
    assert units.judged.tolist() == [False] * 4 + [True] * 2 + [False] * 2
    assert worst_unit(units).index == 4
    assert judged_units(hits, sizes, **classes, judging=judging).level == "classes"
    alone = judged_units(hits, sizes, **classes, judging=Judging(min_group=100))
    assert (alone.level, alone.judged[4:].tolist()) == ("classes", [True, True])


def test_a_class_without_a_judged_group_is_judged_as_a_whole():
    """Class no has large groups, class yes only small ones: a net that fails yes must not look perfect."""
    units = judged_units(
        [50, 60, 0, 1],
        [50, 60, 20, 25],
        [110, 1],
        [110, 45],
        composition=[[50, 0], [60, 0], [0, 20], [0, 25]],
        judging=Judging(min_group=30),
    )
    assert units.judged.tolist() == [True, True, False, False, False, True]
    assert worst_unit(units).rate == 1 / 45
    assert units.level == "classes"


@pytest.mark.parametrize(
    ("hits", "size", "rate", "prior"), [(0, 12, 0.8, 20.0), (7, 9, 0.3, 5.0), (40, 50, 0.95, 20.0)]
)
def test_the_shrunk_rate_is_the_mean_of_the_posterior(hits, size, rate, prior):
    def likelihood(p):
        return stats.binom.pmf(hits, size, p) * stats.beta.pdf(p, prior * rate, prior * (1 - rate))

    evidence = integrate.quad(likelihood, 0, 1)[0]
    expected = integrate.quad(lambda p: p * likelihood(p), 0, 1)[0] / evidence
    assert float(shrunk_rates(hits, size, rate, prior=prior)) == pytest.approx(expected, abs=1e-8)


def test_without_a_prior_rates_are_themselves_and_with_a_large_one_those_of_the_class():
    np.testing.assert_array_equal(shrunk_rates([3, 0], [4, 0], [0.5, 0.5], prior=0), [0.75, np.nan])
    np.testing.assert_allclose(shrunk_rates([0, 9], [10, 10], [0.4, 0.6], prior=1e9), [0.4, 0.6], atol=1e-6)
    np.testing.assert_array_equal(shrunk_rates([3], [4], [np.nan], prior=20), [0.75])


def test_a_group_is_pulled_towards_the_rates_of_its_classes():
    np.testing.assert_allclose(class_targets([[4, 0], [0, 3], [1, 3]], [[8, 2]], [10, 4]), [[0.8, 0.5, 0.575]])
    assert np.isnan(class_targets([[0, 0]], [1, 1], [1, 1])).all()


def test_twelve_examples_cannot_rule_a_selection():
    """Two epochs: in the first the small group is unlucky, in the second every large group is worse."""
    counts = Counts(
        hits=np.array([[270, 250, 15], [150, 150, 29]]),
        sizes=np.array([300, 300, 30]),
        class_hits=np.array([[270, 265], [150, 179]]),
        class_sizes=np.array([300, 330]),
        composition=np.array([[300, 0], [0, 300], [0, 30]]),
    )
    assert best_epoch(counts, "worst") == 0  # 0.5 and 0.5 tie: the mean of the groups decides
    worse = dataclasses.replace(counts, hits=np.array([[270, 250, 14], [150, 150, 29]]))
    assert best_epoch(worse, "worst") == 1
    assert best_epoch(dataclasses.replace(worse, judging=Judging(min_group=30, prior=20.0)), "worst") == 0
    assert best_epoch(dataclasses.replace(worse, judging=Judging(min_group=31, prior=0.0)), "worst") == 0


def test_ties_are_broken_by_the_judged_mean_then_the_average_then_the_earlier_epoch():
    def chosen(hits, class_hits):
        return best_epoch(Counts(np.array(hits), np.array([10, 10]), np.array(class_hits), np.array([10, 12])), "worst")

    assert chosen([[0, 5], [0, 8], [0, 8]], [[5, 5], [5, 5], [5, 5]]) == 1
    assert chosen([[0, 8], [0, 8]], [[5, 5], [5, 6]]) == 1
    assert chosen([[0, 8], [0, 8]], [[5, 5], [5, 5]]) == 0


def test_of_equally_bad_groups_the_largest_is_named():
    units = judged_units([5, 20], [10, 40], [25], [50])
    assert worst_unit(units).index == 1


def test_worst_recall_is_the_worst_group_where_every_group_has_one_class():
    counts = Counts(
        hits=np.array([[9, 3], [8, 6]]),
        sizes=np.array([10, 10]),
        class_hits=np.array([[9, 3], [8, 6]]),
        class_sizes=np.array([10, 10]),
        composition=np.array([[10, 0], [0, 10]]),
    )
    assert best_epoch(counts, "worst_recall") == best_epoch(counts, "worst") == 1


def test_worst_recall_looks_into_groups_of_several_classes():
    """One group of both classes: its rate is the same in both epochs, the recall of its second class is not."""
    counts = Counts(
        hits=np.array([[60], [60]]),
        sizes=np.array([100]),
        class_hits=np.array([[50, 10], [30, 30]]),
        class_sizes=np.array([50, 50]),
        composition=np.array([[50, 50]]),
        recall_hits=np.array([[[50, 10]], [[30, 30]]]),
        judging=Judging(min_group=30, prior=0.0),
    )
    assert best_epoch(counts, "worst") == 0
    assert best_epoch(counts, "worst_recall") == 1


def test_runs_of_earlier_versions_keep_the_first_of_equal_epochs():
    counts = Counts(np.array([[0, 5], [0, 8]]), np.array([10, 10]), np.array([[5], [8]]), np.array([20]))
    assert best_epoch(counts, "worst") == 1
    old = dataclasses.replace(counts, judging=Judging(min_group=1, prior=0.0, break_ties=False))
    assert best_epoch(old, "worst") == 0
