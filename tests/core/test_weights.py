"""Uncertainty against a plain loop; weights against their formula."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from umix.core.weights import (
    class_means,
    effective_sample_size,
    importance_weights,
    normalized,
    relative_difficulty,
    uncertainty,
)


@st.composite
def trajectories(draw):
    n, epochs = draw(st.integers(0, 6)), draw(st.integers(1, 9))
    start = draw(st.integers(0, epochs - 1))
    length = draw(st.integers(1, epochs - start))
    return draw(npst.arrays(np.bool_, (n, epochs))), start, length


POSITIVE = npst.arrays(np.float64, st.integers(1, 9), elements=st.floats(1e-3, 1e3))


@given(trajectories())
@settings(deadline=None, max_examples=60)
def test_uncertainty_is_the_share_of_mistakes_in_the_window(drawn):
    correct, start, length = drawn
    expected = []
    for row in correct:
        mistakes = 0
        for epoch in range(start, start + length):
            mistakes += 0 if row[epoch] else 1
        expected.append(mistakes / length)
    u = uncertainty(torch.from_numpy(correct), start=start, length=length)
    assert u.tolist() == pytest.approx(expected, abs=1e-6)
    assert u.shape == (len(correct),)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.float64], ids=str)
def test_uncertainty_is_the_same_from_any_type_of_zeros_and_ones(dtype):
    correct = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1]]).to(dtype)
    assert uncertainty(correct, start=1, length=2).tolist() == [0.5, 0.0]


@pytest.mark.parametrize("length", [1, 3, 7, 49, 100])
def test_always_right_is_exactly_zero_and_always_wrong_exactly_one(length):
    correct = torch.tensor([[1.0], [0.0]]).repeat(1, length)
    assert uncertainty(correct, start=0, length=length).tolist() == [0.0, 1.0]


def test_a_missing_prediction_outside_the_window_does_not_matter():
    correct = torch.tensor([[math.nan, 1.0, 0.0, math.nan]])
    assert uncertainty(correct, start=1, length=2).tolist() == [0.5]


def test_a_missing_prediction_in_the_window_is_an_error_not_a_mistake():
    correct = torch.tensor([[1.0, math.nan], [1.0, 1.0]])
    with pytest.raises(ValueError, match=r"epochs 0\.\.1, got 2 epochs with 1 missing predictions in the window"):
        uncertainty(correct, start=0, length=2)


@pytest.mark.parametrize(("start", "length"), [(0, 4), (2, 2), (3, 1), (9, 1)])
def test_a_window_beyond_the_recorded_epochs_is_an_error(start, length):
    with pytest.raises(ValueError, match=rf"epochs {start}\.\.{start + length - 1}, got 3 epochs"):
        uncertainty(torch.ones(2, 3), start=start, length=length)


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (-3, 3), (0, 0), (1, -1)])
def test_a_window_that_is_none_is_an_error(start, length):
    with pytest.raises(ValueError, match=f"got start={start} and length={length}"):
        uncertainty(torch.ones(2, 3), start=start, length=length)


@given(npst.arrays(np.float64, st.integers(0, 9), elements=st.floats(0, 1)), st.floats(0, 1e3), st.floats(0, 10))
@settings(deadline=None, max_examples=50)
def test_importance_weights_are_eta_u_plus_c(u, eta, c):
    w = importance_weights(torch.from_numpy(u), eta=eta, c=c)
    np.testing.assert_allclose(w.numpy(), eta * u + c, rtol=1e-12)


def test_an_unknown_uncertainty_gets_no_weight_but_an_error():
    with pytest.raises(ValueError, match="u must hold no NaN, got 2 of 3"):
        importance_weights(torch.tensor([0.5, math.nan, math.nan]), eta=1.0)


@given(POSITIVE)
@settings(deadline=None, max_examples=50)
def test_normalized_weights_have_mean_one_and_keep_their_ratios(w):
    scaled = normalized(torch.from_numpy(w)).numpy()
    assert scaled.mean() == pytest.approx(1, rel=1e-9)
    np.testing.assert_allclose(scaled * w[0], w * scaled[0], rtol=1e-9)


def test_no_weights_normalize_to_none():
    assert normalized(torch.ones(0)).shape == (0,)


@pytest.mark.parametrize("w", [[0.0, 0.0], [-1.0, 0.5], [math.nan, 1.0]], ids=["zero", "negative", "nan"])
def test_weights_without_a_positive_sum_cannot_be_normalized(w):
    with pytest.raises(ValueError, match="must have a positive, finite sum"):
        normalized(torch.tensor(w))


@given(POSITIVE)
@settings(deadline=None, max_examples=50)
def test_effective_sample_size_lies_between_one_and_n_and_follows_its_formula(w):
    size = effective_sample_size(torch.from_numpy(w))
    assert 1 - 1e-9 <= size <= len(w) + 1e-9
    assert size == pytest.approx(math.fsum(w) ** 2 / math.fsum(value * value for value in w))


@pytest.mark.parametrize("n", [1, 7])
def test_weights_of_zero_are_worth_no_example(n):
    assert effective_sample_size(torch.zeros(n)) == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_weights_that_are_not_finite_have_no_effective_sample_size(bad):
    assert math.isnan(effective_sample_size(torch.tensor([1.0, bad])))


@pytest.mark.parametrize("w", [[math.inf, 1.0], [3e38, 3e38]], ids=["inf", "overflow"])
def test_weights_without_a_finite_sum_cannot_be_normalized(w):
    with pytest.raises(ValueError, match="must have a positive, finite sum"):
        normalized(torch.tensor(w))


def test_weights_that_no_copy_has_cannot_be_normalized():
    with pytest.raises(ValueError, match=r"must have a positive, finite sum to be normalised, got 0\.0"):
        normalized(torch.tensor([1.0, 0.0]), by=torch.tensor([0.0, 1.0]))


def test_a_difficulty_that_is_not_a_number_is_never_hidden():
    nan, losses = torch.tensor([math.nan]), torch.tensor([1.0])
    assert relative_difficulty(nan, losses).isnan().all()
    assert relative_difficulty(losses, nan).isnan().all()


def test_class_means_are_those_of_numpy_and_keep_the_overall_mean():
    rng = np.random.default_rng(3)
    u, y = rng.random(100).astype(np.float32), rng.integers(4, size=100)
    pooled = class_means(torch.from_numpy(u), torch.from_numpy(y)).numpy()
    np.testing.assert_allclose(pooled, [u[y == c].mean() for c in y], rtol=1e-6)
    np.testing.assert_allclose(pooled.mean(), u.mean(), rtol=1e-6)
