"""The weighted mixup objective of UMIX; other mixup methods use it with other weights or pairs, a selection for stacked nets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from umix.core.mixing import cutmix, draw_lambda, mix, mixed_risk
from umix.core.pairing import Ids, partners
from umix.data.batch import Batch
from umix.errors import UserError
from umix.models.model import Model
from umix.models.stacked import is_stack
from umix.training.objective import Objective, State

if TYPE_CHECKING:
    from umix.training.context import Context

#: What is mixed, by the names that users set.
Mixing = Literal["input", "cutmix", "features"]

#: λ of a batch: one number, or one per example.
Lam = float | Tensor

#: ``mixer(net, x, pair, lam, rng)`` returns the logits of the mixed batch and the λ to use in the loss.
Mixer = Callable[[Model, Tensor, Tensor, Lam, np.random.Generator], tuple[Tensor, Lam]]

#: The partner of every example of the batch, as positions in the batch [batch].
Pairing = Callable[[Batch, np.random.Generator], Ids]

#: The partner and the λ of every example of the batch, [batch] each, where they are drawn together.
Draw = Callable[[Batch, np.random.Generator], tuple[Ids, NDArray[np.floating[Any]]]]


def mix_inputs(net: Model, x: Tensor, pair: Tensor, lam: Lam, rng: np.random.Generator) -> tuple[Tensor, Lam]:
    """Mixup of inputs (Zhang et al. 2018); codes are mixed as the numbers that the net makes of them."""
    if net.is_linear:  # logits are fewer than inputs: mixing the inputs would cost more than the rest of the step
        return mix(net(x), pair, lam, dim=_examples(net)), lam
    return net(mix(net.encode(x), pair, lam), encoded=True), lam


def mix_boxes(net: Model, x: Tensor, pair: Tensor, lam: Lam, rng: np.random.Generator) -> tuple[Tensor, Lam]:
    """CutMix (Yun et al. 2019); the returned λ is the true share of the image that was not replaced."""
    mixed, true_lam = cutmix(x, pair, lam, rng=rng)
    return net(mixed), true_lam


def mix_features(net: Model, x: Tensor, pair: Tensor, lam: Lam, rng: np.random.Generator) -> tuple[Tensor, Lam]:
    """Manifold mixup at the last layer (Verma et al. 2019): mixes the pooled features."""
    if net.is_linear:
        return mix(net(x), pair, lam, dim=_examples(net)), lam
    return net.head(mix(net.features(x), pair, lam, dim=_examples(net))), lam


def _examples(net: Model) -> int:
    """The dimension of the examples in features and logits: those of a stack have the net first."""
    return 1 if is_stack(net) else 0


MIXERS: Mapping[Mixing, Mixer] = MappingProxyType({"input": mix_inputs, "cutmix": mix_boxes, "features": mix_features})


def require_mixable(mixing: Mixing, context: "Context") -> None:
    """Raise if the training examples cannot be mixed in this way; some models mix none.

    Methods call this before they train anything.
    """
    if "mixing" not in context.net.offers:
        return
    example = context.example
    if mixing == "cutmix" and example.dim() < 2:
        raise UserError(
            f"mixing=cutmix must be given images [..., height, width], got examples of shape {list(example.shape)}; "
            "try mixing=input or mixing=features."
        )
    if mixing != "features" and not example.is_floating_point():
        raise UserError(f"mixing={mixing} must be given numbers to average, got {example.dtype}; try mixing=features.")


def any_pair(batch: Batch, rng: np.random.Generator) -> Ids:
    """Any two examples: a random permutation of the batch."""
    return partners(len(batch.y), rng=rng)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class MixupRisk(Objective):
    """The weighted loss of mixed pairs with probability ``sigma``, else of the batch as it is (UMIX Algorithm 1).

    ``weights`` [n] has a weight for every training example, None means equal weights; those of a stack are [n, nets].
    λ ~ Beta(alpha, alpha), and whether to mix at all, are drawn once per batch, or per example with ``per_example``. ``pairing``
    chooses the partners. ``draw`` draws partners and λ together instead. ``watch`` is called with the λ of every batch: 1 if it is
    not mixed.
    """

    takes_weights = True

    weights: Tensor | None = None
    sigma: float
    alpha: float
    mixing: Mixing = "input"
    per_example: bool = False
    pairing: Pairing = any_pair
    draw: Draw | None = None
    watch: Callable[[float], None] | None = None

    @property
    def mixes(self) -> bool:  # type: ignore[override]
        return self.sigma > 0

    @property
    def example_weights(self) -> Tensor | None:
        if self.pairing is not any_pair or self.draw is not None:
            return None
        return torch.ones(()) if self.weights is None else self.weights

    def logging_lambda(self, see: Callable[[float], None]) -> "MixupRisk":
        return replace(self, watch=see)

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        w, drawn = self._weights_of(batch), self._drawn(batch, rng)
        if drawn is None:
            return mixed_risk(net(batch.x), batch.y, w, None, None), state
        pair, lam = drawn
        logits, lam = MIXERS[self.mixing](net, batch.x, pair, lam, rng)
        return mixed_risk(logits, batch.y, w, pair, lam), state

    def _weights_of(self, batch: Batch) -> Tensor | None:
        if self.weights is None:
            return batch.weight
        w = self.weights.index_select(0, batch.index)
        if batch.weight is None:
            return w
        return batch.weight.view(-1, *[1] * (w.dim() - 1)) * w

    def _drawn(self, batch: Batch, rng: np.random.Generator) -> tuple[Tensor, Lam] | None:
        """The partners and the λ of the batch or of each example, on its device; None if nothing is mixed."""
        pair: Ids | None = None
        lam: float | NDArray[np.floating[Any]] | None
        if self.draw is None:
            lam = draw_lambda(len(batch.y), sigma=self.sigma, alpha=self.alpha, per_example=self.per_example, rng=rng)
            pair = None if lam is None else self.pairing(batch, rng)
        else:
            pair, lam = self.draw(batch, rng)
        if self.watch is not None:
            self.watch(1.0 if lam is None else float(np.mean(lam)))
        if pair is None or lam is None:
            return None
        device = batch.y.device
        on_device = torch.from_numpy(lam).to(device, torch.float32) if isinstance(lam, np.ndarray) else lam
        return torch.from_numpy(pair).to(device, non_blocking=True), on_device
