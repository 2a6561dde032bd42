"""What methods share that minimise the worst group's risk with groups predicted from a few known ones."""

import abc
from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from umix.methods.method import Method
from umix.methods.parts.attribute_nets import ATTRIBUTE, predicted_groups
from umix.methods.parts.soft_groups import SoftGroups, all_known, known_groups
from umix.settings import among, between
from umix.training.trainer import Trainer


class TrainsWithFewGroups(Method, abc.ABC):
    """A method that needs the groups of a few rows of validation or training, and predicts those of the others."""

    needs_some_groups: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = (ATTRIBUTE,)

    step_size: Annotated[float, between(0.001, 0.1, log=True)] = Field(
        0.01, ge=0, description="how fast the group weights follow the risks, as in GroupDRO"
    )
    adjustment: Annotated[float, among(0.0, 1.0, 2.0, 4.0)] = Field(
        0.0, ge=0, description="C: groups of n examples count C/sqrt(n) worse than they are"
    )
    attribute_epochs: Annotated[int, among(5, 10, 20)] = Field(
        5, ge=1, description="epochs of the nets that predict groups; attribute.epochs overrides it"
    )
    threshold: Annotated[float, among(0.8, 0.95)] = Field(
        0.95,
        gt=0,
        description="how sure these nets must be of a row of the rarest group to learn from it; above 1: never",
    )

    def known(self, trainer: Trainer) -> SoftGroups | None:
        """The groups of the training rows if all of them are known and may be used, which the run then says."""
        if not all_known(trainer):
            return None
        trainer.decisions["spread"] = {"words": "the groups of all training rows are known: nothing is predicted"}
        return known_groups(trainer)

    def by_nets(self, trainer: Trainer) -> Tensor:
        """P(group | x, y) of every training row by three nets, float64 [n, groups]."""
        return predicted_groups(trainer, user=self.name, epochs=self.attribute_epochs, threshold=self.threshold)
