"""Twins: two classifiers, each trained on one half of the examples; held-out predictions change labels (Pezeshki et al. 2024).

Every example has a twin that holds it, and is trained on it, and another one that is held out.
"""

import torch
from torch import Tensor

from umix.core.losses import cross_entropy
from umix.core.risks import group_risks


def flip_probability(p: Tensor, *, n_classes: int) -> Tensor:
    """(p − 1/C)·C/(C − 1): with which probability a prediction of probability ``p`` takes the place of the label; like ``p``.

    It is 0 for a prediction at chance, 1 for a certain one, and 0 if there is one class only.

    >>> flip_probability(torch.tensor([0.5, 0.9, 1.0]), n_classes=2)
    tensor([0.0000, 0.8000, 1.0000])
    """
    if n_classes < 2:
        return torch.zeros_like(p)
    return ((p - 1 / n_classes) * (n_classes / (n_classes - 1))).clamp(0, 1)


def flipped(label: Tensor, held_out: Tensor, draws: Tensor, *, strength: float = 1.0) -> Tensor:
    """The labels [n] after those of the examples that are drawn have become the held-out twin's predictions.

    ``held_out`` [n, classes] are its logits, ``draws`` [n] uniform numbers in [0, 1). Probabilities are multiplied by ``strength``.

    >>> flipped(torch.tensor([0, 0]), torch.tensor([[0.0, 9.0], [0.0, 0.1]]), torch.tensor([0.5, 0.5]))
    tensor([1, 0])
    """
    p, prediction = held_out.softmax(1).max(1)
    flips = draws < strength * flip_probability(p, n_classes=held_out.shape[1])
    return torch.where(flips, prediction, label)


def twins_risk(held_in: Tensor, label: Tensor, first: Tensor) -> Tensor:
    """The sum over both twins and all classes of the mean loss of the twin's examples of that class, a scalar.

    ``held_in`` [n, classes] are the logits of the twin that holds the example: the first where ``first`` [n] is true.
    """
    n_classes = held_in.shape[1]
    return group_risks(cross_entropy(held_in, label), n_classes * first.long() + label, n_groups=2 * n_classes).sum()


def both_environments(environment: Tensor, y: Tensor) -> bool:
    """Whether every class of ``y`` [n] has examples in the environments 0 and 1.

    >>> both_environments(torch.tensor([0, 1, 0, 0]), torch.tensor([0, 0, 2, 2]))
    False
    """
    return len(torch.unique(2 * y + environment)) == 2 * len(torch.unique(y))
