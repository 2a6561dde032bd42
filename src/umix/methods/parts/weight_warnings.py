"""Warnings about importance weights that say little: their method then hardly differs from ERM, or learns from a handful."""

from torch import Tensor

from umix.core.weights import effective_sample_size
from umix.training.trainer import Trainer

_FEW = 0.02  # share of the training examples below which the effective sample size is worth a word


def warn_about(weights: Tensor, trainer: Trainer, *, u: Tensor) -> None:
    """Warn where the uncertainties ``u`` [n] or the ``weights`` [n] made of them do not tell training examples apart."""
    n = len(u)
    if not u.any():
        trainer.warn("No training example was ever wrong in the window: all weights are equal.")
    elif 2 * int((u == 1).sum()) > n:
        share = float((u == 1).double().mean())
        trainer.warn(
            f"The uncertainty is saturated: {share:.0%} of the training examples were wrong in the whole window."
        )
    if (size := effective_sample_size(weights)) < _FEW * n:
        trainer.warn(
            f"The weights rest on few examples: {size:.1f} equally weighted ones would do as well as these {n}."
        )
