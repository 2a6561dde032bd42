"""The score of a race without groups."""

import numpy as np

from umix.core.epoch_counts import Counts
from umix.core.selection import trust_scores


def test_the_score_is_the_mean_of_certain_uncertain_and_worst_class():
    rng = np.random.default_rng(0)
    y, uncertain = rng.integers(3, size=200), rng.random(200) < 0.3
    correct = rng.random((4, 200)) < 0.6
    hits = np.array([[(row & (y == c)).sum() for c in range(3)] for row in correct])
    sizes = np.bincount(y)
    found = trust_scores(
        Counts(hits[:, :0], sizes[:0], hits, sizes), (correct & uncertain).sum(axis=1), uncertain.sum()
    )
    for score, row in zip(found, correct, strict=True):
        parts = [row[~uncertain].mean(), row[uncertain].mean(), min(row[y == c].mean() for c in range(3))]
        np.testing.assert_allclose(score, np.mean(parts))


def test_parts_without_examples_are_left_out():
    hits, sizes = np.array([[3, 0]]), np.array([4, 0])
    counts = Counts(hits[:, :0], sizes[:0], hits, sizes)
    assert trust_scores(counts, np.array([0]), 0).tolist() == [0.75]
    assert trust_scores(counts, np.array([3]), 4).tolist() == [0.75]


def test_a_split_without_examples_has_no_score():
    hits, sizes = np.array([[0, 0]]), np.array([0, 0])
    assert np.isnan(trust_scores(Counts(hits[:, :0], sizes[:0], hits, sizes), np.array([0]), 0)).all()
