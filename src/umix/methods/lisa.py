"""LISA: selective mixup across attributes or across labels (Yao et al. 2022).

With probability ``same_label`` (the paper's p_sel), mixing is intra-label: partners have the same
label and different attributes, so the attribute is averaged out. Otherwise it is intra-domain:
partners have the same attribute and different labels, so the attribute does not predict the label.
λ ~ Beta(alpha, alpha), alpha = 2; soft-label cross entropy (Section 3, Algorithm 1).

Differs from the paper:
- one draw of the strategy and of λ per batch, as in the released code.

Differs from the released code:
- partners are drawn from the batch, uniformly among all suitable examples; an example without a
  suitable partner is not mixed;
- batches are balanced over groups by taking groups in turn (``balance``) instead of by a weighted
  sampler.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, final

import numpy as np
from pydantic import Field

from umix.core.pairing import Ids, partners_across
from umix.data.batch import Batch
from umix.data.samplers import Balanced, Sampler, Shuffled
from umix.data.task import Task
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.parts.mixers import Mixing, require_mixable
from umix.methods.parts.weighted_mixup import WeightedMixup
from umix.nets.net import Net
from umix.settings import among, between
from umix.training.trainer import Trainer


@final
@dataclass(frozen=True, eq=False)
class SelectivePairing:
    """Partners with the same label and another attribute with probability ``same_label``, else the other way round.

    ``y`` and ``attribute`` [n] are those of the training split.
    """

    same_label: float
    y: Ids
    attribute: Ids

    def __call__(self, batch: Batch, rng: np.random.Generator) -> Ids:
        rows, (classes, attributes) = batch.host_rows(), self.shape
        y, a = self.y[rows], self.attribute[rows]
        if rng.random() < self.same_label:
            return partners_across(y, a, rng=rng, shape=(classes, attributes))
        return partners_across(a, y, rng=rng, shape=(attributes, classes))

    @cached_property
    def shape(self) -> tuple[int, int]:
        """The numbers of labels and of attributes."""
        return int(self.y.max()) + 1, int(self.attribute.max()) + 1

    @classmethod
    def of(cls, task: Task, *, same_label: float) -> "SelectivePairing":
        """The pairing for ``task``, whose training groups must be label×attribute cells."""
        train = task.splits["train"]
        if train.attribute is None:
            raise UserError(
                f"LISA must know each example's attribute, but the training groups of {task.name} are not label×attribute "
                "cells; build them with Groups.cells."
            )
        return cls(same_label, train.y.numpy(), train.attribute.numpy())


@final
class LISA(Method):
    """Selective mixup: pairs that share the label but not the attribute, or the attribute but not the label."""

    name: ClassVar[str] = "lisa"
    paper: ClassVar[str] = "Yao et al., Improving out-of-distribution robustness via selective augmentation, ICML 2022"
    needs_groups: ClassVar[bool] = True

    same_label: Annotated[float, between(0.0, 1.0)] = Field(
        0.5, ge=0, le=1, description="probability of mixing within a label (the paper's p_sel)"
    )
    alpha: Annotated[float, among(0.5, 1.0, 2.0, 4.0)] = Field(2.0, gt=0, description="λ ~ Beta(alpha, alpha)")
    mixing: Annotated[Mixing, among("input", "features")] = Field(
        "input", description="what is mixed: inputs, boxes of images, or pooled features"
    )
    balance: bool = Field(True, description="batches hold all groups in equal parts")

    def train(self, trainer: Trainer) -> Net:
        require_mixable(self.mixing, trainer)
        train = trainer.splits["train"]
        objective = WeightedMixup(
            sigma=1.0,
            alpha=self.alpha,
            mixing=self.mixing,
            pairing=SelectivePairing.of(trainer.task, same_label=self.same_label),
        )
        sampler: Sampler = Balanced(train.group) if self.balance else Shuffled()
        return trainer.fit(objective, sampler=sampler)
