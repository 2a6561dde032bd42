"""CatBoost's boosted trees (``pip install 'umix[catboost]'``)."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, final

import numpy as np
from pydantic import Field

from umix.nets.estimators.boosted import Boosted
from umix.nets.estimators.library import Floats, Labels, Library, summed
from umix.nets.library import library
from umix.settings import among

#: What CatBoost calls the number of trees; only one of them may be set.
TREES = ("iterations", "n_estimators", "num_boost_round", "num_trees")


@final
class CatBoostLibrary(Library):
    """CatBoost's CatBoostClassifier; it is stored as CatBoost's own binary file."""

    usual_stages = 1000

    def __init__(self, stages_option: str = "iterations") -> None:
        self.stages_option = stages_option

    def fit(self, model: Any, x: Any, y: Labels, weight: Floats | None, categories: Sequence[int]) -> None:
        model.fit(_rows(x, categories), y, sample_weight=weight)

    def n_stages(self, model: Any) -> int:
        return int(model.tree_count_)

    def scores(self, model: Any, x: Any, ends: Sequence[int], categories: Sequence[int]) -> Floats:
        rows, begins = _rows(x, categories), [0, *ends]
        parts = [_raw(model, rows, begin, end) for begin, end in zip(begins, ends, strict=False)]
        return summed(parts, _raw(model, rows, 0, ends[-1]))

    def dumps(self, model: Any) -> bytes:
        with tempfile.TemporaryDirectory(prefix="umix-") as folder:
            path = Path(folder) / "model.cbm"
            for fact in ("model_guid", "train_finish_time"):  # equal models give equal files
                model.get_metadata()[fact] = ""
            model.save_model(str(path), format="cbm")
            return path.read_bytes()

    def loads(self, content: bytes, fresh: Any) -> Any:
        fresh.load_model(blob=content)
        return fresh


def _rows(x: Any, categories: Sequence[int]) -> Any:
    """The rows as CatBoost takes them: columns of codes must hold whole numbers; -1 is a missing one."""
    if not any(categories):
        return x
    import pandas

    columns = {}
    for place, count in enumerate(categories):
        column = np.asarray(x[:, place])
        columns[place] = np.where(np.isnan(column), -1, column).astype(np.int64) if count else column
    return pandas.DataFrame(columns)


def _raw(model: Any, rows: Any, begin: int, end: int) -> Floats:
    """What the trees from ``begin`` to ``end`` add, [n, columns]."""
    raw: Floats = model.predict(rows, prediction_type="RawFormulaVal", ntree_start=begin, ntree_end=end)
    return raw.reshape(len(raw), -1)


@final
class CatBoost(Boosted):
    """CatBoost's boosted trees; an epoch adds some of them."""

    name: ClassVar[str] = "catboost"
    library: ClassVar[str] = "catboost"
    extra: ClassVar[str] = "catboost"

    depth: Annotated[int, among(4, 6, 8)] = Field(6, ge=1, le=16, description="splits above every leaf")
    l2: float = Field(3.0, ge=0, description="penalty of the squared values of the leaves")

    @property
    def kind(self) -> Library:
        return CatBoostLibrary()

    def make(self, *, stages: int, seed: int) -> Any:
        return self.made(
            library(self.library, extra=self.extra, net=self.name).CatBoostClassifier,
            {
                "iterations": stages,
                "learning_rate": self.learning_rate,
                "depth": self.depth,
                "l2_leaf_reg": self.l2,
                "random_seed": seed,
                "cat_features": [place for place, count in enumerate(self.categories) if count],
                "verbose": False,
                "allow_writing_files": False,
            },
        )
