import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umix.core.weight_choice import early_epochs, trial_rates


def test_the_early_epochs_end_where_half_of_the_rise_is_reached():
    assert early_epochs([0.5, 0.6, 0.74, 0.76, 0.9, 1.0]) == 4


@pytest.mark.parametrize(("rates", "epochs"), [([0.9], 1), ([0.9, 0.9, 0.9], 2), ([0.9, 0.5, 0.4], 2)])
def test_a_flat_or_short_course_gives_two_epochs_where_there_are_two(rates, epochs):
    assert early_epochs(rates) == epochs


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_early_epochs_are_never_more_than_there_are(rates):
    assert 1 <= early_epochs(rates) <= len(rates)


def test_the_score_is_the_mean_of_certain_uncertain_and_worst_class():
    rng = np.random.default_rng(0)
    y, uncertain = rng.integers(3, size=200), rng.random(200) < 0.3
    correct = rng.random((4, 200)) < 0.6
    cells = [[(uncertain == trust) & (y == c) for c in range(3)] for trust in (False, True)]
    hits = np.array([[[(row & cell).sum() for cell in cells_of] for cells_of in cells] for row in correct])
    sizes = np.array([[cell.sum() for cell in cells_of] for cells_of in cells])

    parts, score, average = trial_rates(hits, sizes)

    for epoch, row in enumerate(correct):
        expected = [row[~uncertain].mean(), row[uncertain].mean(), min(row[y == c].mean() for c in range(3))]
        np.testing.assert_allclose(parts[:, epoch], expected)
        np.testing.assert_allclose(score[epoch], np.mean(expected))
        np.testing.assert_allclose(average[epoch], row.mean())


def test_what_has_no_examples_is_left_out_of_the_score():
    hits, sizes = np.array([[[3, 0], [0, 0]]]), np.array([[4, 0], [0, 0]])
    parts, score, average = trial_rates(hits, sizes)
    assert np.isnan(parts[1, 0])
    assert score[0] == average[0] == 0.75
