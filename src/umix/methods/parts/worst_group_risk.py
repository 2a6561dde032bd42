"""The objective of GroupDRO, for groups that are known, estimated or inferred."""

from dataclasses import dataclass
from typing import final

import numpy as np
from torch import Tensor

from umix.core.environments import indicators
from umix.core.losses import cross_entropy
from umix.core.risks import worst_group_risk
from umix.data.batch import Batch
from umix.models.model import Model
from umix.training.objective import Objective, State


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class WorstGroupRisk(Objective):
    """Exponentiated-gradient ascent on group weights q, descent on Σ q_g·L_g.

    ``group`` [n] assigns the training examples to groups, ``p`` [n, groups] with probabilities; without either the task's training
    groups are taken.
    """

    step_size: float
    adjustment: float
    sizes: Tensor  # [groups], examples of each group in the training split
    group: Tensor | None = None
    p: Tensor | None = None

    @property
    def needs_groups(self) -> bool:  # type: ignore[override]
        return self.group is None and self.p is None

    def init(self, n_groups: int) -> State:
        there = (self.sizes > 0).float()
        return {"q": there / there.sum(), "margin": self.adjustment * there / self.sizes.clamp_min(1).sqrt()}  # C/√n_g

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        losses, q = cross_entropy(net(batch.x), batch.y), state["q"]
        margin = state["margin"] if self.adjustment else None
        risk, q = worst_group_risk(losses, self._member(batch, losses), q, step_size=self.step_size, margin=margin)
        return risk, {**state, "q": q}

    def _member(self, batch: Batch, losses: Tensor) -> Tensor:
        """How much each example belongs to each group, [batch, groups]."""
        if self.p is not None:
            return self.p.index_select(0, batch.index)
        group = batch.known_group() if self.group is None else self.group.index_select(0, batch.index)
        return indicators(group, len(self.sizes), like=losses)
