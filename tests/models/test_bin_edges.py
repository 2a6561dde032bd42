"""Edges of bins against quantiles by hand."""

import numpy as np
import torch

from umix.models.tabular import bin_edges


def test_without_repeated_values_edges_are_quantiles():
    values = np.random.default_rng(0).normal(size=401)
    edges = bin_edges(torch.from_numpy(values), 8)
    np.testing.assert_array_equal(edges.numpy(), np.quantile(values, np.arange(9) / 8))


def test_few_values_are_all_edges():
    assert bin_edges(torch.tensor([3.0, 1.0, 3.0, 2.0]), 2).tolist() == [1.0, 2.0, 3.0]
    assert bin_edges(torch.tensor([5.0, 5.0]), 4).tolist() == [5.0]


def test_a_value_that_nearly_all_rows_have_leaves_bins_for_the_others():
    values = torch.cat([torch.zeros(900), torch.arange(1.0, 101.0)])
    edges = bin_edges(values, 5)
    assert edges.tolist() == [0.0, 1.0, 26.0, 51.0, 75.0, 100.0]  # quantiles of all rows have one bin above 0


def test_there_are_never_more_bins_than_asked_for():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = torch.from_numpy(rng.geometric(rng.uniform(0.01, 0.9), size=200).astype(np.float64))
        for bins in (1, 2, 5, 16):
            edges = bin_edges(values, bins)
            assert len(edges) <= bins + 1
            assert (edges.diff() > 0).all()
            assert (edges[0], edges[-1]) == (values.min(), values.max())
