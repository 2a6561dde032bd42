"""Neighbours against distances that are computed by hand."""

import numpy as np
import pytest
import torch

from umix.core.neighbours import class_neighbours, neighbour_means


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(90, 3)).astype(np.float32), rng.integers(0, 3, 90)


def test_neighbours_are_the_nearest_rows_of_the_same_class(rows: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = rows
    neighbours = class_neighbours(x, y, rng=np.random.default_rng(0), k=5)
    for row in range(len(x)):
        members = np.flatnonzero(y == y[row])
        distances = np.linalg.norm(x[members].astype(np.float64) - x[row], axis=1)
        assert neighbours[row].tolist() == members[np.argsort(distances)[:5]].tolist()


def test_neighbours_are_looked_for_among_so_many_rows_of_a_class(rows: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = rows
    neighbours = class_neighbours(x, y, rng=np.random.default_rng(0), k=4, most=6)
    assert [len(set(neighbours[y == label].ravel())) for label in range(3)] == [6, 6, 6]
    assert (y[neighbours] == y[:, None]).all()


def test_a_class_of_one_row_has_that_row_as_its_neighbours() -> None:
    neighbours = class_neighbours(np.zeros((1, 2), dtype=np.float32), np.array([0]), rng=np.random.default_rng(0), k=3)
    assert neighbours.tolist() == [[0, 0, 0]]


def test_means_over_neighbours_count_a_row_of_weight_two_twice() -> None:
    u, neighbours = torch.tensor([0.0, 1.0, 0.5]), torch.tensor([[0, 1], [1, 2], [2, 0]])
    assert neighbour_means(u, neighbours).tolist() == [0.5, 0.75, 0.25]
    weighed = neighbour_means(u, neighbours, sample_weight=torch.tensor([1.0, 3.0, 0.0]))
    assert weighed.tolist() == [0.75, 1.0, 0.0]


def test_a_neighbourhood_without_copies_has_the_mean_zero() -> None:
    assert neighbour_means(torch.tensor([1.0]), torch.tensor([[0]]), sample_weight=torch.zeros(1)).tolist() == [0.0]
