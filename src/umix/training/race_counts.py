"""The observer of a race: validation hits of every candidate after every epoch, under every decision."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.core.counts import class_composition
from umix.core.decisions import decision_hits
from umix.core.epoch_counts import Counts
from umix.core.judging import Judging
from umix.data.task import Split
from umix.nets.net import Net
from umix.training.evaluate import fleet_logits


@final
@dataclass(frozen=True, eq=False)
class RaceResult:
    """The validation counts of one candidate, and of the examples of which an earlier stage was uncertain.

    ``uncertain_hits`` is [epochs, decisions].
    """

    counts: Counts
    uncertain_hits: np.ndarray
    n_uncertain: int


@final
class RaceCounts:
    """Counts hits on the validation split by group and class, of one net or of each member of a fleet.

    ``uncertain`` is bool [n_val]: of which examples an earlier stage was uncertain. They are counted apart. Test examples are not
    used.
    """

    def __init__(
        self,
        val: Split,
        biases: Tensor,
        *,
        batch_size: int,
        judging: Judging,
        uncertain: Tensor | None = None,
        members: int = 1,
    ) -> None:
        self._val = val
        self._biases = biases
        self._uncertain = torch.zeros_like(val.y, dtype=torch.bool) if uncertain is None else uncertain.to(val.y.device)
        rows, units = val.groups.unit_pairs
        self._n_units = len(val.groups.names) + len(val.groups.margins)
        apart = self._uncertain.nonzero(as_tuple=True)[0]  # one more unit, behind the groups and margins
        self._pairs = (torch.cat([rows, apart]), torch.cat([units, torch.full_like(apart, self._n_units)]))
        self._batch_size = batch_size
        self._judging = judging
        self._members = members
        self._hits: list[Tensor] = []  # of every epoch: [members, decisions, groups + classes]

    def observe(self, net: Net, epoch: int) -> None:
        self.count(fleet_logits(net, self._val, batch_size=self._batch_size))

    def count(self, logits: Tensor) -> None:
        """Count the hits of another epoch, whose ``logits`` are [members, n_val, classes]."""
        hits = decision_hits(logits, self._val.y, self._pairs, self._biases, n_groups=self._n_units + 1)
        self._hits.append(hits.int().cpu())

    def result(self, member: int, *, epochs: int) -> "RaceResult":
        """What was counted of one candidate in its first ``epochs``."""
        groups, n_classes = self._val.groups, self._biases.shape[1]
        n_groups, n_units = len(groups.names), self._n_units
        hits = torch.stack([hits[member] for hits in self._hits[:epochs]]).long().numpy()
        decided = np.delete(hits, n_units, axis=2)
        composition = class_composition(self._val.y, groups.unit_pairs, n_groups=n_units, n_classes=n_classes)
        of_units = composition.cpu().numpy()
        counts = Counts(
            hits=decided[:, 0, :n_groups],
            sizes=groups.sizes.cpu().numpy(),
            class_hits=decided[:, 0, n_units:],
            class_sizes=torch.bincount(self._val.y, minlength=n_classes).cpu().numpy(),
            composition=of_units[:n_groups],
            margin_hits=decided[:, 0, n_groups:n_units],
            margin_sizes=of_units[n_groups:].sum(axis=1),
            margin_composition=of_units[n_groups:],
            judging=self._judging,
            biases=self._biases.cpu().numpy(),
            decided_hits=decided,
        )
        return RaceResult(counts, hits[:, :, n_units], int(self._uncertain.sum()))

    def restore(self, epochs: int, kept: Mapping[str, Tensor]) -> None:
        self._hits = list(kept["race/hits"])

    def write(self) -> None: ...

    def tensors(self) -> dict[str, Tensor]:
        return {"race/hits": torch.stack(self._hits)}
