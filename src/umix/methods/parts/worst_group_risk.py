"""The objective of GroupDRO, for groups that are known, estimated or inferred."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.core.losses import cross_entropy
from umix.core.risks import group_present, group_risks
from umix.core.soft_groups import soft_group_risks
from umix.data.batch import Batch
from umix.nets.net import Net
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

    def risk(self, net: Net, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        losses, q = cross_entropy(net(batch.x), batch.y), state["q"]
        if self.p is not None:
            p = self.p.index_select(0, batch.index)
            risks, present = soft_group_risks(losses, p), p.sum(0) > 0
        else:
            group = batch.known_group() if self.group is None else self.group.index_select(0, batch.index)
            risks = group_risks(losses, group, n_groups=len(q))
            present = group_present(group, n_groups=len(q))
        grown = q * torch.exp(self.step_size * (risks.detach() + state["margin"])) * present
        # Groups in the batch share the weight that they have together; absent ones keep their own.
        share = (q * present).sum() / grown.sum().clamp_min(torch.finfo(grown.dtype).tiny)
        q = torch.where(present, share * grown, q)
        return q @ risks, {**state, "q": q}
