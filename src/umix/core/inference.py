"""Inference of environments that are not labelled."""

import numpy as np
import torch
from torch import Tensor


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


def hardness(logits: Tensor, y: Tensor) -> Tensor:
    """The largest logit of another class minus that of ``y``, [n]: above 0 for examples that the classifier gets wrong.

    With one class nothing is hard: 0.

    >>> hardness(torch.tensor([[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]]), torch.tensor([0, 2]))
    tensor([-1.,  2.])
    """
    if logits.shape[1] < 2:
        return logits.new_zeros(len(y))
    own = y[:, None]
    return logits.scatter(1, own, -torch.inf).max(dim=1).values - logits.gather(1, own)[:, 0]
