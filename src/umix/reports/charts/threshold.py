"""Rates of two classes as the decision threshold moves, from histograms of the score of the second class."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from umix.errors import UserError

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
        return f"Chosen on validation: {self.texts[self.start]}. Argmax would be {DEFAULT}."

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


def threshold_view(
    rows: Sequence[Mapping[str, Any]],
    classes: Sequence[str],
    *,
    overall: Sequence[Mapping[str, Any]] | None = None,
    chosen: float = DEFAULT,
) -> ThresholdView:
    """The view of histograms ``rows``, one for each group and true class, of the score p(second class).

    A row is ``{"group": name, "size": examples of the group, "label": true class, "edges": [...], "counts": [...]}``.
    Bin k holds scores from ``edges[k]`` up to ``edges[k + 1]``. ``overall`` has the rows of all examples; without it the groups are
    added up, which is right only where they do not overlap. ``chosen``, one of the edges, is the run's own threshold.
    """
    if len(classes) != 2:
        raise UserError(f"A threshold needs two classes, got {len(classes)}.")
    if not [*rows, *(overall or ())]:
        raise UserError("A threshold needs the histogram of at least one group, got none.")
    edges = tuple(float(edge) for edge in [*rows, *(overall or ())][0]["edges"])
    if chosen not in edges:
        raise UserError(f"The edges of the histograms must contain the threshold {chosen}, got {list(edges)}.")
    for row in [*rows, *(overall or ())]:
        _check(row, edges, classes)
    names = list(dict.fromkeys(str(row["group"]) for row in rows))
    found = [_group(name, [row for row in rows if row["group"] == name], edges, classes) for name in names]
    everything = _group(OVERALL, rows if overall is None else overall, edges, classes)
    return ThresholdView((classes[0], classes[1]), edges, (everything, *found), chosen)


def _group(
    name: str, rows: Sequence[Mapping[str, Any]], edges: Sequence[float], classes: Sequence[str]
) -> ThresholdGroup:
    counts = {label: np.zeros(len(edges) - 1, dtype=np.int64) for label in classes}
    for row in rows:
        counts[row["label"]] += np.asarray(row["counts"], dtype=np.int64)
    negatives, positives = (tuple(counts[label].tolist()) for label in classes)
    return ThresholdGroup(name, sum(negatives) + sum(positives), negatives, positives)


def _check(row: Mapping[str, Any], edges: Sequence[float], classes: Sequence[str]) -> None:
    if row["label"] not in classes:
        raise UserError(f"The label of a histogram must be one of {', '.join(classes)}, got {row['label']!r}.")
    if tuple(float(edge) for edge in row["edges"]) != tuple(edges) or len(row["counts"]) != len(edges) - 1:
        raise UserError(
            f"The histogram of {row['group']!r} must have the edges of the others and a count for each bin."
        )


def _text(edge: float) -> str:
    if round(edge, 2) == edge:
        return f"{edge:.2f}"
    return f"{edge:.{max(3, 2 - math.floor(math.log10(min(edge, 1 - edge))))}f}"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
