"""The counts that a selection is made from: hits per epoch and sizes of one split."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from umix.core.evaluation import EVERY_GROUP, Evaluation, EvaluationGroups, units_of

#: The share of the examples of a split, those with the largest losses, whose mean loss is kept.
TAIL = 0.2
_PARTS = 5


@dataclass(frozen=True, eq=False)
class Counts:
    """Hits per epoch and sizes of one split: by group (may overlap), by margin, by class, and over all examples.

    A margin has the examples that share a label and a value of one group column; values of other columns may be blank there.
    ``composition`` and ``margin_composition`` count the classes in each group and margin; ``evaluation`` says which are judged.

    Where there was a first stage, also the accuracy of each fifth in order of its uncertainty (on test only without groups, and
    then under every threshold); on validation also the mean loss of the worst ``TAIL`` of the examples, NaN where it is not finite.
    """

    hits: np.ndarray  # [epochs, groups]
    sizes: np.ndarray  # [groups]
    class_hits: np.ndarray  # [epochs, classes]
    class_sizes: np.ndarray  # [classes]
    quintile_rates: np.ndarray = field(default_factory=lambda: np.zeros((0, 5)))  # [epochs, 5]
    tail_losses: np.ndarray = field(default_factory=lambda: np.zeros(0))  # [epochs]
    composition: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))  # [groups, classes]
    margin_hits: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))  # [epochs, margins]
    margin_sizes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # [margins]
    margin_composition: np.ndarray = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.int64)
    )  # [margins, classes]
    evaluation: Evaluation = EVERY_GROUP
    recall_hits: np.ndarray = field(
        default_factory=lambda: np.zeros((0, 0, 0), dtype=np.int64)
    )  # [epochs, groups, classes]
    biases: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # [thresholds, classes]; the first is argmax
    threshold_hits: np.ndarray = field(
        default_factory=lambda: np.zeros((0, 0, 0), dtype=np.int64)
    )  # [epochs, thresholds, groups + margins + classes]
    threshold_quintiles: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 5)))  # [epochs, thresholds, 5]

    @property
    def epochs(self) -> int:
        return len(self.class_hits)

    @property
    def all_hits(self) -> np.ndarray:
        """Hits over all examples, [epochs]; classes are disjoint, groups need not be."""
        return np.asarray(self.class_hits.sum(axis=1))

    @property
    def n(self) -> int:
        return int(self.class_sizes.sum())

    @property
    def collapsed(self) -> NDArray[np.int64]:
        """The class that every example was predicted as, [epochs]; -1 where there were several, or where only one class exists.

        All of that class is hit and nothing of the others.
        """
        if (self.class_sizes > 0).sum() < 2:
            return np.full(self.epochs, -1)
        hit = self.class_hits > 0
        whole = ((self.class_hits == self.class_sizes) | ~hit).all(axis=1)
        return np.where((hit.sum(axis=1) == 1) & whole, hit.argmax(axis=1), -1)

    @property
    def has_thresholds(self) -> bool:
        """Whether the hits of every candidate threshold are known."""
        return len(self.biases) > 0 and len(self.threshold_hits) == self.epochs

    def at_threshold(self, threshold: int) -> "Counts":
        """The counts of all epochs under one threshold; parts that were counted for argmax only are left out."""
        if threshold == 0:
            return self
        counts, fifths = self._under(self.threshold_hits[:, threshold]), self.threshold_quintiles
        return replace(counts, quintile_rates=fifths[:, threshold]) if len(fifths) else counts

    @property
    def every_threshold(self) -> "Counts":
        """All epochs under the first threshold, then all epochs under the second, and so on, as if each were an epoch.

        Where thresholds were not counted, the epochs themselves.
        """
        if not self.has_thresholds:
            return self
        return self._under(self.threshold_hits.swapaxes(0, 1).reshape(-1, self.threshold_hits.shape[2]))

    def only(self, epochs: Sequence[int]) -> "Counts":
        """The counts of these epochs alone."""
        kept = list(epochs)
        by_epoch = ("hits", "class_hits", "margin_hits", "quintile_rates", "tail_losses", "recall_hits")
        by_threshold = ("threshold_hits", "threshold_quintiles")
        return replace(
            self, **{name: rows[kept] for name in by_epoch + by_threshold if len(rows := getattr(self, name))}
        )

    def _under(self, hits: np.ndarray) -> "Counts":
        none = Counts(hits[:, :0], self.sizes[:0], hits[:, :0], self.class_sizes[:0])
        n_groups, n_margins = len(self.sizes), len(self.margin_sizes)
        return replace(
            self,
            hits=hits[:, :n_groups],
            margin_hits=hits[:, n_groups : n_groups + n_margins],
            class_hits=hits[:, n_groups + n_margins :],
            quintile_rates=none.quintile_rates,
            tail_losses=none.tail_losses,
            recall_hits=none.recall_hits,
            biases=none.biases,
            threshold_hits=none.threshold_hits,
            threshold_quintiles=none.threshold_quintiles,
        )

    def units(self, epoch: int | None = None, *, least: int | None = None) -> EvaluationGroups:
        """Groups, margins and classes at ``epoch``; without one, of all epochs. Large ones have ``judging.min_group`` examples."""
        at = slice(None) if epoch is None else epoch
        within = self.composition.shape[:1] == self.sizes.shape  # whether the classes of groups are known
        return units_of(
            self.hits[at],
            self.sizes,
            self.class_hits[at],
            self.class_sizes,
            margin_hits=self.margin_hits[at] if len(self.margin_sizes) else None,
            margin_sizes=self.margin_sizes,
            composition=self.composition if within else None,
            margin_composition=self.margin_composition if len(self.margin_sizes) else None,
            least=self.evaluation.min_group if least is None else least,
        )

    @property
    def choice_units(self) -> EvaluationGroups:
        """What takes part in a choice on this split, of all epochs."""
        return self.units(least=self.evaluation.fewest)

    @property
    def groups_choose(self) -> bool:
        """Whether the groups of this split choose (``Evaluation.groups_choose``)."""
        return self.evaluation.groups_choose(np.concatenate([self.sizes, self.margin_sizes]))


def summed(parts: Sequence[Counts]) -> Counts:
    """The counts of all parts together, whose groups and epochs are the same; thresholds, fifths and losses are left out."""
    first, added = parts[0], ("hits", "class_hits", "margin_hits", "composition", "margin_composition")
    sizes = ("sizes", "class_sizes", "margin_sizes")
    total = {name: np.sum([getattr(part, name) for part in parts], axis=0) for name in added + sizes}
    return Counts(**total, evaluation=first.evaluation)


def quintiles(u: np.ndarray) -> NDArray[np.float64]:
    """The share of every example in each fifth of the examples in order of uncertainty ``u`` [n], [n, 5]; rows sum to 1.

    Examples that are equally uncertain share the fifths they span equally, so no order of the data set decides.

    >>> quintiles(np.array([0.0, 0.5, 0.0, 0.0, 1.0]))[:, 2:]
    array([[0.33333333, 0.        , 0.        ],
           [0.        , 1.        , 0.        ],
           [0.33333333, 0.        , 0.        ],
           [0.33333333, 0.        , 0.        ],
           [0.        , 0.        , 1.        ]])
    """
    _, level, sizes = np.unique(u, return_inverse=True, return_counts=True)
    ends, part = np.cumsum(sizes)[:, None], len(u) / _PARTS
    edges = part * np.arange(_PARTS)
    held = np.minimum(ends, edges + part) - np.maximum(ends - sizes[:, None], edges)  # [levels, 5], in examples
    shares: NDArray[np.float64] = (held.clip(min=0) / sizes[:, None])[level]
    return shares
