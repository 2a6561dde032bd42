"""Estimators of your own: any object with ``fit`` and ``predict_proba``, named as ``module.path:factory`` or given in Python.

``factory()`` returns the object; a class does as well: ``sklearn.ensemble:RandomForestClassifier``. Estimators of scikit-learn's
boosting, LightGBM, XGBoost and CatBoost are known by their class and looked at stage by stage; all others have one stage.

In Python an object is given together with its rows: frames, texts, sparse matrices. The inputs of the task are then numbers of
rows, and the rows are looked up when the estimator is fitted to them or predicts them. Such models stay in memory.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, Self, final
from weakref import WeakValueDictionary

import numpy as np
from pydantic import Field
from torch import Tensor

from umix.errors import UserError, cause
from umix.models.estimators.boosted import (
    CATBOOST_TREES,
    CatBoostLibrary,
    HistBoosting,
    LightGBMLibrary,
    XGBoostLibrary,
)
from umix.models.estimators.estimator import EstimatorModel, EstimatorSettings
from umix.models.estimators.library import (
    Floats,
    Ints,
    Labels,
    Library,
    is_pipeline,
    last_step,
    load_skops,
    of_last_step,
)
from umix.models.own import own_module
from umix.models.weight_files import files_hash

LOOKS = 20  # epochs of an estimator that says itself how many stages it has
REPEATS = 5  # divisions into folds of one that has no stages
_TINY = 1e-15  # probabilities are cut there before their logarithm is taken


@final
class AnyLibrary(Library):
    """An estimator of which nothing is known but ``fit`` and ``predict_proba``.

    Types of ``packages`` may be loaded from its file.
    """

    def __init__(self, packages: Sequence[str] = ("sklearn",)) -> None:
        self._packages = tuple(packages)

    def scores(self, model: Any, x: Any, ends: Sequence[int], categories: Sequence[int]) -> Floats:
        shares = np.clip(np.asarray(model.predict_proba(x), dtype=np.float64), _TINY, None)
        return np.log(shares)[None].repeat(len(ends), axis=0)

    def dumps(self, model: Any) -> bytes:
        import skops.io

        try:
            content: bytes = skops.io.dumps(model)
            self.loads(content, None)  # what cannot be read again is refused while the run can still say so
        except Exception as error:  # whatever a model holds may refuse in its own way
            raise UserError(
                f"A model must be stored without pickle, but {type(model).__name__} holds something that skops cannot write and "
                f"read again ({cause(error)}); leave functions and the like out of it."
            ) from None
        return content

    def loads(self, content: bytes, fresh: Any) -> Any:
        return load_skops(content, trusted=lambda name: name.partition(".")[0] in self._packages)


def library_of(estimator: Any, packages: Sequence[str] = ("sklearn",)) -> Library:
    """The library that ``estimator`` belongs to, by its class."""
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(estimator).__mro__]
    if ("sklearn", "HistGradientBoostingClassifier") in kinds:
        return HistBoosting()
    if ("lightgbm", "LGBMClassifier") in kinds:
        return LightGBMLibrary()
    if ("xgboost", "XGBClassifier") in kinds:
        return XGBoostLibrary()
    if ("catboost", "CatBoostClassifier") in kinds:
        return CatBoostLibrary(
            next((name for name in CATBOOST_TREES if name in estimator.get_params()), CATBOOST_TREES[0])
        )
    return AnyLibrary(packages)


def require_estimator(estimator: Any, title: str, *, fix: str) -> None:
    """Raise unless ``estimator`` can be fitted to weighted rows and gives probabilities; ``fix`` is what helps if it is none."""
    missing = [name for name in ("fit", "predict_proba") if not callable(getattr(estimator, name, None))]
    if missing:
        if missing == ["predict_proba"]:
            fix = "put it into CalibratedClassifierCV of scikit-learn, which gives probabilities"
        raise UserError(
            f"{title} an estimator with fit and predict_proba, but {type(estimator).__name__} has no {missing[0]}; {fix}."
        )
    last = last_step(estimator)
    taken = inspect.signature(last.fit).parameters.values()
    if not any(one.name == "sample_weight" or one.kind is one.VAR_KEYWORD for one in taken):
        raise UserError(
            f"{title} an estimator that takes sample_weight in fit, but {type(last).__name__} does not; choose one that does."
        )


def with_stages(estimator: Any, kind: Library, *, stages: int, seed: int) -> Any:
    """``estimator`` with so many stages, where it has any, and with a random state where it has none of its own."""
    options: dict[str, Any] = {}
    if hasattr(estimator, "get_params"):
        options = {name: seed for name, value in estimator.get_params().items() if value is None and _is_random(name)}
    if kind.stages_option:
        options[kind.stages_option] = stages
    if kind.goes_on:
        options["warm_start"] = True
    return estimator.set_params(**options) if options else estimator


def _is_random(option: str) -> bool:
    return option.rpartition("__")[2] in ("random_state", "random_seed")


def _makes_estimators(made: Any) -> bool:
    """Whether it is the class of an estimator, or a function without arguments: one that makes nets takes two."""
    if isinstance(made, type):
        return hasattr(made, "fit")
    if not callable(made):
        return False
    try:
        inspect.signature(made).bind()
    except (TypeError, ValueError):
        return False
    return True


@final
class OwnEstimator(EstimatorSettings):
    """An estimator of your own, made by a function or a class in a module of the current folder or of an installed package."""

    name: ClassVar[str] = "estimator"

    factory: str = Field(description="module.path:function that returns the estimator, or its class")

    @classmethod
    def usage(cls) -> str:
        return "MODULE:ESTIMATOR"

    @classmethod
    def usual_fit(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"epochs": LOOKS if cls(**options).has_epochs else REPEATS}

    @classmethod
    def options_in(cls, name: str) -> dict[str, Any] | None:
        if name == cls.usage():
            return {"factory": name}
        module, _, factory = name.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), factory)):
            return None
        try:
            made = getattr(own_module(name), factory, None)
        except UserError:
            return None  # said when it is taken for a net
        return {"factory": name} if _makes_estimators(made) else None

    @property
    def title(self) -> str:
        return self.factory

    @property
    def content(self) -> str:
        file = own_module(self.factory).__file__
        return "" if file is None else files_hash([Path(file)])

    @property
    def kind(self) -> Library:
        packages = ("sklearn", self.factory.partition(":")[0].partition(".")[0])
        return library_of(self._fresh(), packages)

    @property
    def per_epoch(self) -> int:
        return -(-self.kind.stages_set(self._fresh()) // LOOKS)

    def build(self, example: Tensor, n_classes: int) -> EstimatorModel:
        self._fresh()  # raises if there is something wrong with it
        return super().build(example, n_classes)

    def make(self, *, stages: int, seed: int) -> Any:
        return with_stages(self._fresh(), self.kind, stages=stages, seed=seed)

    def _fresh(self) -> Any:
        factory = getattr(own_module(self.factory), self.factory.partition(":")[2])
        try:
            made = self.made(factory, {})
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"The factory {self.factory} must make an estimator, but it raised {cause(error)}; correct the factory."
            ) from None
        fix = "a factory of nets must be callable as (example, n_classes)"
        require_estimator(made, f"{self.factory} must give", fix=fix)
        return made


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
        copied = _copy(checked_estimator(estimator))
        kind = InMemory(copied)
        most = kind.stages_set(copied) if kind.stages_option else REPEATS
        return cls(estimator=copied, table=table, names=names, epochs=min(epochs, most))

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
        places = x[:, 0]
        if hasattr(self.table, "iloc"):  # a frame of pandas
            return self.table.iloc[places]
        return [self.table[place] for place in places] if isinstance(self.table, list) else self.table[places]

    def labels(self, seen: Ints, codes: Ints) -> Labels:
        return self.names[seen][codes] if self.kind.takes_labels else codes

    def make(self, *, stages: int, seed: int) -> Any:
        return with_stages(_copy(self.estimator), self.kind, stages=stages, seed=seed)


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
