"""Columns with codes and gaps as numbers: against an independent loop."""

import math

import numpy as np
import torch
from umix.core.coded_columns import one_hot_columns


def test_columns_are_those_of_a_loop_over_cells() -> None:
    rng = np.random.default_rng(0)
    categories = (0, 3, 0, 1)
    x = np.stack([rng.integers(0, count, 50) if count else rng.normal(size=50) for count in categories], axis=1)
    x[rng.random(x.shape) < 0.2] = np.nan
    expected = []
    for row in x:
        cells: list[float] = []
        for value, count in zip(row, categories, strict=True):
            if count:
                cells += [float(value == code) for code in range(count)]
            else:
                cells += [0.0, 1.0] if math.isnan(value) else [value, 0.0]
        expected.append(cells)
    found = one_hot_columns(torch.from_numpy(x).float(), categories)
    np.testing.assert_allclose(found.numpy(), np.array(expected), rtol=1e-6)


def test_no_rows_and_no_columns_give_none() -> None:
    assert one_hot_columns(torch.zeros(0, 2), (0, 2)).shape == (0, 4)
    assert one_hot_columns(torch.zeros(3, 0), ()).shape == (3, 0)
