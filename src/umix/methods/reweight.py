"""Reweighting and resampling by class or group (Idrissi et al. 2022).

Every class (the paper's RWY) or group (RWG) counts the same: an example of a class or group of n
examples gets a weight in proportion to 1/n (``inverse``) or to the inverse effective number
(1−beta)/(1−beta^n) of Cui et al. 2019 (``effective``). ``reweight`` multiplies the loss of the
example by its weight, scaled to mean 1. ``resample`` draws examples with probabilities in
proportion to the weights, with replacement, with as many draws per epoch as there are examples.

``power`` lies between these weights and ERM: the weights are raised to it before they are scaled, so they are in proportion to
n^−power where ``scheme=inverse``. 0.5 is the square root that SubpopBench calls SqrtReWeight, 0 is ERM.

With ``groups_from=few`` the groups of training rows are estimated from a few known ones, and the weight of an example is the
expected one: Σ_g p_ig/n_g^power with the expected sizes n_g = Σ_i p_ig.

Differs from the paper:
- RWY and RWG are ``resample`` here; ``reweight`` weighs losses instead, which is the same in
  expectation;
- the effective number is an addition; its weights have mean 1 over examples, while those of Cui et
  al. have it over classes; subsampling (SUBY, SUBG) are ``suby`` and ``subg``;
- ``power`` is an addition; the paper's weights have the power 1.

Differs from the released code:
- nothing in the weights and draws of ``resample``.
"""

import abc
from typing import Annotated, ClassVar, Literal, final

from pydantic import Field, model_validator
from torch import Tensor

from umix.core.weights import effective_number, inverse_frequency, soft_effective_number, soft_inverse_frequency
from umix.data.samplers import Weighted
from umix.data.task import Split
from umix.errors import UserError
from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.soft_groups import SoftGroups, TrainsWithGroups
from umix.settings import among
from umix.training.batch_risk import BatchRisk
from umix.training.context import Context
from umix.training.objective import MeanRisk
from umix.training.train_result import Notes, TrainResult

By = Literal["class", "group"]
Scheme = Literal["inverse", "effective"]


def balancing_weights(train: Split, *, by: By, scheme: Scheme, beta: float, power: float = 1.0) -> Tensor:
    """A weight for each training example, [n], mean 1: larger in small classes or groups."""
    ids = train.y if by == "class" else train.group
    if scheme == "inverse":
        return inverse_frequency(ids, power=power, sample_weight=train.weight)
    return effective_number(ids, beta=beta, power=power, sample_weight=train.weight)


class Balancing(TrainsWithGroups, abc.ABC):
    """A method that gives each training example a weight, so that all classes or groups count the same."""

    paper: ClassVar[str] = "Idrissi et al., Simple data balancing achieves competitive worst-group-accuracy, CLeaR 2022"
    needs_groups_if: ClassVar[str] = "if by=group"
    takes_weights: ClassVar[bool] = True
    needs: ClassVar[Needs] = WEIGHTS_ONLY

    by: Annotated[By, among("class", "group")] = Field(
        "class", description="what shall count the same; group needs training groups"
    )
    scheme: Annotated[Scheme, among("inverse", "effective")] = Field(
        "inverse", description="weights by inverse frequency or inverse effective number"
    )
    beta: float = Field(0.999, ge=0, lt=1, description="of the effective number: 0 weighs all alike, 1 is the inverse")
    power: Annotated[float, among(0.5, 1.0)] = Field(
        1.0, ge=0, le=1, description="of the weights: 1 balances fully, 0.5 by the square root of the sizes, 0 is ERM"
    )

    @property
    def needs_groups(self) -> bool:  # type: ignore[override]
        return self.by == "group" and self.groups_from == "train"

    @model_validator(mode="after")
    def _few_groups_balance_groups(self) -> "Balancing":
        if self.groups_from == "few" and self.by != "group":
            raise UserError(f"{self.name}.groups_from=few must be used with by=group, got by={self.by}.")
        return self

    def weights(self, context: Context) -> tuple[Tensor, Notes]:
        """The weight of each training example, [n], mean 1."""
        if self.groups_from == "few":
            groups = self.soft_groups(context)
            weights, notes = self._expected_weights(context, groups), groups.notes
        else:
            notes = Notes()
            weights = balancing_weights(
                context.splits["train"], by=self.by, scheme=self.scheme, beta=self.beta, power=self.power
            )
        return weights, notes + Notes({"weight": weights})

    def _expected_weights(self, context: Context, groups: SoftGroups) -> Tensor:
        weight = context.task.splits["train"].weight
        if self.scheme == "inverse":
            return soft_inverse_frequency(groups.p, power=self.power, sample_weight=weight).to(context.device)
        return soft_effective_number(groups.p, beta=self.beta, power=self.power, sample_weight=weight).to(
            context.device
        )


@final
class Reweight(Balancing):
    """Reweighting: losses are weighted so that every class or group counts the same."""

    name: ClassVar[str] = "reweight"

    def train(self, context: Context) -> TrainResult:
        weights, notes = self.weights(context)
        return context.fit(BatchRisk(weights=weights)).after(notes)


@final
class Resample(Balancing):
    """Resampling: examples are drawn so that every class or group occurs as often."""

    name: ClassVar[str] = "resample"

    def train(self, context: Context) -> TrainResult:
        weights, notes = self.weights(context)
        return context.fit(MeanRisk(), sampler=Weighted(weights)).after(notes)
