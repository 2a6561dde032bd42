"""Rates of two classes as the threshold moves, from histograms of the score of the second class on test."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from umix.bench.runs.record import RunRecord
from umix.reports.predictions import Predictions, attribute_groups

#: The threshold of a net that predicts the more likely of two classes.
DEFAULT = 0.5
OVERALL = "all test examples"


@final
@dataclass(frozen=True)
class ThresholdGroup:
    """One group: how many examples of the first and of the second class have their score in each bin."""

    name: str
    size: int
    negatives: tuple[int, ...]
    positives: tuple[int, ...]


@final
@dataclass(frozen=True)
class ThresholdRates:
    """Rates of one group at one threshold; None where the group has no examples to divide by."""

    accuracy: float | None
    true_positive: float | None
    false_positive: float | None


@final
@dataclass(frozen=True)
class ThresholdView:
    """What the slider needs: the groups, first of them all examples, and the ``edges`` that the threshold can take."""

    classes: tuple[str, str]
    edges: tuple[float, ...]
    groups: tuple[ThresholdGroup, ...]
    chosen: float = DEFAULT

    @property
    def start(self) -> int:
        """The place of the edge that is the threshold that the run has ``chosen``."""
        return self.edges.index(self.chosen)

    @property
    def texts(self) -> tuple[str, ...]:
        """Every edge for people: with two digits behind the point, the chosen one with as many as tell it from 0, 1 and others."""
        return tuple(_text(edge) for edge in self.edges)

    @property
    def told(self) -> str:
        """Where the slider starts, in a sentence."""
        if self.chosen == DEFAULT:
            return f"The default is {DEFAULT}."
        return f"The threshold of this run is {self.texts[self.start]}."

    @property
    def data(self) -> dict[str, Any]:
        """The histograms as JSON for the page's script."""
        return {"edges": self.texts, "groups": [[group.negatives, group.positives] for group in self.groups]}

    def rates(self, group: ThresholdGroup, place: int | None = None) -> ThresholdRates:
        """The rates of ``group`` if scores from edge ``place`` on predict the second class; by default those of ``start``."""
        at = self.start if place is None else place
        true_positives, false_positives = sum(group.positives[at:]), sum(group.negatives[at:])
        n_positive, n_negative = sum(group.positives), sum(group.negatives)
        right = true_positives + n_negative - false_positives
        return ThresholdRates(
            accuracy=_share(right, n_positive + n_negative),
            true_positive=_share(true_positives, n_positive),
            false_positive=_share(false_positives, n_negative),
        )


def threshold_view(record: RunRecord, predictions: Predictions, *, chosen: float) -> ThresholdView | None:
    """The view of the test predictions of a run with two classes; None where it has others or kept no probabilities.

    The edges are the hundredths and ``chosen``, the run's threshold: scores lie above or below it as they were predicted. Groups
    are the values of the group columns without the label: a threshold moves both kinds of errors within one of them. Groups with
    fewer test examples than the run's ``min_group`` are left out.
    """
    test = predictions.of("test")
    if len(record.classes) != 2 or test.probability is None or not test.n:
        return None
    edges = sorted({*(place / 100 for place in range(101)), chosen})
    start = edges.index(chosen)
    place = np.searchsorted(edges, test.probability[:, 1].astype(np.float64), side="right") - 1
    place = np.where(test.prediction == 1, place.clip(start, len(edges) - 2), place.clip(0, start - 1))

    def group(name: str, inside: np.ndarray) -> ThresholdGroup:
        negatives, positives = (
            np.bincount(place[inside & (test.label == label)], minlength=len(edges) - 1).tolist() for label in (0, 1)
        )
        return ThresholdGroup(name, int(inside.sum()), tuple(negatives), tuple(positives))

    groups = [
        group(name, inside)
        for name, inside in attribute_groups(record, test).items()
        if inside.sum() >= record.min_group
    ]
    everything = group(OVERALL, np.ones(test.n, dtype=bool))
    return ThresholdView((record.classes[0], record.classes[1]), tuple(edges), (everything, *groups), chosen)


def _text(edge: float) -> str:
    if round(edge, 2) == edge:
        return f"{edge:.2f}"
    return f"{edge:.{max(3, 2 - math.floor(math.log10(min(edge, 1 - edge))))}f}"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
