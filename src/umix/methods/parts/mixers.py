"""Ways to mix pairs of examples: their inputs, boxes of their images, or their features."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
from torch import Tensor

from umix.core.mixing import cutmix, mix
from umix.errors import UserError
from umix.nets.net import Net
from umix.training.trainer import Trainer

#: What is mixed, by the names that users set.
Mixing = Literal["input", "cutmix", "features"]

#: ``mixer(net, x, pair, lam, rng)`` returns the logits of the mixed batch and the λ to use in the loss.
Mixer = Callable[[Net, Tensor, Tensor, float | Tensor, np.random.Generator], tuple[Tensor, float | Tensor]]


def mix_inputs(
    net: Net, x: Tensor, pair: Tensor, lam: float | Tensor, rng: np.random.Generator
) -> tuple[Tensor, float | Tensor]:
    """Mixup of inputs (Zhang et al. 2018); codes are mixed as the numbers that the net makes of them."""
    if net.is_linear:  # logits are fewer than inputs: mixing the inputs would cost more than the rest of the step
        return mix(net(x), pair, lam), lam
    return net(mix(net.encode(x), pair, lam), encoded=True), lam


def mix_boxes(
    net: Net, x: Tensor, pair: Tensor, lam: float | Tensor, rng: np.random.Generator
) -> tuple[Tensor, float | Tensor]:
    """CutMix (Yun et al. 2019); the returned λ is the true share of the image that was not replaced."""
    mixed, true_lam = cutmix(x, pair, lam, rng=rng)
    return net(mixed), true_lam


def mix_features(
    net: Net, x: Tensor, pair: Tensor, lam: float | Tensor, rng: np.random.Generator
) -> tuple[Tensor, float | Tensor]:
    """Manifold mixup at the last layer (Verma et al. 2019): mixes the pooled features."""
    if net.is_linear:
        return mix(net(x), pair, lam), lam
    return net.head(mix(net.features(x), pair, lam)), lam


def require_mixable(mixing: Mixing, trainer: Trainer) -> None:
    """Raise if the training examples cannot be mixed in this way; an estimator mixes none.

    Methods call this before they train anything.
    """
    if not trainer.net.by_gradients:
        return
    example = trainer.example
    if mixing == "cutmix" and example.dim() < 2:
        raise UserError(
            f"mixing=cutmix must be given images [..., height, width], got examples of shape {list(example.shape)}; "
            "try mixing=input or mixing=features."
        )
    if mixing != "features" and not example.is_floating_point():
        raise UserError(f"mixing={mixing} must be given numbers to average, got {example.dtype}; try mixing=features.")


MIXERS: Mapping[Mixing, Mixer] = MappingProxyType({"input": mix_inputs, "cutmix": mix_boxes, "features": mix_features})
