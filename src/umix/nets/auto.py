"""The better of several learners, chosen on validation: a name in a run's settings, not a net of its own."""

from typing import ClassVar, final

from pydantic import Field, field_validator
from torch import Tensor

from umix.errors import UserError
from umix.nets.net import Net, NetSettings


@final
class AutoNet(NetSettings):
    """The best of several learners: each is trained as a run of its own, and validation chooses one of the runs."""

    name: ClassVar[str] = "auto"
    takes_any_method: ClassVar[bool] = False

    among: tuple[str, ...] = Field(("mlp", "trees"), min_length=1, description="the learners, by name")

    @field_validator("among")
    @classmethod
    def _learners_differ(cls, among: tuple[str, ...]) -> tuple[str, ...]:
        if cls.name in among or len(set(among)) < len(among):
            raise UserError(f"net.among must name different learners, and not auto itself, got {list(among)}.")
        return among

    def build(self, example: Tensor, n_classes: int) -> Net:
        raise TypeError("auto is no net: bench.runs.learners makes a run of each of its learners.")
