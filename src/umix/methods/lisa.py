"""LISA: selective mixup across attributes or across labels (Yao et al. 2022).

With probability ``same_label`` (the paper's p_sel), mixing is intra-label: partners have the same
label and different attributes, so the attribute is averaged out. Otherwise it is intra-domain:
partners have the same attribute and different labels, so the attribute does not predict the label.
λ ~ Beta(alpha, alpha), alpha = 2; soft-label cross entropy (Section 3, Algorithm 1).

Differs from the paper:
- the strategy is drawn once per batch, as in the released code, and so is λ unless ``per_example``.

Differs from the released code:
- λ is drawn once per batch; in the released code once per example, which is ``per_example``, and
  with CutMix once per pair of groups;
- partners are drawn from the batch, uniformly among all suitable examples; an example without a
  suitable partner is not mixed. In the released code every group has a loader of its own, and the
  k-th examples of two loaders are mixed. ``partners=group`` is close to it: half of a batch are
  partners, drawn from all training examples of a suitable group; each pair is mixed in both orders;
- an epoch has as many visits as there are training examples; in the released code it ends with the
  shortest loader. Both hold all groups in equal parts (``balance``).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from umix.core.pairing import Ids, partners_across, partners_across_halves, partners_from_groups
from umix.data.batch import Batch
from umix.data.samplers import Balanced, Sampler, Shuffled
from umix.data.task import Split, Task
from umix.errors import UserError
from umix.methods.method import Method
from umix.settings import among, between
from umix.training.context import Context
from umix.training.mixup_risk import Mixing, MixupRisk, require_mixable
from umix.training.train_result import TrainResult


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
@dataclass(frozen=True, eq=False, kw_only=True)
class GroupPairs(Sampler):
    """Batches whose second half are the partners of the first half, drawn from all examples of a group that fits.

    ``firsts`` says which examples are visited, ``pairing`` what fits: one draw per batch of ``batch_size``. In a batch of odd size
    the last example has no partner. An epoch has as many visits, partners included, as there are examples.
    """

    firsts: Sampler
    pairing: SelectivePairing
    batch_size: int

    def size(self, split: Split) -> int:
        return len(split)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        n, y, a = len(split), self.pairing.y, self.pairing.attribute
        sizes = np.minimum(self.batch_size, n - np.arange(0, n, self.batch_size))
        halves = sizes // 2
        firsts = self.firsts.draw(split, rng).numpy()[: n - halves.sum()]
        same_label = np.repeat(rng.random(len(sizes)) < self.pairing.same_label, sizes - halves)
        seconds = np.where(
            same_label, partners_from_groups(firsts, y, a, rng=rng), partners_from_groups(firsts, a, y, rng=rng)
        )
        rows, begin = np.empty(n, dtype=np.int64), 0
        for visited, half in zip(np.split(np.arange(n), sizes.cumsum()[:-1]), halves, strict=True):
            mine = slice(begin, begin + len(visited) - half)
            rows[visited] = np.concatenate([firsts[mine][:half], seconds[mine][:half], firsts[mine][half:]])
            begin = mine.stop
        return torch.from_numpy(rows)


def pair_halves(batch: Batch, rng: np.random.Generator) -> Ids:
    """The partners in a batch of ``GroupPairs``."""
    return partners_across_halves(len(batch.y))


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
    per_example: bool = Field(False, description="one λ per example instead of per batch")
    partners: Literal["batch", "group"] = Field(
        "batch", description="where partners come from: the batch, or all training examples of a group that fits"
    )

    def train(self, context: Context) -> TrainResult:
        require_mixable(self.mixing, context)
        train, pairing = context.splits["train"], SelectivePairing.of(context.task, same_label=self.same_label)
        objective = MixupRisk(
            sigma=1.0,
            alpha=self.alpha,
            mixing=self.mixing,
            per_example=self.per_example,
            pairing=pairing if self.partners == "batch" else pair_halves,
        )
        sampler: Sampler = Balanced(train.group) if self.balance else Shuffled()
        if self.partners == "group":
            sampler = GroupPairs(firsts=sampler, pairing=pairing, batch_size=context.final_settings.batch_size)
        return context.fit(objective, sampler=sampler)
