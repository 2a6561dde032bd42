"""How often a model is right in every group, from predictions that people made themselves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, distributed

from umix.adapters.given_groups import as_array, cells, is_missing
from umix.core.counts import class_composition
from umix.core.counts import group_counts as counts_of
from umix.core.evaluation import MIN_GROUP, Worst, units_of, worst_unit
from umix.core.rates import per_group
from umix.core.statistics import wilson
from umix.data.groups import Groups
from umix.errors import UserError


@final
@dataclass(frozen=True, eq=False)
class GroupCounts:
    """How many examples of every group were predicted correctly; ``umix.group_counts`` makes it.

    Counts of batches, or of parts of a test set, are added with ``+`` or ``sum``: groups are matched by their names.

    Args:
        names: names of the groups.
        hits: correct predictions in each group.
        sizes: examples in each group.
        all_hits: correct predictions over all examples, also those whose group is not known.
        n: number of all examples.
        min_group: size from which on a group may be the worst by its rate alone.
        margins: hits and size of the groups that one column alone makes, by name, where there are several columns.
        classes: hits and size of each class, by name.
        class_of: the class of each group or margin.

    """

    names: tuple[str, ...]
    hits: NDArray[np.int64]
    sizes: NDArray[np.int64]
    all_hits: int
    n: int
    min_group: int = MIN_GROUP
    margins: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    classes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    class_of: Mapping[str, str] = field(default_factory=dict)

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
        """The accuracy of the worst group, as ``Summary.worst`` defines it.

        Groups of ``min_group`` examples count, and smaller ones whose 95 % interval lies wholly below that of the worst larger
        one. ``rates`` has the raw rate of every group.
        """
        return self._worst.rate

    @property
    def worst_group(self) -> str | None:
        """Which group, margin or class ``worst`` is the accuracy of; None without examples."""
        names = [*self.names, *self.margins, *(f"class {name}" for name in self.classes)]
        index = self._worst.index
        return None if index is None else names[index]

    @property
    def _worst(self) -> Worst:
        def composition(names: Iterable[str], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
            """How many examples of each class each group has: all or none."""
            own = [[self.class_of.get(name) == label for label in self.classes] for name in names]
            return np.array(own, dtype=np.int64).reshape(len(sizes), len(self.classes)) * sizes[:, None]

        margins, classes = (
            np.array([*counted.values()], dtype=np.int64).reshape(-1, 2) for counted in (self.margins, self.classes)
        )
        known = all(name in self.class_of for name, size in zip(self.names, self.sizes, strict=True) if size)
        units = units_of(
            self.hits,
            self.sizes,
            classes[:, 0],
            classes[:, 1],
            margin_hits=margins[:, 0],
            margin_sizes=margins[:, 1],
            composition=composition(self.names, self.sizes) if known else None,
            margin_composition=composition(self.margins, margins[:, 1]) if known else None,
            least=self.min_group,
        )
        return worst_unit(units)

    def __add__(self, other: "GroupCounts") -> "GroupCounts":
        names = tuple(dict.fromkeys((*self.names, *other.names)))
        hits, sizes = np.zeros(len(names), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
        for part in (self, other):
            at = [names.index(name) for name in part.names]
            hits[at] += part.hits
            sizes[at] += part.sizes
        return GroupCounts(
            names,
            hits,
            sizes,
            self.all_hits + other.all_hits,
            self.n + other.n,
            min_group=max(self.min_group, other.min_group),
            margins=_added(self.margins, other.margins),
            classes=_added(self.classes, other.classes),
            class_of={**self.class_of, **other.class_of},
        )

    def __radd__(self, other: int) -> "GroupCounts":
        return self if other == 0 else NotImplemented  # sum begins with 0

    def gather(self) -> "GroupCounts":
        """In several processes (``torch.distributed``): the counts of all of them together; in one process these."""
        if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() == 1:
            return self
        parts: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(parts, self)
        total: GroupCounts = sum(parts[1:], start=parts[0])
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


def _added(some: Mapping[str, tuple[int, int]], more: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    none = (0, 0)
    return {
        name: (some.get(name, none)[0] + more.get(name, none)[0], some.get(name, none)[1] + more.get(name, none)[1])
        for name in dict.fromkeys((*some, *more))
    }


def _cells(hits: int, size: int) -> tuple[str, str, str]:
    if not size:
        return "–", "–", "0"
    between = wilson(hits, size)
    return f"{100 * hits / size:.1f} %", f"[{100 * between.low:.1f}, {100 * between.high:.1f}]", f"{size:,}"


def group_counts(
    predicted: ArrayLike | Tensor, y: ArrayLike | Tensor, groups: Any = None, *, min_group: int = MIN_GROUP
) -> GroupCounts:
    """The hits and sizes of every group: each combination of label and group, as everywhere in umix.

    Args:
        predicted: classes [n] or logits [n, classes].
        y: the true classes, [n].
        groups: values [n], several columns of values (a dict, a frame or an array [n, columns]), or ``Groups``; an example with a
            missing value has no group. Without groups the classes are counted.
        min_group: size from which on a group may be the worst by its rate alone; 1 compares all groups.

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
    labels, codes = np.unique(truth, return_inverse=True)
    classes, of_row = tuple(map(str, labels.tolist())), torch.from_numpy(codes.astype(np.int64))
    known = (groups if isinstance(groups, Groups) else _groups(of_row, classes, groups)).to(torch.device("cpu"))
    if len(known.member) != len(truth):
        raise UserError(f"There must be a group for each of the {len(truth)} examples, got {len(known.member)}.")
    hits, sizes = (part.numpy() for part in counts_of(correct, known.member))
    margin_names = [f"{margin.name} ({margin.column})" for margin in known.margins]
    n_units = len(known.names) + len(margin_names)
    composition = class_composition(of_row, known.unit_pairs, n_groups=n_units, n_classes=len(classes))
    cells_of = [*known.names, *margin_names] if known.parts or groups is None else []
    class_of = {name: classes[int(row.argmax())] for name, row in zip(cells_of, composition, strict=False) if row.any()}
    by_class = Groups.from_ids(of_row, classes)
    return GroupCounts(
        known.names,
        hits,
        sizes,
        int(correct.sum()),
        len(truth),
        min_group=min_group,
        margins=_by_name(margin_names, counts_of(correct, known.in_margins)),
        classes=_by_name(classes, counts_of(correct, by_class.member)),
        class_of=class_of,
    )


