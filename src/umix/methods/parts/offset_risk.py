"""The risk of logits to which a known offset is added in training only, and the offsets: priors of classes, and margins.

Losses that correct for class imbalance add logarithms of shares to the logits in training and leave them out at prediction. A class
without examples has no share. Its logarithm would be −∞, and leaving it out at prediction would raise the class above all others.
Such a class gets the largest share: then it is never raised against any class, and is as unlikely as ERM finds it.

Shares and margins are float64 and on the host, because not every device has float64.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from umix.data.batch import Batch
from umix.models.model import Model
from umix.training.objective import Objective, State


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class OffsetRisk(Objective):
    """The mean of CE(``scale``·(net(x) + offset), y) / ``scale``; predictions are those of the net alone.

    ``offset`` is [classes], the same for all examples, or [rows, classes] with the row of every training example in ``row`` [n].
    ``weights`` [n] has a weight for every training example, which counts from step ``weights_from`` on.
    The division keeps the gradient in the logits in [−1, 1]; the larger ``scale`` is, the more the loss is like a hinge.
    """

    takes_weights = True

    offset: Tensor
    row: Tensor | None = None
    scale: float = 1.0
    weights: Tensor | None = None
    weights_from: int = 0

    def risk(self, net: Model, batch: Batch, state: State, rng: np.random.Generator) -> tuple[Tensor, State]:
        offset = self.offset if self.row is None else self.offset[self.row.index_select(0, batch.index)]
        logits = net(batch.x) + offset
        w = batch.weight
        if self.weights is not None and batch.step >= self.weights_from:
            weights = self.weights.index_select(0, batch.index)
            w = weights if w is None else w * weights
        if self.scale == 1 and w is None:
            return cross_entropy(logits, batch.y), state
        losses = cross_entropy(self.scale * logits, batch.y, reduction="none")
        return (losses if w is None else w * losses).mean() / self.scale, state


def class_sizes(y: Tensor, *, n_classes: int, sample_weight: Tensor | None = None) -> Tensor:
    """The number of examples of every class, float64 [classes]; with ``sample_weight`` [n], an example counts as that many copies.

    >>> class_sizes(torch.tensor([0, 0, 2]), n_classes=3).tolist()
    [2.0, 0.0, 1.0]
    """
    copies = None if sample_weight is None else sample_weight.cpu().double()
    return torch.bincount(y.cpu(), weights=copies, minlength=n_classes).double()


def log_shares(sizes: Tensor) -> Tensor:
    """log(n_y / n) of every class from the ``sizes`` n_y [..., classes], float64; a class of size 0 has the largest of them.

    Where all sizes are 0, all classes have the same share.

    >>> log_shares(torch.tensor([3.0, 1.0, 0.0])).exp().tolist()
    [0.75, 0.25, 0.75]
    """
    sizes = sizes.double()
    sizes = sizes.where(sizes.sum(-1, keepdim=True) > 0, 1.0)
    return (sizes.where(sizes > 0, sizes.amax(-1, keepdim=True)) / sizes.sum(-1, keepdim=True)).log()


def log_shares_given_prediction(
    logits: Tensor, y: Tensor, *, temperature: float = 1.0, sample_weight: Tensor | None = None
) -> Tensor:
    """Logarithms of P(y | k), the share of class y among the examples for which a model predicts class k, float64 [k, y].

    The cells of the table are Σ_i softmax(logits_i / temperature)_k · 1[y_i = y], and one more in each, so that no logarithm is
    infinite (Tsirigotis et al. 2023). With ``sample_weight`` [n], an example counts as that many copies. Classes without examples
    get no such one: they have the largest share of each row, as in ``log_shares``.

    >>> certain = torch.tensor([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> log_shares_given_prediction(certain, torch.tensor([0, 0, 1, 1]), temperature=0.01).exp().float()  # 3:2 and 1:2
    tensor([[0.6000, 0.4000],
            [0.3333, 0.6667]])
    """
    n_classes = logits.shape[1]
    predicted = (logits.cpu().double() / temperature).softmax(1)
    if sample_weight is not None:
        predicted = predicted * sample_weight.cpu().double()[:, None]
    cells = predicted.new_zeros(n_classes, n_classes).index_add_(0, y.cpu(), predicted)  # [y, k]
    present = class_sizes(y, n_classes=n_classes, sample_weight=sample_weight) > 0
    return log_shares((cells + 1).where(present[:, None], 0.0).T)


def ldam_margins(sizes: Tensor, *, largest: float) -> Tensor:
    """Margins ``largest``·(n_min / n_y)^¼ from the ``sizes`` n_y [classes], float64 (Cao et al. 2019).

    The smallest class that has examples has the margin ``largest``. A class without examples has it too, but no loss contains it.

    >>> ldam_margins(torch.tensor([16.0, 1.0, 0.0]), largest=0.5).tolist()
    [0.25, 0.5, 0.5]
    """
    sizes = sizes.double()
    smallest = sizes.where(sizes > 0, torch.inf).min()
    return largest * (smallest / sizes.where(sizes > 0, smallest)).nan_to_num(1.0) ** 0.25
