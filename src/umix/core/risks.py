"""Risks: one scalar for a batch, from the loss of each of its examples.

A robust risk is the largest weighted mean of the losses over a set of weights. It is computed as the
product of the maximising weights, which sum to 1 and carry no gradient, and the losses. By Danskin's
theorem these weights are the gradient, which is finite if the losses are. Second derivatives treat
them as constants. No value is read back from the device. A loss that is NaN makes every risk NaN.
"""

from functools import lru_cache
from math import isclose

import torch
from torch import Tensor

from umix.core.precision import wide, widened


def cvar(losses: Tensor, *, alpha: float) -> Tensor:
    """Mean of the worst ``alpha`` share of ``losses`` [batch], a scalar (Rockafellar and Uryasev 2000).

    max_q Σ q_i ℓ_i over weights 0 ≤ q_i ≤ 1/(alpha·batch): exact also where alpha·batch is not whole; ``alpha=1`` is the
    mean, alpha·batch ≤ 1 the maximum. Among equal losses at the border the choice is arbitrary.

    >>> cvar(torch.tensor([1.0, 4.0, 2.0, 3.0]), alpha=0.375)  # (4 + 3/2) / 1.5
    tensor(3.6667)
    """
    return cvar_doro(losses, alpha=alpha, epsilon=0.0)


def cvar_doro(losses: Tensor, *, alpha: float, epsilon: float) -> Tensor:
    """``cvar`` of the losses that are left without the ``epsilon`` share of largest ones (Zhai et al. 2021).

    Where epsilon·batch is not whole, the example at the border stays with the remaining fraction of its mass; the smallest
    loss always stays. ``alpha`` is a share of the mass that is left. ``epsilon=0`` is ``cvar``.

    A dropped loss adds nothing to value and gradient, even if it is infinite. A loss that is NaN is a fault and not an outlier:
    the risk is NaN.

    >>> cvar_doro(torch.tensor([9.0, 4.0, 2.0, 3.0]), alpha=0.5, epsilon=0.375)  # (4/2 + 3·3/4) / 1.25
    tensor(3.4000)
    """
    kept, order, first = _without_largest(losses, alpha, epsilon)
    return _weighted_sum(losses, order, _cvar_shares(len(kept), first, alpha, kept.dtype, kept.device))


def chi2(losses: Tensor, *, alpha: float) -> Tensor:
    """Largest mean of ``losses`` [batch] over a χ²-ball of weights, a scalar (Duchi and Namkoong 2021).

    min_η C·√(mean (ℓ−η)₊²) + η with C² = 1 + (1/alpha − 1)², which is max_q Σ q_i ℓ_i over weights with
    ½·mean (batch·q − 1)² ≤ ½(1/alpha − 1)². The q_i are in proportion to (ℓ_i − η)₊. Solved exactly, with one sort; ``alpha=1``
    is the mean, batch ≤ C² the maximum, where equal largest losses share the weight equally.

    >>> chi2(torch.tensor([0.0, 1.0, 2.0]), alpha=0.5)  # 3/2 + √(1/12)
    tensor(1.7887)
    """
    return chi2_doro(losses, alpha=alpha, epsilon=0.0)


def chi2_doro(losses: Tensor, *, alpha: float, epsilon: float) -> Tensor:
    """``chi2`` of the losses that are left without the ``epsilon`` share of largest ones (Zhai et al. 2021).

    A fractional epsilon·batch and losses that are infinite or NaN are treated as in ``cvar_doro``. ``epsilon=0`` is ``chi2``.

    >>> chi2_doro(torch.tensor([0.0, 1.0, 2.0, 9.0]), alpha=0.5, epsilon=0.25)
    tensor(1.7887)
    """
    kept, order, first = _without_largest(losses, alpha, epsilon)
    return _weighted_sum(losses, order, _chi2_shares(kept, first, alpha))


def group_risks(losses: Tensor, group: Tensor, *, n_groups: int) -> Tensor:
    """Mean loss of every group, [groups]; 0, with gradient 0, for a group without examples.

    >>> group_risks(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([2, 0, 0]), n_groups=3)
    tensor([3., 0., 1.])
    """
    losses = wide(losses)
    zeros = losses.new_zeros(n_groups)
    return zeros.index_add(0, group, losses) / zeros.index_add(0, group, torch.ones_like(losses)).clamp_min(1)


