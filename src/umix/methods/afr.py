"""AFR: automatic feature reweighting, the last layer trained again on rows that ERM is unsure of (Qiu et al. 2023).

Stage 1: ERM on a random ``share`` of the training split. Stage 2: the other rows were never seen. Each gets the weight
μ_i ∝ b_y·exp(−gamma·p_i), where p_i is the probability that ERM gives to its class and b_y = 1/n_y. The last layer φ is trained
from ERM's by gradient descent on Σ μ_i ℓ_i(φ) + lam·‖φ − φ_ERM‖², one step for all of these rows, with gradients of length at
most 1. Group labels are not used.

With ``gamma=0`` it is a class-balanced fit of the last layer; with a large ``lam`` it stays at ERM.

Its ERM sees fewer rows than ``erm`` and is trained to the end, while ``erm`` selects its epoch. Where features are given and the
net is linear, so that there is nothing else to learn from the rows, AFR may end below it: on features of bird photographs by 3
points in the worst group of validation, and by 5 where groups may not select an epoch.

Differs from the paper:
- features are standardised, and the penalty is on the layer for these features;
- an epoch has ``steps`` gradient steps, in the paper one;
- ``sigma`` and ``alpha`` are an addition: with probability ``sigma`` a step sees mixtures of the features of two rows, each with
  its own weight (the objective of UMIX); ``sigma=0`` is the paper;
- the epoch is selected as in all methods: by the worst validation group if groups may be used, else without;
- rows are held out of every class in its share, and the gamma and lam of the paper's searches are not searched by default.

Differs from the released code:
- as above; some of its notebooks begin at a random layer added to ERM's, here it is ERM's as in its script;
- weights are a softmax: there a large gamma can make all of them 0, which gives NaN.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from umix.core.weights import inverse_frequency
from umix.data.batch import Batch
from umix.data.samplers import FullBatchSampler, SubsetSampler
from umix.errors import UserError
from umix.methods.method import WEIGHTS_ONLY, Needs
from umix.methods.parts.layer_fit import LayerFit, divided
from umix.models.model import Model
from umix.settings import among, between
from umix.training.context import Context
from umix.training.last_layer import fit_last_layer, linear_head
from umix.training.mixup_risk import MixupRisk
from umix.training.objective import MeanRisk, Objective, State
from umix.training.stage import SideStage, side_fit
from umix.training.train_result import TrainResult


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class NearStart(Objective):
    """The risk of ``inner`` and ``lam``·‖φ − φ₀‖², where φ is the last layer and φ₀ the same before the first step.

    ``like`` is a layer of the same shape.
    """

    inner: Objective
    lam: float
    like: nn.Module

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        return self.inner.mixes

    def logging_lambda(self, see: Callable[[float], None]) -> "NearStart":
        return replace(self, inner=self.inner.logging_lambda(see))

    def init(self, n_groups: int) -> State:
        return {name: torch.zeros_like(parameter) for name, parameter in self.like.named_parameters()}

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        risk, _ = self.inner.risk(net, batch, {}, rng)
        if batch.step == 0:
            state = {name: parameter.detach().clone() for name, parameter in net.head.named_parameters()}
        moved = [(parameter - state[name]).square().sum() for name, parameter in net.head.named_parameters()]
        return risk + self.lam * sum(moved), state


@final
class AFR(LayerFit):
    """Automatic feature reweighting: the last layer is trained again on unseen rows, most on those that ERM is unsure of."""

    name: ClassVar[str] = "afr"
    paper: ClassVar[str] = "Qiu et al., Simple and fast group robustness by automatic feature reweighting, ICML 2023"
    needs: ClassVar[Needs] = WEIGHTS_ONLY
    stages: ClassVar[tuple[str, ...]] = ("reference",)

    gamma: Annotated[float, between(0.5, 20.0, log=True)] = Field(
        8.0, ge=0, description="how much less rows count that ERM is sure of"
    )
    lam: Annotated[float, among(0.0, 0.01, 0.1, 0.3)] = Field(
        0.0, ge=0, description="penalty on the distance of the last layer from ERM's"
    )
    share: float = Field(0.8, gt=0, lt=1, description="part of the training rows that ERM sees")
    steps: int = Field(10, ge=1, description="steps per epoch of the last layer, each on all rows")
    layer_epochs: int = Field(50, ge=1, description="epochs of the last layer")
    sigma: float = Field(0.0, ge=0, le=1, description="share of steps with mixed features; 0 is the paper")
    alpha: float = Field(0.5, gt=0, description="λ ~ Beta(alpha, alpha) of mixed features")

    def train(self, context: Context) -> TrainResult:
        train = context.splits["train"]
        seen, held_out = divided(train.y, share=self.share, seed=context.seed, what="reference")
        if not len(held_out):
            raise UserError(
                f"afr must hold training rows out, but every class has a single row, {len(train)} in all; take more rows."
            )
        stage = SideStage("reference", context.settings.epochs, content=f"ERM on {self.share!r} of every class")
        net, _ = side_fit(context, stage, MeanRisk(), sampler=SubsetSampler(seen))
        rows = train.rows(held_out)
        mu = self.weights(context.logits(net, rows), rows.y)
        settings = self.layer_settings(context, batch_size=len(rows), momentum=0.0, clip_norm=1.0)
        objective = self.objective(mu, linear_head(net))
        return fit_last_layer(context, net, rows, objective, settings=settings, sampler=FullBatchSampler(self.steps))

    def weights(self, logits: Tensor, y: Tensor) -> Tensor:
        """The weight μ of each row that was held out, [n], sum 1, from the ``logits`` of ERM."""
        p = logits.cpu().double().softmax(1).gather(1, y.cpu()[:, None])[:, 0]  # not every device has float64
        return shifted_weights(p, inverse_frequency(y.cpu()), gamma=self.gamma).float().to(y.device)

    def objective(self, mu: Tensor, layer: nn.Module) -> Objective:
        """What the last ``layer`` minimises on all rows at once; their mean loss is weighted, so the weights are n·μ."""
        mixed = MixupRisk(weights=len(mu) * mu, sigma=self.sigma, alpha=self.alpha, mixing="features")
        return NearStart(inner=mixed, lam=self.lam, like=layer) if self.lam else mixed


def shifted_weights(p: Tensor, b: Tensor, *, gamma: float) -> Tensor:
    """``b_i·exp(−gamma·p_i)`` scaled to sum 1, float64 [n] (Qiu et al. 2023, AFR): less for examples that a net is sure of.

    ``p`` [n] is the probability that the net gives to the true class, ``b`` [n] ≥ 0 are weights before the shift. As it is a
    softmax of log b − gamma·p, no ``gamma`` makes all weights 0.

    >>> shifted_weights(torch.tensor([0.9, 0.1]), torch.ones(2), gamma=0.0).tolist()
    [0.5, 0.5]
    """
    return (b.double().log() - gamma * p.double()).softmax(0)
