"""Uncertainty of training examples, and importance weights from uncertainty or from class and group sizes.

Groups may be known with a probability only: ``p`` [n, groups] then has the probability of every group for every example, and its
rows sum to 1. Where each row has a single 1, the ``soft_`` sizes and weights are those of groups that are known.
"""

import torch
from torch import Tensor


def uncertainty(correct: Tensor, *, start: int, length: int) -> Tensor:
    """Share of epochs ``start … start+length-1`` in which each example was misclassified, [n] (UMIX eq. 6).

    ``correct`` is [n, epochs] in {0, 1}; NaN means "not recorded" and raises ValueError if it is in the window.
    The paper's sum runs over length+1 terms and divides by length; here the window has exactly ``length`` epochs.

    >>> import torch
    >>> uncertainty(torch.tensor([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]]), start=0, length=4)
    tensor([0.2500, 0.7500])
    """
    if start < 0 or length < 1:
        raise ValueError(f"The window must have start >= 0 and length >= 1, got start={start} and length={length}.")
    window = correct[:, start : start + length].float()
    if window.shape[1] < length or window.isnan().any():
        raise ValueError(
            f"correct must hold every example for epochs {start}..{start + length - 1}, got {correct.shape[1]} epochs "
            f"with {int(window.isnan().sum())} missing predictions in the window."
        )
    return 1 - window.mean(dim=1)


def importance_weights(u: Tensor, *, eta: float, c: float = 1.0) -> Tensor:
    """``eta * u + c``, [n] (UMIX eq. 7).

    >>> import torch
    >>> importance_weights(torch.tensor([0.0, 0.5]), eta=20.0)
    tensor([ 1., 11.])
    """
    if u.isnan().any():
        raise ValueError(f"u must hold no NaN, got {int(u.isnan().sum())} of {len(u)}.")
    return eta * u + c


def class_means(u: Tensor, y: Tensor, *, sample_weight: Tensor | None = None) -> Tensor:
    """The mean of ``u`` over the class of each example, [n]: uncertainty of classes instead of examples.

    With ``sample_weight`` [n], an example counts as that many copies; a class without copies has the mean 0.

    >>> import torch
    >>> class_means(torch.tensor([0.0, 1.0, 0.5]), torch.tensor([0, 0, 2]))
    tensor([0.5000, 0.5000, 0.5000])
    """
    n_classes = int(y.max()) + 1 if len(y) else 0
    each = u.double() if sample_weight is None else sample_weight * u.double()
    total = torch.zeros(n_classes, dtype=torch.float64).index_add_(0, y, each)
    if sample_weight is None:
        return (total / torch.bincount(y).clamp(min=1))[y].to(u)
    size = torch.bincount(y, weights=sample_weight.double())
    return (total / size.where(size > 0, 1.0))[y].to(u)


def cells(u: Tensor, y: Tensor) -> Tensor:
    """The cell of each example, int64 [n]: its class, and whether it was wrong (``u`` at least 1/2) or right.

    >>> import torch
    >>> cells(torch.tensor([0.0, 0.5, 1.0]), torch.tensor([0, 0, 1]))
    tensor([0, 1, 3])
    """
    return 2 * y + (u >= 0.5)


def normalized(w: Tensor, *, sample_weight: Tensor | None = None) -> Tensor:
    """Weights ``w`` scaled to mean 1, so that their size does not change the effective learning rate.

    With ``sample_weight`` [n], the mean counts each example as that many copies. Weights whose sum is not
    positive and finite cannot be scaled and raise ValueError; an empty ``w`` is returned as it is.

    >>> import torch
    >>> normalized(torch.tensor([1.0, 3.0]))
    tensor([0.5000, 1.5000])
    """
    if not len(w):
        return w
    total = w.sum() if sample_weight is None else (sample_weight * w).sum()
    if not 0 < total < torch.inf:
        raise ValueError(f"Weights must have a positive, finite sum to be normalised, got {float(total)}.")
    return w / w.mean() if sample_weight is None else w * (sample_weight.sum() / total)


def inverse_frequency(ids: Tensor, *, power: float = 1.0, sample_weight: Tensor | None = None) -> Tensor:
    """Weights size^(−power) by the size of each example's class or group, [n], of mean 1.

    With ``power=1`` every class or group that has examples has the same total weight, with ``power=0`` every example.
    With ``sample_weight`` [n], sizes and totals count each example as that many copies.

    >>> import torch
    >>> inverse_frequency(torch.tensor([0, 0, 0, 2]))
    tensor([0.6667, 0.6667, 0.6667, 2.0000])
    """
    sizes = _sizes(ids, sample_weight)[ids.cpu()]
    return _scaled(1 / sizes if power == 1 else sizes**-power, sample_weight).to(ids.device)


def inverse_frequency_within(ids: Tensor, y: Tensor, *, power: Tensor) -> Tensor:
    """Weights size^(−power) by the size of each example's cluster, scaled so that all classes have the same total, [n], of mean 1.

    ``ids`` [n] are the clusters, none of which has examples of two classes, and ``power`` [classes] may differ between classes.
    With power 0 all examples of a class weigh the same, with power 1 all its clusters.

    >>> import torch
    >>> ids, y = torch.tensor([0, 0, 0, 1, 2, 2]), torch.tensor([0, 0, 0, 0, 1, 1])
    >>> inverse_frequency_within(ids, y, power=torch.tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000, 0.5000, 1.5000, 1.5000, 1.5000])
    """
    w = _sizes(ids, None)[ids] ** -power.double()[y]
    total = torch.zeros(len(power), dtype=torch.float64).index_add_(0, y, w)
    return normalized(w / total[y]).float()


