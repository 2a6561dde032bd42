"""What the boosted trees of all libraries have in common: an epoch is a block of trees."""

import abc
from typing import Annotated, ClassVar

from pydantic import Field

from umix.nets.estimators.estimator import EstimatorSettings
from umix.settings import among, between


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


class GrownByLeaves(Boosted, abc.ABC):
    """Boosted trees whose most useful leaf is split next, until there are enough leaves."""

    leaves: Annotated[int, among(7, 15, 31, 63)] = Field(31, ge=2, description="most leaves of a tree")
    depth: Annotated[int | None, among(3, 5, 8)] = Field(None, ge=1, description="most splits above a leaf; none: any")
    min_leaf: int = Field(20, ge=1, description="fewest training rows in a leaf")
    l2: float = Field(0.0, ge=0, description="penalty of the squared values of the leaves")
