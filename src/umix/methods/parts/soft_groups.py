"""The groups of the training examples as probabilities, and the setting that says where a method has them from."""

import abc
from dataclasses import dataclass, field
from typing import ClassVar, Literal, final

from pydantic import Field
from torch import Tensor

from umix.core.weights import one_hot
from umix.methods.method import Method
from umix.methods.parts.spread_groups import spread_groups
from umix.training.context import Context
from umix.training.train_result import Notes

#: Where groups come from: all training rows have one, or some rows of validation and training do and the others are estimated.
GroupsFrom = Literal["train", "few"]


@final
@dataclass(frozen=True, eq=False)
class SoftGroups:
    """The probability of every group for every training example, ``p`` float64 [n, groups], on the host.

    ``ids`` [n] are the groups themselves, where all of them are known. ``notes`` say how well they were estimated.
    """

    p: Tensor
    ids: Tensor | None = None
    notes: Notes = field(default_factory=Notes)


def known_groups(context: Context) -> SoftGroups:
    """The groups of the training split, all of which must be known."""
    ids = context.task.splits["train"].group.cpu()
    return SoftGroups(one_hot(ids, n_groups=len(context.task.training_groups)), ids)


def all_known(context: Context) -> bool:
    """Whether the groups of all training rows are known and may be used in training."""
    return context.use_groups == "train" and bool((context.task.splits["train"].some_groups >= 0).all())


def estimated_groups(context: Context) -> SoftGroups:
    """The groups of the training split, estimated from the rows whose groups are known and may be used.

    It may train a net (see ``spread_groups``), so a run calls it once and passes the value on.
    """
    if all_known(context):
        return known_groups(context)
    p, notes = spread_groups(context)
    return SoftGroups(p, notes=notes)


class TrainsWithGroups(Method, abc.ABC):
    """A method that trains with groups: with those of all training rows, or with estimates from a few that are known."""

    needs_groups_if: ClassVar[str] = "unless groups_from=few"

    groups_from: GroupsFrom = Field(
        "train",
        description="train: the groups of all training rows; few: estimated from the rows of train and val that have one",
    )

    @property
    def needs_groups(self) -> bool:  # type: ignore[override]
        return self.groups_from == "train"

    @property
    def needs_some_groups(self) -> bool:  # type: ignore[override]
        return self.groups_from == "few"

    def soft_groups(self, context: Context) -> SoftGroups:
        """The groups of the training examples, from where ``groups_from`` says."""
        return known_groups(context) if self.groups_from == "train" else estimated_groups(context)
