"""Counts against a plain loop; they are exact, and add over batches."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import umix.core.counts
from umix.core.counts import class_counts, group_counts


@st.composite
def outcomes(draw):
    """Which predictions are correct, and group membership with overlapping, incomplete and empty groups."""
    n, n_groups = draw(st.integers(0, 12)), draw(st.integers(1, 5))
    correct = torch.from_numpy(draw(npst.arrays(np.bool_, n)))
    return correct, torch.from_numpy(draw(npst.arrays(np.bool_, (n, n_groups))))


def _loop(correct, member):
    hits, sizes = [0] * member.shape[1], [0] * member.shape[1]
    for right, row in zip(correct.tolist(), member.tolist(), strict=True):
        for group, inside in enumerate(row):
            sizes[group] += inside
            hits[group] += inside and right
    return hits, sizes


def _lists(counts):
    return tuple(count.tolist() for count in counts)


@given(outcomes())
@settings(deadline=None, max_examples=60)
def test_group_counts_are_those_of_a_loop(drawn):
    counts = group_counts(*drawn)
    assert _lists(counts) == _loop(*drawn)
    assert [count.dtype for count in counts] == [torch.int64, torch.int64]


@given(outcomes(), st.integers(0, 12), st.integers(0, 12))
@settings(deadline=None, max_examples=50)
def test_group_counts_add_over_shards(drawn, one, other):
    correct, member = drawn
    first, second = sorted((one, other))
    shards = [slice(0, first), slice(first, second), slice(second, None)]
    parts = [torch.stack(group_counts(correct[rows], member[rows])) for rows in shards]
    assert torch.equal(sum(parts), torch.stack(group_counts(correct, member)))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.float64], ids=str)
def test_group_counts_are_the_same_from_any_type_of_zeros_and_ones(dtype):
    correct, member = torch.tensor([1, 0, 1]), torch.tensor([[1, 0], [1, 1], [0, 1]])
    assert _lists(group_counts(correct.to(dtype), member.to(dtype))) == ([1, 1], [2, 2])


@pytest.mark.parametrize("chunk", [1, 3, 10, 11])
def test_counting_in_chunks_counts_everyone_once(monkeypatch, chunk):
    rng = np.random.default_rng(0)
    correct, member = torch.from_numpy(rng.random(10) < 0.5), torch.from_numpy(rng.random((10, 3)) < 0.5)
    monkeypatch.setattr(umix.core.counts, "_EXACT", chunk)
    assert _lists(group_counts(correct, member)) == _loop(correct, member)


def test_a_chunk_is_small_enough_for_float32_to_count_it_exactly():
    last = umix.core.counts._EXACT - 1
    assert [int(torch.tensor(last).float()), int(torch.tensor(last).float() + 1)] == [last, last + 1]


def test_counts_are_not_rounded_under_mixed_precision():
    everyone = torch.ones(1001, 2, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert _lists(group_counts(everyone[:, 0], everyone)) == ([1001, 1001], [1001, 1001])


def test_misaligned_examples_are_an_error():
    with pytest.raises(ValueError, match="about the same examples, got 2 and 3"):
        group_counts(torch.ones(2), torch.ones(3, 1))


@given(st.integers(1, 4), st.data())
@settings(deadline=None, max_examples=40)
def test_class_counts_are_the_group_counts_of_disjoint_classes(n_classes, data):
    y = torch.tensor(data.draw(st.lists(st.integers(0, n_classes - 1), max_size=10)), dtype=torch.int64)
    correct = torch.from_numpy(data.draw(npst.arrays(np.bool_, len(y))))
    member = y[:, None] == torch.arange(n_classes)
    assert _lists(class_counts(correct, y, n_classes=n_classes)) == _lists(group_counts(correct, member))
