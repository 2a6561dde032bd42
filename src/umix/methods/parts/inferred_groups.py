"""Groups that nobody has labelled: what an inference returns, and methods that infer groups first and then train on them.

``then=group_dro`` minimises the risk of the worst inferred group, as GroupDRO does with known ones. ``then=umix`` weighs every
example by η·u + 1, where u is the share of its inferred group that the reference gets wrong, and mixes pairs: the weights and the
objective of UMIX (eq. 7 and 4), with the uncertainty of inferred groups in place of that of single examples.
"""

import abc
from dataclasses import dataclass
from typing import Annotated, Literal, final

import torch
from pydantic import Field, model_validator
from torch import Tensor

from umix.core.weights import class_means, importance_weights, inverse_frequency, normalized
from umix.data.samplers import Balanced, Sampler, Shuffled
from umix.errors import UserError
from umix.methods.method import Method
from umix.methods.parts.uncertainty_weights import few_warnings
from umix.methods.parts.worst_group_risk import WorstGroupRisk
from umix.settings import between
from umix.training.context import Context
from umix.training.mixup_risk import Mixing, MixupRisk, require_mixable
from umix.training.train_result import Notes, TrainResult

Then = Literal["group_dro", "umix"]
OF_UMIX = ("eta", "class_balance", "sigma", "alpha", "mixing")  # settings that mean nothing without it


@final
@dataclass(frozen=True, eq=False)
class InferredGroups:
    """The inferred group, or cell, of every training example, and what the reference makes of it."""

    cell: Tensor  # int64 [n]; some cells may have no example
    n_cells: int
    wrong: Tensor  # bool [n], whether the reference that they were inferred from is wrong
    notes: Notes

    @property
    def sizes(self) -> Tensor:
        """The number of examples in every cell, [cells]."""
        return torch.bincount(self.cell, minlength=self.n_cells)

    @property
    def error_rate(self) -> Tensor:
        """The share of each example's cell that the reference gets wrong, [n], on the host."""
        return class_means(self.wrong.cpu().float(), self.cell.cpu())


class InfersGroups(Method, abc.ABC):
    """A method that infers groups of the training examples and then trains on them; groups of the task are not used."""

    then: Then = Field(
        "group_dro",
        description="what is done with the inferred groups: the worst one counts, or UMIX's weights and mixup",
    )
    step_size: Annotated[float, between(0.001, 0.1, log=True)] = Field(
        0.01, ge=0, description="how fast the group weights follow the risks, as in GroupDRO"
    )
    adjustment: float = Field(0.0, ge=0, description="C: groups of n examples count C/sqrt(n) worse than they are")
    batches: Literal["balanced", "shuffled"] = Field(
        "balanced",
        description="with then=group_dro: batches of the inferred groups in equal parts, or of rows in random order",
    )
    eta: float = Field(
        3.0, ge=0, description="with then=umix: how much a weight grows with the error rate of the inferred group"
    )
    class_balance: bool = Field(
        False,
        description="with then=umix: weights are also divided by the size of the class, so that classes count the same",
    )
    sigma: float = Field(0.5, ge=0, le=1, description="with then=umix: probability of mixing a batch")
    alpha: float = Field(0.5, gt=0, description="with then=umix: λ ~ Beta(alpha, alpha)")
    mixing: Mixing = Field(
        "input", description="with then=umix, what is mixed: inputs, boxes of images, or pooled features"
    )

    @model_validator(mode="after")
    def _settings_of_umix_need_it(self) -> "InfersGroups":
        changed = [name for name in OF_UMIX if getattr(self, name) != type(self).model_fields[name].default]
        if self.then != "umix" and changed:
            raise UserError(f"{self.name}.{changed[0]} must be used with then=umix, got then={self.then}.")
        return self

    @abc.abstractmethod
    def infer(self, context: Context) -> InferredGroups:
        """The groups of the training examples, and the notes of how they were inferred."""

    def train(self, context: Context) -> TrainResult:
        if self.then == "umix":
            require_mixable(self.mixing, context)
        return self.train_on(self.infer(context), context)

    def train_on(self, groups: InferredGroups, context: Context) -> TrainResult:
        """A new net, trained on ``groups`` as ``then`` says."""
        if self.then == "umix":
            return self._mix(groups, context)
        objective = WorstGroupRisk(
            step_size=self.step_size, adjustment=self.adjustment, sizes=groups.sizes, group=groups.cell
        )
        sampler: Sampler = Balanced(groups.cell) if self.batches == "balanced" else Shuffled()
        return context.fit(objective, sampler=sampler).after(groups.notes)

    def _mix(self, groups: InferredGroups, context: Context) -> TrainResult:
        u = groups.error_rate
        weights = importance_weights(u, eta=self.eta)
        if self.class_balance:
            weights = weights * inverse_frequency(context.task.splits["train"].y)
        weights = normalized(weights)
        all_right = "The reference gets no training example wrong, so all weights are equal."
        warnings = (() if u.any() else (all_right,)) + few_warnings(weights)
        notes = groups.notes + Notes({"uncertainty": u, "weight": weights}, warnings=warnings)
        objective = MixupRisk(
            weights=weights.to(context.device), sigma=self.sigma, alpha=self.alpha, mixing=self.mixing
        )
        return context.fit(objective).after(notes)
