"""Boosted trees of four libraries: how each is fitted, read stage by stage and stored, and its options under plain names.

An epoch is a block of trees. scikit-learn's are always installed; ``pip install 'umix[lightgbm]'``, ``'umix[xgboost]'`` and
``'umix[catboost]'`` add the others.
"""

import abc
import tempfile
import warnings
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, final

import numpy as np
from pydantic import Field

from umix.errors import UserError
from umix.models.estimators.estimator import EstimatorSettings
from umix.models.estimators.library import Floats, Labels, Library, load_skops, summed
from umix.models.library import install_command, installed, library
from umix.settings import among, between

_MOST_VALUES = 255  # of a category that scikit-learn takes as one; more are ordered numbers
#: Types of a fitted HistGradientBoostingClassifier, beside those that skops trusts itself. Loading them runs no code of the file.
_TRUSTED = frozenset(
    {
        "functools.partial",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.utils.validation.check_array",
    }
)
#: What CatBoost calls the number of trees; only one of them may be set.
CATBOOST_TREES = ("iterations", "n_estimators", "num_boost_round", "num_trees")


def _treelite() -> Any:
    """The library that reads trees of other libraries."""
    if not installed("treelite"):
        raise UserError(
            f"An export of trees needs treelite, which is not installed: {install_command('treelite', 'trees')}."
        )
    import treelite

    return treelite


class Boosted(EstimatorSettings, abc.ABC):
    """Boosted trees; every epoch adds some."""

    supports_categorical: ClassVar[bool] = True

    trees: int = Field(5, ge=1, description="trees added in an epoch (of each class, where there are more than two)")
    learning_rate: Annotated[float, between(0.03, 0.3, log=True)] = Field(
        0.1, gt=0, description="how much of each tree is added"
    )

    @property
    def per_epoch(self) -> int:
        return self.trees


class GrownByLeaves(Boosted, abc.ABC):
    """Boosted trees whose most useful leaf is split next, until there are enough leaves."""

    leaves: Annotated[int, among(7, 15, 31, 63)] = Field(31, ge=2, description="most leaves of a tree")
    depth: Annotated[int | None, among(3, 5, 8)] = Field(None, ge=1, description="most splits above a leaf; none: any")
    min_leaf: int = Field(20, ge=1, description="fewest training rows in a leaf")
    l2: float = Field(0.0, ge=0, description="penalty of the squared values of the leaves")


@final
class HistBoosting(Library):
    """scikit-learn's HistGradientBoostingClassifier, whose fits go on exactly where they stopped."""

    stages_option = "max_iter"
    goes_on = True

    def trial_rows(self, model: Any, x: Any, categories: Sequence[int]) -> Any:
        """``x`` with numbers rounded to at most as many values as the model has bins.

        scikit-learn then takes the values as bins. Otherwise it would look for weighted percentiles, in each fit anew, which takes
        ten times as long as growing the trees of a small table.
        """
        rounded = x.copy()
        for column, count in zip(rounded.T, categories or [0] * x.shape[1], strict=True):
            if count == 0:
                _round(column, model.max_bins)
        return rounded

    def n_stages(self, model: Any) -> int:
        return int(model.n_iter_)

    def scores(self, model: Any, x: Any, ends: Sequence[int], categories: Sequence[int]) -> Floats:
        stages = islice(model.staged_decision_function(x), ends[-1])
        wanted = [scores.copy() for stage, scores in enumerate(stages, start=1) if stage in ends]
        scores: Floats = np.stack(wanted).reshape(len(ends), len(x), -1)
        return scores

    def treelite(self, model: Any) -> Any:
        with warnings.catch_warnings():  # the code of a missing category is cast to an integer
            warnings.filterwarnings("ignore", "invalid value encountered in cast", RuntimeWarning)
            return _treelite().sklearn.import_model(model)

    def dumps(self, model: Any) -> bytes:
        import skops.io

        content: bytes = skops.io.dumps(model)
        return content

    def loads(self, content: bytes, fresh: Any) -> Any:
        return load_skops(content, trusted=_TRUSTED.__contains__)


def _round(column: np.ndarray, n_values: int) -> None:
    """Replace the numbers of ``column`` [n] by the means of ``n_values`` equal parts of them; gaps stay."""
    there = ~np.isnan(column)
    values = column[there].astype(np.float64)
    if len(np.unique(values)) <= n_values:
        return
    edges = np.unique(np.percentile(values, np.linspace(0, 100, n_values + 1)[1:-1], method="averaged_inverted_cdf"))
    part = np.searchsorted(edges, values)
    means = np.bincount(part, weights=values) / np.maximum(np.bincount(part), 1)
    column[there] = means[part]


