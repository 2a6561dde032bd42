"""How often a model is right in every group, from predictions that people made themselves."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, distributed

from umix.adapters.given_groups import cells
from umix.adapters.missing_values import as_array, is_missing
from umix.core.counts import group_counts as counts_of
from umix.core.rates import per_group, worst
from umix.core.statistics import wilson
from umix.data.groups import Groups
from umix.errors import UserError


@final
@dataclass(frozen=True, eq=False)
class GroupCounts:
    """``hits`` of ``sizes`` examples of every group in ``names``, and ``all_hits`` of all ``n`` examples.

    Counts of batches, or of parts of a test set, are added with ``+`` or ``sum``: groups are matched by their names.
    """

    names: tuple[str, ...]
    hits: NDArray[np.int64]
    sizes: NDArray[np.int64]
    all_hits: int
    n: int

    @property
    def rates(self) -> dict[str, float]:
        """The accuracy of every group; NaN for one without examples."""
        return dict(zip(self.names, per_group(self.hits, self.sizes).tolist(), strict=True))

    @property
    def average(self) -> float:
        """The accuracy on all examples, also those whose group is not known."""
        return self.all_hits / self.n if self.n else float("nan")

    @property
    def worst(self) -> float:
        """The lowest accuracy among the groups that have examples."""
        return worst(self.hits, self.sizes)

    def __add__(self, other: "GroupCounts") -> "GroupCounts":
        names = tuple(dict.fromkeys((*self.names, *other.names)))
        hits, sizes = np.zeros(len(names), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
        for part in (self, other):
            at = [names.index(name) for name in part.names]
            hits[at] += part.hits
            sizes[at] += part.sizes
        return GroupCounts(names, hits, sizes, self.all_hits + other.all_hits, self.n + other.n)

    def __radd__(self, other: int) -> "GroupCounts":
        return self if other == 0 else NotImplemented  # sum begins with 0

    def gather(self) -> "GroupCounts":
        """In several processes (``torch.distributed``): the counts of all of them together; in one process these."""
        if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() == 1:
            return self
        parts: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(parts, (self.names, self.hits, self.sizes, self.all_hits, self.n))
        total = GroupCounts(*parts[0])
        for part in parts[1:]:
            total += GroupCounts(*part)
        return total

    def metrics(self) -> dict[str, float]:
        """``average``, ``worst`` and ``group/NAME`` of every group that has examples, as loggers take them."""
        known = {f"group/{name}": rate for name, rate in self.rates.items() if rate == rate}
        return {"average": self.average, "worst": self.worst, **known}

    def __str__(self) -> str:
        """A table: rate, interval and size of every group, the lowest first."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table("group", "rate", "95 % CI", "examples", box=None, pad_edge=False)
        for i in np.argsort(per_group(self.hits, self.sizes), stable=True):  # NaN comes last
            table.add_row(Text(self.names[i]), *_cells(int(self.hits[i]), int(self.sizes[i])))
        table.add_row("all", *_cells(self.all_hits, self.n))
        console = Console(width=100, color_system=None, force_terminal=False, force_jupyter=False)
        with console.capture() as shown:
            console.print(table)
        return "\n".join(line.rstrip() for line in shown.get().splitlines())


def _cells(hits: int, size: int) -> tuple[str, str, str]:
    if not size:
        return "–", "–", "0"
    between = wilson(hits, size)
    return f"{100 * hits / size:.1f} %", f"[{100 * between.low:.1f}, {100 * between.high:.1f}]", f"{size:,}"


def group_counts(predicted: ArrayLike | Tensor, y: ArrayLike | Tensor, groups: Any = None) -> GroupCounts:
    """The hits and sizes of every group: each combination of label and group, as everywhere in umix.

    ``predicted`` are classes [n] or logits [n, classes], ``y`` [n] the true classes. ``groups`` are values [n], several
    columns of values (a dict, a frame or an array [n, columns]), or ``Groups``; where a value is missing the example has no group.
    Without groups the classes are counted.

    >>> print(group_counts([0, 1, 1, 1], [0, 0, 1, 1], ["a", "b", "a", "b"]).rates)
    {'0, a': 1.0, '0, b': 0.0, '1, a': 1.0, '1, b': 1.0}
    """
    truth, guess = as_array(y), as_array(predicted)
    if guess.ndim == 2 and truth.ndim == 1 and guess.shape[1] > 1:
        guess = guess.argmax(axis=1)
    if truth.ndim != 1 or guess.shape != truth.shape:
        raise UserError(
            f"Predictions must be classes [n] or logits [n, classes], got {list(as_array(predicted).shape)} for labels of shape "
            f"{list(truth.shape)}."
        )
    if unlabelled := int(is_missing(truth).sum()):
        raise UserError(
            f"y must have a label for every example, but it is missing in {unlabelled} of {len(truth)}; leave those out."
        )
    _require_classes(guess, truth)
    correct = torch.from_numpy(np.asarray(guess == truth, dtype=bool))
    known = groups if isinstance(groups, Groups) else _groups(truth, groups)
    if len(known.member) != len(truth):
        raise UserError(f"There must be a group for each of the {len(truth)} examples, got {len(known.member)}.")
    hits, sizes = counts_of(correct, known.member.cpu())
    return GroupCounts(known.names, hits.numpy(), sizes.numpy(), int(correct.sum()), len(truth))


def _require_classes(guess: NDArray[Any], truth: NDArray[Any]) -> None:
    """Raise where no prediction could be right, because it is another kind of thing than the labels."""
    if len(truth) and _are_texts(guess) != _are_texts(truth):
        raise UserError(
            "Predictions and labels must both be names of classes or both be their numbers, got texts and numbers; logits belong "
            "to labels 0, 1, …"
        )
    broken = guess[guess != np.round(guess)] if guess.dtype.kind == "f" else guess[:0]
    if len(broken):
        raise UserError(
            f"Predictions [n] must be classes, got {broken[0]:g}; compare a probability with a threshold, as in p > 0.5."
        )


def _are_texts(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "UST" or (values.dtype.kind == "O" and all(isinstance(value, str) for value in values))


def _groups(truth: NDArray[Any], groups: Any) -> Groups:
    classes, codes = np.unique(truth, return_inverse=True)
    labels, y = [str(name) for name in classes.tolist()], torch.from_numpy(codes.astype(np.int64))
    if groups is None or not len(truth):
        return Groups.from_ids(y, labels)
    return cells(y.numpy(), tuple(labels), groups)
