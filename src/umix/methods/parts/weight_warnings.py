"""Warnings about importance weights that are nearly equal, or that are concentrated on a few examples."""

from torch import Tensor

from umix.core.weights import effective_sample_size
from umix.training.trainer import Trainer

_FEW = 0.02  # warn if the effective sample size is below this share of the training examples


def warn_about(weights: Tensor, trainer: Trainer, *, u: Tensor) -> None:
    """Warn if the uncertainties ``u`` [n] are all 0 or saturated, or if the ``weights`` [n] favour few examples."""
    n = len(u)
    if not u.any():
        trainer.warn("No training example was ever wrong in the window: all weights are equal.")
    elif 2 * int((u == 1).sum()) > n:
        share = float((u == 1).double().mean())
        trainer.warn(
            f"The uncertainty is saturated: {share:.0%} of the training examples were wrong in the whole window."
        )
    warn_if_few(weights, trainer)


def warn_if_few(weights: Tensor, trainer: Trainer) -> None:
    """Warn if the ``weights`` [n] favour few examples."""
    n = len(weights)
    if (size := effective_sample_size(weights)) < _FEW * n:
        trainer.warn(
            f"The weights rest on few examples: {size:.1f} equally weighted ones would do as well as these {n}."
        )
