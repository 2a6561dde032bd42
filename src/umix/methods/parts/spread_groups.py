"""Known groups spread: the group of every training row, estimated from the few rows whose groups are known.

Rows of validation may be used unless groups are only reported, rows of training where groups may train. The estimate is
P(group | x, y) of ``attribute_model``: of the attribute where groups are label×attribute cells, else of the group itself, among
those that occur with the row's class. Rows of any class may have any attribute. Rows whose group is known keep it.

The model's inputs are the ``example_vectors``. PG-DRO (Ghosal and Li 2023) and SSA (Nam et al.
2022) train a net for the attribute instead: ``attribute_nets``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from umix.core.streams import stream
from umix.core.weights import one_hot
from umix.data.groups import Groups
from umix.data.task import Split, Task
from umix.errors import Setting, UserError
from umix.methods.parts.attribute_model import AttributeModel, Floats, Ints, KnownRows, Scores, fit_attribute_model
from umix.methods.parts.example_vectors import example_vectors, has_vectors
from umix.training.context import Context
from umix.training.train_result import Notes

_USER = "groups_from=few"  # what error messages call the user of the estimate
_MOST = 20_000  # known rows that the model is fitted to
_NOT_ESTIMATED = "The groups of validation rows are not guessed"
_DOUBTFUL = 2.0  # standard errors by which predictions must beat chance to be trusted without a warning
_CLEAR = 0.3  # share of chance's log loss that predictions must save for validation groups to be drawn
_CONSTANT = 1e-6  # range, in standard deviations, up to which an input does not vary
_SEVERAL = 20  # rows that show which inputs a blank group column makes constant
_MANY = 0.1  # share of validation rows without a group from which on they are drawn


@final
@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The rows with a known group that may be used: their numbers in each split, and class, value and group of all of them.

    ``y``, ``t`` and ``group`` [n] go through the splits in the order of ``rows``. The value ``t`` is what is to be predicted: the
    attribute, where it and the class decide the group, else the group. ``user`` is what error messages call the user of these rows.
    """

    user: str
    task: Task
    rows: Mapping[str, Ints]
    y: Ints
    t: Ints
    group: Ints

    @classmethod
    def of(cls, context: Context, user: str) -> Self:
        """The labelled rows of validation unless groups are only reported, and of training where groups may train."""
        task = context.task
        usable = {name: task.splits[name] for name in usable_splits(context)}
        rows = {name: np.flatnonzero(part.some_groups.cpu().numpy() >= 0) for name, part in usable.items()}
        return cls(user, task, rows, *_labels_of(usable, rows))

    @cached_property
    def group_of(self) -> Ints:
        """The group of a class and a value, [classes, values]; -1 where no labelled row has them.

        An attribute that is known in one class may occur in the others too: there it makes a group that no labelled row has.
        """
        n_classes, n_values = self.task.n_classes, self.t.max(initial=-1) + 1
        group_of = np.full((n_classes, n_values), -1)
        group_of[self.y, self.t] = self.group
        if self.attributes:
            seen = np.flatnonzero((group_of >= 0).any(axis=0))
            n_attributes = len(self.task.training_groups) // n_classes
            group_of[:, seen] = n_attributes * np.arange(n_classes)[:, None] + seen
        return group_of

    @cached_property
    def attributes(self) -> bool:
        """Whether the values are attributes and every class with every attribute is a group, in the order of ``Groups.cells``."""
        n_attributes, rest = divmod(len(self.task.training_groups), self.task.n_classes)
        return not rest and bool((self.group == n_attributes * self.y + self.t).all())

    @cached_property
    def counts(self) -> Ints:
        """How many rows have each class and value, [classes, values]."""
        counts = np.zeros(self.group_of.shape, dtype=np.int64)
        np.add.at(counts, (self.y, self.t), 1)
        return counts

    def require_two_groups(self) -> None:
        """Raise unless some class has rows of two groups, and two of one of them."""
        if not len(self.group):
            raise UserError(
                f"{self.user} needs rows whose groups are known and may be used, but there are none; name the columns of the "
                "groups with ",
                Setting("groups"),
                ".",
            )
        pairs, sizes = np.unique(np.stack([self.y, self.group]), axis=1, return_counts=True)
        if len(pairs.T) == len(np.unique(self.y)) or sizes.max() < 2:
            names = ", ".join(self.task.training_groups[g] for g in np.unique(self.group))
            raise UserError(
                f"{self.user} must know rows of two groups of one class, and two rows of one of them, got {len(self.group):,} rows "
                f"of {names}; fill in the groups of more rows."
            )

    def to_estimate(self, split: Split, own: Tensor | None) -> "RowsToEstimate":
        """The rows of ``split`` that need an estimate, where its groups ``own`` [n] may be used, -1 where not; None: none may.

        Raises if a class has such rows but no labelled ones.
        """
        known = torch.full((len(split),), -1) if own is None else own
        rows = np.flatnonzero(known.numpy() < 0)
        y = split.y.cpu().numpy()[rows]
        missing = [self.task.classes[label] for label in np.setdiff1d(y, self.y)]
        if missing:
            raise UserError(
                f"{self.user} must know groups of every class, but there is no known one of {', '.join(missing)}; fill in some."
            )
        blank = np.flatnonzero(split.some_groups.cpu().numpy() < 0)
        p = one_hot(known, n_groups=len(self.task.training_groups))
        return RowsToEstimate(rows, y, blank if len(blank) else rows, p, self.group_of)


