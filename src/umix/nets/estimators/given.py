"""An estimator that is given as an object, and rows as they are given with it: frames, texts, sparse matrices.

The inputs of a task are numbers of rows. The rows are looked up when the estimator is fitted to them or predicts them. A pipeline
whose last step is boosted has the stages of that step. Models stay in memory.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from typing import Any, ClassVar, Self, final
from weakref import WeakValueDictionary

import numpy as np
from pydantic import Field

from umix.errors import UserError
from umix.nets.estimators.estimator import EstimatorSettings
from umix.nets.estimators.library import Floats, Ints, Labels, Library, is_pipeline, last_step, of_last_step
from umix.nets.estimators.own import REPEATS, library_of, require_estimator

_RANDOM = ("random_state", "random_seed")

#: Fitted models, each as long as somebody uses it, by a number that stands for it where other models are stored as bytes.
_MODELS: WeakValueDictionary[int, Any] = WeakValueDictionary()


@final
class InMemory(Library):
    """The library of an object, or of the last step of a pipeline; models are not stored but kept in memory.

    No fit goes on from an earlier one, so that options such as early stopping mean what they mean in the library.
    """

    def __init__(self, estimator: Any) -> None:
        self._library = library_of(last_step(estimator))
        self.takes_labels = self._library.takes_labels
        self.usual_stages = self._library.usual_stages
        if self._library.stages_option:
            self.stages_option = of_last_step(estimator, self._library.stages_option)

    def fit(self, model: Any, x: Any, y: Labels, weight: Floats | None, categories: Sequence[int]) -> None:
        if is_pipeline(model):
            super().fit(model, x, y, weight, categories)
        else:
            self._library.fit(model, x, y, weight, categories)

    def sharing(self, model: Any, memo: dict[str, Any] | None, x: Any) -> AbstractContextManager[None]:
        return self._library.sharing(last_step(model), memo, x)

    def n_stages(self, model: Any) -> int:
        return self._library.n_stages(last_step(model))

    def scores(self, model: Any, x: Any, ends: Sequence[int], categories: Sequence[int]) -> Floats:
        while self.stages_option and is_pipeline(model):
            x = model[:-1].transform(x) if len(model.steps) > 1 else x
            model = model.steps[-1][1]
        return self._library.scores(model, x, ends, categories)

    def dumps(self, model: Any) -> bytes:
        _MODELS[id(model)] = model
        return id(model).to_bytes(8, "little")

    def loads(self, content: bytes, fresh: Any) -> Any:
        return _MODELS[int.from_bytes(content, "little")]


@final
class GivenEstimator(EstimatorSettings):
    """Copies of an estimator, fitted to some of the given rows; every epoch is a look at a part of its stages."""

    name: ClassVar[str] = "given"

    estimator: Any = Field(exclude=True, repr=False, description="what is copied; it is not fitted itself")
    table: Any = Field(
        exclude=True, repr=False, description="all rows, [n, ...]; an input of the task is a place in it"
    )
    names: Any = Field(exclude=True, repr=False, description="the labels of the classes, [classes]")
    epochs: int = Field(
        ge=1, description="looks at the stages; repeats of the trajectory of an estimator without stages"
    )

    @classmethod
    def of(cls, estimator: Any, table: Any, names: Labels, *, epochs: int) -> Self:
        """A copy of ``estimator`` for these rows, looked at so many times, or as often as it has stages.

        Without stages there are at most 5 repeats.
        """
        own = _copy(checked_estimator(estimator))
        kind = InMemory(own)
        most = kind.stages_set(own) if kind.stages_option else REPEATS
        return cls(estimator=own, table=table, names=names, epochs=min(epochs, most))

    @property
    def kind(self) -> Library:
        return InMemory(self.estimator)

    def without_rows(self) -> Self:
        """These settings for a model that is fitted already: what it was fitted to is left out."""
        return self.model_copy(update={"table": None})

    def stages_after(self, epochs: int) -> int:
        stages = self.kind.stages_set(self.estimator)
        return min(stages, -(-stages * epochs // self.epochs))

    @contextmanager
    def asked_to(self, do: str) -> Iterator[None]:
        yield  # it is the caller's own estimator, which may raise what it likes

    def rows(self, x: np.ndarray) -> Any:
        from sklearn.utils import _safe_indexing

        return _safe_indexing(self.table, x[:, 0])

    def labels(self, seen: Ints, codes: Ints) -> Labels:
        return self.names[seen][codes] if self.kind.takes_labels else codes

    def make(self, *, stages: int, seed: int) -> Any:
        made, kind = _copy(self.estimator), self.kind
        given = {
            name: seed
            for name, value in made.get_params().items()
            if value is None and name.rpartition("__")[2] in _RANDOM
        }
        if kind.stages_option:
            given[kind.stages_option] = stages
        return made.set_params(**given)


def _copy(estimator: Any) -> Any:
    """An estimator with the same options that is not fitted."""
    from sklearn.base import clone

    try:
        return clone(estimator)
    except RuntimeError:  # CatBoost stores copies of lists such as cat_features, which clone refuses
        return deepcopy(estimator)


def checked_estimator(estimator: Any) -> Any:
    """``estimator``, if it is an object that can be copied and fitted to weighted rows and gives probabilities; else it raises."""
    if isinstance(estimator, type):
        raise UserError(
            f"estimator must be an object, got the class {estimator.__name__}; write {estimator.__name__}()."
        )
    require_estimator(estimator, "estimator must be", fix="choose one that has both")
    if not callable(getattr(estimator, "get_params", None)):
        raise UserError(
            f"estimator must have get_params, so that it can be copied, but {type(estimator).__name__} has none; derive it from "
            "sklearn.base.BaseEstimator."
        )
    return estimator
