"""Shares and margins of classes against plain NumPy, and what is decided for classes without examples."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.special import softmax

from umix.methods.parts.offset_risk import class_sizes, ldam_margins, log_shares, log_shares_given_prediction

SIZES = npst.arrays(np.int64, st.integers(1, 6), elements=st.integers(1, 10**6))


@given(SIZES)
def test_log_shares_are_those_of_numpy(sizes: np.ndarray) -> None:
    np.testing.assert_allclose(log_shares(torch.from_numpy(sizes)), np.log(sizes / sizes.sum()), rtol=1e-12)


def test_a_class_without_examples_is_never_raised_against_another() -> None:
    log_pi = log_shares(torch.tensor([0.0, 5.0, 20.0, 0.0]))
    assert log_pi.exp().tolist() == pytest.approx([0.8, 0.2, 0.8, 0.8])
    assert (log_pi[0] >= log_pi).all()  # what is subtracted at prediction


def test_sizes_count_copies() -> None:
    y, copies = torch.tensor([0, 2, 2, 0]), torch.tensor([0, 3, 1, 2])
    assert class_sizes(y, n_classes=4, sample_weight=copies).tolist() == [2, 0, 4, 0]
    repeated = class_sizes(torch.repeat_interleave(y, copies), n_classes=4)
    assert repeated.tolist() == class_sizes(y, n_classes=4, sample_weight=copies).tolist()
    assert class_sizes(y[:0], n_classes=2).tolist() == [0, 0]


def drawn(n: int = 60, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, classes)), np.arange(n) % classes, rng.integers(0, 4, size=n)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_shares_given_a_prediction_are_those_of_a_loop(temperature: float, weighted: bool) -> None:
    logits, y, copies = drawn()
    expected = np.ones((3, 3))
    for row, label, count in zip(logits, y, copies, strict=True):
        expected[:, label] += softmax(row / temperature) * (count if weighted else 1)
    found = log_shares_given_prediction(
        torch.from_numpy(logits),
        torch.from_numpy(y),
        temperature=temperature,
        sample_weight=torch.from_numpy(copies) if weighted else None,
    )
    np.testing.assert_allclose(found, np.log(expected / expected.sum(1, keepdims=True)), rtol=1e-10)


def test_shares_given_a_prediction_that_is_independent_of_the_class_are_the_shares_of_the_classes() -> None:
    y = torch.tensor([0] * 6000 + [1] * 3000 + [2] * 1000)
    found = log_shares_given_prediction(torch.tensor([2.0, 0.0, 0.5]).expand(len(y), 3), y)
    torch.testing.assert_close(found, log_shares(class_sizes(y, n_classes=3)).expand(3, 3), rtol=0, atol=0.01)


def test_a_class_without_examples_has_the_largest_share_of_each_row() -> None:
    logits, y, _ = drawn()
    without = torch.from_numpy(np.where(y == 2, 0, y))
    table = log_shares_given_prediction(torch.from_numpy(logits), without)
    assert torch.equal(table[:, 2], table[:, :2].amax(1))
    torch.testing.assert_close(table[:, :2].exp().sum(1), torch.ones(3, dtype=torch.float64))


def test_huge_and_tiny_temperatures_are_finite() -> None:
    logits, y, _ = drawn()
    for temperature in (1e-6, 1e6):
        found = log_shares_given_prediction(
            torch.from_numpy(100 * logits), torch.from_numpy(y), temperature=temperature
        )
        assert found.isfinite().all()


@given(SIZES, st.floats(0, 2))
def test_margins_are_those_of_numpy(sizes: np.ndarray, largest: float) -> None:
    expected = (1 / sizes**0.25) / (1 / sizes**0.25).max() * largest  # as the released code has it
    np.testing.assert_allclose(ldam_margins(torch.from_numpy(sizes), largest=largest), expected, rtol=1e-10)


def test_the_margin_of_a_class_without_examples_is_finite() -> None:
    assert ldam_margins(torch.tensor([0.0, 81.0, 1.0]), largest=0.6).tolist() == pytest.approx([0.6, 0.2, 0.6])
    assert ldam_margins(torch.zeros(2), largest=0.5).tolist() == [0.5, 0.5]
