"""What the boosted trees of all libraries have in common: an epoch is a block of trees."""

import abc
from typing import Annotated, ClassVar

from pydantic import Field

from umix.nets.estimators.estimator import EstimatorSettings
from umix.settings import between


class Boosted(EstimatorSettings, abc.ABC):
    """Boosted trees; every epoch adds some."""

    takes_codes: ClassVar[bool] = True

    trees: int = Field(5, ge=1, description="trees added in an epoch (of each class, where there are more than two)")
    learning_rate: Annotated[float, between(0.03, 0.3, log=True)] = Field(
        0.1, gt=0, description="how much of each tree is added"
    )

    @property
    def per_epoch(self) -> int:
        return self.trees
