"""The objective of a net that predicts the attribute from a few labelled rows and its own sure predictions (Nam et al. 2022).

It is the mean cross-entropy of the labelled rows plus the mean over the others of mask·CE(value, pseudo-label): the pseudo-label is
the net's likeliest value, and the mask is 1 from the threshold of its group on (``group_thresholds``).
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.core.pseudo_groups import group_thresholds, masked_log_softmax
from umix.data.batch import Batch
from umix.nets.net import Net
from umix.training.objective import Objective, State


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class AttributeRisk(Objective):
    """Cross-entropy of labelled rows, plus that of other rows with the pseudo-labels that are sure enough.

    ``target`` [n] is the value of each training row, -1 where it is not known. ``labelled`` [classes, values] counts the labelled
    rows; values that it does not count are not predicted. ``steps`` are those of an epoch. The state has what the net last said of
    each row, ``p`` [n, values], -1 before its first visit, and the thresholds [classes, values] of the current epoch.
    """

    y: Tensor
    target: Tensor
    labelled: Tensor
    threshold: float
    steps: int

    def init(self, n_groups: int) -> State:
        return {
            "p": torch.full((len(self.y), self.labelled.shape[1]), -1.0),
            "thresholds": torch.full(self.labelled.shape, torch.inf),
        }

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        if batch.step and batch.step % self.steps == 0:
            state = {**state, "thresholds": self._thresholds(state["p"])}
        log_p = masked_log_softmax(net(batch.x), self.labelled[batch.y] > 0)
        p = log_p.detach().exp()
        sure, guess = p.max(dim=1)
        target = self.target.index_select(0, batch.index)
        known = target >= 0
        taken = ~known & (sure >= state["thresholds"][batch.y, guess])
        losses = -log_p.gather(1, torch.where(known, target, guess)[:, None]).squeeze(1)
        supervised = (losses * known).sum() / known.sum().clamp_min(1)
        by_itself = (losses * taken).sum() / (~known).sum().clamp_min(1)
        return supervised + by_itself, {**state, "p": state["p"].index_copy(0, batch.index, p.to(state["p"]))}

    def _thresholds(self, p: Tensor) -> Tensor:
        """The thresholds by what the net said of the rows without a group that it has visited."""
        seen = (self.target < 0) & (p[:, 0] >= 0)
        return group_thresholds(p[seen], self.y[seen], self.labelled, threshold=self.threshold)
