"""XGBoost's boosted trees (``pip install 'umix[xgboost]'``)."""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, final

import numpy as np
from pydantic import Field

from umix.nets.estimators.boosted import Boosted
from umix.nets.estimators.library import Floats, Library
from umix.nets.library import library
from umix.settings import among, between


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
