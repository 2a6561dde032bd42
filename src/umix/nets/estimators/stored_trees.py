"""A fitted HistGradientBoostingClassifier as bytes: its trees as plain arrays, the rest through skops.

skops alone would look at every tree as an object of its own, which takes seconds where there are hundreds.
"""

import io
import zipfile
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
        arrays = []
        for name in _ARRAYS:
            ends = np.cumsum(_read(archive, f"{name} sizes.npy"))[:-1]
            arrays.append(np.split(_read(archive, f"{name}.npy"), ends))
        trees = iter([TreePredictor(*parts) for parts in zip(*arrays, strict=True)])
        model._predictors = [list(islice(trees, count)) for count in _read(archive, "stages.npy").tolist()]
    return model


def _npy(array: np.ndarray) -> bytes:
    made = io.BytesIO()
    np.lib.format.write_array(made, np.ascontiguousarray(array), allow_pickle=False)
    return made.getvalue()


def _read(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    found: np.ndarray = np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
    return found
