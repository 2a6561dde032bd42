"""Counts of correct predictions. Unlike accuracies, counts add over batches, shards and ranks."""

import torch
from torch import Tensor

_EXACT = 2**24  # float32 holds every whole number up to here


def group_counts(correct: Tensor, member: Tensor) -> tuple[Tensor, Tensor]:
    """Hits and sizes of every group, two int64 [groups]; ``member`` is [n, groups]: groups may overlap or be empty.

    ``member`` may be float32, which saves the conversion when it is used many times.

    >>> group_counts(torch.tensor([True, False, True]), torch.tensor([[1, 0], [1, 1], [0, 1]]).bool())
    (tensor([1, 1]), tensor([2, 2]))
    """
    if len(correct) != len(member):
        raise ValueError(f"correct and member must be about the same examples, got {len(correct)} and {len(member)}.")
    total = torch.zeros(2, member.shape[1], dtype=torch.int64, device=member.device)
    with torch.autocast(member.device.type, enabled=False):  # autocast would round the counts to 8 bits
        for rows in range(0, len(correct), _EXACT):
            hit = correct[rows : rows + _EXACT].float()
            total += (torch.stack([hit, torch.ones_like(hit)]) @ member[rows : rows + _EXACT].float()).long()
    return total[0], total[1]


def class_counts(correct: Tensor, y: Tensor, *, n_classes: int) -> tuple[Tensor, Tensor]:
    """Hits and sizes of every class, two int64 [classes]; classes are disjoint, so no matrix is needed.

    >>> class_counts(torch.tensor([True, False, True]), torch.tensor([0, 0, 2]), n_classes=3)
    (tensor([1, 0, 1]), tensor([2, 0, 1]))
    """
    return torch.bincount(y[correct.bool()], minlength=n_classes), torch.bincount(y, minlength=n_classes)


def confusion_counts(
    prediction: Tensor, y: Tensor, rows: Tensor, groups: Tensor, *, n_groups: int, n_classes: int
) -> Tensor:
    """How often class y was predicted as class p in each group, int64 [groups + 1, classes, classes]; the last is all examples.

    Example ``rows[k]`` belongs to group ``groups[k]``: the pairs of a membership matrix, whose groups may overlap.

    >>> prediction, y = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])
    >>> confusion_counts(prediction, y, torch.tensor([0, 1]), torch.tensor([0, 0]), n_groups=1, n_classes=2).tolist()
    [[[1, 1], [0, 0]], [[1, 1], [0, 1]]]
    """
    cells = n_classes * n_classes
    cell = y * n_classes + prediction
    by_group = torch.bincount(groups * cells + cell.index_select(0, rows), minlength=n_groups * cells)
    together = torch.bincount(cell, minlength=cells)
    return torch.cat([by_group, together]).view(n_groups + 1, n_classes, n_classes)


def class_composition(y: Tensor, pairs: tuple[Tensor, Tensor], *, n_groups: int, n_classes: int) -> Tensor:
    """How many examples of each class each group has, int64 [groups, classes]; ``pairs`` are memberships: rows and groups.

    >>> class_composition(torch.tensor([1, 0]), (torch.tensor([0, 1]), torch.tensor([2, 0])), n_groups=3, n_classes=2).tolist()
    [[1, 0], [0, 0], [0, 1]]
    """
    rows, groups = pairs
    cell = groups * n_classes + y.index_select(0, rows)
    return torch.bincount(cell, minlength=n_groups * n_classes).view(n_groups, n_classes)
