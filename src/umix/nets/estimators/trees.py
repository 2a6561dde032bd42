"""Gradient-boosted trees of scikit-learn, which is always installed: categories and missing values are taken as they are."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, final

import numpy as np

from umix.nets.estimators.boosted import GrownByLeaves
from umix.nets.estimators.library import Floats, Labels, Library
from umix.nets.estimators.one_copy import one_copy
from umix.nets.estimators.stored_trees import dump_trees, load_trees

_MOST_VALUES = 255  # of a category that scikit-learn takes as one; more are ordered numbers


@final
class HistBoosting(Library):
    """scikit-learn's HistGradientBoostingClassifier, whose fits go on exactly where they stopped."""

    stages_option = "max_iter"
    goes_on = True

    @contextmanager
    def sharing(self, model: Any, memo: dict[str, Any] | None, x: Any) -> Iterator[None]:
        """Fits that share ``memo`` cut the rows into bins once, without weights.

        A fit of its own cuts them by its weights, as the library does.
        """
        if memo is None:
            yield
            return
        cut = model._bin_data

        def shared(rows: Any, *rest: Any, is_training_data: bool) -> Any:
            if not is_training_data:
                return cut(rows, *rest, is_training_data=False)
            if "x" not in memo or _address(memo["x"]) != _address(x):
                binned = cut(rows, *[None for _ in rest], is_training_data=True)
                memo.update({"x": x, "mapper": model._bin_mapper, "binned": binned})
            model._bin_mapper = memo["mapper"]
            return memo["binned"]

        model._bin_data = shared
        try:
            yield
        finally:
            del model._bin_data

    def fit(self, model: Any, x: Any, y: Labels, weight: Floats | None, categories: Sequence[int]) -> None:
        with one_copy(model, x if any(categories) else None):
            super().fit(model, x, y, weight, categories)

    def n_stages(self, model: Any) -> int:
        return int(model.n_iter_)

    def scores(self, model: Any, x: Any, ends: Sequence[int], categories: Sequence[int]) -> Floats:
        wanted, found = set(ends), []
        for stage, scores in enumerate(model.staged_decision_function(x), start=1):
            if stage in wanted:
                found.append(scores.reshape(len(scores), -1).copy())
            if stage == ends[-1]:
                break
        stacked: Floats = np.stack(found)
        return stacked

    def dumps(self, model: Any) -> bytes:
        return dump_trees(model)

    def loads(self, content: bytes, fresh: Any) -> Any:
        return load_trees(content)


def _address(x: np.ndarray) -> tuple[Any, ...]:
    """Where the inputs lie in memory, and how many they are; others can lie there only after these are gone."""
    return (x.__array_interface__["data"], x.shape)


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
