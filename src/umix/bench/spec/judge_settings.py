"""When a group counts as judged, and how classes are predicted: settings of every run, beside its task, net, fits and method."""

from typing import Any, ClassVar, final

from pydantic import Field

from umix.core.judging import MIN_GROUP, PRIOR, Judging
from umix.core.judging import UseGroups as UseGroups
from umix.core.selection import Decide
from umix.settings import Settings

#: Presets of published results, which were decided by argmax.
PUBLISHED_PRESETS = ("paper", "reference")


def usual_decide(preset: str) -> Decide:
    """How runs of ``preset`` decide unless they are told: with chosen biases, but published settings by argmax."""
    return "argmax" if preset in PUBLISHED_PRESETS else "biases"


@final
class JudgeSettings(Settings):
    """Which groups are judged, and how far validation rates are pulled towards those of the class (``core/judging.py``)."""

    part: ClassVar[str] = "judge"

    min_group: int = Field(
        default=MIN_GROUP, ge=1, le=10**9, description="examples that a group must have in a split to be judged there"
    )
    use_groups: UseGroups = Field(
        default="train",
        description="how far known groups may be used: test, only reported; val, also to choose an epoch; train, also to train",
    )
    prior: float = Field(
        default=PRIOR, ge=0, description="examples of the class's rate that are added to a group's in a selection"
    )
    budget: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="how far a contest (best, eta=auto) may lower average validation accuracy below ERM's; none: 0.1 where no "
        "groups decide, else any",
    )
    decide: Decide = Field(
        default="biases",
        description="how a class is predicted: biases, chosen on validation together with the epoch, or argmax",
    )

    def as_json(self, usual: Decide) -> dict[str, Any]:
        """What is not as usual, as part of a run's key; empty where everything is."""
        later: dict[str, Any] = {"decide": self.decide} if self.decide != usual else {}
        later |= {} if self.budget is None else {"budget": self.budget}
        first = {"decide", "budget"}  # options of later versions: without them keys are what they were
        without = self.model_dump(mode="json", exclude=first)
        return (
            {} if without == JudgeSettings().model_dump(mode="json", exclude=first) and not later else without | later
        )

    @property
    def judging(self) -> Judging:
        return Judging(min_group=self.min_group, prior=self.prior, choose=self.use_groups != "test", budget=self.budget)