@widened
def worst_group_risk(
    losses: Tensor, member: Tensor, q: Tensor, *, step_size: float, margin: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Σ_g q_g·L_g, a scalar, with the new group weights q, [groups], which are also returned (Sagawa et al. 2020, Algorithm 1).

    ``member`` [batch, groups] says how much each example belongs to each group: 1 or 0, or its probability. With the sizes
    n_g = Σ_i member_ig the risks are L_g = Σ_i member_ig·ℓ_i / n_g. Groups with n_g > 0 get q_g ∝ q_g·exp(step_size·(L_g +
    margin_g)) and share the weight that they have had together; the others keep theirs, and have no part in the risk. As q
    carries no gradient, the risk is the sum of the losses with weights Σ_g member_ig·q_g/n_g.

    >>> member = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> risk, q = worst_group_risk(torch.tensor([0.0, 2.0]), member, torch.tensor([0.3, 0.3, 0.4]), step_size=1.0)
    >>> q  # 0.6/(1 + e²), 0.6·e²/(1 + e²), as before
    tensor([0.0715, 0.5285, 0.4000])
    >>> risk
    tensor(1.0570)
    """
    member = member.to(losses.dtype)
    sizes = member.sum(0)
    present = sizes > 0
    sizes.clamp_min_(torch.finfo(sizes.dtype).tiny)  # 0 of an absent group would make 0/0
    grown = (losses.detach() @ member).div_(sizes)
    if margin is not None:
        grown.add_(margin)
    held = q * present
    grown = grown.mul_(held.sign().mul_(step_size))  # a group without weight stays without, however large its risk is
    grown = grown.sub_(grown.amax()).exp_().mul_(held)  # a factor for all changes no share, and nothing overflows
    share = held.sum() / grown.sum().clamp_min_(torch.finfo(grown.dtype).tiny)
    q = torch.where(present, grown.mul_(share), q)
    return losses.dot(member @ (q / sizes)), q


def _chi2_shares(kept: Tensor, first: float, alpha: float) -> Tensor:
    """Weights of sorted losses; the first has mass ``first``, others 1."""
    # In double precision, because squares of single numbers overflow above 1.8e19; MPS does not have it.
    single = kept.dtype == torch.float32 and not kept.is_mps
    values = kept.double() if single else kept
    below = values - values[0]
    excess = (below - _chi2_threshold(below, first, alpha)).relu() if alpha < 1 else torch.ones_like(below)
    if first < 1:
        excess[0].mul_(first)
    shares = excess / excess.sum()
    return shares.float() if single else shares


def _chi2_threshold(below: Tensor, first: float, alpha: float) -> Tensor:
    """η of the dual, for losses sorted downwards with the largest shifted to 0; that one has mass ``first``, others 1.

    If the k largest losses are those above η, with mass S, mean μ and variance V, the optimum has (C²S/total − 1)·(μ−η)²
    = V. As k grows, the solution rises while the next loss lies above it and falls ever after: η is the largest.
    """
    per_mass, growth, reach, floor = _chi2_path(len(below), first, alpha, below.dtype, below.device)
    mean = below.cumsum(0) * per_mass
    gap = (below - mean) * growth
    scatter = torch.addcmul(floor, gap, gap).cumsum(0)  # S·V by its increments: sums of squares would cancel
    return torch.addcmul(mean, scatter.sqrt(), reach, value=-1).max()


# Cached between batches, because it depends only on positions in the sorted batch and would double the cost of a risk.
@lru_cache(maxsize=8)
def _cvar_shares(n: int, first: float, alpha: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Weights of sorted losses: the part of each loss's mass that lies in the first ``alpha`` share of all mass."""
    total = n - 1 + first
    worst = max(alpha * total, first)  # a smaller share would consist of the largest loss alone
    with torch.inference_mode(False):  # else a risk that was first used in inference mode could not be trained
        mass = torch.linspace(first, total, n, dtype=dtype, device=device).clamp_max(worst)
        return mass.diff(prepend=mass.new_zeros(1)) / worst


@lru_cache(maxsize=8)
def _chi2_path(n: int, first: float, alpha: float, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, ...]:
    """For the k largest losses, k = 1 … n: 1/S; √ of S/(S−1), by which S·V grows; (μ−η)/√(S·V); a floor for S·V."""
    total = n - 1 + first
    # In a larger ball the solution stays the maximum, so the radius is capped to keep numbers finite.
    spread = min((1 / alpha - 1) * (1 / alpha - 1), 2 * total / first)
    mass = torch.linspace(first, total, n, dtype=dtype, device=device)
    # C²S/total − 1, computed so that its last entry is exactly ``spread`` and does not round to 0.
    slack = torch.linspace(spread - (n - 1) * (1 + spread) / total, spread, n, dtype=dtype, device=device)
    growth = (mass / (mass - 1).clamp_min(first)).sqrt()  # the value at k = 1 has no effect: the first gap is 0
    # With too few losses (slack ≤ 0) there is no solution, and (μ−η)/√(S·V) is inf. The floor avoids inf · 0 for equal
    # losses. It also keeps η just below equal largest losses, so that they share the weight.
    floor = torch.full((), torch.finfo(dtype).tiny / torch.finfo(dtype).eps, dtype=dtype, device=device)
    return 1 / mass, growth, (mass * slack).clamp_min(0).rsqrt(), floor


def _without_largest(losses: Tensor, alpha: float, epsilon: float) -> tuple[Tensor, Tensor, float]:
    """The losses left, sorted downwards; their places in the batch; the mass of the first (the others have 1)."""
    n = len(losses)
    if not (0 < alpha <= 1 and 0 <= epsilon < 1 and n > 0):
        raise ValueError(f"alpha must lie in (0, 1], epsilon in [0, 1), got {alpha}, {epsilon} for {n} losses.")
    dropped = min(epsilon * n, n - 1)  # the smallest loss always stays
    # 0.29 · 100 is 28.999…, and no outlier may keep a mass of 1e-15
    if isclose(dropped, round(dropped), rel_tol=1e-12):
        dropped = round(dropped)
    whole = int(dropped)
    if not whole:
        return *wide(losses.detach()).sort(descending=True), 1 - dropped
    values, order = wide(losses.detach()).neg().sort()  # NaN comes last, so that it is not dropped
    return values[whole:].neg(), order[whole:], 1 - (dropped - whole)


def _weighted_sum(losses: Tensor, order: Tensor, shares: Tensor) -> Tensor:
    """The sum of the losses at the places ``order``, with weights ``shares``; others are not touched: 0 · inf would be NaN."""
    if len(order) < len(losses):
        return wide(losses).index_select(0, order).dot(shares)
    return wide(losses).dot(shares.scatter(0, order, shares))
