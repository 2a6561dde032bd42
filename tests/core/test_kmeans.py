"""k-means and silhouettes in NumPy: those of scikit-learn."""

import warnings

import numpy as np
import pytest

from umix.core.kmeans import distances, kmeans, silhouette


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_clusters_and_silhouette_are_those_of_scikit_learn(seed: int, size: int) -> None:
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    rng = np.random.default_rng(seed)
    z = rng.normal(size=(90, 5)) + 2 * rng.integers(0, 3, (90, 1))
    z = np.concatenate([z, z[:10]])  # some rows twice
    expected = KMeans(size, n_init=3, random_state=0).fit(z)
    cluster, distance = kmeans(z, size, starts=3)
    assert len(set(zip(cluster, expected.labels_, strict=True))) == size
    assert distance == pytest.approx(expected.transform(z).min(axis=1), abs=1e-6)
    assert silhouette(distances(z), cluster) == pytest.approx(silhouette_score(z, expected.labels_), abs=1e-9)


def test_a_row_alone_in_its_cluster_has_the_silhouette_0() -> None:
    from sklearn.metrics import silhouette_score

    z, cluster = np.array([[0.0], [1.0], [9.0]]), np.array([0, 0, 1])
    assert silhouette(distances(z), cluster) == pytest.approx(silhouette_score(z, cluster))


def test_no_cluster_stays_empty_where_there_are_as_many_different_rows() -> None:
    z = np.array([[0.0]] * 50 + [[1.0], [1.1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cluster, _ = kmeans(z, 3, starts=3)
    assert np.bincount(cluster, minlength=3).min() == 1


def test_equal_rows_are_one_cluster_and_raise_nothing() -> None:
    cluster, distance = kmeans(np.ones((6, 2)), 2, starts=1)
    assert set(cluster) <= {0, 1}
    assert distance.tolist() == [0.0] * 6
