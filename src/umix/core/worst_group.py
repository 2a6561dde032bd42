"""One step of GroupDRO: group weights that follow the groups' risks, and the risk with these weights."""

import torch
from torch import Tensor

from umix.core.precision import widened


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
