"""Small trees in NumPy: those of scikit-learn where no two splits are equally good."""

import numpy as np
import pytest

from umix.core.small_tree import grow


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(4))
def test_a_tree_with_few_leaves_is_that_of_scikit_learn(seed: int, n_classes: int) -> None:
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 2)).astype(np.float32)
    y = np.floor(2 * x[:, 0] + x[:, 1] + rng.normal(size=400)).astype(np.int64) % n_classes
    expected = DecisionTreeClassifier(max_leaf_nodes=12, min_samples_leaf=5, random_state=0).fit(x[100:], y[100:])
    tree = grow(x[100:], y[100:], min_leaf=5, max_leaves=12)
    assert len(tree.n) == expected.tree_.node_count
    assert sorted(tree.n) == sorted(expected.tree_.n_node_samples)
    assert sorted(tree.threshold) == pytest.approx(
        sorted(np.where(expected.tree_.feature >= 0, expected.tree_.threshold, np.nan)), nan_ok=True
    )
    assert tree.predict(x).tolist() == expected.predict(x).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_of_two_classes_a_tree_of_some_depth_is_that_of_a_regression(seed: int) -> None:
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3000, 100)).astype(np.float32)  # so many that they are sorted in parts
    y = (rng.random(3000) < 0.1 + 0.4 * ((x[:, 7] > 0.5) & (x[:, 99] > 0))).astype(np.int64)
    expected = DecisionTreeRegressor(max_depth=3, min_samples_leaf=20, random_state=0).fit(x, y.astype(float)).tree_
    tree = grow(x, y, min_leaf=20, max_depth=3)

    def path(node: int, theirs: int) -> None:
        errors = tree.hits[node] if tree.label[node] else tree.n[node] - tree.hits[node]
        assert (tree.n[node], errors / tree.n[node]) == (
            expected.n_node_samples[theirs],
            pytest.approx(expected.value[theirs].item()),
        )
        if tree.below[node] < 0:
            assert expected.children_left[theirs] < 0
            return
        assert (tree.feature[node], tree.threshold[node]) == (expected.feature[theirs], expected.threshold[theirs])
        path(tree.below[node], int(expected.children_left[theirs]))
        path(tree.above[node], int(expected.children_right[theirs]))

    path(0, 0)


def test_of_equal_splits_that_of_the_first_feature_is_taken_whose_larger_numbers_go_with_the_higher_class() -> None:
    x = np.array([[0, 1, 1], [0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=np.float32)
    assert grow(x, np.array([0, 0, 1, 1]), min_leaf=1).feature[0] == 0
    assert grow(x, np.array([1, 1, 0, 0]), min_leaf=1).feature[0] == 1


def test_no_leaf_is_smaller_than_told_and_equal_numbers_stay_together() -> None:
    x = np.array([[0], [1], [1], [1], [1], [2]], dtype=np.float32)
    tree = grow(x, np.array([0, 0, 1, 0, 1, 1]), min_leaf=2)
    assert tree.n == [6]
    tree = grow(x, np.array([0, 1, 1, 1, 1, 1]), min_leaf=1)
    assert sorted(tree.n) == [1, 5, 6]


def test_the_middle_of_two_neighbouring_numbers_divides_them() -> None:
    low = np.float32(1.0)
    x = np.array([[low], [np.nextafter(low, np.float32(2)) + np.float32(1e-6)]], dtype=np.float32)
    tree = grow(x, np.array([0, 1]), min_leaf=1)
    assert tree.predict(x).tolist() == [0, 1]


def test_one_class_is_one_leaf() -> None:
    tree = grow(np.zeros((5, 1), dtype=np.float32), np.full(5, 2), min_leaf=1)
    assert (tree.n, tree.label, tree.hits) == ([5], [2], [5])
