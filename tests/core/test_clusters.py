"""Clusters within classes: known ones are found, silhouettes are the formula, and small or equal classes are one cluster."""

import numpy as np
import pytest

from umix.core.clusters import Kind, clustered, clusters_within, main_directions, main_directions_within, silhouette

RNG = np.random.default_rng(0)


def blobs(sizes: list[int], *, width: int = 2, apart: float = 20.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(len(sizes)), sizes)
    centres = apart * np.stack([[np.cos(t), np.sin(t)] + [0.0] * (width - 2) for t in 2 * np.pi * np.arange(8) / 8])
    return centres[label] + rng.standard_normal((len(label), width)), label


def by_formula(z: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """The silhouette of every example, one after another."""
    values = []
    for i in range(len(z)):
        distance = np.sqrt(((z - z[i]) ** 2).sum(axis=1))
        own = (cluster == cluster[i]) & (np.arange(len(z)) != i)
        if not own.any():
            values.append(0.0)
            continue
        a = distance[own].mean()
        b = min(distance[cluster == c].mean() for c in set(cluster.tolist()) - {cluster[i]})
        values.append((b - a) / max(a, b))
    return np.array(values)


def test_a_silhouette_is_the_formula_over_examples_or_over_clusters() -> None:
    z, cluster = RNG.standard_normal((60, 3)), RNG.integers(0, 4, 60)
    each = by_formula(z, cluster)
    assert silhouette(z, cluster, average="examples", rng=RNG) == pytest.approx(each.mean(), abs=1e-12)
    means = [each[cluster == c].mean() for c in range(4)]
    assert silhouette(z, cluster, average="clusters", rng=RNG) == pytest.approx(np.mean(means), abs=1e-12)


@pytest.mark.parametrize("average", ["examples", "clusters"])
def test_a_silhouette_of_a_sample_is_close_to_that_of_all_examples(average: str) -> None:
    z, cluster = blobs([700, 250, 50], apart=2.0)
    whole = silhouette(z, cluster, average=average, rng=RNG, sample=1000)
    drawn = [silhouette(z, cluster, average=average, rng=RNG, sample=200) for _ in range(10)]
    assert np.mean(drawn) == pytest.approx(whole, abs=0.03)
    assert len(set(drawn)) == 10


@pytest.mark.parametrize("kind", ["kmeans", "gmm"])
def test_separate_clusters_are_found_class_by_class_and_so_is_their_number(kind: Kind) -> None:
    (z0, k0), (z1, k1) = blobs([40, 25, 10]), blobs([50, 20], seed=1)
    z, y = np.concatenate([z0, z1]), np.repeat([0, 2], [75, 70])
    order = RNG.permutation(len(z))
    found = clusters_within(z[order], y[order], n_classes=4, sizes=range(2, 7), kind=kind, average="clusters", rng=RNG)
    expected = np.concatenate([k0, 3 + k1])  # numbered by class, and by size within it
    np.testing.assert_array_equal(found.cluster, expected[order])
    assert found.n_clusters == 5
    assert (found.silhouette[[0, 2]] > 0.8).all()
    assert np.isnan(found.silhouette[[1, 3]]).all()


def test_one_cluster_per_class_is_the_class() -> None:
    z, y = blobs([10, 5])
    found = clusters_within(z, y, n_classes=2, sizes=[1], kind="kmeans", average="examples", rng=RNG)
    np.testing.assert_array_equal(found.cluster, y)


@pytest.mark.parametrize("kind", ["kmeans", "gmm"])
@pytest.mark.parametrize(
    ("z", "n"),
    [
        (np.zeros((0, 2)), 0),
        (np.ones((1, 2)), 1),
        (np.array([[0.0, 0.0], [1.0, 1.0]]), 1),
        (np.ones((30, 2)), 1),
        (np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), 2),
        (np.array([[0.0], [1.0], [5.0]]), 2),
        (np.repeat([[0.0], [1.0], [2.0]], 10, axis=0), 3),
    ],
    ids=["none", "one", "two", "equal", "two different", "three", "three different"],
)
def test_a_class_has_no_more_clusters_than_different_examples(kind: Kind, z: np.ndarray, n: int) -> None:
    y = np.zeros(len(z), dtype=np.int64)
    found = clusters_within(z, y, n_classes=1, sizes=range(2, 8), kind=kind, average="clusters", rng=RNG)
    assert found.n_clusters == n
    assert np.isnan(found.silhouette[0]) == (n < 2)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_scale_of_features_does_not_matter(factor: float) -> None:
    z, expected = blobs([40, 20])
    np.testing.assert_array_equal(clustered(factor * z + 3, 2, kind="gmm", rng=RNG), expected)


def test_features_that_are_not_finite_are_refused() -> None:
    z = np.array([[0.0], [np.nan], [np.inf]])
    with pytest.raises(ValueError, match="must be finite to be clustered, got 2 rows that are not"):
        clusters_within(
            z, np.zeros(3, dtype=np.int64), n_classes=1, sizes=[2], kind="kmeans", average="clusters", rng=RNG
        )


@pytest.mark.parametrize("shape", [(50, 8), (8, 50)])
def test_main_directions_are_the_scores_of_a_singular_value_decomposition(shape: tuple[int, int]) -> None:
    z = RNG.standard_normal(shape)
    left, scale, _ = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
    found = main_directions(z, 3)
    np.testing.assert_allclose(np.abs(found), np.abs(left[:, :3] * scale[:3]), atol=1e-8)
    assert main_directions(z, 100).shape == (shape[0], 8)
    assert main_directions(np.ones((1, 4)), 2).shape == (1, 1)


def test_main_directions_within_classes_are_those_of_each_class_alone() -> None:
    z, y = RNG.standard_normal((12, 4)), np.array([0] * 9 + [2] * 2 + [3])
    found = main_directions_within(z, y, n_classes=4, width=3)
    np.testing.assert_allclose(found[:9], main_directions(z[:9], 3))
    assert found[9:11, 2].tolist() == [0, 0]  # two examples vary in two directions at most
    assert found[11].tolist() == [0, 0, 0]
