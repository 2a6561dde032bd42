"""Mean risks and penalties over the environments of one batch, for all environments at once; environments that are inferred.

Means are over the environments that have examples in the batch. There is no loop over environments,
and no value is read back from the device. An environment with too few examples for a penalty has
penalty 0. On small nets the cost of a penalty is its number of operations. Therefore every function
computes its gradient together with its value, from the formula in its docstring; it can be
differentiated once.

Half precision is too coarse for counts and sums over examples: from logits, losses or features in
half precision values are computed in single, and gradients come back in half.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, final

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import nll_loss

from umix.core.penalties import MMD_SCALES
from umix.core.precision import wide, widened

P = ParamSpec("P")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Environments:
    """The environments of a batch: ``member`` [batch, environments] is 1 for the examples of an environment, else 0."""

    member: Tensor
    sizes: Tensor  # [environments]
    count: Tensor  # number of environments that have examples, a whole number


def indicators(ids: Tensor, n: int, *, like: Tensor) -> Tensor:
    """Row i is 1 at ``ids[i]`` and 0 elsewhere, [batch, n], in the number format of ``like``.

    >>> indicators(torch.tensor([1, 0]), 2, like=torch.zeros(1))
    tensor([[0., 1.],
            [1., 0.]])
    """
    return _identity(n, like.dtype, like.device).index_select(0, ids)


def environments(group: Tensor, *, n_groups: int, like: Tensor) -> Environments:
    """The environments of a batch whose examples have ids ``group`` [batch], in the number format of ``like``, at least single.

    >>> environments(torch.tensor([2, 0, 0]), n_groups=3, like=torch.zeros(3)).sizes
    tensor([2., 0., 1.])
    """
    member = indicators(group, n_groups, like=wide(like))
    sizes = member.sum(0)
    return Environments(member, sizes, sizes.count_nonzero())


def _differentiated(
    formula: Callable[Concatenate[Tensor, P], tuple[Tensor, Tensor]],
) -> Callable[Concatenate[Tensor, P], Tensor]:
    """A differentiable function from a ``formula`` that returns a scalar and its gradient by the first argument."""

    @wraps(formula)
    @widened
    def scalar(x: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> Tensor:
        value: Tensor = _WithGradient.apply(x, formula, args, kwargs)  # type: ignore[no-untyped-call]
        return value

    return scalar


@final
class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, formula: Callable[..., tuple[Tensor, Tensor]], args: Any, kwargs: Any) -> Tensor:
        value, gradient = formula(x, *args, **kwargs)
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * outer, None, None, None


@widened
def vrex_risk(losses: Tensor, among: Environments, *, weight: float = 1.0, penalty: float) -> Tensor:
    """``weight``·mean_e L_e + ``penalty``·mean_e (L_e − L̄)² of ``losses`` [batch], a scalar (Krueger et al. 2021, V-REx).

    As the variance is mean_e 2(L_e − L̄)·L_e less itself, the risk is the loss with weights (weight + 2·penalty·(L_e − L̄)) /
    (environments·size of e), less a constant; the weights carry no gradient.

    >>> losses = torch.tensor([1.0, 2.0, 4.0])
    >>> vrex_risk(losses, environments(torch.tensor([2, 0, 0]), n_groups=3, like=losses), penalty=10.0)  # 2 + 10·1
    tensor(12.)
    """
    share = _share(among)
    parts = (losses.detach() @ among.member).mul_(share)  # L_e / environments: they sum to L̄; 0 without examples
    above = parts * among.count - parts.sum()
    variance = above.dot(parts)
    weights = among.member @ above.mul_(2 * penalty).add_(weight).mul_(share)
    return torch.sub(losses.dot(weights), variance, alpha=penalty)


@_differentiated
def irm_risk(
    logits: Tensor, y: Tensor, among: Environments, *, weight: float = 1.0, penalty: float
) -> tuple[Tensor, Tensor]:
    """``weight``·mean_e L_e + ``penalty``·mean_e g_e·h_e, a scalar (Arjovsky et al. 2019, IRMv1).

    g and h are the means of the examples' scale gradients d = Σ_k p_k z_k − z_y, p = softmax(z), over the even and over the odd
    places within an environment, as in ``penalties.irm``. With log p for z, which changes nothing, d is the loss less the
    entropy. ∂ℓ = p − 1_y and ∂d = ∂ℓ + p·(log p + entropy); an even example's d weighs h_e / (environments·even places of e).

    >>> logits, y = torch.tensor([[0.0, 0.0], [2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 0, 1])
    >>> among = environments(torch.tensor([0, 1, 1]), n_groups=2, like=logits)
    >>> irm_risk(logits, y, among, penalty=0.0)  # (log 2 + log(1 + e⁻²) + 1) / 2
    tensor(0.9100)
    """
    member = among.member
    log_p = logits.log_softmax(1)
    p = log_p.exp()
    p_log_p = p * log_p
    minus_entropy = p_log_p.sum(1)
    losses = nll_loss(log_p, y, reduction="none")
    d = losses + minus_entropy
    even = member.cumsum(0).fmod_(2).mul_(member)
    halves = among.sizes.square().div_(4, rounding_mode="floor")  # ⌈n/2⌉·⌊n/2⌋
    pairs = halves.clamp_min_(1).mul_(among.count)
    g = d @ even
    h = (d @ member).sub_(g)
    on_odd, on_even = g / pairs, h / pairs
    average = member @ _share(among).mul_(weight)
    value = torch.add(losses.dot(average), on_odd.dot(h), alpha=penalty)
    on_d = (member @ on_odd).addmv_(even, on_even.sub_(on_odd)).mul_(penalty)[:, None]
    gradient = (p - indicators(y, p.shape[1], like=p)).mul_(on_d + average[:, None])
    return value, gradient.addcmul_(p_log_p.addcmul_(p, minus_entropy[:, None], value=-1), on_d)


@_differentiated
def mean_bottleneck(features: Tensor, among: Environments) -> tuple[Tensor, Tensor]:
    """Mean over environments of the variance of ``features`` [batch, dims], averaged over dims, a scalar (Ahuja et al. 2021).

    Variances divide by n − 1. With the centred features c the gradient is G = 2c / (environments·dims·(n − 1)), the value ½·Σ G·c.

    >>> features = torch.tensor([[0.0], [2.0], [5.0]])
    >>> mean_bottleneck(features, environments(torch.tensor([0, 0, 1]), n_groups=2, like=features))  # (2 + 0) / 2
    tensor(1.)
    """
    centred = torch.addmm(features, among.member, _averaging(among).T @ features, alpha=-1)
    per_square = (among.sizes - 1).clamp_min_(1).mul_(among.count).reciprocal_().mul_(2 / features.shape[1])
    gradient = centred * (among.member @ per_square)[:, None]
    return gradient.flatten().dot(centred.flatten()).mul_(0.5), gradient


@_differentiated
def mean_coral(features: Tensor, among: Environments) -> tuple[Tensor, Tensor]:
    """Mean over pairs of environments of ``penalties.coral``, a scalar; 0 where there are no pairs.

    The sum over pairs of ‖m_i − m_j‖² is the number of environments times Σ ‖m_i − m̄‖², for means and for covariances.
    Covariances are never formed: with centred features c, divided by √(n − 1), the products K_ab = c_a·c_b are enough:
    Σ_i ‖C_i − C̄‖² = Σ_ab S_ab K_ab², S_ab = 1[a and b are in one environment] − 1/environments.
    Its gradient in c is 4·(S∘K)c.

    >>> features = torch.tensor([[0.0], [2.0], [4.0]])
    >>> mean_coral(features, environments(torch.tensor([0, 0, 1]), n_groups=2, like=features))  # (1 − 4)² + (2 − 0)²
    tensor(13.)
    """
    member, sizes, count = among.member, among.sizes, among.count.to(features.dtype)
    width = features.shape[1]
    averaging = _averaging(among)
    means = averaging.T @ features
    apart = (means - means.sum(0) / count).mul_(sizes.sign()[:, None])
    root = (member @ (sizes - 1).clamp_min_(1).rsqrt_())[:, None]
    c = torch.addmm(features, member, means, alpha=-1).mul_(root)
    products = c @ c.T
    weighted = torch.addmm(count.reciprocal(), member, member.T, beta=-1).mul_(products)
    between = apart.flatten().dot(apart.flatten())
    within = weighted.flatten().dot(products.flatten()).clamp_min_(0)
    scale = (count - 1).clamp_min_(1).reciprocal_().mul_(2 / width)  # 2 / (environments − 1) is environments / pairs
    gradient = (weighted @ c).mul_(root).addmm_(averaging, apart, beta=2 / width)
    return torch.add(between, within, alpha=1 / width).mul_(scale), gradient.mul_(scale.mul(2))


@_differentiated
def mean_mmd(features: Tensor, among: Environments) -> tuple[Tensor, Tensor]:
    """Mean over pairs of environments of ``penalties.mmd``, a scalar; 0 where there are no pairs.

    With k_ab = Σ_c exp(−c·‖x_a − x_b‖²) it is Σ_ab W_ab k_ab, where W_ab = 2/(environments − 1)·(1[a and b are in one
    environment] − 1/environments) / (n_a·n_b) and n_a is the size of the environment of a. The gradient in x_a is
    4·Σ_b W_ab k'_ab (x_a − x_b) with the derivative k' = −Σ_c c·exp(−c·d²).

    >>> features = torch.tensor([[0.0], [0.0], [30000.0]])
    >>> mean_mmd(features, environments(torch.tensor([0, 0, 1]), n_groups=2, like=features))  # 7 + 7 − 2·0
    tensor(14.)
    """
    count, per_size = among.count.to(features.dtype), _averaging(among)
    x = features - features.mean(0)  # distances stay as they are, and their difference of squares loses less
    squared = x.square().sum(1)
    distance = torch.addmm(squared[:, None] + squared, x, x.T, alpha=-2).clamp_min_(0).fill_diagonal_(0)
    scales = _mmd_scales(features.dtype, features.device)
    parts = torch.outer(scales, distance.flatten()).neg_().exp_()
    mean = per_size.sum(1)
    weights = (per_size @ per_size.T).sub_(torch.outer(mean, mean / count))
    weights.mul_(2 / (count - 1).clamp_min_(1))
    value = weights.flatten().dot(parts.sum(0)).clamp_min_(0)
    slope = (scales @ parts).view_as(weights).mul_(weights).mul_(-4)
    return value, torch.addmm(x * slope.sum(1)[:, None], slope, x, alpha=-1)


def infer_environments(logits: Tensor, y: Tensor, *, steps: int, lr: float, rng: np.random.Generator) -> Tensor:
    """The environment, 0 or 1, of every example, int64 [n], that a fixed classifier is least invariant over (Creager et al. 2021).

    Ascends the IRMv1 penalties of two environments with soft assignments q, (1/n Σ q_i d_i)² + (1/n Σ (1−q_i) d_i)², where
    d_i = Σ_k softmax(z)_k z_k − z_y is the derivative of example i's loss in the scale of its logits; then splits at q = ½.
    With S = Σ d_i fixed this is convex in Σ q_i d_i, so at the maximum one environment holds every d_i > 0, the other every
    d_i < 0. Environment 1 is the one with the larger Σ d_i, where the classifier fails and larger logits would raise the loss.

    >>> logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 1.0]])
    >>> infer_environments(logits, torch.tensor([0, 1, 1, 0]), steps=100, lr=0.1, rng=np.random.default_rng(0))
    tensor([0, 1, 0, 1])
    """
    logits = logits.detach().cpu().double()  # not every device has float64
    gap = logits - logits.gather(1, y.cpu()[:, None])  # z_k − z_y: as the probabilities sum to 1, nothing is lost
    slope = (logits.softmax(1) * gap).sum(1)
    # Scaling the penalty does not move its maximum. Without scaling, gradients below Adam's ε would leave the
    # assignments at their random start.
    slope = slope / slope.abs().mean().clamp_min(torch.finfo(slope.dtype).tiny)
    assignment = torch.from_numpy(rng.standard_normal(len(y))).to(slope).requires_grad_()
    optimizer = torch.optim.Adam([assignment], lr=lr, maximize=True)
    for _ in range(steps):
        inside = assignment.sigmoid() @ slope
        penalty = inside.square() + (slope.sum() - inside).square()
        (assignment.grad,) = torch.autograd.grad(penalty, assignment)
        optimizer.step()
    environment = assignment.detach() > 0
    swapped = slope[environment].sum() < slope[~environment].sum()
    return (environment ^ swapped).long().to(y.device)


def _share(among: Environments) -> Tensor:
    """Weights [environments] with which sums over examples add up to the mean over environments of their means."""
    return (among.sizes * among.count).clamp_min_(1).reciprocal_()


def _averaging(among: Environments) -> Tensor:
    """Weights [batch, environments] with which the examples of each environment sum to its mean."""
    return among.member / among.sizes.clamp_min(1)


# Cached between batches: making it takes a noticeable part of a small net's step.
@lru_cache(maxsize=8)
def _identity(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.eye(n, dtype=dtype, device=device)


@lru_cache(maxsize=8)
def _mmd_scales(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(MMD_SCALES, dtype=dtype, device=device)
