"""Which training examples an epoch visits, and in which order."""

import abc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from umix.data.task import Split


class Sampler(abc.ABC):
    """Gives the rows of the training split that one epoch visits, drawn from the epoch's own stream."""

    @abc.abstractmethod
    def size(self, split: Split) -> int:
        """How many visits an epoch has."""

    @abc.abstractmethod
    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        """The rows of one epoch, int64 [size]."""

    def at(self, progress: float) -> "Sampler":
        """The sampler of an epoch before which ``progress`` of the fit, from 0 to 1, is done; all must have the same size.

        Most samplers are the same in every epoch.
        """
        return self


@final
@dataclass(frozen=True)
class Shuffled(Sampler):
    """Every example once, in random order, which depends only on the number of examples and the stream."""

    def size(self, split: Split) -> int:
        return len(split)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        return torch.from_numpy(rng.permutation(len(split)))


@final
@dataclass(frozen=True, eq=False)
class SubsetSampler(Sampler):
    """Each of these rows once, in random order."""

    rows: Tensor  # int64

    def size(self, split: Split) -> int:
        return len(self.rows)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        return self.rows.cpu()[torch.from_numpy(rng.permutation(len(self.rows)))]


@final
@dataclass(frozen=True, eq=False)
class Growing(Sampler):
    """As many visits as there are examples, to the first rows of ``order``; how many of them, ``size_at`` says of the progress.

    They are visited in turn, each pass in another random order. Where all rows are among them it is ``Shuffled``, draw by draw.
    """

    order: Tensor  # [n] int64, every row once
    size_at: Callable[[float], int]
    progress: float = 0.0

    def size(self, split: Split) -> int:
        return len(split)

    def at(self, progress: float) -> Sampler:
        return replace(self, progress=progress)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        rows = np.sort(self.order.cpu().numpy()[: self.size_at(self.progress)])
        passes = [rows[rng.permutation(len(rows))] for _ in range(-(-len(split) // max(1, len(rows))))]
        return torch.from_numpy(np.concatenate([rows[:0], *passes])[: len(split)])


@final
@dataclass(frozen=True)
class FullBatchSampler(Sampler):
    """Every example ``times`` times, in order: with batches as large as the split these are ``times`` full-batch steps."""

    times: int

    def size(self, split: Split) -> int:
        return self.times * len(split)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        return torch.arange(len(split)).repeat(self.times)


@final
@dataclass(frozen=True, eq=False)
class Repeated(Sampler):
    """Example i ``copies[i]`` times, all shuffled; one copy of each is ``Shuffled``."""

    copies: Tensor  # [n] int64

    def size(self, split: Split) -> int:
        return int(self.copies.sum())

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        rows = torch.repeat_interleave(torch.arange(len(split)), self.copies.cpu())
        return rows[torch.from_numpy(rng.permutation(len(rows)))]


@final
@dataclass(frozen=True, eq=False)
class Weighted(Sampler):
    """As many draws as there are examples, with replacement, example i with probability proportional to ``weights[i]``."""

    weights: Tensor  # [n]

    def size(self, split: Split) -> int:
        return len(split)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        share = self.weights.cpu().double().numpy()
        return torch.from_numpy(rng.choice(len(split), size=len(split), p=share / share.sum()))


@final
@dataclass(frozen=True, eq=False)
class Balanced(Sampler):
    """As many visits as there are examples, the groups taking turns: the counts of groups in a batch differ by at most one.

    A group's examples are visited in random order, repeatedly where the group is small. Empty groups are skipped.
    """

    group: Tensor  # [n] int64

    def size(self, split: Split) -> int:
        return len(split)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        group = self.group.cpu().numpy()
        members = [np.flatnonzero(group == g) for g in np.flatnonzero(np.bincount(group))]
        turns = -(-len(split) // len(members))
        passes = [rng.permuted(np.tile(rows, (-(-turns // len(rows)), 1)), axis=1).ravel()[:turns] for rows in members]
        first = int(rng.integers(len(members)))  # else the same groups would be in excess at the end of every epoch
        return torch.from_numpy(np.stack(passes[first:] + passes[:first], axis=1).ravel()[: len(split)])


@final
@dataclass(frozen=True, eq=False)
class BalancedDraws(Sampler):
    """``Balanced`` for groups that are known with a probability: every epoch draws the group of each example, then balances.

    Where all groups are known it is ``Balanced``, draw by draw.
    """

    p: Tensor  # [n, groups], rows sum to 1

    def size(self, split: Split) -> int:
        return len(split)

    def draw(self, split: Split, rng: np.random.Generator) -> Tensor:
        ends = self.p.cpu().double().numpy().cumsum(axis=1)
        (child,) = rng.spawn(
            1
        )  # ``rng`` itself stays as it is, so that known groups are visited in the order of ``Balanced``
        group = (ends <= child.random((len(ends), 1)) * ends[:, -1:]).sum(axis=1)
        return Balanced(torch.from_numpy(group)).draw(split, rng)
