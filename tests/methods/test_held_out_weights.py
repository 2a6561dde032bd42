"""Weights and choices of held-out examples against independent references."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr, softmax

from umix.methods.afr import shifted_weights
from umix.methods.evals import extreme_losses
from umix.methods.self import disagreement, highest


def drawn(n: int = 40, classes: int = 3, seed: int = 0) -> tuple[np.random.Generator, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng, rng.integers(classes, size=n)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 7.0])
def test_shifted_weights_are_the_formula_of_the_paper(gamma: float) -> None:
    rng, y = drawn()
    p, b = rng.random(40), 1 / np.bincount(y)[y]
    expected = b * np.exp(-gamma * p)
    found = shifted_weights(torch.from_numpy(p), torch.from_numpy(b), gamma=gamma)
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)


@given(st.floats(0, 1e6), st.floats(1e-6, 1e6), st.integers(0, 50))
def test_shifted_weights_sum_to_one_and_do_not_depend_on_the_scale_of_b(gamma: float, scale: float, seed: int) -> None:
    rng, _ = drawn(seed=seed)
    p, b = torch.from_numpy(rng.random(12)), torch.from_numpy(rng.random(12) + 0.1)
    found = shifted_weights(p, b, gamma=gamma)
    assert float(found.sum()) == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(shifted_weights(p, scale * b, gamma=gamma), found, rtol=1e-7, atol=1e-12)


def test_a_huge_shift_in_float32_leaves_the_least_sure_example() -> None:
    weights = shifted_weights(torch.tensor([0.2, 0.9, 0.2]), torch.ones(3), gamma=1e6)
    assert weights.tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("classes", [2, 5])
def test_disagreement_is_the_divergence_over_the_number_of_classes(classes: int) -> None:
    rng, _ = drawn()
    early, late = 3 * rng.standard_normal((2, 30, classes))
    expected = rel_entr(softmax(early, axis=1), softmax(late, axis=1)).sum(1) / classes
    found = disagreement(torch.from_numpy(early), torch.from_numpy(late))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_net_does_not_disagree_with_itself_whatever_the_scale_of_its_logits() -> None:
    logits = torch.tensor([[0.0, 1e4], [3.0, -2.0]])
    assert disagreement(logits, logits).tolist() == [0, 0]
    assert disagreement(logits, logits + 5).abs().max() < 1e-9


def test_disagreement_is_finite_where_a_probability_is_zero() -> None:
    found = disagreement(torch.tensor([[0.0, 1e4], [1e4, 0.0]]), torch.tensor([[1e4, 0.0], [0.0, 0.0]]))
    assert found.isfinite().all()
    assert found[0] == 5000  # 10⁴ / 2 classes


def test_the_highest_scores_are_taken_and_ties_go_to_the_first() -> None:
    scores = torch.tensor([0.0, 0.0, 1.0, 0.0])
    assert highest(scores, 2).tolist() == [0, 2]
    assert highest(scores, 9).tolist() == [0, 1, 2, 3]
    assert highest(scores[:0], 3).tolist() == []


@pytest.mark.parametrize("k", [1, 3, 8, 100])
def test_extreme_losses_are_the_ends_of_every_class(k: int) -> None:
    rng, y = drawn(60)
    losses = rng.random(60)
    expected: list[int] = []
    for label in range(3):
        rows = np.flatnonzero(y == label)
        ranked = rows[np.argsort(losses[rows])].tolist()
        expected += sorted({*ranked[:k], *ranked[-k:]})
    found = extreme_losses(torch.from_numpy(losses), torch.from_numpy(y), k=k)
    assert found.tolist() == sorted(expected)


def test_equal_losses_and_no_examples_are_no_problem() -> None:
    assert extreme_losses(torch.zeros(4), torch.tensor([1, 1, 1, 1]), k=1).tolist() == [0, 3]
    assert extreme_losses(torch.zeros(0), torch.zeros(0, dtype=torch.int64), k=1).tolist() == []
