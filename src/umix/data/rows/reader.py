"""From new data to the inputs of a trained net."""

import abc
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from torch import Tensor

from umix.data.lazy import Lazy
from umix.data.task import Transform

if TYPE_CHECKING:
    import polars


@final
@dataclass(frozen=True, eq=False)
class NewInputs:
    """Inputs ``x`` [n, ...] to be predicted, stored as in training; ``transform`` turns a batch of them into inputs of the net.

    ``ids`` are columns that are copied into the output (the id, the file's path); ``notes`` are for people.
    """

    x: Tensor | Lazy
    transform: Transform | None = None
    ids: "dict[str, polars.Series]" = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Reader(abc.ABC):
    """The fitted preprocessing of a run, saved with it, so that new data are transformed as in training.

    A kind of data that people bring has one of these as its task's ``preprocessing`` and a line in ``data/reader_registry.py``.
    """

    @abc.abstractmethod
    def save(self, directory: Path) -> None:
        """Write everything into ``directory``, a run's folder, without pickle."""

    @classmethod
    @abc.abstractmethod
    def load(cls, directory: Path) -> Self:
        """What ``save`` wrote; nothing in it is ever executed."""

    @abc.abstractmethod
    def inputs(self, new: Any) -> NewInputs:
        """The inputs in ``new``, a path or the same data in memory; raises where they cannot be used."""
