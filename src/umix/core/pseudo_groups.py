"""Pseudo-groups: how sure a net must be of a row's group before the row is trained on as one of that group (Nam et al. 2022)."""

import torch
from torch import Tensor


def masked_log_softmax(logits: Tensor, possible: Tensor) -> Tensor:
    """Logarithms of the softmax over the values that are ``possible``, bool [n, values]; −inf for the others.

    >>> masked_log_softmax(torch.zeros(1, 3), torch.tensor([[True, True, False]])).exp()
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    return logits.masked_fill(~possible, -torch.inf).log_softmax(dim=1)


def group_thresholds(p: Tensor, y: Tensor, labelled: Tensor, *, threshold: float) -> Tensor:
    """The probability from which on a row of class y is taken for a row of the group (y, value), float [classes, values].

    ``p`` [n, values] are the probabilities of rows without a group and ``y`` [n] their classes, ``labelled`` [classes, values]
    counts the rows whose group is known. The group with the fewest labelled rows has ``threshold``. With the rows that reach it, it
    has N* rows. Every other group takes its surest rows until it has N* rows too: its threshold is the (N* − labelled)-th largest
    probability, or the smallest if there are not so many; rows that are equally sure pass together. It is ∞ for a
    group that has N* rows already, and for a class and value without labelled rows.

    >>> p = torch.tensor([[0.99, 0.01], [0.97, 0.03], [0.3, 0.7], [0.2, 0.8], [0.1, 0.9]])
    >>> group_thresholds(p, torch.zeros(5).long(), torch.tensor([[1, 2]]), threshold=0.95)  # N* = 3, so one row of the second
    tensor([[0.9500, 0.9000]])
    """
    found = torch.full(labelled.shape, torch.inf, dtype=p.dtype, device=p.device)
    present = labelled > 0
    if not bool(present.any()):
        return found
    n_values = labelled.shape[1]
    fewest = int(labelled.masked_fill(~present, int(labelled.max()) + 1).argmin())
    label, value = divmod(fewest, n_values)
    wanted = int(labelled[label, value]) + int((p[y == label, value] >= threshold).sum())
    for label, value in present.nonzero().tolist():
        scores = p[y == label, value]
        taken = min(wanted - int(labelled[label, value]), len(scores))
        if taken > 0:
            found[label, value] = scores.topk(taken).values[-1]
    found.view(-1)[fewest] = threshold
    return found
