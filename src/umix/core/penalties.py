"""Penalties on differences between environments.

Each is 0, with a finite gradient, if there are too few examples or environments to compare. What is
in half precision is compared in single, because sums over examples would be rounded or overflow.
"""

import torch
from torch import Tensor

from umix.core.precision import wide, widened


@widened
def irm(logits: Tensor, y: Tensor) -> Tensor:
    """Unbiased estimate of the squared gradient ‖∂_s risk(s·logits)‖² at s = 1, a scalar (Arjovsky et al. 2019, IRMv1).

    g₁·g₂ with g = mean(Σ_k softmax(z)_k z_k − z_y), the gradient in closed form, over the even and over the odd examples:
    independent halves make it unbiased, so it may be negative. One example has no second half: 0.

    >>> irm(torch.tensor([[0.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))  # the first row's gradient is 0
    tensor(0.)
    """
    gap = logits - logits.gather(1, y[:, None])  # z_k − z_y: as the probabilities sum to 1, nothing is lost
    slope = (logits.softmax(1) * gap).sum(1)
    even, odd = slope[::2], slope[1::2]
    return even.sum() * odd.sum() / max(len(even) * len(odd), 1)


@widened
def vrex(risks: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Variance of the ``risks`` [environments] around their mean, a scalar (Krueger et al. 2021, V-REx).

    mean (L_e − mean L)², without Bessel's correction. With ``present`` (bool [environments]), only these count.

    >>> vrex(torch.tensor([1.0, 3.0, 0.0]), present=torch.tensor([True, True, False]))
    tensor(1.)
    """
    if present is None:
        present = torch.ones_like(risks, dtype=torch.bool)
    count = present.sum().clamp_min(1)
    mean = risks.where(present, 0).sum() / count
    return (risks - mean).where(present, 0).square().sum() / count


@widened
def coral(features_a: Tensor, features_b: Tensor) -> Tensor:
    """Distance of the first two moments of two feature sets [batch, dims], a scalar (Sun and Saenko 2016, eq. 1).

    mean_d (μ_a − μ_b)² + mean_dd' (C_a − C_b)²: with the means, which the paper leaves out, and without its factor ¼.
    Covariances divide by n − 1; that of one example is 0. An empty set has no moments: the distance is 0.

    >>> coral(torch.tensor([[0.0], [2.0]]), torch.tensor([[4.0]]))  # (1 − 4)² + (2 − 0)²
    tensor(13.)
    """
    if not len(features_a) or not len(features_b):
        return features_a[:0].sum() + features_b[:0].sum()  # 0, and still a function of the features
    features_b = wide(features_b)
    mean_a, mean_b = features_a.mean(0), features_b.mean(0)
    covariances = _covariance(features_a - mean_a) - _covariance(features_b - mean_b)
    return (mean_a - mean_b).square().mean() + covariances.square().mean()


@widened
def bottleneck(features: Tensor) -> Tensor:
    """Variance of the ``features`` [batch, dims] over examples, averaged over dims (Ahuja et al. 2021, IB-IRM).

    Unbiased (n − 1) as in the released code; the variance of one example, or of none, is 0.

    >>> bottleneck(torch.tensor([[0.0, 1.0], [2.0, 1.0]]))
    tensor(1.)
    """
    n = len(features)
    centred = features - features.sum(0) / max(n, 1)
    return centred.square().sum(0).mean() / max(n - 1, 1)


def _covariance(centred: Tensor) -> Tensor:
    return centred.T @ centred / max(len(centred) - 1, 1)