@final
class GroupMetrics:
    """``Trainer(compute_metrics=GroupMetrics(groups))``: ``average``, ``worst`` and ``group/NAME`` of every group.

    A group is a combination of label and value. ``metric_for_best_model="worst"`` keeps the checkpoint that is best on the worst
    group.

    Args:
        groups: those of the evaluation set in its order: values [n], several columns of them, or ``Groups``. Without them the
            classes are the groups.
        min_group: as in ``group_counts``.

    """

    def __init__(self, groups: Any = None, *, min_group: int = MIN_GROUP) -> None:
        self.groups = groups
        self.min_group = min_group

    def __call__(self, evaluated: Any) -> dict[str, float]:
        """The metrics of an ``EvalPrediction``, whose predictions are logits [n, classes] or classes [n]."""
        predicted = evaluated.predictions
        if isinstance(predicted, tuple):  # logits, then hidden states or the like
            predicted = predicted[0]
        return group_counts(predicted, evaluated.label_ids, self.groups, min_group=self.min_group).metrics()


def _by_name(names: Sequence[str], counted: tuple[Tensor, Tensor]) -> dict[str, tuple[int, int]]:
    return dict(zip(names, zip(counted[0].tolist(), counted[1].tolist(), strict=True), strict=True))


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


def _groups(y: Tensor, classes: tuple[str, ...], groups: Any) -> Groups:
    return Groups.from_ids(y, classes) if groups is None or not len(y) else cells(y.numpy(), classes, groups)
