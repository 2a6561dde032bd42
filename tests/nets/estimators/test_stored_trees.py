"""Stored trees are followed by scikit-learn without looking, so what leads astray is refused when they are read."""

import io
import zipfile
from collections.abc import Callable

import numpy as np
import pytest

from umix.errors import UserError
from umix.nets.estimators.stored_trees import dump_trees, load_trees


@pytest.fixture(scope="module")
def stored() -> bytes:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=60), rng.integers(3, size=60)], axis=1)
    options = {"max_iter": 3, "min_samples_leaf": 2, "early_stopping": False, "categorical_features": [1]}
    return dump_trees(HistGradientBoostingClassifier(**options).fit(x, (x[:, 0] > 0) ^ (x[:, 1] == 1)))


def changed(stored: bytes, name: str, change: Callable[[np.ndarray], np.ndarray | None]) -> bytes:
    """The same archive with another array in one of its files."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(stored)) as archive, zipfile.ZipFile(made, "w") as other:
        for part in archive.namelist():
            content = archive.read(part)
            if part == name:
                array = np.load(io.BytesIO(content))
                file = io.BytesIO()
                again = change(array)
                np.save(file, array if again is None else again)
                content = file.getvalue()
            other.writestr(part, content)
    return made.getvalue()


def field(name: str, value: int) -> Callable[[np.ndarray], None]:
    return lambda nodes: nodes[name].__setitem__(slice(None), value)


def test_stored_trees_predict_as_before(stored: bytes) -> None:
    x = np.array([[1.0, 0], [-1.0, 0], [1.0, 1]])
    assert load_trees(stored).predict(x).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("nodes.npy", field("left", 0)),
        ("nodes.npy", field("right", 10**6)),
        ("nodes.npy", field("feature_idx", 2)),
        ("nodes.npy", field("feature_idx", -1)),
        ("nodes.npy", field("bitset_idx", 99)),
        ("nodes.npy", lambda nodes: nodes[:-1]),
        ("nodes.npy", lambda nodes: nodes["value"].copy()),
        ("nodes sizes.npy", lambda sizes: sizes[:-1]),
        ("nodes sizes.npy", lambda sizes: np.array([-1, *sizes[1:]])),
        ("raw_left_cat_bitsets.npy", lambda bits: bits[:, :4].copy()),
        ("raw_left_cat_bitsets sizes.npy", lambda sizes: sizes * 2),
    ],
    ids=["loop", "beyond", "column", "negative", "category", "cut", "type", "fewer", "sizes", "bits", "bit sizes"],
)
def test_trees_that_lead_astray_are_refused(
    stored: bytes, name: str, change: Callable[[np.ndarray], np.ndarray | None]
) -> None:
    with pytest.raises(
        UserError, match=r"^A stored model must be whole, but it cannot be read \(ValueError: its trees|some"
    ):
        load_trees(changed(stored, name, change))
