"""LISA with UMIX's weights: the UMIX paper calls the two orthogonal, but does not try the combination.

The weights are those of UMIX (Algorithm 2, eq. 6 and 7). The pairs are those of LISA (same label
and different attributes, or same attribute and different labels), drawn from the batch. The loss is
UMIX's eq. 4, with one λ per batch. With eta = 0 it is LISA.

Differs from the paper:
- the UMIX paper mentions the combination (introduction, comparison with existing works) without
  details: LISA's batches balanced over groups are optional here and off by default, because the
  weights already favour the minority.

Differs from the released code:
- there is none.
"""

from typing import Annotated, ClassVar, final

from pydantic import Field
from torch import Tensor

from umix.data.samplers import Balanced, Sampler, Shuffled
from umix.methods.lisa import SelectivePairing
from umix.methods.parts.uncertainty_weights import LENGTH, Eta, Length, UncertaintyWeights
from umix.settings import among, between
from umix.training.context import Context
from umix.training.mixup_risk import Mixing, MixupRisk, require_mixable
from umix.training.train_result import TrainResult


@final
class LISAUMIX(UncertaintyWeights):
    """LISA's selective pairs with UMIX's uncertainty weights."""

    name: ClassVar[str] = "lisa_umix"
    paper: ClassVar[str] = "Han et al., UMIX, NeurIPS 2022, with Yao et al., LISA, ICML 2022"
    needs_groups: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = False  # balancing batches over groups would undo them

    eta: Annotated[Eta, between(0.5, 50.0, log=True)] = Field(
        2.0, description="how much an example's weight grows with its uncertainty; the pairs help too"
    )
    same_label: Annotated[float, between(0.0, 1.0)] = Field(
        0.5, ge=0, le=1, description="probability of mixing within a label (LISA's p_sel)"
    )
    alpha: Annotated[float, among(0.5, 2.0)] = Field(2.0, gt=0, description="λ ~ Beta(alpha, alpha)")
    length: Annotated[Length, among(5, 10)] = Field(10, description=LENGTH)
    mixing: Mixing = Field("input", description="what is mixed: inputs, boxes of images, or pooled features")
    balance: bool = Field(False, description="batches hold all groups in equal parts")

    def train(self, context: Context) -> TrainResult:
        require_mixable(self.mixing, context)
        pairing = SelectivePairing.of(context.task, same_label=self.same_label)

        def objective(weights: Tensor) -> MixupRisk:
            return MixupRisk(weights=weights, sigma=1.0, alpha=self.alpha, mixing=self.mixing, pairing=pairing)

        sampler: Sampler = Balanced(context.splits["train"].group) if self.balance else Shuffled()
        weighed = self.weigh_examples(context, objective)
        fitted = weighed.context.fit(objective(weighed.weights), sampler=sampler, uncertainty=weighed.held_out)
        return fitted.after(weighed.notes)
