"""Mixup: train on convex combinations of pairs of examples (Zhang et al. 2018), and its in-group variant.

λ ~ Beta(alpha, alpha); x̃ = λx_i + (1−λ)x_j, loss λ·ℓ(x̃, y_i) + (1−λ)·ℓ(x̃, y_j) (the UMIX paper's
eq. 3). Vanilla mixup pairs any two examples; in-group mixup, the UMIX paper's other ablation, pairs
examples with the same label from the same group.

Differs from the paper:
- nothing in vanilla mixup; in in-group mixup an example that is alone in its group in a batch is
  not mixed.

Differs from the released code:
- one λ per batch as there; ``mixing`` also offers CutMix, with the true area as λ, and mixing of
  pooled features.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
from pydantic import Field

from umix.core.pairing import Ids, partners_within
from umix.data.batch import Batch
from umix.methods.method import Method
from umix.settings import among, between
from umix.training.context import Context
from umix.training.mixup_risk import Mixing, MixupRisk, require_mixable
from umix.training.train_result import TrainResult


@final
class Mixup(Method):
    """Vanilla mixup: any two examples of a batch are mixed, every example counts the same."""

    name: ClassVar[str] = "mixup"
    paper: ClassVar[str] = "Zhang et al., mixup: Beyond empirical risk minimization, ICLR 2018"
    takes_weights: ClassVar[bool] = True

    alpha: Annotated[float, between(0.1, 4.0, log=True)] = Field(0.2, gt=0, description="λ ~ Beta(alpha, alpha)")
    mixing: Annotated[Mixing, among("input", "features")] = Field(
        "input", description="what is mixed: inputs, boxes of images, or pooled features"
    )

    def train(self, context: Context) -> TrainResult:
        require_mixable(self.mixing, context)
        return context.fit(MixupRisk(sigma=1.0, alpha=self.alpha, mixing=self.mixing))


@final
@dataclass(frozen=True, eq=False)
class PairingWithin:
    """Partners with the same ``key``; ``key`` [n] has a value for every training example."""

    key: Ids

    def __call__(self, batch: Batch, rng: np.random.Generator) -> Ids:
        return partners_within(self.key[batch.host_rows()], rng=rng)


@final
class InGroupMixup(Method):
    """In-group mixup: examples are mixed with others of the same label and group."""

    name: ClassVar[str] = "ingroup_mixup"
    paper: ClassVar[str] = "Zhang et al., mixup, ICLR 2018; in groups as in Yao et al., LISA, ICML 2022"
    needs_groups: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    alpha: Annotated[float, between(0.1, 4.0, log=True)] = Field(0.2, gt=0, description="λ ~ Beta(alpha, alpha)")
    mixing: Annotated[Mixing, among("input", "features")] = Field(
        "input", description="what is mixed: inputs, boxes of images, or pooled features"
    )

    def train(self, context: Context) -> TrainResult:
        require_mixable(self.mixing, context)
        train = context.task.splits["train"]
        pairing = PairingWithin((train.group * context.task.n_classes + train.y).numpy())
        return context.fit(MixupRisk(sigma=1.0, alpha=self.alpha, mixing=self.mixing, pairing=pairing))