def effective_number(ids: Tensor, *, beta: float, power: float = 1.0, sample_weight: Tensor | None = None) -> Tensor:
    """Weights (1−beta)/(1−beta^size) by the size of each example's class or group, [n], of mean 1 (Cui et al. 2019).

    With ``sample_weight`` [n], sizes count each example as that many copies. ``power`` is applied to the weights before they
    are scaled. ``beta=0`` gives all examples the same weight; as ``beta`` goes to 1 this becomes ``inverse_frequency``.

    >>> import torch
    >>> effective_number(torch.tensor([0, 0, 0, 2]), beta=0.5)  # 4/7, 4/7, 4/7 and 1, over their mean
    tensor([0.8421, 0.8421, 0.8421, 1.4737])
    """
    if not 0 <= beta < 1:
        raise ValueError(f"beta must lie in [0, 1), got {beta}.")
    weights = (1 - beta) / (1 - beta ** _sizes(ids, sample_weight)[ids.cpu()])
    return _scaled(weights if power == 1 else weights**power, sample_weight).to(ids.device)


def _sizes(ids: Tensor, sample_weight: Tensor | None) -> Tensor:
    """The size of every class or group, float64, on the host: not every device has float64."""
    return torch.bincount(ids.cpu(), weights=None if sample_weight is None else sample_weight.cpu().double()).double()


def _scaled(w: Tensor, sample_weight: Tensor | None) -> Tensor:
    """``w`` scaled to mean 1, as float32; examples of classes without copies, whose ``w`` is infinite, get weight 0."""
    if sample_weight is None:
        return normalized(w).float()
    return normalized(w.where(w.isfinite(), 0.0), sample_weight=sample_weight.cpu().double()).float()


def effective_sample_size(w: Tensor) -> float:
    """The number of equally weighted examples that estimate as well as these: (Σw)² / Σw².

    0 if there are none or all weights are 0; NaN if a weight is infinite or NaN.

    >>> import torch
    >>> effective_sample_size(torch.tensor([2.0, 2.0, 2.0]))
    3.0
    """
    w = w.double()
    return float(w.sum() ** 2 / w.square().sum()) if w.any() else 0.0


def relative_difficulty(biased: Tensor, debiased: Tensor) -> Tensor:
    """``biased / (biased + debiased)`` of two losses per example, in [0, 1] (Nam et al. 2020).

    1/2 where both are 0; NaN where one is NaN or ``biased`` is infinite.

    >>> import torch
    >>> relative_difficulty(torch.tensor([3.0, 0.0, 0.0]), torch.tensor([1.0, 1.0, 0.0]))
    tensor([0.7500, 0.0000, 0.5000])
    """
    total = biased + debiased
    return (biased / total).where(total != 0, 0.5)


def one_hot(ids: Tensor, *, n_groups: int) -> Tensor:
    """Groups that are known, as probabilities, float64 [n, groups]; an id of -1 gives a row of zeros.

    >>> one_hot(torch.tensor([1, -1]), n_groups=2).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    return (ids[:, None] == torch.arange(n_groups, device=ids.device)).double()


def soft_sizes(p: Tensor, *, sample_weight: Tensor | None = None) -> Tensor:
    """n_g = Σ_i p_ig, the expected number of examples of each group, float64 [groups].

    With ``sample_weight`` [n], an example counts as that many copies.

    >>> soft_sizes(torch.tensor([[1.0, 0.0], [0.25, 0.75]])).tolist()
    [1.25, 0.75]
    """
    return p.double().sum(0) if sample_weight is None else sample_weight.double() @ p.double()


def soft_inverse_frequency(p: Tensor, *, power: float = 1.0, sample_weight: Tensor | None = None) -> Tensor:
    """Weights Σ_g p_ig·n_g^(−power), [n], scaled to mean 1; groups of size 0 add nothing.

    With ``power=1`` every group has the same expected total weight, with 0 every example has weight 1.
    With ``sample_weight`` [n], sizes and the mean count each example as that many copies.

    >>> soft_inverse_frequency(torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    tensor([0.6667, 0.6667, 0.6667, 2.0000])
    """
    return _balancing(p, soft_sizes(p, sample_weight=sample_weight) ** -power, sample_weight)


def soft_effective_number(p: Tensor, *, beta: float, power: float = 1.0, sample_weight: Tensor | None = None) -> Tensor:
    """Weights Σ_g p_ig·((1−beta)/(1−beta^n_g))^power, [n], scaled to mean 1 (Cui et al. 2019 for soft groups).

    >>> soft_effective_number(torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), beta=0.5)
    tensor([0.8421, 0.8421, 0.8421, 1.4737])
    """
    if not 0 <= beta < 1:
        raise ValueError(f"beta must lie in [0, 1), got {beta}.")
    return _balancing(
        p, ((1 - beta) / (1 - beta ** soft_sizes(p, sample_weight=sample_weight))) ** power, sample_weight
    )


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


def _balancing(p: Tensor, per_group: Tensor, sample_weight: Tensor | None) -> Tensor:
    """The expected weight of each example, scaled to mean 1, where an example of group g has the weight ``per_group[g]``."""
    w = p.double() @ per_group.where(per_group.isfinite(), 0.0)
    return normalized(w, sample_weight=None if sample_weight is None else sample_weight.double()).float()
