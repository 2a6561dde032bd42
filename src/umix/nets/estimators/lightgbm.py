"""LightGBM's boosted trees (``pip install 'umix[lightgbm]'``)."""

from collections.abc import Sequence
from typing import Any, ClassVar, final

from umix.nets.estimators.boosted import GrownByLeaves
from umix.nets.estimators.library import Floats, Labels, Library, summed
from umix.nets.library import library


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
        parts = [_raw(booster, x, begin, end) for begin, end in zip(begins, ends, strict=False)]
        return summed(parts, _raw(booster, x, 0, ends[-1]))

    def dumps(self, model: Any) -> bytes:
        text: str = _booster(model).model_to_string(num_iteration=-1)
        return text.encode()

    def loads(self, content: bytes, fresh: Any) -> Any:
        return library("lightgbm", extra="lightgbm", net="lightgbm").Booster(model_str=content.decode())


def _booster(model: Any) -> Any:
    """The trees of a classifier; a stored model is nothing but them."""
    return getattr(model, "booster_", model)


def _raw(booster: Any, x: Any, begin: int, end: int) -> Floats:
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
