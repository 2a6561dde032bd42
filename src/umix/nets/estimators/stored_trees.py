"""A fitted HistGradientBoostingClassifier as bytes: its trees as plain arrays, the rest through skops.

skops alone would look at every tree as an object of its own, which takes seconds where there are hundreds.
"""

import io
import zipfile
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from umix.nets.estimators.trusted import BOOSTING, dump_model, load_model, reading, zipped

_REST = "rest.skops"
_ARRAYS = ("nodes", "binned_left_cat_bitsets", "raw_left_cat_bitsets")  # of a tree, as scikit-learn calls them


def dump_trees(model: Any) -> bytes:
    """The fitted ``model``; equal models give equal bytes."""
    trees = [tree for stage in model._predictors for tree in stage]
    arrays = {name: [getattr(tree, name) for tree in trees] for name in _ARRAYS}
    stages, model._predictors = model._predictors, []
    try:
        parts = {_REST: dump_model(model)}
    finally:
        model._predictors = stages
    parts["stages.npy"] = _npy(np.array([len(stage) for stage in stages], dtype=np.int64))
    for name, of_trees in arrays.items():
        parts[f"{name}.npy"] = _npy(np.concatenate(of_trees))
        parts[f"{name} sizes.npy"] = _npy(np.array([len(one) for one in of_trees], dtype=np.int64))
    return zipped(parts)


def load_trees(content: bytes) -> Any:
    """The model that ``dump_trees`` wrote; nothing in it is executed."""
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    with reading(), zipfile.ZipFile(io.BytesIO(content)) as archive:
        model = load_model(archive.read(_REST), trusted=BOOSTING.__contains__)
        whole = [_read(archive, f"{name}.npy") for name in _ARRAYS]
        sizes = [_read(archive, f"{name} sizes.npy") for name in _ARRAYS]
        _check_nodes(whole, sizes, n_columns=model.n_features_in_)
        arrays = [np.split(array, np.cumsum(size)[:-1]) for array, size in zip(whole, sizes, strict=True)]
        trees = iter([TreePredictor(*parts) for parts in zip(*arrays, strict=True)])
        model._predictors = [list(islice(trees, count)) for count in _read(archive, "stages.npy").tolist()]
    return model


def _check_nodes(arrays: Sequence[np.ndarray], sizes: Sequence[np.ndarray], *, n_columns: int) -> None:
    """Raise unless all nodes lead on to later nodes of their tree, and to columns and categories that exist.

    scikit-learn follows them without looking: it would read other memory, or never come to an end.
    """
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = arrays[0]
    if nodes.dtype != PREDICTOR_RECORD_DTYPE or any(
        one.dtype != np.uint32 or one.shape[1:] != (8,) for one in arrays[1:]
    ):
        raise ValueError("its trees are of other types")
    if any(
        size.dtype != np.int64 or (size < 0).any() or size.sum() != len(one)
        for one, size in zip(arrays, sizes, strict=True)
    ):
        raise ValueError("its trees are of other sizes")
    if len({len(size) for size in sizes}) > 1 or not (sizes[0] > 0).all():
        raise ValueError("some of its trees are empty")
    ends = np.repeat(sizes[0], sizes[0])
    own = np.arange(len(nodes)) - np.repeat(np.cumsum(sizes[0]) - sizes[0], sizes[0])
    inner = nodes["is_leaf"] == 0
    leads = (nodes["left"] > own) & (nodes["left"] < ends) & (nodes["right"] > own) & (nodes["right"] < ends)
    column = (nodes["feature_idx"] >= 0) & (nodes["feature_idx"] < n_columns)
    listed = (nodes["is_categorical"] == 0) | (nodes["bitset_idx"] < np.repeat(np.minimum(*sizes[1:]), sizes[0]))
    if not (leads & column & listed)[inner].all():
        raise ValueError("its trees lead to nodes, columns or categories that are not there")


def _npy(array: np.ndarray) -> bytes:
    made = io.BytesIO()
    np.lib.format.write_array(made, np.ascontiguousarray(array), allow_pickle=False)
    return made.getvalue()


def _read(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    found: np.ndarray = np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
    return found
