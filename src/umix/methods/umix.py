"""UMIX: uncertainty-aware mixup (Han et al. 2022).

Algorithm 2: train by ERM and record which examples are predicted correctly in which epoch. The
uncertainty u of an example is the share of wrong predictions in a window of epochs (eq. 6). Its
weight is w = eta·u + c (eq. 7). The appendix compares this with an ensemble, where u is the share
of ``length`` independently trained ERM models that are wrong.

Algorithm 1: train a new net. With probability sigma mix each example with another, where
λ ~ Beta(alpha, alpha), and minimise w_i·λ·ℓ(x̃, y_i) + w_j·(1−λ)·ℓ(x̃, y_j) (eq. 4). Otherwise
minimise w_i·ℓ(x_i, y_i).

Differs from the paper:
- the window has exactly ``length`` epochs ``start … start+length-1``, counted from 0 (the printed
  sum has one term more than its divisor);
- ``normalize`` scales the weights to mean 1, so that eta does not change the effective learning
  rate;
- if a batch is not mixed, its own loss is weighted (the printed λ = 0 takes the partner's, which is
  the same in expectation);
- eta, the window and the pooling of uncertainty over classes may be ``auto``: they are chosen on
  validation, without groups;
- CutMix uses the true share of the pasted box as λ.

Differs from the released code:
- the last epoch is recorded too, and an example that was not visited is an error instead of
  "wrong";
- a window beyond the recorded epochs is refused instead of cut;
- weights are float32; features can be mixed.
"""

from typing import Annotated, ClassVar, final

from pydantic import Field
from torch import Tensor

from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.uncertainty_weights import Eta, UncertaintyWeights
from umix.settings import among, between
from umix.training.context import Context
from umix.training.mixup_risk import Mixing, MixupRisk, require_mixable
from umix.training.train_result import TrainResult


@final
class UMIX(UncertaintyWeights):
    """Uncertainty-aware mixup: examples that ERM keeps getting wrong weigh more, and pairs of examples are mixed."""

    name: ClassVar[str] = "umix"
    paper: ClassVar[str] = (
        "Han et al., UMIX: Improving importance weighting for subpopulation shift via uncertainty-aware mixup, NeurIPS 2022"
    )

    needs: ClassVar[Needs] = WEIGHTS_ONLY
    mixing_options: ClassVar[tuple[str, ...]] = ("sigma", "alpha", "mixing", "per_example")

    eta: Annotated[Eta, between(2.0, 100.0, log=True)] = Field(
        20.0, description="how much an example's weight grows with its uncertainty; auto tries some on validation"
    )
    sigma: Annotated[float, among(0.5, 1.0)] = Field(
        0.5, ge=0, le=1, description="probability of mixing a batch; 0 weights without mixing"
    )
    alpha: Annotated[float, among(0.2, 0.5, 1.5)] = Field(0.5, gt=0, description="λ ~ Beta(alpha, alpha)")
    mixing: Mixing = Field("input", description="what is mixed: inputs, boxes of images, or pooled features")
    per_example: bool = Field(False, description="one draw of mixing and λ per example instead of per batch")

    def train(self, context: Context) -> TrainResult:
        require_mixable(self.mixing, context)
        weighed = self.weigh_examples(context, self.objective)  # Algorithm 2
        objective = self.objective(weighed.weights)
        return weighed.context.fit(objective, uncertainty=weighed.held_out).after(weighed.notes)  # Algorithm 1

    def objective(self, weights: Tensor) -> MixupRisk:
        """Mixup with these weights."""
        return MixupRisk(
            weights=weights, sigma=self.sigma, alpha=self.alpha, mixing=self.mixing, per_example=self.per_example
        )
