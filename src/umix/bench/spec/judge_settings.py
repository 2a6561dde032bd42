"""When a group counts as judged: settings of every run, beside its task, net, fits and method."""

from typing import ClassVar, final

from pydantic import Field

from umix.core.judging import MIN_GROUP, PRIOR, Judging
from umix.core.judging import UseGroups as UseGroups
from umix.settings import Settings


@final
class JudgeSettings(Settings):
    """Which groups are judged, and how far validation rates are pulled towards those of the class (``core/judging.py``)."""

    part: ClassVar[str] = "judge"

    min_group: int = Field(
        default=MIN_GROUP, ge=1, description="examples that a group must have in a split to be judged there"
    )
    use_groups: UseGroups = Field(
        default="train",
        description="how far known groups may be used: test, only reported; val, also to choose an epoch; train, also to train",
    )
    prior: float = Field(
        default=PRIOR, ge=0, description="examples of the class's rate that are added to a group's in a selection"
    )

    @property
    def judging(self) -> Judging:
        return Judging(min_group=self.min_group, prior=self.prior, choose=self.use_groups != "test")
