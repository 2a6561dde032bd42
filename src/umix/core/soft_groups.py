"""Groups that are known with a probability: sizes and balancing weights of soft groups.

``p`` [n, groups] has the probability of every group for every example; its rows sum to 1. Where each row has a single 1, sizes and
weights are those of ``core.weights`` for groups that are known. Their risks are in ``core.worst_group``.
"""

import torch
from torch import Tensor

from umix.core.weights import normalized


def one_hot(ids: Tensor, *, n_groups: int) -> Tensor:
    """Groups that are known, as probabilities, float64 [n, groups]; an id of -1 gives a row of zeros.

    >>> one_hot(torch.tensor([1, -1]), n_groups=2).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return (ids[:, None] == torch.arange(n_groups, device=ids.device)).double()


def soft_sizes(p: Tensor, *, by: Tensor | None = None) -> Tensor:
    """n_g = Σ_i p_ig, the expected number of examples of each group, float64 [groups].

    With ``by`` [n], an example counts as that many copies.

    >>> soft_sizes(torch.tensor([[1.0, 0.0], [0.25, 0.75]])).tolist()
    [1.25, 0.75]
    """
    return p.double().sum(0) if by is None else by.double() @ p.double()


def soft_inverse_frequency(p: Tensor, *, power: float = 1.0, by: Tensor | None = None) -> Tensor:
    """Weights Σ_g p_ig·n_g^(−power), [n], scaled to mean 1; groups of size 0 add nothing.

    With ``power=1`` every group has the same expected total weight, with 0 every example has weight 1.
    With ``by`` [n], sizes and the mean count each example as that many copies.

    >>> soft_inverse_frequency(torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    tensor([0.6667, 0.6667, 0.6667, 2.0000])
    """
    return _balancing(p, soft_sizes(p, by=by) ** -power, by)


def soft_effective_number(p: Tensor, *, beta: float, power: float = 1.0, by: Tensor | None = None) -> Tensor:
    """Weights Σ_g p_ig·((1−beta)/(1−beta^n_g))^power, [n], scaled to mean 1 (Cui et al. 2019 for soft groups).

    >>> soft_effective_number(torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), beta=0.5)
    tensor([0.8421, 0.8421, 0.8421, 1.4737])
    """
    if not 0 <= beta < 1:
        raise ValueError(f"beta must lie in [0, 1), got {beta}.")
    return _balancing(p, ((1 - beta) / (1 - beta ** soft_sizes(p, by=by))) ** power, by)


def balanced_posterior(p: Tensor) -> Tensor:
    """The probabilities of the groups of an example that was drawn with all groups equally likely, [n, groups].

    By Bayes' rule r_ig ∝ p_ig/n_g. A mean that is weighted with r over such draws estimates the mean that is weighted with p over
    all examples. Groups that are known stay as they are.

    >>> balanced_posterior(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])).float()[2]  # sizes 2.5 and 0.5
    tensor([0.1667, 0.8333])
    """
    sizes = soft_sizes(p)
    odds = p.double() * (1 / sizes).where(sizes > 0, 0.0)
    return odds / odds.sum(1, keepdim=True)


def _balancing(p: Tensor, per_group: Tensor, by: Tensor | None) -> Tensor:
    """The expected weight of each example, scaled to mean 1, where an example of group g has the weight ``per_group[g]``."""
    w = p.double() @ per_group.where(per_group.isfinite(), 0.0)
    return normalized(w, by=None if by is None else by.double()).float()
