"""Σ_X from data, its rank, and the trace that the proof takes for the rank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umix.errors import UserError
from umix.theory.covariance import GroupMoments, group_moments, inverse_root, rank, whitened_trace

WEIGHTS = st.lists(st.floats(0.1, 10), min_size=3, max_size=3).map(np.array)


def moments(w: np.ndarray, *, r: int = 3, d: int = 6, seed: int = 0) -> GroupMoments:
    rng = np.random.default_rng(seed)
    basis = rng.standard_normal((r, d))
    x = rng.standard_normal((60, r)) * rng.random((1, r)) @ basis
    return group_moments(x, np.arange(60) % 3, w)


def test_sigma_x_is_the_weighted_sum_over_rows() -> None:
    rng = np.random.default_rng(0)
    x, group, w = rng.standard_normal((50, 4)), rng.integers(0, 3, 50), np.array([1.0, 2.0, 5.0])
    found = group_moments(x, group, w)
    rows = sum(w[g] * np.outer(row, row) for row, g in zip(x, group, strict=True)) / 50
    np.testing.assert_allclose(found.weighted(), rows)
    np.testing.assert_allclose(found.plain(), x.T @ x / 50)
    assert found.k.sum() == pytest.approx(1)


@given(WEIGHTS)
def test_weights_do_not_change_the_rank(w: np.ndarray) -> None:
    assert rank(moments(w).weighted()).value == 3


@given(WEIGHTS)
def test_the_whitened_trace_lies_between_the_rank_over_the_extreme_weights(w: np.ndarray) -> None:
    trace = whitened_trace(moments(w))
    assert 3 / w.max() * (1 - 1e-9) <= trace <= 3 / w.min() * (1 + 1e-9)


def test_with_weights_of_one_the_whitened_trace_is_the_rank() -> None:
    assert whitened_trace(moments(np.ones(3))) == pytest.approx(3)


def test_the_rank_counts_what_exceeds_the_stated_tolerance() -> None:
    sigma = np.diag([1.0, 1e-3, 1e-7, 0.0])
    assert [rank(sigma, tolerance=t).value for t in (1e-2, 1e-5, 1e-10)] == [1, 2, 3]
    assert rank(sigma).tolerance == 1e-10
    np.testing.assert_allclose(rank(sigma).eigenvalues, [1, 1e-3, 1e-7, 0], atol=1e-18)
    assert rank(np.zeros((3, 3))).value == 0


def test_the_inverse_root_whitens_what_has_spread() -> None:
    sigma = moments(np.ones(3)).plain()
    root = inverse_root(sigma)
    projector = root @ sigma @ root
    np.testing.assert_allclose(projector @ projector, projector, atol=1e-8)
    np.testing.assert_allclose(root @ root, np.linalg.pinv(sigma, rcond=1e-10), rtol=1e-6, atol=1e-8)


def test_groups_that_do_not_fit_are_refused() -> None:
    x = np.ones((4, 2))
    with pytest.raises(UserError, match="a group in 0 … 1"):
        group_moments(x, np.array([0, 1, 2, 0]), np.ones(2))
    with pytest.raises(UserError, match="none for group 1"):
        group_moments(x, np.zeros(4, int), np.ones(2))
    with pytest.raises(UserError, match=r"tolerance must lie in \[0, 1\)"):
        rank(np.eye(2), tolerance=1.0)
