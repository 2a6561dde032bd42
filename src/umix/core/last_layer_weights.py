"""Which held-out examples a last layer is trained on, and what each of them counts for."""

import torch
from torch import Tensor


def shifted_weights(p: Tensor, b: Tensor, *, gamma: float) -> Tensor:
    """``b_i·exp(−gamma·p_i)`` scaled to sum 1, float64 [n] (Qiu et al. 2023, AFR): less for examples that a net is sure of.

    ``p`` [n] is the probability that the net gives to the true class, ``b`` [n] ≥ 0 are weights before the shift. As it is a
    softmax of log b − gamma·p, no ``gamma`` makes all weights 0.

    >>> shifted_weights(torch.tensor([0.9, 0.1]), torch.ones(2), gamma=0.0).tolist()
    [0.5, 0.5]
    """
    if not gamma >= 0:
        raise ValueError(f"gamma must be at least 0, got {gamma}.")
    return (b.double().log() - gamma * p.double()).softmax(0)


def disagreement(early: Tensor, logits: Tensor) -> Tensor:
    """KL(p_early ‖ p) / classes of every example, float64 [n], from the ``early`` logits and ``logits`` [n, classes] of two nets.

    The score of LaBonte et al. 2023 (SELF): large where training has changed the prediction.

    >>> disagreement(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 0.0]])).tolist()
    [0.0]
    """
    log_early, log_p = early.double().log_softmax(1), logits.double().log_softmax(1)
    return (log_early.exp() * (log_early - log_p)).mean(1).clamp_min(0)


def highest(scores: Tensor, n: int) -> Tensor:
    """The rows of the ``n`` highest ``scores`` [rows], in order, int64; all rows if there are fewer. Of equal ones the first.

    >>> highest(torch.tensor([0.1, 0.7, 0.3, 0.7]), 2).tolist()
    [1, 3]
    """
    return scores.argsort(descending=True, stable=True)[:n].sort().values


def extreme_losses(losses: Tensor, y: Tensor, *, k: int) -> Tensor:
    """The rows of the ``k`` highest and the ``k`` lowest ``losses`` [n] of every class, in order, int64 (Ghaznavi et al., EVaLS).

    A class of fewer than 2·``k`` examples is taken as a whole.

    >>> extreme_losses(torch.tensor([0.1, 3.0, 0.2, 0.5, 0.4]), torch.tensor([0, 0, 0, 0, 1]), k=1).tolist()
    [0, 1, 4]
    """
    kept = []
    for label in y.unique():
        rows = (y == label).nonzero()[:, 0]
        rows = rows[losses[rows].argsort(descending=True, stable=True)]
        kept += [rows] if len(rows) <= 2 * k else [rows[:k], rows[-k:]]
    return torch.cat(kept).sort().values if kept else torch.zeros(0, dtype=torch.int64, device=y.device)
