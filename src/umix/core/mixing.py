"""Mixing pairs of examples, and the loss of mixed examples."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from umix.core.environments import indicators
from umix.core.losses import soft_cross_entropy, weighted_risk

#: A loss of every example, [batch], from logits and labels.
Loss = Callable[[Tensor, Tensor], Tensor]


def mix(x: Tensor, pair: Tensor, lam: float | Tensor, *, dim: int = 0) -> Tensor:
    """``lam * x + (1 - lam) * x[pair]`` (UMIX eq. 1); ``lam`` is one number or one per example, [batch].

    Examples are the dimension ``dim`` of ``x``.

    >>> mix(torch.tensor([[0.0], [4.0]]), torch.tensor([1, 0]), 0.75)
    tensor([[1.],
            [3.]])
    """
    partner = x.index_select(dim, pair)
    if isinstance(lam, Tensor):
        lam = lam.to(x).view(-1, *[1] * (x.dim() - dim - 1))
    # lerp is exact at lam = 0 and lam = 1. It may work in place, because index_select has made a copy.
    return torch.lerp(partner, x, lam) if x.requires_grad else partner.lerp_(x, lam)


def draw_lambda(
    n: int, *, sigma: float, alpha: float, per_example: bool, rng: np.random.Generator
) -> float | NDArray[np.float64] | None:
    """With probability ``sigma`` λ ~ Beta(alpha, alpha), else None: nothing is mixed.

    With ``per_example`` both are drawn for each of ``n`` examples, [n], and one that is not mixed has λ = 1; None if none is.

    >>> draw_lambda(8, sigma=0.0, alpha=0.5, per_example=False, rng=np.random.default_rng(0)) is None
    True
    """
    if not per_example:
        return rng.beta(alpha, alpha) if rng.random() < sigma else None
    mixes = rng.random(n) < sigma
    lam = np.where(mixes, rng.beta(alpha, alpha, n), 1.0)
    return lam if mixes.any() else None


def cutmix(x: Tensor, pair: Tensor, lam: float | Tensor, *, rng: np.random.Generator) -> tuple[Tensor, float | Tensor]:
    """Images [batch, …, H, W] with a box of ``x[pair]`` pasted in, and the share of the image that stayed.

    The box has sides √(1−lam)·(H, W) and a uniform centre and is clipped at the border; the returned lam is
    1 − box area / (H·W), the true share (Yun et al. 2019, eq. 2). With ``lam`` [batch], each example has its own box.
    """
    height, width = x.shape[-2:]
    size = (len(x),) if isinstance(lam, Tensor) else ()
    kept = np.asarray(lam.cpu() if isinstance(lam, Tensor) else lam, dtype=np.float64)
    top, bottom = _span(height, kept, rng, size)
    left, right = _span(width, kept, rng, size)
    true_lam = 1 - (bottom - top) * (right - left) / (height * width)
    if not isinstance(lam, Tensor):
        mixed = x.clone()
        mixed[..., top:bottom, left:right] = x.index_select(0, pair)[..., top:bottom, left:right]
        return mixed, float(true_lam)
    inside = _between(top, bottom, height, x)[:, :, None] & _between(left, right, width, x)[:, None, :]
    inside = inside.view(len(x), *[1] * (x.dim() - 3), height, width)
    dtype = x.dtype if x.is_floating_point() else lam.dtype  # whole-number images have lams too
    return torch.where(inside, x.index_select(0, pair), x), torch.as_tensor(true_lam).to(x.device, dtype)


def _span(
    side: int, kept: np.ndarray, rng: np.random.Generator, size: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    half = (side * np.sqrt(1 - kept)).astype(np.int64) // 2
    centre = rng.integers(side, size=size)
    return np.clip(centre - half, 0, side), np.clip(centre + half, 0, side)


def _between(low: np.ndarray, high: np.ndarray, side: int, like: Tensor) -> Tensor:
    at = torch.arange(side, device=like.device)
    return (at >= torch.as_tensor(low, device=like.device)[:, None]) & (
        at < torch.as_tensor(high, device=like.device)[:, None]
    )


def mixed_loss(logits: Tensor, y: Tensor, w: Tensor, pair: Tensor, lam: float | Tensor) -> Tensor:
    """Weighted mixup loss of inputs ``lam * x + (1 - lam) * x[pair]``, [batch] (UMIX eq. 4).

    >>> logits, y, w, pair = torch.zeros(2, 2), torch.tensor([0, 1]), torch.tensor([1.0, 3.0]), torch.tensor([1, 0])
    >>> mixed_loss(logits, y, w, pair, 0.5)  # (1 + 3) / 2 · log 2
    tensor([1.3863, 1.3863])
    """
    return torch.nn.functional.cross_entropy(logits, _mixed_labels(logits, y, w, pair, lam), reduction="none")


def mixed_risk(
    logits: Tensor,
    y: Tensor,
    w: Tensor | None,
    pair: Tensor | None,
    lam: float | Tensor | None,
    *,
    loss: Loss | None = None,
) -> Tensor:
    """The mean of ``mixed_loss`` over the batch, in as few operations as a plain cross-entropy; gradients are the same bits.

    Without ``w`` all weights are 1; without ``lam`` nothing was mixed, and it is the mean of the weighted losses. ``loss`` takes
    the place of the cross-entropy. For a stack of nets that share the batch, logits [members, batch, classes] and weights
    [batch, members], it is the sum over the members of the risk of each, so that the gradient of a member is that of its own risk.

    >>> logits, y, w, pair = torch.zeros(2, 2), torch.tensor([0, 1]), torch.tensor([1.0, 3.0]), torch.tensor([1, 0])
    >>> mixed_risk(logits, y, w, pair, 0.5)
    tensor(1.3863)
    """
    if loss is not None:
        return _risk_by(loss, logits, y, w, pair, lam)
    if logits.dim() == 3:
        return _risk_of_stack(logits, y, w, pair, lam)
    if lam is None or pair is None:
        return weighted_risk(logits, y, w)
    log_p = logits.log_softmax(dim=1)
    labels = _mixed_labels(log_p, y, w, pair, lam).mul_(-1 / len(y))
    return (log_p * labels).sum()


def _mixed_labels(like: Tensor, y: Tensor, w: Tensor | None, pair: Tensor, lam: float | Tensor) -> Tensor:
    """λ·w_i·e(y_i) + (1−λ)·w_j·e(y_j): weighted labels mixed as the inputs were, so that one log-softmax serves both terms."""
    labels = indicators(y, like.shape[1], like=like)
    if w is not None:
        labels = labels.mul_(w[:, None])
    return mix(labels, pair, lam)


def _risk_of_stack(
    logits: Tensor, y: Tensor, w: Tensor | None, pair: Tensor | None, lam: float | Tensor | None
) -> Tensor:
    members, n, n_classes = logits.shape
    w = logits.new_ones(n, members) if w is None else w
    targets = (w * (1 / n))[:, :, None] * indicators(y, n_classes, like=w)[:, None, :]  # [batch, members, classes]
    if lam is not None and pair is not None:
        targets = mix(targets, pair, lam)
    return soft_cross_entropy(logits.transpose(0, 1), targets)


def _risk_by(
    loss: Loss, logits: Tensor, y: Tensor, w: Tensor | None, pair: Tensor | None, lam: float | Tensor | None
) -> Tensor:
    """(w_i·λ·ℓ(x̃, y_i) + w_j·(1−λ)·ℓ(x̃, y_j)).mean() with any loss (UMIX eq. 4)."""
    losses = loss(logits, y)
    w = torch.ones_like(losses) if w is None else w
    if lam is None or pair is None:
        return (w * losses).mean()
    lam = torch.as_tensor(lam, dtype=losses.dtype, device=losses.device)
    return (lam * w * losses + (1 - lam) * w[pair] * loss(logits, y[pair])).mean()
