"""Groups that are large enough, shrunk rates and the worst group, by hand and by brute force."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from umix.core.epoch_counts import Counts
from umix.core.evaluation import EVERY_GROUP, Evaluation, class_targets, shrunk_rates, units_of, worst_unit
from umix.core.rates import worst
from umix.core.selection import RULES, best_choice, best_epoch, class_floor, mean_class
from umix.core.statistics import wilson

COUNTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=8)


@given(COUNTS)
def test_judging_every_group_is_the_lowest_rate_of_a_group_with_examples(pairs):
    sizes = np.array([max(pair) for pair in pairs])
    hits = np.array([min(pair) for pair in pairs])
    units = units_of(hits, sizes, [hits.sum()], [sizes.sum()], least=EVERY_GROUP.min_group)
    np.testing.assert_equal(worst_unit(units).rate, worst(hits, sizes))


@given(COUNTS, st.integers(1, 70))
def test_a_small_group_is_judged_where_its_interval_lies_below_that_of_the_worst_large_one(pairs, least):
    sizes = np.array([max(pair) for pair in pairs])
    hits = np.array([min(pair) for pair in pairs])
    found = worst_unit(units_of(hits, sizes, [hits.sum()], [sizes.sum()], least=least))
    large = [group for group, size in enumerate(sizes) if size >= least]
    if not large:
        return
    low = wilson(*min(((hits[g], sizes[g]) for g in large), key=lambda pair: (pair[0] / pair[1], -pair[1]))).low
    below = [g for g, size in enumerate(sizes) if 0 < size < least and wilson(hits[g], size).high < low]
    assert set(np.flatnonzero(found.judged)) == {*large, *below}
    assert found.rate == min(hits[g] / sizes[g] for g in (*large, *below))


def test_a_failing_group_is_not_hidden_because_it_is_small():
    """Two groups of 20 and 16 photographs at 25.0 and 31.2 %: no accident beside 90.9 %."""
    units = units_of([300, 100, 5, 5], [320, 110, 20, 16], [400, 10], [430, 36], least=30)
    found = worst_unit(units)
    assert (found.index, found.rate, found.size) == (2, 0.25, 20)
    assert found.judged[:4].tolist() == [True, True, True, True]


def test_a_small_group_whose_rate_may_be_chance_is_not_judged():
    found = worst_unit(units_of([300, 100, 6], [320, 110, 8], [300, 106], [320, 118], least=30))
    assert (found.index, found.judged.tolist()) == (1, [True, True, False, False, False])


def test_a_margin_takes_part_beside_the_groups():
    """Groups yes × (m, a) and yes × (m, b): only the second is large, and m as a whole is worse than it."""
    found = worst_unit(
        units_of([50, 15, 40], [57, 30, 57], [], [], margin_hits=[60, 65], margin_sizes=[87, 87], least=40)
    )
    assert (found.level, found.index, found.rate) == ("margins", 3, 60 / 87)


def test_classes_stand_in_where_no_group_or_margin_is_large_enough():
    sizes, hits = np.array([12, 14, 13, 11]), np.array([6, 7, 12, 10])
    margins = {"margin_hits": [13, 22], "margin_sizes": [26, 24]}
    classes = {"class_hits": [13, 22], "class_sizes": [26, 24]}
    assert (
        units_of(hits, sizes, **classes, **margins, least=20).large.tolist() == [False] * 4 + [True] * 2 + [False] * 2
    )
    assert units_of(hits, sizes, **classes, least=20).large.tolist() == [False] * 4 + [True] * 2
    assert units_of(hits, sizes, **classes, least=100).large.tolist() == [False] * 4 + [True] * 2


def test_a_class_without_a_large_group_is_judged_as_a_whole():
    """Class no has large groups, class yes only small ones: a net that fails yes must not look perfect."""
    units = units_of(
        [50, 60, 0, 1],
        [50, 60, 20, 25],
        [110, 1],
        [110, 45],
        composition=[[50, 0], [60, 0], [0, 20], [0, 25]],
        least=30,
    )
    assert units.large.tolist() == [True, True, False, False, False, True]
    assert worst_unit(units).level == "classes"
    assert worst_unit(units).rate == 1 / 45


def test_in_a_selection_groups_of_five_take_part_pulled_towards_their_class():
    counts = Counts(
        hits=np.array([[270, 0, 0]]),
        sizes=np.array([300, 5, 4]),
        class_hits=np.array([[270, 200]]),
        class_sizes=np.array([300, 300]),
        composition=np.array([[300, 0], [0, 5], [0, 4]]),
        evaluation=Evaluation(),
    )
    expected = (0 + 20 * 200 / 300) / (5 + 20)  # the group of four has no say
    np.testing.assert_allclose(RULES["worst"](counts), [expected])
    raw = dataclasses.replace(counts, evaluation=EVERY_GROUP)
    np.testing.assert_allclose(RULES["worst"](raw), [0.0])


def test_in_a_selection_margins_take_part():
    counts = Counts(
        hits=np.array([[4, 4]]),
        sizes=np.array([4, 4]),  # too small to take part
        class_hits=np.array([[180]]),
        class_sizes=np.array([200]),
        composition=np.array([[4], [4]]),
        margin_hits=np.array([[10]]),
        margin_sizes=np.array([30]),
        margin_composition=np.array([[30]]),
        evaluation=Evaluation(),
    )
    np.testing.assert_allclose(RULES["worst"](counts), [(10 + 20 * 0.9) / 50])


def test_without_groups_no_choice_falls_below_the_floor_of_the_mean_of_the_classes():
    """The second threshold has the better worst class; its mean of the classes is below what is allowed."""
    counts = Counts(
        hits=np.zeros((1, 0), int),
        sizes=np.zeros(0, int),
        class_hits=np.array([[90, 70]]),
        class_sizes=np.array([100, 100]),
        biases=np.array([[0.0, 0.0], [0.0, 1.0]]),
        threshold_hits=np.array([[[90, 70], [78, 78]]]),
    )
    limited = dataclasses.replace(counts, evaluation=Evaluation(class_floor=0.79))
    assert best_choice(counts, "worst_class").threshold == 1
    assert best_choice(limited, "worst_class").threshold == 0
    nothing = dataclasses.replace(counts, evaluation=Evaluation(class_floor=0.9))
    assert best_choice(nothing, "worst_class").threshold == 0  # the closest to it


def test_a_class_of_a_few_validation_rows_does_not_decide_what_a_choice_without_groups_may_cost():
    """The third class has two rows: both are right by chance, and a third of the mean of all classes."""
    hits, sizes = np.array([[50, 60, 2], [80, 80, 0]]), np.array([100, 100, 2])
    counts = Counts(hits[:, :0], sizes[:0], hits, sizes, evaluation=Evaluation())
    np.testing.assert_allclose(mean_class(counts), [0.55, 0.8])
    assert class_floor(counts) == pytest.approx(0.8 - np.sqrt(2 * 0.8 * 0.2 / 100) / 2)


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
    assert best_epoch(dataclasses.replace(worse, evaluation=Evaluation(min_group=30, prior=20.0)), "worst") == 0
    assert best_epoch(dataclasses.replace(worse, evaluation=Evaluation(min_group=31, prior=0.0)), "worst") == 0


def test_ties_are_broken_by_the_judged_mean_then_the_average_then_the_earlier_epoch():
    def chosen(hits, class_hits):
        return best_epoch(Counts(np.array(hits), np.array([10, 10]), np.array(class_hits), np.array([10, 12])), "worst")

    assert chosen([[0, 5], [0, 8], [0, 8]], [[5, 5], [5, 5], [5, 5]]) == 1
    assert chosen([[0, 8], [0, 8]], [[5, 5], [5, 6]]) == 1
    assert chosen([[0, 8], [0, 8]], [[5, 5], [5, 5]]) == 0


def test_of_equally_bad_groups_the_largest_is_named():
    units = units_of([5, 20], [10, 40], [25], [50])
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
        evaluation=Evaluation(min_group=30, prior=0.0),
    )
    assert best_epoch(counts, "worst") == 0
    assert best_epoch(counts, "worst_recall") == 1
