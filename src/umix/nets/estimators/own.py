"""An estimator of your own: ``module.path:factory``, where ``factory()`` returns an object with ``fit`` and ``predict_proba``.

A class does as well: ``sklearn.ensemble:RandomForestClassifier``. Estimators of scikit-learn's boosting, LightGBM, XGBoost and
CatBoost are known by their class and looked at stage by stage; all others have one stage.
"""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
from pydantic import Field
from torch import Tensor

from umix.errors import UserError, cause
from umix.nets.estimators.catboost import TREES, CatBoostLibrary
from umix.nets.estimators.estimator import EstimatorSettings
from umix.nets.estimators.library import Floats, Library, last_step, log_shares
from umix.nets.estimators.lightgbm import LightGBMLibrary
from umix.nets.estimators.trees import HistBoosting
from umix.nets.estimators.trusted import dump_model, load_model
from umix.nets.estimators.xgboost import XGBoostLibrary
from umix.nets.net import Net
from umix.nets.own import own_module
from umix.nets.weight_files import files_hash

LOOKS = 20  # epochs of an estimator that says itself how many stages it has
REPEATS = 5  # divisions into folds of one that has no stages


@final
class AnyLibrary(Library):
    """An estimator of which nothing is known but ``fit`` and ``predict_proba``.

    Types of ``packages`` may be loaded from its file.
    """

    def __init__(self, packages: Sequence[str] = ("sklearn",)) -> None:
        self._packages = tuple(packages)

    def scores(self, model: Any, x: Any, ends: Sequence[int], categories: Sequence[int]) -> Floats:
        return log_shares(np.asarray(model.predict_proba(x), dtype=np.float64))[None].repeat(len(ends), axis=0)

    def dumps(self, model: Any) -> bytes:
        content = dump_model(model)
        self.loads(content, None)  # what cannot be read again is refused while the run can still say so
        return content

    def loads(self, content: bytes, fresh: Any) -> Any:
        return load_model(content, trusted=lambda name: name.partition(".")[0] in self._packages)


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
        return CatBoostLibrary(next((name for name in TREES if name in estimator.get_params()), TREES[0]))
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


def with_stages(estimator: Any, kind: Library, stages: int | None, seed: int) -> Any:
    """``estimator`` with so many stages, where it has any, and with a random state if it has none of its own."""
    known = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    given: dict[str, Any] = {}
    if kind.stages_option and stages is not None:
        given[kind.stages_option] = stages
    for name in ("random_state", "random_seed"):
        if name in known and known[name] is None:
            given[name] = seed
    if kind.goes_on:
        given["warm_start"] = True
    return estimator.set_params(**given) if given else estimator


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

    def build(self, example: Tensor, n_classes: int) -> Net:
        self._fresh()  # raises if there is something wrong with it
        return super().build(example, n_classes)

    def make(self, *, stages: int, seed: int) -> Any:
        return with_stages(self._fresh(), self.kind, stages, seed)

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