@final
@dataclass(frozen=True, eq=False)
class RowsToEstimate:
    """The rows of a split whose group is to be estimated, and their classes, [rows] each.

    ``blank`` are the rows of the split that have no group in the data, or all rows to estimate where none lacks one: what varies
    over them is what can tell groups apart. ``p`` [n, groups], float64, has a 1 for the known groups of the split and the
    estimates that were ``put`` there.
    """

    rows: Ints
    y: Ints
    blank: Ints
    p: Tensor
    group_of: Ints  # [classes, values], as in ``LabelledRows``

    def put(self, shares: Tensor, which: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Write the probabilities ``shares`` [rows, values] of ``which`` of the rows, all of them by default, into ``p``."""
        group_of = self.group_of[self.y[which]]
        row, value = np.nonzero(group_of >= 0)
        self.p[self.rows[which][row], group_of[row, value]] = shares[row, value].double()


def usable_splits(context: Context) -> tuple[str, ...]:
    """The splits whose known groups may be used in training; those of a split with other groups than training has tell nothing."""
    allowed = {"test": (), "val": ("val",), "train": ("val", "train")}[context.use_groups]
    splits, names = context.task.splits, context.task.training_groups
    return tuple(name for name in allowed if (splits[name].training_groups or splits[name].groups).names == names)


def _labels_of(splits: Mapping[str, Split], rows: Mapping[str, Ints]) -> tuple[Ints, Ints, Ints]:
    """Class, value and group of the labelled rows, [n] each."""

    def joined(of: Mapping[str, Tensor]) -> Ints:
        found: Ints = np.concatenate([np.zeros(0, np.int64), *(of[name].cpu().numpy()[rows[name]] for name in rows)])
        return found

    y, group = (
        joined({name: split.y for name, split in splits.items()}),
        joined({name: s.some_groups for name, s in splits.items()}),
    )
    attributes = {name: split.attribute for name, split in splits.items() if split.attribute is not None}
    if len(attributes) == len(splits) > 0:
        attribute = joined(attributes)
        cells = len(np.unique(np.stack([y, attribute]), axis=1).T)
        if attribute.min(initial=0) >= 0 and cells == len(np.unique(np.stack([y, attribute, group]), axis=1).T):
            return y, attribute, group
    return y, group, group


def spread_groups(context: Context, *, user: str = _USER) -> tuple[Tensor, Notes]:
    """P(group | x, y) of every training example, float64 [n, groups], on the host; 1 for a group that is known.

    The notes say how well groups can be told apart. It is refused where that is not better than chance. ``user`` is what error
    messages say.
    """
    own = context.task.splits["train"].some_groups.cpu() if "train" in usable_splits(context) else None
    p, scores, n_known, n_new = _estimates(context, "train", own, example_vectors(context, ("train", "val")), user=user)
    if not _better_than_chance(scores):
        raise UserError(
            f"{user} must tell the groups of a class apart, but what it learns from {n_known:,} known rows is no better than "
            f"chance: {_chance_words(scores)}; fill in the groups of more rows, or take a method that needs none (umix methods)."
        )
    words = _words(scores, n_known, n_new, "training")
    doubtful = scores.gain < _DOUBTFUL * scores.error
    warning = f"The groups of training rows are guessed hardly better than by chance: {words}."
    choices = {"spread": {"known": n_known, "estimated": n_new, **scores.as_json(), "words": words}}
    return p, Notes(choices=choices, warnings=(warning,) if doubtful else ())


def with_validation_groups(context: Context) -> tuple[Context, Notes]:
    """``context`` with groups for the validation rows that have none, so that more than the few known rows can choose.

    They are drawn from an estimate; the task keeps what is known. A group's rate over known and drawn rows is, in
    expectation, that over all rows weighted by P(group | x, y). A row with a value in some of the
    group columns gets a group with this value, if the estimate has one. Nothing is drawn where groups may not choose, where nearly
    all are known, where they overlap or differ from those of training, where examples are no vectors of numbers (the estimate would
    need a net first), or where groups are told apart only a little better than by chance: then the known rows choose alone.
    """
    val = context.task.splits["val"]
    if not val.groups.names or val.training_groups is not None or val.groups.overlap:
        return context, Notes()
    if "val" not in usable_splits(context):
        return context, Notes()
    known = val.groups.codes.cpu()
    blank = int((known < 0).sum())
    if blank < _MANY * len(known) or blank == len(known) or not has_vectors(val):
        return context, Notes()
    try:
        p, scores, n_known, n_new = _estimates(
            context, "val", known, example_vectors(context, ("train", "val")), user="an estimate"
        )
    except UserError as error:
        return context, Notes(choices={"validation groups": {"words": f"{_NOT_ESTIMATED}: {error}"}})
    if scores.gain < _CLEAR * scores.chance or not _better_than_chance(scores):
        words = (
            f"{_NOT_ESTIMATED}: what {n_known:,} known rows tell is hardly better than chance: {_chance_words(scores)}."
        )
        return context, Notes(choices={"validation groups": {"words": words}})
    rng = stream(context.seed, "spread", "validation")
    drawn = (torch.from_numpy(rng.random((len(p), 1))) >= p.cumsum(1)).sum(1).clamp(max=p.shape[1] - 1)
    ids = torch.where(known >= 0, known, drawn)
    words = _words(scores, n_known, n_new, "validation")
    choice = {"known": n_known, "estimated": n_new, **scores.as_json(), "words": words}
    member, codes = Groups.from_ids(ids, val.groups.names).member, val.groups.column_codes
    if codes is not None:
        codes = torch.where(codes.cpu() >= 0, codes.cpu(), val.groups.part_codes.cpu()[ids])
    groups = replace(val.groups, member=member, attribute=None, column_codes=codes).to(context.device)
    judged = context.with_validation(replace(context.splits["val"], groups=groups))
    return judged, Notes(choices={"validation groups": choice})


def _estimates(
    context: Context, split: str, own: Tensor | None, z: Mapping[str, Floats], *, user: str
) -> tuple[Tensor, Scores, int, int]:
    """P(group | x, y) of every example of ``split`` [n, groups], its scores, and how many rows were known and estimated.

    ``own`` [n] are the groups of ``split`` that are known, -1 where not; None: none may be used. ``z`` represents the examples.
    """
    labelled = LabelledRows.of(context, user)
    labelled.require_two_groups()
    new = labelled.to_estimate(context.task.splits[split], own)
    groups = context.task.splits[split].training_groups or context.task.splits[split].groups
    told = _telling(z[split], new.blank, groups.by_column.cpu().numpy())
    inputs = np.concatenate([z[name][rows][:, told] for name, rows in labelled.rows.items()])
    known = KnownRows(inputs, labelled.y, labelled.t, any_class=labelled.attributes)
    with threadpool_limits(1):  # sums must not depend on the number of threads
        model, shares = _estimate(known, z[split][new.rows][:, told], new.y, seed=context.seed)
    new.put(torch.from_numpy(shares))
    p = new.p if own is None else _agreeing(new.p, groups.possible.cpu())
    return p, model.scores, len(labelled.y), len(new.rows)


def _agreeing(p: Tensor, possible: Tensor) -> Tensor:
    """Estimates ``p`` [n, groups] of rows of which some group columns are known, for the groups that are ``possible`` [n, groups].

    Where the estimate has none of them, it stays as it is.
    """
    agreeing = p * possible
    left = agreeing.sum(1, keepdim=True)
    return torch.where((left > 0) & (left < p.sum(1, keepdim=True)), agreeing / left, p)


def _telling(z: Floats, blank: Ints, codes: Ints) -> Ints:
    """The inputs that vary over the rows ``blank`` without a group, and over those that lack a group column.

    The others can tell nothing about them. Above all this leaves out a group column that is an input itself: known rows have the
    answer there, and the rows to estimate have a blank. ``codes`` [n, columns] are -1 where a group column is blank. One row,
    or a few that lack a column, do not show what varies: there all inputs count.
    """
    lacking = [np.flatnonzero(column < 0) for column in codes.T]
    varies = np.ones(z.shape[1], dtype=bool)
    for rows in [*([blank] if len(blank) > 1 else []), *(rows for rows in lacking if len(rows) >= _SEVERAL)]:
        varies &= np.ptp(z[rows], axis=0) > _CONSTANT
    return np.flatnonzero(varies)


def _estimate(known: KnownRows, new_z: Floats, new_y: Ints, *, seed: int) -> tuple[AttributeModel, Floats]:
    """The fitted model and its predictions for the new rows, [n, values]."""
    if len(known.y) > _MOST:
        some = np.sort(stream(seed, "spread", "rows").permutation(len(known.y))[:_MOST])
        known = replace(known, z=known.z[some], y=known.y[some], t=known.t[some])
    if known.z.shape[1] > len(known.z):
        # The weights of a regression with an L2 penalty lie in the span of its rows, so other directions can be left out.
        span = np.linalg.svd(known.z, full_matrices=False)[2].T
        known, new_z = replace(known, z=known.z @ span), new_z @ span
    model = fit_attribute_model(known, stream(seed, "spread", "folds"))
    return model, model.predict(new_z, new_y)


def _better_than_chance(scores: Scores) -> bool:
    return scores.gain > scores.error


def _chance_words(scores: Scores) -> str:
    return f"log loss {scores.log_loss:.3f} on held-out rows, {scores.chance:.3f} by chance, standard error {scores.error:.3f}"


def _words(scores: Scores, n_known: int, n_new: int, split: str) -> str:
    return (
        f"the groups of {n_new:,} {split} rows are guessed from {n_known:,} known ones, with {100 * scores.accuracy:.0f} % "
        f"accuracy on held-out rows (always the commonest group of the class: {100 * scores.usual:.0f} %)"
    )
