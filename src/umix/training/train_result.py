"""What training returns: the model, its history, and what the method says of the run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from torch import Tensor

from umix.models.model import Model
from umix.training.history import History


@final
@dataclass(frozen=True, eq=False)
class Notes:
    """What a step of a method adds to the run's record.

    Notes are added: ``estimate.notes + Notes(warnings=("…",))``.

    Args:
        per_example: by name, what was computed for each training example, [n].
        choices: values that were chosen for settings that were left open, with the reasons.
        warnings: sentences that every report of the run shows.

    """

    per_example: Mapping[str, Tensor] = field(default_factory=dict)
    choices: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __add__(self, later: "Notes") -> "Notes":
        return Notes(
            {**self.per_example, **later.per_example},
            {**self.choices, **later.choices},
            (*self.warnings, *later.warnings),
        )


@final
@dataclass(frozen=True, eq=False)
class TrainResult:
    """The trained net, the history of its final fit, and the notes of the method.

    Args:
        net: the trained net.
        history: counts of every epoch, and the weights of the best ones.
        notes: what the method adds to the run's record.
        group_use: whose groups the fit was trained with, where the method leaves that open.

    """

    net: Model
    history: History
    notes: Notes = field(default_factory=Notes)
    group_use: str = ""

    def after(self, notes: Notes) -> "TrainResult":
        """This result with the ``notes`` of what was done before the fit."""
        return replace(self, notes=notes + self.notes)

    @property
    def per_example(self) -> Mapping[str, Tensor]:
        """What the method has computed for each training example, [n], on the host."""
        return {name: tensor.cpu() for name, tensor in self.notes.per_example.items()}

    @property
    def choices(self) -> Mapping[str, Any]:
        """The values that were chosen for settings that were left open."""
        return self.notes.choices

    @property
    def warnings(self) -> tuple[str, ...]:
        """What every report of the run shows."""
        return self.notes.warnings
