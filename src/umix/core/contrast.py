"""The contrastive risk of CnC: examples of a class are drawn together across a spurious attribute (Zhang et al. 2022)."""

import torch
from torch import Tensor

from umix.core.precision import widened


@widened
def contrastive_risk(z: Tensor, y: Tensor, predicted: Tensor, *, temperature: float) -> Tensor:
    """The mean over anchors of −mean_p log[e^p / (Σ_n e^n + Σ_p' e^p')] with cosine similarities over ``temperature``, a scalar.

    ``z`` [n, width] are features, ``predicted`` [n] the classes that a reference predicts. An anchor that the reference gets right
    has as positives p the examples of its class that it gets wrong, and as negatives n those of other classes that it takes for the
    anchor's class. An anchor that it gets wrong has as positives the examples of its class that it gets right, and as negatives
    those that are rightly predicted to be what the anchor wrongly is. Without positives an example is no anchor; without anchors
    the risk is 0, with gradient 0. Features of length 0 have similarity 0 to all.

    >>> z, y = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
    >>> contrastive_risk(z, y, torch.tensor([0, 1]), temperature=0.1)  # each has one positive and no negative
    tensor(0.)
    """
    length = torch.linalg.vector_norm(z, dim=1, keepdim=True)
    unit = z / length.where(length > 0, 1.0)
    similar = unit @ unit.T / temperature
    right = predicted == y
    differs = right[:, None] != right
    positive, negative = differs & (y[:, None] == y), differs & (predicted[:, None] == predicted)
    count = positive.sum(1)
    is_anchor = count > 0
    others = similar.masked_fill(~(positive | negative), -torch.inf).where(is_anchor[:, None], 0.0).logsumexp(1)
    losses: Tensor = (others - (similar * positive).sum(1) / count.clamp_min(1)) * is_anchor
    return losses.sum() / is_anchor.sum().clamp_min(1)
