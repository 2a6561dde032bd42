"""The test rates of a run at one epoch: what tables, the page and JSON print."""

from typing import final

import numpy as np
from pydantic import Field

from umix.bench.runs.split_counts import known
from umix.core import rates
from umix.core.evaluation import Granularity
from umix.core.selection import Threshold
from umix.core.words import quoted
from umix.store import Stored


@final
class GroupRate(Stored):
    """Test accuracy of a group, margin or class; ``rate`` is None where it is empty.

    ``judged`` says whether it may be the worst one: it is large, or its interval lies wholly below that of the worst large one.
    """

    hits: int
    size: int
    rate: float | None
    judged: bool = True


@final
class Summary(Stored):
    """Test rates in [0, 1] at the epoch and with the threshold that a rule selected on validation; None for a rate not known."""

    select: str
    epoch: int | None = Field(description="counted from 0; None where folds are pooled, each at its own")
    threshold_mode: Threshold = Field(
        "off", description="tuned, if the rule compared some; argmax may be the best of them"
    )
    biases: dict[str, float] | None = Field(
        None,
        description="by class: what is added to its logit before the largest is predicted; None if none were compared",
    )
    threshold: float | None = Field(
        None, description="of two classes: the probability above which the second one is predicted, calibrated or not"
    )
    calibrated: bool = Field(False, description="whether probabilities are calibrated on validation")
    average: float | None = Field(description="over all test examples")
    adjusted: float | None = Field(description="group rates weighted by the groups' training shares")
    group_mean: float | None = Field(description="mean over all groups that have test examples")
    worst: float | None = Field(description="lowest rate of a judged group or margin")
    worst_group: str | None = Field(None, description="which one that is")
    level: Granularity = Field(
        "groups",
        description="what that is: a group, a margin of one group column, or a class that stands in for its groups",
    )
    n_judged: int = Field(0, description="how many groups, margins and stand-ins were judged")
    judged: list[str] = Field(default_factory=list, description="which were judged")
    n_too_small: int = Field(0, description="how many groups have too few test examples to be judged")
    collapsed: str | None = Field(None, description="the class that the net predicts for every validation example")
    margins: dict[str, dict[str, GroupRate]] = Field(
        default_factory=dict, description="by group column: rates of the groups that the column alone makes"
    )
    groups: dict[str, GroupRate]
    classes: dict[str, GroupRate]
    quintiles: list[float] | None = Field(
        None,
        description="without groups: rates of the fifths of test in order of the first stage's uncertainty",
    )

    @property
    def judged_rates(self) -> dict[str, GroupRate]:
        """What is judged, by name: groups, margins, classes that stand in for groups; without groups the classes."""
        if not self.groups:
            return {name: rate for name, rate in self.classes.items() if rate.size}
        return {name: rate for name, rate in self.unit_rates.items() if rate.judged}

    @property
    def unit_rates(self) -> dict[str, GroupRate]:
        """All groups, margins and classes, by the names that ``judged`` and ``worst_group`` use."""
        margins = {f"{name} ({column})": rate for column, named in self.margins.items() for name, rate in named.items()}
        return self.groups | margins | {f"class {quoted(name)}": rate for name, rate in self.classes.items()}


def named_rates(names: list[str], hits: np.ndarray, sizes: np.ndarray, judged: np.ndarray) -> dict[str, GroupRate]:
    """The rate of every name, [names] each."""
    columns = (hits.tolist(), sizes.tolist(), rates.per_group(hits, sizes).tolist(), judged.tolist())
    return {
        name: GroupRate(hits=hit, size=size, rate=known(rate), judged=is_judged)
        for name, hit, size, rate, is_judged in zip(names, *columns, strict=True)
    }
