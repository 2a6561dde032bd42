"""Group-weighted mixup: mixup in which all groups count the same.

The weighted mixup of UMIX (its eq. 4) with weights from groups instead of uncertainty: an example of group g has the weight
n_g^(−power), scaled to mean 1. With ``groups_from=few`` the groups of training rows are estimated from a few known ones, and the
weight is the expected one: Σ_g p_ig·n_g^(−power) with the expected sizes n_g = Σ_i p_ig. ``power=1`` gives every group the same
total weight, ``power=0`` is mixup without weights, ``sigma=0`` is reweighting by group.

It is not the group mixup of Liu et al. 2023, which is part of ``lc``: that mixes examples of one label with those that a biased net
gets wrong, without known groups and without weights.

Differs from the paper:
- there is no paper of this combination: mixing is that of UMIX, weights are those of reweighting by group (Idrissi et al. 2022).

Differs from the released code:
- there is none.
"""

from typing import Annotated, ClassVar, final

from pydantic import Field
from torch import Tensor

from umix.core.weights import soft_inverse_frequency
from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.soft_groups import SoftGroups, TrainsWithGroups
from umix.settings import among, between
from umix.training.context import Context
from umix.training.mixup_risk import Mixing, MixupRisk, require_mixable
from umix.training.train_result import Notes, TrainResult


@final
class GroupMixup(TrainsWithGroups):
    """Group-weighted mixup: pairs of examples are mixed, and examples of small groups weigh more."""

    name: ClassVar[str] = "group_mixup"
    paper: ClassVar[str] = (
        "the weighted mixup of Han et al., UMIX, NeurIPS 2022, with the group weights of Idrissi et al., CLeaR 2022"
    )
    takes_weights: ClassVar[bool] = True
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    mixing_options: ClassVar[tuple[str, ...]] = ("sigma", "alpha", "mixing", "per_example")

    power: Annotated[float, between(0.5, 1.0)] = Field(
        1.0,
        ge=0,
        le=1,
        description="examples of a group of n weigh n^-power; 1 gives all groups the same weight, 0 all examples",
    )
    sigma: Annotated[float, among(0.5, 1.0)] = Field(
        0.5, ge=0, le=1, description="probability of mixing a batch; 0 weights without mixing"
    )
    alpha: Annotated[float, among(0.2, 0.5, 1.5)] = Field(0.5, gt=0, description="λ ~ Beta(alpha, alpha)")
    mixing: Mixing = Field("input", description="what is mixed: inputs, boxes of images, or pooled features")
    per_example: bool = Field(False, description="one draw of mixing and λ per example instead of per batch")

    def train(self, context: Context) -> TrainResult:
        require_mixable(self.mixing, context)
        groups = self.soft_groups(context)
        weights = self.weights(context, groups)
        return context.fit(self.objective(weights)).after(groups.notes + Notes({"weight": weights}))

    def weights(self, context: Context, groups: SoftGroups) -> Tensor:
        """The weight of each training example, [n], mean 1."""
        weight = context.task.splits["train"].weight
        return soft_inverse_frequency(groups.p, power=self.power, sample_weight=weight).to(context.device)

    def objective(self, weights: Tensor) -> MixupRisk:
        """Mixup with these weights."""
        return MixupRisk(
            weights=weights, sigma=self.sigma, alpha=self.alpha, mixing=self.mixing, per_example=self.per_example
        )