@final
class Trees(GrownByLeaves):
    """Boosted trees (scikit-learn's HistGradientBoostingClassifier); an epoch adds some of them."""

    name: ClassVar[str] = "trees"

    @property
    def kind(self) -> Library:
        return HistBoosting()

    def make(self, *, stages: int, seed: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        few = [0 < count <= _MOST_VALUES for count in self.categories]
        return self.made(
            HistGradientBoostingClassifier,
            {
                "max_iter": stages,
                "learning_rate": self.learning_rate,
                "max_leaf_nodes": self.leaves,
                "max_depth": self.depth,
                "min_samples_leaf": self.min_leaf,
                "l2_regularization": self.l2,
                "categorical_features": few if any(few) else None,
                "early_stopping": False,  # validation chooses the stage, as it chooses the epoch of a net
                "warm_start": True,
                "random_state": seed,
            },
        )


@final
class LightGBMLibrary(Library):
    """LightGBM's LGBMClassifier; it is stored as LightGBM's own text."""

    stages_option = "n_estimators"

    def fit(self, model: Any, x: Any, y: Labels, weight: Floats | None, categories: Sequence[int]) -> None:
        codes = [column for column, count in enumerate(categories) if count]
        model.fit(x, y, sample_weight=weight, **({"categorical_feature": codes} if codes else {}))

    def n_stages(self, model: Any) -> int:
        return int(_booster(model).current_iteration())

    def scores(self, model: Any, x: Any, ends: Sequence[int], categories: Sequence[int]) -> Floats:
        booster, begins = _booster(model), [0, *ends]
        parts = [_lightgbm_raw(booster, x, begin, end) for begin, end in zip(begins, ends, strict=False)]
        return summed(parts, _lightgbm_raw(booster, x, 0, ends[-1]))

    def treelite(self, model: Any) -> Any:
        return _treelite().frontend.from_lightgbm(_booster(model))

    def dumps(self, model: Any) -> bytes:
        text: str = _booster(model).model_to_string(num_iteration=-1)
        return text.encode()

    def loads(self, content: bytes, fresh: Any) -> Any:
        return library("lightgbm", extra="lightgbm", net="lightgbm").Booster(model_str=content.decode())


def _booster(model: Any) -> Any:
    """The trees of a classifier; a stored model is nothing but them."""
    return getattr(model, "booster_", model)


def _lightgbm_raw(booster: Any, x: Any, begin: int, end: int) -> Floats:
    """What the trees from ``begin`` to ``end`` add, [n, columns]."""
    raw: Floats = booster.predict(x, raw_score=True, start_iteration=begin, num_iteration=end - begin)
    return raw.reshape(len(raw), -1)


@final
class LightGBM(GrownByLeaves):
    """LightGBM's boosted trees; an epoch adds some of them."""

    name: ClassVar[str] = "lightgbm"
    library: ClassVar[str] = "lightgbm"
    extra: ClassVar[str] = "lightgbm"

    @property
    def kind(self) -> Library:
        return LightGBMLibrary()

    def make(self, *, stages: int, seed: int) -> Any:
        return self.made(
            library(self.library, extra=self.extra, net=self.name).LGBMClassifier,
            {
                "n_estimators": stages,
                "learning_rate": self.learning_rate,
                "num_leaves": self.leaves,
                "max_depth": self.depth or -1,
                "min_child_samples": self.min_leaf,
                "reg_lambda": self.l2,
                "random_state": seed,
                "verbosity": -1,
            },
        )


@final
class XGBoostLibrary(Library):
    """XGBoost's XGBClassifier; it is stored as XGBoost's own UBJSON."""

    stages_option = "n_estimators"
    takes_labels = False

    def n_stages(self, model: Any) -> int:
        return int(model.get_booster().num_boosted_rounds())

    def scores(self, model: Any, x: Any, ends: Sequence[int], categories: Sequence[int]) -> Floats:
        parts = [model.predict(x, output_margin=True, iteration_range=(0, end)) for end in ends]
        scores: Floats = np.stack([part.reshape(len(part), -1) for part in parts])
        return scores

    def treelite(self, model: Any) -> Any:
        return _treelite().frontend.from_xgboost(model.get_booster())

    def dumps(self, model: Any) -> bytes:
        return bytes(model.get_booster().save_raw(raw_format="ubj"))

    def loads(self, content: bytes, fresh: Any) -> Any:
        fresh.load_model(bytearray(content))
        return fresh


@final
class XGBoost(Boosted):
    """XGBoost's boosted trees; an epoch adds some of them."""

    name: ClassVar[str] = "xgboost"
    library: ClassVar[str] = "xgboost"
    extra: ClassVar[str] = "xgboost"

    learning_rate: Annotated[float, between(0.03, 0.3, log=True)] = Field(
        0.3, gt=0, description="how much of each tree is added"
    )
    depth: Annotated[int, among(3, 4, 6, 8)] = Field(6, ge=0, description="most splits above a leaf; 0: any")
    min_leaf: float = Field(
        1.0, ge=0, description="least sum of second derivatives in a leaf, XGBoost's min_child_weight"
    )
    l2: float = Field(1.0, ge=0, description="penalty of the squared values of the leaves")

    @property
    def kind(self) -> Library:
        return XGBoostLibrary()

    def make(self, *, stages: int, seed: int) -> Any:
        codes = ["c" if count else "q" for count in self.categories]
        return self.made(
            library(self.library, extra=self.extra, net=self.name).XGBClassifier,
            {
                "n_estimators": stages,
                "learning_rate": self.learning_rate,
                "max_depth": self.depth,
                "min_child_weight": self.min_leaf,
                "reg_lambda": self.l2,
                "random_state": seed,
                **({"feature_types": codes, "enable_categorical": True} if "c" in codes else {}),
            },
        )


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
        parts = [_catboost_raw(model, rows, begin, end) for begin, end in zip(begins, ends, strict=False)]
        return summed(parts, _catboost_raw(model, rows, 0, ends[-1]))

    def dumps(self, model: Any) -> bytes:
        with tempfile.TemporaryDirectory(prefix="umix-") as folder:
            path = Path(folder) / "model.cbm"
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


def _catboost_raw(model: Any, rows: Any, begin: int, end: int) -> Floats:
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
