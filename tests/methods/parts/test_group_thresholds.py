"""Thresholds of pseudo-groups against a reference that sorts, and their limits."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from umix.methods.parts.attribute_nets import group_thresholds, masked_log_softmax


def reference(p: np.ndarray, y: np.ndarray, labelled: np.ndarray, threshold: float) -> np.ndarray:
    groups = [(c, a) for c in range(labelled.shape[0]) for a in range(labelled.shape[1]) if labelled[c, a] > 0]
    smallest = min(groups, key=lambda g: labelled[g])
    goal = labelled[smallest] + sum(p[i, smallest[1]] >= threshold for i in range(len(p)) if y[i] == smallest[0])
    found = np.full(labelled.shape, np.inf)
    for c, a in groups:
        ordered = sorted((p[i, a] for i in range(len(p)) if y[i] == c), reverse=True)
        k = goal - labelled[c, a]
        if k > 0 and ordered:
            found[c, a] = ordered[min(k, len(ordered)) - 1]
    found[smallest] = threshold
    return found


def rows(seed: int, n: int, classes: int, values: int, *, spread: float = 0.1) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.dirichlet([spread] * values, n)), torch.from_numpy(rng.integers(classes, size=n))


@given(
    st.integers(0, 300), st.integers(0, 60), st.floats(0.4, 1.2), st.lists(st.integers(0, 8), min_size=6, max_size=6)
)
def test_thresholds_follow_the_rule(seed: int, n: int, threshold: float, counts: list[int]) -> None:
    labelled = torch.tensor(counts).reshape(2, 3)
    p, y = rows(seed, n, 2, 3)
    found = group_thresholds(p, y, labelled, threshold=threshold)
    if not any(counts):
        assert torch.isinf(found).all()
        return
    np.testing.assert_allclose(found.numpy(), reference(p.numpy(), y.numpy(), labelled.numpy(), threshold), rtol=1e-12)


@given(st.integers(0, 200))
def test_rows_that_pass_make_all_groups_as_large_as_the_smallest_one_becomes_as_far_as_there_are_rows(
    seed: int,
) -> None:
    p, y = rows(seed, 80, 2, 2, spread=1.0)  # no two are equal
    labelled = torch.tensor([[5, 2], [9, 4]])
    found = group_thresholds(p, y, labelled, threshold=0.6)
    passed = torch.tensor([[int((p[y == c, a] >= found[c, a]).sum()) for a in range(2)] for c in range(2)])
    size = 2 + int(passed[0, 1])
    for c in range(2):
        for a in range(2):
            assert int(passed[c, a]) == min(max(0, size - int(labelled[c, a])), int((y == c).sum()))


def test_a_threshold_above_one_leaves_only_labelled_rows() -> None:
    p, y = rows(0, 40, 2, 2)
    found = group_thresholds(p, y, torch.tensor([[3, 3], [3, 3]]), threshold=1.5)
    assert (p <= 1).all()
    assert (found > 1).all()


def test_a_group_that_is_large_enough_takes_no_rows_even_if_a_net_is_certain() -> None:
    p = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    found = group_thresholds(p, torch.zeros(2, dtype=torch.int64), torch.tensor([[7, 1]]), threshold=0.95)
    assert found.tolist() == [[float("inf"), pytest.approx(0.95)]]


def test_probabilities_are_over_possible_values_and_their_gradients_are_right() -> None:
    logits = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    possible = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 0], [1, 1, 1]]).bool()
    p = masked_log_softmax(logits, possible).exp().numpy()
    odds = np.exp(logits.numpy()) * possible.numpy()
    np.testing.assert_allclose(p, odds / odds.sum(1, keepdims=True), rtol=1e-12)

    def chosen(x: Tensor) -> Tensor:
        return masked_log_softmax(x, possible)[possible]

    assert torch.autograd.gradcheck(chosen, logits.requires_grad_())
