"""When a group counts as judged, and how classes are predicted: settings of every run, beside its task, net, fits and method."""

from typing import Any, ClassVar, final

from pydantic import Field

from umix.core.evaluation import EVERY_GROUP, MIN_GROUP, PRIOR, Evaluation
from umix.core.evaluation import UseGroups as UseGroups
from umix.core.selection import Threshold
from umix.settings import Settings

#: Presets of published results, which count every group by its own rate and predict by argmax.
_PUBLISHED_PRESETS = ("paper", "reference")
_PUBLISHED = {"threshold": "off", "min_group": EVERY_GROUP.min_group, "prior": EVERY_GROUP.prior}


def preset_evaluation(preset: str) -> dict[str, Any]:
    """The settings of ``EvaluationSettings`` that runs of ``preset`` have unless they are told others."""
    return dict(_PUBLISHED) if preset in _PUBLISHED_PRESETS else {}


@final
class EvaluationSettings(Settings):
    """Which groups are judged, and how far validation rates are pulled towards those of the class (``core/evaluation.py``)."""

    part: ClassVar[str] = "evaluation"

    min_group: int = Field(
        default=MIN_GROUP,
        ge=1,
        le=10**9,
        description="examples from which on a group is judged by its rate; a smaller one is judged where its interval lies wholly "
        "below that of the worst larger one",
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
        description="how far a selection (best, eta=auto) may lower average validation accuracy below ERM's; none: any",
    )
    threshold: Threshold = Field(
        default="tuned",
        description="tuned: biases of the classes are chosen on validation together with the epoch; off: the largest logit",
    )
    calibrate: bool = Field(
        default=True,
        description="whether probabilities are calibrated on validation, where it has 100 examples and 10 of every class; no label "
        "changes",
    )

    @property
    def rules(self) -> Evaluation:
        return Evaluation(
            min_group=self.min_group, prior=self.prior, choose=self.use_groups != "test", budget=self.budget
        )
